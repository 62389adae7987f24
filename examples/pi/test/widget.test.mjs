import assert from "node:assert/strict";
import { test } from "node:test";
import { PlanComponent } from "../src/component.js";
import { Branch } from "../src/journal.js";
import { visible, widgetLines } from "../src/widget.js";
import { SessionManager, TYPE } from "./support.mjs";

/** The lines for a plan, given as one letter for each step and the steps that it waits for. */
function linesOf(letters, dependsOn = {}, title = "Plan") {
	const status = { p: "pending", i: "in_progress", d: "done", s: "skipped" };
	const steps = Array.from(letters, (letter, i) => ({
		id: i + 1, title: `Step ${i + 1}`, status: status[letter], ...(dependsOn[i + 1] && { dependsOn: dependsOn[i + 1] }),
	}));
	const manager = SessionManager.inMemory();
	manager.appendCustomEntry(TYPE, { title, steps });
	return widgetLines(new PlanComponent().overview(new Branch(() => manager, () => undefined)));
}

for (const [letters, dependsOn, expected] of [
	["p", {}, ["Plan: Plan (0 of 1 done)", "[ ] 1 Step 1"]],
	["d", {}, ["Plan: Plan (1 of 1 done)"]],
	["ds", {}, ["Plan: Plan (1 of 2 done, 1 skipped)"]],
	["dip", { 3: [2] }, ["Plan: Plan (1 of 3 done)", "[>] 2 Step 2", "    1 waiting for others"]],
	["pip", {}, ["Plan: Plan (0 of 3 done)", "[>] 2 Step 2", "[ ] 1 Step 1", "[ ] 3 Step 3"]],
	["p".repeat(8), { 8: [1] }, [
		"Plan: Plan (0 of 8 done)", ...[1, 2, 3, 4, 5, 6].map((id) => `[ ] ${id} Step ${id}`),
		"    1 more in progress or ready, 1 waiting for others",
	]],
]) {
	test(`the widget of ${letters}`, () => assert.deepEqual(linesOf(letters, dependsOn), expected));
}

test("a plan of 50 long steps fits into Pi's ten lines", () => {
	const lines = linesOf("i".repeat(20) + "p".repeat(30), {}, "x".repeat(500));
	assert.ok(lines.length <= 8);
	for (const line of lines) assert.ok(line.length < 140, line);
});

test("no plan, no widget", () => {
	const manager = SessionManager.inMemory();
	assert.equal(widgetLines(new PlanComponent().overview(new Branch(() => manager, () => undefined))), undefined);
});

test("control characters are made visible", () => {
	for (const [text, shown] of [
		["plain Ünï 😀", "plain Ünï 😀"],
		["\u001b[2J\r\n\t", "\\u{1b}[2J\\u{d}\\u{a}\\u{9}"],
		["\u009b1m\u007f\u202e\u2066\u200f\u061c\u2028", "\\u{9b}1m\\u{7f}\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{2028}"],
		["x".repeat(100), "x".repeat(100)],
		["😀".repeat(101), `${"😀".repeat(99)}…`],
	]) {
		assert.equal(visible(text), shown);
	}
});
