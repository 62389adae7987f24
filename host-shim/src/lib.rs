//! Runs sandboxed plan plugins on the session journal of any agent runtime.
//!
//! A plugin is a WebAssembly component that holds the rules: what a plan is, which step may start. The harness keeps the
//! [journal]. Between them stands one interface that says what a branch is and what a failed write means. A plugin
//! has no clock, no files and no network; it sees the custom entries that it was granted, and everything that it may use
//! has a [limit](Limits).
//!
//! # A whole program
//!
//! ```
//! use plan_execute_host::{Event, Grants, Host, components, journal::pi::PiSession};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Once per process: the host, and each plugin.
//!     let host = Host::new()?;
//!     let plugin = host.load(components::PLAN_EXECUTE).await?;
//!     for tool in plugin.tools() {
//!         println!("{}: {}", tool.name, tool.description); // and `tool.input_schema`, for the model
//!     }
//!
//!     // Once per session: the journal, and the plugin on it. Any `Journal` will do.
//! #   let folder = tempfile::tempdir()?;
//! #   let file = folder.path().join("session.jsonl");
//!     let session = host.open(PiSession::open_or_create(&file).await?).await?;
//!     let tools = session.attach(&plugin, "{}", Grants::Declared).await?;
//!     let mut saved = session.subscribe();
//!
//!     // For each call of the model: queue it when it arrives, then wait for its answer. Calls run in order.
//!     let create = tools.queue("plan_create", r#"{"title":"Release","steps":["Test","Publish"]}"#).await?;
//!     let advance = tools.queue("plan_advance", r#"{"step":1,"status":"done"}"#).await?;
//!     for call in [create, advance] {
//!         match call.await? {
//!             Ok(result) => println!("{}", result.text),                       // for the model
//!             Err(error) => println!("{}: {}", error.code, error.message),     // for the model, too
//!         }
//!     }
//!
//!     // Panels listen instead of asking.
//!     if let Some(Event::Saved(saved)) = saved.next().await {
//!         println!("{} saved {:?} ({})", saved.plugin, saved.plan().map(|plan| plan.title), saved.durability);
//!     }
//!
//!     // Programs use typed calls.
//!     let summary = tools.plans()?.overview().await?.await?.expect("the plan is valid");
//!     assert_eq!((summary.completed, summary.total), (1, 2));
//!     assert_eq!(summary.ready, [2]);
//!     Ok(())
//! }
//! ```
//!
//! # When something goes wrong
//!
//! * What a tool refuses is a [`ToolError`]: the model reads it and does better. It never ends the session.
//! * What the host refuses, or what a plugin does beyond its limits, is an [`Error`]. It names the plugin and says what became
//!   of the call's writes. The next call of every plugin works.
//! * After a write of which nobody knows whether it was kept, every call says so (`reopen-required`) until
//!   [`Session::reopen`]: then what the storage holds counts.
//!
//! # Features
//!
//! Without default features this crate is the library alone. `cli` adds the command `plan-execute`, `mcp` its
//! server for clients of the Model Context Protocol. `profiles` adds [profiles](profile) of plugins, `sql` sessions in
//! SQLite and PostgreSQL, and `testing` what tests of journals and benchmarks need.
//!
//! Everything runs on tokio: a runtime with all drivers must be there wherever a future of this crate is polled.

pub mod components;
mod error;
mod file_size;
#[cfg(feature = "profiles")]
pub mod inspect;
pub mod journal;
mod limits;
mod plugin;
#[cfg(feature = "profiles")]
pub mod profile;
mod sandbox;

pub use error::{Error, Kept};
pub use limits::{Limit, Limits};
pub use plugin::{
    Attached, Event, ExecutionMode, Grants, Host, HostBuilder, Plugin, PluginInfo, Queued, Saved, Session,
    Subscription, ToolDefinition, ToolError, ToolResult, plans,
};
pub use sandbox::{Compiler, compile_standard_input};
