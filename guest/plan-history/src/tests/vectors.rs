//! The vectors of the behaviour that ours matches.

use crate::{
    redact::Redactor,
    source::memory::{Memory, Stored},
    tools,
};
use serde_json::{Map, Value};

const PLAN_ENTRY_TYPE: &str = "pi-harness/plan-execute";

/// Sessions as a case of `history.json` describes them.
fn sessions(case: &Value) -> Vec<Stored> {
    let sessions = case["sessions"].as_array().expect("a list").iter();
    sessions
        .map(|session| {
            let agent = session["agent"].as_str().expect("text");
            let agent =
                ["antigravity", "claude", "codex", "pi"].into_iter().find(|known| *known == agent).expect(agent);
            let id = session["session"].as_str().expect("text").to_owned();
            let known = matches!(agent, "antigravity" | "claude");
            let mut stored = Stored { agent, id: known.then_some(id), ..Stored::default() };
            if let Some(files) = session.get("files") {
                let file = |name: &str| files.get(name).map(|text| text.as_str().expect("text").as_bytes().to_vec());
                let logs = ["transcript.json", "transcript_full.jsonl", "transcript.jsonl", "overview.txt"];
                stored.transcripts =
                    logs.iter().filter_map(|name| file(&format!(".system_generated/logs/{name}"))).collect();
                stored.plan_file = file("implementation_plan.md");
                stored.path = format!("{}/implementation_plan.md", session["dir"].as_str().expect("text"));
            } else {
                let line = |line: &Value| match line {
                    Value::String(text) => text.clone(),
                    object => object.to_string().replace("<PLAN_ENTRY_TYPE>", PLAN_ENTRY_TYPE),
                };
                let lines: Vec<String> = session["lines"].as_array().expect("a list").iter().map(line).collect();
                stored.transcripts = vec![lines.join("\n").into_bytes()];
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
            let kept = |object: &Map<String, Value>| {
                object
                    .keys()
                    .filter(|key| !ignore.contains(&key.as_str()))
                    .cloned()
                    .collect::<std::collections::BTreeSet<_>>()
            };
            kept(a) == kept(b) && kept(a).iter().all(|key| agree(&a[key], &b[key], ignore))
        }
        (a, b) => a == b,
    }
}

#[test]
fn histories() {
    let file: Value = serde_json::from_str(include_str!("../../tests/vectors/history.json")).expect("JSON");
    for case in file["cases"].as_array().expect("a list") {
        for chunk in [0, 1, 37] {
            let memory = Memory { sessions: sessions(case), chunk, page: 1, ..Memory::default() };
            for call in case["calls"].as_array().expect("a list") {
                let tool = match call["op"].as_str() {
                    Some("plan") => "plan_history",
                    Some("get_body") => "plan_body",
                    other => panic!("unknown operation {other:?}"),
                };
                let answer = match tools::call(&memory, tool, &call["args"].to_string()) {
                    Ok(answer) => serde_json::from_str(&answer.text).expect("JSON"),
                    Err(error) => serde_json::from_str(&error.data.expect("the error")).expect("JSON"),
                };
                let ignore: Vec<&str> =
                    call["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let expected = &call["expect"];
                assert!(
                    agree(&answer, expected, &ignore),
                    "{} {}:\n{answer:#}\nexpected\n{expected:#}",
                    case["id"],
                    call["args"]
                );
                super::call(&memory, tool, &call["args"]);
            }
        }
    }
}

#[test]
fn redactions() {
    let file: Value = serde_json::from_str(include_str!("../../tests/vectors/redaction.json")).expect("JSON");
    let names: Vec<&str> = crate::redact::Type::ALL.iter().map(|of| of.name()).collect();
    assert_eq!(Value::from(names), file["order"]);
    for case in file["cases"].as_array().expect("a list") {
        let mut value = match case.get("input_parts") {
            Some(parts) => {
                parts.as_array().expect("a list").iter().filter_map(Value::as_str).collect::<String>().into()
            }
            None => case["input"].clone(),
        };
        let mut redactor = Redactor::new(true);
        redactor.value(&mut value);
        assert_eq!(value, case["output"], "{}", case["id"]);
        let counts: Map<String, Value> =
            redactor.counts().map(|(name, count)| (name.to_owned(), count.into())).collect();
        assert_eq!(Value::Object(counts), case["counts"], "{}", case["id"]);
    }
}
