//! Why a tool gave no answer, for the model to read and act on.

use serde_json::json;

/// An error for the model to read and act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// Stable.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// JSON text: the error as an object, as the tool that ours matches gives it.
    pub data: Option<String>,
}

impl ToolError {
    /// Arguments that are not allowed; the faults joined to one sentence.
    pub fn invalid_argument(faults: &[String]) -> ToolError {
        let message = format!("{}.", faults.join("; "));
        let data = json!({"error": "invalid_argument", "message": message}).to_string();
        ToolError { code: "invalid_argument", message, data: Some(data) }
    }

    /// There is nothing of this id.
    pub fn not_found(id: &str) -> ToolError {
        let shown = plan_guest_support::text::excerpt(id, 80);
        let message = format!("Nothing has the id {shown:?}: ids of plans, events and answers stand in plan_history.");
        let data = json!({"error": "not_found", "id": id}).to_string();
        ToolError { code: "not_found", message, data: Some(data) }
    }

    /// More than an answer may hold. `narrower` says with which arguments less is asked for.
    pub fn too_large(narrower: &str) -> ToolError {
        let message = format!("The answer would be larger than 8 MiB: {narrower}.");
        let data = json!({"error": "too_large", "message": message}).to_string();
        ToolError { code: "too_large", message, data: Some(data) }
    }

    /// The transcripts cannot be listed.
    pub fn unavailable(reason: &str) -> ToolError {
        let message = format!("The transcripts cannot be listed ({reason}).");
        ToolError { code: "unavailable", message, data: None }
    }
}
