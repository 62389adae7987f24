//! Bad input is passed over and counted; it neither ends a call nor changes what good input says.

use super::{call, claude};
use crate::{
    source::memory::{Memory, Stored},
    tools,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn exit(id: &str, plan: &str) -> String {
    let part = json!({"type": "tool_use", "id": id, "name": "ExitPlanMode", "input": {"plan": plan}});
    json!({"type": "assistant", "message": {"content": [part]}}).to_string()
}

fn result(id: &str, text: &str) -> String {
    let part = json!({"type": "tool_result", "tool_use_id": id, "content": text});
    json!({"type": "user", "message": {"content": [part]}}).to_string()
}

fn history(sessions: Vec<Stored>) -> Value {
    call(&Memory { sessions, ..Memory::default() }, "plan_history", &json!({}))
}

#[test]
fn damaged_lines_are_counted() {
    let lines = |bad: &[u8]| {
        let mut bytes = exit("a", "# A").into_bytes();
        bytes.push(b'\n');
        bytes.extend(bad);
        bytes.push(b'\n');
        bytes.extend(exit("b", "# B").into_bytes());
        Stored { transcripts: vec![bytes], ..claude("s", &[]) }
    };
    let deep =
        |depth: usize| format!(r#"{{"type":"user","x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let long =
        |length: usize| format!(r#"{{"type":"user","message":{{"content":"{}"}}}}"#, "x".repeat(length)).into_bytes();
    for (name, bad, skipped) in [
        ("nothing", b" \r".to_vec(), Value::Null),
        ("torn", br#"{"type":"user""#.to_vec(), json!({"lines": 1})),
        ("a list", b"[1,2]".to_vec(), json!({"lines": 1})),
        ("binary", vec![0, 255, 254, 1, 2, 128], json!({"lines": 1})),
        ("deep", deep(200_000), json!({"lines": 1})),
        ("not that deep", deep(500), Value::Null),
        ("foreign types", br#"{"type":"assistant","message":[{"content":7}],"timestamp":{}}"#.to_vec(), Value::Null),
        (
            "foreign parts",
            br#"{"type":"assistant","message":{"content":[1,null,[],{"type":["tool_use"],"name":5}]}}"#.to_vec(),
            Value::Null,
        ),
        ("a lone surrogate", br#"{"type":"system","\ud800":"\udfff"}"#.to_vec(), Value::Null),
        ("no UTF-8", b"{\"type\":\"system\",\"x\":\"\xff\"}".to_vec(), Value::Null),
        ("too long", long(crate::lines::MAX_LINE), json!({"long_lines": 1})),
    ] {
        let answer = history(vec![lines(&bad)]);
        assert_eq!(answer["count"], 2, "{name}");
        assert_eq!(answer["plans"][1]["id"], "s:3", "{name}");
        assert_eq!(answer["skipped"], skipped, "{name}");
    }
    // The longest line that is read counts as an event.
    let longest = long(crate::lines::MAX_LINE - long(0).len());
    assert_eq!(history(vec![lines(&longest)])["plans"][1]["id"], "s:4");
}

#[test]
fn lone_surrogates_in_plans_read_as_replacements() {
    let lines = [exit("a", "# A X").replace('X', "\\ud83d"), exit("b", "x")];
    let answer = history(vec![claude("s", &lines)]);
    assert_eq!(answer["plans"][0]["title"], "A \u{fffd}");
    assert_eq!(answer["skipped"], Value::Null);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let good = claude("good", &[exit("a", "# A")]);
    let denied = Stored { denied: true, ..claude("denied", &[exit("a", "# A")]) };
    let broken = Stored {
        fails_after: Some(exit("a", "# A").len() + 5),
        ..claude("half", &[exit("a", "# A"), exit("b", "# B")])
    };
    let memory = Memory { sessions: vec![denied, broken, good], unreadable: 2, ..Memory::default() };
    let answer = call(&memory, "plan_history", &json!({"agent": "claude"}));
    let ids: Vec<&str> =
        answer["plans"].as_array().expect("a list").iter().filter_map(|plan| plan["id"].as_str()).collect();
    assert_eq!(ids, ["good:1", "half:1"]);
    assert_eq!(answer["skipped"], json!({"places": 2, "sessions": 1, "cut": 1}));
    // What happened to others is of no concern to whoever asks for one.
    let answer = call(&memory, "plan_history", &json!({"session": "good", "agent": "claude"}));
    assert_eq!((&answer["count"], &answer["skipped"]), (&json!(1), &json!({"places": 2})));
}

#[test]
fn a_call_that_comes_twice_is_paired_as_the_specification_says() {
    let lines = [
        exit("a", "# One"),
        result("a", "The user doesn't want to proceed. the user said:\nno"),
        exit("a", "# One"),
        result("", "User has approved"),
        result("unknown", "The user doesn't want to proceed. the user said:\nnot about a plan"),
    ];
    let memory = Memory { sessions: vec![claude("s", &lines)], ..Memory::default() };
    let answer = call(&memory, "plan_history", &json!({}));
    assert_eq!(answer["feedback_count"], 1);
    assert_eq!(answer["feedback"][0]["plan_id"], "s:3");
    assert_eq!(call(&memory, "plan_body", &json!({"id": "s:pf0"}))["plan_id"], "s:1");
}

#[test]
fn too_large_an_answer_says_how_to_ask_for_less() {
    let lines: Vec<String> =
        (0..9).map(|i| exit(&format!("c{i}"), &format!("# {i}\n{}", "x".repeat(999_000)))).collect();
    let sessions: Vec<Stored> = (0..9).map(|i| claude(&format!("s{i}"), &lines)).collect();
    let memory = Memory { sessions, ..Memory::default() };
    let error = tools::call(&memory, "plan_history", "{}").expect_err("it is too large");
    assert_eq!(error.code, "too_large");
    for argument in ["session", "agent", "kind", "bodies", "feedback", "rounds"] {
        assert!(error.message.contains(argument), "{}", error.message);
    }
    assert_eq!(call(&memory, "plan_history", &json!({"bodies": "none"}))["count"], 81);
    assert_eq!(call(&memory, "plan_history", &json!({"session": "s3"}))["count"], 9);
}

#[test]
fn arguments_too_long_to_decode_make_a_plan_without_text() {
    let body = "x".repeat(1_000_000);
    let write = exit("w", &body).replace("ExitPlanMode", "Write").replace("\"plan\"", "\"content\"");
    let memory = Memory { sessions: vec![claude("s", &[write, exit("a", &body)])], ..Memory::default() };
    let answer = call(&memory, "plan_history", &json!({}));
    assert_eq!(
        (&answer["count"], &answer["plans"][0]["title"], &answer["plans"][0]["body"]),
        (&json!(1), &json!("Plan"), &Value::Null)
    );
    let body = call(&memory, "plan_body", &json!({"id": "s:1", "max_chars": 10}));
    assert_eq!(body["body"], "{\"plan\":\"x…[truncated]");
}

#[test]
fn sessions_without_plans_are_not_read_again() {
    let silent = claude("silent", &[json!({"type": "user", "message": {"content": "call ExitPlanMode"}}).to_string()]);
    let memory = Memory { sessions: vec![silent, claude("s", &[exit("a", "# A")])], ..Memory::default() };
    // One opening for each search, one for reading; the listing leaves out what holds nothing.
    assert_eq!(call(&memory, "plan_history", &json!({}))["count"], 1);
    assert_eq!(memory.opened.get(), 2);
}

fn junk() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just(exit("a", "# A\n\n- b").into_bytes()),
        Just(result("a", "The user doesn't want to proceed. the user said: On selected text:\n> b\nc").into_bytes()),
        Just(br#"{"type":"session_meta","payload":{"id":"s"}}"#.to_vec()),
        Just(br#"{"type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":1}]}"}}"#.to_vec()),
        Just(br#"{"type":"session","version":3,"id":"s"}"#.to_vec()),
        Just(br#"{"type":"custom","id":"a","parentId":"b","customType":"pi-harness/plan-execute","data":{"title":"t","steps":[]}}"#.to_vec()),
        Just(br#"{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"x"}}"#.to_vec()),
        Just(br#"{"source":"MODEL","content":[{"type":"tool_use","name":"n","args":{}}]}"#.to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
        "[{}\\[\\]\":,a-z0-9\\\\u]{0,40}".prop_map(String::into_bytes),
    ];
    prop::collection::vec((line, prop::option::of((any::<prop::sample::Index>(), any::<u8>()))), 0..12).prop_map(
        |lines| {
            let mut bytes = Vec::new();
            for (mut line, change) in lines {
                if let Some((at, byte)) = change
                    && !line.is_empty()
                {
                    let at = at.index(line.len());
                    line[at] = byte;
                }
                bytes.extend(line);
                bytes.push(b'\n');
            }
            bytes
        },
    )
}

proptest! {
    /// Arbitrary bytes in every agent's files never end a call, and chunks never matter.
    #[test]
    fn any_bytes_get_an_answer(
        bytes in junk(),
        plan_file in prop::option::of(junk()),
        chunk in 1usize..60,
        number in 0u64..6,
    ) {
        let stored = |agent, id: Option<&str>| Stored {
            agent,
            id: id.map(str::to_owned),
            transcripts: vec![bytes.clone(), bytes.clone()],
            plan_file: plan_file.clone(),
            ..Stored::default()
        };
        let sessions = || vec![stored("claude", Some("s")), stored("codex", None), stored("pi", None), stored("antigravity", Some("s"))];
        let whole = Memory { sessions: sessions(), ..Memory::default() };
        let parts = Memory { sessions: sessions(), chunk, ..Memory::default() };
        for (tool, arguments) in [
            ("plan_history", json!({})),
            ("plan_history", json!({"session": "s", "redact": false})),
            ("plan_body", json!({"id": format!("s:{number}"), "shallow": true})),
            ("plan_body", json!({"id": format!("s:pf{number}")})),
        ] {
            prop_assert_eq!(call(&whole, tool, &arguments), call(&parts, tool, &arguments));
        }
    }
}
