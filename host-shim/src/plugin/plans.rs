//! Typed calls of the interface `plans`.

use super::{Attached, Queued, bindings::exports::plan_execute::plugin::plans as wit};
use crate::{
    Error,
    journal::{Encoding, Payload},
};
use serde::Deserialize;

pub use wit::{
    BlockedStep, Dependency, InvalidArgument, Plan, PlanDraft, PlanError, RequiredStep, Step, StepStatus, Summary,
};

/// The custom type that plans are saved under.
pub const CUSTOM_TYPE: &str = "pi-harness/plan-execute";

/// The plan operations of a plugin that exports `plans`, on one session.
///
/// The outer result of each call is the host's, the inner one the plugin's.
pub struct Plans<'a>(pub(super) &'a Attached);

impl Plans<'_> {
    /// Makes `draft` the plan of the branch, every step pending.
    ///
    /// # Errors
    ///
    /// As [`Attached::queue`].
    pub async fn create(&self, draft: PlanDraft) -> Result<Queued<Result<Plan, PlanError>>, Error> {
        self.0
            .enqueue(move |running| {
                Box::pin(async move {
                    let plans = running.plans()?;
                    let on = running.branch()?;
                    plans.call_create(&mut running.store, on, &draft).await
                })
            })
            .await
    }

    /// Sets the status of one step.
    ///
    /// # Errors
    ///
    /// As [`Attached::queue`].
    pub async fn advance(&self, step: u32, status: StepStatus) -> Result<Queued<Result<Plan, PlanError>>, Error> {
        self.0
            .enqueue(move |running| {
                Box::pin(async move {
                    let plans = running.plans()?;
                    let on = running.branch()?;
                    plans.call_advance(&mut running.store, on, step, status).await
                })
            })
            .await
    }

    /// The plan as it stands.
    ///
    /// # Errors
    ///
    /// As [`Attached::queue`].
    pub async fn get(&self) -> Result<Queued<Result<Plan, PlanError>>, Error> {
        self.0
            .enqueue(|running| {
                Box::pin(async move {
                    let plans = running.plans()?;
                    let on = running.branch()?;
                    plans.call_get(&mut running.store, on).await
                })
            })
            .await
    }

    /// The plan with what a panel shows of it. A branch without a plan is no error.
    ///
    /// # Errors
    ///
    /// As [`Attached::queue`].
    pub async fn overview(&self) -> Result<Queued<Result<Summary, PlanError>>, Error> {
        self.0
            .enqueue(|running| {
                Box::pin(async move {
                    let plans = running.plans()?;
                    let on = running.branch()?;
                    plans.call_overview(&mut running.store, on).await
                })
            })
            .await
    }
}

/// Reads a plan that a plugin has just saved. It was valid when it was saved, so nothing is judged here.
pub(super) fn decode(payload: &Payload) -> Option<Plan> {
    #[derive(Deserialize)]
    struct SavedPlan {
        title: String,
        steps: Vec<SavedStep>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SavedStep {
        id: u32,
        title: String,
        status: SavedStatus,
        depends_on: Option<Vec<u32>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum SavedStatus {
        Pending,
        InProgress,
        Done,
        Skipped,
    }
    let saved: SavedPlan = match payload.encoding {
        Encoding::Json => serde_json::from_slice(&payload.bytes).ok()?,
        Encoding::Cbor => ciborium::from_reader(&payload.bytes[..]).ok()?,
    };
    let step = |step: SavedStep| Step {
        id: step.id,
        title: step.title,
        status: match step.status {
            SavedStatus::Pending => StepStatus::Pending,
            SavedStatus::InProgress => StepStatus::InProgress,
            SavedStatus::Done => StepStatus::Done,
            SavedStatus::Skipped => StepStatus::Skipped,
        },
        depends_on: step.depends_on,
    };
    Some(Plan { title: saved.title, steps: saved.steps.into_iter().map(step).collect() })
}
