//! `plan-execute show`: the plan of a session, for people.

use super::{
    Failure,
    setup::{ComponentOption, SessionOption, damage, open},
    terminal,
    view::{Paint, hanging, plan_json, title},
};
use clap::Args;
use plan_execute_host::{
    journal::Durability,
    plans::{PlanError, Step, StepStatus, Summary},
};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute show --session session.jsonl
  plan-execute show --session session.jsonl --leaf 6a2c4787
  plan-execute show --session session.jsonl --json

Marks: [x] done, [>] in progress, [-] skipped, [ ] pending and ready, [.] pending and waiting for others.
Colour is used on a terminal only, and not where NO_COLOR is set.")]
pub(super) struct Show {
    #[command(flatten)]
    session: SessionOption,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    component: ComponentOption,
}

impl Show {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (session, tools) = open(&self.component, &self.session).await?;
        let summary = tools.plans()?.overview().await?.await?;
        let summary = summary.map_err(|error| refused(&error, damage(&session)))?;
        let position = tools.session().position().await.map_err(|e| Failure::Host(e.to_string()))?;
        terminal::warn(&damage(&session))?;
        if self.json {
            let leaf = position.leaf.as_deref();
            let view = to_json(&summary, &position.session_id, leaf, tools.session().durability());
            terminal::print_json(&view)?;
            return Ok(());
        }
        let text = render(&summary, tools.session().durability(), terminal::width());
        write!(terminal::stdout(), "{text}")?;
        Ok(())
    }
}

/// The error of a typed call as the error of a tool, which is how a user knows it.
pub(super) fn refused(error: &PlanError, damage: Vec<String>) -> Failure {
    let (code, message) = match error {
        PlanError::SavedPlanInvalid(message) => ("saved-plan-invalid", message.clone()),
        PlanError::ReopenRequired(message) => ("reopen-required", message.clone()),
        PlanError::Denied(message) => ("denied", message.clone()),
        PlanError::Unavailable(message) => ("unavailable", message.clone()),
        PlanError::Other(message) => ("other", message.clone()),
        PlanError::SessionChanged => ("session-changed", "The session changed: try again.".into()),
        PlanError::BranchChanged => ("branch-changed", "The branch changed: try again.".into()),
        // Looking at a plan brings none of the others.
        other => ("other", format!("{other:?}")),
    };
    let error = plan_execute_host::ToolError { code: code.into(), message, data: None };
    Failure::Tool { error, damage }
}

fn to_json(summary: &Summary, session: &str, leaf: Option<&str>, durability: Durability) -> Value {
    let blocked: Vec<Value> =
        summary.blocked.iter().map(|b| json!({ "step": b.step, "waitingFor": b.waiting_for })).collect();
    json!({
        "session": session,
        "leaf": leaf,
        "durability": durability.to_string(),
        "revision": summary.revision,
        "digest": summary.digest,
        "completed": summary.completed,
        "total": summary.total,
        "ready": summary.ready,
        "blocked": blocked,
        "plan": summary.plan.as_ref().map(plan_json),
    })
}

/// The plan at this width.
fn render(summary: &Summary, durability: Durability, width: usize) -> String {
    let Some(plan) = &summary.plan else { return "No plan yet on this branch.\n".into() };
    let mut lines = hanging("", &title(&plan.title), width, Paint::Heading);
    lines.push(progress(summary.completed, summary.total, width));
    lines.push(String::new());
    for step in &plan.steps {
        lines.extend(step_lines(step, summary, width));
    }
    lines.push(String::new());
    if !summary.ready.is_empty() {
        lines.extend(hanging("Ready: ", &numbers(&summary.ready), width, Paint::Plain));
    }
    let kept = match durability {
        Durability::Stored => "stored",
        Durability::Memory => "in memory only",
    };
    let entry = title(summary.revision.as_deref().unwrap_or_default());
    lines.extend(hanging("Saved: ", &format!("entry {entry}, {kept}"), width, Paint::Faint));
    lines.push(String::new());
    lines.join("\n")
}

/// `[#####-----] 1 of 2 done`
fn progress(completed: u32, total: u32, width: usize) -> String {
    let words = format!(" {completed} of {total} done");
    let room = width.saturating_sub(words.len() + 2).min(30);
    // A plugin may say anything.
    let filled = if total == 0 { 0 } else { room * completed.min(total) as usize / total as usize };
    format!("[{}{}]{words}", Paint::Done.on(&"#".repeat(filled)), "-".repeat(room - filled))
}

fn step_lines(step: &Step, summary: &Summary, width: usize) -> Vec<String> {
    let waiting = summary.blocked.iter().find(|blocked| blocked.step == step.id).map(|blocked| &blocked.waiting_for);
    let (mark, paint) = match step.status {
        StepStatus::Done => ("[x]", Paint::Done),
        StepStatus::InProgress => ("[>]", Paint::Active),
        StepStatus::Skipped => ("[-]", Paint::Faint),
        StepStatus::Pending if waiting.is_some() => ("[.]", Paint::Faint),
        StepStatus::Pending => ("[ ]", Paint::Plain),
    };
    // Numbers of one and two digits stand in one column.
    let digits = summary.total.to_string().len();
    let mut text = title(&step.title);
    if let Some(waiting) = waiting {
        text.push_str(&format!(" (waits for {})", numbers(waiting)));
    }
    hanging(&format!("{mark} {:>digits$}  ", step.id), &text, width, paint)
}

fn numbers(steps: &[u32]) -> String {
    steps.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
