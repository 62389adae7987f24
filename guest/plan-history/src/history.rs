//! The operation `plan_history`: plans by task, with their versions, kinds and the feedback that shaped them.

use crate::{
    agents::{Agent, Read, Reader},
    answer::Verdict,
    arguments::{History, Kind},
    error::ToolError,
    record::{Plan, Record, Wanted},
    redact::Redactor,
    section,
    skipped::Skipped,
    source::{Failure, Query, Session, Transcripts},
    tools::{Answer, MAX_RESULT},
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// What a row takes besides its texts, in bytes, at least.
const ROW: usize = 250;
/// Sessions of a page.
const PAGE: u32 = 1_000;

const NARROWER: &str =
    "narrow it with session, agent or kind, or leave out texts with bodies \"none\", feedback false or rounds \"last\"";

/// A plan in an answer.
#[derive(Debug, Serialize)]
struct PlanRow {
    id: String,
    session_id: String,
    agent: &'static str,
    title: String,
    task_id: String,
    kind: &'static str,
    version: usize,
    path: Option<String>,
    steps: Option<Vec<Value>>,
    status: Option<&'static str>,
    refs: Vec<Reference>,
    sha256: String,
    /// Absent where no text is brought along; null where the plan has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_source: Option<Option<&'static str>>,
}

/// What a plan refers to: an object with one key.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reference {
    Title(String),
    AgentSignal(String),
    Path(String),
    TaskKey(String),
}

/// One comment of a user on a plan.
#[derive(Debug, Serialize)]
struct FeedbackRow {
    session_id: String,
    agent: &'static str,
    plan_id: Option<String>,
    plan_version: Option<usize>,
    verdict: &'static str,
    round: usize,
    quote: Option<String>,
    comment: String,
    section: Option<String>,
    #[serde(rename = "ref")]
    reference: String,
    ts: Option<String>,
}

/// The rows of one session.
#[derive(Debug, Default)]
struct Rows {
    session: String,
    plans: Vec<PlanRow>,
    feedback: Vec<FeedbackRow>,
}

/// Counts of masked secrets as an object.
#[derive(Debug)]
pub(crate) struct Counts<'a>(pub(crate) &'a Redactor);

impl Counts<'_> {
    /// None where nothing was masked.
    pub(crate) fn of(redactor: &Redactor) -> Option<Counts<'_>> {
        redactor.counts().next().map(|_| Counts(redactor))
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.counts())
    }
}

#[derive(Serialize)]
struct Reply<'a> {
    plans: Flat<'a, PlanRow>,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Flat<'a, FeedbackRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redactions: Option<Counts<'a>>,
}

/// The rows of all sessions as one list.
struct Flat<'a, T>(&'a [Rows], fn(&Rows) -> &[T]);

impl<T> Flat<'_, T> {
    fn count(&self) -> usize {
        self.0.iter().map(|rows| self.1(rows).len()).sum()
    }
}

impl<T: Serialize> Serialize for Flat<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flat_map(self.1))
    }
}

/// Answers `plan_history`.
///
/// # Errors
///
/// The transcripts cannot be listed, or the answer would be too large.
pub fn answer(source: &impl Transcripts, arguments: &History) -> Result<Answer, ToolError> {
    let mut redactor = Redactor::new(arguments.redact);
    let mut skipped = Skipped::default();
    let mut sessions = Vec::new();
    let mut bytes = 0;
    let agents = Agent::ALL.into_iter().filter(|agent| arguments.agent.is_none_or(|only| only == *agent));
    for agent in agents.filter(|agent| *agent != Agent::Opencode) {
        let reader = Reader::new(source, agent, arguments.session.as_deref());
        each_session(source, agent, arguments.session.as_deref(), &mut skipped, |session, skipped| {
            let Some(Read { id, record }) = reader.read(session, Wanted::Plans, skipped) else { return Ok(true) };
            if record.too_many.is_some() {
                return Err(ToolError::too_large(NARROWER));
            }
            if record.plans.is_empty() {
                return Ok(true);
            }
            let mut rows = rows(agent, id, record, arguments, skipped);
            bytes += rows.mask(&mut redactor);
            sessions.push(rows);
            if bytes > MAX_RESULT { Err(ToolError::too_large(NARROWER)) } else { Ok(true) }
        })?;
    }
    // Sessions that share an id keep the order in which they were found.
    sessions.sort_by(|a, b| a.session.cmp(&b.session));
    let plans = Flat(&sessions, |rows| &rows.plans);
    let feedback = Flat(&sessions, |rows| &rows.feedback);
    let reply = Reply {
        count: plans.count(),
        plans,
        feedback_count: arguments.feedback.then(|| feedback.count()),
        feedback: arguments.feedback.then_some(feedback),
        redactions: Counts::of(&redactor),
    };
    Answer::new(&reply, skipped, NARROWER)
}

/// Hands every session of an agent to `take`, until it says that it is enough.
pub(crate) fn each_session(
    source: &impl Transcripts,
    agent: Agent,
    session: Option<&str>,
    skipped: &mut Skipped,
    mut take: impl FnMut(&Session, &mut Skipped) -> Result<bool, ToolError>,
) -> Result<bool, ToolError> {
    let query = Query {
        agent: Some(agent.name().to_owned()),
        session: session.map(str::to_owned),
        // Whoever asks for one session wants to know it, plans or not.
        containing: if session.is_none() { agent.texts() } else { Vec::new() },
    };
    let mut after = None;
    loop {
        let page = match source.list(&query, after.as_deref(), PAGE) {
            Ok(page) => page,
            Err(Failure::NotFound) => return Err(ToolError::unavailable("the listing changed meanwhile")),
            Err(Failure::Denied(reason) | Failure::Unavailable(reason)) => return Err(ToolError::unavailable(&reason)),
        };
        skipped.places += u64::from(page.unreadable);
        for session in page.sessions.iter().filter(|session| session.agent == agent.name()) {
            if !take(session, skipped)? {
                return Ok(false);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(true),
        }
    }
}

/// The place of each plan among the revisions of its task, from 1, and its kind.
fn versions(plans: &[Plan]) -> Vec<(usize, Kind)> {
    let live = plans.last().map(|plan| plan.task.as_str());
    let mut revisions: HashMap<&str, usize> = HashMap::new();
    let place = |(i, plan)| {
        let plan: &Plan = plan;
        let version = revisions.entry(&plan.task).and_modify(|version| *version += 1).or_insert(1);
        let kind = match live {
            Some(live) if live != plan.task => Kind::CompletedMajor,
            _ if i + 1 == plans.len() => Kind::Final,
            _ => Kind::Draft,
        };
        (*version, kind)
    };
    plans.iter().enumerate().map(place).collect()
}

fn rows(agent: Agent, session: String, mut record: Record, arguments: &History, skipped: &mut Skipped) -> Rows {
    let versions = versions(&record.plans);
    let feedback =
        if arguments.feedback { feedback(agent, &session, &record, &versions, arguments, skipped) } else { Vec::new() };
    let last = record.plans.len() - 1;
    let body = if arguments.bodies { record.body(last) } else { None };
    let mut body = Some(body);
    let plans = record.plans.into_iter().zip(versions).filter_map(|(plan, (version, kind))| {
        let with_body = kind == Kind::Final && arguments.bodies;
        let body = if with_body { body.take() } else { None };
        arguments.kind.is_none_or(|only| only == kind).then(|| row(agent, &session, plan, version, kind, body))
    });
    let plans = plans.collect();
    Rows { session, plans, feedback }
}

fn row(
    agent: Agent,
    session: &str,
    plan: Plan,
    version: usize,
    kind: Kind,
    body: Option<Option<(String, &'static str)>>,
) -> PlanRow {
    let refs = references(&plan);
    let (body, body_source) = match body {
        None => (None, None),
        Some(None) => (Some(None), Some(None)),
        Some(Some((text, source))) => (Some(Some(text)), Some(Some(source))),
    };
    PlanRow {
        id: format!("{session}:{}", plan.number),
        session_id: session.to_owned(),
        agent: agent.name(),
        sha256: digest(&plan.signal.title, &refs),
        title: plan.signal.title,
        task_id: plan.task,
        kind: kind.name(),
        version,
        path: plan.signal.path,
        steps: plan.signal.steps,
        status: plan.signal.status,
        refs,
        body,
        body_source,
    }
}

fn references(plan: &Plan) -> Vec<Reference> {
    let mut refs =
        vec![Reference::Title(plan.signal.title.clone()), Reference::AgentSignal(plan.signal.tag.to_owned())];
    refs.extend(plan.signal.path.clone().map(Reference::Path));
    if !plan.task.is_empty() {
        refs.push(Reference::TaskKey(plan.task.clone()));
    }
    refs
}

/// SHA-256 of a plan event, written as Python writes JSON with sorted keys.
fn digest(title: &str, refs: &[Reference]) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let refs: Vec<String> = refs
        .iter()
        .map(|reference| {
            let (key, value) = match reference {
                Reference::Title(value) => ("title", value),
                Reference::AgentSignal(value) => ("agent_signal", value),
                Reference::Path(value) => ("path", value),
                Reference::TaskKey(value) => ("task_key", value),
            };
            format!("{{\"{key}\": {}}}", text(value))
        })
        .collect();
    let event = format!("{{\"refs\": [{}], \"text\": {}, \"type\": \"plan_event\"}}", refs.join(", "), text(title));
    Sha256::digest(event).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn feedback(
    agent: Agent,
    session: &str,
    record: &Record,
    versions: &[(usize, Kind)],
    arguments: &History,
    skipped: &mut Skipped,
) -> Vec<FeedbackRow> {
    let calls = record.calls();
    let mut rows: Vec<FeedbackRow> = Vec::new();
    let mut round = 0;
    let answers = record.answers.iter().filter_map(|answered| Some((answered, calls.get(answered.call.as_str())?)));
    for (ordinal, (answered, &(_, plan))) in answers.enumerate() {
        if answered.answer.verdict == Verdict::Approved {
            continue;
        }
        round += 1;
        if arguments.last_round {
            rows.clear();
        }
        let number = record.plans[plan].number;
        let text = record.plans[plan].signal.body.as_deref();
        for pair in &answered.answer.pairs {
            let section = match (text, &pair.quote) {
                (Some(text), Some(quote)) => section::of_quote(text, quote),
                (None, Some(_)) => {
                    skipped.quotes += u64::from(record.plans[plan].body_dropped);
                    None
                }
                (_, None) => None,
            };
            rows.push(FeedbackRow {
                session_id: session.to_owned(),
                agent: agent.name(),
                plan_id: Some(format!("{session}:{number}")),
                plan_version: Some(versions[plan].0),
                verdict: answered.answer.verdict.name(),
                round,
                quote: pair.quote.clone(),
                comment: pair.comment.clone(),
                section,
                reference: format!("{session}:pf{ordinal}"),
                ts: answered.time.clone(),
            });
        }
    }
    rows
}

impl Rows {
    /// Masks every text. About how many bytes the rows take.
    fn mask(&mut self, redactor: &mut Redactor) -> usize {
        let mut masked = Masked { redactor, bytes: 0 };
        for row in &mut self.plans {
            masked.bytes += ROW;
            for text in [&mut row.id, &mut row.session_id, &mut row.title, &mut row.task_id] {
                masked.text(text);
            }
            masked.optional(&mut row.path);
            for step in row.steps.iter_mut().flatten() {
                masked.redactor.value(step);
                masked.bytes += step.to_string().len();
            }
            for reference in &mut row.refs {
                let (Reference::Title(text)
                | Reference::AgentSignal(text)
                | Reference::Path(text)
                | Reference::TaskKey(text)) = reference;
                masked.text(text);
            }
            masked.optional(row.body.as_mut().unwrap_or(&mut None));
        }
        for row in &mut self.feedback {
            masked.bytes += ROW;
            for text in [&mut row.session_id, &mut row.comment, &mut row.reference] {
                masked.text(text);
            }
            for text in [&mut row.plan_id, &mut row.quote, &mut row.section] {
                masked.optional(text);
            }
        }
        masked.bytes
    }
}

struct Masked<'a> {
    redactor: &'a mut Redactor,
    bytes: usize,
}

impl Masked<'_> {
    fn text(&mut self, text: &mut String) {
        *text = self.redactor.text(std::mem::take(text));
        self.bytes += text.len();
    }

    fn optional(&mut self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.text(text);
        }
    }
}
