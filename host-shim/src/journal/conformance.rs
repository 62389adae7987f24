//! What every journal must do, as one suite for all of them (feature `testing`).
//!
//! Implement [`Storage`] for your journal and call [`check`] in a test:
//!
//! ```
//! use plan_execute_host::journal::{Encoding, Memory, conformance};
//!
//! struct InMemory;
//!
//! #[async_trait::async_trait]
//! impl conformance::Storage for InMemory {
//!     type Journal = Memory;
//!     async fn create(&self) -> Memory {
//!         Memory::new(Encoding::Json)
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! conformance::check(&InMemory).await;
//! # });
//! ```
//!
//! What a host makes of a journal that [fails](super::fault) is part of it. What it cannot show is that the journal tells the
//! truth when its storage fails: each error path of a journal needs a test in which that very operation fails.

mod faults;

use super::{AppendError, Appended, CheckedPayload, Encoding, Entry, Journal, Payload, Position, ReadError};
use serde_json::{Value, json};
use std::{collections::HashSet, sync::Arc};

/// Where sessions are kept.
#[async_trait::async_trait]
pub trait Storage: Sync {
    /// Its journals.
    type Journal: Journal;

    /// Makes a new session without entries.
    async fn create(&self) -> Self::Journal;

    /// Opens the session of `journal` once more, as another process would; `None` where nobody else can open it. A session
    /// without entries need not be there for others yet.
    async fn open_again(&self, journal: &Self::Journal) -> Option<Self::Journal> {
        let _ = journal;
        None
    }
}

/// Runs every check on new sessions.
///
/// # Panics
///
/// With a sentence that says which promise of [`Journal`] was broken.
pub async fn check<S: Storage>(storage: &S) {
    nothing_is_in_a_new_session(&storage.create().await).await;
    appends_are_found(&storage.create().await).await;
    payloads_come_back_as_they_were(&storage.create().await).await;
    a_stale_position_changes_nothing(&storage.create().await).await;
    of_appends_at_once_one_succeeds(storage.create().await).await;
    branches_are_apart(&storage.create().await).await;
    pages_lead_to_the_root(&storage.create().await).await;
    opening_again_ends_what_was_before(&storage.create().await).await;
    others_are_seen(storage).await;
    for seed in 0..8 {
        agrees_with_a_model(storage, seed).await;
    }
    faults::check(storage).await;
}

const TYPE: &str = "conformance/plan";
const OTHER: &str = "conformance/plan/more";

fn payload<J: Journal>(journal: &J, value: &Value) -> CheckedPayload {
    let payload = match journal.preferred_encoding() {
        Encoding::Json => Payload::json(value.to_string()),
        Encoding::Cbor => {
            let mut bytes = Vec::new();
            ciborium::into_writer(&sorted(value), &mut bytes).expect("memory");
            Payload { encoding: Encoding::Cbor, bytes }
        }
    };
    payload.check().expect("it is one value")
}

/// The value with keys in the order that deterministic CBOR has: by length, then by bytes.
fn sorted(value: &Value) -> ciborium::Value {
    match value {
        Value::Object(object) => {
            let mut pairs: Vec<(&String, &Value)> = object.iter().collect();
            pairs.sort_by_key(|(key, _)| (key.len(), key.as_bytes()));
            ciborium::Value::Map(
                pairs.into_iter().map(|(key, value)| (ciborium::Value::Text(key.clone()), sorted(value))).collect(),
            )
        }
        Value::Array(items) => ciborium::Value::Array(items.iter().map(sorted).collect()),
        other => ciborium::Value::serialized(other).expect("plain data"),
    }
}

fn value(entry: &Entry) -> Value {
    let read = match entry.payload.encoding {
        Encoding::Json => serde_json::from_slice(&entry.payload.bytes).map_err(|e| e.to_string()),
        Encoding::Cbor => ciborium::from_reader(&entry.payload.bytes[..]).map_err(|e| e.to_string()),
    };
    read.unwrap_or_else(|error| panic!("the payload of entry {} is not one value ({error})", entry.id))
}

async fn position<J: Journal>(journal: &J) -> Position {
    journal.position().await.expect("the journal says where the session stands")
}

async fn append<J: Journal>(journal: &J, custom_type: &str, what: &Value) -> Appended {
    let at = position(journal).await;
    let appended = journal.append(&at, custom_type, &payload(journal, what)).await;
    let appended = appended.unwrap_or_else(|error| panic!("an append where the session stands was refused: {error}"));
    let now = position(journal).await;
    assert_eq!(now.leaf.as_deref(), Some(appended.id.as_str()), "an append moves the leaf to its entry");
    assert_eq!(now.opening, at.opening, "an append is no other opening");
    assert_eq!(now.session_id, at.session_id, "an append is no other session");
    assert_eq!(appended.durability, journal.durability(), "an append is worth what the journal says");
    appended
}

async fn latest<J: Journal>(journal: &J, at: &Position, custom_type: &str) -> Option<Value> {
    let found = journal.latest(at, custom_type).await.expect("a position of this opening can be read");
    if *at == position(journal).await {
        let (_, both) = journal.position_and_latest(at, custom_type).await.expect("so can both at once");
        assert_eq!(both, found, "one look and two looks find the same");
    }
    found.as_ref().map(value)
}

/// All entries of the type, newest first, read in pages of `limit`.
async fn pages<J: Journal>(journal: &J, at: &Position, custom_type: &str, limit: u32) -> Vec<Entry> {
    let (mut all, mut before) = (Vec::<Entry>::new(), None::<String>);
    loop {
        let page = journal.entries(at, custom_type, before.as_deref(), limit).await;
        let page = page.unwrap_or_else(|error| panic!("the page before {before:?} cannot be read: {error}"));
        assert!(page.len() <= limit.max(1) as usize, "a page holds at most its limit");
        let Some(last) = page.last() else { return all };
        before = Some(last.id.clone());
        all.extend(page);
    }
}

async fn nothing_is_in_a_new_session<J: Journal>(journal: &J) {
    let at = position(journal).await;
    assert_eq!(at.leaf, None, "a new session stands before the first entry");
    assert!(!at.session_id.is_empty(), "a session has an id");
    assert_eq!(position(journal).await, at, "looking changes nothing");
    assert_eq!(latest(journal, &at, TYPE).await, None, "a new session holds nothing");
    assert!(pages(journal, &at, TYPE, 10).await.is_empty(), "a new session holds nothing");
    let missing = journal.entries(&at, TYPE, Some("none"), 1).await;
    assert!(matches!(missing, Err(ReadError::NotFound(_))), "what is before an unknown entry cannot be known");
    let branched = journal.branch(Some("none")).await;
    assert!(matches!(branched, Err(ReadError::NotFound(_))), "the leaf cannot move to an unknown entry");
    let stayed = journal.branch(None).await.expect("before the first entry is a place");
    assert_eq!(stayed.leaf, None);
}

async fn appends_are_found<J: Journal>(journal: &J) {
    let mut ids = HashSet::new();
    let mut newest = 0;
    for number in 0..20 {
        let custom_type = if number % 3 == 0 { OTHER } else { TYPE };
        let appended = append(journal, custom_type, &json!({ "number": number })).await;
        assert!(ids.insert(appended.id), "no two entries have one id");
        assert!(appended.timestamp_ms >= newest, "time does not run backwards");
        newest = appended.timestamp_ms;
        let at = position(journal).await;
        let found = journal.latest(&at, custom_type).await.expect("it can be read").expect("it was just appended");
        assert_eq!(Some(found.id.as_str()), at.leaf.as_deref(), "the newest entry is the one just appended");
        assert_eq!(found.timestamp_ms, Some(newest), "an entry has the time that its append had");
        assert_eq!(value(&found), json!({ "number": number }));
    }
    let at = position(journal).await;
    assert_eq!(latest(journal, &at, TYPE).await, Some(json!({"number": 19})));
    assert_eq!(latest(journal, &at, OTHER).await, Some(json!({"number": 18})), "a type is not its beginning");
    assert_eq!(latest(journal, &at, "conformance").await, None, "the beginning of a type is another type");
}

async fn payloads_come_back_as_they_were<J: Journal>(journal: &J) {
    let deep = (0..100).fold(json!(null), |inner, _| json!([inner]));
    for what in [
        json!(null),
        json!(true),
        json!(-7),
        json!(1.5),
        json!(9_007_199_254_740_991_u64),
        json!("Ünïcode \u{2028} 😀 \u{1} \\ \" \n {\"type\":\"custom\"}"),
        json!({"": {"b": [1, 2, {"c": []}], "a": {}}, "ключ": 1}),
        json!("x".repeat(200_000)),
        deep,
    ] {
        append(journal, TYPE, &what).await;
        assert_eq!(latest(journal, &position(journal).await, TYPE).await, Some(what), "a payload comes back as it was");
    }
    let other = match journal.preferred_encoding() {
        Encoding::Json => Payload { encoding: Encoding::Cbor, bytes: vec![0x81, 0x07] },
        Encoding::Cbor => Payload::json("[7]"),
    };
    let (at, other) = (position(journal).await, other.check().expect("it is one value"));
    match journal.append(&at, TYPE, &other).await {
        Ok(_) => {
            let now = position(journal).await;
            assert_eq!(latest(journal, &now, TYPE).await, Some(json!([7])), "what is taken comes back");
        }
        Err(AppendError::InvalidPayload(_)) => {
            assert_eq!(position(journal).await, at, "what is refused changes nothing");
        }
        Err(error) => panic!("another encoding is taken, or refused as invalid-payload, not as: {error}"),
    }
}

async fn a_stale_position_changes_nothing<J: Journal>(journal: &J) {
    let before = position(journal).await;
    append(journal, TYPE, &json!(1)).await;
    let now = position(journal).await;
    let refused = journal.append(&before, TYPE, &payload(journal, &json!(2))).await;
    assert_eq!(refused, Err(AppendError::BranchChanged), "the session does not stand there any more");
    assert_eq!(position(journal).await, now, "a refused append moves nothing");
    assert_eq!(latest(journal, &now, TYPE).await, Some(json!(1)), "a refused append writes nothing");
    assert_eq!(latest(journal, &before, TYPE).await, None, "an older position is still the view that it was");
    let (found, entry) = journal.position_and_latest(&before, TYPE).await.expect("both can be asked for at once");
    assert_eq!((found, entry), (now, None), "of another place than the session's nothing is read");
}

async fn of_appends_at_once_one_succeeds<J: Journal>(journal: J) {
    append(&journal, TYPE, &json!("first")).await;
    let at = position(&journal).await;
    let journal = Arc::new(journal);
    let appends: Vec<_> = (0..8)
        .map(|number| {
            let (journal, at) = (Arc::clone(&journal), at.clone());
            let what = payload(&*journal, &json!(number));
            tokio::spawn(async move { journal.append(&at, TYPE, &what).await })
        })
        .collect();
    let mut saved = Vec::new();
    for (number, append) in appends.into_iter().enumerate() {
        match append.await.expect("no append breaks down") {
            Ok(_) => saved.push(json!(number)),
            Err(error) => assert_eq!(error, AppendError::BranchChanged, "the others find that the leaf moved"),
        }
    }
    assert_eq!(saved.len(), 1, "check and write are one step, so one append of several at one place succeeds");
    let now = position(&*journal).await;
    assert_eq!(latest(&*journal, &now, TYPE).await, saved.pop());
    assert_eq!(pages(&*journal, &now, TYPE, 10).await.len(), 2, "nothing of the others was written");
}

async fn branches_are_apart<J: Journal>(journal: &J) {
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(append(journal, TYPE, &json!(number)).await.id);
    }
    let main = position(journal).await;
    let at = journal.branch(Some(&ids[1])).await.expect("it is an entry of this session");
    assert_eq!(position(journal).await, at, "the leaf stays where it was moved to");
    assert_eq!(at.opening, main.opening, "moving the leaf is no other opening");
    assert_eq!(latest(journal, &at, TYPE).await, Some(json!(1)), "only the path to the root counts");
    append(journal, TYPE, &json!("side")).await;
    let side = position(journal).await;
    assert_eq!(latest(journal, &main, TYPE).await, Some(json!(3)), "a branch does not change another one");
    let values = |page: Vec<Entry>| page.iter().map(value).collect::<Vec<_>>();
    assert_eq!(values(pages(journal, &side, TYPE, 2).await), [json!("side"), json!(1), json!(0)]);
    assert_eq!(values(pages(journal, &main, TYPE, 2).await), [json!(3), json!(2), json!(1), json!(0)]);
    let elsewhere = journal.entries(&side, TYPE, Some(&ids[3]), 1).await;
    assert!(matches!(elsewhere, Err(ReadError::NotFound(_))), "an entry of another branch is none of this one");
    let before = journal.branch(None).await.expect("before the first entry is a place");
    assert_eq!((before.leaf.as_deref(), latest(journal, &before, TYPE).await), (None, None));
    append(journal, OTHER, &json!("new root")).await;
    let root = position(journal).await;
    assert_eq!(latest(journal, &root, TYPE).await, None, "another root inherits nothing");
    let unknown = journal.branch(Some("none")).await;
    assert!(matches!(unknown, Err(ReadError::NotFound(_))));
    assert_eq!(position(journal).await, root, "a refused move moves nothing");
}

async fn pages_lead_to_the_root<J: Journal>(journal: &J) {
    let large = "y".repeat(150_000);
    for number in 0..24 {
        let custom_type = if number % 2 == 0 { TYPE } else { OTHER };
        append(journal, custom_type, &json!([number, large])).await;
    }
    let at = position(journal).await;
    for limit in [0, 1, 5, 1000] {
        let all = pages(journal, &at, TYPE, limit).await;
        let numbers: Vec<Value> = all.iter().map(|entry| value(entry)[0].clone()).collect();
        let expected: Vec<Value> = (0..24).rev().filter(|number| number % 2 == 0).map(Value::from).collect();
        assert_eq!(numbers, expected, "pages of {limit} lead from the newest entry to the oldest");
    }
    let page = journal.entries(&at, TYPE, None, 1000).await.expect("it can be read");
    let bytes: usize = page.iter().map(|entry| entry.payload.bytes.len()).sum();
    assert!(page.len() < 12 && bytes < 2 * 1024 * 1024, "a page holds about 1 MiB, not {bytes} bytes");
}

async fn opening_again_ends_what_was_before<J: Journal>(journal: &J) {
    let first = append(journal, TYPE, &json!(1)).await;
    append(journal, TYPE, &json!(2)).await;
    let before = journal.branch(Some(&first.id)).await.expect("it is an entry of this session");
    let after = journal.reopen().await.expect("the storage answers");
    assert_ne!(after.opening, before.opening, "a session that is opened again is another opening");
    assert_eq!(after.session_id, before.session_id, "it is the same session");
    assert_eq!(position(journal).await, after);
    assert_eq!(latest(journal, &after, TYPE).await, Some(json!(2)), "it stands on its newest entry");
    assert_eq!(journal.latest(&before, TYPE).await, Err(ReadError::SessionChanged), "what was before is over");
    let entries = journal.entries(&before, TYPE, None, 1).await;
    assert_eq!(entries, Err(ReadError::SessionChanged), "what was before is over");
    let append = journal.append(&before, TYPE, &payload(journal, &json!(3))).await;
    assert_eq!(append, Err(AppendError::SessionChanged), "what was before is over");
}

async fn others_are_seen<S: Storage>(storage: &S) {
    let ours = storage.create().await;
    let first = append(&ours, TYPE, &json!("ours")).await;
    let Some(theirs) = storage.open_again(&ours).await else { return };
    let at = position(&ours).await;
    assert_eq!(position(&theirs).await.session_id, at.session_id, "both are one session");
    assert_ne!(position(&theirs).await.opening, at.opening, "each is an opening of its own");
    assert_eq!(latest(&theirs, &position(&theirs).await, TYPE).await, Some(json!("ours")));
    append(&theirs, TYPE, &json!("theirs")).await;
    let refused = ours.append(&at, TYPE, &payload(&ours, &json!("late"))).await;
    assert_eq!(refused, Err(AppendError::BranchChanged), "what others append moves the leaf");
    let now = position(&ours).await;
    assert_eq!(now.opening, at.opening, "what others append is no other opening");
    assert_eq!(latest(&ours, &now, TYPE).await, Some(json!("theirs")), "the leaf is the newest entry");
    let moved = theirs.branch(Some(&first.id)).await.expect("it is an entry of this session");
    assert_eq!(position(&ours).await, now, "the leaf belongs to one opening");
    append(&ours, TYPE, &json!("ours again")).await;
    let refused = theirs.append(&moved, TYPE, &payload(&theirs, &json!("late"))).await;
    assert_eq!(refused, Err(AppendError::BranchChanged), "entries of others move a leaf that was moved before");
}

/// One entry as the model keeps it.
struct Kept {
    id: String,
    parent: Option<usize>,
    custom_type: &'static str,
    number: usize,
}

/// The entry that the branch ending at `leaf` has for a type.
fn newest(kept: &[Kept], mut leaf: Option<usize>, custom_type: &str) -> Option<usize> {
    while let Some(node) = leaf {
        if kept[node].custom_type == custom_type {
            return leaf;
        }
        leaf = kept[node].parent;
    }
    None
}

/// Random sequences of operations, beside a list that is walked.
async fn agrees_with_a_model<S: Storage>(storage: &S, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let journal = storage.create().await;
    let (mut kept, mut leaf) = (Vec::<Kept>::new(), None);
    let mut views: Vec<(Position, Option<usize>)> = Vec::new();
    for number in 0..80 {
        let custom_type = *random.choice([TYPE, OTHER, "conformance/rare"].iter()).expect("not empty");
        match random.u8(..10) {
            0..6 => {
                let appended = append(&journal, custom_type, &json!(number)).await;
                kept.push(Kept { id: appended.id, parent: leaf, custom_type, number });
                leaf = Some(kept.len() - 1);
            }
            6..8 if !kept.is_empty() => {
                leaf = random.bool().then(|| random.usize(..kept.len()));
                journal.branch(leaf.map(|node| kept[node].id.as_str())).await.expect("it is an entry of this session");
            }
            8 => {
                journal.reopen().await.expect("the storage answers");
                leaf = kept.len().checked_sub(1);
                views.clear();
            }
            _ => {}
        }
        views.push((position(&journal).await, leaf));
        let (at, node) = random.choice(views.iter()).expect("one was just added");
        let expected = newest(&kept, *node, custom_type);
        let found = latest(&journal, at, custom_type).await;
        assert_eq!(found, expected.map(|node| json!(kept[node].number)), "seed {seed}, operation {number}");
        let mut expected = Vec::new();
        let mut next = *node;
        while let Some(node) = newest(&kept, next, custom_type) {
            expected.push(kept[node].id.as_str());
            next = kept[node].parent;
        }
        let all = pages(&journal, at, custom_type, random.u32(0..4)).await;
        let all: Vec<&str> = all.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(all, expected, "seed {seed}, operation {number}");
    }
}
