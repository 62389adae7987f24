//! How plans are laid out, for people and as JSON.

use super::terminal::escape_all;
use anstyle::{AnsiColor, Style};
use plan_execute_host::plans::{Plan, StepStatus};
use serde_json::{Value, json};
use textwrap::{Options, WordSplitter, core::display_width};

/// What a text is, which says how it is coloured.
#[derive(Clone, Copy)]
pub(super) enum Paint {
    Plain,
    Heading,
    Done,
    Active,
    Faint,
}

impl Paint {
    /// The text with its colour. The stream that it is written to takes colours out again where they have no place.
    pub(super) fn on(self, text: &str) -> String {
        let style = match self {
            Paint::Plain => return text.to_owned(),
            Paint::Heading => Style::new().bold(),
            Paint::Done => AnsiColor::Green.on_default(),
            Paint::Active => AnsiColor::Yellow.on_default().bold(),
            Paint::Faint => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// A text of a plugin or a journal as it may be shown on one line.
pub(super) fn title(text: &str) -> String {
    escape_all(text).into_owned()
}

/// Breaks a text into lines of at most `width` columns; the first begins with `label`, the others below its end.
pub(super) fn hanging(label: &str, text: &str, width: usize, paint: Paint) -> Vec<String> {
    // On a terminal too narrow for label and text, something must stick out.
    let width = width.max(display_width(label) + 8);
    let indent = " ".repeat(display_width(label));
    let options =
        Options::new(width).subsequent_indent(&indent).initial_indent(label).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(|line| paint.on(&line)).collect()
}

/// A plan as the tools print it.
pub(super) fn plan_json(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| {
            let mut json = json!({ "id": step.id, "title": step.title, "status": status(step.status) });
            if let Some(depends_on) = &step.depends_on {
                json["dependsOn"] = json!(depends_on);
            }
            json
        })
        .collect();
    json!({ "title": plan.title, "steps": steps })
}

/// A status as plans name it.
pub(super) fn status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in_progress",
        StepStatus::Done => "done",
        StepStatus::Skipped => "skipped",
    }
}
