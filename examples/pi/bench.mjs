// `plan_get` through the Cordis tool, beside a plain tool: the same rules in plain JavaScript, in the same shape. Prints
// microseconds per call as JSON, medians of runs taken in turn.
//
// Arguments: session files.

import path from "node:path";
import { Context } from "@deepseek-ai/cordis";
import { SessionManager } from "@earendil-works/pi-coding-agent";
import plugin from "./src/plugin.js";

const TYPE = "pi-harness/plan-execute";
const STATUSES = new Set(["pending", "in_progress", "done", "skipped"]);

const check = (right, words) => {
	if (!right) throw new Error(`The saved plan is invalid: ${words}`);
};
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isText = (value) => typeof value === "string" && value.length <= 500 && value.trim() !== "";

/** The plan in the data of an entry, made anew. */
function plainPlan(data) {
	check(isObject(data) && isText(data.title), "title");
	check(Array.isArray(data.steps) && data.steps.length >= 1 && data.steps.length <= 50, "1-50 steps");
	const count = data.steps.length;
	const steps = data.steps.map((step, index) => {
		check(isObject(step) && step.id === index + 1 && isText(step.title) && STATUSES.has(step.status), `step ${index + 1}`);
		const made = { id: step.id, title: step.title, status: step.status };
		if (step.dependsOn === undefined) return made;
		check(Array.isArray(step.dependsOn) && step.dependsOn.length <= 50, `dependencies of step ${step.id}`);
		for (const id of step.dependsOn) {
			check(Number.isInteger(id) && id >= 1 && id <= count && id !== step.id, `dependencies of step ${step.id}`);
		}
		made.dependsOn = [...new Set(step.dependsOn)];
		return made;
	});
	const finished = new Set();
	for (let before = -1; before < finished.size; ) {
		before = finished.size;
		for (const { id, dependsOn } of steps) if ((dependsOn ?? []).every((on) => finished.has(on))) finished.add(id);
	}
	check(finished.size === count, "the dependencies run in a circle");
	for (const { id, status, dependsOn } of steps) {
		const active = status === "in_progress" || status === "done";
		const ready = (dependsOn ?? []).every((on) => steps[on - 1].status === "done" || steps[on - 1].status === "skipped");
		check(!active || ready, `step ${id}`);
	}
	return { title: data.title, steps };
}

/** A plan tool without a component. */
function plainTool(manager) {
	const now = () => ({ header: manager.getHeader(), leaf: manager.getLeafId() });
	return async (_callId, _params, signal) => {
		const then = now();
		await undefined;
		signal?.throwIfAborted();
		const { header, leaf } = now();
		check(header === then.header && leaf === then.leaf, "changed");
		const entry = manager.getBranch().findLast((entry) => entry.type === "custom" && entry.customType === TYPE);
		check(entry, "none");
		const plan = plainPlan(entry.data);
		return { content: [{ type: "text", text: JSON.stringify(plan) }], details: structuredClone(plan) };
	};
}

/** `plan_get` of the plugin on a manager. */
async function componentTool(manager) {
	const tools = new Map();
	const ctx = new Context();
	ctx.provide("piSession", { manager });
	ctx.provide("piPluginUi", { register: () => () => {} });
	ctx.provide("piTools", { register: (tool) => (tools.set(tool.name, tool), () => tools.delete(tool.name)) });
	await ctx.plugin(plugin, {});
	return tools.get("plan_get").execute;
}

async function microseconds(execute, milliseconds) {
	let calls = 0;
	const start = performance.now();
	while (calls < 3 || performance.now() - start < milliseconds) {
		await execute("call", {}, undefined);
		calls += 1;
	}
	return ((performance.now() - start) * 1000) / calls;
}

const median = (figures) => figures.toSorted((a, b) => a - b)[figures.length >> 1];

const result = {};
for (const file of process.argv.slice(2)) {
	const manager = SessionManager.open(file);
	const tools = { component: await componentTool(manager), plain: plainTool(manager) };
	const [ours, plain] = await Promise.all(Object.values(tools).map((execute) => execute("call", {})));
	if (ours.content[0].text !== plain.content[0].text) throw new Error("the two tools do not agree");
	const figures = { component: [], plain: [] };
	for (const execute of Object.values(tools)) await microseconds(execute, 500);
	for (let run = 0; run < 9; run += 1) {
		for (const [name, execute] of Object.entries(tools)) figures[name].push(await microseconds(execute, 200));
	}
	result[path.basename(file, ".jsonl")] = { component: median(figures.component), plain: median(figures.plain) };
}
console.log(JSON.stringify(result));
