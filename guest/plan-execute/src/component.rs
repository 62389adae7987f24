//! The WebAssembly component: translates between the bindings and the rules, and holds none.

#![allow(missing_docs, reason = "generated bindings; the contract is documented in wit/")]
#![allow(unsafe_code, reason = "generated bindings")]
#![allow(unreachable_pub, reason = "generated bindings")]

use crate::{
    config,
    draft::Draft,
    error::PlanError,
    journal::{self, Branch, Entry},
    plan, planner, tools,
};
use plan_guest_support::payload;
use std::cell::RefCell;

wit_bindgen::generate!({ path: "../../wit", world: "plan-execute" });

use crate::component::{
    exports::plan_execute::plugin::{
        lifecycle::{self, PluginInfo},
        plans, tools as wit_tools,
    },
    plan_execute::plugin::session_journal as wit,
};

thread_local! {
    /// Lives as long as the instance: one call in our host, the whole process in JavaScript.
    static PLANNER: RefCell<planner::Planner> = RefCell::default();
}

fn with_planner<T>(run: impl FnOnce(&mut planner::Planner) -> T) -> T {
    PLANNER.with_borrow_mut(run)
}

struct Component;
export!(Component);

impl lifecycle::Guest for Component {
    fn info() -> PluginInfo {
        PluginInfo {
            name: "plan-execute".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            custom_types: vec![crate::CUSTOM_TYPE.into()],
            config_schema: config::schema().into(),
        }
    }

    fn configure(config: String) -> Result<(), String> {
        config::check(&config)
    }
}

impl wit_tools::Guest for Component {
    fn list_tools() -> Vec<wit_tools::ToolDefinition> {
        let definition = |tool: plan_guest_support::tool::Definition| wit_tools::ToolDefinition {
            name: tool.name.into(),
            label: tool.label.into(),
            description: tool.description.into(),
            prompt_snippet: tool.prompt_snippet.into(),
            input_schema: tool.input_schema.into(),
            output_schema: tool.output_schema.into(),
            execution_mode: wit_tools::ExecutionMode::Sequential,
            read_only: tool.read_only,
            destructive: tool.destructive,
            idempotent: tool.idempotent,
        };
        tools::definitions().into_iter().map(definition).collect()
    }

    fn call_tool(
        on: &wit::Branch,
        name: String,
        arguments: String,
    ) -> Result<wit_tools::ToolResult, wit_tools::ToolError> {
        match with_planner(|planner| tools::call(planner, on, &name, &arguments)) {
            Ok(text) => Ok(wit_tools::ToolResult { details: text.clone(), text }),
            Err(error) => {
                Err(wit_tools::ToolError { code: error.code.into(), message: error.message, data: error.data })
            }
        }
    }
}

impl plans::Guest for Component {
    fn create(on: &wit::Branch, draft: plans::PlanDraft) -> Result<plans::Plan, plans::PlanError> {
        let dependencies = draft.dependencies.into_iter().map(|dependency| (dependency.step, dependency.depends_on));
        let draft = Draft::typed(draft.title, draft.steps, dependencies);
        Ok(with_planner(|planner| planner.create(on, || Ok(draft)))?.into())
    }

    fn advance(on: &wit::Branch, step: u32, status: plans::StepStatus) -> Result<plans::Plan, plans::PlanError> {
        Ok(with_planner(|planner| planner.advance(on, |_| Ok((step, status.into()))))?.into())
    }

    fn get(on: &wit::Branch) -> Result<plans::Plan, plans::PlanError> {
        Ok(with_planner(|planner| planner.get(on))?.into())
    }

    fn overview(on: &wit::Branch) -> Result<plans::Summary, plans::PlanError> {
        let summary = with_planner(|planner| planner.overview(on))?;
        let blocked = summary.overview.blocked.into_iter();
        Ok(plans::Summary {
            plan: summary.plan.map(Into::into),
            revision: summary.revision,
            digest: summary.digest,
            completed: summary.overview.completed,
            total: summary.overview.total,
            ready: summary.overview.ready,
            blocked: blocked.map(|b| plans::BlockedStep { step: b.step, waiting_for: b.waiting_for }).collect(),
        })
    }
}

impl Branch for wit::Branch {
    fn session_token(&self) -> String {
        wit::Branch::session_token(self)
    }

    fn preferred_encoding(&self) -> payload::Encoding {
        wit::preferred_encoding().into()
    }

    fn latest(&self, custom_type: &str) -> Result<Option<Entry>, journal::ReadError> {
        let entry = wit::Branch::latest(self, custom_type)?;
        Ok(entry.map(|e| Entry { id: e.id, encoding: e.payload.encoding.into(), bytes: e.payload.bytes }))
    }

    fn append(
        &self,
        custom_type: &str,
        encoding: payload::Encoding,
        bytes: Vec<u8>,
    ) -> Result<(), journal::AppendError> {
        let payload = wit::Payload { encoding: encoding.into(), bytes };
        wit::Branch::append(self, custom_type, &payload)?;
        Ok(())
    }
}

impl From<wit::Encoding> for payload::Encoding {
    fn from(encoding: wit::Encoding) -> Self {
        match encoding {
            wit::Encoding::Json => payload::Encoding::Json,
            wit::Encoding::Cbor => payload::Encoding::Cbor,
        }
    }
}

impl From<payload::Encoding> for wit::Encoding {
    fn from(encoding: payload::Encoding) -> Self {
        match encoding {
            payload::Encoding::Json => wit::Encoding::Json,
            payload::Encoding::Cbor => wit::Encoding::Cbor,
        }
    }
}

impl From<wit::ReadError> for journal::ReadError {
    fn from(error: wit::ReadError) -> Self {
        match error {
            wit::ReadError::SessionChanged => Self::SessionChanged,
            wit::ReadError::BranchChanged => Self::BranchChanged,
            wit::ReadError::ReopenRequired(reason) => Self::ReopenRequired(reason),
            wit::ReadError::Denied(reason) => Self::Denied(reason),
            wit::ReadError::Unavailable(reason) => Self::Unavailable(reason),
            wit::ReadError::NotFound(reason) | wit::ReadError::Other(reason) => Self::Other(reason),
        }
    }
}

impl From<wit::AppendError> for journal::AppendError {
    fn from(error: wit::AppendError) -> Self {
        use journal::ReadError::*;
        Self::Refused(match error {
            wit::AppendError::SessionChanged => SessionChanged,
            wit::AppendError::BranchChanged => BranchChanged,
            wit::AppendError::ReopenRequired(reason) => ReopenRequired(reason),
            wit::AppendError::Denied(reason) => Denied(reason),
            wit::AppendError::Unavailable(reason) => Unavailable(reason),
            wit::AppendError::InvalidPayload(reason) | wit::AppendError::Other(reason) => Other(reason),
            wit::AppendError::TooLarge(limit) => return Self::TooLarge(limit),
            wit::AppendError::Failed(reason) => return Self::Failed(reason),
        })
    }
}

impl From<plans::StepStatus> for plan::Status {
    fn from(status: plans::StepStatus) -> Self {
        match status {
            plans::StepStatus::Pending => Self::Pending,
            plans::StepStatus::InProgress => Self::InProgress,
            plans::StepStatus::Done => Self::Done,
            plans::StepStatus::Skipped => Self::Skipped,
        }
    }
}

impl From<plan::Status> for plans::StepStatus {
    fn from(status: plan::Status) -> Self {
        match status {
            plan::Status::Pending => Self::Pending,
            plan::Status::InProgress => Self::InProgress,
            plan::Status::Done => Self::Done,
            plan::Status::Skipped => Self::Skipped,
        }
    }
}

impl From<plan::Plan> for plans::Plan {
    fn from(plan: plan::Plan) -> Self {
        let step = |step: plan::Step| plans::Step {
            id: step.id,
            title: step.title,
            status: step.status.into(),
            depends_on: step.depends_on,
        };
        plans::Plan { title: plan.title, steps: plan.steps.into_iter().map(step).collect() }
    }
}

impl From<PlanError> for plans::PlanError {
    fn from(error: PlanError) -> Self {
        let sentence = error.to_string();
        match error {
            PlanError::NoPlan => Self::NoPlan,
            PlanError::InvalidArguments(faults) => Self::InvalidArguments(
                faults.into_iter().map(|f| plans::InvalidArgument { path: f.path, message: f.message }).collect(),
            ),
            PlanError::DependencyCycle(steps) => Self::DependencyCycle(steps),
            PlanError::UnknownStep { step, .. } => Self::UnknownStep(step),
            PlanError::UnmetPrerequisites { step, waiting_for, .. } => {
                Self::UnmetPrerequisites(plans::BlockedStep { step, waiting_for })
            }
            PlanError::PrerequisiteInUse { step, required_by, .. } => {
                Self::PrerequisiteInUse(plans::RequiredStep { step, required_by })
            }
            PlanError::SavedPlanInvalid { .. } => Self::SavedPlanInvalid(sentence),
            PlanError::SessionChanged => Self::SessionChanged,
            PlanError::BranchChanged => Self::BranchChanged,
            PlanError::ReopenRequired(_) => Self::ReopenRequired(sentence),
            PlanError::Denied(_) => Self::Denied(sentence),
            PlanError::TooLarge(limit) => Self::TooLarge(limit),
            PlanError::Unavailable(_) => Self::Unavailable(sentence),
            PlanError::Other(_) => Self::Other(sentence),
        }
    }
}
