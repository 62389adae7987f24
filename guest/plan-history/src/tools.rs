//! The operations as tools for a model: JSON in, JSON out.

use crate::{arguments, body, error::ToolError, history, skipped::Skipped, source::Transcripts};
use plan_guest_support::{text::excerpt, tool::Definition};
use serde::Serialize;
use std::io::{self, Write};

/// The largest answer, in bytes.
pub const MAX_RESULT: usize = 8 << 20;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// JSON text.
    pub text: String,
    /// What was passed over.
    pub skipped: Skipped,
}

impl Answer {
    /// The answer as text.
    ///
    /// # Errors
    ///
    /// It is too large; `narrower` says how to ask for less.
    pub(crate) fn new(reply: &impl Serialize, skipped: Skipped, narrower: &str) -> Result<Answer, ToolError> {
        let mut text = Limited(Vec::new());
        // Plain data, so nothing but its size can be wrong with it.
        serde_json::to_writer(&mut text, reply).map_err(|_| ToolError::too_large(narrower))?;
        Ok(Answer { text: String::from_utf8(text.0).expect("JSON is UTF-8"), skipped })
    }

    /// The answer for the harness: the same, and under `skipped` what was passed over, where anything was.
    pub fn details(&self) -> String {
        if self.skipped.is_none() {
            return self.text.clone();
        }
        let skipped = serde_json::to_string(&self.skipped).expect("plain data");
        let open = self.text.strip_suffix('}').expect("an answer is an object");
        format!("{open},\"skipped\":{skipped}}}")
    }
}

/// Takes as much as an answer may hold.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RESULT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The two tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    History,
    Body,
}

const TOOLS: [(&str, Tool); 2] = [("plan_history", Tool::History), ("plan_body", Tool::Body)];

/// The definitions, always the same in the same order.
pub fn definitions() -> Vec<Definition> {
    TOOLS.iter().map(|&(name, tool)| definition(name, tool)).collect()
}

fn definition(name: &'static str, tool: Tool) -> Definition {
    let (label, description, prompt_snippet, input_schema, output_schema) = match tool {
        Tool::History => (
            "Plan history",
            "Finds the plans in the transcripts of coding agents on this machine (Claude Code, Codex, Antigravity, Pi): each \
                revision with its task, version and kind, the text of each session's final plan, and what the user said of \
                plans, as pairs of a quote and a comment. Secrets are masked. Ask for one session where you can. Changes \
                nothing.",
            "plan_history: see which plans earlier sessions had and what feedback shaped them",
            include_str!("../schemas/plan_history.json"),
            include_str!("../schemas/history.json"),
        ),
        Tool::Body => (
            "Plan text",
            "Returns the whole text of one plan, event or answer by its id from plan_history, such as SESSION:7 or \
                SESSION:pf0. With shallow, the newest revision of the plan's task. Secrets are masked. Changes nothing.",
            "plan_body: read the whole text of a plan, or of an answer to one, from plan_history",
            include_str!("../schemas/plan_body.json"),
            include_str!("../schemas/body.json"),
        ),
    };
    Definition {
        name,
        label,
        description,
        prompt_snippet,
        input_schema,
        output_schema,
        read_only: true,
        destructive: false,
        idempotent: true,
    }
}

/// Runs one tool.
///
/// # Errors
///
/// Every refusal is one that the model can read.
pub fn call(source: &impl Transcripts, name: &str, arguments: &str) -> Result<Answer, ToolError> {
    match TOOLS.iter().find(|(known, _)| *known == name) {
        Some((_, Tool::History)) => history::answer(source, &arguments::history(arguments)?),
        Some((_, Tool::Body)) => body::answer(source, &arguments::body(arguments)?),
        None => {
            let names = TOOLS.map(|(name, _)| name).join(", ");
            Err(ToolError {
                code: "unknown-tool",
                message: format!("There is no tool {:?}: this plugin has {names}.", excerpt(name, 40)),
                data: None,
            })
        }
    }
}
