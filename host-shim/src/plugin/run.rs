//! Runs one call of a plugin in a store of its own, within all limits.

use super::{
    Host, Interfaces,
    bindings::exports::plan_execute::plugin as exports,
    call::{Access, BranchHandle, CallState, lock},
};
use crate::{
    Error, Kept, Limit,
    error::shorten,
    journal::Encoding,
    sandbox::{Instantiated, Loaded, Metered, Ticking, limit_of},
};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use wasmtime::{
    Store,
    component::{Instance, Resource},
};

/// What is done with an instance.
pub(super) type Work<'a, T> = Pin<Box<dyn Future<Output = wasmtime::Result<T>> + Send + 'a>>;

/// What a call runs on.
pub(super) struct Call<'a> {
    pub(super) host: &'a Host,
    pub(super) loaded: &'a Loaded<CallState, Interfaces>,
    /// The plugin's name, for errors.
    pub(super) name: &'a str,
    pub(super) encoding: Encoding,
    /// What the call may reach of a session; nothing where a plugin is only asked about itself.
    pub(super) access: Option<Access>,
}

/// An instance in its store, while the call runs.
pub(super) struct Running<'a> {
    pub(super) store: Store<CallState>,
    instance: Instance,
    interfaces: &'a Interfaces,
    access: Option<Access>,
    _ticking: Ticking,
}

impl Running<'_> {
    pub(super) fn lifecycle(&mut self) -> wasmtime::Result<exports::lifecycle::Guest> {
        self.interfaces.lifecycle.load(&mut self.store, &self.instance)
    }

    pub(super) fn tools(&mut self) -> wasmtime::Result<exports::tools::Guest> {
        self.interfaces.tools.load(&mut self.store, &self.instance)
    }

    pub(super) fn plans(&mut self) -> wasmtime::Result<exports::plans::Guest> {
        match &self.interfaces.plans {
            Ok(plans) => plans.load(&mut self.store, &self.instance),
            Err(reason) => Err(wasmtime::Error::msg(reason.clone())),
        }
    }

    /// The handle to make the call with.
    pub(super) fn branch(&mut self) -> wasmtime::Result<Resource<BranchHandle>> {
        let access = self.access.take().ok_or_else(|| wasmtime::Error::msg("there is no session to call on"))?;
        self.store.data_mut().lend(access)
    }

    /// The error that ends the call because a limit was reached.
    pub(super) fn reach(&mut self, limit: Limit) -> wasmtime::Error {
        self.store.data_mut().meter().reach(limit)
    }
}

impl Call<'_> {
    /// Runs `work` on a fresh instance that took `config`, where one is given. The store is dropped afterwards, so a trap
    /// costs this call and nothing else.
    pub(super) async fn run<T: Send>(
        self,
        waits: Option<OwnedSemaphorePermit>,
        config: Option<&str>,
        work: impl for<'a, 'b> FnOnce(&'a mut Running<'b>) -> Work<'a, T> + Send,
    ) -> Result<T, Error> {
        let host = &*self.host.0;
        let kept = Arc::new(Mutex::new(Kept::default()));
        let name = self.name.to_owned();
        let run = async {
            // The semaphore is never closed. A call that waits for an instance still counts as one that waits.
            let _instance = host.instances.acquire().await.ok();
            drop(waits);
            self.run_within(config, &kept, work).await
        };
        let result = match timeout(host.limits.call, run).await {
            Ok(result) => result,
            Err(_) => Err(Fault::Limit(Limit::Call(host.limits.call))),
        };
        let kept = || lock(&kept).clone();
        result.map_err(|fault| match fault {
            Fault::Limit(limit) => Error::Limit { plugin: name, limit, kept: kept() },
            Fault::Trap(reason) => Error::Trap { plugin: name, reason, kept: kept() },
            Fault::Config(reason) => Error::Config { plugin: name, reason },
        })
    }

    async fn run_within<T: Send>(
        self,
        config: Option<&str>,
        kept: &Arc<Mutex<Kept>>,
        work: impl for<'a, 'b> FnOnce(&'a mut Running<'b>) -> Work<'a, T> + Send,
    ) -> Result<T, Fault> {
        let host = &*self.host.0;
        let data = || CallState::new(&host.limits, self.encoding, Arc::clone(kept));
        let fault = |store: &mut Store<CallState>, error: wasmtime::Error| {
            match limit_of(store.data_mut().meter(), &host.limits, &error) {
                Some(limit) => Fault::Limit(limit),
                // The innermost cause is what WebAssembly says; the rest is the plugin's own code.
                None => Fault::Trap(shorten(&error.root_cause().to_string(), host.limits.result)),
            }
        };
        let (instantiated, access) = (host.sandbox.instantiate(self.loaded, &host.limits, data).await, self.access);
        let mut running = match instantiated {
            Ok(Instantiated { store, instance, exports, ticking }) => {
                Running { store, instance, interfaces: exports, access, _ticking: ticking }
            }
            Err((mut store, error)) => return Err(fault(&mut store, error)),
        };
        if let Some(config) = config {
            let configured = match running.lifecycle() {
                Ok(lifecycle) => lifecycle.call_configure(&mut running.store, config).await,
                Err(error) => Err(error),
            };
            match configured {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => return Err(Fault::Config(shorten(&reason, host.limits.result))),
                Err(error) => return Err(fault(&mut running.store, error)),
            }
        }
        match work(&mut running).await {
            Ok(done) => Ok(done),
            Err(error) => Err(fault(&mut running.store, error)),
        }
    }
}

enum Fault {
    Limit(Limit),
    Trap(String),
    Config(String),
}
