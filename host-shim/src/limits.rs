//! Everything that a plugin may use, and where it ends.

use std::time::Duration;

/// The limits of a host. The defaults are those of the project's design; a plugin written in Python or JavaScript needs
/// more memory and a larger component. [`Host::with_limits`](crate::Host::with_limits) makes other ones for some plugins:
/// all but `operation`, which is the session's, and `instances` and `waiting`, which all plugins of a host share.
///
/// Whoever reaches one gets [`Error::Limit`](crate::Error::Limit), which names the plugin and the limit; the next call works.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Memory of one call in bytes, all its memories together: 16 MiB.
    pub memory: usize,
    /// Core instances of one call: 32.
    pub core_instances: usize,
    /// Memories of one call: 4.
    pub memories: usize,
    /// Tables of one call: 32.
    pub tables: usize,
    /// Elements of all tables of one call together: 100,000.
    pub table_elements: usize,
    /// Compute time of one call: 1 s. Time inside journal operations does not count.
    pub compute: Duration,
    /// Time for one journal operation: 10 s. It should be longer than the 5 s that a [session
    /// file](crate::journal::pi::PiSession) waits for another process, or else that wait counts as a write of unknown outcome.
    pub operation: Duration,
    /// Time for one whole call, from the moment when its turn comes: 30 s.
    pub call: Duration,
    /// Journal operations in one call: 10,000.
    pub operations: usize,
    /// Appends in one call: 16.
    pub appends: usize,
    /// Handles that a call holds at a time: 1,000.
    pub handles: usize,
    /// Bytes in one payload that is appended: 256 KiB.
    pub payload: usize,
    /// Bytes in one payload that is read: 1 MiB. Entries of other programs may be larger than what a plugin may append.
    pub payload_read: usize,
    /// Bytes that cross from the plugin at once: 2 MiB.
    pub crossing: usize,
    /// Bytes of the arguments of one call: 1 MiB.
    pub arguments: usize,
    /// Bytes of one result: 1 MiB. An error's text is cut there, at a character edge.
    pub result: usize,
    /// Tools of one plugin: 64.
    pub tools: usize,
    /// Bytes of the definitions of a plugin's tools together: 256 KiB.
    pub tool_definitions: usize,
    /// Instances at a time, of all plugins: 64.
    pub instances: usize,
    /// Calls that wait, of all sessions: 1,024. One more is refused.
    pub waiting: usize,
    /// Bytes of a component: 32 MiB.
    pub component: usize,
    /// Time for compiling a component that is not pinned, in its own process: 60 s.
    pub compile: Duration,
    /// Memory for compiling a component that is not pinned, in bytes: 4 GiB. On Linux the operating system holds the process
    /// to it; elsewhere it does not hold.
    pub compile_memory: u64,
    /// Bytes of compiled code of a component that is not pinned: 256 MiB. A few lines can ask for code of any size.
    pub compiled: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const KIB: usize = 1024;
        const MIB: usize = 1024 * KIB;
        Limits {
            memory: 16 * MIB,
            core_instances: 32,
            memories: 4,
            tables: 32,
            table_elements: 100_000,
            compute: Duration::from_secs(1),
            operation: Duration::from_secs(10),
            call: Duration::from_secs(30),
            operations: 10_000,
            appends: 16,
            handles: 1_000,
            payload: 256 * KIB,
            payload_read: MIB,
            crossing: 2 * MIB,
            arguments: MIB,
            result: MIB,
            tools: 64,
            tool_definitions: 256 * KIB,
            instances: 64,
            waiting: 1_024,
            component: 32 * MIB,
            compile: Duration::from_secs(60),
            compile_memory: 4 << 30,
            compiled: 256 * MIB,
        }
    }
}

/// Which limit was reached. Its text names it with the value that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::memory`]
    #[error("the memory of one call ({0} bytes)")]
    Memory(usize),
    /// [`Limits::core_instances`]
    #[error("the core instances of one call ({0})")]
    CoreInstances(usize),
    /// [`Limits::memories`]
    #[error("the memories of one call ({0})")]
    Memories(usize),
    /// [`Limits::tables`]
    #[error("the tables of one call ({0})")]
    Tables(usize),
    /// [`Limits::table_elements`]
    #[error("the table elements of one call ({0})")]
    TableElements(usize),
    /// [`Limits::compute`]
    #[error("the compute time of one call ({0:?})")]
    Compute(Duration),
    /// [`Limits::call`]
    #[error("the time of one whole call ({0:?})")]
    Call(Duration),
    /// [`Limits::operations`]
    #[error("the journal operations of one call ({0})")]
    Operations(usize),
    /// [`Limits::appends`]
    #[error("the appends of one call ({0})")]
    Appends(usize),
    /// [`Limits::handles`]
    #[error("the handles of one call ({0})")]
    Handles(usize),
    /// [`Limits::crossing`]
    #[error("the bytes that cross from the plugin at once ({0})")]
    Crossing(usize),
    /// [`Limits::arguments`]
    #[error("the bytes of the arguments of one call ({0})")]
    Arguments(usize),
    /// [`Limits::result`]
    #[error("the bytes of one result ({0})")]
    Result(usize),
    /// [`Limits::tools`]
    #[error("the tools of one plugin ({0})")]
    Tools(usize),
    /// [`Limits::tool_definitions`]
    #[error("the bytes of the tool definitions of one plugin ({0})")]
    ToolDefinitions(usize),
    /// [`Limits::waiting`]
    #[error("the calls that wait ({0})")]
    Waiting(usize),
    /// [`Limits::component`]
    #[error("the bytes of a component ({0})")]
    Component(usize),
    /// [`Limits::compile`]
    #[error("the time for compiling a component ({0:?})")]
    Compile(Duration),
    /// [`Limits::compile_memory`]
    #[error("the memory for compiling a component ({0} bytes)")]
    CompileMemory(u64),
    /// [`Limits::compiled`]
    #[error("the bytes of a component's compiled code ({0})")]
    Compiled(usize),
    /// The stack that wasmtime gives a call: 512 KiB.
    #[error("the stack of one call")]
    Stack,
}
