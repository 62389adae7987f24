//! The operation `plan_body`: the whole text of one plan, event or answer.

use crate::{
    agents::{Agent, Read, Reader},
    arguments::Body,
    error::ToolError,
    history::{Counts, each_session},
    record::{Event, Plan, Record, Wanted},
    redact::Redactor,
    skipped::Skipped,
    source::{Session, Transcripts},
    text::cut,
    tools::Answer,
};
use serde::Serialize;
use serde_json::Value;

const NARROWER: &str = "ask for less of it with max_chars";

/// An answer. Fields that do not belong to its type are absent.
#[derive(Debug, Default, Serialize)]
struct Reply<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shallow: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<PairRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_drafts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redactions: Option<Counts<'a>>,
}

#[derive(Debug, Serialize)]
struct PairRow {
    quote: Option<String>,
    comment: String,
}

/// What an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// An event by its number.
    Event(u64),
    /// An answer by its ordinal.
    Answer(usize),
}

/// Answers `plan_body`.
///
/// # Errors
///
/// Nothing has this id, the transcripts cannot be listed, or the answer would be too large.
pub fn answer(source: &impl Transcripts, arguments: &Body) -> Result<Answer, ToolError> {
    let not_found = || ToolError::not_found(&arguments.id);
    let (session_id, target) = target(&arguments.id).ok_or_else(not_found)?;
    let mut skipped = Skipped::default();
    let mut reply = None;
    for agent in Agent::ALL.into_iter().filter(|agent| *agent != Agent::Opencode) {
        let reader = Reader::new(source, agent, Some(session_id));
        let on = each_session(source, agent, Some(session_id), &mut skipped, |session, skipped| {
            reply = match target {
                Target::Event(number) => event(&reader, session, number, arguments, skipped)?,
                Target::Answer(ordinal) => feedback(&reader, session, ordinal, arguments, skipped)?,
            };
            Ok(reply.is_none())
        })?;
        if !on {
            break;
        }
    }
    let mut reply = reply.ok_or_else(not_found)?;
    let mut redactor = Redactor::new(arguments.redact);
    reply.mask(&mut redactor);
    reply.cut(arguments.max_chars);
    reply.redactions = Counts::of(&redactor);
    Answer::new(&reply, skipped, NARROWER)
}

/// Takes an id apart.
fn target(id: &str) -> Option<(&str, Target)> {
    let (session, target) = id.rsplit_once(':')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let target = match target.strip_prefix("pf") {
        Some(ordinal) if digits(ordinal) => Target::Answer(ordinal.parse().ok()?),
        _ if digits(target) => Target::Event(target.parse().ok()?),
        _ => return None,
    };
    Some((session, target))
}

fn read<T: Transcripts>(
    reader: &Reader<T>,
    session: &Session,
    wanted: Wanted,
    skipped: &mut Skipped,
) -> Result<Option<Read>, ToolError> {
    let read = reader.read(session, wanted, skipped);
    match &read {
        Some(read) if read.record.too_many.is_some() => {
            Err(ToolError::too_large("its session holds more plans than fit into memory"))
        }
        _ => Ok(read),
    }
}

fn event<T: Transcripts>(
    reader: &Reader<T>,
    session: &Session,
    number: u64,
    arguments: &Body,
    skipped: &mut Skipped,
) -> Result<Option<Reply<'static>>, ToolError> {
    let Some(Read { id: session_id, mut record }) = read(reader, session, Wanted::Event(number), skipped)? else {
        return Ok(None);
    };
    let id = arguments.id.clone();
    match record.event.take() {
        Some(Event::User(text)) => {
            return Ok(Some(Reply { id, kind: "user_turn", text: Some(text), ..Reply::default() }));
        }
        Some(Event::Assistant(text)) => {
            return Ok(Some(Reply { id, kind: "assistant_turn", text: Some(text), ..Reply::default() }));
        }
        Some(Event::Call { tool, arguments }) => {
            let kind = tool_kind(&tool);
            return Ok(Some(Reply { id, kind, tool: Some(tool), body: Some(arguments), ..Reply::default() }));
        }
        None => {}
    }
    let Some(asked) = record.plans.iter().position(|plan| plan.number == number) else { return Ok(None) };
    let revisions: Vec<usize> = of_task(&record.plans, asked);
    let shown = if arguments.shallow { revisions.last().copied().unwrap_or(asked) } else { asked };
    if record.plans[shown].body_dropped {
        // Its text was let go of for others; it is the only one that is wanted now.
        let again = Wanted::Event(record.plans[shown].number);
        let Some(read) = read(reader, session, again, &mut Skipped::default())? else { return Ok(None) };
        record = read.record;
    }
    Ok(record.plans.get(shown).is_some().then(|| plan(&session_id, record, shown, &revisions, arguments.shallow)))
}

/// The revisions of the task of a plan.
fn of_task(plans: &[Plan], plan: usize) -> Vec<usize> {
    (0..plans.len()).filter(|&other| plans[other].task == plans[plan].task).collect()
}

fn plan(session: &str, mut record: Record, shown: usize, revisions: &[usize], shallow: bool) -> Reply<'static> {
    let id = |plan: &Plan| format!("{session}:{}", plan.number);
    let dropped = revisions.iter().filter(|&&other| other != shown).map(|&other| id(&record.plans[other])).collect();
    let (body, source) = record.body(shown).unzip();
    let signal = std::mem::take(&mut record.plans[shown].signal);
    Reply {
        id: id(&record.plans[shown]),
        kind: "plan_event",
        title: Some(signal.title),
        path: Some(signal.path),
        shallow: Some(shallow),
        body: Some(body.map_or(Value::Null, Value::String)),
        body_source: source.filter(|source| *source != "plan_signal"),
        steps: signal.steps,
        status: signal.status,
        dropped_drafts: shallow.then_some(dropped),
        ..Reply::default()
    }
}

fn feedback<T: Transcripts>(
    reader: &Reader<T>,
    session: &Session,
    ordinal: usize,
    arguments: &Body,
    skipped: &mut Skipped,
) -> Result<Option<Reply<'static>>, ToolError> {
    let Some(first) = read(reader, session, Wanted::Plans, skipped)? else { return Ok(None) };
    // Only at the end is it known which answers are for calls of plans; so the text is fetched in a second reading.
    let calls = first.record.calls();
    let of_plans = |(_, answered): &(usize, &crate::record::Answered)| calls.contains_key(answered.call.as_str());
    let Some((place, answered)) = first.record.answers.iter().enumerate().filter(of_plans).nth(ordinal) else {
        return Ok(None);
    };
    let (plan, _) = calls[answered.call.as_str()];
    let plan_id = format!("{}:{}", first.id, first.record.plans[plan].number);
    let verdict = answered.answer.verdict.name();
    let ts = answered.time.clone();
    drop(first);
    let again = read(reader, session, Wanted::AnswerText(place), &mut Skipped::default())?;
    let Some((mut record, text)) = again.and_then(|mut again| {
        let text = again.record.answer_text.take()?;
        Some((again.record, text))
    }) else {
        return Ok(None);
    };
    let pairs = std::mem::take(&mut record.answers[place].answer.pairs);
    Ok(Some(Reply {
        id: arguments.id.clone(),
        kind: "plan_feedback",
        verdict: Some(verdict),
        plan_id: Some(plan_id),
        text: Some(text),
        pairs: Some(pairs.into_iter().map(|pair| PairRow { quote: pair.quote, comment: pair.comment }).collect()),
        ts: Some(ts),
        ..Reply::default()
    }))
}

/// What kind of tool this is, whatever agent calls it so.
fn tool_kind(tool: &str) -> &'static str {
    match &*crate::text::trim(tool).to_lowercase() {
        "edit" | "multiedit" | "multi_edit" | "notebookedit" | "str_replace" | "patch" | "apply_patch"
        | "edit_file" | "update_file" | "file_edit" => "tool_call(edit)",
        "write" | "write_file" | "create_file" | "file" => "tool_call(write)",
        "read" | "read_file" | "view" | "cat" | "open" => "tool_call(read)",
        "bash" | "shell" | "exec_command" | "local_shell_call" | "run_command" | "run_terminal_cmd" | "terminal" => {
            "tool_call(bash)"
        }
        _ => "tool_call(other)",
    }
}

impl Reply<'_> {
    /// Masks every text but the ids, which whoever asks has already.
    fn mask(&mut self, redactor: &mut Redactor) {
        for text in [&mut self.tool, &mut self.title, &mut self.text, self.path.as_mut().unwrap_or(&mut None)] {
            *text = redactor.optional(text.take());
        }
        for value in self.body.iter_mut().chain(self.steps.iter_mut().flatten()) {
            redactor.value(value);
        }
        for pair in self.pairs.iter_mut().flatten() {
            pair.quote = redactor.optional(pair.quote.take());
            pair.comment = redactor.text(std::mem::take(&mut pair.comment));
        }
    }

    /// Cuts the text, or the body where it is one. What is cut was masked before.
    fn cut(&mut self, max_chars: Option<usize>) {
        let text = match (&mut self.text, &mut self.body) {
            (Some(text), _) | (None, Some(Value::String(text))) => text,
            _ => return,
        };
        let Some(max_chars) = max_chars else { return };
        let (kept, more) = cut(text, max_chars);
        if more {
            let kept = kept.len();
            text.truncate(kept);
            text.push_str("…[truncated]");
            self.body_truncated = Some(true);
        }
    }
}
