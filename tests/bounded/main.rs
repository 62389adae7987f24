//! What hostile plugins leave behind in the host: nothing. In a process of its own, since others would be measured too.

use conformance::{arena::Arena, faults, resources::Resources};
use std::time::Duration;

/// How much the resident memory may grow, in KiB.
const GROWTH: usize = 16 * 1024;
/// How many more files and threads there may be: threads that wait for the disk come and go.
const MORE: usize = 8;

/// After a round of every kind, further ones take no more memory, open files or threads.
#[tokio::test]
async fn hostile_calls_leave_nothing_behind() {
    let mut arena = Arena::new(Duration::from_millis(200)).await;
    for kind in 0..arena.kinds.len() {
        arena.strike(kind).await.error.expect("the error that was expected");
    }
    let before = Resources::now();
    let mut highest = before;
    for i in 0..50 * faults() {
        let kind = i % arena.kinds.len();
        let struck = arena.strike(kind).await;
        struck.error.expect("the error that was expected");
        struck.next.into_iter().collect::<Result<Vec<()>, String>>().expect("the next calls work");
        highest = highest.zip(Resources::now()).map(|(a, b)| Resources {
            memory: a.memory.max(b.memory),
            files: a.files.max(b.files),
            threads: a.threads.max(b.threads),
        });
    }
    let Some((before, highest)) = before.zip(highest) else { return };
    assert!(highest.memory <= before.memory + GROWTH, "{before:?}, then up to {highest:?}");
    assert!(highest.files <= before.files + MORE, "{before:?}, then up to {highest:?}");
    assert!(highest.threads <= before.threads + MORE, "{before:?}, then up to {highest:?}");
}
