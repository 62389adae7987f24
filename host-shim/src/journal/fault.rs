//! A journal that fails on command (feature `testing`): around any journal, at a scripted operation, in a scripted way.
//!
//! ```
//! use plan_execute_host::journal::{AppendError, Journal, Memory, Payload};
//! use plan_execute_host::journal::fault::{Faulty, How, Operation};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let journal = Faulty::new(Memory::default());
//! journal.next(Operation::Append, How::After);
//! let (at, payload) = (journal.position().await.unwrap(), Payload::json("7").check().unwrap());
//! let failed = journal.append(&at, "example/number", &payload).await;
//! assert!(matches!(failed, Err(AppendError::Failed(_))));
//! // Nobody was told, and yet it is there.
//! assert_eq!(journal.inner().custom_entries().len(), 1);
//! # });
//! ```

use super::{AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Position, ReadError};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};
use tokio::sync::watch;

/// What a journal does. Its two ways to answer at once never fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Journal::position`].
    Position,
    /// [`Journal::latest`] and [`Journal::position_and_latest`].
    Latest,
    /// [`Journal::entries`].
    Entries,
    /// [`Journal::append`].
    Append,
    /// [`Journal::branch`].
    Branch,
    /// [`Journal::reopen`].
    Reopen,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 6] = [
        Operation::Position,
        Operation::Latest,
        Operation::Entries,
        Operation::Append,
        Operation::Branch,
        Operation::Reopen,
    ];
}

/// How an operation fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// Nothing is done, and this is the answer. An operation that has no such error answers the nearest one that it has.
    Before(AppendError),
    /// It breaks off. An append answers [`AppendError::Failed`], and its entry is there or it is not. Any other operation is
    /// begun, cancelled where it first waits, and answers [`ReadError::Unavailable`].
    Middle {
        /// Is the entry of an append there?
        kept: bool,
    },
    /// It is done, and then answers [`AppendError::Failed`], or [`ReadError::Unavailable`] where it is no append.
    After,
    /// Nothing is done until it is [released](Faulty::release); then it is done.
    Hang,
    /// It is done, and answers only when it is [released](Faulty::release).
    AnswerLost,
    /// Nothing is done, and it panics.
    Panic,
}

/// One fault of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which operation fails.
    pub operation: Operation,
    /// Which of them, counted from the moment when the script was given: 1 is the next one. 0 counts as 1.
    pub nth: usize,
    /// In which way.
    pub how: How,
}

/// A journal with a script of faults. Clones are the same.
pub struct Faulty<J> {
    inner: Arc<Inner<J>>,
}

struct Inner<J> {
    journal: J,
    script: Mutex<Vec<Fault>>,
    made: AtomicUsize,
    /// Counts the releases.
    released: watch::Sender<usize>,
}

impl<J> Clone for Faulty<J> {
    fn clone(&self) -> Self {
        Faulty { inner: Arc::clone(&self.inner) }
    }
}

impl<J> Faulty<J> {
    /// Around `journal`, without a fault so far.
    pub fn new(journal: J) -> Faulty<J> {
        let inner =
            Inner { journal, script: Mutex::default(), made: AtomicUsize::new(0), released: watch::Sender::new(0) };
        Faulty { inner: Arc::new(inner) }
    }

    /// The journal that does the work. What is done there directly never fails.
    pub fn inner(&self) -> &J {
        &self.inner.journal
    }

    /// Adds faults to the script. Each happens once. Where two name the same operation, the earlier one happens, and the other
    /// is lost.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.lock().extend(faults);
    }

    /// The next operation of this kind fails.
    pub fn next(&self, operation: Operation, how: How) {
        self.script([Fault { operation, nth: 1, how }]);
    }

    /// How many faults happened.
    pub fn made(&self) -> usize {
        self.inner.made.load(Ordering::SeqCst)
    }

    /// Lets all that hang now go on.
    pub fn release(&self) {
        self.inner.released.send_modify(|released| *released += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.inner.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to happen to the operation that begins now.
    fn begin(&self, operation: Operation) -> Option<How> {
        let mut script = self.lock();
        let mut due = None;
        script.retain_mut(|fault| {
            if fault.operation != operation {
                return true;
            }
            fault.nth = fault.nth.saturating_sub(1);
            if fault.nth == 0 {
                due.get_or_insert_with(|| fault.how.clone());
            }
            fault.nth > 0
        });
        if due.is_some() {
            self.inner.made.fetch_add(1, Ordering::SeqCst);
        }
        due
    }

    /// An operation that is no append.
    async fn read<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, ReadError>> + Send,
    ) -> Result<T, ReadError> {
        let broken = || ReadError::Unavailable("a scripted fault".into());
        match self.begin(operation) {
            None => work.await,
            Some(How::Before(error)) => Err(read_error(error)),
            Some(How::Middle { .. }) => {
                let mut work = pin!(work);
                poll_fn(|context| {
                    let _ = work.as_mut().poll(context);
                    Poll::Ready(())
                })
                .await;
                Err(broken())
            }
            Some(How::After) => work.await.and(Err(broken())),
            Some(How::Hang) => {
                self.hang().await;
                work.await
            }
            Some(How::AnswerLost) => {
                let released = self.hang();
                let done = work.await;
                released.await;
                done
            }
            Some(How::Panic) => panic!("a scripted fault"),
        }
    }

    /// Ends with the next release from now on.
    fn hang(&self) -> impl Future<Output = ()> + use<J> {
        let mut released = self.inner.released.subscribe();
        async move {
            // A double that is gone holds nobody up.
            let _ = released.changed().await;
        }
    }
}

#[async_trait::async_trait]
impl<J: Journal> Journal for Faulty<J> {
    fn durability(&self) -> Durability {
        self.inner.journal.durability()
    }

    fn preferred_encoding(&self) -> Encoding {
        self.inner.journal.preferred_encoding()
    }

    async fn position(&self) -> Result<Position, ReadError> {
        self.read(Operation::Position, self.inner.journal.position()).await
    }

    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        self.read(Operation::Latest, self.inner.journal.latest(at, custom_type)).await
    }

    async fn position_and_latest(
        &self,
        at: &Position,
        custom_type: &str,
    ) -> Result<(Position, Option<Entry>), ReadError> {
        self.read(Operation::Latest, self.inner.journal.position_and_latest(at, custom_type)).await
    }

    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        self.read(Operation::Entries, self.inner.journal.entries(at, custom_type, before, limit)).await
    }

    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        let work = self.inner.journal.append(at, custom_type, payload);
        let broken = || AppendError::Failed("a scripted fault".into());
        match self.begin(Operation::Append) {
            None => work.await,
            Some(How::Before(error)) => Err(error),
            Some(How::Middle { kept: false }) => Err(broken()),
            Some(How::Middle { kept: true } | How::After) => work.await.and(Err(broken())),
            Some(How::Hang) => {
                self.hang().await;
                work.await
            }
            Some(How::AnswerLost) => {
                let released = self.hang();
                let done = work.await;
                released.await;
                done
            }
            Some(How::Panic) => panic!("a scripted fault"),
        }
    }

    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        self.read(Operation::Branch, self.inner.journal.branch(entry)).await
    }

    async fn reopen(&self) -> Result<Position, ReadError> {
        self.read(Operation::Reopen, self.inner.journal.reopen()).await
    }
}

/// The nearest error that an operation other than an append has.
fn read_error(error: AppendError) -> ReadError {
    match error {
        AppendError::SessionChanged => ReadError::SessionChanged,
        AppendError::BranchChanged => ReadError::BranchChanged,
        AppendError::ReopenRequired(reason) => ReadError::ReopenRequired(reason),
        AppendError::Denied(reason) => ReadError::Denied(reason),
        AppendError::Unavailable(reason) | AppendError::Failed(reason) => ReadError::Unavailable(reason),
        error @ AppendError::TooLarge(_) => ReadError::Other(error.to_string()),
        AppendError::InvalidPayload(reason) | AppendError::Other(reason) => ReadError::Other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Memory, Payload};

    #[tokio::test]
    async fn faults_happen_once_and_at_their_place() {
        let journal = Faulty::new(Memory::default());
        let before = How::Before(AppendError::Unavailable("full".into()));
        journal.script([
            Fault { operation: Operation::Append, nth: 2, how: before.clone() },
            Fault { operation: Operation::Append, nth: 4, how: How::Middle { kept: false } },
            Fault { operation: Operation::Append, nth: 5, how: How::After },
            Fault { operation: Operation::Entries, nth: 1, how: before },
        ]);
        let mut outcomes = Vec::new();
        for number in 1..=6 {
            let at = journal.position().await.unwrap();
            let payload = Payload::json(number.to_string()).check().unwrap();
            outcomes.push(match journal.append(&at, "t", &payload).await {
                Ok(_) => "done",
                Err(AppendError::Unavailable(_)) => "unavailable",
                Err(_) => "failed",
            });
        }
        assert_eq!(outcomes, ["done", "unavailable", "done", "failed", "failed", "done"]);
        let kept = journal.inner().custom_entries().into_iter().map(|(_, entry)| entry.payload.bytes);
        assert_eq!(kept.collect::<Vec<_>>(), [b"1", b"3", b"5", b"6"]);
        let at = journal.position().await.unwrap();
        let refused = journal.entries(&at, "t", None, 9).await;
        assert_eq!(refused, Err(ReadError::Unavailable("full".into())));
        assert_eq!(journal.entries(&at, "t", None, 9).await.unwrap().len(), 4);
        assert_eq!(journal.made(), 4);
    }
}
