// What the tests share: real session managers, and strict stand-ins for the services of Pi Harness, which are not on npm.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import v8 from "node:v8";
import vm from "node:vm";
import { Context } from "@deepseek-ai/cordis";
import { SessionManager } from "@earendil-works/pi-coding-agent";
import plugin from "../src/plugin.js";

export { SessionManager };
export const TYPE = "pi-harness/plan-execute";

export const draft = {
	title: "Release",
	steps: ["Test", "Write", "Publish"],
	dependencies: [{ step: 3, dependsOn: [1, 2] }],
};
export const plan = (title = "Saved", status = "pending") => ({ title, steps: [{ id: 1, title: "Only", status }] });
export const user = (text) => ({ role: "user", content: text, timestamp: 1767323045000 });

const made = [];
// Pi writes to its folder after a test has ended.
process.on("exit", () => {
	for (const dir of made) fs.rmSync(dir, { recursive: true, force: true });
});

export function folder(t) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "plan-execute-pi-"));
	made.push(dir);
	t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
	return dir;
}

v8.setFlagsFromString("--expose-gc");
const gc = vm.runInNewContext("gc");

/** Collects what nothing reaches. What a WeakRef has told stays until the work at hand is done, so that is waited for. */
export async function collect() {
	for (let round = 0; round < 3; round += 1) {
		await new Promise((done) => setImmediate(done));
		gc();
	}
}

/** What a host may throw, and the words of it that a reader gets. */
export const thrown = [
	[new Error("broken"), "broken"],
	[new Error(""), "no reason given"],
	[new WebAssembly.RuntimeError("broken"), "broken"],
	[vm.runInNewContext("new Error('from elsewhere')"), "from elsewhere"],
	["broken", "broken"],
	[1, "1"],
	[undefined, "undefined"],
	[null, "null"],
	[Symbol("broken"), "Symbol(broken)"],
	[{ message: "broken" }, "broken"],
	[{ tag: "ok" }, "[object Object]"],
	[{ toString() { throw 1; } }, "no reason given"],
	[{ get message() { throw 1; } }, "no reason given"],
	[Object.defineProperty(new Error("x"), "message", { get() { throw undefined; } }), "no reason given"],
	[Object.create(null), "no reason given"],
	[new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } }), "no reason given"],
	[`${"x".repeat(5000)}`, "x".repeat(500)],
];

/** A session that is on disk. */
export function onDisk(t) {
	const manager = SessionManager.create("/srv/demo", folder(t));
	manager.appendMessage(user("Plan, please."));
	assert.ok(fs.existsSync(manager.getSessionFile()));
	return manager;
}

const BUILT_IN = new Set(["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"]);

/** `piTools` as the harness has it. */
export class PiTools {
	tools = new Map();
	leased = false;
	register(tool) {
		if (this.leased) throw new Error("piTools: the runtime holds a lease");
		if (this.tools.has(tool.name)) throw new Error(`piTools: ${tool.name} is registered already`);
		if (BUILT_IN.has(tool.name) || tool.name.length > 128 || /[\s\p{Cc}]/u.test(tool.name)) throw new Error("piTools: name");
		this.tools.set(tool.name, tool);
		return () => {
			assert.equal(this.tools.get(tool.name), tool, "a disposer runs once");
			this.tools.delete(tool.name);
		};
	}
	snapshot() {
		return { names: [...this.tools.keys()], customTools: [...this.tools.values()] };
	}
}

/** `piPluginUi` as the harness has it. */
export class PiPluginUi {
	panels = new Map();
	refuses = false;
	register(panel) {
		if (this.refuses) throw new Error("piPluginUi: refused");
		if (this.panels.has(panel.id)) throw new Error(`piPluginUi: ${panel.id} is registered already`);
		this.panels.set(panel.id, panel);
		return () => {
			assert.equal(this.panels.get(panel.id), panel, "a disposer runs once");
			this.panels.delete(panel.id);
		};
	}
	async snapshot() {
		return Promise.all([...this.panels.values()].map(async ({ read, ...panel }) => {
			try {
				return { ...panel, data: structuredClone(await read()) };
			} catch (error) {
				return { ...panel, error: error.message };
			}
		}));
	}
}

/** The plugin in a real Cordis context on a manager. */
export async function start(t, manager, config) {
	const ctx = new Context();
	const services = { piSession: { manager }, piTools: new PiTools(), piPluginUi: new PiPluginUi() };
	for (const [name, service] of Object.entries(services)) ctx.provide(name, service);
	const fiber = await ctx.plugin(plugin, config);
	t?.after(() => fiber.dispose());
	const tool = (name) => services.piTools.tools.get(name);
	const run = (name, params, signal) => tool(name).execute("call", params, signal);
	const panel = async () => (await services.piPluginUi.snapshot())[0];
	return { ctx, fiber, ...services, tool, run, panel };
}

/** The plan that a successful answer holds, told twice. */
export function planOf({ content, details }) {
	assert.equal(content.length, 1);
	assert.equal(content[0].type, "text");
	assert.equal(content[0].text, JSON.stringify(details));
	return details;
}

export const plansOf = (manager) => manager.getEntries().filter((entry) => entry.type === "custom" && entry.customType === TYPE);
