//! Transcripts of Codex.

use crate::{
    json::{self, Arguments, Content, Raw, Text, fields, joined},
    record::{Call, Record, Signal},
    text::{cut, is_blank, trim, trim_start},
};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
};

/// What stands in every transcript with a plan.
pub const SIGNS: &[&str] = &["\"update_plan\""];

/// How many different texts of the user are told apart in one session. Behind them reading stops.
const MAX_TEXTS: usize = 500_000;

#[derive(Debug, Default)]
struct Line<'a> {
    kind: Text<'a>,
    payload: Payload<'a>,
}
fields!(Line { kind: "type", payload: "payload" });

#[derive(Debug, Default)]
struct Payload<'a> {
    id: Text<'a>,
    kind: Text<'a>,
    role: Text<'a>,
    content: Content<'a, Part<'a>>,
    name: Text<'a>,
    arguments: Raw<'a>,
    action: Raw<'a>,
    message: Text<'a>,
}
fields!(Payload {
    id: "id",
    kind: "type",
    role: "role",
    content: "content",
    name: "name",
    arguments: "arguments",
    action: "action",
    message: "message",
});

#[derive(Debug, Default)]
struct Part<'a> {
    kind: Option<Text<'a>>,
    text: Text<'a>,
}
fields!(Part { kind: "type", text: "text" });

/// Reads one transcript.
pub struct Codex<'a> {
    only: Option<&'a str>,
    /// None before the first line that tells it; an empty one where that line does not.
    id: Option<Option<String>>,
    /// Hashes of what the user wrote. Codex writes most of it twice.
    seen: HashSet<u64>,
}

impl<'a> Codex<'a> {
    /// A transcript from its beginning. Reading ends as soon as it is another than the one that is asked for.
    pub fn new(only: Option<&'a str>) -> Codex<'a> {
        Codex { only, id: None, seen: HashSet::new() }
    }

    /// The session's id; a file without one is no session.
    pub fn id(self) -> Option<String> {
        self.id.flatten()
    }

    /// Reads one line: whether it could be read, and whether to go on.
    pub fn line(&mut self, text: &str, record: &mut Record) -> (bool, ControlFlow<()>) {
        let mut mended = None;
        let Some(Line { kind, payload }) = json::object(text, &mut mended) else {
            return (false, ControlFlow::Continue(()));
        };
        match kind.or_empty() {
            "session_meta" if self.id.is_none() => {
                let id = payload.id.0.map(|id| id.into_owned()).filter(|id| !id.is_empty());
                if id.is_none() || self.only.is_some_and(|only| id.as_deref() != Some(only)) {
                    self.id = Some(None);
                    return (true, ControlFlow::Break(()));
                }
                self.id = Some(id);
            }
            "response_item" => self.item(payload, record),
            "event_msg" if payload.kind.or_empty() == "user_message" => {
                let text = payload.message.0.unwrap_or_default();
                if cut(&text, 10).1 && !is_of_the_system(&text) {
                    self.user(text, record);
                }
            }
            _ => {}
        }
        let flow = if self.seen.len() > MAX_TEXTS { ControlFlow::Break(()) } else { record.flow() };
        (true, flow)
    }

    fn item(&mut self, payload: Payload, record: &mut Record) {
        let kind = payload.kind.or_empty();
        match kind {
            "message" => {
                let text = message_text(payload.content);
                match payload.role.or_empty() {
                    "user" => self.user(text, record),
                    "assistant" => record.assistant(text, &[], Vec::new()),
                    _ => {}
                }
            }
            "function_call" | "local_shell_call" => {
                let name = payload.name.filled().unwrap_or(kind).to_owned();
                let call = Call { name: name.into(), arguments: Arguments::raw(payload.arguments), id: None };
                let signals = if call.name == "update_plan" { vec![signal(&call.arguments)] } else { Vec::new() };
                record.assistant("".into(), &[call], signals);
            }
            "web_search_call" => {
                let call = Call { name: "web_search".into(), arguments: Arguments::raw(payload.action), id: None };
                record.assistant("".into(), &[call], Vec::new());
            }
            _ => {}
        }
    }

    fn user(&mut self, text: Cow<str>, record: &mut Record) {
        let mut hasher = DefaultHasher::new();
        cut(&text, 256).0.hash(&mut hasher);
        if text.is_empty() || self.seen.insert(hasher.finish()) {
            record.user(text);
        }
    }
}

fn is_of_the_system(text: &str) -> bool {
    let text = trim_start(text);
    ["<permissions", "## Apps", "<command-message>", "<system-reminder>"].iter().any(|begin| text.starts_with(begin))
}

fn message_text<'a>(content: Content<'a, Part<'a>>) -> Cow<'a, str> {
    let is_text = |part: &Part| {
        part.kind.as_ref().is_none_or(|kind| matches!(kind.or_empty(), "input_text" | "output_text" | "text"))
    };
    match content {
        Content::Text(text) => text,
        Content::List(parts) => joined(parts.into_iter().filter(is_text).map(|part| part.text)),
        Content::Object(_) | Content::Nothing => Cow::Borrowed(""),
    }
}

fn signal(arguments: &Arguments) -> Signal {
    let mut arguments = arguments.value().unwrap_or_default();
    let key = if arguments.get("plan").is_some_and(Value::is_array) { "plan" } else { "steps" };
    let steps = arguments.get_mut(key).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let steps: Vec<Value> = steps.into_iter().filter(Value::is_object).collect();
    let title = first_filled(&arguments, ["name", "explanation"])
        .or_else(|| steps.first().and_then(|step| first_filled(step, ["step", "text"])))
        .unwrap_or("Plan")
        .to_owned();
    let status = status(&steps);
    Signal {
        title,
        tag: "codex:update_plan",
        steps: Some(steps).filter(|steps| !steps.is_empty()),
        status,
        ..Signal::default()
    }
}

/// The first value that counts as something, trimmed, where it is text that is not blank.
fn first_filled<'a>(of: &'a Value, keys: [&str; 2]) -> Option<&'a str> {
    let nothing = |value: &&Value| match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    };
    let value = keys.iter().filter_map(|key| of.get(key)).find(|value| !nothing(value))?;
    value.as_str().filter(|text| !is_blank(text)).map(trim)
}

/// The status of a plan as a whole, from those of its steps.
fn status(steps: &[Value]) -> Option<&'static str> {
    let statuses: Vec<&str> = steps.iter().filter_map(|step| step.get("status")?.as_str()).collect();
    super::rolled_up(&statuses, &["completed"])
}
