//! Transcripts and plan files of Antigravity.

use crate::{
    json::{self, Arguments, Content, Raw, Text, fields, joined},
    lines::CHUNK,
    record::{Call, Record, Signal},
    skipped::Skipped,
    source::{Failure, File, Part as SessionPart, Transcripts},
    title::heading,
};
use std::borrow::Cow;

/// The largest plan file that is read, in bytes.
const MAX_PLAN_FILE: usize = 8 << 20;

#[derive(Debug, Default)]
struct Part<'a> {
    source: Text<'a>,
    kind: Text<'a>,
    text: Text<'a>,
    name: Text<'a>,
    args: Option<Raw<'a>>,
    input: Option<Raw<'a>>,
    arguments: Option<Raw<'a>>,
    content: Raw<'a>,
}
fields!(Part {
    source: "source",
    kind: "type",
    text: "text",
    name: "name",
    args: "args",
    input: "input",
    arguments: "arguments",
    content: "content",
});

/// Reads a session: the first rendering of its transcript that holds a message, then its plan file. Where only plans are
/// wanted, a session without a plan file is not read.
///
/// # Errors
///
/// A part that is there and cannot be opened.
pub fn read(
    source: &impl Transcripts,
    key: &str,
    only_plans: bool,
    record: &mut Record,
    skipped: &mut Skipped,
) -> Result<(), Failure> {
    let plan_file = found(source.open(key, SessionPart::PlanFile))?;
    if plan_file.is_none() && only_plans {
        return Ok(());
    }
    for number in 0.. {
        let Some(mut file) = found(source.open(key, SessionPart::Transcript(number)))? else { break };
        let mut messages = false;
        super::objects(&mut file, skipped, |text, _| {
            let message = line(text, record);
            messages |= message == Some(true);
            (message.is_some(), record.flow())
        });
        if messages {
            break;
        }
    }
    if let Some(mut file) = plan_file
        && let Some(body) = plan_text(&mut file, skipped)
    {
        let path = file.path();
        record.plan(Signal {
            title: heading(&body).unwrap_or("implementation_plan.md").to_owned(),
            tag: "antigravity:implementation_plan.md",
            task: Some(path.clone()),
            path: Some(path),
            body: Some(body).filter(|body| !body.is_empty()),
            ..Signal::default()
        });
    }
    Ok(())
}

fn found<F>(opened: Result<F, Failure>) -> Result<Option<F>, Failure> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(Failure::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn plan_text(file: &mut impl File, skipped: &mut Skipped) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        match file.read(CHUNK) {
            Ok(chunk) if chunk.is_empty() => return Some(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(chunk) if bytes.len() + chunk.len() <= MAX_PLAN_FILE => bytes.extend(chunk),
            Ok(_) | Err(_) => {
                skipped.plans += 1;
                return None;
            }
        }
    }
}

/// Reads one line. Whether it is a message; none where it is broken.
fn line(text: &str, record: &mut Record) -> Option<bool> {
    let mut mended = None;
    let line: Part = json::object(text, &mut mended)?;
    let (source, kind) = (line.source.or_empty(), line.kind.or_empty());
    let of_user = if source.starts_with("USER") || source.starts_with("MODEL") {
        source.starts_with("USER")
    } else if kind.starts_with("USER") || kind.starts_with("MODEL") {
        kind.starts_with("USER")
    } else {
        return Some(false);
    };
    let mut calls = Vec::new();
    let mut mended = None;
    let text = match line.content.0.and_then(|raw| json::object::<Content<Part>>(raw, &mut mended)) {
        Some(Content::Text(text)) => text,
        Some(Content::List(parts)) => {
            let (tools, texts): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_call);
            calls.extend(tools.iter().filter_map(call));
            joined(texts.into_iter().map(|part| part.text))
        }
        Some(Content::Object(part)) => {
            calls.extend(is_call(&part).then(|| call(&part)).flatten());
            Cow::Borrowed("")
        }
        Some(Content::Nothing) | None => Cow::Borrowed(""),
    };
    if is_call(&line) {
        calls.extend(call(&line));
    }
    match of_user {
        true => record.user(text),
        false => record.assistant(text, &calls, Vec::new()),
    }
    Some(true)
}

fn is_call(part: &Part) -> bool {
    matches!(part.kind.or_empty(), "MODEL_TOOL_CALL" | "TOOL_CALL" | "tool_call" | "toolCall" | "tool_use" | "TOOL_USE")
}

fn call(part: &Part) -> Option<Call<'static>> {
    let name = part.name.filled()?.to_owned();
    let arguments = match Arguments::raw(part.args.or(part.input).or(part.arguments).unwrap_or_default()) {
        Arguments::None => Arguments::None,
        Arguments::Json(json) => Arguments::Text(json.to_owned().into()),
        Arguments::Text(text) => Arguments::Text(text.into_owned().into()),
    };
    Some(Call { name: name.into(), arguments, id: None })
}
