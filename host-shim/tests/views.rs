//! What `show`, `log` and `tools` print, for people and as JSON.
//!
//! The snapshots hold every fixture at three widths. After a change, `cargo insta review` shows what became different.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, unreachable_pub, reason = "other tests use the rest of it")]
#[path = "../../tests/src/wat_plugin.rs"]
mod wat_plugin;

use assert_cmd::Command;
use serde_json::{Value, json};
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};
use wat_plugin::WatPlugin;
#[cfg(target_os = "linux")]
use wat_plugin::{FREE, TOOL, text};

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
        // As JSON it is still the same value.
        let seen = on_a_terminal(folder.path(), &format!("{arguments} --json"), &[]);
        assert!(!seen.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{command}: {seen:?}");
        let value: Value = serde_json::from_str(&seen).unwrap();
        let plan = if command == "show" { &value["plan"] } else { &value[0]["plan"] };
        assert_eq!(plan["title"], title, "{command}");
    }
    let seen = on_a_terminal(folder.path(), "call plan_get --session s.jsonl", &[]);
    assert!(!seen.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{seen:?}");
    let mut pipe = Command::cargo_bin("plan-execute").unwrap();
    let output = pipe.args(["call", "plan_get", "--session", "s.jsonl"]).current_dir(folder.path()).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains('\u{202e}'), "a pipe gets the bytes");
}

/// What of a text would act on a terminal.
#[cfg(target_os = "linux")]
const ACTING: [char; 4] = ['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}'];

/// A text that would act on a terminal, and how it is shown there.
#[cfg(target_os = "linux")]
const ESCAPE: (&str, &str) = ("\u{1b}[2J\u{9b}31m\u{202e}\u{7}", "\\u{1b}[2J\\u{9b}31m\\u{202e}\\u{7}");

/// A strange plugin cannot act on the terminal, whatever text it hands out. A pipe gets the bytes.
#[cfg(target_os = "linux")]
#[test]
fn text_of_a_strange_plugin_is_shown() {
    let (escape, shown) = ESCAPE;
    let definitions = format!("(data (i32.const {FREE}) \"{}\")", text(escape));
    let at = |place: u32| {
        let len = escape.len();
        format!(
            "(i32.store (i32.const {place}) (i32.const {FREE})) (i32.store (i32.const {}) (i32.const {len}))",
            place + 4
        )
    };
    let end = "(call $drop (local.get $branch))";
    let answer = format!(
        "{end} (i32.store8 (i32.const 2048) (i32.const 0)) {} {} (return (i32.const 2048))",
        at(2052),
        at(2060)
    );
    let refusal = format!(
        "{end} (i32.store8 (i32.const 2048) (i32.const 1)) {} {} (i32.store8 (i32.const 2068) (i32.const 1)) {}
         (return (i32.const 2048))",
        at(2052),
        at(2060),
        at(2072)
    );
    let configure = format!("(i32.store8 (i32.const 1280) (i32.const 1)) {} (return (i32.const 1280))", at(1284));
    let plugin = || WatPlugin { definitions: definitions.clone(), ..WatPlugin::default() };
    let call = "call run --session s.jsonl --create";
    // What is printed holds the text as it is, or, where it stands in a layout of lines or in a debugging form, only made visible.
    for (name, plugin, command, status, bytes) in [
        ("result", WatPlugin { call_tool: answer, ..plugin() }, call, 0, true),
        ("refusal", WatPlugin { call_tool: refusal, ..plugin() }, call, 1, true),
        ("configure", WatPlugin { configure, ..plugin() }, call, 3, true),
        ("description", WatPlugin { list_tools_end: at(TOOL + 16), ..plugin() }, "tools", 0, false),
        ("description in JSON", WatPlugin { list_tools_end: at(TOOL + 16), ..plugin() }, "tools --json", 0, true),
        ("tool name", WatPlugin { list_tools_end: at(TOOL), ..plugin() }, "tools", 3, false),
        ("name", WatPlugin { name: Some(escape), ..plugin() }, "tools", 3, false),
        ("custom type", WatPlugin { custom_type: Some(escape), ..plugin() }, "tools", 3, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("strange.wasm"), plugin.build()).unwrap();
        let arguments = format!("{command} --component strange.wasm");
        let seen = on_a_terminal(folder.path(), &arguments, &[("NO_COLOR", "1")]);
        assert!(!seen.contains(ACTING), "{name}: {seen:?}");
        // JSON and debugging forms have escapes of their own.
        assert!(seen.contains(shown) || seen.contains("[2J") && seen.contains("31m"), "{name}: {seen:?}");
        let mut pipe = Command::cargo_bin("plan-execute").unwrap();
        let output = pipe.args(arguments.split(' ')).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{name}: {output:?}");
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        // JSON leaves this one as it is, and no other form that makes anything visible does.
        assert_eq!(printed.contains('\u{202e}'), bytes, "{name}: {printed:?}");
    }
}

/// The sentence about a plugin stays one line on a terminal, so that none can add a line that looks like ours.
#[cfg(target_os = "linux")]
#[test]
fn an_error_is_one_line_on_a_terminal() {
    let words = "no\nerror: the disk is full\r\n";
    let configure = format!(
        "(i32.store8 (i32.const 1280) (i32.const 1)) (i32.store (i32.const 1284) (i32.const {FREE}))
         (i32.store (i32.const 1288) (i32.const {})) (return (i32.const 1280))",
        words.len()
    );
    let definitions = format!("(data (i32.const {FREE}) \"{}\")", text(words));
    let folder = tempfile::tempdir().unwrap();
    let plugin = WatPlugin { definitions, configure, ..WatPlugin::default() };
    fs::write(folder.path().join("strange.wasm"), plugin.build()).unwrap();
    let call = "call run --session s.jsonl --create --component strange.wasm";
    let seen = on_a_terminal(folder.path(), call, &[]);
    assert_eq!(seen.trim_end().lines().count(), 1, "{seen:?}");
    assert!(seen.contains("no\\nerror: the disk is full\\u{d}\\n"), "{seen:?}");
}

/// A plugin may say anything of its plans: numbers that do not fit together, steps without a place.
#[test]
fn plans_that_cannot_be_are_shown_all_the_same() {
    // One step of number 0, whose status is what the newest entry holds; 4,294,967,295 steps of 1 are done.
    let plans = r#"
      (func $step (param $status i32)
        (i32.store (i32.const 41000) (i32.const 0))
        (i32.store (i32.const 41004) (i32.const 256)) (i32.store (i32.const 41008) (i32.const 3))
        (i32.store8 (i32.const 41012) (local.get $status)) (i32.store8 (i32.const 41016) (i32.const 0)))
      (func $plan (param $at i32)
        (i32.store (local.get $at) (i32.const 256)) (i32.store offset=4 (local.get $at) (i32.const 3))
        (i32.store offset=8 (local.get $at) (i32.const 41000)) (i32.store offset=12 (local.get $at) (i32.const 1)))
      (func (export "plan-execute:plugin/plans@0.1.0#create") (param i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
      (func (export "plan-execute:plugin/plans@0.1.0#advance") (param i32 i32 i32) (result i32) unreachable)
      (func (export "plan-execute:plugin/plans@0.1.0#get") (param $branch i32) (result i32)
        (call $latest (local.get $branch) (i32.const 512) (i32.const 23) (i32.const 8192))
        (call $step (i32.sub (i32.load8_u (i32.load (i32.const 8236))) (i32.const 48)))
        (call $drop (local.get $branch))
        (i32.store8 (i32.const 40000) (i32.const 0))
        (call $plan (i32.const 40004))
        (i32.const 40000))
      (func (export "plan-execute:plugin/plans@0.1.0#overview") (param $branch i32) (result i32)
        (call $step (i32.const 0))
        (call $drop (local.get $branch))
        (i32.store8 (i32.const 40000) (i32.const 0))
        (i32.store8 (i32.const 40004) (i32.const 1))
        (call $plan (i32.const 40008))
        (i32.store (i32.const 40048) (i32.const -1)) (i32.store (i32.const 40052) (i32.const 1))
        (i32.const 40000))"#;
    let plugin = WatPlugin {
        definitions: plans.into(),
        custom_type: Some("pi-harness/plan-execute"),
        wit: Some("package test:extra; world extra { include plan-execute:plugin/plan-execute@0.1.0; }"),
        ..WatPlugin::default()
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("strange.wasm"), plugin.build()).unwrap();
    let entry = |data: u32, id: &str, parent: Value| {
        json!({"type": "custom", "customType": "pi-harness/plan-execute", "data": data, "id": id, "parentId": parent,
            "timestamp": "2026-01-02T03:04:05.006Z"})
        .to_string()
    };
    let header =
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05.006Z", "cwd": "/"});
    let lines = [header.to_string(), entry(0, "0a0a0a0a", Value::Null), entry(1, "0b0b0b0b", json!("0a0a0a0a"))];
    fs::write(folder.path().join("s.jsonl"), lines.map(|line| line + "\n").concat()).unwrap();
    for (command, words) in [("show", "4294967295 of 1 done"), ("log", "step 0: pending -> in_progress: run")] {
        let mut program = Command::cargo_bin("plan-execute").unwrap();
        let program = program.args([command, "--session", "s.jsonl", "--component", "strange.wasm"]);
        let output = program.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains(words), "{command}: {printed}");
    }
}
