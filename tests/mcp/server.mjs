// Starts `plan-execute mcp` for a test and talks to it in raw lines.
//
// The program is PLAN_EXECUTE, or the debug build of this repository.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
export const program = process.env.PLAN_EXECUTE ?? path.join(here, "../../target/debug/plan-execute");

/** A folder for one test. */
export function folder(t) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "mcp-"));
	t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
	return dir;
}

export const draft = (title = "Release") => ({ title, steps: ["Test", "Write", "Publish"], dependencies: [{ step: 3, dependsOn: [1, 2] }] });

/** Whether a promise ends in time: no test may hang. */
export function inTime(promise, what, ms = 20_000) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A server that is talked to in lines. */
export class Wire {
	constructor(t, session, { options = ["--create"], wrap = [] } = {}) {
		const [command, ...args] = [...wrap, program, "mcp", "--session", session, ...options];
		this.child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
		this.exit = new Promise((resolve) => this.child.on("close", (status, signal) => resolve({ status, signal })));
		this.child.stdin.on("error", () => {});
		this.stderr = "";
		this.child.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
		this.lines = [];
		this.waiting = [];
		this.reader = readline.createInterface({ input: this.child.stdout, crlfDelay: Infinity });
		this.reader.on("line", (line) => {
			const message = JSON.parse(line);
			const waits = this.waiting.shift();
			if (waits) waits(message);
			else this.lines.push(message);
		});
		this.id = 0;
		t.after(() => this.child.kill("SIGKILL"));
	}

	/** Sends bytes as they are. */
	send(bytes) {
		this.child.stdin.write(bytes);
	}

	/** Sends one message. */
	message(message) {
		this.send(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
	}

	/** The next message that the server sends. */
	next() {
		if (this.lines.length > 0) return Promise.resolve(this.lines.shift());
		return inTime(new Promise((resolve) => this.waiting.push(resolve)), "a message of the server");
	}

	/** Sends a request and waits for the next message, which must be its answer. */
	async request(method, params) {
		this.id += 1;
		this.message({ id: this.id, method, params });
		const answer = await this.next();
		if (answer.id !== this.id) throw new Error(`not the answer: ${JSON.stringify(answer)}`);
		return answer;
	}

	/** The handshake. */
	async initialize(protocolVersion = "2025-11-25") {
		const answer = await this.request("initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "wire", version: "1" } });
		this.message({ method: "notifications/initialized" });
		return answer;
	}

	call(name, args = {}) {
		return this.request("tools/call", { name, arguments: args });
	}

	/** Closes standard input; the server must end well. */
	async end() {
		this.child.stdin.end();
		return inTime(this.exit, "the end of the server");
	}
}

/** What the command says of a session. */
export function show(session) {
	const done = spawnSync(program, ["show", "--json", "--session", session], { encoding: "utf8" });
	if (done.status !== 0) throw new Error(done.stderr);
	return JSON.parse(done.stdout);
}

/** Every revision of the plan. */
export function log(session) {
	const done = spawnSync(program, ["log", "--json", "--session", session], { encoding: "utf8", maxBuffer: 1 << 28 });
	if (done.status !== 0) throw new Error(done.stderr);
	return JSON.parse(done.stdout);
}
