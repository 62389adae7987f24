//! What a plan is, and how a step's status may change.

use crate::error::PlanError;
use plan_guest_support::text;
use serde::Serialize;
use std::fmt;

/// The most steps of a plan; at least one is needed.
pub const MAX_STEPS: usize = 50;
/// The most prerequisites that a step may name, repeats counted.
pub const MAX_PREREQUISITES: usize = 50;
/// The longest title of a plan or step, in UTF-16 code units.
pub const MAX_TITLE: usize = 500;

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Finished.
    Done,
    /// Not needed any more.
    Skipped,
}

impl Status {
    /// All of them, in the order in which errors name them.
    pub const ALL: [Status; 4] = [Status::Pending, Status::InProgress, Status::Done, Status::Skipped];

    /// The name in saved plans and tool arguments.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Done => "done",
            Status::Skipped => "skipped",
        }
    }

    /// The status of this name.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// May steps that depend on one of this status start?
    pub fn satisfies(self) -> bool {
        matches!(self, Status::Done | Status::Skipped)
    }

    /// Must all prerequisites of a step of this status be satisfied?
    pub fn needs_prerequisites(self) -> bool {
        matches!(self, Status::InProgress | Status::Done)
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The step's place in the plan, from 1.
    pub(crate) id: u32,
    /// What is to be done.
    pub(crate) title: String,
    /// How far it is.
    pub(crate) status: Status,
    /// The steps that must be done or skipped before this one starts; absent where none were ever named.
    #[serde(rename = "dependsOn", skip_serializing_if = "Option::is_none")]
    pub(crate) depends_on: Option<Vec<u32>>,
}

impl Step {
    /// The step's place in the plan, from 1.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What is to be done: 1 to 500 UTF-16 code units, not blank.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How far the step is.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The prerequisites as they were named, without repeats; `None` where the step never named any.
    pub fn depends_on(&self) -> Option<&[u32]> {
        self.depends_on.as_deref()
    }

    /// The prerequisites.
    pub fn prerequisites(&self) -> &[u32] {
        self.depends_on.as_deref().unwrap_or_default()
    }
}

/// A valid plan. Drafts and saved entries become one in [`crate::draft`] and [`crate::saved`], and nowhere else.
///
/// Serialised as JSON it is, key by key, what the reference plugin saves and prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// What the plan is for.
    pub(crate) title: String,
    /// The steps in order.
    pub(crate) steps: Vec<Step>,
}

impl Plan {
    /// What the plan is for: 1 to 500 UTF-16 code units, not blank.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The steps in order; each id is the step's place.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step of this number.
    pub fn step(&self, id: u32) -> Option<&Step> {
        self.steps.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    /// The prerequisites of `step` that are neither done nor skipped, in the order in which the step names them.
    pub fn waiting_for(&self, step: &Step) -> Vec<u32> {
        let satisfied = |&id: &u32| self.step(id).is_some_and(|prerequisite| prerequisite.status.satisfies());
        step.prerequisites().iter().copied().filter(|id| !satisfied(id)).collect()
    }

    /// The plan with another status of one step.
    ///
    /// Any status may follow any, as long as afterwards every step that is in progress or done has all its prerequisites
    /// done or skipped (DESIGN, "Rules of a plan"). That one rule also keeps a prerequisite that others already built on.
    ///
    /// # Errors
    ///
    /// * [`PlanError::UnknownStep`]
    /// * [`PlanError::UnmetPrerequisites`]: the step itself would break the rule.
    /// * [`PlanError::PrerequisiteInUse`]: steps that depend on it would.
    pub fn advanced(mut self, id: u32, status: Status) -> Result<Plan, PlanError> {
        let Some(index) = usize::try_from(id).ok().and_then(|id| id.checked_sub(1)).filter(|&i| i < self.steps.len())
        else {
            return Err(PlanError::UnknownStep { step: id, steps: self.steps.len() });
        };
        self.steps[index].status = status;
        // The plan was valid, so only this step and those that depend on it can break the rule now.
        if let Some(waiting_for) = self.unmet(&self.steps[index]) {
            return Err(PlanError::UnmetPrerequisites { step: id, status, waiting_for });
        }
        let required_by: Vec<u32> = self.steps.iter().filter(|step| self.unmet(step).is_some()).map(Step::id).collect();
        if !required_by.is_empty() {
            return Err(PlanError::PrerequisiteInUse { step: id, status, required_by });
        }
        Ok(self)
    }

    /// What an active or completed step lacks, where it lacks something.
    pub(crate) fn unmet(&self, step: &Step) -> Option<Vec<u32>> {
        if !step.status.needs_prerequisites() {
            return None;
        }
        Some(self.waiting_for(step)).filter(|missing| !missing.is_empty())
    }
}

/// What is wrong with a title that is used as it stands, or nothing. `what` names it in the sentence.
pub(crate) fn title_fault(what: impl fmt::Display, title: &str) -> Option<String> {
    if text::is_blank(title) {
        return Some(format!("{what} is blank and must hold 1-{MAX_TITLE} characters"));
    }
    // A text never has more code units than bytes.
    if title.len() <= MAX_TITLE {
        return None;
    }
    let units = text::utf16_len(title);
    (units > MAX_TITLE).then(|| format!("{what} has {units} UTF-16 code units and may have at most {MAX_TITLE}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::*;

    fn plan(steps: &[(Status, &[u32])]) -> Plan {
        let step = |(i, (status, depends_on)): (usize, &(Status, &[u32]))| Step {
            id: i as u32 + 1,
            title: format!("Step {}", i + 1),
            status: *status,
            depends_on: (!depends_on.is_empty()).then(|| depends_on.to_vec()),
        };
        Plan { title: "Plan".into(), steps: steps.iter().enumerate().map(step).collect() }
    }

    #[test]
    fn status_changes() {
        let unmet = |step, status, waiting_for: &[u32]| {
            Err(PlanError::UnmetPrerequisites { step, status, waiting_for: waiting_for.to_vec() })
        };
        let in_use = |step, status, required_by: &[u32]| {
            Err(PlanError::PrerequisiteInUse { step, status, required_by: required_by.to_vec() })
        };
        let free: &[(Status, &[u32])] = &[(Pending, &[])];
        let chain: &[(Status, &[u32])] = &[(Pending, &[]), (Pending, &[1]), (Pending, &[1, 2])];
        let built_on: &[(Status, &[u32])] = &[(Done, &[]), (Done, &[1]), (InProgress, &[1, 2]), (Skipped, &[1])];
        let skipped_early: &[(Status, &[u32])] = &[(Pending, &[]), (Skipped, &[1]), (Done, &[2])];
        for (steps, id, status, expected) in [
            (free, 1, Pending, Ok(())),
            (free, 1, InProgress, Ok(())),
            (free, 1, Done, Ok(())),
            (free, 1, Skipped, Ok(())),
            (free, 0, Done, Err(PlanError::UnknownStep { step: 0, steps: 1 })),
            (free, 2, Done, Err(PlanError::UnknownStep { step: 2, steps: 1 })),
            (free, u32::MAX, Done, Err(PlanError::UnknownStep { step: u32::MAX, steps: 1 })),
            (chain, 2, Pending, Ok(())),
            (chain, 2, Skipped, Ok(())),
            (chain, 2, InProgress, unmet(2, InProgress, &[1])),
            (chain, 3, Done, unmet(3, Done, &[1, 2])),
            (chain, 1, InProgress, Ok(())),
            (built_on, 1, Pending, in_use(1, Pending, &[2, 3])),
            (built_on, 1, InProgress, in_use(1, InProgress, &[2, 3])),
            (built_on, 1, Skipped, Ok(())),
            (built_on, 2, InProgress, in_use(2, InProgress, &[3])),
            (built_on, 3, Pending, Ok(())),
            (built_on, 3, Done, Ok(())),
            (built_on, 4, Done, Ok(())),
            // A skipped step needs nothing; once active again, it does.
            (skipped_early, 2, Done, unmet(2, Done, &[1])),
            (skipped_early, 2, Pending, in_use(2, Pending, &[3])),
            (skipped_early, 1, Done, Ok(())),
        ] {
            let result = plan(steps).advanced(id, status).map(|after| {
                assert_eq!(after.step(id).expect("it was changed").status, status);
            });
            assert_eq!(result, expected, "step {id} to {status:?} in {steps:?}");
        }
    }

    #[test]
    fn names_are_those_that_serde_writes() {
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).expect("plain data"), status.name());
            assert_eq!(Status::from_name(status.name()), Some(status));
        }
        for name in ["", "Done", "in-progress", "done "] {
            assert_eq!(Status::from_name(name), None, "{name}");
        }
    }
}
