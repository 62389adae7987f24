// The official TypeScript clients, in both of their lines, in every version of the protocol.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import Ajv from "ajv/dist/2020.js";
import { draft, folder, inTime, log, program, show } from "./server.mjs";

const PLAN = "plan-execute://plan";
const info = { name: "test", version: "1" };

/** The first line of the client, made to ask for an older version. */
async function first(transport, version) {
	const client = new Client1(info);
	const send = transport.send.bind(transport);
	transport.send = (message, ...rest) => {
		if (message.method === "initialize") message.params.protocolVersion = version;
		return send(message, ...rest);
	};
	await client.connect(transport);
	client.onUpdate = (run) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => run(params.uri));
	return client;
}

async function second(transport, version) {
	const modern = version >= "2026";
	const client = new Client2(info, modern ? { versionNegotiation: { mode: { pin: version } } } : { supportedProtocolVersions: [version] });
	await client.connect(transport);
	client.onUpdate = (run) => client.setNotificationHandler("notifications/resources/updated", ({ params }) => run(params.uri));
	return client;
}

const clients = [
	["sdk 1", "2024-11-05", first, Stdio1],
	["sdk 1", "2025-03-26", first, Stdio1],
	["sdk 1", "2025-06-18", first, Stdio1],
	["sdk 1", "2025-11-25", first, Stdio1],
	["client 2", "2025-06-18", second, Stdio2],
	["client 2", "2025-11-25", second, Stdio2],
	["client 2", "2026-07-28", second, Stdio2],
];

for (const [name, version, connect, Stdio] of clients) {
	test(`${name} in ${version}`, async (t) => {
		const session = path.join(folder(t), "s.jsonl");
		const transport = new Stdio({ command: program, args: ["mcp", "--session", session, "--create"] });
		const client = await inTime(connect(transport, version), "the handshake");
		t.after(() => client.close());

		await t.test("the tools are complete at the first request", async () => {
			const { tools, nextCursor } = await client.listTools();
			assert.equal(nextCursor, undefined);
			assert.deepEqual(tools.map((tool) => tool.name), ["plan_create", "plan_advance", "plan_get"]);
			const traits = { plan_create: [false, true, true], plan_advance: [false, false, true], plan_get: [true, false, true] };
			for (const tool of tools) {
				const [readOnlyHint, destructiveHint, idempotentHint] = traits[tool.name];
				const title = { plan_create: "Create plan", plan_advance: "Advance plan", plan_get: "Get plan" }[tool.name];
				assert.deepEqual(tool.annotations, { title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint: false });
				assert.equal(tool.title, title);
				assert.ok(tool.description.length > 40);
				for (const schema of [tool.inputSchema, tool.outputSchema]) {
					assert.equal(schema.type, "object");
					assert.equal(schema.additionalProperties, false);
				}
			}
			assert.deepEqual((await client.listTools()).tools, tools, "always the same list in the same order");
		});

		const call = (tool, args = {}) => client.callTool({ name: tool, arguments: args });
		const text = (answer) => answer.content.map((content) => content.text).join("");

		await t.test("without a plan there is none", async () => {
			const answer = await call("plan_get");
			assert.equal(answer.isError, true);
			assert.match(text(answer), /No plan/);
			const { contents } = await client.readResource({ uri: PLAN });
			assert.deepEqual(contents.map(({ text }) => text), ["null"]);
		});

		await t.test("text and structured content are one plan", async () => {
			const { tools } = await client.listTools();
			for (const [tool, args] of [
				["plan_create", draft("Ünï \u2028 😀")],
				["plan_advance", { step: 1, status: "done" }],
				["plan_get", {}],
			]) {
				const answer = await call(tool, args);
				assert.ok(!answer.isError, text(answer));
				assert.equal(text(answer), JSON.stringify(answer.structuredContent));
				const { $schema, ...schema } = tools.find(({ name }) => name === tool).outputSchema;
				assert.ok(new Ajv().compile(schema)(answer.structuredContent));
			}
			assert.equal(show(session).plan.title, "Ünï \u2028 😀");
		});

		await t.test("what a tool refuses is a result for the model", async () => {
			for (const [tool, args, words] of [
				["plan_advance", { step: 9, status: "done" }, /step 9.*1-3/i],
				["plan_advance", { step: 3, status: "done" }, /depend/],
				["plan_advance", { step: 1, status: "finished" }, /pending, in_progress, done/],
				["plan_create", { title: "T", steps: '["a"]' }, /steps.*list/i],
			]) {
				const answer = await call(tool, args);
				assert.equal(answer.isError, true);
				assert.equal(answer.structuredContent, undefined);
				assert.match(text(answer), words);
			}
			await assert.rejects(call("plan_none"), (error) => error.code === -32602);
		});

		await t.test("calls made at once all run, in order", async () => {
			const before = log(session).length;
			const statuses = ["pending", "done", "skipped", "in_progress", "pending", "done"];
			const answers = await Promise.all(statuses.map((status) => call("plan_advance", { step: 2, status })));
			assert.deepEqual(answers.map((answer) => answer.structuredContent.steps[1].status), statuses);
			assert.equal(log(session).length, before + statuses.length);
		});

		await t.test("the plan is a resource that tells of its changes", async () => {
			const { resources } = await client.listResources();
			assert.deepEqual(resources.map(({ uri, mimeType }) => [uri, mimeType]), [[PLAN, "application/json"]]);
			let heard = 0;
			let hear;
			client.onUpdate((uri) => {
				assert.equal(uri, PLAN);
				heard += 1;
				hear?.();
			});
			const modern = version >= "2026";
			const subscription = modern
				? await client.listen({ resourceSubscriptions: [PLAN] })
				: await client.subscribeResource({ uri: PLAN });
			const update = new Promise((resolve) => (hear = resolve));
			await call("plan_advance", { step: 1, status: "pending" });
			await inTime(update, "the notification");
			await call("plan_advance", { step: 9, status: "done" });
			await call("plan_get");
			assert.equal(heard, 1, "what changes nothing is no change");
			const { contents } = await client.readResource({ uri: PLAN });
			assert.equal(JSON.parse(contents[0].text).steps[0].status, "pending");
			if (modern) await subscription.close();
			else await client.unsubscribeResource({ uri: PLAN });
			await call("plan_advance", { step: 1, status: "done" });
			await call("plan_get");
			assert.equal(heard, 1, "nobody listens any more");
			await assert.rejects(client.readResource({ uri: "plan-execute://other" }));
		});
	});
}
