// The inspector's command line, as people use it to look at a server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { folder, program } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const inspector = path.join(here, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");

test("the inspector's command line", (t) => {
	const home = folder(t);
	const session = path.join(home, "s.jsonl");
	const inspect = (...args) => {
		const server = [program, "mcp", "--session", session, "--create"];
		const done = spawnSync(process.execPath, [inspector, "--cli", ...server, ...args], {
			encoding: "utf8",
			timeout: 60_000,
			env: { ...process.env, HOME: home },
		});
		assert.equal(done.status, 0, `${args}: ${done.stderr}${done.stdout}`);
		return JSON.parse(done.stdout);
	};
	const { tools } = inspect("--method", "tools/list");
	assert.deepEqual(tools.map((tool) => tool.name), ["plan_create", "plan_advance", "plan_get"]);
	const create = ["--tool-arg", "title=Release", "--tool-arg", 'steps=["Test","Publish"]'];
	const created = inspect("--method", "tools/call", "--tool-name", "plan_create", ...create);
	assert.equal(created.structuredContent.title, "Release");
	assert.equal(created.structuredContent.steps.length, 2);
	const { resources } = inspect("--method", "resources/list");
	assert.deepEqual(resources.map((resource) => resource.uri), ["plan-execute://plan"]);
	const { contents } = inspect("--method", "resources/read", "--uri", "plan-execute://plan");
	assert.equal(JSON.parse(contents[0].text).title, "Release");
});
