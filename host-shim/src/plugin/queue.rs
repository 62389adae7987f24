//! The order of the calls of one session, and the handles of those that wait.

use super::events::Saved;
use crate::journal::{Appended, Durability, Entry, Guard, Opening, Payload, Position, ReadError, now_ms};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::sync::{broadcast, oneshot};
use uuid::Uuid;

/// How many saved entries a subscriber may be behind.
const BACKLOG: usize = 256;

/// The calls of one session. They run one after another, in the order in which they were queued.
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Only where somebody ever listened.
    saved: OnceLock<broadcast::Sender<Saved>>,
}

#[derive(Default)]
struct State {
    /// Of the call that runs and of those that wait.
    handles: VecDeque<Arc<Handle>>,
    /// Resolves when the newest call has ended.
    last: Option<oneshot::Receiver<Ended>>,
}

/// That a call has ended; or, where it gave up its turn, the end of the call before it.
struct Ended(Option<oneshot::Receiver<Ended>>);

/// Where the session stood when a call was queued.
pub(crate) struct Handle {
    /// In milliseconds since 1970 (UTC).
    pub(crate) queued_at_ms: u64,
    /// 32 hex digits, unique to the call.
    pub(crate) call_id: String,
    place: Mutex<Place>,
}

/// The place moves along with appends of the same queue.
enum Place {
    /// Not known yet. These appends were made meanwhile.
    Asked(Vec<Move>),
    Known(Position),
    /// The journal did not say. The call hears why; this is where the session stood before.
    Unknown(Position, ReadError),
}

/// The leaf that an append found, and the one that it left.
#[derive(Clone)]
struct Move {
    opening: Opening,
    from: Option<Arc<str>>,
    to: Arc<str>,
}

impl Move {
    fn carry(&self, position: &mut Position) {
        if position.opening == self.opening && position.leaf == self.from {
            position.leaf = Some(Arc::clone(&self.to));
        }
    }
}

/// A call's place in the queue. Dropped, it lets the next call run.
pub(crate) struct Turn {
    queue: Arc<Queue>,
    pub(crate) handle: Arc<Handle>,
    before: Option<oneshot::Receiver<Ended>>,
    ended: Option<oneshot::Sender<Ended>>,
}

impl Queue {
    pub(crate) fn new() -> Arc<Queue> {
        Arc::new(Queue { state: Mutex::default(), saved: OnceLock::new() })
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Saved> {
        self.saved.get_or_init(|| broadcast::channel(BACKLOG).0).subscribe()
    }

    /// Takes the next place.
    pub(crate) fn join(self: &Arc<Self>) -> Turn {
        let handle = Arc::new(Handle {
            queued_at_ms: now_ms(),
            call_id: Uuid::new_v4().simple().to_string(),
            place: Mutex::new(Place::Asked(Vec::new())),
        });
        let (ended, when_ended) = oneshot::channel();
        let mut state = self.state();
        let before = state.last.replace(when_ended);
        state.handles.push_back(Arc::clone(&handle));
        Turn { queue: Arc::clone(self), handle, before, ended: Some(ended) }
    }

    /// What an append from `at` is to tell when it has succeeded: the handles that wait at `at` move along, and subscribers
    /// hear of it. This must happen before the session can be looked at again.
    pub(crate) fn saver(
        self: &Arc<Self>,
        at: &Position,
        custom_type: &str,
        plugin: &Arc<str>,
        durability: Durability,
    ) -> impl FnOnce(&Payload, &Appended) + Send + use<> {
        let (queue, at, custom_type, plugin) =
            (Arc::clone(self), at.clone(), custom_type.to_owned(), Arc::clone(plugin));
        move |payload, appended| {
            let moved = Move { opening: at.opening, from: at.leaf, to: appended.id.as_str().into() };
            for handle in &queue.state().handles {
                handle.carry(&moved);
            }
            let entry =
                Entry { id: appended.id.clone(), timestamp_ms: Some(appended.timestamp_ms), payload: payload.clone() };
            let Some(listeners) = queue.saved.get() else { return };
            // They may all be gone again.
            let _ = listeners.send(Saved { session_id: at.session_id, plugin, custom_type, entry, durability });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Notes where the session stands now. What others of this queue append from here on carries the call along.
    pub(crate) async fn take_position(&self, guard: &Guard) {
        let found = guard.position().await;
        let mut place = self.handle.place();
        *place = match found {
            Ok(mut position) => {
                if let Place::Asked(moves) = &*place {
                    moves.iter().for_each(|moved| moved.carry(&mut position));
                }
                Place::Known(position)
            }
            Err(error) => Place::Unknown(guard.known(), error),
        };
    }

    /// Waits until every call before this one has ended.
    pub(crate) async fn wait(&mut self) {
        while let Some(before) = &mut self.before {
            // Where the sender is gone, so is the call.
            self.before = before.await.map_or(None, |Ended(earlier)| earlier);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.state().handles.retain(|handle| !Arc::ptr_eq(handle, &self.handle));
        if let Some(ended) = self.ended.take() {
            // Given up before its turn, it lets the next call wait for the one before. Perhaps there is no next one.
            let _ = ended.send(Ended(self.before.take()));
        }
    }
}

impl Handle {
    /// Where the session stood when the call was queued, moved along with the queue's own appends.
    pub(crate) fn position(&self) -> Position {
        match &*self.place() {
            Place::Known(position) | Place::Unknown(position, _) => position.clone(),
            Place::Asked(_) => unreachable!("a call runs once its position was asked for"),
        }
    }

    /// The same, for an operation of the call.
    ///
    /// # Errors
    ///
    /// What the journal answered when the call was queued.
    pub(crate) fn known(&self) -> Result<Position, ReadError> {
        match &*self.place() {
            Place::Known(position) => Ok(position.clone()),
            Place::Unknown(_, error) => Err(error.clone()),
            Place::Asked(_) => unreachable!("a call runs once its position was asked for"),
        }
    }

    fn carry(&self, moved: &Move) {
        match &mut *self.place() {
            Place::Asked(moves) => moves.push(moved.clone()),
            Place::Known(position) => moved.carry(position),
            Place::Unknown(..) => {}
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
