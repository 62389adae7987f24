//! The component `plan-history` on the vectors, and within the limits of its world.

use crate::transcripts::{Content, History, Stored};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const VECTORS: &str = include_str!("../../guest/plan-history/tests/vectors/history.json");
const REDACTION: &str = include_str!("../../guest/plan-history/tests/vectors/redaction.json");

/// Sessions as a case of the vectors describes them.
fn sessions(case: &Value) -> Vec<Stored> {
    let bytes = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    let sessions = case["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| {
            let agent = session["agent"].as_str().unwrap();
            let known = matches!(agent, "antigravity" | "claude");
            let id = known.then(|| session["session"].as_str().unwrap().to_owned());
            let mut stored =
                Stored { agent: agent.into(), id, path: String::new(), transcripts: Vec::new(), plan_file: None };
            if let Some(files) = session.get("files") {
                let logs = ["transcript.json", "transcript_full.jsonl", "transcript.jsonl", "overview.txt"];
                let file = |name: String| files.get(name).map(|text| bytes(text.as_str().unwrap()));
                stored.transcripts =
                    logs.iter().filter_map(|name| file(format!(".system_generated/logs/{name}"))).collect();
                stored.plan_file = file("implementation_plan.md".into());
                stored.path = format!("{}/implementation_plan.md", session["dir"].as_str().unwrap());
            } else {
                let line = |line: &Value| match line {
                    Value::String(text) => text.clone(),
                    object => object.to_string().replace("<PLAN_ENTRY_TYPE>", "pi-harness/plan-execute"),
                };
                let lines: Vec<String> = session["lines"].as_array().unwrap().iter().map(line).collect();
                stored.transcripts = vec![bytes(&lines.join("\n"))];
            }
            stored
        })
        .collect()
}

/// Does an answer agree with the expected one, without the keys that are ignored?
fn agree(answer: &Value, expected: &Value, ignore: &[&str]) -> bool {
    match (answer, expected) {
        (Value::String(_), Value::String(any)) if any == "$ANY" => true,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b, ignore)),
        (Value::Object(a), Value::Object(b)) => {
            let keys = |object: &Map<String, Value>| -> BTreeSet<String> {
                object.keys().filter(|key| !ignore.contains(&key.as_str())).cloned().collect()
            };
            keys(a) == keys(b) && keys(a).iter().all(|key| agree(&a[key], &b[key], ignore))
        }
        (a, b) => a == b,
    }
}

/// Calls a tool: its text as JSON, or its error as an object.
fn call(history: &mut History, tool: &str, arguments: &Value) -> Value {
    match history.call(tool, &arguments.to_string()) {
        Ok(result) => serde_json::from_str(&result.text).unwrap(),
        Err(error) => serde_json::from_str(&error.data.unwrap()).unwrap(),
    }
}

#[test]
fn vectors() {
    let file: Value = serde_json::from_str(VECTORS).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let mut history = History::new(sessions(case));
        for each in case["calls"].as_array().unwrap() {
            let tool = if each["op"] == "plan" { "plan_history" } else { "plan_body" };
            let answer = call(&mut history, tool, &each["args"]);
            let ignore: Vec<&str> = each["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let expected = &each["expect"];
            let id = &case["id"];
            assert!(agree(&answer, expected, &ignore), "{id} {}:\n{answer:#}\nexpected\n{expected:#}", each["args"]);
        }
    }
}

fn claude(id: &str, transcript: Content) -> Stored {
    Stored {
        agent: "claude".into(),
        id: Some(id.into()),
        path: String::new(),
        transcripts: vec![transcript],
        plan_file: None,
    }
}

fn exit(plan: &str) -> String {
    let part = json!({"type": "tool_use", "id": "c", "name": "ExitPlanMode", "input": {"plan": plan}});
    json!({"type": "assistant", "message": {"content": [part]}}).to_string() + "\n"
}

/// Secrets are masked in the component as they are natively: each vector as the body of a plan.
#[test]
fn redaction() {
    let file: Value = serde_json::from_str(REDACTION).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let Some(parts) = case["input_parts"].as_array() else { continue };
        let input: String = parts.iter().filter_map(Value::as_str).collect();
        let mut history = History::new(vec![claude("s", Content::Bytes(exit(&input).into_bytes()))]);
        let answer = call(&mut history, "plan_body", &json!({"id": "s:1"}));
        assert_eq!(answer["body"], case["output"], "{}", case["id"]);
        let counts = if case["counts"] == json!({}) { Value::Null } else { case["counts"].clone() };
        assert_eq!(answer["redactions"], counts, "{}", case["id"]);
    }
}

/// A transcript of 1 GiB is read within the memory of the world: lines of a usual size, and lines that are too long.
#[test]
fn a_gibibyte_within_the_memory() {
    let turn = json!({"type": "user", "message": {"content": "x".repeat(100_000)}}).to_string() + "\n";
    for (middle, events) in [(turn.repeat(10), 10_240), ("x".repeat(1 << 20), 0)] {
        let times = (1 << 30) / middle.len() - 40;
        let end = format!("\n{}", exit("# End"));
        let repeated =
            Content::Repeated { begin: exit("# Begin").into(), middle: middle.into(), times, end: end.into() };
        let mut history = History::new(vec![claude("s", repeated)]);
        let answer = call(&mut history, "plan_history", &json!({}));
        assert_eq!(answer["count"], 2);
        let number = 3 + if events == 0 { 0 } else { times * 10 };
        assert_eq!(answer["plans"][1]["id"], format!("s:{number}"));
        assert!(history.bytes_read() > 1_000_000_000);
    }
}

/// Lines near the limit, in every place where a text is taken out of one: each is read, or passed over and counted.
#[test]
fn huge_lines_within_the_memory() {
    let text = |length: usize| format!("\\n{}", "x".repeat(length));
    let line = |length: usize| {
        let text = text(length);
        let part = |part: &str| format!(r#"{{"type":"PLACE","message":{{"content":[{part}]}}}}"#);
        let answer = format!("The user doesn't want to proceed. the user said:{text}");
        [
            format!(r#"{{"type":"user","message":{{"content":"{text}"}}}}"#),
            part(&format!(r#"{{"type":"text","text":"{text}"}}"#)).replace("PLACE", "assistant"),
            part(&format!(r#"{{"type":"text","text":"a"}},{{"type":"text","text":"{text}"}}"#))
                .replace("PLACE", "user"),
            part(&format!(r#"{{"type":"tool_use","name":"ExitPlanMode","id":"c","input":{{"plan":"{text}"}}}}"#))
                .replace("PLACE", "assistant"),
            part(&format!(r#"{{"type":"tool_use","name":"Write","input":"{text}"}}"#)).replace("PLACE", "assistant"),
            part(&format!(r#"{{"type":"tool_result","tool_use_id":"c","content":"{answer}"}}"#))
                .replace("PLACE", "user"),
            format!(r#"{{"type":"user","message":{{"content":"\ud800{text}"}}}}"#),
            format!(r#"{{"type":"user","message":{{"content":"{text}"}}"#),
        ]
    };
    let longest = (16 << 20) - 300;
    for length in [1_000_100, 3 << 20, longest] {
        for (i, line) in line(length).into_iter().enumerate() {
            let mut bytes = (exit("# A") + &line + "\n" + &exit("# B")).into_bytes();
            let mut history = History::new(vec![claude("s", Content::Bytes(bytes.clone()))]);
            let answer = call(&mut history, "plan_history", &json!({"bodies": "none"}));
            assert_eq!(answer["count"], 2 + u64::from(i == 3), "{i} of {length}");
            for number in 2..4 {
                call(&mut history, "plan_body", &json!({"id": format!("s:{number}"), "max_chars": 0}));
                call(&mut history, "plan_body", &json!({"id": format!("s:{number}"), "max_chars": 10}));
            }
            // The same with bytes that are no UTF-8 all over.
            let start = exit("# A").len();
            bytes[start + 200..start + length].fill(0xff);
            let mut history = History::new(vec![claude("s", Content::Bytes(bytes))]);
            call(&mut history, "plan_history", &json!({}));
        }
    }
}
