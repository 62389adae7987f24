// The branch of the component over real session managers: the index against a plain walk, openings, faults of a host.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { LentBranch, PlanComponent } from "../src/component.js";
import { Branch } from "../src/journal.js";
import { SessionManager, TYPE, collect, draft, folder, onDisk, plan, thrown, user } from "./support.mjs";

const append = (manager, customType, data) => manager.appendCustomEntry(customType, data);
const branchOf = (manager) => new Branch(() => manager, append);
const textOf = (entry) => entry && new TextDecoder().decode(entry.payload.bytes);
const bytesOf = (data) => new TextEncoder().encode(JSON.stringify(data));
const payload = (data) => ({ encoding: "json", bytes: bytesOf(data) });

/** The newest entry by walking the whole branch. */
const walked = (manager) => manager.getBranch().findLast((entry) => entry.type === "custom" && entry.customType === TYPE);

/** A small generator of random numbers, so that a failure can be run again. */
function random(seed) {
	let state = seed;
	return (below) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

test("the newest entry is the one that a walk finds, whatever was done before", () => {
	let found = 0;
	for (let seed = 1; seed <= 60; seed += 1) {
		const next = random(seed);
		const manager = SessionManager.inMemory();
		const check = (step) => {
			const expected = walked(manager);
			const latest = branchOf(manager).latest(TYPE);
			assert.equal(latest?.id, expected?.id, `seed ${seed}, step ${step}`);
			assert.equal(textOf(latest), expected && JSON.stringify(expected.data), `seed ${seed}, step ${step}`);
			if (latest) found += 1;
		};
		for (let step = 0; step < 150; step += 1) {
			const entries = manager.getEntries();
			const choice = next(100);
			if (choice < 15) manager.appendCustomEntry(TYPE, plan(`${seed}/${step}`));
			else if (choice < 25) branchOf(manager).append(TYPE, payload(plan(`${seed}/${step} appended`)));
			else if (choice < 45) for (let more = next(5); more >= 0; more -= 1) manager.appendMessage(user("x"));
			else if (choice < 50) manager.appendCustomEntry(`${TYPE}/x`, plan());
			else if (choice < 55) manager.appendCustomMessageEntry(TYPE, "x", true);
			else if (choice < 75 && entries.length > 0) manager.branch(entries[next(entries.length)].id);
			else if (choice < 78) manager.resetLeaf();
			else if (choice < 80) manager.newSession();
			else if (choice < 82 && manager.getLeafId()) manager.createBranchedSession(manager.getLeafId());
			// Some states are passed over unseen.
			if (next(3) > 0) check(step);
		}
		check("last");
	}
	assert.ok(found > 1000, `${found} were found`);
});

/** A session file with `count` messages above one plan. */
function longFile(t, count) {
	const file = path.join(folder(t), "session.jsonl");
	const time = "2026-01-02T03:04:05.000Z";
	const lines = [
		{ type: "session", version: 3, id: "s", timestamp: time, cwd: "/srv/demo" },
		{ type: "custom", customType: TYPE, data: plan("Deep"), id: "p", parentId: null, timestamp: time },
	];
	for (let i = 0; i < count; i += 1) {
		lines.push({ type: "message", message: user("x"), id: `m${i}`, parentId: i ? `m${i - 1}` : "p", timestamp: time });
	}
	fs.writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
	return file;
}

test("a long branch is walked once", (t) => {
	const manager = SessionManager.open(longFile(t, 20_000));
	let looked = 0;
	const getEntry = manager.getEntry.bind(manager);
	manager.getEntry = (id) => ((looked += 1), getEntry(id));
	const looks = () => {
		looked = 0;
		assert.equal(JSON.parse(textOf(branchOf(manager).latest(TYPE))).title, "Deep");
		return looked;
	};
	assert.ok(looks() >= 20_000);
	assert.ok(looks() < 5);
	manager.appendMessage(user("more"));
	assert.ok(looks() < 5);
	// A branch from an entry that was only passed by: a part of the way is walked again.
	manager.branch("m7777");
	assert.ok(looks() < 1100);
});

test("damaged branches end, or say that they do not", (t) => {
	const file = longFile(t, 5000);
	const lines = fs.readFileSync(file, "utf8");
	for (const [parent, expected] of [["gone", undefined], ["m4000", "circle"], ["m4999", "circle"], ["", undefined]]) {
		// The entry m4000, above the plan, hangs below another one now.
		fs.writeFileSync(file, lines.replace('"parentId":"m3999"', `"parentId":"${parent}"`));
		const manager = SessionManager.open(file);
		if (expected) assert.throws(() => branchOf(manager).latest(TYPE), (fault) => fault.tag === "other" && /circle/.test(fault.val));
		else assert.equal(branchOf(manager).latest(TYPE), undefined);
	}
	fs.writeFileSync(file, `${lines}{"type":"message"}\n`);
	const manager = SessionManager.open(file);
	assert.equal(manager.getLeafId(), undefined);
	assert.equal(branchOf(manager).latest(TYPE), undefined);
	branchOf(manager).append(TYPE, payload(plan("Anew")));
	assert.equal(JSON.parse(textOf(branchOf(manager).latest(TYPE))).title, "Anew");
});

test("each header object has a token of its own, never used again", (t) => {
	const manager = onDisk(t);
	const token = () => branchOf(manager).sessionToken();
	const tokens = [token()];
	assert.equal(token(), tokens[0]);
	manager.appendMessage(user("x"));
	manager.branch(manager.getBranch()[0].id);
	assert.equal(token(), tokens[0]);
	const id = manager.getSessionId();
	manager.setSessionFile(manager.getSessionFile());
	tokens.push(token());
	assert.equal(manager.getSessionId(), id);
	tokens.push(branchOf(SessionManager.open(manager.getSessionFile())).sessionToken());
	assert.ok(tokens.every((token) => token.startsWith(`${id}#`)));
	manager.newSession();
	tokens.push(token());
	manager.createBranchedSession(manager.appendMessage(user("x")));
	tokens.push(token());
	assert.equal(new Set(tokens).size, tokens.length);
});

test("a latch and a token belong to the opening, for every copy of the module", async () => {
	// Pi loads an extension anew on /reload.
	const copy = await import("../src/journal.js?copy");
	assert.notEqual(copy.Branch, Branch);
	const manager = SessionManager.inMemory();
	const failing = new Branch(() => manager, () => { throw new Error("disk full"); });
	assert.throws(() => failing.append(TYPE, payload(plan())), { tag: "failed" });
	const again = new copy.Branch(() => manager, append);
	assert.equal(again.sessionToken(), failing.sessionToken());
	assert.throws(() => again.latest(TYPE), { tag: "reopen-required", val: "disk full" });
	assert.notEqual(new copy.Branch(() => SessionManager.inMemory(), append).sessionToken(), branchOf(SessionManager.inMemory()).sessionToken());
});

test("another manager is another session, even with the same header and leaf", () => {
	const entries = SessionManager.inMemory().getEntries();
	const header = { type: "session", version: 3, id: "s", timestamp: "2026-01-02T03:04:05.000Z", cwd: "/srv/demo" };
	const [one, other] = [0, 1].map(() => SessionManager.inMemory("/srv/demo", undefined, [header, ...entries]));
	assert.equal(one.getHeader(), other.getHeader());
	let current = one;
	const branch = new Branch(() => current, append);
	assert.equal(branch.latest(TYPE), undefined);
	current = other;
	assert.throws(() => branch.latest(TYPE), { tag: "session-changed" });
});

test("a handle is stale when anything but its own appends moved the session", () => {
	const manager = SessionManager.inMemory();
	const branch = branchOf(manager);
	const { id, durability, timestampMs } = branch.append(TYPE, payload(plan("One")));
	assert.equal(manager.getLeafId(), id);
	assert.equal(durability, "memory");
	assert.equal(timestampMs, BigInt(Date.parse(manager.getEntry(id).timestamp)));
	branch.append(TYPE, payload(plan("Two")));
	assert.equal(JSON.parse(textOf(branch.latest(TYPE))).title, "Two");
	manager.appendMessage(user("x"));
	assert.throws(() => branch.latest(TYPE), { tag: "branch-changed" });
	assert.throws(() => branch.append(TYPE, payload(plan())), { tag: "branch-changed" });
	manager.newSession();
	assert.throws(() => branch.latest(TYPE), { tag: "session-changed" });
});

test("an append tells what it is worth", (t) => {
	const manager = SessionManager.create("/srv/demo", folder(t));
	assert.equal(branchOf(manager).append(TYPE, payload(plan())).durability, "memory");
	manager.appendMessage(user("x"));
	assert.equal(branchOf(manager).append(TYPE, payload(plan())).durability, "stored");
});

test("whatever a manager throws while it is read costs one call", () => {
	const manager = SessionManager.inMemory();
	const component = new PlanComponent();
	component.call(branchOf(manager), "plan_create", draft);
	manager.appendMessage(user("x"));
	for (const [reason, words] of thrown) {
		for (const method of ["getLeafId", "getEntry", "getHeader"]) {
			const branch = branchOf(manager);
			manager[method] = () => { throw reason; };
			const told = (start) => (error) => error instanceof Error && error.message.startsWith(`${start} (${words}`);
			assert.throws(() => component.call(branch, "plan_get", {}), told("The session journal refused"));
			if (method !== "getEntry") {
				assert.throws(() => branchOf(manager), told("No plan can be read or saved: the session does not answer"));
			}
			delete manager[method];
			assert.equal(component.call(branchOf(manager), "plan_get", {}).details.title, "Release");
		}
	}
});

test("a trap costs one call", () => {
	const manager = SessionManager.inMemory();
	const component = new PlanComponent();
	component.call(branchOf(manager), "plan_create", draft);
	for (const trapping of [
		// An answer that breaks the contract: jco throws in the middle of the call.
		class extends Branch { latest() { return { id: 7 }; } },
		class extends Branch { latest() { return { id: "x", payload: { encoding: "xml", bytes: new Uint8Array() } }; } },
		// The guest runs out of memory.
		class extends Branch { latest() { return { id: "x", payload: { encoding: "json", bytes: { byteLength: 2 ** 32 - 1 } } }; } },
	]) {
		for (const call of [(branch) => component.call(branch, "plan_get", {}), (branch) => component.overview(branch)]) {
			assert.throws(() => call(new trapping(() => manager, append)), { name: "PlanError", code: "stopped", message: /stopped/ });
			assert.equal(component.call(branchOf(manager), "plan_get", {}).details.title, "Release");
		}
	}
});

test("a call from inside a call is answered", () => {
	const manager = SessionManager.inMemory();
	const component = new PlanComponent();
	component.call(branchOf(manager), "plan_create", draft);
	let inner;
	const branch = new Branch(() => manager, (manager, customType, data) => {
		inner = component.call(branchOf(manager), "plan_get", {}).details.steps[0].status;
		return append(manager, customType, data);
	});
	assert.equal(component.call(branch, "plan_advance", { step: 1, status: "done" }).details.steps[0].status, "done");
	assert.equal(inner, "pending");
	assert.equal(component.call(branchOf(manager), "plan_get", {}).details.steps[0].status, "done");
});

test("a manager that knows only its branch will do", () => {
	const entries = [];
	let header = { id: "stand-in" };
	const manager = {
		getHeader: () => header,
		getLeafId: () => entries.at(-1)?.id ?? null,
		getBranch: () => [...entries],
		appendCustomEntry(customType, data) {
			entries.push({ type: "custom", customType, data, id: `e${entries.length}` });
			return this.getLeafId();
		},
	};
	const component = new PlanComponent();
	assert.throws(() => component.call(branchOf(manager), "plan_get", {}), /No plan/);
	component.call(branchOf(manager), "plan_create", draft);
	component.call(branchOf(manager), "plan_advance", { step: 1, status: "done" });
	entries.push({ type: "message", id: "m" });
	assert.equal(component.call(branchOf(manager), "plan_get", {}).details.steps[0].status, "done");
	component.call(branchOf(manager), "plan_create", draft);
	for (const [append, words] of [
		[(customType, data) => entries.push({ type: "custom", customType, data, id: entries.length + 1 }), /no entry id/],
		[() => entries.at(-1).id, /did not move on/],
		[() => (entries.push({ type: "message", id: "n" }), "e9"), /does not hold/],
	]) {
		header = { id: "stand-in" };
		manager.appendCustomEntry = append;
		const before = entries.length;
		assert.throws(() => component.call(branchOf(manager), "plan_create", draft), (error) => /write failed/.test(error.message) && words.test(error.message));
		entries.length = before;
		assert.throws(() => component.call(branchOf(manager), "plan_get", {}), /write failed/);
	}
});

/** What can be done with a component on a branch, and how each ends. */
const uses = {
	"a plan is read": (component, branch) => component.call(branch, "plan_get", {}),
	"a plan is saved": (component, branch) => component.call(branch, "plan_create", draft),
	"a panel is read": (component, branch) => component.overview(branch),
	"arguments are refused": (component, branch) =>
		assert.throws(() => component.call(branch, "plan_advance", { step: NaN }), { code: "invalid-arguments" }),
	"a branch is stale": (component, branch, manager) => {
		manager.appendMessage(user("x"));
		assert.throws(() => component.call(branch, "plan_get", {}), { code: "branch-changed" });
	},
	"the manager throws": (component, branch, manager) => {
		manager.getEntry = () => { throw new Error("broken"); };
		assert.throws(() => component.call(branch, "plan_get", {}), { code: "other" });
	},
	"a write fails": (component, branch, manager) => {
		manager.appendCustomEntry = () => { throw new Error("disk full"); };
		assert.throws(() => component.call(branch, "plan_create", draft), { code: "reopen-required" });
	},
	"the component traps": (component, branch) => {
		branch.latest = () => ({ id: 7 });
		assert.throws(() => component.call(branch, "plan_get", {}), { code: "stopped" });
	},
	"a call is made inside a call": (component, branch, manager) => {
		manager.appendCustomEntry = function (...args) {
			component.call(branchOf(manager), "plan_get", {});
			return SessionManager.prototype.appendCustomEntry.apply(this, args);
		};
		component.call(branch, "plan_create", draft);
	},
};
for (const [what, use] of Object.entries(uses)) {
	test(`a component lets go of the session when ${what}`, async () => {
		const component = new PlanComponent();
		const refs = [];
		const once = () => {
			const manager = SessionManager.inMemory();
			component.call(branchOf(manager), "plan_create", draft);
			const branch = branchOf(manager);
			use(component, branch, manager);
			refs.push(new WeakRef(manager), new WeakRef(branch));
		};
		for (let round = 0; round < 5; round += 1) once();
		await collect();
		assert.deepEqual(refs.filter((ref) => ref.deref()), []);
		assert.equal(component.overview(branchOf(SessionManager.inMemory())).title, null);
	});
}

test("many calls take no more memory than a few", async () => {
	const manager = SessionManager.inMemory();
	const component = new PlanComponent();
	component.call(branchOf(manager), "plan_create", draft);
	const used = async (rounds) => {
		for (let round = 0; round < rounds; round += 1) {
			component.call(branchOf(manager), "plan_get", {});
			component.overview(branchOf(manager));
		}
		await collect();
		return process.memoryUsage().heapUsed;
	};
	const before = await used(2000);
	const more = (await used(12_000)) - before;
	// One place in a table for each of the 24,000 calls would be a megabyte.
	assert.ok(more < 500_000, `${more} bytes`);
});

test("a huge argument or saved plan is paid for once", async () => {
	const component = new PlanComponent();
	const small = SessionManager.inMemory();
	component.call(branchOf(small), "plan_create", draft);
	const huge = "x".repeat(3e7);
	const saved = SessionManager.inMemory();
	saved.appendCustomEntry(TYPE, plan(huge));
	const told = /30000000 UTF-16/;
	for (const use of [
		() => component.call(branchOf(small), "plan_create", { ...draft, title: huge }),
		() => component.call(branchOf(saved), "plan_get", {}),
		() => component.overview(branchOf(saved)),
	]) {
		await collect();
		const before = process.memoryUsage().external;
		assert.throws(use, told);
		assert.equal(component.call(branchOf(small), "plan_get", {}).details.title, "Release");
		await collect();
		const more = process.memoryUsage().external - before;
		assert.ok(more < 10_000_000, `${more} bytes`);
	}
});

test("the largest plan leaves the instance as it is", () => {
	const { Instance } = WebAssembly;
	let started = 0;
	WebAssembly.Instance = class extends Instance {
		constructor(...args) {
			super(...args);
			started += 1;
		}
	};
	try {
		const manager = SessionManager.inMemory();
		const component = new PlanComponent();
		const first = started;
		const ids = Array.from({ length: 50 }, (_, i) => i + 1);
		// Each character takes six in JSON.
		const title = `x${"\u0001".repeat(498)}x`;
		const largest = {
			title,
			steps: ids.map(() => title),
			dependencies: ids.map((step) => ({ step, dependsOn: ids.slice(0, step - 1) })),
		};
		for (let round = 0; round < 3; round += 1) {
			component.call(branchOf(manager), "plan_create", largest);
			for (const step of ids) component.call(branchOf(manager), "plan_advance", { step, status: "done" });
			assert.equal(component.overview(branchOf(manager)).completed, 50);
		}
		assert.ok(first > 0);
		assert.equal(started, first);
	} finally {
		WebAssembly.Instance = Instance;
	}
});

test("a lent branch is reached in its call alone", () => {
	const manager = SessionManager.inMemory();
	const lent = new LentBranch();
	const uses = [() => lent.sessionToken(), () => lent.latest(TYPE), () => lent.append(TYPE, payload(plan()))];
	const unreachable = () => {
		for (const use of uses) assert.throws(use, /outside of its call/);
	};
	unreachable();
	assert.equal(lent.during(branchOf(manager), () => uses.map((use) => use()).length), 3);
	unreachable();
	assert.throws(() => lent.during(branchOf(manager), () => { throw new Error("stopped"); }), /stopped/);
	unreachable();
	assert.equal(manager.getEntries().length, 1);
});

test("what is not known after a write takes nothing back", () => {
	for (const fault of [
		(manager) => (manager.getSessionFile = () => { throw new Error("broken"); }),
		(manager) => (manager.getEntry = (id) => {
			const entry = SessionManager.prototype.getEntry.call(manager, id);
			return entry && { ...entry, timestamp: Symbol("never") };
		}),
		(manager) => (manager.getEntry = (id) => {
			const entry = SessionManager.prototype.getEntry.call(manager, id);
			return entry && { ...entry, timestamp: "never" };
		}),
	]) {
		const manager = SessionManager.inMemory();
		const component = new PlanComponent();
		fault(manager);
		component.call(branchOf(manager), "plan_create", draft);
		assert.equal(component.call(branchOf(manager), "plan_advance", { step: 1, status: "done" }).details.steps[0].status, "done");
		assert.equal(branchOf(manager).append(TYPE, payload(plan())).durability, "memory");
	}
});

test("an instance that cannot be started costs one call", () => {
	const manager = SessionManager.inMemory();
	const component = new PlanComponent();
	const traps = branchOf(manager);
	traps.latest = () => ({ id: 7 });
	assert.throws(() => component.call(traps, "plan_get", {}), { code: "stopped" });
	const { Instance } = WebAssembly;
	WebAssembly.Instance = class { constructor() { throw new RangeError("no memory"); } };
	try {
		assert.throws(() => component.call(branchOf(manager), "plan_create", draft), { code: "unavailable", message: /not be started \(no memory\), so nothing was saved/ });
	} finally {
		WebAssembly.Instance = Instance;
	}
	assert.equal(component.call(branchOf(manager), "plan_create", draft).details.title, "Release");
});
