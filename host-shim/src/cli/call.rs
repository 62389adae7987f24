//! `plan-execute call`: one call of a tool.

use super::{
    Failure,
    setup::{PluginsOption, SessionOption, damage},
    terminal::{visible, warn, warn_as},
};
use clap::Args;
use plan_execute_host::{Attached, ToolError};
use std::{
    io::{self, Read, Write},
    sync::Arc,
};

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute call plan_create '{\"title\":\"Release\",\"steps\":[\"Test\",\"Publish\"]}' --session s.jsonl --create
  plan-execute call plan_advance '{\"step\":1,\"status\":\"done\"}' --session s.jsonl
  plan-execute call plan_get --session s.jsonl

The answer goes to standard output. An error of the tool goes to standard error as
{\"error\":{\"code\",\"message\",\"data\"}}, and the exit status is 1. It is 2 for wrong usage, and 3 where the session
was not opened, the profile or the component was not loaded, or the call broke off.")]
pub(super) struct Call {
    /// The tool: plan_create, plan_advance, plan_get, or one of another plugin.
    tool: String,
    /// Its arguments as JSON, or - to read them from standard input.
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    #[command(flatten)]
    session: SessionOption,
    /// Make the session where it is missing; in a folder, under the name that Pi would give it. The file is written with
    /// the first plan.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    plugins: PluginsOption,
}

impl Call {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugins = self.plugins.load().await?;
        let arguments = match self.arguments.as_str() {
            "-" => {
                let limits = plugins.list().into_iter().map(|(_, plugin)| plugin.host().limits().arguments);
                read_standard_input(limits.max().unwrap_or_default())?
            }
            _ => self.arguments,
        };
        let session = match self.create {
            true => self.session.open_or_create().await?,
            false => self.session.open().await?,
        };
        let (_, attached) = plugins.attach(Arc::clone(&session.journal)).await?;
        let having = |attached: &&Attached| attached.plugin().tool(&self.tool).is_some();
        let answer = match (&attached[..], attached.iter().find(having)) {
            // One alone says itself what tools it has.
            ([attached], _) | (_, Some(attached)) => attached.call(&self.tool, &arguments).await?,
            _ => Err(unknown(&self.tool, &attached)),
        };
        match answer {
            Ok(result) => {
                warn(&damage(&session))?;
                if let Some(path) = self.session.made_elsewhere(&session).filter(|_| self.create) {
                    // In a folder, the user cannot know the name.
                    warn_as("session", &[path.display().to_string()])?;
                }
                let mut stdout = io::stdout().lock();
                let text = visible(&result.text, &stdout);
                let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
                written.map_err(Failure::Answer)
            }
            Err(error) => Err(Failure::Tool { error, damage: damage(&session) }),
        }
    }
}

/// The error for a tool that no plugin has.
fn unknown(tool: &str, attached: &[Attached]) -> ToolError {
    let tools = attached.iter().flat_map(|attached| attached.plugin().tools());
    let names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    let names = if names.is_empty() { "none".into() } else { names.join(", ") };
    ToolError {
        code: "unknown-tool".into(),
        message: format!("There is no tool {tool:?}: there are {names}."),
        data: None,
    }
}

fn read_standard_input(limit: usize) -> Result<String, Failure> {
    let mut text = String::new();
    // A byte more than allowed, so that the host sees it is too large.
    match io::stdin().lock().take(limit as u64 + 1).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => {
            Err(Failure::Usage(format!("the arguments on standard input cannot be read ({error}): send JSON in UTF-8")))
        }
    }
}
