//! A plugin on a session: queueing calls and running them.

use super::{
    Plugin, PluginState, Session,
    bindings::exports::plan_execute::plugin as exports,
    call::Access,
    grants::Grants,
    plans::Plans,
    queue::Turn,
    run::{Call, Running, Work},
};
use crate::{Error, Kept, Limit, error::shorten};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

pub use exports::tools::{ToolError, ToolResult};

/// A plugin that is attached to a session. Clones are the same.
#[derive(Clone)]
pub struct Attached {
    session: Session,
    plugin: Plugin,
    config: Arc<str>,
    grants: Arc<Grants>,
}

/// A call that was queued. It runs when its turn comes, whether it is awaited or not; dropped, it is given up: it does not
/// begin any more, or is stopped. A write that was under way then ends all the same, and until the session is
/// [opened again](Session::reopen) its outcome counts as unknown.
#[must_use = "a call that is dropped is given up"]
pub struct Queued<T> {
    answer: oneshot::Receiver<Result<T, Error>>,
    plugin: Arc<str>,
}

impl<T> Future for Queued<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_| Err(Error::GivenUp { plugin: self.plugin.to_string() })))
    }
}

impl Attached {
    pub(super) async fn new(
        session: Session,
        plugin: Plugin,
        config: Arc<str>,
        grants: Grants,
    ) -> Result<Attached, Error> {
        let grants = Arc::new(grants.resolve(&plugin.info().custom_types));
        let attached = Attached { session, plugin, config, grants };
        // A configuration that is refused is refused now, not at the first call.
        attached.run(None, None, Some(&attached.config), |_| Box::pin(async { Ok(()) })).await?;
        Ok(attached)
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Queues the call of a tool, with its arguments as JSON text. When this returns, the branch that the call works on is
    /// settled; the place in the queue is taken when it is first polled.
    ///
    /// The outer result of the call is the host's, the inner one the plugin's: a [`ToolError`] is for the model to read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where too many calls wait or the arguments are too large. Awaiting the call brings
    /// [`Error::Limit`], [`Error::Trap`] or [`Error::GivenUp`]. A journal that does not answer is an error of the tool.
    pub async fn queue(&self, tool: &str, arguments: &str) -> Result<Queued<Result<ToolResult, ToolError>>, Error> {
        let limits = self.plugin.0.host.limits();
        if arguments.len() > limits.arguments {
            return Err(self.limit(Limit::Arguments(limits.arguments)));
        }
        let (tool, arguments, result) = (tool.to_owned(), arguments.to_owned(), limits.result);
        self.enqueue(move |running| Box::pin(call_tool(running, tool, arguments, result))).await
    }

    /// Runs a tool at once, past the queue and without configuring the instance: what one call costs, for benchmarks. Calls
    /// that are made so at the same time get into each other's way.
    ///
    /// # Errors
    ///
    /// As [`Attached::call`].
    #[cfg(feature = "testing")]
    pub async fn call_alone(&self, tool: &str, arguments: &str) -> Result<Result<ToolResult, ToolError>, Error> {
        let result = self.plugin.0.host.limits().result;
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        let turn = self.session.queue.join();
        turn.take_position(&self.session.guard).await;
        let access = Some(self.access(&turn));
        self.run(None, access, None, |running| Box::pin(call_tool(running, tool, arguments, result))).await
    }

    /// Queues the call of a tool and waits for its answer.
    ///
    /// # Errors
    ///
    /// As [`Attached::queue`].
    pub async fn call(&self, tool: &str, arguments: &str) -> Result<Result<ToolResult, ToolError>, Error> {
        self.queue(tool, arguments).await?.await
    }

    /// The typed plan operations.
    ///
    /// # Errors
    ///
    /// [`Error::Export`] where the plugin does not have them.
    pub fn plans(&self) -> Result<Plans<'_>, Error> {
        match &self.plugin.0.loaded.exports().plans {
            Ok(_) => Ok(Plans(self)),
            Err(reason) => Err(Error::Export { interface: super::PLANS, reason: reason.clone() }),
        }
    }

    /// Queues a call.
    pub(super) async fn enqueue<T: Send + 'static>(
        &self,
        work: impl for<'a> FnOnce(&'a mut Running) -> Work<'a, T> + Send + 'static,
    ) -> Result<Queued<T>, Error> {
        let host = &self.plugin.0.host.0;
        let waits = Arc::clone(&host.waiting).try_acquire_owned();
        let waits = waits.map_err(|_| self.limit(Limit::Waiting(host.limits.waiting)))?;
        let turn = self.session.queue.join();
        let (reply, answer) = oneshot::channel();
        let (settled, when_settled) = oneshot::channel();
        // In a task of its own from here on: whoever stops polling this future does not stop the calls behind it.
        tokio::spawn(self.clone().run_queued(turn, waits, settled, reply, work));
        // An error means that the runtime shuts down; the call then answers so.
        let _ = when_settled.await;
        Ok(Queued { answer, plugin: Arc::clone(&self.plugin.0.name) })
    }

    async fn run_queued<T: Send + 'static>(
        self,
        mut turn: Turn,
        waits: OwnedSemaphorePermit,
        settled: oneshot::Sender<()>,
        mut reply: oneshot::Sender<Result<T, Error>>,
        work: impl for<'a> FnOnce(&'a mut Running) -> Work<'a, T> + Send + 'static,
    ) {
        let run = async {
            turn.take_position(&self.session.guard).await;
            let _ = settled.send(());
            // Whoever queued the call goes on first.
            tokio::task::yield_now().await;
            turn.wait().await;
            self.run(Some(waits), Some(self.access(&turn)), Some(&self.config), work).await
        };
        let result = tokio::select! {
            result = run => Some(result),
            // Nobody waits for the answer any more.
            () = reply.closed() => None,
        };
        // The next call begins before the answer is seen, or not at all.
        drop(turn);
        if let Some(result) = result {
            let _ = reply.send(result);
        }
    }

    /// What a call may reach.
    fn access(&self, turn: &Turn) -> Access {
        Access {
            guard: Arc::clone(&self.session.guard),
            queue: Arc::clone(&self.session.queue),
            handle: Arc::clone(&turn.handle),
            grants: Arc::clone(&self.grants),
            plugin: Arc::clone(&self.plugin.0.name),
        }
    }

    /// Runs one call, after the plugin took its configuration, where one is given.
    async fn run<T: Send>(
        &self,
        waits: Option<OwnedSemaphorePermit>,
        access: Option<Access>,
        config: Option<&str>,
        work: impl for<'a> FnOnce(&'a mut Running) -> Work<'a, T> + Send,
    ) -> Result<T, Error> {
        let PluginState { host, loaded, name, .. } = &*self.plugin.0;
        let call = Call { host, loaded, name, encoding: self.session.guard.preferred_encoding(), access };
        call.run(waits, config, work).await
    }

    fn limit(&self, limit: Limit) -> Error {
        Error::Limit { plugin: self.plugin.0.name.to_string(), limit, kept: Kept::default() }
    }
}

/// Calls a tool on an instance. `result`: the most bytes of what it answers.
async fn call_tool(
    running: &mut Running<'_>,
    tool: String,
    arguments: String,
    result: usize,
) -> wasmtime::Result<Result<ToolResult, ToolError>> {
    let tools = running.tools()?;
    let on = running.branch()?;
    let answer = tools.call_call_tool(&mut running.store, on, &tool, &arguments).await?;
    match answer {
        Ok(done) if done.text.len() > result || done.details.len() > result => {
            Err(running.reach(Limit::Result(result)))
        }
        Ok(done) => Ok(Ok(done)),
        Err(error) => Ok(Err(ToolError {
            code: shorten(&error.code, 256),
            message: shorten(&error.message, result),
            // Half of a JSON text is none.
            data: error.data.filter(|data| data.len() <= result),
        })),
    }
}
