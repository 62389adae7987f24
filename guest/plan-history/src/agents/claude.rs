//! Transcripts of Claude Code.

use crate::{
    answer,
    json::{self, Arguments, Content, Raw, Text, fields, joined},
    record::{Call, Record, Signal},
    skipped::Skipped,
    title::heading,
};
use serde_json::Value;
use std::borrow::Cow;

/// What stands in every transcript with a plan, besides names of plan files.
pub const SIGNS: &[&str] = &["\"ExitPlanMode\""];

/// The longest tool result that is read as an answer, in bytes of JSON.
const MAX_ANSWER: usize = 4 << 20;

#[derive(Debug, Default)]
struct Line<'a> {
    kind: Text<'a>,
    timestamp: Text<'a>,
    message: Message<'a>,
}
fields!(Line { kind: "type", timestamp: "timestamp", message: "message" });

#[derive(Debug, Default)]
struct Message<'a> {
    content: Content<'a, Part<'a>>,
}
fields!(Message { content: "content" });

#[derive(Debug, Default)]
struct Part<'a> {
    kind: Text<'a>,
    text: Text<'a>,
    name: Text<'a>,
    id: Text<'a>,
    input: Raw<'a>,
    tool_use_id: Text<'a>,
    content: Raw<'a>,
}
fields!(Part {
    kind: "type",
    text: "text",
    name: "name",
    id: "id",
    input: "input",
    tool_use_id: "tool_use_id",
    content: "content",
});

/// Reads one line. False where it is broken.
pub fn line(text: &str, record: &mut Record, skipped: &mut Skipped) -> bool {
    let mut mended = None;
    let Some(line) = json::object::<Line>(text, &mut mended) else { return false };
    match line.kind.or_empty() {
        "user" => user(line, record, skipped),
        "assistant" => assistant(line, record),
        _ => {}
    }
    true
}

fn user(line: Line, record: &mut Record, skipped: &mut Skipped) {
    let (text, parts) = text_and_rest(line.message.content);
    record.user(text);
    for part in parts.iter().filter(|part| part.kind.or_empty() == "tool_result") {
        // Most results are long and are no answers, and are not decoded.
        if let Some(call) = part.tool_use_id.filled()
            && let Some(raw) = part.content.0
            && (answer::may_answer(raw) || raw.contains("\\u00"))
        {
            if raw.len() > MAX_ANSWER {
                skipped.plans += 1;
            } else {
                record.result(call, &result_text(raw), line.timestamp.or_empty());
            }
        }
    }
}

fn assistant(line: Line, record: &mut Record) {
    let (text, parts) = text_and_rest(line.message.content);
    let calls: Vec<Call> = parts.into_iter().filter_map(call).collect();
    let signals = calls.iter().filter_map(|call| signal(call, record)).collect();
    record.assistant(text, &calls, signals);
}

/// The texts of a message, joined by line feeds, and its other parts.
fn text_and_rest<'a>(content: Content<'a, Part<'a>>) -> (Cow<'a, str>, Vec<Part<'a>>) {
    match content {
        Content::Text(text) => (text, Vec::new()),
        Content::List(parts) => {
            let (texts, rest): (Vec<Part>, Vec<Part>) =
                parts.into_iter().partition(|part| part.kind.or_empty() == "text");
            (joined(texts.into_iter().map(|part| part.text)), rest)
        }
        Content::Object(_) | Content::Nothing => (Cow::Borrowed(""), Vec::new()),
    }
}

/// The text of a tool result: as it stands, or those of the objects in a list.
fn result_text(raw: &str) -> String {
    let mut mended = None;
    match json::object::<Content<Part>>(raw, &mut mended) {
        Some(Content::Text(text)) => text.into_owned(),
        Some(Content::List(parts)) => joined(parts.into_iter().map(|part| part.text)).into_owned(),
        _ => String::new(),
    }
}

fn call(part: Part) -> Option<Call> {
    let name = part.name.0.filter(|name| !name.is_empty() && part.kind.or_empty() == "tool_use")?;
    Some(Call { name, arguments: Arguments::raw(part.input), id: part.id.0.filter(|id| !id.is_empty()) })
}

fn signal(call: &Call, record: &mut Record) -> Option<Signal> {
    match &*call.name {
        "ExitPlanMode" => {
            let body = call.arguments.value().and_then(|arguments| body(&arguments, "plan"));
            Some(Signal {
                title: body.as_deref().and_then(heading).unwrap_or("Plan").to_owned(),
                tag: "claude:ExitPlanMode",
                // The plan belongs to the file that was written before, however its title changed since.
                task: record.last_task_file().clone(),
                body,
                call: call.id.clone().map(Into::into),
                ..Signal::default()
            })
        }
        "Write" | "write" | "write_file" | "create_file" => {
            let arguments = call.arguments.value()?;
            let path = path(&arguments)?;
            let task = plan_file(path)?;
            *record.last_task_file() = Some(task.clone());
            let body = body(&arguments, "content");
            let name = path.rsplit('/').next().unwrap_or(path);
            Some(Signal {
                title: body.as_deref().and_then(heading).unwrap_or(name).to_owned(),
                tag: "claude:Write(plans/*.md)",
                path: Some(path.to_owned()),
                task: Some(task),
                body,
                call: call.id.clone().map(Into::into),
                ..Signal::default()
            })
        }
        _ => None,
    }
}

fn body(arguments: &Value, key: &str) -> Option<String> {
    arguments.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The file that a tool was called for.
fn path(arguments: &Value) -> Option<&str> {
    const KEYS: [&str; 3] = ["file_path", "notebook_path", "path"];
    let files = arguments.get("files").and_then(Value::as_array);
    first_text(arguments, &KEYS)
        .or_else(|| files.into_iter().flatten().find_map(|file| first_text(file, &KEYS)))
        .or_else(|| first_text(arguments, &["filePath", "abspath"]))
}

fn first_text<'a>(of: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().filter_map(|key| of.get(key)?.as_str()).find(|text| !text.is_empty())
}

/// The end of a path that names a plan file, in lower case: `plans/name.md`.
fn plan_file(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let suffix = name.len().checked_sub(3).and_then(|at| name.get(at..))?;
    let folder = folder.len().checked_sub(5).and_then(|at| folder.get(at..))?;
    let is_one = suffix.eq_ignore_ascii_case(".md") && folder.eq_ignore_ascii_case("plans");
    is_one.then(|| format!("plans/{}", name.to_lowercase()))
}
