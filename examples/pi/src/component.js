// The plan component: loaded once, entered call by call.

import { readdir, readFile } from "node:fs/promises";
import { instantiate } from "../component/plan-execute.js";
import { Branch, wordsOf } from "./journal.js";

const folder = new URL("../component/", import.meta.url);
const modules = new Map();
for (const file of (await readdir(folder)).filter((file) => file.endsWith(".wasm"))) {
	modules.set(file, await WebAssembly.compile(await readFile(new URL(file, folder))));
}

/** An error for the model to read and act on. */
export class PlanError extends Error {
	/**
	 * @param {string} code stable: the case of the contract's error
	 * @param {string} message one sentence
	 * @param {unknown} [data] the particulars
	 */
	constructor(code, message, data) {
		super(message);
		this.name = "PlanError";
		this.code = code;
		if (data !== undefined) this.data = data;
	}
}

// Said in the words of Pi Harness, which people match on.
const CHANGED = {
	"session-changed": "Plan session changed after this call was made, so nothing was saved: call the tool again.",
	"branch-changed":
		"Plan branch changed after this call was made, so nothing was saved: read the plan with plan_get and call the tool again.",
};

/** What the component refused with, as an error: text, a tool-error or a plan-error. */
function refusal(payload) {
	if (typeof payload === "string") return new PlanError("configuration", payload);
	const code = payload.code ?? payload.tag;
	const message = CHANGED[code] ?? payload.message ?? (typeof payload.val === "string" ? payload.val : code);
	return new PlanError(code, message, payload.data === undefined ? undefined : JSON.parse(payload.data));
}

/** Arguments as JSON text. They come from a model, yet a caller may put anything in. */
function argumentsText(params) {
	// A number that JSON has no word for becomes an object named after it, which no argument can be. JSON.stringify would
	// make it null, and null in place of the dependencies means none.
	const plain = (_key, value) => {
		const odd = typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value));
		return odd ? { [`${value}`]: null } : value;
	};
	try {
		return JSON.stringify(params === undefined ? {} : params, plain) ?? "";
	} catch {
		return "";
	}
}

/** A configuration as JSON text. A key counts whatever its value is. */
function configText(config) {
	const plain = (_key, value) => (["object", "string", "number", "boolean"].includes(typeof value) ? value : null);
	return JSON.stringify(config ?? {}, plain);
}

/** A copy of plain JSON data. */
function copy(value) {
	if (Array.isArray(value)) return value.map(copy);
	if (value === null || typeof value !== "object") return value;
	const made = {};
	for (const key in value) made[key] = copy(value[key]);
	return made;
}

/** A step as the tools write it. */
function stepOf({ id, title, status, dependsOn }) {
	const step = { id, title, status: status.replace("-", "_") };
	return dependsOn ? { ...step, dependsOn: [...dependsOn] } : step;
}

/** The component with one configuration. */
export class PlanComponent {
	#config;
	/** The instance that no call is in. */
	#idle;
	#answer = { text: "", value: undefined };

	/** @param {unknown} [config] refused where it has keys that are not known */
	constructor(config) {
		this.#config = configText(config);
		/** @type {readonly object[]} */
		this.tools = this.#enter((exports) => exports.tools.listTools()).map((tool) => ({
			name: tool.name,
			label: tool.label,
			description: tool.description,
			promptSnippet: tool.promptSnippet,
			parameters: JSON.parse(tool.inputSchema),
			executionMode: tool.executionMode,
		}));
	}

	/**
	 * Runs one tool.
	 *
	 * @param {Branch} branch
	 * @param {string} name
	 * @param {unknown} params
	 * @returns {{ content: { type: "text", text: string }[], details: object }}
	 */
	call(branch, name, params) {
		const { text, details } = this.#enter((exports) => exports.tools.callTool(branch, name, argumentsText(params)));
		// A plan that did not change is read from its text once, and copied from then on.
		if (this.#answer.text !== details) this.#answer = { text: details, value: JSON.parse(details) };
		return { content: [{ type: "text", text }], details: copy(this.#answer.value) };
	}

	/**
	 * What a panel shows.
	 *
	 * @param {Branch} branch
	 * @returns {{ title: string | null, completed: number, total: number, steps: object[], ready: number[],
	 *   blocked: { step: number, waitingFor: number[] }[] }}
	 */
	overview(branch) {
		const { plan, completed, total, ready, blocked } = this.#enter((exports) => exports.plans.overview(branch));
		const waiting = blocked.map(({ step, waitingFor }) => ({ step, waitingFor: [...waitingFor] }));
		const steps = plan?.steps.map(stepOf) ?? [];
		return { title: plan?.title ?? null, completed, total, steps, ready: [...ready], blocked: waiting };
	}

	/**
	 * Enters an instance. One that trapped is not entered again; the next call takes a new one. So does a call that is
	 * made while another is inside.
	 */
	#enter(run) {
		const exports = this.#idle ?? this.#start();
		this.#idle = undefined;
		let outcome;
		try {
			outcome = run(exports);
		} catch (thrown) {
			if (thrown instanceof Error) {
				throw new PlanError(
					"stopped",
					`The plan component stopped in the middle of this call (${wordsOf(thrown)}): read the plan with plan_get before you go on.`,
				);
			}
			this.#idle = exports;
			throw refusal(thrown);
		}
		this.#idle = exports;
		return outcome;
	}

	#start() {
		const journal = { Branch, preferredEncoding: () => "json" };
		const exports = instantiate((file) => modules.get(file), { "plan-execute:plugin/session-journal": journal });
		try {
			exports.lifecycle.configure(this.#config);
		} catch (thrown) {
			throw thrown instanceof Error ? thrown : refusal(thrown);
		}
		return exports;
	}
}
