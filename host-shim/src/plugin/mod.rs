//! Joins plugins and sessions: load, attach, call.

mod attached;
mod bindings;
mod call;
mod describe;
mod events;
mod grants;
pub mod plans;
mod queue;
mod run;

pub use attached::{Attached, Queued, ToolError, ToolResult};
pub use describe::{ExecutionMode, PluginInfo, ToolDefinition};
pub use events::{Event, Saved, Subscription};
pub use grants::Grants;

use crate::{
    Error, Limits,
    journal::{Durability, Guard, Journal, Position, ReadError},
    sandbox::{Compiler, Contract, Loaded, Sandbox, missing_export},
};
use bindings::exports::plan_execute::plugin as exports;
use call::CallState;
use queue::Queue;
use std::{path::PathBuf, sync::Arc};
use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;

/// What plugins may import.
pub(crate) const IMPORT: &str = "plan-execute:plugin/session-journal@0.1.0";
/// What plugins may import and must export.
const CONTRACT: Contract<CallState, Interfaces> =
    Contract { interface: IMPORT, link: call::link, exports: Interfaces::find };
pub(crate) const LIFECYCLE: &str = "plan-execute:plugin/lifecycle@0.1.0";
pub(crate) const TOOLS: &str = "plan-execute:plugin/tools@0.1.0";
const PLANS: &str = "plan-execute:plugin/plans@0.1.0";

/// Loads plugins and opens sessions. Clones are the same host.
#[derive(Clone)]
pub struct Host(Arc<HostState>);

struct HostState {
    sandbox: Arc<Sandbox>,
    limits: Arc<Limits>,
    instances: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// How a [`Host`] is set up.
#[derive(Debug, Clone)]
pub struct HostBuilder {
    limits: Limits,
    pooling: bool,
    cache: Option<PathBuf>,
    compiler: Option<Compiler>,
}

impl HostBuilder {
    /// Other limits than the default ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keep slots ready for instances (the default), which makes a call faster and the start slower.
    pub fn pooling(mut self, pooling: bool) -> Self {
        self.pooling = pooling;
        self
    }

    /// Keep compiled components in this folder. It is made where it is missing, and not used unless it belongs to the user
    /// alone (mode 0700): compiled code is native code.
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Compile components that are not pinned in a process of this program.
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Sets the host up.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`]
    pub fn build(self) -> Result<Host, Error> {
        let limits = self.limits;
        let sandbox = Sandbox::new(&limits, self.pooling, self.cache.as_deref(), self.compiler)?;
        Ok(Host(Arc::new(HostState {
            sandbox: Arc::new(sandbox),
            instances: Arc::new(Semaphore::new(limits.instances.clamp(1, Semaphore::MAX_PERMITS))),
            waiting: Arc::new(Semaphore::new(limits.waiting.min(Semaphore::MAX_PERMITS))),
            limits: Arc::new(limits),
        })))
    }
}

impl Host {
    /// A host with the default limits, without a cache.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`]
    pub fn new() -> Result<Host, Error> {
        Host::builder().build()
    }

    /// A host that is set up in another way.
    pub fn builder() -> HostBuilder {
        HostBuilder { limits: Limits::default(), pooling: true, cache: None, compiler: None }
    }

    /// The limits that hold here.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The same host, for plugins that need other limits than the rest: what it loads keeps to `limits`, from its first
    /// `info` on. Such a plugin can be attached to any session beside others.
    ///
    /// Engine, cache, [`Limits::instances`] and [`Limits::waiting`] stay those of this host. [`Limits::operation`] counts
    /// for the sessions that the new one opens.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Host {
        let HostState { sandbox, instances, waiting, limits: ours } = &*self.0;
        Host(Arc::new(HostState {
            sandbox: Arc::clone(sandbox),
            instances: Arc::clone(instances),
            waiting: Arc::clone(waiting),
            limits: Arc::new(Limits { instances: ours.instances, waiting: ours.waiting, ..limits }),
        }))
    }

    /// Loads a plugin. One of [`components`](crate::components) is compiled in this process; any other one in the
    /// [compiler process](HostBuilder::compiler).
    ///
    /// # Errors
    ///
    /// Everything that makes it no plugin of this host: see [`Error`].
    pub async fn load(&self, component: &[u8]) -> Result<Plugin, Error> {
        self.load_as(component, None).await
    }

    /// Loads a plugin whose SHA-256 (64 hex digits) is known, and compiles it in this process.
    ///
    /// # Errors
    ///
    /// [`Error::WrongHash`], and those of [`Host::load`].
    pub async fn load_pinned(&self, component: &[u8], sha256: &str) -> Result<Plugin, Error> {
        self.load_as(component, Some(sha256)).await
    }

    async fn load_as(&self, component: &[u8], pinned: Option<&str>) -> Result<Plugin, Error> {
        let loaded = self.0.sandbox.load(component, pinned, &CONTRACT, &self.0.limits).await?;
        describe::plugin(self.clone(), loaded).await
    }

    /// Opens a session for plugins. Open each journal once and attach all its plugins to that session: the queue of calls and
    /// the latch after a write of unknown outcome belong to it.
    ///
    /// # Errors
    ///
    /// [`Error::Session`]: its journal does not answer.
    pub async fn open(&self, journal: impl Journal) -> Result<Session, Error> {
        let guard = Guard::open(Arc::new(journal), self.0.limits.operation).await.map_err(Error::Session)?;
        Ok(Session { guard: Arc::new(guard), queue: Queue::new() })
    }
}

/// Where the exports of a component are.
struct Interfaces {
    lifecycle: exports::lifecycle::GuestIndices,
    tools: exports::tools::GuestIndices,
    /// Not every plugin has it.
    plans: Result<exports::plans::GuestIndices, String>,
}

impl Interfaces {
    fn find(pre: &InstancePre<CallState>) -> Result<Interfaces, Error> {
        let lifecycle = exports::lifecycle::GuestIndices::new(pre);
        let tools = exports::tools::GuestIndices::new(pre);
        Ok(Interfaces {
            lifecycle: lifecycle.map_err(|e| missing_export(pre, LIFECYCLE, &e))?,
            tools: tools.map_err(|e| missing_export(pre, TOOLS, &e))?,
            plans: exports::plans::GuestIndices::new(pre).map_err(|e| e.to_string()),
        })
    }
}

/// A plugin that is ready to be attached to sessions. Clones are the same plugin.
#[derive(Clone)]
pub struct Plugin(Arc<PluginState>);

struct PluginState {
    host: Host,
    loaded: Loaded<CallState, Interfaces>,
    name: Arc<str>,
    info: PluginInfo,
    tools: Vec<ToolDefinition>,
}

impl Plugin {
    /// The host that loaded it.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// What the plugin says of itself.
    pub fn info(&self) -> &PluginInfo {
        &self.0.info
    }

    /// Its tools: always the same, complete from the start.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.0.tools
    }

    /// Its tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.0.tools.iter().find(|tool| tool.name == name)
    }
}

/// A session that plugins work on. Clones are the same session.
///
/// Calls of one session run one after another, in the order in which they were queued, whatever plugin they are of.
#[derive(Clone)]
pub struct Session {
    guard: Arc<Guard>,
    queue: Arc<Queue>,
}

impl Session {
    /// Attaches a plugin, with its configuration as JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], and what else may happen while the plugin looks at its configuration.
    pub async fn attach(&self, plugin: &Plugin, config: &str, grants: Grants) -> Result<Attached, Error> {
        Attached::new(self.clone(), plugin.clone(), config.into(), grants).await
    }

    /// What an acknowledged append is worth.
    pub fn durability(&self) -> Durability {
        self.guard.durability()
    }

    /// Where the session stands, after a look at its storage.
    ///
    /// # Errors
    ///
    /// See [`Journal::position`].
    pub async fn position(&self) -> Result<Position, ReadError> {
        self.guard.position().await
    }

    /// Where the session stood when it was last looked at, or when something was last saved through it. Asks no storage.
    pub fn known_position(&self) -> Position {
        self.guard.known()
    }

    /// Moves the leaf to this entry, or before the first one. Calls that wait become stale.
    ///
    /// # Errors
    ///
    /// See [`Journal::branch`]; [`ReadError::ReopenRequired`] after a write of unknown outcome.
    pub async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        self.guard.branch(entry).await
    }

    /// Opens the session from its storage again: what it holds counts. Calls that wait become stale. After a write of
    /// unknown outcome nothing else helps.
    ///
    /// # Errors
    ///
    /// See [`Journal::reopen`]; [`ReadError::Unavailable`] while that write still goes on.
    pub async fn reopen(&self) -> Result<Position, ReadError> {
        self.guard.reopen().await
    }

    /// Why every call of this opening is answered with `reopen-required`: a write whose outcome is unknown. `None` where
    /// there was none since the session was [opened again](Session::reopen).
    pub fn reopen_required(&self) -> Option<String> {
        self.guard.latched()
    }

    /// Hears of each entry that a plugin saves from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.queue.subscribe())
    }
}
