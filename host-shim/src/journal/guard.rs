//! What stands around every journal: time limits, the check of a position, and the latch after a write of unknown outcome.

use super::{
    AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Opening, Payload, Position, ReadError,
};
use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

/// A journal whose failures are kept to its opening.
pub(crate) struct Guard {
    journal: Arc<dyn Journal>,
    operation: Duration,
    /// Held by whoever changes the session, until the change has ended, whatever became of its caller.
    writing: Arc<AsyncMutex<()>>,
    state: Mutex<State>,
}

struct State {
    /// Where the session stood when it was last looked at.
    known: Position,
    /// Why nothing may be done in this opening any more.
    latched: Option<String>,
}

impl Guard {
    /// Looks at the session for the first time. `operation`: the time for each operation.
    pub(crate) async fn open(journal: Arc<dyn Journal>, operation: Duration) -> Result<Guard, ReadError> {
        let known = in_time(operation, journal.position()).await?;
        Ok(Guard { journal, operation, writing: Arc::default(), state: Mutex::new(State { known, latched: None }) })
    }

    pub(crate) fn durability(&self) -> Durability {
        self.journal.durability()
    }

    pub(crate) fn preferred_encoding(&self) -> Encoding {
        self.journal.preferred_encoding()
    }

    /// Where the session stood when it was last looked at.
    pub(crate) fn known(&self) -> Position {
        self.state().known.clone()
    }

    /// Where the session stands. After a write of unknown outcome the storage is not asked any more.
    pub(crate) async fn position(&self) -> Result<Position, ReadError> {
        let before = {
            let state = self.state();
            if state.latched.is_some() {
                return Ok(state.known.clone());
            }
            state.known.opening
        };
        let position = in_time(self.operation, self.journal.position()).await?;
        self.note(&position, before);
        Ok(position)
    }

    /// Does the session still stand at `at`? In the order session, branch, latch.
    pub(crate) async fn check(&self, at: &Position) -> Result<(), ReadError> {
        let position = self.position().await?;
        self.compare(&position, at)
    }

    fn compare(&self, found: &Position, at: &Position) -> Result<(), ReadError> {
        if found.opening != at.opening {
            return Err(ReadError::SessionChanged);
        }
        if found.leaf != at.leaf {
            return Err(ReadError::BranchChanged);
        }
        self.check_latch(at.opening)
    }

    /// Remembers where the session was found by a look that began in the opening `before`. What is found after a write of
    /// unknown outcome does not count, and neither does an answer that comes after the session was opened again: the latch
    /// belongs to the new opening.
    fn note(&self, position: &Position, before: Opening) {
        let mut state = self.state();
        if state.latched.is_none() && state.known.opening == before {
            state.known = position.clone();
        }
    }

    /// [`check`](Guard::check), then [`latest`](Guard::latest), with one look at the storage where the journal can.
    pub(crate) async fn check_latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        if self.is_latched() {
            self.check(at).await?;
        }
        let before = self.known().opening;
        let (position, entry) = in_time(self.operation, self.journal.position_and_latest(at, custom_type)).await?;
        self.note(&position, before);
        self.compare(&position, at)?;
        Ok(entry)
    }

    pub(crate) async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        self.check_latch(at.opening)?;
        in_time(self.operation, self.journal.latest(at, custom_type)).await
    }

    pub(crate) async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        self.check_latch(at.opening)?;
        in_time(self.operation, self.journal.entries(at, custom_type, before, limit)).await
    }

    /// Appends, where the session still stands at `at`: the journal checks that in the same step. A payload that is refused is
    /// so only after the session was looked at: session, branch and latch come before it. The write goes on when this
    /// future is dropped or out of time; then this opening is latched. `saved` is told of a success in any case, before
    /// anybody can look at the session again; `begun`, that from now on the outcome may be unknown.
    pub(crate) async fn append(
        self: &Arc<Self>,
        at: &Position,
        custom_type: &str,
        payload: Result<CheckedPayload, AppendError>,
        begun: impl FnOnce() + Send,
        saved: impl FnOnce(&Payload, &Appended) + Send + 'static,
    ) -> Result<Appended, AppendError> {
        let payload = match payload {
            Ok(payload) if !self.is_latched() => payload,
            checked => {
                self.check(at).await?;
                checked?
            }
        };
        let waited = timeout(self.operation, Arc::clone(&self.writing).lock_owned()).await;
        let Ok(writing) = waited else {
            return Err(AppendError::Unavailable(format!(
                "an earlier change of the session took longer than {:?}",
                self.operation
            )));
        };
        // Whoever held the lock before may have latched this opening or replaced it.
        self.check_latch(at.opening)?;
        begun();
        let unfinished = Unfinished { guard: self, opening: at.opening, ended: false };
        let (guard, at, custom_type) = (Arc::clone(self), at.clone(), custom_type.to_owned());
        let write = tokio::spawn(async move {
            let result = guard.journal.append(&at, &custom_type, &payload).await;
            if let Ok(appended) = &result {
                {
                    let mut state = guard.state();
                    if state.known.opening == at.opening {
                        state.known.leaf = Some(appended.id.as_str().into());
                    }
                }
                saved(payload.as_payload(), appended);
            }
            drop(writing);
            result
        });
        match timeout(self.operation, write).await {
            Ok(Ok(Err(AppendError::Failed(reason)))) => Err(AppendError::Failed(unfinished.latch(reason))),
            Ok(Ok(result)) => {
                unfinished.ended();
                result
            }
            Ok(Err(panic)) => Err(AppendError::Failed(unfinished.latch(format!("the journal broke down: {panic}")))),
            Err(_) => {
                let reason = format!("the journal did not answer within {:?}", self.operation);
                Err(AppendError::Failed(unfinished.latch(reason)))
            }
        }
    }

    /// Moves the leaf.
    pub(crate) async fn branch(self: &Arc<Self>, entry: Option<&str>) -> Result<Position, ReadError> {
        let opening = self.state().known.opening;
        self.check_latch(opening)?;
        let entry = entry.map(str::to_owned);
        let guard = Arc::clone(self);
        self.change(async move {
            let position = guard.journal.branch(entry.as_deref()).await?;
            guard.state().known = position.clone();
            Ok(position)
        })
        .await
    }

    /// Opens the session again, once a write that still goes on has ended.
    pub(crate) async fn reopen(self: &Arc<Self>) -> Result<Position, ReadError> {
        let guard = Arc::clone(self);
        self.change(async move {
            let position = guard.journal.reopen().await?;
            *guard.state() = State { known: position.clone(), latched: None };
            Ok(position)
        })
        .await
    }

    /// Changes where the session stands. Like a write, a change that was begun goes on when nobody waits for it any more.
    async fn change(
        &self,
        change: impl Future<Output = Result<Position, ReadError>> + Send + 'static,
    ) -> Result<Position, ReadError> {
        in_time(self.operation, async {
            let writing = Arc::clone(&self.writing).lock_owned().await;
            let change = tokio::spawn(async move {
                let _writing = writing;
                change.await
            });
            change.await.unwrap_or_else(|e| Err(ReadError::Other(format!("the journal broke down: {e}"))))
        })
        .await
    }

    /// Why nothing may be done in this opening any more, if that is so.
    pub(crate) fn latched(&self) -> Option<String> {
        self.state().latched.clone()
    }

    fn is_latched(&self) -> bool {
        self.state().latched.is_some()
    }

    fn check_latch(&self, opening: Opening) -> Result<(), ReadError> {
        let state = self.state();
        match &state.latched {
            _ if state.known.opening != opening => Err(ReadError::SessionChanged),
            Some(reason) => Err(ReadError::ReopenRequired(reason.clone())),
            None => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write whose end nobody has seen yet. Dropped so, it latches its opening.
struct Unfinished<'a> {
    guard: &'a Guard,
    opening: Opening,
    ended: bool,
}

impl Unfinished<'_> {
    fn ended(mut self) {
        self.ended = true;
    }

    fn latch(mut self, reason: String) -> String {
        self.ended = true;
        self.close(&reason);
        reason
    }

    fn close(&self, reason: &str) {
        let mut state = self.guard.state();
        if state.known.opening == self.opening {
            state.latched.get_or_insert_with(|| reason.to_owned());
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.close("the call ended while its write was under way");
        }
    }
}

async fn in_time<T>(limit: Duration, operation: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
    timeout(limit, unbroken(operation))
        .await
        .unwrap_or_else(|_| Err(ReadError::Unavailable(format!("the journal did not answer within {limit:?}"))))
}

/// A journal that panics answers an error, so that the call can still say what it had saved by then.
async fn unbroken<T>(operation: impl Future<Output = Result<T, ReadError>>) -> Result<T, ReadError> {
    let mut operation = pin!(operation);
    poll_fn(|context| {
        // It is not polled again afterwards.
        catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(ReadError::Other("the journal broke down while it was asked".into()))))
    })
    .await
}
