//! A journal that is too slow. Whatever ends the call meanwhile, its error says which entries were saved, and whether one more may
//! have been.

use conformance::{
    attach, call,
    gated::{Gated, Hold},
    host_with, plan_tools,
    wat_plugin::WatPlugin,
};
use plan_execute_host::{Attached, Error, Event, Grants, Kept, Limit, Limits, journal::ReadError};
use sha2::{Digest, Sha256};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(100);

/// How the plugin goes on when its appends have been answered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It says that all is well.
    Answers,
    Traps,
    Loops,
}

/// What ends the call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The time for one operation is up, so the plugin goes on.
    Operation,
    /// The time for the whole call is up.
    Call,
    /// Whoever made the call gave it up.
    Dropped,
}

const APPEND: &str = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096)
    (i32.const 2) (i32.const 8192))";

/// A plugin that appends twice, on a session whose journal can be held up.
async fn appending_twice(then: Then, change: impl FnOnce(&mut Limits)) -> (Gated, Attached) {
    let then = match then {
        Then::Answers => "",
        Then::Traps => "unreachable",
        Then::Loops => "(loop $again (br $again))",
    };
    let host = host_with(|limits| {
        limits.compute = SOON;
        change(limits);
    });
    let bytes = WatPlugin { call_tool: format!("{APPEND} {APPEND} {then}"), ..WatPlugin::default() }.build();
    let plugin = host.load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await.unwrap();
    let journal = Gated::default();
    let session = host.open(journal.clone()).await.unwrap();
    (journal, attach(&plugin, &session).await)
}

fn ids(journal: &Gated) -> Vec<String> {
    journal.memory.custom_entries().into_iter().map(|(_, entry)| entry.id).collect()
}

#[tokio::test]
async fn an_append_that_outlives_its_call() {
    for hold in [Hold::Before, Hold::After] {
        for then in [Then::Answers, Then::Traps, Then::Loops] {
            for end in [End::Operation, End::Call, End::Dropped] {
                let case = format!("{hold:?}, {then:?}, {end:?}");
                let (journal, plugin) = appending_twice(then, |limits| match end {
                    End::Operation => limits.operation = SOON,
                    End::Call => limits.call = SOON,
                    End::Dropped => {}
                })
                .await;
                let session = plugin.session().clone();
                let mut saved = session.subscribe();
                journal.hold(2, hold);
                let queued = plugin.queue("run", "{}").await.unwrap();
                journal.held().await;
                let ended = match end {
                    End::Dropped => {
                        drop(queued);
                        None
                    }
                    _ => Some(queued.await),
                };
                let first = ids(&journal)[0].clone();
                let unknown = Kept { entries: vec![first.clone()], unknown: true };
                match (&ended, end, then) {
                    (None, ..) => {}
                    // The plugin heard that the write failed. What it makes of it is its own.
                    (Some(Ok(Ok(_))), End::Operation, Then::Answers) => {}
                    (Some(Err(error)), ..) => {
                        let kept = match error {
                            Error::Limit { limit: Limit::Call(_), kept, .. } if end == End::Call => kept,
                            Error::Limit { limit: Limit::Compute(_), kept, .. } if then == Then::Loops => kept,
                            Error::Trap { kept, .. } if then == Then::Traps => kept,
                            _ => panic!("{case}: {error}"),
                        };
                        assert_eq!(kept, &unknown, "{case}");
                        let text = error.to_string();
                        assert!(
                            text.contains(&first) && text.contains("it is unknown whether it was kept"),
                            "{case}: {text}"
                        );
                    }
                    _ => panic!("{case}: {ended:?}"),
                }
                // Nobody takes what may or may not be there for the session, until it is opened again.
                while session.reopen_required().is_none() {
                    tokio::task::yield_now().await;
                }
                let plans = attach(&plan_tools(plugin.plugin().host()).await, &session).await;
                assert_eq!(call(&plans, "plan_get", "{}").await.unwrap_err().code, "reopen-required", "{case}");
                journal.release();
                session.reopen().await.unwrap();
                let stored = ids(&journal);
                assert_eq!((stored.len(), &stored[0]), (2, &first), "{case}");
                for id in stored {
                    let Some(Event::Saved(heard)) = saved.next().await else { panic!("{case}: {id} was not heard of") };
                    assert_eq!(heard.entry.id, id, "{case}");
                }
                assert_eq!(call(&plans, "plan_get", "{}").await.unwrap_err().code, "no-plan", "{case}");
            }
        }
    }
}

/// An append that waited in vain for an earlier change has not begun, so nothing about it is unknown.
#[tokio::test]
async fn an_append_behind_a_slow_change_has_written_nothing() {
    for hold in [Hold::Before, Hold::After] {
        let (journal, plugin) = appending_twice(Then::Traps, |limits| limits.operation = SOON).await;
        let session = plugin.session().clone();
        journal.hold(1, hold);
        assert!(matches!(session.branch(None).await, Err(ReadError::Unavailable(_))), "{hold:?}");
        let error = plugin.call("run", "{}").await.unwrap_err();
        assert!(matches!(&error, Error::Trap { kept, .. } if *kept == Kept::default()), "{hold:?}: {error}");
        assert!(error.to_string().contains("nothing of this call was saved"), "{error}");
        assert!(ids(&journal).is_empty() && session.reopen_required().is_none(), "{hold:?}");
        journal.release();
        let error = plugin.call("run", "{}").await.unwrap_err();
        assert!(matches!(&error, Error::Trap { kept, .. } if kept.entries == ids(&journal)), "{hold:?}: {error}");
    }
}

/// Limits that are reached, and traps, after appends that were answered late but in time: all of them are named.
#[tokio::test]
async fn a_slow_answer_that_comes_in_time_counts() {
    for hold in [Hold::Before, Hold::After] {
        for then in [Then::Traps, Then::Loops] {
            let (journal, plugin) = appending_twice(then, |_| {}).await;
            journal.hold(1, hold);
            let queued = plugin.queue("run", "{}").await.unwrap();
            journal.held().await;
            // Longer than the compute time, which does not run meanwhile.
            tokio::time::sleep(2 * SOON).await;
            journal.release();
            let error = queued.await.unwrap_err();
            let (Error::Trap { kept, .. } | Error::Limit { limit: Limit::Compute(_), kept, .. }) = &error else {
                panic!("{error}")
            };
            assert_eq!((kept.entries.clone(), kept.unknown), (ids(&journal), false), "{error}");
            assert_eq!(kept.entries.len(), 2);
            assert!(kept.entries.iter().all(|id| error.to_string().contains(id)), "{error}");
        }
    }
}

/// What was not granted is denied at once, without the journal.
#[tokio::test]
async fn a_denied_append_does_not_wait() {
    let (journal, plugin) = appending_twice(Then::Traps, |_| {}).await;
    let session = plugin.session().clone();
    let plugin = session.attach(plugin.plugin(), "{}", Grants::Only(vec![])).await.unwrap();
    journal.hold(1, Hold::Before);
    let error = plugin.call("run", "{}").await.unwrap_err();
    assert!(matches!(&error, Error::Trap { kept, .. } if *kept == Kept::default()), "{error}");
}
