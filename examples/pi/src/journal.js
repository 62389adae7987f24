// The session journal of the component, over Pi's SessionManager or an object like it.

import { existsSync } from "node:fs";

/**
 * What is needed of a SessionManager.
 *
 * @typedef {object} Manager
 * @property {() => object | null} getHeader the same object as long as the same opening of a session is meant
 * @property {() => string | null | undefined} getLeafId
 * @property {() => object[]} getBranch
 * @property {(id: string) => object | undefined} [getEntry]
 * @property {(customType: string, data: unknown) => string} [appendCustomEntry]
 * @property {() => string | undefined} [getSessionFile]
 */

/**
 * One opening of one session: what a header object stands for.
 *
 * @typedef {object} Opening
 * @property {string} token never used twice in the process
 * @property {string | undefined} failed why the outcome of a write is unknown: the latch
 * @property {Map<string, string | null>} newest the newest plan entry on the branch of an entry that was looked at before
 */

// Pi loads an extension anew, modules and all, on /reload, while its manager stays: so the latch and the tokens are kept
// outside the module, one store for every copy of it.
const store = (globalThis[Symbol.for("plan-execute-pi/openings@1")] ??= { count: 0, managers: new WeakMap() });

/**
 * The opening that a manager stands on.
 *
 * @param {Manager} manager
 * @param {object | null} header
 * @returns {Opening}
 */
function openingOf(manager, header) {
	let openings = store.managers.get(manager);
	if (!openings) store.managers.set(manager, (openings = new WeakMap()));
	const key = header ?? manager;
	let opening = openings.get(key);
	if (!opening) {
		store.count += 1;
		const token = `${header?.id}#${store.count}`;
		openings.set(key, (opening = { token, failed: undefined, newest: new Map() }));
	}
	return opening;
}

/** A case of the contract's read-error or append-error. Only these leave a {@link Branch}. */
class Fault {
	#made = true;

	constructor(tag, val) {
		this.tag = tag;
		this.val = val;
	}

	/** Whether something is a fault. A host may throw a proxy, and `instanceof` asks that what its prototype is. */
	static is(thrown) {
		return typeof thrown === "object" && thrown !== null && #made in thrown;
	}
}

/** What was thrown, in words: a host may throw anything, and much. */
export function wordsOf(thrown) {
	try {
		const words = typeof thrown?.message === "string" ? thrown.message : String(thrown);
		return words.trim().slice(0, 1000) || "no reason given";
	} catch {
		return "no reason given";
	}
}

// Thrown, never returned: jco would take a returned error for a value. What the host throws is not known to the contract.
function guarded(run) {
	try {
		return run();
	} catch (thrown) {
		throw Fault.is(thrown) ? thrown : new Fault("other", wordsOf(thrown));
	}
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Whether entries can be had by their ids. A stand-in for a manager, or one with a branch of its own making, has its branch alone. */
function hasIndex(manager) {
	return typeof manager.getEntry === "function" && !Object.hasOwn(manager, "getBranch");
}

/** How far apart the entries stand that a long walk remembers. */
const STRIDE = 1024;

/**
 * The newest entry of a custom type on the branch of `leaf`.
 *
 * Entries never change and ids are unique within an opening, so what was found once for an entry holds for ever: a walk ends
 * at the first entry that was looked at before.
 *
 * @param {Manager} manager
 * @param {Opening} opening
 * @param {string | null | undefined} leaf
 * @param {string} customType
 */
function newestEntry(manager, opening, leaf, customType) {
	const fits = (entry) => entry?.type === "custom" && entry.customType === customType;
	if (!hasIndex(manager)) return manager.getBranch().findLast(fits);
	const { newest } = opening;
	const walked = [];
	let found = null;
	// Brent's way to notice a circle of parents: damaged files have them.
	let mark;
	let steps = 0;
	let limit = 2 * STRIDE;
	for (let id = leaf; id; ) {
		const known = newest.get(id);
		if (known !== undefined) {
			found = known;
			break;
		}
		const entry = manager.getEntry(id);
		if (!entry) break;
		if (fits(entry)) {
			found = id;
			break;
		}
		if (id === mark) throw new Fault("other", `the parents of entry ${id} run in a circle`);
		if (steps % STRIDE === 0) walked.push(id);
		steps += 1;
		if (steps === limit) {
			mark = id;
			limit *= 2;
		}
		id = entry.parentId;
	}
	for (const id of walked) newest.set(id, found);
	return found === null ? undefined : manager.getEntry(found);
}

/** The time of an entry, where it tells one that the contract can hold. */
function timestampMs(entry) {
	const time = typeof entry.timestamp === "string" ? Date.parse(entry.timestamp) : NaN;
	return time >= 0 ? BigInt(time) : undefined;
}

/** The data of an entry as JSON text. What JSON cannot hold becomes text that is no JSON, for the component to refuse. */
function dataText(entry) {
	try {
		return JSON.stringify(entry.data) ?? "";
	} catch {
		return "";
	}
}

/**
 * The resource `branch`: the session as it stood when the call was made.
 *
 * Every operation checks session, branch and latch, in this order. All of it is synchronous, so between check and append
 * nothing else runs.
 */
export class Branch {
	#current;
	#append;
	#manager;
	#header;
	#leaf;
	#opening;

	/**
	 * @param {() => Manager | undefined} current the manager of now, looked up at each check
	 * @param {(manager: Manager, customType: string, data: unknown) => unknown} append writes one entry; gives its id
	 */
	constructor(current, append) {
		this.#current = current;
		this.#append = append;
		try {
			this.#manager = current();
			this.#header = this.#manager?.getHeader();
			this.#leaf = this.#manager?.getLeafId();
			this.#opening = this.#manager && openingOf(this.#manager, this.#header);
		} catch (thrown) {
			throw new Error(`No plan can be read or saved: the session does not answer (${wordsOf(thrown)}).`, { cause: thrown });
		}
		if (!this.#manager) throw new Error("No plan can be read or saved: no session is open.");
	}

	#check() {
		const manager = this.#current();
		if (manager !== this.#manager || manager.getHeader() !== this.#header) throw new Fault("session-changed");
		if (manager.getLeafId() !== this.#leaf) throw new Fault("branch-changed");
		if (this.#opening.failed !== undefined) throw new Fault("reopen-required", this.#opening.failed);
	}

	sessionToken() {
		return this.#opening.token;
	}

	latest(customType) {
		return guarded(() => {
			this.#check();
			const entry = newestEntry(this.#manager, this.#opening, this.#leaf, customType);
			if (entry === undefined) return undefined;
			const payload = { encoding: "json", bytes: encoder.encode(dataText(entry)) };
			return { id: String(entry.id), timestampMs: timestampMs(entry), payload };
		});
	}

	append(customType, payload) {
		return guarded(() => {
			this.#check();
			const text = decoder.decode(payload.bytes);
			const data = JSON.parse(text);
			let entry;
			try {
				entry = this.#written(this.#append(this.#manager, customType, data), customType, text);
			} catch (thrown) {
				this.#opening.failed = wordsOf(thrown).slice(0, 500);
				throw new Fault("failed", this.#opening.failed);
			}
			this.#leaf = entry.id;
			return { id: entry.id, timestampMs: timestampMs(entry) ?? 0n, durability: this.#durability() };
		});
	}

	/** The entry that an append made. A host that returns where it should throw is found out here. */
	#written(id, customType, text) {
		// The promise of a host that writes later: its failure must not end the process, nor count as written.
		if (typeof id?.then === "function") id.then(undefined, () => {});
		if (typeof id !== "string" || id === "") throw new Error("the session gave no entry id");
		if (id === this.#leaf || this.#manager.getLeafId() === this.#leaf) throw new Error("the session did not move on");
		const manager = this.#manager;
		const byId = hasIndex(manager);
		const entry = byId ? manager.getEntry(id) : manager.getBranch().findLast((entry) => entry?.id === id);
		const fresh = !byId || (entry?.parentId ?? null) === (this.#leaf ?? null);
		const kept = entry?.type === "custom" && entry.customType === customType && dataText(entry) === text;
		if (!fresh || !kept) throw new Error("the session does not hold what was written");
		return entry;
	}

	/** Pi writes a new session once it holds a message; until then there is no file. The least is told where nobody knows. */
	#durability() {
		try {
			const file = this.#manager.getSessionFile?.();
			return typeof file === "string" && existsSync(file) ? "stored" : "memory";
		} catch {
			return "memory";
		}
	}
}
