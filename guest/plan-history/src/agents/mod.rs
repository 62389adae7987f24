//! The agents whose transcripts are read, one module for each. Every one knows the lines of its agent and the signals of
//! plans in them, and nothing else.

pub mod antigravity;
pub mod claude;
pub mod codex;
pub mod pi;

use crate::{
    json::{self, Line},
    lines,
    record::{Record, Wanted},
    scan::Scan,
    skipped::Skipped,
    source::{Failure, File, Part, Session, Transcripts},
};
use std::ops::ControlFlow;

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Antigravity.
    Antigravity,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode, which gives no signals of plans.
    Opencode,
    /// The Pi coding agent, with our own plan entries.
    Pi,
}

impl Agent {
    /// All of them, in the order of their names.
    pub const ALL: [Agent; 5] = [Agent::Antigravity, Agent::Claude, Agent::Codex, Agent::Opencode, Agent::Pi];

    /// The name in arguments and answers.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Antigravity => "antigravity",
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Opencode => "opencode",
            Agent::Pi => "pi",
        }
    }

    /// The agent of this name, whatever the case.
    pub fn from_name(name: &str) -> Option<Agent> {
        Agent::ALL.into_iter().find(|agent| agent.name().eq_ignore_ascii_case(name))
    }

    /// What stands in every transcript with a plan, and whether files of plans count too. None where the transcript says
    /// nothing of plans.
    fn signs(self) -> Option<(&'static [&'static str], bool)> {
        match self {
            Agent::Claude => Some((claude::SIGNS, true)),
            Agent::Codex => Some((codex::SIGNS, false)),
            Agent::Pi => Some((pi::SIGNS, false)),
            Agent::Antigravity | Agent::Opencode => None,
        }
    }

    /// Texts of which one stands in every session with a plan; none where any session may have one.
    pub fn texts(self) -> Vec<String> {
        self.signs().map(|(needles, plan_files)| Scan::texts(needles, plan_files)).unwrap_or_default()
    }
}

/// A session that was read.
#[derive(Debug)]
pub struct Read {
    /// The session's id.
    pub id: String,
    /// Its plans and answers.
    pub record: Record,
}

/// Reads sessions of one agent.
pub struct Reader<'a, T> {
    /// Where they come from.
    pub source: &'a T,
    /// The agent.
    pub agent: Agent,
    /// The one session that is asked for.
    pub only: Option<&'a str>,
    scan: Option<Scan>,
}

impl<'a, T: Transcripts> Reader<'a, T> {
    /// A reader of this agent's sessions, or of the one with this id.
    pub fn new(source: &'a T, agent: Agent, only: Option<&'a str>) -> Reader<'a, T> {
        // Whoever asks for one session wants to know it, plans or not.
        let scan = if only.is_none() { agent.signs() } else { None };
        Reader { source, agent, only, scan: scan.map(|(needles, plan_files)| Scan::new(needles, plan_files)) }
    }

    /// Reads a session. None where it is another one than was asked for, has no plans although only these were wanted, or
    /// cannot be read, which is counted.
    pub fn read(&self, session: &Session, wanted: Wanted, skipped: &mut Skipped) -> Option<Read> {
        let known = session.id.as_deref();
        if self.only.is_some() && known.is_some() && known != self.only {
            return None;
        }
        let mut counted = Skipped::default();
        let read = self.read_known(session, wanted, &mut counted);
        match read {
            Ok(read) => {
                let read = read.filter(|read| self.only.is_none_or(|only| only == read.id));
                // What another session lost is of no concern to the one that was asked for.
                if read.is_some() || self.only.is_none() {
                    skipped.add(counted);
                }
                read
            }
            Err(_) => {
                skipped.sessions += 1;
                None
            }
        }
    }

    fn read_known(&self, session: &Session, wanted: Wanted, skipped: &mut Skipped) -> Result<Option<Read>, Failure> {
        if let Some(scan) = &self.scan
            && !scan.finds(&mut self.source.open(&session.key, Part::Transcript(0))?)
        {
            return Ok(None);
        }
        let mut record = Record::new(wanted);
        let open = || self.source.open(&session.key, Part::Transcript(0));
        let id = match self.agent {
            Agent::Claude => {
                objects(&mut open()?, skipped, |text, skipped| {
                    let read = claude::line(text, &mut record, skipped);
                    (read, record.flow())
                });
                session.id.clone()
            }
            Agent::Codex => {
                let mut codex = codex::Codex::new(self.only);
                objects(&mut open()?, skipped, |text, _| codex.line(text, &mut record));
                codex.id()
            }
            Agent::Pi => pi::read(open, self.only, &mut record, skipped)?,
            Agent::Antigravity => {
                antigravity::read(self.source, &session.key, self.only.is_none(), &mut record, skipped)?;
                session.id.clone()
            }
            Agent::Opencode => None,
        };
        Ok(id.map(|id| Read { id, record }))
    }
}

/// Hands every line that is an object to `take`, which says whether it could be read.
fn objects(
    file: &mut impl File,
    skipped: &mut Skipped,
    mut take: impl FnMut(&str, &mut Skipped) -> (bool, ControlFlow<()>),
) {
    lines::read(file, skipped, |bytes, skipped| {
        json::line(bytes, |line| match line {
            Line::Object(text) => {
                let (read, flow) = take(text, skipped);
                skipped.lines += u64::from(!read);
                flow
            }
            Line::Other { .. } | Line::Broken => {
                skipped.lines += 1;
                ControlFlow::Continue(())
            }
        })
    });
}

/// The status of a plan from those of its steps: `completed` where all are finished, else `in_progress` where one is, else
/// `pending`. None without steps.
fn rolled_up(statuses: &[&str], finished: &[&str]) -> Option<&'static str> {
    if statuses.is_empty() {
        None
    } else if statuses.iter().all(|status| finished.contains(status)) {
        Some("completed")
    } else if statuses.contains(&"in_progress") {
        Some("in_progress")
    } else {
        Some("pending")
    }
}
