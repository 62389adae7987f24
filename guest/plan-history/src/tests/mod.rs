//! Tests of the operations as a whole, on transcripts in memory.

mod damage;
mod order;
mod secrets;
mod vectors;

use crate::{
    source::memory::{Memory, Stored},
    tools,
};
use serde_json::Value;

/// A session of Claude Code with these lines.
fn claude(id: &str, lines: &[String]) -> Stored {
    Stored {
        agent: "claude",
        id: Some(id.to_owned()),
        transcripts: vec![lines.join("\n").into_bytes()],
        ..Stored::default()
    }
}

/// Calls a tool: its answer for the harness, which must fit its schema, or the error as an object.
fn call(source: &Memory, tool: &str, arguments: &Value) -> Value {
    match tools::call(source, tool, &arguments.to_string()) {
        Ok(answer) => {
            let details: Value = serde_json::from_str(&answer.details()).expect("JSON");
            let definition =
                tools::definitions().into_iter().find(|definition| definition.name == tool).expect("a tool");
            let schema: Value = serde_json::from_str(definition.output_schema).expect("JSON");
            let fault = jsonschema::validate(&schema, &details).map_err(|fault| fault.to_string());
            assert_eq!(fault, Ok(()), "{details}");
            details
        }
        Err(error) => serde_json::from_str(&error.data.expect("the error as an object")).expect("JSON"),
    }
}
