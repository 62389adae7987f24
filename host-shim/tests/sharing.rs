//! Eight processes advance one plan at once, each a step of its own, on every kind of session that processes share.
//!
//! `PLAN_EXECUTE_ROUNDS` says how many calls each of them makes.

#![cfg(all(feature = "mcp", feature = "sql"))]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
};

const PROCESSES: usize = 8;

fn rounds() -> usize {
    env::var("PLAN_EXECUTE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200)
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plan-execute"))
}

/// What a command prints, which must succeed.
fn output(arguments: &[&str]) -> String {
    let output = command().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Advances a step to and fro through one server. Returns the statuses that were saved, in order.
fn advance(session: &str, step: usize) -> Vec<String> {
    let mut server =
        command().args(["mcp", "--session", session]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
    let mut ask = |method: &str, params: Value| -> Value {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let client = json!({ "name": "test", "version": "1" });
    ask("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
    let mut saved = Vec::new();
    for round in 0..rounds() {
        let status = ["done", "skipped", "in_progress", "pending"][round % 4];
        let arguments = json!({ "step": step, "status": status });
        let answer = ask("tools/call", json!({ "name": "plan_advance", "arguments": arguments }));
        let result = &answer["result"];
        if result["isError"] == json!(false) {
            assert_eq!(result["structuredContent"]["steps"][step - 1]["status"], status, "{answer}");
            saved.push(status.to_owned());
        } else {
            assert_eq!(result["_meta"]["plan-execute/code"], "branch-changed", "{answer}");
        }
    }
    drop(input);
    assert!(server.wait().unwrap().success());
    saved
}

/// Every success must be in the journal, once, in one chain, and nothing else.
fn share(session: &str) {
    let steps: Vec<String> = (1..=PROCESSES).map(|step| format!("Step {step}")).collect();
    let plan = json!({ "title": "Shared", "steps": steps }).to_string();
    output(&["call", "plan_create", &plan, "--session", session, "--create"]);
    let saved: Vec<Vec<String>> = thread::scope(|scope| {
        let processes: Vec<_> = (1..=PROCESSES).map(|step| scope.spawn(move || advance(session, step))).collect();
        processes.into_iter().map(|process| process.join().unwrap()).collect()
    });
    let log: Vec<Value> = serde_json::from_str(&output(&["log", "--json", "--session", session])).unwrap();
    assert_eq!(log.len(), 1 + saved.iter().map(Vec::len).sum::<usize>());
    let mut found = vec![Vec::new(); PROCESSES];
    for pair in log.windows(2) {
        let status =
            |revision: &Value, step: usize| revision["plan"]["steps"][step]["status"].as_str().unwrap().to_owned();
        // Each revision changes one step of the one before, or repeats the status that its process set last.
        for (step, found) in found.iter_mut().enumerate() {
            if status(&pair[0], step) != status(&pair[1], step) {
                found.push(status(&pair[1], step));
            }
        }
    }
    for (found, mut saved) in found.into_iter().zip(saved) {
        // A refusal in between can make a process set the same status twice.
        saved.dedup();
        if saved.first().is_some_and(|status| status == "pending") {
            saved.remove(0);
        }
        assert_eq!(found, saved);
    }
}

#[test]
fn session_files() {
    let folder = tempfile::tempdir().unwrap();
    share(folder.path().join("s.jsonl").to_str().unwrap());
}

#[test]
fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    share(&format!("sqlite:{}#shared", folder.path().join("s.db").display()));
}

/// Also where the server lets no transaction wait for another one but ends it, as CockroachDB does.
#[test]
fn postgresql() {
    let Ok(url) = env::var("PLAN_EXECUTE_POSTGRES") else {
        eprintln!("skipped: PLAN_EXECUTE_POSTGRES names no server");
        return;
    };
    share(&format!("{url}#shared-{}", std::process::id()));
    let serializable = format!("{url}?options=-c%20default_transaction_isolation%3Dserializable");
    share(&format!("{serializable}#serializable-{}", std::process::id()));
}
