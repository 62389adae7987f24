//! `plan-execute mcp`: the tools for any client of the Model Context Protocol, on standard input and output.

mod requests;
mod server;
mod transport;

use super::{
    Failure,
    setup::{PluginsOption, SessionOption, damage},
    terminal::warn,
};
use clap::Args;
use requests::Requests;
use rmcp::{ServiceExt, service::ServerInitializeError, transport::stdio_pipes};
use server::Server;
use std::sync::Arc;
use transport::Lines;

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute mcp --session s.jsonl --create
  plan-execute mcp --session s.jsonl --create --profile plugins.yaml

An MCP client starts this command and talks to it on standard input and output; for the configuration of some clients
see the README. It ends when standard input does.")]
pub(super) struct Mcp {
    #[command(flatten)]
    session: SessionOption,
    /// Make the session where it is missing; in a folder, under the name that Pi would give it. The file is written with
    /// the first plan.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    plugins: PluginsOption,
}

impl Mcp {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let plugins = self.plugins.load_for_many_calls().await?;
        let session = match self.create {
            true => self.session.open_or_create().await?,
            false => self.session.open().await?,
        };
        warn(&damage(&session))?;
        let (on, attached) = plugins.attach(Arc::clone(&session.journal)).await?;
        let requests = Requests::new();
        let server = Server::new(on, attached, requests.clone());
        let (input, output) = stdio_pipes();
        match server.serve(Lines::new(input, output, requests)).await {
            Ok(running) => {
                // It ends with standard input, and answers before what was asked by then.
                let _ = running.waiting().await;
                Ok(())
            }
            // A client that had nothing to say.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => {
                Err(Failure::Host(format!("the client and this server did not get to know each other ({error})")))
            }
        }
    }
}
