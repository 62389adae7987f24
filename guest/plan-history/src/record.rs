//! The events of one session, numbered, and what of them concerns plans.
//!
//! Every agent's transcript comes down to messages of the user and of the model, and signals of plans. Their order alone
//! numbers them; nothing here knows a clock.

use crate::{
    answer::{self, Answer},
    json::Arguments,
    text::is_blank,
    time,
    title::key,
};
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap, ops::ControlFlow};

/// How many bytes of plan texts are kept at a time, so that a quote finds its section. Older ones go first.
const MAX_TEXTS: usize = 8 << 20;
/// How many bytes the plans and answers of one session may take otherwise.
const MAX_RECORDS: usize = 8 << 20;

/// A tool call of the model.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The tool; not empty.
    pub name: Cow<'a, str>,
    /// What it was called with.
    pub arguments: Arguments<'a>,
    /// Names the call for its result, where it has a name.
    pub id: Option<Cow<'a, str>>,
}

/// A sign that the model made or changed a plan.
#[derive(Debug, Clone, Default)]
pub struct Signal {
    /// The plan's title.
    pub title: String,
    /// The kind of signal: `claude:ExitPlanMode`.
    pub tag: &'static str,
    /// The file that holds the plan.
    pub path: Option<String>,
    /// What makes revisions of one task out of plans; the normalised title where there is nothing better.
    pub task: Option<String>,
    /// The plan's text.
    pub body: Option<String>,
    /// The steps as they are given out.
    pub steps: Option<Vec<Value>>,
    /// The status of the plan as a whole.
    pub status: Option<&'static str>,
    /// The call that answers refer to.
    pub call: Option<String>,
}

/// One revision of a plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The number of the event.
    pub number: u64,
    /// What the signal said, without the text.
    pub signal: Signal,
    /// The key of its task.
    pub task: String,
    /// The text was let go of, to save memory.
    pub body_dropped: bool,
}

/// An answer to a tool call. Whether the call was one of a plan is known at the end only.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The call.
    pub call: String,
    /// What was said.
    pub answer: Answer,
    /// When, in UTC.
    pub time: Option<String>,
}

/// An event other than a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What the user wrote.
    User(String),
    /// What the model wrote.
    Assistant(String),
    /// A call of a tool.
    Call {
        /// The tool.
        tool: String,
        /// The decoded arguments.
        arguments: Value,
    },
}

/// What is looked for in a session besides its plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Plans and answers.
    Plans,
    /// The event with this number.
    Event(u64),
    /// The text of the answer that was found in this place, whatever call it was for.
    AnswerText(usize),
}

/// More plans and answers than memory has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// The plans and answers of one session.
#[derive(Debug)]
pub struct Record {
    wanted: Wanted,
    next: u64,
    /// The plans in order.
    pub plans: Vec<Plan>,
    /// The answers in order, also those to other calls.
    pub answers: Vec<Answered>,
    /// The event that was wanted, where it is no plan.
    pub event: Option<Event>,
    /// The text of the answer that was wanted.
    pub answer_text: Option<String>,
    /// There was more than memory has room for.
    pub too_many: Option<TooMany>,
    last_task_file: Option<String>,
    texts: usize,
    /// The oldest plan that may still have its text.
    oldest_text: usize,
    records: usize,
}

impl Record {
    /// An empty one.
    pub fn new(wanted: Wanted) -> Record {
        Record {
            wanted,
            next: 0,
            plans: Vec::new(),
            answers: Vec::new(),
            event: None,
            answer_text: None,
            too_many: None,
            last_task_file: None,
            texts: 0,
            oldest_text: 0,
            records: 0,
        }
    }

    /// Is there reason to read on?
    pub fn flow(&self) -> ControlFlow<()> {
        if self.too_many.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The user wrote this.
    pub fn user(&mut self, text: Cow<str>) {
        if !is_blank(&text) {
            self.number(|| Event::User(text.into_owned()));
        }
    }

    /// The model wrote this, called these tools, and gave these signals by it.
    pub fn assistant(&mut self, text: Cow<str>, calls: &[Call], signals: Vec<Signal>) {
        if !is_blank(&text) {
            self.number(|| Event::Assistant(text.into_owned()));
        }
        for call in calls {
            self.number(|| Event::Call { tool: call.name.clone().into_owned(), arguments: call.arguments.decoded() });
        }
        for signal in signals {
            self.plan(signal);
        }
    }

    /// A plan was made or changed.
    pub fn plan(&mut self, signal: Signal) {
        let number = self.next;
        self.next += 1;
        let task = signal.task.clone().unwrap_or_else(|| key(&signal.title));
        self.note(signal.title.len() + task.len() + signal.path.as_ref().map_or(0, String::len) + 200);
        self.note(signal.steps.iter().flatten().map(size).sum());
        self.texts += signal.body.as_ref().map_or(0, String::len);
        self.plans.push(Plan { number, signal, task, body_dropped: false });
        // The newest one is the final one, perhaps, so it stays whatever its size.
        while self.texts > MAX_TEXTS && self.oldest_text + 1 < self.plans.len() {
            let oldest = &mut self.plans[self.oldest_text];
            self.oldest_text += 1;
            if self.wanted != Wanted::Event(oldest.number)
                && let Some(body) = oldest.signal.body.take()
            {
                self.texts -= body.len();
                oldest.body_dropped = true;
            }
        }
    }

    /// The newest plan is as it was but for its statuses.
    pub fn update_plan(&mut self, steps: Vec<Value>, status: Option<&'static str>) {
        if let Some(plan) = self.plans.last_mut() {
            plan.signal.steps = Some(steps);
            plan.signal.status = status;
        }
    }

    /// A tool call got this result.
    pub fn result(&mut self, call: &str, text: &str, time: &str) {
        let Some(answer) = answer::read(text) else { return };
        if self.wanted == Wanted::AnswerText(self.answers.len()) {
            self.answer_text = Some(text.to_owned());
        }
        let pairs =
            answer.pairs.iter().map(|pair| pair.quote.as_ref().map_or(0, String::len) + pair.comment.len() + 50);
        self.note(pairs.sum::<usize>() + answer.edited.as_ref().map_or(0, String::len) + call.len() + 150);
        self.answers.push(Answered { call: call.to_owned(), answer, time: time::utc(time) });
    }

    /// The file of the plan that was written last.
    pub fn last_task_file(&mut self) -> &mut Option<String> {
        &mut self.last_task_file
    }

    /// For each call of a plan the first and the last of the plans that it made. Lines of a session that was resumed may
    /// bring a call twice.
    pub fn calls(&self) -> HashMap<&str, (usize, usize)> {
        let mut calls = HashMap::new();
        for (i, plan) in self.plans.iter().enumerate() {
            if let Some(call) = &plan.signal.call {
                calls.entry(call.as_str()).or_insert((i, i)).1 = i;
            }
        }
        calls
    }

    /// The text of a plan and where it comes from: from the user, who edited it before approving, else from the signal.
    pub fn body(&mut self, plan: usize) -> Option<(String, &'static str)> {
        let call = self.plans[plan].signal.call.clone();
        let edited = call.and_then(|call| {
            self.answers
                .iter_mut()
                .filter(|answered| answered.call == call)
                .find_map(|answered| answered.answer.edited.take())
        });
        match edited {
            Some(text) => Some((text, "approval_edited_by_user")),
            None => self.plans[plan].signal.body.take().map(|text| (text, "plan_signal")),
        }
    }

    fn number(&mut self, event: impl FnOnce() -> Event) {
        if self.wanted == Wanted::Event(self.next) {
            self.event = Some(event());
        }
        self.next += 1;
    }

    fn note(&mut self, bytes: usize) {
        self.records += bytes;
        if self.records > MAX_RECORDS {
            self.too_many = Some(TooMany);
        }
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 24,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 24,
        Value::Object(object) => object.iter().map(|(key, value)| key.len() + size(value) + 48).sum::<usize>() + 24,
        _ => 16,
    }
}
