//! Each hostile plugin ends in the one error that names it and what it reached, writes nothing but what that error says, and
//! leaves the next call of every plugin to work.

use conformance::arena::Arena;
use std::time::Duration;

#[tokio::test]
async fn each_ends_in_one_error_and_the_next_calls_work() {
    let mut arena = Arena::new(Duration::from_millis(200)).await;
    let mut wrong = Vec::new();
    for kind in 0..arena.kinds.len() {
        // The second time it comes out of the cache and into a slot that was used.
        for _ in 0..2 {
            let struck = arena.strike(kind).await;
            let name = arena.kinds[kind].name;
            wrong.extend(struck.error.err());
            wrong.extend(struck.next.into_iter().filter_map(Result::err).map(|fault| format!("after {name}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
