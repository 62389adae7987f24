// The Cordis plugin, on real session managers and in a real Cordis context.

import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { Context } from "@deepseek-ai/cordis";
import plugin, * as module from "../src/plugin.js";
import { PlanComponent } from "../src/component.js";
import {
	PiPluginUi, PiTools, SessionManager, TYPE, collect, draft, folder, onDisk, plan, planOf, plansOf, start, thrown, user,
} from "./support.mjs";

const names = ["plan_create", "plan_advance", "plan_get"];

test("what it registers is the component's", async (t) => {
	const { piTools, panel } = await start(t, SessionManager.inMemory());
	const { names: registered, customTools } = piTools.snapshot();
	assert.deepEqual(registered, names);
	assert.deepEqual(customTools.map(({ label }) => label), ["Create plan", "Advance plan", "Get plan"]);
	assert.deepEqual(customTools.map(({ execute, ...definition }) => definition), new PlanComponent().tools);
	for (const tool of customTools) {
		assert.deepEqual(Object.keys(tool).sort(), [
			"description", "execute", "executionMode", "label", "name", "parameters", "promptSnippet",
		]);
		assert.equal(tool.parameters.type, "object");
		assert.equal(tool.parameters.additionalProperties, false);
		assert.equal(tool.executionMode, "sequential");
		assert.ok(tool.description && tool.promptSnippet);
	}
	const { data, ...rest } = await panel();
	const manifest = JSON.parse(fs.readFileSync(new URL("../package.json", import.meta.url), "utf8"));
	assert.equal(rest.id, "plan-execute-panel");
	assert.equal(rest.pluginId, manifest.name);
	for (const key of ["title", "description", "icon"]) assert.equal(typeof rest[key], "string");
	assert.deepEqual(data, { title: null, completed: 0, total: 0, steps: [] });
});

test("the module is a plugin, in both forms", () => {
	assert.deepEqual(Object.keys(plugin), ["name", "inject", "apply"]);
	for (const key of Object.keys(plugin)) assert.equal(module[key], plugin[key]);
	assert.deepEqual([...plugin.inject].sort(), ["piPluginUi", "piSession", "piTools"]);
});

test("a plan is made, advanced and read", async (t) => {
	const manager = onDisk(t);
	const { run, panel } = await start(t, manager);
	const made = planOf(await run("plan_create", draft));
	assert.deepEqual(made, {
		title: "Release",
		steps: [
			{ id: 1, title: "Test", status: "pending" },
			{ id: 2, title: "Write", status: "pending" },
			{ id: 3, title: "Publish", status: "pending", dependsOn: [1, 2] },
		],
	});
	await run("plan_advance", { step: 1, status: "done" });
	await run("plan_advance", { step: 2, status: "skipped" });
	const moved = planOf(await run("plan_advance", { step: 3, status: "in_progress" }));
	assert.deepEqual(moved.steps.map((step) => step.status), ["done", "skipped", "in_progress"]);
	assert.deepEqual(planOf(await run("plan_get", {})), moved);
	assert.deepEqual(planOf(await run("plan_get")), moved);
	assert.deepEqual((await panel()).data, { title: "Release", completed: 1, total: 3, steps: moved.steps });
	// What was acknowledged is what the file holds.
	const again = SessionManager.open(manager.getSessionFile());
	assert.deepEqual(plansOf(again).map((entry) => entry.data.steps.map((step) => step.status[0]).join("")), ["ppp", "dpp", "dsp", "dsi"]);
	assert.deepEqual(planOf(await (await start(t, again)).run("plan_get", {})), moved);
});

test("answers are copies", async (t) => {
	const manager = SessionManager.inMemory();
	const { run, panel, piPluginUi } = await start(t, manager);
	const made = await run("plan_create", draft);
	const first = await run("plan_get", {});
	const before = structuredClone(first);
	for (const { details } of [made, first]) {
		details.title = "x";
		details.steps[2].dependsOn.push(7);
		details.steps.length = 1;
	}
	assert.deepEqual(await run("plan_get", {}), before);
	const read = piPluginUi.panels.get("plan-execute-panel").read;
	read().steps[2].dependsOn.push(7);
	read().steps.length = 0;
	assert.deepEqual((await panel()).data.steps, before.details.steps);
	assert.deepEqual(plansOf(manager)[0].data, before.details);
});

// Each refusal names what people match on, and changes nothing.
for (const [what, tool, params, words] of [
	["NaN", "plan_advance", { step: NaN, status: "done" }, ["step"]],
	["Infinity", "plan_advance", { step: Infinity, status: "done" }, ["step"]],
	["a big integer", "plan_advance", { step: 1n, status: "done" }, ["step"]],
	["a fraction", "plan_advance", { step: 1.5, status: "done" }, ["step", "1.5"]],
	["zero", "plan_advance", { step: 0, status: "done" }, ["step", "0"]],
	["a step beyond", "plan_advance", { step: 4, status: "done" }, ["step", "1-3"]],
	["text for a step", "plan_advance", { step: "1", status: "done" }, ["step"]],
	["no step", "plan_advance", { step: undefined, status: "done" }, ["step", "missing"]],
	["an unknown status", "plan_advance", { step: 1, status: "finished" }, ["status", "in_progress", "finished"]],
	["no status", "plan_advance", { step: 1 }, ["status"]],
	["an unmet prerequisite", "plan_advance", { step: 3, status: "done" }, ["depend", "step"]],
	["an unknown key", "plan_advance", { step: 1, status: "done", note: "x" }, ["note"]],
	["arguments for plan_get", "plan_get", { a: 1 }, ["plan_get"]],
	["a blank title", "plan_create", { ...draft, title: " \u2003" }, ["title"]],
	["NaN for a title", "plan_create", { ...draft, title: NaN }, ["title"]],
	["a long title", "plan_create", { ...draft, title: "x".repeat(501) }, ["title"]],
	["no steps", "plan_create", { title: "x", steps: [] }, ["1-50", "step"]],
	["51 steps", "plan_create", { title: "x", steps: Array(51).fill("s") }, ["1-50", "step"]],
	["NaN for a step's title", "plan_create", { title: "x", steps: [NaN] }, ["step"]],
	["NaN for the dependencies", "plan_create", { ...draft, dependencies: NaN }, ["depend"]],
	["NaN in a dependency", "plan_create", { ...draft, dependencies: [{ step: NaN, dependsOn: [1] }] }, ["depend", "step"]],
	["NaN for a dependency", "plan_create", { ...draft, dependencies: [NaN] }, ["depend"]],
	["a step that waits for itself", "plan_create", { ...draft, dependencies: [{ step: 1, dependsOn: [1] }] }, ["depend"]],
	["a circle", "plan_create", { ...draft, dependencies: [{ step: 1, dependsOn: [2] }, { step: 2, dependsOn: [1] }] }, ["depend"]],
	["null", "plan_create", null, ["null"]],
	["what has no end", "plan_create", (() => { const ring = { ...draft }; ring.ring = ring; return ring; })(), ["JSON"]],
	["what makes itself nothing", "plan_create", { ...draft, toJSON() {} }, ["JSON"]],
	["what is nested too deeply", "plan_create", JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`), ["JSON"]],
	["what throws", "plan_create", { get title() { throw new Error("no"); } }, ["JSON"]],
]) {
	test(`bad input: ${what}`, async (t) => {
		const manager = SessionManager.inMemory();
		const { run } = await start(t, manager);
		const before = planOf(await run("plan_create", draft));
		await assert.rejects(run(tool, params), (error) => {
			assert.ok(error instanceof Error);
			for (const word of words) assert.ok(error.message.includes(word), `${error.message} lacks ${word}`);
			return true;
		});
		assert.deepEqual(planOf(await run("plan_get", {})), before);
		assert.equal(manager.getEntries().length, 1);
	});
}

// What JSON has no word for is refused where it stands, and told as what it is.
const oddities = [
	[NaN, "NaN"],
	[Infinity, "Infinity"],
	[-Infinity, "-Infinity"],
	[new Number(NaN), "NaN"],
	[1n, "a BigInt"],
	[Object(1n), "a BigInt"],
	[10n ** 400n, "a BigInt"],
	[() => 1, "a function"],
	[class {}, "a function"],
	[Symbol("x"), "a symbol"],
	[undefined, "undefined"],
];
const step = "must be the whole number of a step from 1-3";
const places = [
	["plan_advance", "/step", (odd) => ({ step: odd, status: "done" }), `step ${step}`],
	["plan_advance", "/status", (odd) => ({ step: 1, status: odd }), "status must be one of pending, in_progress, done, skipped"],
	["plan_advance", "", (odd) => odd, "the arguments must be an object"],
	["plan_create", "", (odd) => odd, "the arguments must be an object"],
	["plan_get", "", (odd) => odd, "the arguments must be an object"],
	["plan_create", "/title", (odd) => ({ ...draft, title: odd }), "the plan's title must be text of 1-500 characters"],
	["plan_create", "/steps", (odd) => ({ ...draft, steps: odd }), "steps must be a list of 1-50 step titles"],
	["plan_create", "/steps/1", (odd) => ({ ...draft, steps: ["a", odd, "c"] }), "the title of step 2 must be text of 1-500 characters"],
	["plan_create", "/dependencies", (odd) => ({ ...draft, dependencies: odd }), "dependencies must be a list of objects with step and dependsOn"],
	["plan_create", "/dependencies/1", (odd) => ({ ...draft, dependencies: [...draft.dependencies, odd] }), "a dependency must be an object with step and dependsOn"],
	["plan_create", "/dependencies/0/step", (odd) => ({ ...draft, dependencies: [{ step: odd, dependsOn: [1] }] }), `step in dependencies ${step}`],
	["plan_create", "/dependencies/0/dependsOn", (odd) => ({ ...draft, dependencies: [{ step: 3, dependsOn: odd }] }), "dependsOn must be a list of step numbers"],
	["plan_create", "/dependencies/0/dependsOn/1", (odd) => ({ ...draft, dependencies: [{ step: 3, dependsOn: [1, odd] }] }), `dependsOn in dependencies ${step}`],
];
for (const [tool, path, params, rule] of places) {
	test(`odd values: ${tool} ${path || "as a whole"}`, async (t) => {
		const manager = SessionManager.inMemory();
		const { run } = await start(t, manager);
		await run("plan_create", draft);
		for (const [odd, words] of oddities) {
			// A key whose value is undefined is not there, and neither are such arguments.
			if (odd === undefined && !/\/\d+$/.test(path)) continue;
			const fault = { path, message: `${rule}, not ${words}` };
			await assert.rejects(run(tool, params(odd)), {
				code: "invalid-arguments",
				message: `${fault.message}${path && ` (at ${path})`}.`,
				data: { arguments: [fault] },
			});
		}
		assert.equal(manager.getEntries().length, 1);
	});
}

test("odd values: several, repeated, and beside others", async (t) => {
	const { run } = await start(t, SessionManager.inMemory());
	await run("plan_create", draft);
	const shared = [NaN];
	for (const [tool, params, words] of [
		["plan_advance", { step: NaN, status: -Infinity }, "step must be the whole number of a step from 1-3, not NaN (at /step); "
			+ "status must be one of pending, in_progress, done, skipped, not -Infinity (at /status)."],
		["plan_advance", { step: true, status: 1n }, "step must be the whole number of a step from 1-3, not true (at /step); "
			+ "status must be one of pending, in_progress, done, skipped, not a BigInt (at /status)."],
		// What stands within what is refused as a whole, or is not known at all, is not told.
		["plan_advance", { step: [NaN], status: { a: 1n } }, "step must be the whole number of a step from 1-3, not a list (at /step); "
			+ "status must be one of pending, in_progress, done, skipped, not an object (at /status)."],
		["plan_advance", { step: 1, status: "done", note() {} }, '"note" is not known here: allowed are step and status (at /note).'],
		["plan_get", { a: Symbol("x"), b: undefined }, '"a" is not known here: plan_get takes no arguments (at /a).'],
		["plan_create", { title: "t", steps: ["a", "b"], dependencies: [true, { step: 1, dependsOn: shared }], "dependencies/0": NaN },
			"a dependency must be an object with step and dependsOn, not true (at /dependencies/0); "
			+ "dependsOn in dependencies must be the whole number of a step from 1-2, not NaN (at /dependencies/1/dependsOn/0); "
			+ '"dependencies/0" is not known here: allowed are title, steps and dependencies (at /dependencies~10).'],
		["plan_create", { title: "t", steps: ["a", "b"], dependencies: [{ step: 1, dependsOn: shared }, { step: 2, dependsOn: shared }] },
			"dependsOn in dependencies must be the whole number of a step from 1-2, not NaN (at /dependencies/0/dependsOn/0); "
			+ "dependsOn in dependencies must be the whole number of a step from 1-2, not NaN (at /dependencies/1/dependsOn/0)."],
	]) {
		await assert.rejects(run(tool, params), { code: "invalid-arguments", message: words });
	}
	// An argument that is left out by undefined is no odd one.
	assert.equal(planOf(await run("plan_create", { ...draft, dependencies: undefined })).steps[2].dependsOn, undefined);
	planOf(await run("plan_get", { a: undefined }));
});

test("no argument can be true, which stands for odd values", () => {
	for (const { parameters } of new PlanComponent().tools) assert.doesNotMatch(JSON.stringify(parameters), /boolean|true/);
});

test("without a plan that is said before anything about the arguments", async (t) => {
	const { run } = await start(t, SessionManager.inMemory());
	for (const [tool, params] of [["plan_get", {}], ["plan_advance", { step: NaN }], ["plan_get", { a: 1 }]]) {
		await assert.rejects(run(tool, params), /No plan/);
	}
});

for (const [what, data] of [
	["no data", undefined],
	["null", null],
	["a list", []],
	["no steps", { title: "x", steps: [] }],
	["an unknown status", plan("x", "finished")],
	["NaN for an id", { title: "x", steps: [{ id: NaN, title: "a", status: "pending" }] }],
	["what has no end", (() => { const ring = plan(); ring.ring = ring; return ring; })()],
	["a big integer", { ...plan(), size: 1n }],
]) {
	test(`an invalid saved plan stays as it is: ${what}`, async (t) => {
		const manager = SessionManager.inMemory();
		const { run, panel } = await start(t, manager);
		await run("plan_create", draft);
		const before = manager.getLeafId();
		const id = manager.appendCustomEntry(TYPE, data);
		for (const [tool, params] of [["plan_get", {}], ["plan_create", draft], ["plan_advance", { step: 1, status: "done" }]]) {
			await assert.rejects(run(tool, params), (error) => error.message.includes("plan") && error.message.includes(id));
		}
		assert.match((await panel()).error, new RegExp(`plan.*${id}`));
		assert.equal(manager.getLeafId(), id);
		manager.branch(before);
		assert.equal(planOf(await run("plan_get", {})).title, "Release");
	});
}

test("lone surrogates and odd text pass as JSON text", async (t) => {
	const manager = onDisk(t);
	const { run } = await start(t, manager);
	const title = "\u0000\u001b[2J \u2028 \u{1f600} Ünï";
	assert.equal(planOf(await run("plan_create", { title, steps: ["\ud83d alone"] })).title, title);
	assert.equal(planOf(await run("plan_get", {})).steps[0].title, "\ufffd alone");
	manager.appendCustomEntry(TYPE, plan("saved \ud83d"));
	assert.equal(planOf(await run("plan_get", {})).title, "saved \ufffd");
});

test("of two calls at once the second finds the branch changed", async (t) => {
	const manager = SessionManager.inMemory();
	const { run } = await start(t, manager);
	const [first, second, third] = await Promise.allSettled([
		run("plan_create", draft), run("plan_create", { ...draft, title: "Second" }), run("plan_get", {}),
	]);
	assert.equal(planOf(first.value).title, "Release");
	for (const { reason } of [second, third]) assert.match(reason.message, /^Plan branch changed/);
	assert.equal(manager.getEntries().length, 1);
	// Reading moves nothing.
	const reads = await Promise.all([run("plan_get", {}), run("plan_get", {})]);
	assert.deepEqual(reads.map((read) => planOf(read).title), ["Release", "Release"]);
});

// What happens between a call and its run, and what the call says then: disposed, aborted, session, branch, in this order.
const moves = {
	dispose: ({ fiber }) => void fiber.dispose(),
	abort: ({ controller }) => controller.abort(new Error("stop it")),
	session: ({ manager }) => manager.newSession(),
	branch: ({ manager }) => void manager.appendMessage(user("Meanwhile.")),
};
for (const [made, words] of [
	[["dispose"], /disposed/],
	[["abort"], /aborted.*stop it/],
	[["session"], /^Plan session changed/],
	[["branch"], /^Plan branch changed/],
	[["branch", "session"], /^Plan session changed/],
	[["abort", "session"], /aborted/],
	[["abort", "branch"], /aborted/],
	[["dispose", "abort", "session", "branch"], /disposed/],
]) {
	test(`between a call and its run: ${made.join(", ")}`, async (t) => {
		const manager = SessionManager.inMemory();
		const started = await start(t, manager);
		await started.run("plan_create", draft);
		const controller = new AbortController();
		const calls = [
			started.run("plan_create", draft, controller.signal),
			started.run("plan_advance", { step: 1, status: "done" }, controller.signal),
			started.run("plan_get", {}, controller.signal),
		];
		for (const move of made) moves[move]({ manager, controller, ...started });
		const after = manager.getEntries().length;
		for (const { reason } of await Promise.allSettled(calls)) assert.match(reason?.message ?? "", words);
		assert.equal(manager.getEntries().length, after);
	});
}

test("an aborted or disposed call is refused at once", async (t) => {
	const started = await start(t, SessionManager.inMemory());
	const { tool, run, fiber, piPluginUi } = started;
	await assert.rejects(run("plan_get", {}, AbortSignal.abort()), { name: "AbortError", message: /aborted/ });
	const kept = tool("plan_create");
	const panel = piPluginUi.panels.get("plan-execute-panel");
	await fiber.dispose();
	await assert.rejects(kept.execute("call", draft, AbortSignal.abort()), /disposed/);
	assert.throws(() => panel.read(), /disposed/);
});

test("whatever the reason of an abort is, it is told in words", async (t) => {
	const manager = SessionManager.inMemory();
	const { tool } = await start(t, manager);
	for (const [reason, words] of thrown) {
		// Undefined as a reason makes one of the platform's own.
		if (reason === undefined) continue;
		const before = AbortSignal.abort(reason);
		const between = new AbortController();
		const calls = [tool("plan_get").execute("call", {}, before), tool("plan_create").execute("call", draft, between.signal)];
		between.abort(reason);
		for (const { reason: error } of await Promise.allSettled(calls)) {
			assert.ok(error instanceof Error);
			assert.equal(error.name, "AbortError");
			assert.equal(error.code, "aborted");
			assert.equal(error.cause, reason);
			assert.ok(error.message.startsWith(`The plan call was aborted, so nothing was saved (${words}`), error.message);
		}
	}
	assert.equal(manager.getEntries().length, 0);
});

test("whatever a service throws, a call and the panel answer with an error", async (t) => {
	const manager = SessionManager.inMemory();
	const { ctx, run, piPluginUi } = await start(t, manager);
	await run("plan_create", draft);
	const panel = piPluginUi.panels.get("plan-execute-panel");
	let reason;
	const runtime = { get session() { throw reason; } };
	const fail = () => { throw reason; };
	for (const [value, words] of thrown) {
		reason = value;
		const told = (start) => (error) => error instanceof Error && error.message.startsWith(start) && error.message.includes(words);
		for (const method of ["getHeader", "getLeafId"]) {
			manager[method] = fail;
			await assert.rejects(run("plan_get", {}), told("No plan can be read or saved: "));
			assert.throws(() => panel.read(), told("No plan can be read or saved: "));
			delete manager[method];
			// Between the call and its run.
			const call = run("plan_get", {});
			manager[method] = fail;
			await assert.rejects(call, told("The session journal refused "));
			delete manager[method];
		}
		const gone = ctx.provide("piRuntime", runtime);
		await assert.rejects(run("plan_create", draft), told("No plan can be read or saved: "));
		assert.throws(() => panel.read(), told("No plan can be read or saved: "));
		await gone();
		assert.equal(panel.read().title, "Release");
	}
	assert.equal(manager.getEntries().length, 1);
	for (const [value, words] of thrown) {
		manager.appendCustomEntry = () => { throw value; };
		await assert.rejects(run("plan_create", draft), (error) => error.message.startsWith(`The plan write failed and it is unknown what was kept (${words}`));
		delete manager.appendCustomEntry;
		manager.newSession();
	}
});

test("a session that the runtime let go of is let go of", async (t) => {
	const { ctx, run, panel } = await start(t, SessionManager.inMemory());
	const runtime = {};
	ctx.provide("piRuntime", runtime);
	const refs = [];
	for (let round = 0; round < 10; round += 1) {
		runtime.session = { sessionManager: SessionManager.inMemory() };
		refs.push(new WeakRef(runtime.session.sessionManager));
		await run("plan_create", draft);
		await run("plan_get", {});
		await assert.rejects(run("plan_advance", { step: NaN }));
		assert.equal((await panel()).data.title, "Release");
	}
	runtime.session = undefined;
	await collect();
	assert.deepEqual(refs.filter((ref) => ref.deref()), []);
	await assert.rejects(run("plan_get", {}), /No plan yet/);
});

test("the live session is looked up on each call", async (t) => {
	const [launch, live, other] = ["Launch", "Live", "Other"].map((title) => {
		const manager = SessionManager.inMemory();
		manager.appendCustomEntry(TYPE, plan(title));
		return manager;
	});
	const { ctx, run, panel } = await start(t, launch);
	const shown = async () => {
		const title = planOf(await run("plan_get", {})).title;
		assert.equal((await panel()).data.title, title);
		return title;
	};
	assert.equal(await shown(), "Launch");
	const runtime = {};
	const gone = ctx.provide("piRuntime", runtime);
	assert.equal(await shown(), "Launch");
	runtime.session = { sessionManager: live };
	assert.equal(await shown(), "Live");
	const call = run("plan_create", draft);
	runtime.session = { sessionManager: other };
	await assert.rejects(call, { message: /^Plan session changed/ });
	assert.equal(await shown(), "Other");
	await gone();
	assert.equal(await shown(), "Launch");
});

test("branches have plans of their own", async (t) => {
	const manager = SessionManager.inMemory();
	const { run } = await start(t, manager);
	const root = manager.appendMessage(user("Root"));
	await run("plan_create", { ...draft, title: "Left" });
	const left = manager.getLeafId();
	const before = JSON.stringify(manager.getEntry(left));
	manager.branch(root);
	await assert.rejects(run("plan_get", {}), /No plan/);
	await run("plan_create", { ...draft, title: "Right" });
	await run("plan_advance", { step: 1, status: "done" });
	assert.equal(JSON.stringify(manager.getEntry(left)), before);
	manager.branch(left);
	assert.equal(planOf(await run("plan_get", {})).title, "Left");
	manager.resetLeaf();
	await assert.rejects(run("plan_get", {}), /No plan/);
	manager.newSession();
	await assert.rejects(run("plan_get", {}), /No plan/);
});

test("a compaction takes no plan away, and a fork carries it along", async (t) => {
	const manager = onDisk(t);
	const { run } = await start(t, manager);
	await run("plan_create", draft);
	const made = planOf(await run("plan_advance", { step: 1, status: "done" }));
	manager.appendCompaction("What happened so far.", manager.appendMessage(user("Much later.")), 1000);
	assert.deepEqual(planOf(await run("plan_get", {})), made);
	const file = manager.getSessionFile();
	const before = fs.readFileSync(file);
	manager.createBranchedSession(manager.getLeafId());
	assert.deepEqual(planOf(await run("plan_get", {})), made);
	await run("plan_advance", { step: 2, status: "done" });
	assert.deepEqual(fs.readFileSync(file), before);
});

const failing = {
	"throws before it writes": () => { throw new Error("disk full"); },
	"throws and keeps the entry in memory": (manager, append, data) => { append(TYPE, data); throw new Error("disk full"); },
	"throws no error": () => { throw undefined; },
	"returns an error of the contract": () => ({ tag: "failed", val: "disk full" }),
	"returns an Error": () => new Error("disk full"),
	"returns nothing": () => undefined,
	"returns an id of nothing": () => "12345678",
	"returns the leaf, which holds the same plan": (manager) => manager.getLeafId(),
	"returns an older entry, which holds the same plan": (manager) => {
		manager.appendMessage(user("x"));
		return plansOf(manager)[0].id;
	},
	"returns a promise that fails": () => Promise.reject(new Error("disk full")),
	"returns an id after another append": (manager) => (manager.appendMessage(user("x")), "12345678"),
	"keeps another plan": (manager, append) => append(TYPE, plan("Another")),
	"keeps another type": (manager, append, data) => append("another", data),
};
for (const [what, fault] of Object.entries(failing)) {
	test(`a write that fails closes the opening: ${what}`, async (t) => {
		const manager = onDisk(t);
		const started = await start(t, manager);
		await started.run("plan_create", draft);
		await started.run("plan_create", draft);
		const append = manager.appendCustomEntry.bind(manager);
		manager.appendCustomEntry = (_type, data) => fault(manager, append, data);
		const closed = (error) => {
			const message = error.message ?? error;
			for (const word of ["write failed", "reopen"]) assert.ok(message.includes(word), message);
			return true;
		};
		await assert.rejects(started.run("plan_create", draft), closed);
		delete manager.appendCustomEntry;
		const everyCall = async ({ run, panel }) => {
			const before = manager.getEntries().length;
			await assert.rejects(run("plan_get", {}), closed);
			await assert.rejects(run("plan_create", draft), closed);
			await assert.rejects(run("plan_advance", { step: 7 }), closed);
			closed((await panel()).error);
			assert.equal(manager.getEntries().length, before);
		};
		await everyCall(started);
		// The latch outlives the plugin, and a move of the leaf.
		await started.fiber.dispose();
		const again = await start(t, manager);
		await everyCall(again);
		manager.branch(manager.getBranch()[0].id);
		await everyCall(again);
		// Opened again: then what the storage holds counts.
		manager.setSessionFile(manager.getSessionFile());
		assert.ok(planOf(await again.run("plan_create", draft)));
		manager.newSession();
		await assert.rejects(again.run("plan_get", {}), /No plan/);
	});
}

test("a real write that fails: the session folder is gone", async (t) => {
	const manager = onDisk(t);
	const { run } = await start(t, manager);
	await run("plan_create", draft);
	const dir = manager.getSessionDir();
	fs.renameSync(dir, `${dir}.away`);
	fs.writeFileSync(dir, "");
	await assert.rejects(run("plan_advance", { step: 1, status: "done" }), /write failed.*reopen/);
	fs.rmSync(dir);
	fs.renameSync(`${dir}.away`, dir);
	await assert.rejects(run("plan_get", {}), /write failed.*reopen/);
	manager.setSessionFile(manager.getSessionFile());
	assert.equal(planOf(await run("plan_get", {})).steps[0].status, "pending");
});

test("the latch closes one opening alone", async (t) => {
	const manager = onDisk(t);
	const { run } = await start(t, manager);
	await run("plan_create", draft);
	manager.appendCustomEntry = () => { throw new Error("disk full"); };
	await assert.rejects(run("plan_create", draft), /write failed/);
	const beside = SessionManager.open(manager.getSessionFile());
	assert.equal(planOf(await (await start(t, beside)).run("plan_get", {})).title, "Release");
	await assert.rejects(run("plan_get", {}), /write failed/);
});

test("disposal takes everything away, and it can be loaded again", async () => {
	const manager = SessionManager.inMemory();
	const { ctx, fiber, piTools, piPluginUi } = await start(undefined, manager);
	for (let round = 0; round < 3; round += 1) {
		const used = round === 0 ? fiber : await ctx.plugin(plugin);
		assert.deepEqual(piTools.snapshot().names, names);
		await used.dispose();
		assert.deepEqual(piTools.snapshot().names, []);
		assert.deepEqual(await piPluginUi.snapshot(), []);
	}
});

test("what fails half-way takes back what it did", async () => {
	for (const [what, words] of [["panel", /refused/], ["tool", /registered already/], ["lease", /lease/]]) {
		const ctx = new Context();
		const piTools = new PiTools();
		const piPluginUi = new PiPluginUi();
		const taken = [];
		if (what === "panel") piPluginUi.refuses = true;
		if (what === "tool") taken.push(piTools.register({ name: "plan_get" }));
		if (what === "lease") piTools.leased = true;
		for (const [name, service] of Object.entries({ piTools, piPluginUi, piSession: { manager: SessionManager.inMemory() } })) {
			ctx.provide(name, service);
		}
		await assert.rejects(async () => ctx.plugin(plugin), words);
		assert.deepEqual(piTools.snapshot().names, what === "tool" ? ["plan_get"] : []);
		assert.equal(piPluginUi.panels.size, 0);
		piPluginUi.refuses = piTools.leased = false;
		taken.forEach((dispose) => dispose());
		await (await ctx.plugin(plugin)).dispose();
		assert.deepEqual(piTools.snapshot().names, []);
	}
});

test("unknown config keys refuse activation", async (t) => {
	for (const [config, words] of [
		[{ a: 1, b: {} }, /config keys: a, b/],
		[{ a: undefined }, /config keys: a/],
		[[], /object/],
		["text", /object/],
		[NaN, /object.* not NaN\.$/],
		[() => ({}), /object.* not a function\.$/],
		[1n, /object.* not a BigInt\.$/],
		[{ a: 1n, b: NaN, c() {}, d: Symbol("x") }, /config keys: a, b, c, d/],
		[{ get a() { throw 1; }, b: 2 }, /config keys: a, b/],
		[(() => { const ring = {}; ring.ring = ring; return ring; })(), /config keys: ring/],
		[{ a: 1, toJSON: () => ({}) }, /config keys: a, toJSON/],
		[{ "a\"b\\": 1 }, /config keys: a"b\\/],
	]) {
		const manager = SessionManager.inMemory();
		await assert.rejects(start(undefined, manager, config), words);
	}
	for (const config of [undefined, {}, Object.create(null)]) {
		assert.equal((await start(t, SessionManager.inMemory(), config)).piTools.tools.size, 3);
	}
});

test("it waits for its services, and goes with them", async () => {
	const ctx = new Context();
	const piTools = new PiTools();
	ctx.provide("piSession", { manager: SessionManager.inMemory() });
	ctx.provide("piTools", piTools);
	const fiber = ctx.plugin(plugin);
	await new Promise((done) => setImmediate(done));
	assert.equal(piTools.tools.size, 0);
	const gone = ctx.provide("piPluginUi", new PiPluginUi());
	await fiber;
	await new Promise((done) => setImmediate(done));
	assert.equal(piTools.tools.size, 3);
	await gone();
	await new Promise((done) => setImmediate(done));
	assert.equal(piTools.tools.size, 0);
});

test("a session that nobody has saved yet", async (t) => {
	const manager = SessionManager.create("/srv/demo", folder(t));
	const { run } = await start(t, manager);
	await run("plan_create", draft);
	assert.ok(!fs.existsSync(manager.getSessionFile()));
	manager.appendMessage(user("Now."));
	assert.equal(planOf(await (await start(t, SessionManager.open(manager.getSessionFile()))).run("plan_get", {})).title, "Release");
});

test("without a session there is an error, not a crash", async (t) => {
	const { run, panel } = await start(t, undefined);
	await assert.rejects(run("plan_get", {}), /no session is open/);
	assert.match((await panel()).error, /no session is open/);
});
