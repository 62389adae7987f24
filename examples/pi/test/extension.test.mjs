// The Pi extension, loaded by the real Pi from the package's folder, through its real agent loop and its scripted model.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import { DefaultResourceLoader, ModelRuntime, SettingsManager, createAgentSession } from "@earendil-works/pi-coding-agent";
import { PlanComponent } from "../src/component.js";
import { SessionManager, TYPE, collect, draft, folder, plan, plansOf, thrown, user } from "./support.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A user interface that only has a widget. */
function widgetOnly() {
	const shown = { lines: undefined, calls: 0 };
	const setWidget = (name, lines) => {
		assert.equal(name, "plan-execute");
		shown.lines = lines;
		shown.calls += 1;
	};
	const ui = { setWidget, theme: { fg: (_color, text) => text } };
	return { shown, ui };
}

/** Pi on a session; `script` runs one prompt, for which the model answers with tool calls and then with a word. */
async function startPi(t, manager, { hasUI = true, extensions = [root], factories = [] } = {}) {
	const agentDir = folder(t);
	const cwd = folder(t);
	const faux = fauxProvider();
	const modelRuntime = await ModelRuntime.create({
		authPath: path.join(agentDir, "auth.json"), modelsPath: path.join(agentDir, "models.json"),
	});
	modelRuntime.registerNativeProvider(faux.provider);
	const settingsManager = SettingsManager.inMemory({ compaction: { enabled: false }, retry: { enabled: false } });
	const resourceLoader = new DefaultResourceLoader({
		cwd, agentDir, settingsManager, additionalExtensionPaths: extensions, extensionFactories: factories,
	});
	await resourceLoader.reload();
	assert.deepEqual(resourceLoader.getExtensions().errors, []);
	const { session } = await createAgentSession({
		cwd, agentDir, model: faux.getModel(), modelRuntime, settingsManager, resourceLoader, sessionManager: manager,
	});
	t.after(() => session.dispose());
	const errors = [];
	const { shown, ui } = widgetOnly();
	await session.bindExtensions({ onError: (error) => errors.push(error), ...(hasUI ? { uiContext: ui, mode: "tui" } : {}) });
	const script = async (...calls) => {
		const results = [];
		const stop = session.subscribe((event) => {
			if (event.type !== "tool_execution_end") return;
			const { toolName, isError, result } = event;
			results.push({ toolName, isError, text: result.content[0].text, details: result.details });
		});
		faux.setResponses([
			fauxAssistantMessage(calls.map(([name, params]) => fauxToolCall(name, params)), { stopReason: "toolUse" }),
			fauxAssistantMessage([fauxText("Done.")]),
		]);
		await session.prompt("Go on.");
		stop();
		return results;
	};
	return { session, script, shown, errors, agentDir };
}

const statuses = (shown) => shown.lines?.join("\n");

test("Pi has the component's tools", async (t) => {
	const { session } = await startPi(t, SessionManager.inMemory());
	const tools = session.getAllTools().filter((tool) => tool.name.startsWith("plan_"));
	const defined = new PlanComponent().tools;
	assert.deepEqual(tools.map((tool) => tool.name), defined.map((tool) => tool.name));
	for (const [index, tool] of tools.entries()) {
		assert.equal(tool.description, defined[index].description);
		assert.deepEqual(tool.parameters, defined[index].parameters);
		assert.ok(session.getActiveToolNames().includes(tool.name));
		const registered = session.getToolDefinition(tool.name);
		for (const key of ["label", "promptSnippet", "executionMode"]) assert.equal(registered[key], defined[index][key]);
	}
});

test("six calls of one message all run, in order", async (t) => {
	const manager = SessionManager.create("/srv/demo", folder(t));
	const { script, shown, errors } = await startPi(t, manager);
	assert.equal(shown.lines, undefined);
	const results = await script(
		["plan_create", draft],
		["plan_advance", { step: 1, status: "done" }],
		["plan_advance", { step: 3, status: "in_progress" }],
		["plan_advance", { step: 2, status: "skipped" }],
		["plan_advance", { step: 3, status: "in_progress" }],
		["plan_get", {}],
	);
	assert.deepEqual(results.map((result) => result.isError), [false, false, true, false, false, false]);
	assert.match(results[2].text, /depend/);
	const last = JSON.parse(results[5].text);
	assert.deepEqual(results[5].details, last);
	assert.deepEqual(last.steps.map((step) => step.status), ["done", "skipped", "in_progress"]);
	assert.equal(shown.lines[0], "Plan: Release (1 of 3 done, 1 skipped)");
	assert.deepEqual(shown.lines.slice(1), ["[>] 3 Publish"]);
	// Durable, and in the order of Pi: the result of a call stands right behind the entry that the call appended.
	const again = SessionManager.open(manager.getSessionFile());
	assert.equal(plansOf(again).length, 4);
	const kinds = again.getBranch().map((entry) => (entry.type === "message" ? entry.message.role : entry.type));
	const appended = ["custom", "toolResult"];
	assert.deepEqual(kinds.slice(kinds.indexOf("assistant")), [
		"assistant", ...appended, ...appended, "toolResult", ...appended, ...appended, "toolResult", "assistant",
	]);
	assert.deepEqual(errors, []);
});

test("calls made at once run one after another", async (t) => {
	const manager = SessionManager.inMemory();
	const { session } = await startPi(t, manager);
	const context = { sessionManager: manager, hasUI: false };
	const call = (name, params) => session.getToolDefinition(name).execute("call", params, undefined, undefined, context);
	const answers = await Promise.all([
		call("plan_create", draft),
		call("plan_advance", { step: 1, status: "done" }),
		call("plan_advance", { step: 2, status: "done" }),
		call("plan_get", {}),
	]);
	assert.deepEqual(answers[3].details.steps.map((step) => step.status), ["done", "done", "pending"]);
	await assert.rejects(
		session.getToolDefinition("plan_get").execute("call", {}, AbortSignal.abort(), undefined, context), /aborted/,
	);
});

test("the plan is there again when the session is opened", async (t) => {
	const manager = SessionManager.create("/srv/demo", folder(t));
	await (await startPi(t, manager)).script(["plan_create", draft]);
	const { script, shown } = await startPi(t, SessionManager.open(manager.getSessionFile()));
	assert.equal(shown.lines[0], "Plan: Release (0 of 3 done)");
	assert.equal((await script(["plan_get", {}]))[0].details.title, "Release");
});

test("moving in the tree moves the plan", async (t) => {
	const manager = SessionManager.inMemory();
	const { session, script, shown } = await startPi(t, manager);
	await script(["plan_create", { ...draft, title: "Left" }]);
	const left = manager.getLeafId();
	const first = manager.getBranch().find((entry) => entry.type === "message" && entry.message.role === "user");
	await session.navigateTree(first.id);
	assert.equal(shown.lines, undefined);
	assert.match((await script(["plan_get", {}]))[0].text, /No plan/);
	await script(["plan_create", { ...draft, title: "Right" }], ["plan_advance", { step: 1, status: "in_progress" }]);
	assert.deepEqual(shown.lines, ["Plan: Right (0 of 3 done)", "[>] 1 Test", "[ ] 2 Write", "    1 waiting for others"]);
	await session.navigateTree(left);
	assert.equal(shown.lines[0], "Plan: Left (0 of 3 done)");
	assert.equal((await script(["plan_get", {}]))[0].details.title, "Left");
});

test("a write that fails is a tool error, and the latch closes until the session is opened again", async (t) => {
	const manager = SessionManager.create("/srv/demo", folder(t));
	const dir = manager.getSessionDir();
	// Takes the session folder away before one call, and gives it back after it.
	const away = (pi) => {
		pi.on("tool_call", (event) => {
			if (event.input.step !== 2) return;
			fs.renameSync(dir, `${dir}.away`);
			fs.writeFileSync(dir, "");
		});
		pi.on("tool_result", () => {
			if (!fs.existsSync(`${dir}.away`)) return;
			fs.rmSync(dir);
			fs.renameSync(`${dir}.away`, dir);
		});
	};
	const { session, script, shown, errors } = await startPi(t, manager, { factories: [away] });
	const [made, failed, after] = await script(
		["plan_create", draft], ["plan_advance", { step: 2, status: "done" }], ["plan_advance", { step: 1, status: "done" }],
	);
	assert.equal(made.isError, false);
	for (const { isError, text } of [failed, after, (await script(["plan_get", {}]))[0]]) {
		assert.equal(isError, true);
		assert.match(text, /write failed.*reopen/);
	}
	assert.match(statuses(shown), /^Plan: .*write failed.*reopen/);
	// Loading the extension anew keeps the manager, and so the latch.
	await session.reload();
	assert.match((await script(["plan_create", draft]))[0].text, /write failed.*reopen/);
	assert.deepEqual(errors, []);
	const again = await startPi(t, SessionManager.open(manager.getSessionFile()));
	assert.equal((await again.script(["plan_get", {}]))[0].details.steps[1].status, "pending");
});

test("a listener that appends more does not make a write a failed one", async (t) => {
	const manager = SessionManager.inMemory();
	const { session, script } = await startPi(t, manager);
	session.subscribe((event) => {
		if (event.type === "entry_appended" && event.entry.customType === TYPE) manager.appendLabelChange(event.entry.id, "plan");
	});
	const results = await script(["plan_create", draft], ["plan_advance", { step: 1, status: "done" }], ["plan_get", {}]);
	assert.deepEqual(results.map((result) => result.isError), [false, false, false]);
	assert.equal(results[2].details.steps[0].status, "done");
});

test("an invalid plan is shown as such", async (t) => {
	const manager = SessionManager.inMemory();
	manager.appendMessage(user("x"));
	const id = manager.appendCustomEntry(TYPE, plan("x", "finished"));
	const { script, shown, errors } = await startPi(t, manager);
	assert.match(statuses(shown), new RegExp(`^Plan: The saved plan in entry ${id} is invalid`));
	const [result] = await script(["plan_create", draft]);
	assert.equal(result.isError, true);
	assert.match(result.text, /plan.*invalid/);
	assert.deepEqual(errors, []);
});

test("without a user interface there is no widget, and everything else", async (t) => {
	const { script, shown, errors } = await startPi(t, SessionManager.inMemory(), { hasUI: false });
	assert.equal((await script(["plan_create", draft]))[0].isError, false);
	assert.equal(shown.calls, 0);
	assert.deepEqual(errors, []);
});

/** The extension in a stand-in for Pi, for what the real one never does. */
async function alone(appendEntry) {
	const handlers = {};
	const tools = {};
	const { default: extension } = await import("../src/extension.js");
	extension({
		on: (event, handler) => (handlers[event] = handler),
		registerTool: (tool) => (tools[tool.name] = tool),
		appendEntry,
	});
	return { handlers, tools, call: (name, params, context, signal) => tools[name].execute("call", params, signal, undefined, context) };
}

test("a session that Pi let go of is let go of", async () => {
	let current;
	const { handlers, call } = await alone((customType, data) => void current.appendCustomEntry(customType, data));
	const refs = [];
	const lines = [];
	// A function of its own, as what waits keeps what it has named.
	const once = async () => {
		current = SessionManager.inMemory();
		refs.push(new WeakRef(current));
		const context = { sessionManager: current, hasUI: true, ui: { setWidget: (_name, shown) => lines.push(shown?.[0]) } };
		handlers.session_start({}, context);
		await call("plan_create", draft, context);
		await assert.rejects(call("plan_advance", { step: NaN }, context));
		handlers.session_tree({}, context);
	};
	for (let round = 0; round < 10; round += 1) await once();
	current = undefined;
	await collect();
	assert.deepEqual(refs.filter((ref) => ref.deref()), []);
	assert.deepEqual(lines.slice(-4), [undefined, ...Array(3).fill("Plan: Release (0 of 3 done)")]);
});

test("whatever is thrown, a call answers with an error and the widget with words", async () => {
	for (const [reason, words] of thrown) {
		let shown;
		const fail = () => { throw reason; };
		const { handlers, call } = await alone(fail);
		const context = { hasUI: true, sessionManager: SessionManager.inMemory(), ui: { setWidget: (_name, lines) => (shown = lines[0]) } };
		const told = (start) => (error) => error instanceof Error && error.message.startsWith(`${start} (${words}`);
		if (reason !== undefined) {
			await assert.rejects(call("plan_get", {}, context, AbortSignal.abort(reason)), told("The plan call was aborted, so nothing was saved"));
		}
		await assert.rejects(call("plan_create", draft, context), told("The plan write failed and it is unknown what was kept"));
		assert.match(shown, /^Plan: The plan write failed/);
		const broken = { ...context, get sessionManager() { throw reason; } };
		await assert.rejects(call("plan_create", draft, broken), told("No plan can be read or saved: the session does not answer"));
		handlers.session_start({}, broken);
		assert.match(shown, /^Plan: No plan can be read or saved/);
	}
});

test("handlers never throw", async () => {
	const { handlers, tools } = await alone(() => {});
	assert.deepEqual(Object.keys(handlers).sort(), ["session_start", "session_tree"]);
	const stale = () => { throw new Error("stale"); };
	const contexts = [
		{ get hasUI() { return stale(); } },
		{ hasUI: true, get sessionManager() { return stale(); }, ui: { setWidget: stale } },
		{ hasUI: true, sessionManager: SessionManager.inMemory(), ui: { setWidget: stale } },
		{ hasUI: true },
	];
	for (const handler of Object.values(handlers)) for (const context of contexts) handler({}, context);
	let shown = 0;
	handlers.session_start({}, { hasUI: false, sessionManager: SessionManager.inMemory(), ui: { setWidget: () => (shown += 1) } });
	assert.equal(shown, 0);
	// An appendEntry that returns without having written is found out.
	const manager = SessionManager.inMemory();
	const context = { hasUI: false, sessionManager: manager };
	await assert.rejects(tools.plan_create.execute("call", draft, undefined, undefined, context), /write failed.*reopen/);
	await assert.rejects(tools.plan_get.execute("call", {}, undefined, undefined, context), /write failed.*reopen/);
});
