//! Sessions of the Pi coding agent, with our own plan entries. Lines form a tree, and only the branch that ends in the
//! newest entry counts.
//!
//! A session is read twice: for the tree, of which two hashes and nothing else are kept of each entry, and for the branch.

use crate::{
    json::{self, Arguments, Content, Line as JsonLine, Raw, Text, fields, joined},
    lines,
    record::{Call, Record, Signal},
    skipped::Skipped,
    source::{Failure, File},
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
};

/// The custom type of plan entries.
const PLAN: &str = "pi-harness/plan-execute";
/// What stands in every session with a plan. JSON may write the slash with a backslash before it.
pub const SIGNS: &[&str] = &["plan-execute\""];

/// How many entries of one session are kept track of. A session with more is not read.
const MAX_ENTRIES: usize = 1_000_000;

#[derive(Debug, Default)]
struct Line<'a> {
    kind: Text<'a>,
    id: Text<'a>,
    parent: Text<'a>,
    version: Raw<'a>,
    custom_type: Text<'a>,
    data: Raw<'a>,
    message: Message<'a>,
}
fields!(Line {
    kind: "type",
    id: "id",
    parent: "parentId",
    version: "version",
    custom_type: "customType",
    data: "data",
    message: "message",
});

#[derive(Debug, Default)]
struct Message<'a> {
    role: Text<'a>,
    content: Content<'a, Part<'a>>,
}
fields!(Message { role: "role", content: "content" });

#[derive(Debug, Default)]
struct Part<'a> {
    kind: Text<'a>,
    text: Text<'a>,
    name: Text<'a>,
    arguments: Raw<'a>,
}
fields!(Part { kind: "type", text: "text", name: "name", arguments: "arguments" });

/// Only what the tree is made of.
#[derive(Debug, Default)]
struct Node<'a> {
    kind: Text<'a>,
    id: Text<'a>,
    parent: Text<'a>,
    version: Raw<'a>,
}
fields!(Node { kind: "type", id: "id", parent: "parentId", version: "version" });

/// Reads a session: its id. None where it is another one than was asked for, or no session of Pi, which is counted.
///
/// # Errors
///
/// It cannot be opened.
pub fn read<F: File>(
    open: impl Fn() -> Result<F, Failure>,
    only: Option<&str>,
    record: &mut Record,
    skipped: &mut Skipped,
) -> Result<Option<String>, Failure> {
    let mut tree = Tree::new(only);
    let mut first = Skipped::default();
    lines::read(&mut open()?, &mut first, |line, _| tree.line(line));
    let Some((id, branch)) = tree.finish() else {
        skipped.sessions += u64::from(only.is_none());
        return Ok(None);
    };
    let mut walk = Walk { branch, header: false, entry: 0, last: None };
    lines::read(&mut open()?, skipped, |line, skipped| {
        walk.line(line, record, skipped);
        record.flow()
    });
    Ok(Some(id))
}

/// The tree of a session.
struct Tree<'a> {
    only: Option<&'a str>,
    id: Option<String>,
    /// Version 1 had no tree: its entries follow each other.
    linear: bool,
    /// The hashes of each entry's id and of its parent's; 0 for none.
    entries: Vec<[u64; 2]>,
    given_up: bool,
}

impl<'a> Tree<'a> {
    fn new(only: Option<&'a str>) -> Tree<'a> {
        Tree { only, id: None, linear: false, entries: Vec::new(), given_up: false }
    }

    fn line(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        json::line(bytes, |line| {
            match line {
                JsonLine::Object(text) => {
                    let mut mended = None;
                    // What is broken is no entry; whoever hangs below it stands at the root.
                    let Some(node) = json::object::<Node>(text, &mut mended) else { return };
                    let is_header = node.kind.or_empty() == "session";
                    if self.id.is_none() {
                        self.id = node.id.0.as_deref().filter(|_| is_header).map(str::to_owned);
                        self.linear = version(node.version) < 2.0;
                        self.given_up =
                            self.id.is_none() || self.only.is_some_and(|only| self.id.as_deref() != Some(only));
                    } else if !is_header {
                        self.entries.push([hash(&node.id), hash(&node.parent)]);
                    }
                }
                // To Pi a value of another type is an entry without an id, and no header.
                JsonLine::Other { nothing: false } if self.id.is_none() => self.given_up = true,
                JsonLine::Other { nothing: false } => self.entries.push([0, 0]),
                JsonLine::Other { nothing: true } | JsonLine::Broken => {}
            }
        });
        self.given_up |= self.entries.len() > MAX_ENTRIES;
        if self.given_up { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The session's id, and for each entry whether it is on the branch.
    fn finish(self) -> Option<(String, Vec<bool>)> {
        let id = self.id.filter(|_| !self.given_up)?;
        let mut on_branch = vec![self.linear; self.entries.len()];
        if self.linear {
            return Some((id, on_branch));
        }
        // By id, and of those with the same id the last one, which counts.
        let mut by_id: Vec<u32> = (0..self.entries.len() as u32).collect();
        by_id.sort_unstable_by_key(|&entry| (self.entries[entry as usize][0], entry));
        let find = |id: u64| {
            let end = by_id.partition_point(|&entry| self.entries[entry as usize][0] <= id);
            by_id[..end].last().map(|&entry| entry as usize).filter(|&entry| id != 0 && self.entries[entry][0] == id)
        };
        let mut at = self.entries.last().and_then(|leaf| find(leaf[0]));
        while let Some(entry) = at {
            // Entries may form a circle.
            if std::mem::replace(&mut on_branch[entry], true) {
                break;
            }
            at = find(self.entries[entry][1]);
        }
        Some((id, on_branch))
    }
}

fn hash(id: &Text) -> u64 {
    let Some(id) = id.filled() else { return 0 };
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish().max(1)
}

/// The version of a session file; without one it is 1.
fn version(raw: Raw) -> f64 {
    raw.0.map(|raw| raw.trim_matches('"')).and_then(|raw| raw.trim().parse().ok()).unwrap_or(1.0)
}

/// The second reading.
struct Walk {
    branch: Vec<bool>,
    header: bool,
    entry: usize,
    /// The plan that was saved last: its title, titles of steps and dependencies.
    last: Option<Value>,
}

impl Walk {
    fn line(&mut self, bytes: &[u8], record: &mut Record, skipped: &mut Skipped) {
        json::line(bytes, |line| match line {
            JsonLine::Object(text) => {
                let mut mended = None;
                let Some(line) = json::object::<Line>(text, &mut mended) else {
                    skipped.lines += 1;
                    return;
                };
                if line.kind.or_empty() == "session" {
                    self.header = true;
                } else if self.next() {
                    self.entry_on_branch(line, record, skipped);
                }
            }
            JsonLine::Other { nothing } => {
                skipped.lines += 1;
                if !nothing {
                    self.next();
                }
            }
            JsonLine::Broken => skipped.lines += 1,
        });
    }

    /// Is the next entry on the branch?
    fn next(&mut self) -> bool {
        let on_branch = self.branch.get(self.entry).copied().unwrap_or_default();
        self.entry += 1;
        on_branch
    }

    fn entry_on_branch(&mut self, line: Line, record: &mut Record, skipped: &mut Skipped) {
        match line.kind.or_empty() {
            "message" => message(line.message, record),
            "custom" if line.custom_type.or_empty() == PLAN => match line.data.0.and_then(plan) {
                Some((shape, signal)) => {
                    if self.last.as_ref() == Some(&shape) {
                        record.update_plan(signal.steps.unwrap_or_default(), signal.status);
                    } else {
                        record.plan(signal);
                        self.last = Some(shape);
                    }
                }
                None => skipped.plans += 1,
            },
            _ => {}
        }
    }
}

fn message(message: Message, record: &mut Record) {
    let (text, parts) = match message.content {
        Content::Text(text) => (text, Vec::new()),
        Content::List(parts) => {
            let (texts, rest): (Vec<Part>, Vec<Part>) =
                parts.into_iter().partition(|part| part.kind.or_empty() == "text");
            (joined(texts.into_iter().map(|part| part.text)), rest)
        }
        Content::Object(_) | Content::Nothing => (Cow::Borrowed(""), Vec::new()),
    };
    match message.role.or_empty() {
        "user" => record.user(text),
        "assistant" => {
            let calls: Vec<Call> = parts.into_iter().filter_map(call).collect();
            record.assistant(text, &calls, Vec::new());
        }
        _ => {}
    }
}

fn call(part: Part) -> Option<Call> {
    let name = part.name.0.filter(|name| !name.is_empty() && part.kind.or_empty() == "toolCall")?;
    Some(Call { name, arguments: Arguments::raw(part.arguments), id: None })
}

/// A saved plan: what makes it this revision, and the signal.
fn plan(data: &str) -> Option<(Value, Signal)> {
    let data: Value = json::owned(data)?;
    let title = data.get("title")?.as_str()?;
    let mut rows = Vec::new();
    let mut shape = Vec::new();
    let mut statuses = Vec::new();
    for step in data.get("steps")?.as_array()? {
        let (id, name, status) = (step.get("id")?, step.get("title")?.as_str()?, step.get("status")?.as_str()?);
        let depends_on = match step.get("dependsOn") {
            Some(numbers) => numbers.as_array()?.clone(),
            None => Vec::new(),
        };
        id.as_f64()?;
        shape.push(json!([name, depends_on]));
        rows.push(json!({"id": id, "step": name, "status": status, "dependsOn": depends_on}));
        statuses.push(status);
    }
    let status = super::rolled_up(&statuses, &["done", "skipped"]);
    let signal = Signal {
        title: title.to_owned(),
        tag: "pi:pi-harness/plan-execute",
        steps: Some(rows),
        status,
        ..Signal::default()
    };
    Some((json!([title, shape]), signal))
}
