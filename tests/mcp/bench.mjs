// `plan_get` through the server, one request at a time, and the time from starting it to its first list of tools. Prints
// {"call": microseconds, "start": milliseconds}, medians.
//
// Argument: a session file with a plan.

import { spawn } from "node:child_process";
import readline from "node:readline";
import { program } from "./server.mjs";

const [session] = process.argv.slice(2);
const median = (figures) => figures.toSorted((a, b) => a - b)[figures.length >> 1];

function start() {
	const child = spawn(program, ["mcp", "--session", session], { stdio: ["pipe", "pipe", "inherit"] });
	let answered;
	readline.createInterface({ input: child.stdout }).on("line", (line) => answered(line));
	const request = (method, params) =>
		new Promise((resolve) => {
			answered = resolve;
			child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
		});
	return { child, request };
}

const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } };
const starts = [];
for (let run = 0; run < 20; run += 1) {
	const begun = performance.now();
	const { child, request } = start();
	await request("initialize", initialize);
	child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
	await request("tools/list");
	starts.push(performance.now() - begun);
	child.stdin.end();
	await new Promise((resolve) => child.on("close", resolve));
}

const { child, request } = start();
await request("initialize", initialize);
const calls = [];
for (let run = 0; run < 2500; run += 1) {
	const begun = performance.now();
	const line = await request("tools/call", { name: "plan_get", arguments: {} });
	calls.push((performance.now() - begun) * 1000);
	if (run === 0 && !line.includes('"isError":false')) throw new Error(line);
}
child.stdin.end();
console.log(JSON.stringify({ call: median(calls.slice(500)), start: median(starts) }));
