//! The requests that wait for their answers: how many there may be, and what the end of the input waits for.

use rmcp::model::RequestId;
use serde_json::value::RawValue;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How many requests may wait for their answers before no more are read.
pub(super) const MAX_PENDING: usize = 256;

/// The requests of one client. Clones are the same.
#[derive(Clone)]
pub(super) struct Requests(Arc<State>);

struct State {
    slots: Arc<Semaphore>,
    waiting: Mutex<HashMap<RequestId, Waiting>>,
    /// How many of them will be answered without the client doing anything.
    unanswered: watch::Sender<usize>,
    /// Has the input ended?
    ended: watch::Sender<bool>,
}

/// A place among those that may wait.
pub(super) type Slot = OwnedSemaphorePermit;

struct Waiting {
    slot: Slot,
    kind: Kind,
    structured: Option<Box<RawValue>>,
}

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its work.
    Answer,
    /// The client, which ends it.
    Stream,
}

impl Requests {
    pub(super) fn new() -> Requests {
        Requests(Arc::new(State {
            slots: Arc::new(Semaphore::new(MAX_PENDING)),
            waiting: Mutex::default(),
            unanswered: watch::Sender::default(),
            ended: watch::Sender::default(),
        }))
    }

    /// Waits for a place.
    pub(super) async fn slot(&self) -> Option<Slot> {
        Arc::clone(&self.0.slots).acquire_owned().await.ok()
    }

    /// Takes a request on; gives the place back where another request of this id waits.
    pub(super) fn begin(&self, id: &RequestId, kind: Kind, slot: Slot) -> Result<(), Slot> {
        let mut waiting = self.waiting();
        match waiting.entry(id.clone()) {
            Entry::Occupied(_) => Err(slot),
            Entry::Vacant(free) => {
                free.insert(Waiting { slot, kind, structured: None });
                self.count(&waiting);
                Ok(())
            }
        }
    }

    /// Puts the structured part of an answer by, as the text that it is: the library knows only values, and to read one and to
    /// write it again takes longer than all else that it does. A request that was cancelled keeps nothing.
    pub(super) fn put_by(&self, id: &RequestId, structured: Box<RawValue>) {
        if let Some(waiting) = self.waiting().get_mut(id) {
            waiting.structured = Some(structured);
        }
    }

    /// The request is answered, or waits for nothing any more. Its place, and what was put by.
    pub(super) fn end(&self, id: &RequestId) -> Option<(Slot, Option<Box<RawValue>>)> {
        let mut waiting = self.waiting();
        let ended = waiting.remove(id)?;
        self.count(&waiting);
        Some((ended.slot, ended.structured))
    }

    /// The input has ended: no request comes any more. Returns when those that came are answered.
    pub(super) async fn finish(&self) {
        self.0.ended.send_replace(true);
        // The sender is this.
        let _ = self.0.unanswered.subscribe().wait_for(|&unanswered| unanswered == 0).await;
    }

    /// Waits for the end of the input.
    pub(super) async fn input_ended(&self) {
        let _ = self.0.ended.subscribe().wait_for(|&ended| ended).await;
    }

    fn count(&self, waiting: &HashMap<RequestId, Waiting>) {
        self.0.unanswered.send_replace(waiting.values().filter(|waiting| waiting.kind == Kind::Answer).count());
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn the_end_waits_for_answers_and_not_for_streams() {
        let requests = Requests::new();
        let (call, stream) = (NumberOrString::Number(1), NumberOrString::Number(2));
        for (id, kind) in [(&call, Kind::Answer), (&stream, Kind::Stream)] {
            assert!(requests.begin(id, kind, requests.slot().await.unwrap()).is_ok());
        }
        assert!(requests.begin(&call, Kind::Answer, requests.slot().await.unwrap()).is_err(), "the id is taken");
        let wait = Duration::from_millis(50);
        assert!(timeout(wait, requests.input_ended()).await.is_err());
        assert!(timeout(wait, requests.finish()).await.is_err());
        requests.input_ended().await;
        drop(requests.end(&call).unwrap());
        requests.finish().await;
    }

    #[tokio::test]
    async fn what_was_put_by_goes_with_its_request() {
        let requests = Requests::new();
        let id = NumberOrString::Number(1);
        requests.put_by(&id, RawValue::from_string("1".into()).unwrap());
        assert!(requests.begin(&id, Kind::Answer, requests.slot().await.unwrap()).is_ok());
        requests.put_by(&id, RawValue::from_string("2".into()).unwrap());
        assert_eq!(requests.end(&id).unwrap().1.unwrap().get(), "2");
        assert!(requests.end(&id).is_none());
    }
}
