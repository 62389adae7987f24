//! Runs WebAssembly components within limits. It knows nothing of plans or sessions.

mod cache;
mod compiler;
mod meter;
mod ticker;

pub use compiler::{Compiler, compile_standard_input};
pub(crate) use meter::{Meter, Metered};
pub(crate) use ticker::Ticking;

use crate::{Error, Kept, Limit, Limits, components, error::shorten};
use cache::Cache;
use sha2::{Digest, Sha256};
use std::{
    hash::{Hash, Hasher},
    path::Path,
    sync::Arc,
};
use ticker::Ticker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolConcurrencyLimitError, PoolingAllocationConfig, Store,
    Trap,
    component::{Component, Instance, InstancePre, Linker},
};

/// The engines, and how components get into them.
pub(crate) struct Sandbox {
    /// Instances in slots that are kept ready: the fast way.
    pooled: Option<Engine>,
    /// Instances made anew, where the pool has no place.
    on_demand: Engine,
    ticker: Arc<Ticker>,
    cache: Option<Cache>,
    compiler: Option<Compiler>,
    slot: Slot,
}

/// What a slot of the pool has room for.
struct Slot {
    /// Bytes of memory.
    memory: usize,
    /// Elements of one table.
    table_elements: usize,
}

impl Slot {
    /// Can nothing outgrow it that keeps to these limits?
    fn holds(&self, limits: &Limits) -> bool {
        limits.memory <= self.memory && limits.table_elements <= self.table_elements
    }
}

/// A component that is ready to be instantiated in a store with data `T`.
pub(crate) struct Loaded<T: 'static, E> {
    pooled: Option<Ready<T, E>>,
    on_demand: Ready<T, E>,
}

impl<T, E> Loaded<T, E> {
    /// What it exports. Only good for asking whether something is there: each engine finds exports by its own numbers.
    pub(crate) fn exports(&self) -> &E {
        &self.on_demand.exports
    }
}

/// The same in one of the engines.
struct Ready<T: 'static, E> {
    pre: InstancePre<T>,
    exports: E,
}

/// What a component may import, and what it must export.
pub(crate) struct Contract<T: 'static, E> {
    /// The one instance that it may import, with its version: `package:name/interface@1.2.3`.
    pub(crate) interface: &'static str,
    /// Puts that into a linker.
    pub(crate) link: fn(&mut Linker<T>) -> wasmtime::Result<()>,
    /// Finds the exports.
    pub(crate) exports: fn(&InstancePre<T>) -> Result<E, Error>,
}

/// An instance in a store of its own.
pub(crate) struct Instantiated<'a, T: 'static, E> {
    pub(crate) store: Store<T>,
    pub(crate) instance: Instance,
    pub(crate) exports: &'a E,
    /// While this lives, the compute time is watched.
    pub(crate) ticking: Ticking,
}

impl Sandbox {
    pub(crate) fn new(
        limits: &Limits,
        pooling: bool,
        cache: Option<&Path>,
        compiler: Option<Compiler>,
    ) -> Result<Sandbox, Error> {
        let on_demand = engine(None)?;
        // Where the address space has no room for the pool, the host works without.
        let pooled = if pooling { engine(Some(pool(limits))).ok() } else { None };
        let ticker = Ticker::new(pooled.iter().chain([&on_demand]));
        Ok(Sandbox {
            pooled,
            on_demand,
            ticker,
            cache: cache.and_then(Cache::open),
            compiler,
            slot: Slot { memory: limits.memory, table_elements: limits.table_elements },
        })
    }

    /// Loads a component for calls within `limits`: out of the cache, or by compiling it.
    pub(crate) async fn load<T: 'static, E>(
        &self,
        bytes: &[u8],
        pinned: Option<&str>,
        contract: &Contract<T, E>,
        limits: &Limits,
    ) -> Result<Loaded<T, E>, Error> {
        if bytes.len() > limits.component {
            let limit = Limit::Component(limits.component);
            return Err(Error::Limit { plugin: "(not loaded yet)".into(), limit, kept: Kept::default() });
        }
        check_kind(bytes)?;
        let hash = hex::encode(Sha256::digest(bytes));
        if let Some(pinned) = pinned
            && !pinned.eq_ignore_ascii_case(&hash)
        {
            return Err(Error::WrongHash { pinned: pinned.into(), found: hash });
        }
        let trusted = pinned.is_some() || components::is_bundled(bytes);
        let compiler = match &self.compiler {
            _ if trusted => None,
            Some(compiler) => Some(compiler),
            None => return Err(Error::NotPinned(hash)),
        };
        let engine_hash = engine_hash(&self.on_demand);
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&hash, &engine_hash));
        // What the cache holds may be of no use; then it is made anew.
        let ready = cached.and_then(|code| prepare(&self.on_demand, &code, contract).ok().map(|ready| (code, ready)));
        let (code, on_demand) = match ready {
            Some(ready) => ready,
            None => {
                let code = match compiler {
                    None => compile_here(&self.on_demand, bytes).await?,
                    Some(compiler) => compiler.compile(bytes, limits).await?,
                };
                let ready = prepare(&self.on_demand, &code, contract)?;
                if let Some(cache) = &self.cache {
                    cache.put(&hash, &engine_hash, &code);
                }
                (code, ready)
            }
        };
        // A component that does not fit into the pool's slots, or may outgrow them, runs without.
        let pool = self.pooled.as_ref().filter(|_| self.slot.holds(limits));
        let pooled = pool.and_then(|engine| prepare(engine, &code, contract).ok());
        Ok(Loaded { pooled, on_demand })
    }

    /// Makes an instance in a store of its own.
    pub(crate) async fn instantiate<'a, T: Metered, E>(
        &self,
        loaded: &'a Loaded<T, E>,
        limits: &Limits,
        data: impl Fn() -> T,
    ) -> Result<Instantiated<'a, T, E>, (Store<T>, wasmtime::Error)> {
        if let Some(ready) = &loaded.pooled {
            match self.instantiate_in(ready, limits, data()).await {
                // The pool is full. No call has reached the plugin yet.
                Err((_, error)) if error.is::<PoolConcurrencyLimitError>() => {}
                done => return done,
            }
        }
        self.instantiate_in(&loaded.on_demand, limits, data()).await
    }

    async fn instantiate_in<'a, T: Metered, E>(
        &self,
        ready: &'a Ready<T, E>,
        limits: &Limits,
        data: T,
    ) -> Result<Instantiated<'a, T, E>, (Store<T>, wasmtime::Error)> {
        let mut store = Store::new(ready.pre.engine(), data);
        store.limiter(|data| data.meter());
        store.set_hostcall_fuel(limits.crossing);
        store.set_max_component_handles(limits.handles);
        store.epoch_deadline_callback(|store| Meter::tick(store));
        store.set_epoch_deadline(1);
        let ticking = match self.ticker.start() {
            Ok(ticking) => ticking,
            Err(error) => return Err((store, error.into())),
        };
        store.data_mut().meter().resume();
        match ready.pre.instantiate_async(&mut store).await {
            Ok(instance) => Ok(Instantiated { store, instance, exports: &ready.exports, ticking }),
            Err(error) => Err((store, error)),
        }
    }
}

/// Which limit made this error, if one did.
pub(crate) fn limit_of(meter: &mut Meter, limits: &Limits, error: &wasmtime::Error) -> Option<Limit> {
    if meter.reached().is_some() {
        return meter.reached();
    }
    if matches!(error.downcast_ref(), Some(Trap::StackOverflow)) {
        return Some(Limit::Stack);
    }
    // wasmtime has no types for these; tests hold its words.
    let words = format!("{error:#}");
    [
        ("fuel allocated for hostcalls", Limit::Crossing(limits.crossing)),
        ("handle limit exceeded", Limit::Handles(limits.handles)),
        ("instance count too high", Limit::CoreInstances(limits.core_instances)),
        ("memory count too high", Limit::Memories(limits.memories)),
        ("table count too high", Limit::Tables(limits.tables)),
        ("memory minimum size of", Limit::Memory(limits.memory)),
        ("table minimum size of", Limit::TableElements(limits.table_elements)),
    ]
    .into_iter()
    .find_map(|(sign, limit)| words.contains(sign).then_some(limit))
    // A plugin that breaks down after it was refused memory broke down because of that, as far as anyone can tell.
    .or_else(|| meter.refused())
}

/// How much memory of a slot in the pool stays with it from one call to the next, in bytes.
const KEPT_MEMORY: usize = 256 * 1024;

/// An engine. What is compiled for one of them runs in all of them.
fn engine(pool: Option<PoolingAllocationConfig>) -> Result<Engine, Error> {
    let mut config = Config::new();
    config.epoch_interruption(true).wasm_component_model(true);
    // A plugin has no use for these, and what is off cannot be broken.
    config.wasm_memory64(false).wasm_relaxed_simd(false);
    // The text of a trap is enough; names and lines of the plugin's code tell its users nothing.
    config.wasm_backtrace_max_frames(None);
    if let Some(pool) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    Engine::new(&config).map_err(|e| Error::Engine(format!("{e:#}")))
}

fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let instances = u32::try_from(limits.instances).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    // What a call used of its memory is cleared rather than given back and asked for again, as far as it is this little.
    pool.linear_memory_keep_resident(KEPT_MEMORY).table_keep_resident(KEPT_MEMORY).pagemap_scan(Enabled::Auto);
    // A plugin in Rust takes three core instances, one memory and two tables.
    pool.total_component_instances(instances)
        .total_stacks(instances)
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(4))
        .table_elements(limits.table_elements)
        .max_memory_size(limits.memory);
    pool
}

fn engine_hash(engine: &Engine) -> String {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(&hasher.0.finalize()[..16])
}

/// Tells a component from other things that people hand in for one.
pub(crate) fn check_kind(bytes: &[u8]) -> Result<(), Error> {
    match bytes {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(Error::CoreModule),
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', ..] => Err(Error::Invalid("it is of an unknown version of the format".into())),
        _ => Err(Error::NotWasm),
    }
}

async fn compile_here(engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let (engine, bytes) = (engine.clone(), bytes.to_vec());
    tokio::task::spawn_blocking(move || engine.precompile_component(&bytes))
        .await
        .map_err(|e| Error::Compile(e.to_string()))?
        .map_err(|e| invalid(&e))
}

fn prepare<T, E>(engine: &Engine, code: &[u8], contract: &Contract<T, E>) -> Result<Ready<T, E>, Error> {
    let component = deserialize(engine, code)?;
    check_imports(engine, &component, contract.interface)?;
    let mut linker = Linker::new(engine);
    (contract.link)(&mut linker).map_err(|e| Error::Engine(format!("{e:#}")))?;
    let pre = linker.instantiate_pre(&component).map_err(|e| invalid(&e))?;
    let exports = (contract.exports)(&pre)?;
    Ok(Ready { pre, exports })
}

#[expect(unsafe_code, reason = "wasmtime trusts compiled code; where it came from is checked before")]
fn deserialize(engine: &Engine, code: &[u8]) -> Result<Component, Error> {
    // SAFETY: the code was compiled by this process or its compiler process, or was kept by one of them in a folder that
    // belongs to the user alone, and its SHA-256 was checked since. wasmtime itself checks that the engine fits.
    unsafe { Component::deserialize(engine, code) }.map_err(|e| invalid(&e))
}

/// How much an error shows of a name that a component has for something, in bytes.
const NAME: usize = 256;
/// How much an error shows of what is wrong with a component, in bytes. Names of its own may stand in it.
const FAULT: usize = 1024;

fn invalid(error: &wasmtime::Error) -> Error {
    Error::Invalid(shorten(&format!("{error:#}"), FAULT))
}

/// A component gets what is offered, in the version that is offered, and nothing else.
fn check_imports(engine: &Engine, component: &Component, offered: &'static str) -> Result<(), Error> {
    for (name, _) in component.component_type().imports(engine) {
        if name == offered {
            continue;
        }
        if without_version(name) == without_version(offered) {
            return Err(Error::Version { wanted: shorten(name, NAME), offered });
        }
        return Err(Error::Import { import: shorten(name, NAME), offered });
    }
    Ok(())
}

/// Why an export was not found: the component has it in another version, or not at all.
pub(crate) fn missing_export<T>(pre: &InstancePre<T>, interface: &'static str, reason: &wasmtime::Error) -> Error {
    let ty = pre.component().component_type();
    let mut others = ty.exports(pre.engine()).filter(|(name, _)| *name != interface);
    match others.find(|(name, _)| without_version(name) == without_version(interface)) {
        Some((name, _)) => Error::Version { wanted: shorten(name, NAME), offered: interface },
        None => Error::Export { interface, reason: reason.to_string() },
    }
}

/// An interface's name without its version.
fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}
