//! The clock of the engines: it ticks while calls run, and stops by itself.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use wasmtime::{Engine, EngineWeak};

/// The time between two ticks: how exactly compute time is measured.
const TICK: Duration = Duration::from_millis(10);
/// How long an idle ticker stays before its thread ends.
const IDLE: Duration = Duration::from_secs(2);

/// Ticks the epochs of some engines while calls run.
pub(super) struct Ticker {
    engines: Vec<EngineWeak>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    runs: bool,
}

/// While this lives, the ticker ticks.
pub(crate) struct Ticking(Arc<Ticker>);

impl Ticker {
    pub(super) fn new<'a>(engines: impl IntoIterator<Item = &'a Engine>) -> Arc<Ticker> {
        let engines = engines.into_iter().map(Engine::weak).collect();
        Arc::new(Ticker { engines, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Begins to tick, if it does not yet.
    pub(super) fn start(self: &Arc<Self>) -> std::io::Result<Ticking> {
        let mut state = self.state();
        if !state.runs {
            let ticker = Arc::clone(self);
            thread::Builder::new().name("plan-execute ticker".into()).spawn(move || ticker.run())?;
            state.runs = true;
        }
        state.calls += 1;
        self.changed.notify_one();
        Ok(Ticking(Arc::clone(self)))
    }

    fn run(&self) {
        loop {
            let state = self.state();
            let idle = |state: &mut State| state.calls == 0;
            let (mut state, waited) =
                self.changed.wait_timeout_while(state, IDLE, idle).unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() {
                state.runs = false;
                return;
            }
            drop(state);
            thread::sleep(TICK);
            self.engines.iter().filter_map(EngineWeak::upgrade).for_each(|engine| engine.increment_epoch());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
    }
}
