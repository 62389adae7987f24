//! Transcripts for the component `plan-history` in tests, handed out by a host that has nothing else.
//!
//! The component runs under wasmtime with the limits of its world, past the plugin host of this project: what the component
//! answers is the component's own.

#![allow(unreachable_pub, reason = "the generated bindings re-export types of this module")]

use std::collections::HashMap;
use wasmtime::{
    Config, Engine, Store, StoreLimits, StoreLimitsBuilder,
    component::{Component, HasSelf, Linker, Resource, ResourceTable},
};

#[allow(missing_docs, unsafe_code, reason = "generated; the documentation stands in the WIT")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "plan-history",
        with: {
            "plan-execute:plugin/session-journal.branch": super::Branch,
            "plan-execute:plugin/transcripts.file": super::OpenFile,
        },
        imports: { default: trappable },
    });
}

use bindings::{
    PlanHistory,
    plan_execute::plugin::{session_journal as journal, transcripts as wit},
};

pub use bindings::exports::plan_execute::plugin::tools::{ToolError, ToolResult};

/// The memory that the world allows, in bytes.
pub const MEMORY: usize = 64 << 20;

/// A part of a session.
#[derive(Debug, Clone)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Some bytes at the beginning, then others again and again, and some at the end.
    Repeated {
        /// At the beginning.
        begin: Vec<u8>,
        /// In the middle.
        middle: Vec<u8>,
        /// How often.
        times: usize,
        /// At the end.
        end: Vec<u8>,
    },
}

/// A session of one agent.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The agent.
    pub agent: String,
    /// The id, where its place tells it.
    pub id: Option<String>,
    /// The path of the plan file.
    pub path: String,
    /// The renderings of the transcript.
    pub transcripts: Vec<Content>,
    /// The plan file.
    pub plan_file: Option<Content>,
}

/// A branch, of which the component needs nothing.
#[derive(Debug)]
pub struct Branch;

/// A part that is being read.
#[derive(Debug)]
pub struct OpenFile {
    path: String,
    content: Content,
    at: usize,
}

impl OpenFile {
    fn read(&mut self, limit: usize) -> Vec<u8> {
        match &self.content {
            Content::Bytes(bytes) => {
                let chunk = bytes[self.at..(self.at + limit).min(bytes.len())].to_vec();
                self.at += chunk.len();
                chunk
            }
            Content::Repeated { begin, middle, times, end } => {
                let chunk = match self.at {
                    0 => begin.clone(),
                    at if at <= *times => middle.clone(),
                    at if at == times + 1 => end.clone(),
                    _ => Vec::new(),
                };
                assert!(chunk.len() <= limit, "a piece fits into a chunk");
                self.at += 1;
                if chunk.is_empty() && self.at <= times + 1 { self.read(limit) } else { chunk }
            }
        }
    }
}

struct State {
    limits: StoreLimits,
    table: ResourceTable,
    sessions: Vec<Stored>,
    read: u64,
}

/// The component on some sessions.
pub struct History {
    store: Store<State>,
    component: PlanHistory,
}

impl History {
    /// Compiles the component, or takes it as it was compiled before, and gives it these sessions.
    ///
    /// # Panics
    ///
    /// Where it does not start.
    pub fn new(sessions: Vec<Stored>) -> History {
        static COMPILED: std::sync::LazyLock<(Engine, Component)> = std::sync::LazyLock::new(|| {
            let engine = Engine::new(&Config::new()).expect("an engine");
            let component = Component::new(&engine, plan_execute_host::components::PLAN_HISTORY).expect("a component");
            (engine, component)
        });
        let (engine, component) = &*COMPILED;
        let mut linker = Linker::new(engine);
        PlanHistory::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)
            .expect("nothing is there twice");
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
        let mut store = Store::new(engine, State { limits, table: ResourceTable::new(), sessions, read: 0 });
        store.limiter(|state| &mut state.limits);
        store.set_hostcall_fuel(64 << 20);
        let component = PlanHistory::instantiate(&mut store, component, &linker).expect("it starts");
        History { store, component }
    }

    /// Calls a tool.
    ///
    /// # Panics
    ///
    /// Where the component breaks down.
    pub fn call(&mut self, tool: &str, arguments: &str) -> Result<ToolResult, ToolError> {
        let branch = self.store.data_mut().table.push(Branch).expect("there is room");
        let branch = Resource::new_borrow(branch.rep());
        let tools = self.component.plan_execute_plugin_tools();
        tools.call_call_tool(&mut self.store, branch, tool, arguments).expect("it does not break down")
    }

    /// How many bytes of transcripts it read so far.
    pub fn bytes_read(&self) -> u64 {
        self.store.data().read
    }
}

impl wit::Host for State {
    fn list_sessions(
        &mut self,
        query: wit::Query,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<wit::Page, wit::TranscriptError>> {
        let start = after.map_or(0, |after| after.parse().expect("it is one of ours"));
        let end = self.sessions.len().min(start + limit as usize);
        let asked = |stored: &&Stored| {
            query.agent.as_ref().is_none_or(|agent| *agent == stored.agent)
                && query.session.as_ref().is_none_or(|id| stored.id.as_ref().is_none_or(|known| known == id))
        };
        let keys: HashMap<usize, &Stored> = self.sessions.iter().enumerate().collect();
        let sessions = (start..end).filter(|key| asked(&keys[key])).map(|key| wit::Session {
            key: key.to_string(),
            agent: keys[&key].agent.clone(),
            id: keys[&key].id.clone(),
            modified_ms: None,
            size: 0,
        });
        let next = (end < self.sessions.len()).then(|| end.to_string());
        Ok(Ok(wit::Page { sessions: sessions.collect(), next, unreadable: 0 }))
    }

    fn open(
        &mut self,
        session: String,
        part: wit::Part,
    ) -> wasmtime::Result<Result<Resource<OpenFile>, wit::TranscriptError>> {
        let stored = &self.sessions[session.parse::<usize>()?];
        let content = match part {
            wit::Part::Transcript(number) => stored.transcripts.get(number as usize),
            wit::Part::PlanFile => stored.plan_file.as_ref(),
        };
        let Some(content) = content.cloned() else { return Ok(Err(wit::TranscriptError::NotFound)) };
        let file = OpenFile { path: stored.path.clone(), content, at: 0 };
        Ok(Ok(self.table.push(file)?))
    }
}

impl wit::HostFile for State {
    fn path(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<String> {
        Ok(self.table.get(&file)?.path.clone())
    }

    fn read(
        &mut self,
        file: Resource<OpenFile>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, wit::TranscriptError>> {
        let chunk = self.table.get_mut(&file)?.read(limit as usize);
        self.read += chunk.len() as u64;
        Ok(Ok(chunk))
    }

    fn drop(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<()> {
        self.table.delete(file)?;
        Ok(())
    }
}

/// The component has no use for the journal; whatever it would ask for is an error that ends the call.
const NO_JOURNAL: &str = "the component asked for the journal";

impl journal::Host for State {
    fn preferred_encoding(&mut self) -> wasmtime::Result<journal::Encoding> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
}

impl journal::HostBranch for State {
    fn session_id(&mut self, _: Resource<Branch>) -> wasmtime::Result<String> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn session_token(&mut self, _: Resource<Branch>) -> wasmtime::Result<String> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn leaf(&mut self, _: Resource<Branch>) -> wasmtime::Result<Option<String>> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn queued_at_ms(&mut self, _: Resource<Branch>) -> wasmtime::Result<u64> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn call_id(&mut self, _: Resource<Branch>) -> wasmtime::Result<String> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn latest(
        &mut self,
        _: Resource<Branch>,
        _: String,
    ) -> wasmtime::Result<Result<Option<journal::Entry>, journal::ReadError>> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn entries(
        &mut self,
        _: Resource<Branch>,
        _: String,
        _: Option<String>,
        _: u32,
    ) -> wasmtime::Result<Result<Vec<journal::Entry>, journal::ReadError>> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn append(
        &mut self,
        _: Resource<Branch>,
        _: String,
        _: journal::Payload,
    ) -> wasmtime::Result<Result<journal::Appended, journal::AppendError>> {
        Err(wasmtime::Error::msg(NO_JOURNAL))
    }
    fn drop(&mut self, branch: Resource<Branch>) -> wasmtime::Result<()> {
        self.table.delete(branch)?;
        Ok(())
    }
}
