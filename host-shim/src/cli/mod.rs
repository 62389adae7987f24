//! The command line. It uses the public library alone.

mod call;
mod demo;
mod log;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "profiles")]
mod plugin;
#[cfg(feature = "sql")]
mod sessions;
mod setup;
mod show;
mod terminal;
mod tools;
#[cfg(feature = "sql")]
mod transfer;
mod view;

use clap::{CommandFactory, Parser, Subcommand};
use plan_execute_host::{ToolError, compile_standard_input};
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Plans for agents, kept in the session journal of their harness.
#[derive(Parser)]
#[command(
    name = "plan-execute",
    version,
    max_term_width = 100,
    after_help = "Examples:
  plan-execute demo
  plan-execute call plan_create '{\"title\":\"Release\",\"steps\":[\"Test\",\"Publish\"]}' --session s.jsonl --create
  plan-execute show --session s.jsonl

Exit status: 0 done, 1 refused by a tool, 2 wrong usage, 3 anything else."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Call a tool on a session and print its answer.
    Call(call::Call),
    /// Show the plan of a session.
    Show(show::Show),
    /// List every revision of the plan on the branch.
    Log(log::Log),
    /// List the sessions in a database.
    #[cfg(feature = "sql")]
    Sessions(sessions::Sessions),
    /// Take a session file of Pi into a database.
    #[cfg(feature = "sql")]
    Import(transfer::Import),
    /// Write a session of a database into a session file of Pi.
    #[cfg(feature = "sql")]
    Export(transfer::Export),
    /// List the tools.
    Tools(tools::Tools),
    /// Look at a component before it is used.
    #[cfg(feature = "profiles")]
    Plugin(plugin::Plugin),
    /// Serve the tools to a client of the Model Context Protocol.
    #[cfg(feature = "mcp")]
    Mcp(mcp::Mcp),
    /// Walk through a plan, a refusal, a branch and a reopening in a temporary session.
    Demo(demo::Demo),
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man -l -`.
    Manual,
}

/// Why a command ended without what it was asked for.
enum Failure {
    /// The tool refused: a [`ToolError`], and the lines of the session file that could not be read.
    Tool { error: ToolError, damage: Vec<String> },
    /// Something in how the command was called, found only while it ran.
    Usage(String),
    /// The session was not opened, the profile not taken, the component not loaded, or the call broke off.
    Host(String),
    /// What was printed could not be written.
    Output(io::Error),
    /// The tool has done its work, and its answer could not be written.
    Answer(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

#[cfg(feature = "profiles")]
impl From<plan_execute_host::profile::ProfileError> for Failure {
    fn from(error: plan_execute_host::profile::ProfileError) -> Self {
        Failure::Host(error.to_string())
    }
}

impl From<plan_execute_host::Error> for Failure {
    fn from(error: plan_execute_host::Error) -> Self {
        Failure::Host(error.to_string())
    }
}

/// Runs the command. Exit status: 0 done, 1 refused by a tool, 2 wrong usage, 3 anything else.
pub(crate) fn main() -> ExitCode {
    // For the command itself and nobody else, so no completion offers it.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == setup::COMPILE) {
        return ExitCode::from(u8::try_from(compile_standard_input()).unwrap_or(3));
    }
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Failure::Host(format!("the program cannot be started ({error})"))),
    };
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Call(call) => call.run().await,
            Command::Show(show) => show.run().await,
            Command::Log(log) => log.run().await,
            #[cfg(feature = "sql")]
            Command::Sessions(sessions) => sessions.run().await,
            #[cfg(feature = "sql")]
            Command::Import(import) => import.run().await,
            #[cfg(feature = "sql")]
            Command::Export(export) => export.run().await,
            Command::Tools(tools) => tools.run().await,
            #[cfg(feature = "profiles")]
            Command::Plugin(plugin) => plugin.run().await,
            #[cfg(feature = "mcp")]
            Command::Mcp(mcp) => mcp.run().await,
            Command::Demo(demo) => demo.run().await,
            Command::Completions { shell } => completions(shell),
            Command::Manual => manual(),
        }
    });
    // A storage that hangs must not keep the command from ending.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(failure),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "plan-execute", &mut script);
    Ok(io::stdout().lock().write_all(&script)?)
}

/// One page: the command, then each of its subcommands.
fn manual() -> Result<(), Failure> {
    let mut page = Vec::new();
    let mut command = Arguments::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in subcommands(&command) {
        let man = clap_mangen::Man::new(subcommand.clone());
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    Ok(io::stdout().lock().write_all(&page)?)
}

/// Every subcommand that users see, and theirs.
fn subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let seen = command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    seen.flat_map(|command| [vec![command], subcommands(command)].concat()).collect()
}

fn report(failure: Failure) -> ExitCode {
    let (status, text) = match failure {
        Failure::Tool { error, damage } => (1, terminal::error_json(&error, &damage)),
        Failure::Usage(text) => (2, format!("error: {text}")),
        Failure::Host(text) => (3, format!("error: {text}")),
        // Whoever reads our output has seen enough.
        Failure::Output(error) | Failure::Answer(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Failure::Answer(error) => {
            (3, format!("error: the tool has done its work, but its answer cannot be written ({error})"))
        }
        Failure::Output(error) => (3, format!("error: the output cannot be written ({error})")),
    };
    let mut stderr = io::stderr().lock();
    // Where standard error is gone too, the exit status has to do.
    let _ = writeln!(stderr, "{}", terminal::visible_line(&text, &stderr));
    ExitCode::from(status)
}
