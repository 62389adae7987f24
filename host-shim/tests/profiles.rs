//! The built program with profiles of several plugins, and what it says of components.

#![cfg(feature = "profiles")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../tests/src/wat_plugin.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is shared with the conformance tests")]
mod wat_plugin;

use assert_cmd::Command;
use plan_execute_host::{components, inspect::sha256};
use serde_json::{Value, json};
use std::{fs, path::Path};
use wat_plugin::WatPlugin;

struct Place(tempfile::TempDir);

/// What a run left: exit status, standard output, standard error.
type Done = (i32, String, String);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Done {
        let mut command = Command::cargo_bin("plan-execute").unwrap();
        command.args(arguments).current_dir(self.0.path()).write_stdin(input);
        command.env_remove("COLUMNS").env_remove("NO_COLOR");
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// A place with a profile of three plugins, of which the middle one is pinned and the last one is not.
    fn with_three() -> Place {
        let place = Place::new();
        let pinned = WatPlugin { tool: Some("note"), call_tool: APPEND.into(), ..WatPlugin::default() }.build();
        place.write("profile/plugins/note.wasm", &pinned);
        place.write("profile/other.wasm", WatPlugin { tool: Some("other"), ..WatPlugin::default() }.build());
        place.write(
            "profile/p.yaml",
            format!(
                "- id: plan\n  name: \"@pi-harness/plugin-plan-execute\"\n  config: {{}}\n- id: notes\n  name: plugins/note.wasm\n  \
                 sha256: {}\n  grants: [demo/type]\n  limits: {{memory: 24 MiB}}\n- id: other\n  name: other.wasm\n",
                sha256(&pinned)
            ),
        );
        place
    }
}

const APPEND: &str = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))";
const DRAFT: &str = r#"{"title":"T","steps":["a","b"]}"#;
const PROFILE: [&str; 2] = ["--profile", "profile/p.yaml"];

#[test]
fn a_tool_is_found_among_all_plugins() {
    let place = Place::with_three();
    let call = |tool: &str, arguments: &str| {
        place.run(&[&["call", tool, arguments, "--session", "s.jsonl", "--create"][..], &PROFILE].concat())
    };
    let made = call("plan_create", DRAFT);
    assert_eq!((made.0, made.2.as_str()), (0, ""));
    for tool in ["note", "other"] {
        assert_eq!(call(tool, "{}"), (0, "{}\n".into(), String::new()));
    }
    assert_eq!(call("plan_get", "{}"), (0, made.1, String::new()));
    let session = fs::read_to_string(place.0.path().join("s.jsonl")).unwrap();
    let types: Vec<Value> = session.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let types: Vec<&Value> = types.iter().filter_map(|entry| entry.get("customType")).collect();
    assert_eq!(types, ["pi-harness/plan-execute", "demo/type"]);
    let (status, out, err) = call("plan_delete", "{}");
    assert_eq!((status, out.as_str()), (1, ""));
    let error: Value = serde_json::from_str(&err).unwrap();
    assert_eq!(error["error"]["code"], "unknown-tool");
    assert_eq!(
        error["error"]["message"],
        "There is no tool \"plan_delete\": there are plan_create, plan_advance, plan_get, note, other."
    );
}

#[test]
fn the_tools_of_each_plugin() {
    let place = Place::with_three();
    let (status, out, err) = place.run(&[&["tools"][..], &PROFILE].concat());
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!("tools_of_a_profile", out);
    let (_, out, _) = place.run(&[&["tools", "--json"][..], &PROFILE].concat());
    let tools: Vec<Value> = serde_json::from_str(&out).unwrap();
    let found: Vec<(&str, &str)> =
        tools.iter().map(|tool| (tool["plugin"].as_str().unwrap(), tool["name"].as_str().unwrap())).collect();
    assert_eq!(
        found,
        [
            ("plan", "plan_create"),
            ("plan", "plan_advance"),
            ("plan", "plan_get"),
            ("notes", "note"),
            ("other", "other")
        ]
    );
    // What a component alone has is shown as ever.
    let (_, out, _) = place.run(&["tools", "--json"]);
    assert!(serde_json::from_str::<Vec<Value>>(&out).unwrap().iter().all(|tool| tool.get("plugin").is_none()));
}

/// Requests one after another, in lines; the answers by id, and the notifications.
fn mcp(place: &Place, requests: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut input = format!("{initialize}\n{initialized}\n");
    for (id, request) in requests.iter().enumerate() {
        let request = json!({"jsonrpc": "2.0", "id": id + 1, "method": request[0], "params": request[1]});
        input.push_str(&format!("{request}\n"));
    }
    let arguments = [&["mcp", "--session", "s.jsonl", "--create"][..], &PROFILE].concat();
    let (status, out, err) = place.run_with(&arguments, &input);
    assert_eq!((status, err.as_str()), (0, ""));
    let messages = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut answers, notifications): (Vec<Value>, Vec<Value>) =
        messages.partition(|message| message.get("id").is_some());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), requests.len() + 1, "{out}");
    (answers, notifications)
}

#[test]
fn a_server_with_the_tools_of_all_plugins() {
    let place = Place::with_three();
    let call = |name: &str, arguments: &str| json!(["tools/call", {"name": name, "arguments": serde_json::from_str::<Value>(arguments).unwrap()}]);
    let (answers, notifications) = mcp(
        &place,
        &[
            json!(["tools/list", {}]),
            json!(["resources/list", {}]),
            json!(["resources/subscribe", {"uri": "plan-execute://plan"}]),
            call("plan_create", DRAFT),
            call("note", "{}"),
            call("other", "{}"),
            call("plan_get", "{}"),
            call("none", "{}"),
        ],
    );
    let result = |id: usize| &answers[id]["result"];
    assert_eq!(result(0)["serverInfo"]["name"], "plan-execute");
    let names: Vec<&Value> = result(1)["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["plan_create", "plan_advance", "plan_get", "note", "other"]);
    assert_eq!(result(2)["resources"].as_array().unwrap().len(), 1, "one plugin keeps plans");
    for (id, text) in [(5, "{}"), (6, "{}")] {
        assert_eq!(result(id)["content"][0]["text"], text, "{}", answers[id]);
    }
    assert_eq!(result(4)["structuredContent"]["title"], "T");
    assert_eq!(result(7), result(4));
    assert_eq!(answers[8]["error"]["code"], -32602);
    assert!(answers[8]["error"]["message"].as_str().unwrap().contains("plan_get, note, other"));
    assert!(notifications.len() <= 1, "a note is no plan: {notifications:?}");
}

#[test]
fn a_server_whose_plugins_keep_no_plans() {
    let place = Place::with_three();
    place.write("profile/p.yaml", "- id: other\n  name: other.wasm\n");
    let (answers, _) = mcp(&place, &[json!(["tools/list", {}]), json!(["resources/list", {}])]);
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "wat-plugin");
    assert_eq!(answers[0]["result"]["capabilities"].as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    assert_eq!(answers[1]["result"]["tools"][0]["name"], "other");
}

#[test]
fn a_wrong_profile_is_one_sentence_and_writes_nothing() {
    let place = Place::with_three();
    let commands = [
        &["call", "plan_create", DRAFT, "--session", "s.jsonl", "--create"][..],
        &["mcp", "--session", "s.jsonl", "--create"],
        &["tools"],
    ];
    let both =
        "profile/p.yaml:3: the entries \"a\" (line 1) and \"b\" both have a tool plan_create: leave one of them out";
    let zeros = "0".repeat(64);
    for (profile, words) in [
        ("- id: a\n  nmae: b\n", "profile/p.yaml:2: there is no key \"nmae\" here"),
        ("- {id: a, name: plan-execute}\n\n- {id: b, name: plan-execute}\n", both),
        (
            "- {id: a, name: plan-execute}\n\n- {id: a, name: other.wasm}\n",
            "profile/p.yaml:3: the id \"a\" stands in line 1",
        ),
        (
            &format!("- id: a\n  name: other.wasm\n  sha256: {zeros}\n"),
            "profile/p.yaml:3: \"other.wasm\" was not loaded: the component has the SHA-256",
        ),
        ("- id: a\n  name: none.wasm\n", "profile/p.yaml:2: \"none.wasm\" is neither"),
        (
            "- id: a\n  name: plan-execute\n  grants: [demo/type]\n",
            "profile/p.yaml:3: the plugin plan-execute does not declare",
        ),
        ("- id: a\n  name: plan-execute\n  limits: {compute: 5}\n", "profile/p.yaml:3: \"5\" is no time"),
        (
            "- id: a\n  name: plan-execute\n  limits: {tools: 2}\n",
            "profile/p.yaml:2: \"plan-execute\" was not loaded: the plugin plan-execute reached a limit: the tools of one plugin (2)",
        ),
    ] {
        place.write("profile/p.yaml", profile);
        for command in commands {
            let (status, out, err) = place.run(&[command, &PROFILE].concat());
            assert_eq!((status, out.as_str()), (3, ""), "{command:?} {err}");
            assert!(
                err.starts_with("error: ") && err.lines().count() == 1 && err.contains(words),
                "{err:?} lacks {words:?}"
            );
        }
    }
    // A configuration is looked at where the plugin is attached.
    place.write("profile/p.yaml", "- id: a\n  name: plan-execute\n  config: {colour: red}\n");
    for command in &commands[..2] {
        let (status, out, err) = place.run(&[command, &PROFILE[..]].concat());
        assert_eq!((status, out.as_str()), (3, ""), "{err}");
        assert!(err.contains("profile/p.yaml:3: ") && err.contains("config keys: colour"), "{err}");
    }
    for command in commands {
        let (status, out, err) = place.run(&[command, &PROFILE, &["--component", "profile/other.wasm"]].concat());
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        let (status, _, err) = place.run(&[command, &["--profile", "none.yaml"]].concat());
        assert_eq!(status, 3);
        assert!(err.starts_with("error: none.yaml: the profile cannot be read ("), "{err}");
    }
    assert!(!place.0.path().join("s.jsonl").exists());
}

#[test]
fn a_component_is_looked_at_before_it_is_used() {
    let place = Place::new();
    let good = WatPlugin { tool: Some("note"), ..WatPlugin::default() }.build();
    place.write("good.wasm", &good);
    let (status, out, err) = place.run(&["plugin", "check", "good.wasm"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let out = out.replace(&sha256(&good), "(its SHA-256)").replace(&format!("{} bytes", good.len()), "(its size)");
    insta::assert_snapshot!("plugin_check", out);
    let (status, out, _) = place.run(&["plugin", "check", "good.wasm", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &report["loads"], &report["fault"]), (0, &json!(true), &Value::Null));
    assert_eq!((&report["bytes"], &report["sha256"]), (&json!(good.len()), &json!(sha256(&good))));
    assert_eq!(report["plugin"]["customTypes"], json!(["demo/type"]));
    assert_eq!(report["needs"]["memory"], 2 << 16);
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["file", "loads", "fault", "plugin", "bytes", "sha256", "imports", "notOffered", "exports", "missing", "needs"]
    );
}

#[test]
fn the_manual_has_the_command_and_its_option() {
    let (status, out, _) = Place::new().run(&["manual"]);
    assert_eq!(status, 0);
    for words in [r"plan\-execute\-plugin\-check", r"\-\-profile"] {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn a_component_that_cannot_be_loaded_is_told_why() {
    let place = Place::new();
    let import =
        "(component (import \"wasi:cli/environment@0.2.0\" (instance)) (import \"wasi:io/poll@0.2.0\" (instance)))";
    place.write("import.wasm", wat::parse_str(import).unwrap());
    place.write("empty.wasm", wat::parse_str("(component)").unwrap());
    place.write("big.wasm", WatPlugin { pages: Some((300, 300)), ..WatPlugin::default() }.build());
    place.write("core.wasm", b"\0asm\x01\0\0\0");
    place.write("text.wasm", "text");
    place.write("cut.wasm", &components::PLAN_EXECUTE[..100_000]);
    for (name, words, seen) in [
        (
            "import.wasm",
            "imports wasi:cli/environment@0.2.0",
            json!({"notOffered": ["wasi:cli/environment@0.2.0", "wasi:io/poll@0.2.0"]}),
        ),
        (
            "empty.wasm",
            "does not export plan-execute:plugin/lifecycle@0.1.0",
            json!({"missing": ["plan-execute:plugin/lifecycle@0.1.0", "plan-execute:plugin/tools@0.1.0"]}),
        ),
        ("big.wasm", "the memory of one call (16777216 bytes)", json!({"notOffered": [], "missing": []})),
        ("core.wasm", "this is a core module", json!({"imports": null})),
        ("text.wasm", "no WebAssembly component", json!({"imports": null})),
        ("cut.wasm", "the component is damaged", json!({"imports": null, "bytes": 100_000})),
    ] {
        let (status, out, err) = place.run(&["plugin", "check", name, "--json"]);
        assert_eq!(status, 3, "{name}");
        assert!(err.starts_with(&format!("error: {name} cannot be loaded: ")), "{err}");
        assert!(err.contains(words) && err.lines().count() == 1, "{name}: {err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["loads"], &report["plugin"]), (&json!(false), &Value::Null));
        assert!(report["fault"].as_str().unwrap().contains(words), "{report}");
        for (key, value) in seen.as_object().unwrap() {
            assert_eq!(&report[key], value, "{name} {key}");
        }
        let (status, out, _) = place.run(&["plugin", "check", name]);
        assert_eq!(status, 3);
        assert!(out.starts_with(&format!("{name}\n  loads        no\n")), "{out}");
    }
    let (status, out, err) = place.run(&["plugin", "check", "none.wasm"]);
    assert_eq!((status, out.as_str()), (3, ""));
    assert!(err.contains("the component none.wasm cannot be read"), "{err}");
}
