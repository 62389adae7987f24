//! No secret leaves, in whatever place of a transcript it stands.

use super::claude;
use crate::{
    source::memory::{Memory, Stored},
    tools,
};
use serde_json::{Value, json};

const SECRETS: [&str; 4] = ["sk-ant-0123456789abcdefXYZ", "hunter2x9extra", "AKIAQWERTYUIOP12ASDF", "pa55wordpa55"];

/// Text with a secret of a few types, without characters that a title or path could not hold.
const TEXT: &str =
    "a sk-ant-0123456789abcdefXYZ b DB_PASSWORD=hunter2x9extra c AKIAQWERTYUIOP12ASDF d redis://:pa55wordpa55@h";

fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n").into_bytes()
}

fn sessions() -> Vec<Stored> {
    let call = |id: &str, name: &str, input: Value| {
        json!({"type": "assistant", "message": {"content": [
            {"type": "text", "text": TEXT},
            {"type": "tool_use", "id": id, "name": name, "input": input},
        ]}})
    };
    let said = format!("The user doesn't want to proceed. the user said: {TEXT}\nOn selected text:\n> {TEXT}\n{TEXT}");
    let transcript = lines(&[
        json!({"type": "user", "message": {"content": TEXT}}),
        call("t", TEXT, json!({"x": [TEXT, {"y": TEXT}]})),
        call("e", "ExitPlanMode", json!({"plan": format!("# {TEXT}\n\n{TEXT}")})),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "e", "content": said}]}}),
        call("w", "Write", json!({"file_path": format!("{TEXT}/plans/{}.md", SECRETS[0]), "content": TEXT})),
    ]);
    let steps = json!({"explanation": TEXT, "plan": [{"step": TEXT, "status": "pending", "more": [TEXT]}]});
    let codex = lines(&[
        json!({"type": "session_meta", "payload": {"id": "c"}}),
        json!({"type": "response_item", "payload": {"type": "function_call", "name": "update_plan", "arguments": steps.to_string()}}),
    ]);
    let plan = json!({"title": TEXT, "steps": [{"id": 1, "title": TEXT, "status": "done"}]});
    let pi = lines(&[
        json!({"type": "session", "version": 3, "id": "p"}),
        json!({"type": "custom", "id": "a", "parentId": null, "customType": "pi-harness/plan-execute", "data": plan}),
    ]);
    vec![
        Stored { transcripts: vec![transcript], ..claude("s", &[]) },
        Stored { agent: "codex", transcripts: vec![codex], ..Stored::default() },
        Stored { agent: "pi", transcripts: vec![pi], ..Stored::default() },
        Stored {
            agent: "antigravity",
            id: Some("g".into()),
            path: format!("/{TEXT}/implementation_plan.md"),
            plan_file: Some(format!("# {TEXT}").into_bytes()),
            ..Stored::default()
        },
    ]
}

#[test]
fn no_secret_leaves_from_any_place() {
    let memory = Memory { sessions: sessions(), ..Memory::default() };
    let mut answers = 0;
    let mut check = |tool: &str, arguments: Value| {
        let Ok(answer) = tools::call(&memory, tool, &arguments.to_string()) else { return };
        answers += 1;
        for secret in SECRETS {
            assert!(!answer.details().contains(secret), "{secret} in {arguments}: {}", answer.text);
        }
        let value: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert!(value["redactions"].is_object(), "{arguments}");
    };
    check("plan_history", json!({}));
    for session in ["s", "c", "p", "g"] {
        for target in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "pf0"] {
            for max_chars in [0, 5, 20, 40, 60] {
                let id = format!("{session}:{target}");
                check("plan_body", json!({"id": id, "max_chars": max_chars}));
                check("plan_body", json!({"id": id, "max_chars": max_chars, "shallow": true}));
            }
        }
    }
    assert!(answers > 100, "{answers}");
}
