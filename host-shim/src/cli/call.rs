//! `plan-execute call`: one call of a tool.

use super::{
    Failure,
    setup::{ComponentOption, SessionOption, attach, damage},
    terminal::visible,
};
use clap::Args;
use std::io::{self, Read, Write};

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
        let session = self.session.open().await?;
        let answer = attach(&plugin, &session).await?.call(&self.tool, &arguments).await?;
        match answer {
            Ok(result) => {
                for note in damage(&session) {
                    let mut stderr = io::stderr().lock();
                    writeln!(stderr, "warning: {}", visible(&note, &stderr))?;
                }
                let mut stdout = io::stdout().lock();
                writeln!(stdout, "{}", visible(&result.text, &stdout))?;
                stdout.flush()?;
                Ok(())
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
