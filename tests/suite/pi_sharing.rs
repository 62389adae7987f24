//! One session file in several hands: two journals, and a stand-in for Pi that writes between our steps.

use conformance::{call, chain, fixtures::fixture, host, plan_session, refusal};
use plan_execute_host::{Attached, journal::pi::PiSession};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

const DONE: &str = r#"{"step":1,"status":"done"}"#;

/// Writes as Pi does: opens the file for each entry, writes once, closes. It keeps its own leaf in mind.
struct Pi {
    file: PathBuf,
    leaf: Value,
    entries: usize,
}

impl Pi {
    /// Opens the file: Pi stands on the last line.
    fn open(file: &Path) -> Pi {
        let text = fs::read_to_string(file).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let leaf = if last["type"] == "session" { Value::Null } else { last["id"].clone() };
        Pi { file: file.into(), leaf, entries: 0 }
    }

    fn append(&mut self, mut entry: Value) -> String {
        self.entries += 1;
        let id = format!("feed{:04x}", self.entries);
        entry["id"] = id.clone().into();
        entry["parentId"] = std::mem::replace(&mut self.leaf, id.clone().into());
        entry["timestamp"] = "2026-01-02T03:04:05.000Z".into();
        write(&self.file, format!("{entry}\n").as_bytes());
        id
    }

    fn message(&mut self) -> String {
        self.append(json!({"type": "message", "message": {"role": "user", "content": "Go on."}}))
    }

    fn plan(&mut self, title: &str) -> String {
        let data = json!({"title": title, "steps": [{"id": 1, "title": "a", "status": "pending"}]});
        self.append(json!({"type": "custom", "customType": "pi-harness/plan-execute", "data": data}))
    }
}

fn write(file: &Path, bytes: &[u8]) {
    File::options().append(true).open(file).unwrap().write_all(bytes).unwrap();
}

struct Place {
    _folder: tempfile::TempDir,
    file: PathBuf,
    tools: Attached,
}

/// A session with a plan of three steps that was made through the component.
async fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let tools = plan_session(&host(), PiSession::open_or_create(&file).await.unwrap()).await;
    call(&tools, "plan_create", &chain(3)).await.unwrap();
    Place { _folder: folder, file, tools }
}

async fn another(file: &Path) -> Attached {
    plan_session(&host(), PiSession::open(file).await.unwrap()).await
}

/// Calls a tool on another journal of the same file, to its end: nothing else runs meanwhile.
fn call_elsewhere(file: &Path, tool: &'static str, arguments: String) {
    let file = file.to_owned();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let session = PiSession::open_or_create(file).await.unwrap();
            call(&plan_session(&host(), session).await, tool, &arguments).await.unwrap();
        });
    });
    thread.join().unwrap();
}

#[tokio::test]
async fn two_journals_see_each_other() {
    let Place { file, tools, .. } = &place().await;
    let other = another(file).await;
    for (step, (writer, reader)) in (1..=3).zip([(tools, &other), (&other, tools), (tools, &other)]) {
        let change = json!({"step": step, "status": "done"}).to_string();
        let written = call(writer, "plan_advance", &change).await.unwrap();
        assert_eq!(call(reader, "plan_get", "{}").await.unwrap(), written);
    }
}

#[tokio::test]
async fn a_call_that_waited_while_another_journal_wrote_changes_nothing() {
    let Place { file, tools, .. } = &place().await;
    let waiting = tools.queue("plan_advance", DONE).await.unwrap();
    call_elsewhere(file, "plan_advance", r#"{"step":1,"status":"skipped"}"#.into());
    let before = fs::read(file).unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().code, "branch-changed");
    assert_eq!(fs::read(file).unwrap(), before);
    call(tools, "plan_advance", DONE).await.unwrap();
}

/// Many writers at once: every success stands in the file, once and in one chain; every other answer is a changed branch.
#[tokio::test(flavor = "multi_thread")]
async fn many_writers_make_one_chain() {
    let Place { file, .. } = &place().await;
    let mut writers = Vec::new();
    for _ in 0..4 {
        let tools = another(file).await;
        writers.push(tokio::spawn(async move {
            let mut saved = 0;
            for i in 0..40 {
                let status = ["in_progress", "done", "pending"][i % 3];
                let change = json!({"step": 1, "status": status}).to_string();
                match call(&tools, "plan_advance", &change).await {
                    Ok(_) => saved += 1,
                    Err(error) => assert_eq!(error.code, "branch-changed"),
                }
            }
            saved
        }));
    }
    let mut saved = 0;
    for writer in writers {
        saved += writer.await.unwrap();
    }
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2 + saved);
    assert!(saved >= 40, "{saved}");
    for pair in lines[1..].windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
    }
}

#[tokio::test]
async fn what_pi_writes_is_seen_before_the_next_call() {
    let Place { file, tools, .. } = &place().await;
    let mut pi = Pi::open(file);
    for _ in 0..3 {
        let id = pi.message();
        call(tools, "plan_get", "{}").await.unwrap();
        assert_eq!(tools.session().position().await.unwrap().leaf.as_deref(), Some(id.as_str()));
    }
    pi.plan("Pi's");
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["title"], "Pi's");
    call(tools, "plan_advance", DONE).await.unwrap();
    let lines = fs::read_to_string(file).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["parentId"], "feed0004");
}

#[tokio::test]
async fn a_call_that_waited_while_pi_wrote_changes_nothing() {
    let Place { file, tools, .. } = &place().await;
    let mut pi = Pi::open(file);
    for (tool, arguments) in [("plan_advance", DONE), ("plan_create", &chain(1)), ("plan_get", "{}")] {
        let waiting = tools.queue(tool, arguments).await.unwrap();
        pi.message();
        let before = fs::read(file).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap_err().code, "branch-changed", "{tool}");
        assert_eq!(fs::read(file).unwrap(), before, "{tool}");
    }
    call(tools, "plan_advance", DONE).await.unwrap();
}

/// A running Pi does not see our entries: its next one leaves our plan off its branch. Nothing is lost, and both plans
/// can be read.
#[tokio::test]
async fn a_running_pi_goes_its_own_way() {
    let Place { file, tools, .. } = &place().await;
    let mut pi = Pi::open(file);
    pi.message();
    let ours = call(tools, "plan_advance", DONE).await.unwrap();
    let our_leaf = tools.session().position().await.unwrap().leaf.unwrap();
    pi.message();
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "pending");
    tools.session().branch(Some(&our_leaf)).await.unwrap();
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap(), ours);
}

#[tokio::test]
async fn a_torn_line_counts_once_it_is_whole() {
    let Place { file, tools, .. } = &place().await;
    let leaf = tools.session().position().await.unwrap().leaf.unwrap();
    let plan = json!({"title": "Late", "steps": [{"id": 1, "title": "a", "status": "pending"}]});
    let line = json!({"type": "custom", "customType": "pi-harness/plan-execute", "data": plan, "id": "0a0a0a0a", "parentId": *leaf}).to_string();
    let (first, rest) = line.split_at(line.len() / 2);
    write(file, first.as_bytes());
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["title"], "Chain");
    write(file, rest.as_bytes());
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["title"], "Late");
    write(file, b"\n");
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["title"], "Late");
    call(tools, "plan_advance", DONE).await.unwrap();
    assert_eq!(call(&another(file).await, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "done");
}

#[tokio::test]
async fn a_line_without_a_line_feed_is_never_glued_to_ours() {
    for (tail, title) in [
        (
            r#"{"type":"custom","customType":"pi-harness/plan-execute","data":{"title":"Tail","steps":[{"id":1,"title":"a","status":"pending"}]},"id":"0a0a0a0a","parentId":null}"#,
            "Tail",
        ),
        (r#"{"type":"custom","customType":"pi-harness/plan-ex"#, "Chain"),
        ("\0\0\0\0", "Chain"),
    ] {
        let Place { file, tools, .. } = &place().await;
        write(file, tail.as_bytes());
        assert_eq!(call(tools, "plan_advance", DONE).await.unwrap()["title"], title);
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("{tail}\n{{\"type\":\"custom\"")), "{text}");
        assert_eq!(call(&another(file).await, "plan_get", "{}").await.unwrap()["title"], title);
    }
}

/// A line that was whole without its line feed, and then turned out to be longer: what was read before does not hold.
#[tokio::test]
async fn a_tail_that_changes_is_another_opening() {
    let Place { file, tools, .. } = &place().await;
    write(file, br#"{"type":"x","id":"0a0a0a0a","parentId":null}"#);
    let waiting = tools.queue("plan_get", "{}").await.unwrap();
    write(file, b"glued\n");
    assert_eq!(waiting.await.unwrap().unwrap_err().code, "session-changed");
    assert_eq!(call(tools, "plan_get", "{}").await.unwrap()["title"], "Chain");
}

#[tokio::test]
async fn a_file_that_is_replaced_or_rewritten_is_another_opening() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("replaced", |file| {
            let new = file.with_extension("new");
            fs::write(&new, fs::read(fixture("linear").file).unwrap()).unwrap();
            fs::rename(&new, file).unwrap();
        }),
        ("replaced by a copy of itself", |file| {
            let new = file.with_extension("new");
            fs::copy(file, &new).unwrap();
            fs::rename(&new, file).unwrap();
        }),
        ("rewritten in place", |file| fs::write(file, fs::read(fixture("linear").file).unwrap()).unwrap()),
        ("the last line changed in place", |file| {
            let text = fs::read_to_string(file).unwrap();
            fs::write(file, text.replace("Chain", "Choir")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let Place { file, tools, .. } = &place().await;
        let token = tools.session().position().await.unwrap().token();
        let waiting = tools.queue("plan_advance", DONE).await.unwrap();
        change(file);
        let before = fs::read(file).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap_err().code, "session-changed", "{name}");
        assert_eq!(fs::read(file).unwrap(), before, "{name}");
        assert_ne!(tools.session().position().await.unwrap().token(), token, "{name}");
        call(tools, "plan_create", &chain(2)).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_cut_or_gone_is_not_written_to() {
    let Place { file, tools, .. } = &place().await;
    fs::remove_file(file).unwrap();
    for (tool, arguments) in [("plan_get", "{}"), ("plan_create", &chain(1))] {
        let (code, message) = refusal(tools, tool, arguments).await;
        assert_eq!(code, "unavailable", "{message}");
    }
    assert!(!file.exists());
    fs::write(file, "no session\n").unwrap();
    let (code, _) = refusal(tools, "plan_create", &chain(1)).await;
    assert_eq!(code, "other");
    assert_eq!(fs::read_to_string(file).unwrap(), "no session\n");
}

#[tokio::test]
async fn two_that_make_the_same_file_make_one_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let second = plan_session(&host(), PiSession::open_or_create(&file).await.unwrap()).await;
    let waiting = second.queue("plan_create", &chain(2)).await.unwrap();
    call_elsewhere(&file, "plan_create", chain(3));
    assert_eq!(waiting.await.unwrap().unwrap_err().code, "session-changed");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("\"type\":\"session\"").count(), 1);
    assert_eq!(call(&second, "plan_get", "{}").await.unwrap()["steps"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_lock_that_is_held_for_a_moment_is_waited_for() {
    let Place { file, tools, .. } = &place().await;
    let held = File::open(file).unwrap();
    held.lock().unwrap();
    let mut waiting = tools.queue("plan_advance", DONE).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err());
    drop(held);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn changing_one_branch_leaves_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture("two-branches");
    let file = fixture.copy(folder.path());
    let tools = another(&file).await;
    let before = fs::read(&file).unwrap();
    let left = fixture.expected["leftLeaf"].as_str().unwrap();
    tools.session().branch(Some(left)).await.unwrap();
    call(&tools, "plan_advance", r#"{"step":2,"status":"done"}"#).await.unwrap();
    assert!(fs::read(&file).unwrap().starts_with(&before));
    let right = fixture.expected["rightLeaf"].as_str().unwrap();
    tools.session().branch(Some(right)).await.unwrap();
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap(), fixture.expected["plan"]["plan"]);
}
