//! The WebAssembly component: translates between the bindings and the rules, and holds none.

#![allow(missing_docs, reason = "generated bindings; the contract is documented in wit/")]
#![allow(unsafe_code, reason = "generated bindings")]
#![allow(unreachable_pub, reason = "generated bindings")]

use crate::{config, source, tools};

wit_bindgen::generate!({ path: "../../wit", world: "plan-history" });

use crate::component::{
    exports::plan_execute::plugin::{
        lifecycle::{self, PluginInfo},
        tools as wit_tools,
    },
    plan_execute::plugin::{session_journal, transcripts as wit},
};

struct Component;
export!(Component);

impl lifecycle::Guest for Component {
    fn info() -> PluginInfo {
        PluginInfo {
            name: "plan-history".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            custom_types: Vec::new(),
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
            execution_mode: wit_tools::ExecutionMode::Parallel,
            read_only: tool.read_only,
            destructive: tool.destructive,
            idempotent: tool.idempotent,
        };
        tools::definitions().into_iter().map(definition).collect()
    }

    fn call_tool(
        _: &session_journal::Branch,
        name: String,
        arguments: String,
    ) -> Result<wit_tools::ToolResult, wit_tools::ToolError> {
        match tools::call(&Host, &name, &arguments) {
            Ok(answer) => Ok(wit_tools::ToolResult { details: answer.details(), text: answer.text }),
            Err(error) => {
                Err(wit_tools::ToolError { code: error.code.into(), message: error.message, data: error.data })
            }
        }
    }
}

/// The transcripts that the host hands out.
struct Host;

impl source::Transcripts for Host {
    type File = wit::File;

    fn list(&self, query: &source::Query, after: Option<&str>, limit: u32) -> Result<source::Page, source::Failure> {
        let query = wit::Query {
            agent: query.agent.clone(),
            session: query.session.clone(),
            containing: query.containing.clone(),
        };
        let page = wit::list_sessions(&query, after, limit)?;
        let session =
            |session: wit::Session| source::Session { key: session.key, agent: session.agent, id: session.id };
        Ok(source::Page {
            sessions: page.sessions.into_iter().map(session).collect(),
            next: page.next,
            unreadable: page.unreadable,
        })
    }

    fn open(&self, session: &str, part: source::Part) -> Result<wit::File, source::Failure> {
        let part = match part {
            source::Part::Transcript(number) => wit::Part::Transcript(number),
            source::Part::PlanFile => wit::Part::PlanFile,
        };
        Ok(wit::open(session, part)?)
    }
}

impl source::File for wit::File {
    fn path(&self) -> String {
        wit::File::path(self)
    }

    fn read(&mut self, limit: u32) -> Result<Vec<u8>, source::Failure> {
        Ok(wit::File::read(self, limit)?)
    }
}

impl From<wit::TranscriptError> for source::Failure {
    fn from(error: wit::TranscriptError) -> Self {
        match error {
            wit::TranscriptError::NotFound => Self::NotFound,
            wit::TranscriptError::Denied(reason) => Self::Denied(reason),
            wit::TranscriptError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}
