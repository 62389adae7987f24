//! Why an operation did not succeed, for the model to read and act on.
//!
//! Each sentence says what is wrong, where, and what would be right. Words in them that people match on are listed in
//! the tests below.

use crate::plan::Status;
use serde_json::{Value, json};
use std::fmt;

/// One fault in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidArgument {
    /// Where, as a JSON Pointer: `/dependencies/0/dependsOn/1`.
    pub path: String,
    /// What is wrong there and what would be right.
    pub message: String,
}

/// Why an operation did not succeed. After each of these nothing was saved, except after [`PlanError::ReopenRequired`],
/// where it is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The branch has no plan.
    #[error("No plan yet on this branch: make one with plan_create.")]
    NoPlan,
    /// The arguments break the rules; the faults stand in the order title, steps, dependencies.
    #[error("{}.", Sentence(.0))]
    InvalidArguments(Vec<InvalidArgument>),
    /// The steps of one cycle in order, the first repeated last.
    #[error("The dependencies run in a circle ({}): remove one of these.", Cycle(.0))]
    DependencyCycle(Vec<u32>),
    /// The plan has no such step.
    #[error("There is no step {step}: this plan has {}.", Steps(*.steps))]
    UnknownStep {
        /// The number that was given.
        step: u32,
        /// How many steps the plan has.
        steps: usize,
    },
    /// The step depends on others that are neither done nor skipped.
    #[error("Step {step} cannot be {} yet: it depends on {} neither done nor skipped, so finish or skip {} first.",
        .status.name(), which(.waiting_for), pronoun(.waiting_for))]
    UnmetPrerequisites {
        /// The step.
        step: u32,
        /// The status that it was to get.
        status: Status,
        /// The prerequisites in question.
        waiting_for: Vec<u32>,
    },
    /// Steps that are in progress or done depend on this one.
    #[error("Step {step} cannot become {}: it is a dependency of {} in progress or done, so set {} back to pending first.",
        .status.name(), which(.required_by), pronoun(.required_by))]
    PrerequisiteInUse {
        /// The step.
        step: u32,
        /// The status that it was to get.
        status: Status,
        /// The steps that need it.
        required_by: Vec<u32>,
    },
    /// The newest plan entry is not a valid plan. It stays as it is.
    #[error(
        "The saved plan in entry {entry} is invalid ({fault}): branch before that entry, or start a new session, to go on."
    )]
    SavedPlanInvalid {
        /// The entry's id.
        entry: String,
        /// What is wrong with it.
        fault: String,
    },
    /// Another session is open now, or this one was opened again.
    #[error("The plan session changed after this call was made, so nothing was saved: call the tool again.")]
    SessionChanged,
    /// The leaf moved.
    #[error(
        "The plan branch changed after this call was made, so nothing was saved: read the plan with plan_get and call the tool again."
    )]
    BranchChanged,
    /// An append ended with unknown outcome, now or earlier.
    #[error("The plan write failed and it is unknown what was kept ({0}): reopen the session to go on.")]
    ReopenRequired(String),
    /// The host did not grant the custom type.
    #[error("The host does not let this plugin use its plan entries ({0}): grant it the type {ty:?}.", ty = crate::CUSTOM_TYPE)]
    Denied(String),
    /// The plan is larger than the limit, in bytes, that the host gives.
    #[error("The plan is larger than the {0} bytes that the host saves in one entry: shorten its titles.")]
    TooLarge(u32),
    /// The storage did not answer, or refused before writing.
    #[error(
        "The session storage is not available ({0}), so nothing was saved: call the tool again once that is mended."
    )]
    Unavailable(String),
    /// Anything else.
    #[error("The session journal refused ({0}).")]
    Other(String),
}

impl PlanError {
    /// One fault in the arguments.
    pub fn argument(path: impl Into<String>, message: impl Into<String>) -> PlanError {
        PlanError::InvalidArguments(vec![InvalidArgument { path: path.into(), message: message.into() }])
    }

    /// The stable name: the case of the WIT variant.
    pub fn code(&self) -> &'static str {
        match self {
            PlanError::NoPlan => "no-plan",
            PlanError::InvalidArguments(_) => "invalid-arguments",
            PlanError::DependencyCycle(_) => "dependency-cycle",
            PlanError::UnknownStep { .. } => "unknown-step",
            PlanError::UnmetPrerequisites { .. } => "unmet-prerequisites",
            PlanError::PrerequisiteInUse { .. } => "prerequisite-in-use",
            PlanError::SavedPlanInvalid { .. } => "saved-plan-invalid",
            PlanError::SessionChanged => "session-changed",
            PlanError::BranchChanged => "branch-changed",
            PlanError::ReopenRequired(_) => "reopen-required",
            PlanError::Denied(_) => "denied",
            PlanError::TooLarge(_) => "too-large",
            PlanError::Unavailable(_) => "unavailable",
            PlanError::Other(_) => "other",
        }
    }

    /// The particulars, for a program to act on.
    pub fn data(&self) -> Option<Value> {
        Some(match self {
            PlanError::InvalidArguments(faults) => {
                let faults: Vec<Value> = faults.iter().map(|f| json!({"path": f.path, "message": f.message})).collect();
                json!({ "arguments": faults })
            }
            PlanError::DependencyCycle(steps) => json!({ "cycle": steps }),
            PlanError::UnknownStep { step, steps } => json!({ "step": step, "steps": steps }),
            PlanError::UnmetPrerequisites { step, waiting_for, .. } => {
                json!({ "step": step, "waitingFor": waiting_for })
            }
            PlanError::PrerequisiteInUse { step, required_by, .. } => {
                json!({ "step": step, "requiredBy": required_by })
            }
            PlanError::SavedPlanInvalid { entry, fault } => json!({ "entry": entry, "fault": fault }),
            PlanError::TooLarge(limit) => json!({ "limit": limit }),
            _ => return None,
        })
    }
}

/// The faults joined to one sentence.
struct Sentence<'a>(&'a [InvalidArgument]);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{}", fault.message)?;
            if !fault.path.is_empty() {
                write!(f, " (at {})", fault.path)?;
            }
        }
        Ok(())
    }
}

struct Cycle<'a>(&'a [u32]);

impl fmt::Display for Cycle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pair) in self.0.windows(2).enumerate() {
            let separator = if i == 0 { "step " } else { ", " };
            write!(f, "{separator}{} depends on {}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

struct Steps(usize);

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("step 1 alone"),
            n => write!(f, "steps 1-{n}"),
        }
    }
}

/// "step 3, which is", "steps 1, 2 and 3, which are"
fn which(steps: &[u32]) -> String {
    match steps {
        [first @ .., last] if !first.is_empty() => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("steps {} and {last}, which are", first.join(", "))
        }
        one => format!("step {}, which is", one.iter().map(u32::to_string).collect::<String>()),
    }
}

fn pronoun(numbers: &[u32]) -> &'static str {
    if numbers.len() == 1 { "it" } else { "them" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people match on (DESIGN, "Rules of a plan"), and the whole sentence for whoever changes it.
    #[test]
    fn sentences() {
        let fault = |path: &str, message: &str| InvalidArgument { path: path.into(), message: message.into() };
        for (error, words, sentence) in [
            (PlanError::NoPlan, &["No plan"][..], "No plan yet on this branch: make one with plan_create."),
            (
                PlanError::InvalidArguments(vec![fault("/a", "one thing"), fault("", "another")]),
                &[],
                "one thing (at /a); another.",
            ),
            (
                PlanError::DependencyCycle(vec![1, 3, 1]),
                &["depend"],
                "The dependencies run in a circle (step 1 depends on 3, 3 depends on 1): remove one of these.",
            ),
            (PlanError::UnknownStep { step: 7, steps: 3 }, &["step"], "There is no step 7: this plan has steps 1-3."),
            (
                PlanError::UnknownStep { step: 0, steps: 1 },
                &["step"],
                "There is no step 0: this plan has step 1 alone.",
            ),
            (
                PlanError::UnmetPrerequisites { step: 3, status: Status::Done, waiting_for: vec![1, 2] },
                &["depend", "step"],
                "Step 3 cannot be done yet: it depends on steps 1 and 2, which are neither done nor skipped, so finish or skip them first.",
            ),
            (
                PlanError::PrerequisiteInUse { step: 1, status: Status::Pending, required_by: vec![2] },
                &["depend", "step"],
                "Step 1 cannot become pending: it is a dependency of step 2, which is in progress or done, so set it back to pending first.",
            ),
            (
                PlanError::SavedPlanInvalid { entry: "abcd".into(), fault: "no title".into() },
                &["plan"],
                "The saved plan in entry abcd is invalid (no title): branch before that entry, or start a new session, to go on.",
            ),
            (
                PlanError::SessionChanged,
                &["session changed"],
                "The plan session changed after this call was made, so nothing was saved: call the tool again.",
            ),
            (
                PlanError::BranchChanged,
                &["branch changed"],
                "The plan branch changed after this call was made, so nothing was saved: read the plan with plan_get and call the tool again.",
            ),
            (
                PlanError::ReopenRequired("disk".into()),
                &["write failed", "reopen"],
                "The plan write failed and it is unknown what was kept (disk): reopen the session to go on.",
            ),
        ] {
            let text = error.to_string();
            for word in words {
                assert!(text.contains(word), "{text} lacks {word}");
            }
            assert_eq!(text, sentence);
        }
    }
}
