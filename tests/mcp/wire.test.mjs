// What the server says to clients that break the protocol, and what becomes of plans when pipes do.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Wire, draft, folder, inTime, log, show } from "./server.mjs";

const session = (t) => path.join(folder(t), "s.jsonl");
const ping = (id) => `${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`;

/** Every line of a session file must be whole. */
function whole(file) {
	const text = fs.readFileSync(file, "utf8");
	assert.ok(text.endsWith("\n"));
	for (const line of text.trimEnd().split("\n")) JSON.parse(line);
}

test("every version is answered", async (t) => {
	for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
		const wire = new Wire(t, session(t));
		const { result } = await wire.initialize(version);
		assert.equal(result.protocolVersion, version);
		assert.equal(result.serverInfo.name, "plan-execute");
		assert.deepEqual(Object.keys(result.capabilities).sort(), ["resources", "tools"]);
		assert.equal(result.capabilities.resources.subscribe, true);
		assert.deepEqual(await wire.end(), { status: 0, signal: null });
	}
	const wire = new Wire(t, session(t));
	const { result } = await wire.initialize("1999-01-01");
	assert.equal(result.protocolVersion, "2025-11-25", "an unknown version is answered with a known one");
	await wire.end();
});

test("what breaks the protocol is told, and the next message works", async (t) => {
	const wire = new Wire(t, session(t));
	await wire.initialize();
	for (const [bytes, code, id] of [
		["garbage\n", -32700],
		['{"jsonrpc":"2.0","id":7,"method":\n', -32700],
		[Buffer.from([0, 255, 254, 10]), -32700],
		["7\n", -32600],
		["[]\n", -32600],
		['{"jsonrpc":"2.0","id":7}\n', -32600, 7],
		['{"id":"x","method":7}\n', -32600, "x"],
		['{"jsonrpc":"2.0","id":8,"method":"no/method"}\n', -32601, 8],
		['{"jsonrpc":"2.0","id":9,"method":"prompts/list"}\n', -32601, 9],
		['{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{}}\n', -32602, 10],
		['{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"plan_get","arguments":[1]}}\n', -32602, 11],
		['{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"none"}}\n', -32602, 12],
		['{"jsonrpc":"2.0","id":13,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}\n', -32002, 13],
		[`{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"plan_get","arguments":{"x":"${"y".repeat(4 << 20)}"}}}\n`, -32600],
	]) {
		wire.send(bytes);
		const { error, id: found } = await wire.next();
		assert.equal(error?.code, code, String(bytes).slice(0, 200));
		assert.equal(found, id, String(bytes).slice(0, 200));
		assert.ok(error.message.length > 10);
		wire.send(ping(1));
		assert.deepEqual(await wire.next(), { jsonrpc: "2.0", id: 1, result: {} });
	}
	// Nobody waits for an answer to these.
	for (const bytes of ["\n", "\r\n", '{"jsonrpc":"2.0","method":"no/notification"}\n', '{"jsonrpc":"2.0","id":99,"result":{}}\n']) {
		wire.send(bytes);
	}
	wire.send(`\ufeff${ping(2).trim()}\r\n`);
	assert.equal((await wire.next()).id, 2);
	wire.send(`[${ping(3).trim()},${ping(4).trim()},7]\n`);
	const answers = [await wire.next(), await wire.next(), await wire.next()];
	assert.deepEqual(answers.map(({ id }) => id).sort(), [3, 4, undefined]);
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
});

test("before the handshake there are errors, and then the handshake", async (t) => {
	const wire = new Wire(t, session(t));
	wire.message({ method: "notifications/initialized" });
	wire.message({ method: "notifications/cancelled", params: { requestId: 5 } });
	const early = await wire.call("plan_create", draft());
	assert.equal(early.error.code, -32602);
	const { result } = await wire.initialize();
	assert.equal(result.protocolVersion, "2025-11-25");
	assert.match((await wire.call("plan_get")).result.content[0].text, /No plan/);
	await wire.end();
});

test("half a surrogate pair is taken as text", async (t) => {
	const wire = new Wire(t, session(t));
	await wire.initialize();
	wire.send('{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"plan_create","arguments":{"title":"a\\ud83d","steps":["\\ude00b"]}}}\n');
	const { id, result } = await wire.next();
	assert.equal(id, 70);
	assert.equal(result.structuredContent.title, "a\ufffd");
	await wire.end();
});

test("what was asked for before the end is answered", async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	for (let id = 100; id < 200; id += 1) {
		const status = ["done", "pending"][id % 2];
		wire.message({ id, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status } } });
	}
	wire.send('{"jsonrpc":"2.0","id":300,"meth');
	const ended = wire.end();
	for (let id = 100; id < 200; id += 1) {
		const answer = await wire.next();
		assert.equal(answer.id, id);
		assert.equal(answer.result.isError, false);
	}
	assert.deepEqual(await ended, { status: 0, signal: null });
	whole(file);
	assert.equal(log(file).length, 101);
});

test("calls that wait for long are answered after the end", { skip: process.platform !== "linux" }, async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	// Longer than one call waits for the lock, so that the first one gives up and the second one writes.
	const holder = spawn("flock", [file, "sh", "-c", "echo held; exec sleep 7"], { stdio: ["ignore", "pipe", "inherit"] });
	await once(holder.stdout, "data");
	for (const id of [100, 101]) {
		wire.message({ id, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status: "done" } } });
	}
	const ended = wire.end();
	for (const expected of [[100, true], [101, false]]) {
		const { id, result } = await wire.next();
		assert.deepEqual([id, result.isError], expected, JSON.stringify(result));
	}
	assert.deepEqual(await ended, { status: 0, signal: null });
	assert.equal(show(file).plan.steps[0].status, "done");
	assert.equal(log(file).length, 2);
});

test("an open stream of notifications does not hold up the end", async (t) => {
	const wire = new Wire(t, session(t));
	const _meta = {
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo": { name: "wire", version: "1" },
		"io.modelcontextprotocol/clientCapabilities": {},
	};
	const plan = "plan-execute://plan";
	wire.message({ id: 1, method: "subscriptions/listen", params: { _meta, notifications: { resourceSubscriptions: [plan] } } });
	const acknowledged = await wire.next();
	assert.equal(acknowledged.method, "notifications/subscriptions/acknowledged", JSON.stringify(acknowledged));
	wire.message({ id: 2, method: "tools/call", params: { _meta, name: "plan_create", arguments: draft() } });
	const messages = [await wire.next(), await wire.next()];
	assert.ok(messages.some(({ method, params }) => method === "notifications/resources/updated" && params.uri === plan));
	const started = Date.now();
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
	assert.ok(Date.now() - started < 4000, "the library's time for answers was not waited for");
});

test("a client that stops listening leaves whole lines and no process", async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	wire.reader.close();
	wire.child.stdout.destroy();
	for (let id = 100; id < 300; id += 1) {
		wire.message({ id, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status: "done" } } });
	}
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
	whole(file);
	assert.equal(show(file).plan.steps[0].status, "done");
});

test("a server that is killed has saved what it acknowledged", async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	for (let id = 100; id < 400; id += 1) {
		const status = ["done", "skipped", "pending"][id % 3];
		wire.message({ id, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status } } });
	}
	const acknowledged = [];
	while (acknowledged.length < 40) acknowledged.push(await wire.next());
	wire.child.kill("SIGKILL");
	await inTime(wire.exit, "the end");
	const saved = log(file).slice(1);
	assert.ok(saved.length >= acknowledged.length + wire.lines.length);
	for (const [index, answer] of [...acknowledged, ...wire.lines].entries()) {
		assert.deepEqual(saved[index].plan, answer.result.structuredContent);
	}
	whole(file);
});

test("a flood is answered, each request once, in bounded memory", async (t) => {
	const wire = new Wire(t, session(t));
	await wire.initialize();
	await wire.call("plan_create", { title: "T", steps: Array.from({ length: 50 }, (_, i) => `Step ${i} ${"x".repeat(60)}`) });
	// Nothing is read until everything was sent.
	wire.child.stdout.pause();
	const count = 5000;
	for (let id = 1000; id < 1000 + count; id += 1) {
		wire.message({ id, method: "tools/call", params: { name: "plan_get", arguments: {} } });
	}
	await new Promise((resolve) => setTimeout(resolve, 500));
	const status = fs.readFileSync(`/proc/${wire.child.pid}/status`, "utf8");
	const resident = Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
	assert.ok(resident < 200, `${resident} MiB`);
	wire.child.stdout.resume();
	const answered = new Set();
	for (let n = 0; n < count; n += 1) {
		const { id, result } = await wire.next();
		assert.equal(result.isError, false);
		answered.add(id);
	}
	assert.equal(answered.size, count);
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
});

test("requests that are cancelled at once leave nothing behind", { skip: process.platform !== "linux" }, async (t) => {
	const wire = new Wire(t, session(t));
	await wire.initialize();
	await wire.call("plan_create", draft());
	for (const method of ["resources/read", "tools/call"]) {
		const params = method === "tools/call" ? { name: "plan_get", arguments: {} } : { uri: "plan-execute://plan" };
		for (let id = 1000; id < 21000; id += 1) {
			wire.message({ id, method, params });
			wire.message({ method: "notifications/cancelled", params: { requestId: id } });
		}
		wire.message({ id: 30000, method: "ping" });
		for (let answer; answer?.id !== 30000; ) answer = await wire.next();
		const status = fs.readFileSync(`/proc/${wire.child.pid}/status`, "utf8");
		const resident = Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
		assert.ok(resident < 150, `${method}: ${resident} MiB`);
	}
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
});

test("an id that still waits is refused, and its first request answered", async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	const call = { id: 7, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status: "done" } } };
	for (let n = 0; n < 50; n += 1) wire.message(call);
	wire.message({ id: 8, method: "ping" });
	let refused = 0;
	let done = 0;
	while (refused + done < 50) {
		const { id, result, error } = await wire.next();
		if (id === 8) continue;
		assert.equal(id, 7);
		if (error) assert.equal(error.code, -32600);
		refused += error ? 1 : 0;
		done += result ? 1 : 0;
	}
	assert.ok(done >= 1);
	await wire.end();
	assert.equal(log(file).length, done + 1);
});

test("what someone else wrote is told", async (t) => {
	const file = session(t);
	const [one, other] = [new Wire(t, file), new Wire(t, file)];
	await one.initialize();
	await other.initialize();
	await one.call("plan_create", draft());
	await one.request("resources/subscribe", { uri: "plan-execute://plan" });
	await other.call("plan_advance", { step: 1, status: "done" });
	one.message({ id: 100, method: "tools/call", params: { name: "plan_get", arguments: {} } });
	const messages = [await one.next(), await one.next()];
	assert.ok(messages.some(({ method }) => method === "notifications/resources/updated"), JSON.stringify(messages));
	assert.equal(messages.find(({ id }) => id === 100).result.structuredContent.steps[0].status, "done");
	await one.end();
	await other.end();
});

test("a call that is cancelled is not answered, and the next one works", async (t) => {
	const file = session(t);
	const wire = new Wire(t, file);
	await wire.initialize();
	await wire.call("plan_create", draft());
	for (let id = 100; id < 130; id += 1) {
		wire.message({ id, method: "tools/call", params: { name: "plan_advance", arguments: { step: 1, status: "done" } } });
	}
	wire.message({ method: "notifications/cancelled", params: { requestId: 129, reason: "enough" } });
	wire.message({ id: 500, method: "tools/call", params: { name: "plan_advance", arguments: { step: 2, status: "done" } } });
	const answers = [];
	for (let answer; answer?.id !== 500; ) answers.push((answer = await wire.next()));
	assert.ok(answers.every(({ id }) => id !== 129));
	assert.ok(answers.every(({ result }) => result.isError === false), JSON.stringify(answers.find(({ result }) => result.isError)));
	assert.equal(answers.at(-1).result.structuredContent.steps[1].status, "done");
	await wire.end();
	whole(file);
});

test("two servers on one session see what the other wrote", async (t) => {
	const file = session(t);
	const [one, other] = [new Wire(t, file), new Wire(t, file)];
	await one.initialize();
	await other.initialize();
	await one.call("plan_create", draft());
	for (let round = 0; round < 10; round += 1) {
		const status = ["done", "pending"][round % 2];
		assert.equal((await one.call("plan_advance", { step: 1, status })).result.structuredContent.steps[0].status, status);
		const seen = (await other.call("plan_advance", { step: 2, status })).result.structuredContent;
		assert.deepEqual([seen.steps[0].status, seen.steps[1].status], [status, status]);
	}
	assert.equal(log(file).length, 21);
	await one.end();
	await other.end();
});

test("no room costs one call", { skip: process.platform !== "linux" }, async (t) => {
	const file = session(t);
	// What Pi may have written before; then the process may write no further.
	const first = new Wire(t, file);
	await first.initialize();
	await first.call("plan_create", draft("x".repeat(400)));
	await first.end();
	const before = fs.readFileSync(file);
	const limit = Math.max(before.length + 10, 64 * 1024 * 1024);
	fs.appendFileSync(file, `{"type":"custom","customType":"pad","data":"${"y".repeat(limit - before.length - 200)}","id":"pad00000","parentId":${JSON.stringify(JSON.parse(before.toString().trim().split("\n").at(-1)).id)},"timestamp":"2026-01-02T03:04:05.000Z"}\n`);
	const padded = fs.statSync(file).size;
	const wire = new Wire(t, file, { wrap: ["prlimit", `--fsize=${padded + 10}`] });
	await wire.initialize();
	for (let round = 0; round < 2; round += 1) {
		const { result } = await wire.call("plan_advance", { step: 1, status: "done" });
		assert.equal(result.isError, true);
		assert.equal(result._meta["plan-execute/code"], "unavailable");
		assert.equal((await wire.call("plan_get")).result.isError, false);
	}
	assert.equal(fs.statSync(file).size, padded);
	await wire.end();
});

test("what is no session is told in one sentence", async (t) => {
	const dir = folder(t);
	fs.writeFileSync(path.join(dir, "other.jsonl"), '{"hello":1}\n');
	for (const [name, options, words] of [
		["other.jsonl", ["--create"], /no session file/],
		["missing.jsonl", [], /no session file.*--create/],
		["no/folder/s.jsonl", ["--create"], /no folder/],
	]) {
		const wire = new Wire(t, path.join(dir, name), { options });
		assert.deepEqual(await inTime(wire.exit, "the end"), { status: 3, signal: null });
		assert.match(wire.stderr, words);
		assert.equal(wire.stderr.trim().split("\n").length, 1);
	}
});

test("a client that says nothing is no fault", async (t) => {
	const wire = new Wire(t, session(t));
	assert.deepEqual(await wire.end(), { status: 0, signal: null });
	assert.equal(wire.stderr, "");
});
