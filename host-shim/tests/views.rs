//! What `show`, `log` and `tools` print, for people and as JSON.
//!
//! The snapshots hold every fixture at three widths. After a change, `cargo insta review` shows what became different.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use serde_json::{Value, json};
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/pi-session")
}

/// Runs the command in the folder of a fixture, so that no path of this machine is printed.
fn command(fixture: &str, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plan-execute").unwrap();
    command.args(arguments).current_dir(fixtures().join(fixture)).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command
}

fn json_of(fixture: &str, command_name: &str) -> Value {
    let output = command(fixture, &[command_name, "--session", "session.jsonl", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn show_at_three_widths() {
    let index: Vec<Value> = serde_json::from_str(&fs::read_to_string(fixtures().join("index.json")).unwrap()).unwrap();
    for width in ["40", "80", "200"] {
        let mut all = String::new();
        for entry in &index {
            let name = entry["name"].as_str().unwrap();
            let output = command(name, &["show", "--session", "session.jsonl"]).env("COLUMNS", width).output().unwrap();
            writeln!(all, "=== {name}: {}", output.status.code().unwrap()).unwrap();
            all.push_str(&String::from_utf8(output.stderr).unwrap());
            all.push_str(&String::from_utf8(output.stdout).unwrap());
        }
        insta::assert_snapshot!(format!("show_{width}"), all);
    }
}

#[test]
fn the_log_names_every_revision_and_what_it_changed() {
    let output = command("advanced", &["log", "--session", "session.jsonl"]).output().unwrap();
    insta::assert_snapshot!("log", String::from_utf8(output.stdout).unwrap());
    let log = json_of("advanced", "log");
    let changes: Vec<&Value> = log.as_array().unwrap().iter().map(|revision| &revision["change"]).collect();
    assert_eq!(changes, ["created", "advanced", "advanced", "advanced", "advanced"]);
    let keys: Vec<&String> = log[2].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["entry", "timestamp", "change", "steps", "plan", "fault"]);
    assert_eq!(
        log[2]["steps"],
        json!([{"step": 1, "from": "in_progress", "to": "done"}, {"step": 2, "from": "pending", "to": "in_progress"}])
    );
    assert_eq!(log[4]["timestamp"], "2026-01-02T03:04:30.015Z");
    assert_eq!(json_of("no-plan", "log"), json!([]));
    let invalid = json_of("invalid-cycle", "log");
    assert_eq!(
        (&invalid[0]["change"], &invalid[1]["change"], &invalid[1]["plan"]),
        (&json!("created"), &json!("invalid"), &Value::Null)
    );
    assert!(invalid[1]["fault"].as_str().unwrap().contains("circle"));
}

#[test]
fn show_as_json() {
    let shown = json_of("advanced", "show");
    assert_eq!(shown["leaf"], "15538eb5");
    assert_eq!((&shown["revision"], &shown["durability"]), (&json!("a8c94d4a"), &json!("stored")));
    assert_eq!((&shown["completed"], &shown["total"]), (&json!(2), &json!(4)));
    assert_eq!(shown["plan"]["steps"][3]["dependsOn"], json!([2, 3]));
    let none = json_of("no-plan", "show");
    assert_eq!((&none["plan"], &none["digest"]), (&Value::Null, &Value::Null));
}

#[test]
fn tools_for_people_and_programs() {
    let output = command("linear", &["tools"]).output().unwrap();
    insta::assert_snapshot!("tools", String::from_utf8(output.stdout).unwrap());
    let output = command("linear", &["tools", "--json"]).output().unwrap();
    let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 3);
    assert_eq!(tools[1]["inputSchema"]["properties"]["step"]["maximum"], 50);
    assert_eq!(tools[2]["readOnly"], true);
}

#[test]
fn completions_and_the_manual_page() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = command("linear", &["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("plan-execute") && script.contains("session"), "{shell}");
        assert!(!script.contains("compile-component"), "{shell} offers a hidden command");
    }
    let output = command("linear", &["manual"]).output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    for words in [".TH plan-execute 1", "plan\\-execute show", "\\-\\-leaf", "Exit status"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("compile"), "a hidden command is in the manual");
}

#[test]
fn every_command_explains_itself() {
    for name in ["call", "show", "log", "tools", "demo", "completions", "manual"] {
        command("linear", &[name, "--help"]).assert().success();
    }
    for name in ["call", "show", "log", "tools"] {
        let output = command("linear", &[name, "--help"]).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:"), "{name}");
    }
}

/// Runs the command on a terminal, and returns what it wrote there.
#[cfg(target_os = "linux")]
fn on_a_terminal(folder: &Path, arguments: &str, variables: &[(&str, &str)]) -> String {
    let program = assert_cmd::cargo::cargo_bin("plan-execute");
    let mut script = std::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &format!("{} {arguments}", program.display()), "/dev/null"]);
    // Each of these says something about colour of its own.
    for name in ["NO_COLOR", "CI", "CLICOLOR", "CLICOLOR_FORCE"] {
        script.env_remove(name);
    }
    script.current_dir(folder).env("TERM", "xterm-256color").envs(variables.iter().copied());
    let output = script.stdin(std::process::Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn colour_is_for_terminals_that_want_it() {
    let folder = fixtures().join("advanced");
    let show = "show --session session.jsonl";
    assert!(on_a_terminal(&folder, show, &[]).contains("\u{1b}[32m"));
    assert!(!on_a_terminal(&folder, show, &[("NO_COLOR", "1")]).contains('\u{1b}'));
    assert!(!on_a_terminal(&folder, show, &[("TERM", "dumb")]).contains('\u{1b}'));
    let output = command("advanced", &["show", "--session", "session.jsonl"]).output().unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

/// Text of a journal cannot act on the terminal, nor break the layout.
#[cfg(target_os = "linux")]
#[test]
fn control_characters_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let title = "a\u{1b}[31mred\u{9b}0m\u{202e}x\ny";
    let draft = json!({"title": title, "steps": [title]}).to_string();
    let mut make = Command::cargo_bin("plan-execute").unwrap();
    make.args(["call", "plan_create", &draft, "--session", "s.jsonl", "--create"])
        .current_dir(folder.path())
        .assert()
        .success();
    let shown = "a\\u{1b}[31mred\\u{9b}0m\\u{202e}x\\ny";
    for command in ["show", "log"] {
        let arguments = format!("{command} --session s.jsonl");
        let seen = on_a_terminal(folder.path(), &arguments, &[("NO_COLOR", "1")]);
        assert!(seen.contains(shown), "{command}: {seen:?}");
        assert!(!seen.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{command}: {seen:?}");
    }
    let seen = on_a_terminal(folder.path(), "call plan_get --session s.jsonl", &[]);
    assert!(!seen.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{seen:?}");
    let mut pipe = Command::cargo_bin("plan-execute").unwrap();
    let output = pipe.args(["call", "plan_get", "--session", "s.jsonl"]).current_dir(folder.path()).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains('\u{202e}'), "a pipe gets the bytes");
}
