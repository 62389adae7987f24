// `plan_get` by the same rules in plain JavaScript on the real SessionManager: prints microseconds per call as JSON.
//
// Arguments: session files.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { loadPackage, restorePlan } from "./check.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { SessionManager } = await loadPackage(path.join(here, "node_modules/@earendil-works/pi-coding-agent"));

const result = {};
for (const file of process.argv.slice(2)) {
	const manager = SessionManager.open(file);
	const get = () => {
		const found = restorePlan(manager.getBranch());
		if (found.result !== "plan") throw new Error(found.result);
		return JSON.stringify(found.plan);
	};
	const until = (ms) => {
		let calls = 0;
		const start = performance.now();
		while (performance.now() - start < ms || calls < 3) {
			get();
			calls += 1;
		}
		return ((performance.now() - start) * 1000) / calls;
	};
	until(300);
	const runs = Array.from({ length: 7 }, () => until(300)).sort((a, b) => a - b);
	result[path.basename(file, ".jsonl")] = runs[3];
}
console.log(JSON.stringify(result));
