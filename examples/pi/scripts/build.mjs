// Writes component/: the plan component, transpiled for JavaScript by jco.
//
// PLAN_EXECUTE_COMPONENTS names a folder that holds plan-execute.wasm; without it the repository builds the component.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = path.join(root, "component");

/** Runs a program that must succeed. */
function run(program, args, cwd) {
	const done = spawnSync(program, args, { cwd, stdio: "inherit" });
	if (done.error) throw done.error;
	if (done.status !== 0) throw new Error(`${program} ended with ${done.signal ?? done.status}`);
}

/** The folder that holds plan-execute.wasm. */
function components(temporary) {
	const given = process.env.PLAN_EXECUTE_COMPONENTS;
	if (given) return path.resolve(given);
	const args = ["run", "--quiet", "--locked", "--example", "components", "--"];
	run("cargo", [...args, temporary], path.join(root, "../.."));
	return temporary;
}

// jco asks on each step of each call whether JCO_DEBUG is set, which makes a tenth of a call.
function withoutDebugLog(file) {
	const text = fs.readFileSync(file, "utf8");
	const parts = text.split(/const _debugLog = \(\.\.\.args\) => \{[^}]*\}\s*console\.debug\(\.\.\.args\);\s*\};/);
	if (parts.length !== 2) throw new Error("jco writes its debug log in another way now: adapt scripts/build.mjs");
	fs.writeFileSync(file, parts.join("const _debugLog = () => {};"));
}

const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "plan-execute-"));
try {
	const wasm = path.join(components(temporary), "plan-execute.wasm");
	if (!fs.existsSync(wasm)) throw new Error(`${wasm} is missing`);
	// Transpiled beside its place and then renamed, so that a failed build leaves the last one as it is.
	const fresh = path.join(root, "component.new");
	fs.rmSync(fresh, { recursive: true, force: true });
	const jco = path.join(root, "node_modules/@bytecodealliance/jco/dist/jco.js");
	run(process.execPath, [
		jco, "transpile", wasm, "--out-dir", fresh, "--instantiation", "sync", "--no-nodejs-compat", "--quiet",
		// The guest's own answers are taken for well-formed, and a refusal is thrown as it is: a thrown Error is a trap.
		"--valid-lifting-optimization", "--no-component-error-wrapping",
	]);
	withoutDebugLog(path.join(fresh, "plan-execute.js"));
	fs.rmSync(out, { recursive: true, force: true });
	fs.renameSync(fresh, out);
} finally {
	fs.rmSync(temporary, { recursive: true, force: true });
}
