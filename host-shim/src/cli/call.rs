//! `plan-execute call`: one call of a tool.

use super::{
    Failure,
    setup::{ComponentOption, SessionOption, attach, damage},
    terminal::{visible, warn, warn_as},
};
use clap::Args;
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
was not opened, the component was not loaded, or the call broke off.")]
pub(super) struct Call {
    /// The tool: plan_create, plan_advance or plan_get.
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
    component: ComponentOption,
}

impl Call {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugin = self.component.load().await?;
        let arguments = match self.arguments.as_str() {
            "-" => read_standard_input(plugin.host().limits().arguments)?,
            _ => self.arguments,
        };
        let session = match self.create {
            true => self.session.open_or_create().await?,
            false => self.session.open().await?,
        };
        let answer = attach(&plugin, Arc::clone(&session.journal)).await?.call(&self.tool, &arguments).await?;
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
