// The package as it would be published.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DefaultPackageManager, SettingsManager } from "@earendil-works/pi-coding-agent";
import { folder } from "./support.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));

function run(program, args, cwd) {
	const done = spawnSync(program, args, { cwd, encoding: "utf8" });
	assert.equal(done.status, 0, `${done.error ?? ""}${done.stderr}`);
	return done.stdout;
}

/** Packs what is built and installs it into an empty folder, without a network. */
function installed(t) {
	const dir = folder(t);
	const [packed] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", dir], root));
	fs.writeFileSync(path.join(dir, "package.json"), '{"private":true}');
	run("npm", ["install", "--offline", "--no-audit", "--no-fund", path.join(dir, packed.filename)], dir);
	return { dir, files: packed.files.map((file) => file.path) };
}

test("the tarball is complete, alone, and loads", (t) => {
	const { dir, files } = installed(t);
	for (const file of [
		"README.md", "LICENSE-APACHE", "LICENSE-MIT", "component/plan-execute.js", "component/plan-execute.core.wasm",
		...Object.values(manifest.exports).flatMap((entry) => (typeof entry === "string" ? entry : Object.values(entry))).map((file) => path.normalize(file)),
		...manifest.pi.extensions.map((file) => path.normalize(file)),
	]) {
		assert.ok(files.includes(file), `${file} is not in the tarball`);
	}
	assert.deepEqual(files.filter((file) => /^(test|scripts|node_modules|bench)/.test(file)), []);
	assert.deepEqual(fs.readdirSync(path.join(dir, "node_modules")).filter((name) => !name.startsWith(".")), [manifest.name]);
	fs.writeFileSync(path.join(dir, "load.mjs"), `
		import plugin, { apply, inject, name } from "${manifest.name}";
		import extension from "${manifest.name}/extension";
		const tools = [];
		extension({ on() {}, registerTool: (tool) => tools.push(tool.name) });
		console.log(JSON.stringify({ same: plugin.apply === apply && plugin.inject === inject, name, tools }));
	`);
	assert.deepEqual(JSON.parse(run(process.execPath, ["load.mjs"], dir)), {
		same: true, name: "plan-execute", tools: ["plan_create", "plan_advance", "plan_get"],
	});
});

test("Pi finds the extension through the manifest", async (t) => {
	const { dir } = installed(t);
	const agentDir = folder(t);
	const settingsManager = SettingsManager.inMemory({ packages: [path.join(dir, "node_modules", manifest.name)] });
	const { extensions } = await new DefaultPackageManager({ cwd: folder(t), agentDir, settingsManager }).resolve();
	assert.deepEqual(extensions.filter((found) => found.enabled).map((found) => path.basename(found.path)), ["extension.js"]);
});

test("nothing is needed at run time, and what hosts provide is optional", () => {
	assert.equal(manifest.dependencies, undefined);
	for (const name of Object.keys(manifest.peerDependencies)) assert.equal(manifest.peerDependenciesMeta[name].optional, true);
	assert.ok(manifest.keywords.includes("pi-package"));
	for (const version of Object.values(manifest.devDependencies)) assert.match(version, /^\d+\.\d+\.\d+$/);
	const lock = fs.readFileSync(path.join(root, "package-lock.json"), "utf8");
	assert.ok(!lock.includes('"resolved"'), "the lock file names a registry");
});
