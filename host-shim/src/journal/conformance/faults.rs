//! What a host makes of a journal that fails: each operation in each way, under the guard that stands around every journal.

use super::{Storage, TYPE, pages, payload, position, value};
use crate::journal::{
    AppendError, Appended, CheckedPayload, Guard, Journal, Position, ReadError,
    fault::{Faulty, How, Operation},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// How long an operation that hangs is waited for. Whatever does not hang takes much less.
const HANG: Duration = Duration::from_secs(1);

pub(super) async fn check<S: Storage>(storage: &S) {
    let down = || How::Before(AppendError::Unavailable("a scripted fault".into()));
    for operation in Operation::ALL {
        for how in [down(), How::Middle { kept: false }, How::Middle { kept: true }, How::After] {
            one_fault(storage, operation, how).await;
        }
    }
    one_fault(storage, Operation::Append, How::Panic).await;
    one_fault(storage, Operation::Branch, How::Panic).await;
    one_fault(storage, Operation::Reopen, How::Panic).await;
    // All at once, since each takes its time.
    let hanging = async |operation| {
        one_fault(storage, operation, How::Hang).await;
        one_fault(storage, operation, How::AnswerLost).await;
    };
    tokio::join!(
        hanging(Operation::Position),
        hanging(Operation::Latest),
        hanging(Operation::Entries),
        hanging(Operation::Append),
        hanging(Operation::Branch),
        hanging(Operation::Reopen),
        a_late_answer_does_not_lift_the_latch(storage),
    );
}

/// A session under a guard, and what was acknowledged to whoever appended.
struct Session<J> {
    journal: Faulty<J>,
    guard: Arc<Guard>,
    acknowledged: Vec<(String, Value)>,
}

impl<J: Journal> Session<J> {
    async fn new<S: Storage<Journal = J>>(storage: &S) -> Session<J> {
        let journal = Faulty::new(storage.create().await);
        let guard = Guard::open(Arc::new(journal.clone()), HANG).await.expect("the journal answers");
        Session { journal, guard: Arc::new(guard), acknowledged: Vec::new() }
    }

    /// Appends where the session stands, as the next call of a plugin would.
    async fn append(&mut self, number: u32) -> Result<Appended, AppendError> {
        let at = self.guard.position().await?;
        self.append_at(&at, number).await
    }

    async fn append_at(&mut self, at: &Position, number: u32) -> Result<Appended, AppendError> {
        let what = self.payload(number);
        let appended = self.guard.append(at, TYPE, what, || {}, |_, _| {}).await;
        if let Ok(appended) = &appended {
            self.acknowledged.push((appended.id.clone(), json!(number)));
        }
        appended
    }

    fn payload(&self, number: u32) -> Result<CheckedPayload, AppendError> {
        Ok(payload(&self.journal, &json!(number)))
    }

    /// Until the session is opened again, nothing is read and nothing is written.
    async fn is_latched(&self) {
        let at = self.guard.position().await.expect("a latched opening does not ask the storage");
        let reopen = |error: &ReadError| matches!(error, ReadError::ReopenRequired(_));
        let read = self.guard.latest(&at, TYPE).await;
        assert!(read.as_ref().is_err_and(reopen), "nothing is shown after a write of unknown outcome: {read:?}");
        let read = self.guard.check_latest(&at, TYPE).await;
        assert!(read.as_ref().is_err_and(reopen), "nothing is shown after a write of unknown outcome: {read:?}");
        let read = self.guard.entries(&at, TYPE, None, 9).await;
        assert!(read.as_ref().is_err_and(reopen), "nothing is shown after a write of unknown outcome: {read:?}");
        let moved = self.guard.branch(None).await;
        assert!(moved.as_ref().is_err_and(reopen), "no leaf moves after a write of unknown outcome: {moved:?}");
        let what = self.payload(0);
        let written = self.guard.append(&at, TYPE, what, || {}, |_, _| {}).await;
        let refused = matches!(written, Err(AppendError::ReopenRequired(_)));
        assert!(refused, "nothing is written after a write of unknown outcome: {written:?}");
    }

    /// The storage holds what was acknowledged, in order, once, and at its end `unknown`, an entry that was kept though nobody
    /// was told.
    async fn holds<S: Storage<Journal = J>>(&mut self, storage: &S, unknown: Option<u32>, after: &str) {
        let found = held(self.journal.inner()).await;
        if let Some(number) = unknown {
            let entry = found.last().filter(|(_, value)| *value == json!(number));
            self.acknowledged.extend(entry.cloned());
        }
        assert_eq!(found, self.acknowledged, "what was acknowledged is there, in order, once, after {after}");
        if let Some(other) = storage.open_again(self.journal.inner()).await {
            assert_eq!(held(&other).await, self.acknowledged, "others find the same after {after}");
        }
    }
}

/// The entries of the type below the session's newest entry, oldest first.
async fn held<J: Journal>(journal: &J) -> Vec<(String, Value)> {
    let at = position(journal).await;
    let all = pages(journal, &at, TYPE, 10).await;
    all.into_iter().rev().map(|entry| (entry.id.clone(), value(&entry))).collect()
}

/// One operation fails in one way: who calls is told what is known of it, and the next call works, or is kept out until the
/// session was opened again. Then what the storage holds counts.
async fn one_fault<S: Storage>(storage: &S, operation: Operation, how: How) {
    let name = format!("{operation:?} failed as {how:?}");
    let mut session = Session::new(storage).await;
    for number in 1..=2 {
        session.append(number).await.expect("an append without a fault");
    }
    let at = session.guard.position().await.expect("no fault yet");
    session.journal.next(operation, how.clone());
    let guard = Arc::clone(&session.guard);
    let answer = match operation {
        Operation::Position => guard.position().await.map(drop),
        Operation::Latest => guard.check_latest(&at, TYPE).await.map(drop),
        Operation::Entries => guard.entries(&at, TYPE, None, 9).await.map(drop),
        Operation::Branch => guard.branch(at.leaf.as_deref()).await.map(drop),
        Operation::Reopen => guard.reopen().await.map(drop),
        Operation::Append => {
            let answer = session.append_at(&at, 3).await;
            match (&how, &answer) {
                (How::Before(error), Err(answer)) => assert_eq!(answer, error, "{name}"),
                (_, Err(AppendError::Failed(_))) => unknown_outcome(&mut session, &how, storage, &name).await,
                _ => panic!("an append of unknown outcome answered {answer:?}: {name}"),
            }
            session.append(4).await.unwrap_or_else(|error| panic!("the next append works after {name}: {error}"));
            return session.holds(storage, None, &name).await;
        }
    };
    match (answer, &how) {
        (Err(ReadError::Other(_)), How::Panic) | (Err(ReadError::Unavailable(_)), _) => {}
        (answer, _) => panic!("an operation that failed answered {answer:?}: {name}"),
    }
    if matches!((operation, &how), (Operation::Branch | Operation::Reopen, How::Hang | How::AnswerLost)) {
        let meanwhile = session.guard.reopen().await;
        assert!(matches!(meanwhile, Err(ReadError::Unavailable(_))), "a change that goes on is waited for: {name}");
        session.journal.release();
        session.guard.reopen().await.unwrap_or_else(|error| panic!("it can be opened once it ended: {error}: {name}"));
    }
    session.append(3).await.unwrap_or_else(|error| panic!("the next call works after {name}: {error}"));
    session.holds(storage, None, &name).await;
    session.journal.release();
}

/// After an append of which nobody knows what was kept.
async fn unknown_outcome<S: Storage>(session: &mut Session<S::Journal>, how: &How, storage: &S, name: &str) {
    session.is_latched().await;
    if matches!(how, How::Hang | How::AnswerLost) {
        let meanwhile = session.guard.reopen().await;
        assert!(matches!(meanwhile, Err(ReadError::Unavailable(_))), "a write that goes on is waited for: {name}");
        session.is_latched().await;
        session.journal.release();
    } else {
        // A storage that cannot be opened again yet changes nothing.
        for again in [How::Before(AppendError::Unavailable("a scripted fault".into())), How::After] {
            session.journal.next(Operation::Reopen, again);
            let refused = session.guard.reopen().await;
            assert!(matches!(refused, Err(ReadError::Unavailable(_))), "{refused:?}: {name}");
            session.is_latched().await;
        }
    }
    session.guard.reopen().await.unwrap_or_else(|error| panic!("it can be opened again: {error}: {name}"));
    let kept = !matches!(how, How::Middle { kept: false } | How::Panic);
    session.holds(storage, kept.then_some(3), name).await;
    let at = session.guard.position().await.expect("it was opened again");
    let shown = session.guard.check_latest(&at, TYPE).await.expect("it was opened again");
    assert_eq!(
        shown.as_ref().map(value),
        Some(json!(if kept { 3 } else { 2 })),
        "what the storage holds counts: {name}"
    );
}

/// A look that began before the session was opened again, and is answered after, is of the opening before. It must not become
/// the one that a failed write latches.
async fn a_late_answer_does_not_lift_the_latch<S: Storage>(storage: &S) {
    let mut session = Session::new(storage).await;
    session.append(1).await.expect("an append without a fault");
    for operation in [Operation::Position, Operation::Latest] {
        let before = session.guard.position().await.expect("no fault yet");
        session.journal.next(operation, How::AnswerLost);
        let (guard, at, made) = (Arc::clone(&session.guard), before.clone(), session.journal.made());
        let mut late = tokio::spawn(async move {
            match operation {
                Operation::Position => drop(guard.position().await),
                _ => drop(guard.check_latest(&at, TYPE).await),
            }
        });
        while session.journal.made() == made {
            tokio::task::yield_now().await;
        }
        let early = tokio::time::timeout(Duration::from_millis(20), &mut late).await;
        assert!(early.is_err(), "its answer is lost until it is released");
        session.guard.reopen().await.expect("no fault here");
        let at = session.guard.position().await.expect("no fault here");
        session.journal.release();
        late.await.expect("it does not break down");
        session.journal.next(Operation::Append, How::Middle { kept: false });
        let failed = session.append_at(&at, 2).await;
        assert!(matches!(failed, Err(AppendError::Failed(_))), "{failed:?}");
        session.is_latched().await;
        session.guard.reopen().await.expect("no fault here");
    }
    session.holds(storage, None, "a late answer").await;
}
