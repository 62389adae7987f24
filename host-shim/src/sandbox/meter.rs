//! What one call uses: memory, tables and compute time.

use crate::{Limit, Limits};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use wasmtime::{ResourceLimiter, StoreContextMut, UpdateDeadline};

/// The meter of one call. It is the store's limiter.
pub(crate) struct Meter {
    limits: Arc<Limits>,
    memory: usize,
    table_elements: usize,
    reached: Option<Limit>,
    refused: Option<Limit>,
    clock: Arc<Clock>,
}

/// Data of a store that has a meter.
pub(crate) trait Metered: Send + 'static {
    /// The meter.
    fn meter(&mut self) -> &mut Meter;
}

impl Meter {
    pub(crate) fn new(limits: Arc<Limits>) -> Meter {
        Meter { limits, memory: 0, table_elements: 0, reached: None, refused: None, clock: Arc::default() }
    }

    /// The limit that was reached first.
    pub(crate) fn reached(&self) -> Option<Limit> {
        self.reached
    }

    /// Which of memory and table elements was last refused. A plugin may go on without.
    pub(crate) fn refused(&self) -> Option<Limit> {
        self.refused
    }

    /// Notes that a limit was reached, and makes the error that ends the call.
    pub(crate) fn reach(&mut self, limit: Limit) -> wasmtime::Error {
        let limit = *self.reached.get_or_insert(limit);
        wasmtime::Error::msg(limit.to_string())
    }

    /// Stops the clock: time outside the plugin does not count.
    pub(crate) fn pause(&self) {
        self.clock.pause();
    }

    /// Starts the clock again.
    pub(crate) fn resume(&self) {
        self.clock.resume();
    }

    /// Is called at every tick while the plugin computes. It lets others run, until the time is up.
    pub(super) fn tick<T: Metered>(mut store: StoreContextMut<'_, T>) -> wasmtime::Result<UpdateDeadline> {
        let meter = store.data_mut().meter();
        let limit = meter.limits.compute;
        if meter.clock.pause() >= limit {
            return Err(meter.reach(Limit::Compute(limit)));
        }
        let clock = Arc::clone(&meter.clock);
        let yielded = async move {
            tokio::task::yield_now().await;
            clock.resume();
        };
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(yielded)))
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        if beyond_its_own(desired, most, self.limits.memory) {
            return Ok(false);
        }
        let total = self.memory + (desired - current);
        if total > self.limits.memory {
            self.refused = Some(Limit::Memory(self.limits.memory));
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        if beyond_its_own(desired, most, self.limits.table_elements) {
            return Ok(false);
        }
        let total = self.table_elements + (desired - current);
        if total > self.limits.table_elements {
            self.refused = Some(Limit::TableElements(self.limits.table_elements));
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    #[expect(clippy::misnamed_getters, reason = "wasmtime means core instances; ours means calls")]
    fn instances(&self) -> usize {
        self.limits.core_instances
    }

    fn tables(&self) -> usize {
        self.limits.tables
    }

    fn memories(&self) -> usize {
        self.limits.memories
    }
}

/// Is it more than the plugin's own maximum, which is below the limit? Nothing grows beyond that, so nothing is counted either.
fn beyond_its_own(desired: usize, most: Option<usize>, limit: usize) -> bool {
    most.is_some_and(|most| desired > most && most < limit)
}

/// How long a plugin computed, in nanoseconds.
struct Clock {
    base: Instant,
    used: AtomicU64,
    /// Since when it computes, after `base`; `STOPPED` while it does not.
    since: AtomicU64,
}

const STOPPED: u64 = u64::MAX;

impl Default for Clock {
    fn default() -> Self {
        Clock { base: Instant::now(), used: AtomicU64::new(0), since: AtomicU64::new(STOPPED) }
    }
}

impl Clock {
    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(STOPPED - 1)
    }

    /// Stops, and returns the time so far.
    fn pause(&self) -> Duration {
        let since = self.since.swap(STOPPED, Ordering::Relaxed);
        if since != STOPPED {
            self.used.fetch_add(self.now().saturating_sub(since), Ordering::Relaxed);
        }
        Duration::from_nanos(self.used.load(Ordering::Relaxed))
    }

    fn resume(&self) {
        self.since.store(self.now(), Ordering::Relaxed);
    }
}
