// The plan component: loaded once, entered call by call.

import { readdir, readFile } from "node:fs/promises";
import { instantiate } from "../component/plan-execute.js";
import { argumentsText, configText, withNames } from "./arguments.js";
import { wordsOf } from "./journal.js";

/** @typedef {import("./journal.js").Branch} Branch */

const folder = new URL("../component/", import.meta.url);
const modules = new Map();
for (const file of (await readdir(folder)).filter((file) => file.endsWith(".wasm"))) {
	modules.set(file, await WebAssembly.compile(await readFile(new URL(file, folder))));
}

/**
 * How much memory an instance may have to be kept, in bytes: WebAssembly gives none back, so one huge argument would be paid
 * for as long as the plugin lives. The largest plan needs a tenth of it.
 */
const MOST_MEMORY = 16 * 2 ** 20;

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

/**
 * What the component refused with, as an error: text, a tool-error or a plan-error.
 *
 * @param {unknown} payload
 * @param {import("./arguments.js").Odd} [odd] what the component saw as `true`
 */
function refusal(payload, odd = new Map()) {
	if (typeof payload === "string") return new PlanError("configuration", withNames(payload, [{ path: "", message: payload }], odd));
	const code = payload.code ?? payload.tag;
	const message = CHANGED[code] ?? payload.message ?? (typeof payload.val === "string" ? payload.val : code);
	const data = payload.data === undefined ? undefined : JSON.parse(payload.data);
	return new PlanError(code, withNames(message, data?.arguments ?? [], odd), data);
}

/** The error for a call whose signal is aborted, whatever the reason is. */
export function aborted(signal) {
	const error = new PlanError("aborted", `The plan call was aborted, so nothing was saved (${wordsOf(signal.reason)}).`);
	error.name = "AbortError";
	error.cause = signal.reason;
	return error;
}

/**
 * The resource `branch` as one instance sees it: the branch of the call that is inside, and between calls none.
 *
 * There is one for each instance, for jco keeps what it was lent as long as the instance lives, and a branch holds a whole
 * session.
 */
export class LentBranch {
	// The place in jco's table of such objects. Without it each call would take one more.
	[Symbol.for("cabiRep")] = 1;
	#branch;

	/** Runs a call on a branch. */
	during(branch, run) {
		this.#branch = branch;
		try {
			return run();
		} finally {
			this.#branch = undefined;
		}
	}

	#current() {
		if (!this.#branch) throw new Error("the branch was used outside of its call");
		return this.#branch;
	}

	sessionToken() {
		return this.#current().sessionToken();
	}

	latest(customType) {
		return this.#current().latest(customType);
	}

	append(customType, payload) {
		return this.#current().append(customType, payload);
	}
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
		this.tools = this.#enter(({ tools }) => tools.listTools()).map((tool) => ({
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
		const given = argumentsText(params);
		const { text, details } = this.#enter(({ tools }, on) => tools.callTool(on, name, given.text), branch, given.odd);
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
		const { plan, completed, total, ready, blocked } = this.#enter(({ plans }, on) => plans.overview(on), branch);
		const waiting = blocked.map(({ step, waitingFor }) => ({ step, waitingFor: [...waitingFor] }));
		const steps = plan?.steps.map(stepOf) ?? [];
		return { title: plan?.title ?? null, completed, total, steps, ready: [...ready], blocked: waiting };
	}

	/**
	 * Enters an instance. One that trapped is not entered again; the next call takes a new one. So does a call that is
	 * made while another is inside.
	 *
	 * @template T
	 * @param {(exports: object, on: LentBranch) => T} run
	 * @param {Branch} [branch] what the instance is lent
	 * @param {import("./arguments.js").Odd} [odd] what the component sees as `true`
	 * @returns {T}
	 */
	#enter(run, branch, odd) {
		const instance = this.#idle ?? this.#start();
		const { exports, lent } = instance;
		this.#idle = undefined;
		let outcome;
		try {
			outcome = lent.during(branch, () => run(exports, lent));
		} catch (thrown) {
			if (thrown instanceof Error) {
				throw new PlanError(
					"stopped",
					`The plan component stopped in the middle of this call (${wordsOf(thrown)}): read the plan with plan_get before you go on.`,
				);
			}
			this.#keep(instance);
			throw refusal(thrown, odd);
		}
		this.#keep(instance);
		return outcome;
	}

	#keep(instance) {
		this.#idle = instance.memory.buffer.byteLength <= MOST_MEMORY ? instance : undefined;
	}

	#start() {
		const imports = {
			"plan-execute:plugin/session-journal": { Branch: LentBranch, preferredEncoding: () => "json" },
		};
		let memory;
		const core = (module, imports) => {
			const made = new WebAssembly.Instance(module, imports);
			memory ??= made.exports.memory;
			return made;
		};
		try {
			const exports = instantiate((file) => modules.get(file), imports, core);
			exports.lifecycle.configure(this.#config.text);
			return { exports, lent: new LentBranch(), memory };
		} catch (thrown) {
			if (!(thrown instanceof Error)) throw refusal(thrown, this.#config.odd);
			throw new PlanError(
				"unavailable",
				`The plan component could not be started (${wordsOf(thrown)}), so nothing was saved: call the tool again.`,
			);
		}
	}
}
