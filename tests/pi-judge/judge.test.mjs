// The real Pi, in two versions, judges and continues session files of ours, and we read on.
//
// The program under test is the built command: PLAN_EXECUTE, or the debug build of this repository.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PLAN_TYPE, inspect, loadPackage } from "./check.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const program = process.env.PLAN_EXECUTE ?? path.join(here, "../../target/debug/plan-execute");
const fixtures = path.join(here, "../fixtures/pi-session");

const packages = [];
for (const name of ["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"]) {
	packages.push(await loadPackage(path.join(here, "node_modules", name)));
}
const [current, old] = packages;

/** Runs the command; returns the exit status and both outputs. */
function run(...args) {
	const done = spawnSync(program, args, { encoding: "utf8" });
	assert.equal(done.error, undefined);
	return done;
}

/** Calls a tool that must succeed; returns the plan. */
function call(file, tool, args = {}, ...options) {
	const done = run("call", tool, JSON.stringify(args), "--session", file, ...options);
	assert.equal(done.status, 0, done.stderr);
	return JSON.parse(done.stdout);
}

/** What `show` says of a session. */
function show(file, ...options) {
	const done = run("show", "--json", "--session", file, ...options);
	assert.equal(done.status, 0, done.stderr);
	return JSON.parse(done.stdout);
}

function folder(t) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), "pi-judge-"));
	t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
	return dir;
}

const draft = {
	title: "Ünïcode \u2028 😀 \u0001",
	steps: ["First", "Second", "Third"],
	dependencies: [{ step: 2, dependsOn: [1] }, { step: 3, dependsOn: [] }],
};

/** A session that we made: a plan and two changes. */
function made(t) {
	const file = path.join(folder(t), "session.jsonl");
	call(file, "plan_create", draft, "--create");
	call(file, "plan_advance", { step: 1, status: "done" });
	call(file, "plan_advance", { step: 2, status: "in_progress" });
	return file;
}

const user = (text) => ({ role: "user", content: text, timestamp: 1767323045000 });
const assistant = (text) => ({
	role: "assistant",
	content: [{ type: "text", text }],
	api: "demo-api",
	provider: "demo",
	model: "demo-1",
	usage: {
		input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2,
		cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
	},
	stopReason: "stop",
	timestamp: 1767323045000,
});
const piPlan = (title) => ({ title, steps: [{ id: 1, title: "Pi's", status: "pending" }, { id: 2, title: "Too", status: "done" }] });

/** A session that Pi made: messages, a plan, an answer. */
function piMade(t, { SessionManager }) {
	const manager = SessionManager.create("/srv/demo", folder(t));
	manager.appendMessage(user("Plan, please."));
	manager.appendMessage(assistant("Planning."));
	manager.appendCustomEntry(PLAN_TYPE, piPlan("By Pi"));
	manager.appendMessage(assistant("Planned."));
	return manager;
}

/** Pi opens the file: nothing to remark, the branch that we stand on, the plan that we see. */
function agrees({ SessionManager }, file, { lint = true } = {}) {
	const report = inspect(SessionManager, file);
	assert.equal(report.opened, true, report.error);
	if (lint) {
		assert.deepEqual(report.lint, []);
		assert.equal(report.openWouldChangeFile, false);
	}
	const ours = show(file);
	assert.equal(report.sessionId, ours.session);
	assert.equal(report.leafId, ours.leaf);
	assert.deepEqual(report.plan.plan, ours.plan ?? undefined);
	assert.equal(report.plan.entryId, ours.revision ?? undefined);
	assert.deepEqual(call(file, "plan_get"), ours.plan);
	const log = JSON.parse(run("log", "--json", "--session", file).stdout);
	const isPlan = (entry) => entry?.type === "custom" && entry.customType === PLAN_TYPE;
	const plans = report.entries.filter((entry) => isPlan(entry) && report.branch.includes(entry.id));
	assert.deepEqual([...new Set(log.map((revision) => revision.entry))], [...new Set(plans.map((entry) => entry.id))]);
	return report;
}

for (const pi of packages) {
	test(`${pi.version}: a file that we made is opened`, (t) => {
		const report = agrees(pi, made(t));
		assert.equal(report.entryCount, 3);
	});

	test(`${pi.version}: a file that Pi made is continued by us`, (t) => {
		const manager = piMade(t, pi);
		const file = manager.getSessionFile();
		agrees(pi, file);
		call(file, "plan_advance", { step: 1, status: "done" });
		const report = agrees(pi, file);
		assert.equal(report.branch.length, 5);
		call(file, "plan_create", draft);
		agrees(pi, file);
	});

	test(`${pi.version}: what we continued is continued by Pi, and read by us again`, (t) => {
		const file = piMade(t, pi).getSessionFile();
		call(file, "plan_advance", { step: 1, status: "done" });
		const manager = pi.SessionManager.open(file);
		manager.appendMessage(user("Go on."));
		assert.equal(show(file).plan.steps[0].status, "done");
		manager.appendCustomEntry(PLAN_TYPE, piPlan("Pi again"));
		manager.appendLabelChange(manager.getLeafId(), "here");
		manager.appendSessionInfo("A name");
		assert.equal(call(file, "plan_get").title, "Pi again");
		call(file, "plan_advance", { step: 1, status: "skipped" });
		agrees(pi, file);
	});

	test(`${pi.version}: Pi branches, and both branches are read`, (t) => {
		const file = piMade(t, pi).getSessionFile();
		call(file, "plan_create", draft);
		const left = show(file).leaf;
		const manager = pi.SessionManager.open(file);
		const branch = manager.getBranch();
		manager.branch(branch[1].id);
		manager.appendMessage(user("The other way."));
		assert.equal(run("call", "plan_get", "--session", file).status, 1);
		manager.appendCustomEntry(PLAN_TYPE, piPlan("Right"));
		assert.equal(call(file, "plan_get").title, "Right");
		assert.equal(call(file, "plan_get", {}, "--leaf", left).title, draft.title);
		call(file, "plan_advance", { step: 1, status: "done" }, "--leaf", left);
		agrees(pi, file);
		assert.equal(show(file).plan.title, draft.title);
		const other = inspect(pi.SessionManager, file, { leaf: manager.getLeafId() });
		assert.equal(other.plan.plan.title, "Right");
	});

	test(`${pi.version}: a compaction takes no plan away`, (t) => {
		const file = piMade(t, pi).getSessionFile();
		call(file, "plan_create", draft);
		const plan = call(file, "plan_advance", { step: 1, status: "done" });
		const manager = pi.SessionManager.open(file);
		const kept = manager.appendMessage(user("Much later."));
		manager.appendCompaction("What happened so far.", kept, 1000);
		manager.appendMessage(assistant("Going on."));
		assert.deepEqual(call(file, "plan_get"), plan);
		call(file, "plan_advance", { step: 2, status: "done" });
		agrees(pi, file);
	});

	test(`${pi.version}: forks keep the plan, and go their own way`, (t) => {
		const file = piMade(t, pi).getSessionFile();
		call(file, "plan_create", draft);
		const before = fs.readFileSync(file);
		const manager = pi.SessionManager.open(file);
		const branched = manager.createBranchedSession(manager.getLeafId()) ?? manager.getSessionFile();
		const copied = pi.SessionManager.forkFrom(file, "/srv/other", folder(t)).getSessionFile();
		for (const fork of [branched, copied]) {
			assert.notEqual(fork, file);
			assert.notEqual(show(fork).session, show(file).session);
			assert.equal(show(fork).revision, show(file).revision);
			call(fork, "plan_advance", { step: 1, status: "done" });
			agrees(pi, fork);
		}
		assert.deepEqual(fs.readFileSync(file), before);
		assert.equal(call(file, "plan_get").steps[0].status, "pending");
	});

	test(`${pi.version}: a file that we alone made is continued by Pi`, (t) => {
		const file = made(t);
		const plan = call(file, "plan_get");
		const manager = pi.SessionManager.open(file);
		manager.appendMessage(user("Go on."));
		manager.appendMessage(assistant("Going on."));
		assert.deepEqual(call(file, "plan_get"), plan);
		call(file, "plan_advance", { step: 2, status: "done" });
		// The old version writes everything a second time after its first answer, which lint remarks.
		agrees(pi, file, { lint: pi === current });
	});
}

test("every fixture that we can continue is one that Pi opens as we do", (t) => {
	let continued = 0;
	for (const { name, opened } of JSON.parse(fs.readFileSync(path.join(fixtures, "index.json"), "utf8"))) {
		const file = path.join(folder(t), "session.jsonl");
		fs.copyFileSync(path.join(fixtures, name, "session.jsonl"), file);
		const before = fs.readFileSync(file);
		const done = run("call", "plan_create", JSON.stringify(draft), "--session", file);
		if (done.status !== 0) {
			assert.deepEqual(fs.readFileSync(file), before, name);
			continue;
		}
		assert.equal(opened, true, name);
		continued += 1;
		agrees(current, file, { lint: false });
	}
	assert.ok(continued > 45, `${continued} were continued`);
});

test("what only looks like a plan is none", (t) => {
	const manager = piMade(t, current);
	manager.appendCustomMessageEntry(PLAN_TYPE, "A message of the same type.", true);
	manager.appendCustomEntry(`${PLAN_TYPE}/x`, piPlan("Another type"));
	assert.equal(call(manager.getSessionFile(), "plan_get").title, "By Pi");
	agrees(old, manager.getSessionFile());
});
