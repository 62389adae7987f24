//! `plan-execute log`: every revision of the plan on the branch.

use super::{
    Failure,
    setup::{ComponentOption, SessionOption, damage, open},
    show::refused,
    terminal,
    view::{Paint, hanging, plan_json, status, title},
};
use clap::Args;
use jiff::Timestamp;
use plan_execute_host::{
    Attached,
    journal::{Entry, Journal, Position, ReadError},
    plans::{CUSTOM_TYPE, Plan, PlanError, StepStatus},
};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute log --session session.jsonl
  plan-execute log --session session.jsonl --json

The oldest revision comes first. With --json, one array with an object for each revision.")]
pub(super) struct Log {
    #[command(flatten)]
    session: SessionOption,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    component: ComponentOption,
}

/// How many entries are asked for at once.
const PAGE: u32 = 200;

/// One entry of the plan's type.
struct Revision {
    entry: String,
    time: Option<Timestamp>,
    /// The plan, or why there is none.
    plan: Result<Plan, String>,
    change: Change,
}

/// What a revision did to the one before.
enum Change {
    Created,
    Replaced,
    /// Steps with their status before and after.
    Advanced(Vec<(u32, StepStatus, StepStatus)>),
    Unchanged,
    Invalid,
}

impl Log {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (session, tools) = open(&self.component, &self.session).await?;
        let unavailable = |error: ReadError| Failure::Host(error.to_string());
        let at = session.journal.position().await.map_err(unavailable)?;
        let mut entries = entries(&session.journal, &at).await.map_err(unavailable)?;
        entries.reverse();
        let mut revisions: Vec<Revision> = Vec::new();
        for entry in entries {
            // Each revision is read by the plugin itself, so that its rules judge it.
            tools.session().branch(Some(&entry.id)).await.map_err(unavailable)?;
            let plan = plan(&tools).await?;
            let before = revisions.last().and_then(|revision| revision.plan.as_ref().ok());
            let change = Change::between(before, plan.as_ref().ok());
            let time = entry.timestamp_ms.and_then(|ms| Timestamp::from_millisecond(ms.try_into().ok()?).ok());
            revisions.push(Revision { entry: entry.id, time, plan, change });
        }
        terminal::warn(&damage(&session))?;
        if self.json {
            let list: Vec<Value> = revisions.iter().map(Revision::to_json).collect();
            terminal::print_json(&Value::from(list))?;
            return Ok(());
        }
        let width = terminal::width();
        let mut out = terminal::stdout();
        if revisions.is_empty() {
            writeln!(out, "No plan yet on this branch.")?;
        }
        for line in revisions.iter().flat_map(|revision| revision.render(width)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// The entries of the plan's type on the branch, newest first.
async fn entries(journal: &impl Journal, at: &Position) -> Result<Vec<Entry>, ReadError> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let before = entries.last().map(|entry| entry.id.clone());
        let page = journal.entries(at, CUSTOM_TYPE, before.as_deref(), PAGE).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

async fn plan(tools: &Attached) -> Result<Result<Plan, String>, Failure> {
    match tools.plans()?.get().await?.await? {
        Ok(plan) => Ok(Ok(plan)),
        Err(PlanError::SavedPlanInvalid(reason)) => Ok(Err(reason)),
        Err(error) => Err(refused(&error, Vec::new())),
    }
}

impl Change {
    fn between(before: Option<&Plan>, after: Option<&Plan>) -> Change {
        let (before, after) = match (before, after) {
            (_, None) => return Change::Invalid,
            (None, Some(_)) => return Change::Created,
            (Some(before), Some(after)) => (before, after),
        };
        let same_steps = before.title == after.title
            && before.steps.len() == after.steps.len()
            && before.steps.iter().zip(&after.steps).all(|(a, b)| a.title == b.title && a.depends_on == b.depends_on);
        if !same_steps {
            return Change::Replaced;
        }
        let changed = before.steps.iter().zip(&after.steps).filter(|(a, b)| a.status != b.status);
        let steps: Vec<_> = changed.map(|(a, b)| (b.id, a.status, b.status)).collect();
        if steps.is_empty() { Change::Unchanged } else { Change::Advanced(steps) }
    }

    fn name(&self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Replaced => "replaced",
            Change::Advanced(_) => "advanced",
            Change::Unchanged => "unchanged",
            Change::Invalid => "invalid",
        }
    }
}

impl Revision {
    fn to_json(&self) -> Value {
        let steps: Vec<Value> = match &self.change {
            Change::Advanced(steps) => {
                let step =
                    |(step, from, to): &(u32, _, _)| json!({ "step": step, "from": status(*from), "to": status(*to) });
                steps.iter().map(step).collect()
            }
            _ => Vec::new(),
        };
        json!({
            "entry": self.entry,
            "timestamp": self.time.map(|time| format!("{time:.3}")),
            "change": self.change.name(),
            "steps": steps,
            "plan": self.plan.as_ref().ok().map(plan_json),
            "fault": self.plan.as_ref().err(),
        })
    }

    fn render(&self, width: usize) -> Vec<String> {
        let time = self.time.map_or("(no time)".into(), |time| format!("{time:.0}"));
        let mut lines = hanging("", &format!("{time}  entry {}", title(&self.entry)), width, Paint::Faint);
        let mut say = |text: String, paint| lines.extend(hanging("  ", &text, width, paint));
        match (&self.plan, &self.change) {
            (Err(fault), _) => say(title(fault), Paint::Active),
            (Ok(plan), Change::Created | Change::Replaced) => {
                say(
                    format!("{} ({} steps): {}", self.change.name(), plan.steps.len(), title(&plan.title)),
                    Paint::Heading,
                );
            }
            (Ok(plan), Change::Advanced(steps)) => {
                for (step, from, to) in steps {
                    let name = plan.steps.iter().find(|s| s.id == *step).map(|s| title(&s.title)).unwrap_or_default();
                    say(format!("step {step}: {} -> {}: {name}", status(*from), status(*to)), Paint::Plain);
                }
            }
            (Ok(_), _) => say("saved again without a change".into(), Paint::Faint),
        }
        lines
    }
}
