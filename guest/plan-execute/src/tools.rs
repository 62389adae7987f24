//! The plan operations as tools for a model: JSON in, JSON out.

use crate::{
    draft::pointer_token,
    error::{InvalidArgument, PlanError},
    journal::Branch,
    plan::Status,
    planner::Planner,
};
use plan_guest_support::{
    loose::{Found, Integer, Loose, Pick, UnknownKeys},
    loose_object,
    payload::decode_json,
    text::excerpt,
    tool::Definition,
};

/// An error for the model to read and act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// Stable.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// JSON text with the particulars.
    pub data: Option<String>,
}

impl From<PlanError> for ToolError {
    fn from(error: PlanError) -> Self {
        ToolError { code: error.code(), message: error.to_string(), data: error.data().map(|data| data.to_string()) }
    }
}

/// The three tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Create,
    Advance,
    Get,
}

const TOOLS: [(&str, Tool); 3] =
    [("plan_create", Tool::Create), ("plan_advance", Tool::Advance), ("plan_get", Tool::Get)];

/// The definitions, always the same in the same order.
pub fn definitions() -> Vec<Definition> {
    TOOLS.iter().map(|&(name, tool)| definition(name, tool)).collect()
}

fn definition(name: &'static str, tool: Tool) -> Definition {
    let output_schema = include_str!("../schemas/plan.json");
    match tool {
        Tool::Create => Definition {
            name,
            label: "Create plan",
            description: "Creates the plan of this conversation branch: a title, 1-50 steps in order, and optionally which \
                steps must wait for which others. Every step starts as pending. It replaces the branch's current plan, if \
                there is one. Returns the plan with its step numbers.",
            prompt_snippet: "plan_create: lay out work of several steps as a plan with dependencies",
            input_schema: include_str!("../schemas/plan_create.json"),
            output_schema,
            read_only: false,
            destructive: true,
            idempotent: true,
        },
        Tool::Advance => Definition {
            name,
            label: "Advance plan",
            description: "Sets the status of one step of the plan: pending, in_progress, done or skipped. A step can only be \
                in progress or done when all steps that it depends on are done or skipped, and these must stay so while it \
                is. Returns the whole plan.",
            prompt_snippet: "plan_advance: record that a step of the plan was started, finished or skipped",
            input_schema: include_str!("../schemas/plan_advance.json"),
            output_schema,
            read_only: false,
            destructive: false,
            idempotent: true,
        },
        Tool::Get => Definition {
            name,
            label: "Get plan",
            description: "Returns the plan of this conversation branch: its title and every step with number, title, status \
                and dependencies. Changes nothing.",
            prompt_snippet: "plan_get: read the current plan and how far it is",
            input_schema: include_str!("../schemas/plan_get.json"),
            output_schema,
            read_only: true,
            destructive: false,
            idempotent: true,
        },
    }
}

/// Runs one tool. The answer is the plan exactly as `JSON.stringify` writes it.
///
/// # Errors
///
/// Every refusal is one that the model can read.
pub fn call<B: Branch>(planner: &mut Planner, on: &B, name: &str, arguments: &str) -> Result<String, ToolError> {
    let Some(&(_, tool)) = TOOLS.iter().find(|(known, _)| *known == name) else {
        let names = TOOLS.map(|(name, _)| name).join(", ");
        return Err(ToolError {
            code: "unknown-tool",
            message: format!("There is no tool {:?}: this plugin has {names}.", excerpt(name, 40)),
            data: None,
        });
    };
    let plan = match tool {
        Tool::Create => planner.create(on, || read(arguments)),
        Tool::Advance => planner.advance(on, |plan| read::<Change>(arguments)?.into_change(plan.steps().len())),
        Tool::Get => planner.get(on).and_then(|plan| read::<Nothing>(arguments)?.check().map(|()| plan)),
    }?;
    Ok(serde_json::to_string(&plan).expect("plain data"))
}

/// Reads the arguments of a tool as an object.
fn read<T: for<'de> Pick<'de>>(arguments: &str) -> Result<T, PlanError> {
    match decode_json(arguments).map_err(|e| PlanError::argument("", format!("the arguments are {e}")))? {
        Loose::Value(arguments) => Ok(arguments),
        Loose::Other(found) => Err(PlanError::argument("", format!("the arguments must be an object, not {found}"))),
    }
}

/// The arguments of `plan_advance`.
#[derive(Debug, Default)]
struct Change {
    /// The number of the step.
    step: Option<Loose<Integer>>,
    /// Its new status.
    status: Option<Loose<String>>,
    unknown: UnknownKeys,
}

loose_object!(Change { step: "step", status: "status" });

impl Change {
    fn into_change(self, steps: usize) -> Result<(u32, Status), PlanError> {
        let mut faults = Vec::new();
        let mut fault = |path: &str, message: String| faults.push(InvalidArgument { path: path.into(), message });
        let mut step = None;
        match self.step.unwrap_or(Loose::Other(Found::Missing)) {
            // Whether the plan has such a step is the plan's to say; below zero or beyond all numbers there is none.
            Loose::Value(Integer(number)) => match u32::try_from(number) {
                Ok(number) => step = Some(number),
                Err(_) => fault("/step", format!("step must be the number of a step from 1-{steps}, not {number}")),
            },
            Loose::Other(found) => {
                fault("/step", format!("step must be the whole number of a step from 1-{steps}, not {found}"));
            }
        }
        let mut status = None;
        let allowed = Status::ALL.map(Status::name).join(", ");
        let came = match self.status.unwrap_or(Loose::Other(Found::Missing)) {
            Loose::Value(name) => {
                status = Status::from_name(&name);
                Found::Text(name)
            }
            Loose::Other(found) => found,
        };
        if status.is_none() {
            fault("/status", format!("status must be one of {allowed}, not {came}"));
        }
        for key in self.unknown.iter() {
            fault(
                &format!("/{}", pointer_token(key)),
                format!("{key:?} is not known here: allowed are step and status"),
            );
        }
        match (step, status) {
            (Some(step), Some(status)) if faults.is_empty() => Ok((step, status)),
            _ => Err(PlanError::InvalidArguments(faults)),
        }
    }
}

/// The arguments of `plan_get`: none.
#[derive(Debug, Default)]
struct Nothing {
    unknown: UnknownKeys,
}

loose_object!(Nothing {});

impl Nothing {
    fn check(&self) -> Result<(), PlanError> {
        let faults: Vec<InvalidArgument> = self
            .unknown
            .iter()
            .map(|key| InvalidArgument {
                path: format!("/{}", pointer_token(key)),
                message: format!("{key:?} is not known here: plan_get takes no arguments"),
            })
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(PlanError::InvalidArguments(faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        let change = |arguments: &str| read::<Change>(arguments).and_then(|change| change.into_change(3));
        for (arguments, expected) in [
            (r#"{"step":1,"status":"done"}"#, (1, Status::Done)),
            (r#"{"status":"in_progress","step":2.0}"#, (2, Status::InProgress)),
            (r#"{"step":0,"status":"done"}"#, (0, Status::Done)),
        ] {
            assert_eq!(change(arguments), Ok(expected), "{arguments}");
        }
        for (arguments, path, words) in [
            ("", "", "the arguments are not readable as JSON"),
            ("[]", "", "the arguments must be an object, not a list"),
            (r#""{}""#, "", "must be an object, not the text"),
            ("{}", "/step", "step must be the whole number of a step from 1-3, not missing"),
            (r#"{"step":"1","status":"done"}"#, "/step", "not the text \"1\""),
            (r#"{"step":1.5,"status":"done"}"#, "/step", "not the number 1.5"),
            (r#"{"step":-1,"status":"done"}"#, "/step", "from 1-3, not -1"),
            (
                r#"{"step":1,"status":"open"}"#,
                "/status",
                "one of pending, in_progress, done, skipped, not the text \"open\"",
            ),
            (r#"{"step":1,"status":null}"#, "/status", "not null"),
            (r#"{"step":1,"status":"done","note":"x"}"#, "/note", "allowed are step and status"),
        ] {
            let Err(PlanError::InvalidArguments(faults)) = change(arguments) else { panic!("{arguments}") };
            assert_eq!(faults[0].path, path, "{arguments}");
            assert!(faults[0].message.contains(words), "{arguments}: {}", faults[0].message);
        }
    }
}
