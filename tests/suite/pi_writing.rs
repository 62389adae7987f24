//! What is written to session files of Pi, byte by byte.

use conformance::{call, fixtures, fixtures::fixture, host, plan_session, refusal};
use plan_execute_host::journal::{Durability, Journal, pi::PiSession};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const PLAN: &str = r#"{"title":"T","steps":["a"]}"#;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn lines(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn open(file: &Path) -> plan_execute_host::Attached {
    plan_session(&host(), PiSession::open(file).await.unwrap()).await
}

/// What a file that was written by us alone must keep to: one object a line, the header first, parents before children,
/// ids once, times as `toISOString` writes them.
fn lint(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n') && !text.contains("\n\n") && !text.contains('\r'));
    let mut seen = BTreeSet::new();
    for (i, line) in lines(file).into_iter().enumerate() {
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
        if i == 0 {
            assert_eq!((&line["type"], &line["version"]), (&"session".into(), &3.into()));
            continue;
        }
        let id = line["id"].as_str().unwrap().to_owned();
        assert!(id.len() == 8 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        assert!(line["parentId"].is_null() || seen.contains(line["parentId"].as_str().unwrap()));
        assert!(seen.insert(id), "an id was used twice");
    }
}

#[tokio::test]
async fn a_new_session_is_what_pi_would_write() {
    let folder = folder();
    let file = folder.path().join("s.jsonl");
    let session = PiSession::open_or_create(&file).await.unwrap();
    assert_eq!(session.durability(), Durability::Stored);
    let tools = plan_session(&host(), session).await;
    call(
        &tools,
        "plan_create",
        r#"{"title":"Ü \u2028\u007f\u0001/😀","steps":["a","b"],"dependencies":[{"step":2,"dependsOn":[1]}]}"#,
    )
    .await
    .unwrap();
    call(&tools, "plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap();
    lint(&file);
    let text = fs::read_to_string(&file).unwrap();
    let [header, plan, advance]: [&str; 3] = text.lines().collect::<Vec<_>>().try_into().unwrap();
    let [h, p, a]: [Value; 3] = lines(&file).try_into().unwrap();
    let cwd = std::env::current_dir().unwrap();
    let expected = format!(
        r#"{{"type":"session","version":3,"id":{},"timestamp":{},"cwd":"{}"}}"#,
        h["id"],
        h["timestamp"],
        cwd.display()
    );
    assert_eq!(header, expected);
    assert_eq!(h["id"].as_str().unwrap().as_bytes()[14], b'7', "a UUID of version 7");
    let data = |status: &str| {
        format!(
            "{{\"title\":\"Ü \u{2028}\u{7f}\\u0001/😀\",\"steps\":[{{\"id\":1,\"title\":\"a\",\"status\":\"{status}\"}},{{\"id\":2,\"title\":\"b\",\"status\":\"pending\",\"dependsOn\":[1]}}]}}"
        )
    };
    let entry = |status: &str, parent: &Value, entry: &Value| {
        format!(
            r#"{{"type":"custom","customType":"pi-harness/plan-execute","data":{},"id":{},"parentId":{parent},"timestamp":{}}}"#,
            data(status),
            entry["id"],
            entry["timestamp"]
        )
    };
    assert_eq!(plan, entry("pending", &Value::Null, &p));
    assert_eq!(advance, entry("done", &p["id"], &a));
}

#[tokio::test]
async fn in_a_folder_the_file_gets_the_name_that_pi_would_give() {
    let folder = folder();
    let session = PiSession::open_or_create(folder.path()).await.unwrap();
    let file = session.path().to_owned();
    call(&plan_session(&host(), session).await, "plan_create", PLAN).await.unwrap();
    let header = lines(&file).remove(0);
    let time = header["timestamp"].as_str().unwrap().replace([':', '.'], "-");
    assert_eq!(file, folder.path().join(format!("{time}_{}.jsonl", header["id"].as_str().unwrap())));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_refused_call_makes_no_file() {
    let folder = folder();
    let file = folder.path().join("s.jsonl");
    let tools = plan_session(&host(), PiSession::open_or_create(&file).await.unwrap()).await;
    for (tool, arguments) in [
        ("plan_get", "{}"),
        ("plan_create", "{"),
        ("plan_create", r#"{"title":"","steps":[]}"#),
        ("plan_advance", r#"{"step":1,"status":"done"}"#),
        ("plan_delete", "{}"),
    ] {
        refusal(&tools, tool, arguments).await;
        assert!(!file.exists(), "{tool} {arguments}");
    }
    call(&tools, "plan_create", PLAN).await.unwrap();
    lint(&file);
}

#[tokio::test]
async fn a_session_that_was_not_written_yet_stays_the_same_when_it_is_opened_again() {
    let folder = folder();
    let session = PiSession::open_or_create(folder.path()).await.unwrap();
    let before = session.position().await.unwrap();
    let after = session.reopen().await.unwrap();
    assert_eq!(before.session_id, after.session_id);
    assert_ne!(before.token(), after.token());
    let file = session.path().to_owned();
    call(&plan_session(&host(), session).await, "plan_create", PLAN).await.unwrap();
    assert_eq!(lines(&file)[0]["id"], *before.session_id);
    assert!(file.to_str().unwrap().contains(&*before.session_id));
}

#[cfg(unix)]
#[tokio::test]
async fn a_symbolic_link_to_nothing_yet_is_followed_too() {
    let folder = folder();
    let (target, link) = (folder.path().join("target.jsonl"), folder.path().join("link.jsonl"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let tools = plan_session(&host(), PiSession::open_or_create(&link).await.unwrap()).await;
    call(&tools, "plan_create", PLAN).await.unwrap();
    lint(&target);
}

#[tokio::test]
async fn an_empty_file_gets_its_header_with_the_first_plan() {
    let folder = folder();
    let file = fixture("damaged-empty").copy(folder.path());
    let tools = open(&file).await;
    assert_eq!(refusal(&tools, "plan_get", "{}").await.0, "no-plan");
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    call(&tools, "plan_create", PLAN).await.unwrap();
    lint(&file);
    assert_eq!(lines(&file).len(), 2);
}

/// Every fixture that can be written to: what was there stays byte for byte, and the plan is there on reopening.
#[tokio::test]
async fn appending_leaves_every_byte_that_was_there() {
    let host = host();
    for fixture in fixtures::all() {
        let name = &fixture.name;
        let folder = folder();
        let file = fixture.copy(folder.path());
        let before = fs::read(&file).unwrap();
        let Ok(session) = PiSession::open(&file).await else { continue };
        let tools = plan_session(&host, session.clone()).await;
        let answer = call(&tools, "plan_create", PLAN).await;
        let after = fs::read(&file).unwrap();
        assert!(after.starts_with(&before), "{name}");
        let version = &fixture.expected["header"]["version"];
        let original = String::from_utf8_lossy(&before);
        let first: Value = original.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let readable = fixture.expected["plan"]["result"] != "invalid" && fixture.expected["cyclic"] != true;
        let writable = readable && (before.is_empty() || first["version"] == 2 || first["version"] == 3);
        if !writable {
            let error = answer.expect_err(name);
            assert_eq!(after, before, "{name}: {error:?} (version {version})");
            continue;
        }
        answer.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let added = &after[before.len()..];
        let line =
            if before.is_empty() || before.ends_with(b"\n") { added } else { added.strip_prefix(b"\n").unwrap() };
        assert!(line.ends_with(b"\n"), "{name}");
        let entry: Value = serde_json::from_slice(line.split(|&b| b == b'\n').rev().nth(1).unwrap()).unwrap();
        let leaf = if before.is_empty() { &Value::Null } else { &fixture.expected["leafId"] };
        assert_eq!(&entry["parentId"], leaf, "{name}");
        let reopened = open(&file).await;
        assert_eq!(call(&reopened, "plan_get", "{}").await.unwrap()["title"], "T", "{name}");
    }
}

#[tokio::test]
async fn versions_that_cannot_be_written_say_what_to_do() {
    for (name, words) in [("v1", "open it once with Pi"), ("damaged-version-4", "use a newer one")] {
        let folder = folder();
        let file = fixture(name).copy(folder.path());
        let (code, message) = refusal(&open(&file).await, "plan_create", PLAN).await;
        assert_eq!(code, "other");
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[tokio::test]
async fn what_is_no_session_is_told_apart() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), "hello\nworld\n").unwrap();
    fs::write(at("late"), "{\"type\":\"message\"}\n{\"type\":\"session\",\"id\":\"x\"}\n").unwrap();
    fs::write(at("number"), "{\"type\":\"session\",\"id\":7}\n").unwrap();
    fs::write(at("cr"), "{\"type\":\"session\",\"id\":\"x\"}\r{\"type\":\"x\"}\r").unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (path, words) in [
        (at("missing"), "there is no session file"),
        (at("folder"), "is a folder"),
        (at("text"), "no session file of Pi"),
        (at("late"), "line 1 is not a session header"),
        (at("number"), "line 1 is not a session header"),
        (at("cr"), "no session file of Pi"),
        (at("text/below"), "cannot be read"),
        (PathBuf::from("/dev/null"), "no regular file"),
    ] {
        let error = PiSession::open(&path).await.err().unwrap_or_else(|| panic!("{path:?} was opened")).to_string();
        assert!(error.contains(words), "{path:?}: {error}");
    }
    for path in [at("no/s.jsonl"), at("no/")] {
        let error = PiSession::open_or_create(&path).await.err().unwrap().to_string();
        assert!(error.contains("there is no folder"), "{path:?}: {error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_does_not_hang() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let opened = tokio::time::timeout(std::time::Duration::from_secs(5), PiSession::open(&pipe)).await.unwrap();
    assert!(opened.err().unwrap().to_string().contains("no regular file"));
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_links_are_followed() {
    let folder = folder();
    let file = fixture("linear").copy(folder.path());
    let link = folder.path().join("link.jsonl");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    call(&open(&link).await, "plan_create", PLAN).await.unwrap();
    assert_eq!(call(&open(&file).await, "plan_get", "{}").await.unwrap()["title"], "T");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[tokio::test]
async fn damaged_lines_are_counted_by_their_numbers() {
    for (name, damaged) in [
        ("linear", &[][..]),
        ("damaged-torn-tail", &[]),
        ("damaged-nul-tail", &[]),
        ("damaged-blank-lines", &[]),
        ("damaged-not-objects", &[]),
        ("damaged-leading-garbage", &[1]),
        ("damaged-glued-lines", &[5]),
        ("damaged-torn-plan", &[5]),
    ] {
        let session = PiSession::open(fixture(name).file).await.unwrap();
        let damage = session.damage();
        assert_eq!((damage.lines.as_slice(), damage.count), (damaged, damaged.len() as u64), "{name}");
    }
}

#[tokio::test]
async fn a_long_session_stays_small() {
    let folder = folder();
    let file = folder.path().join("s.jsonl");
    let tools = plan_session(&host(), PiSession::open_or_create(&file).await.unwrap()).await;
    let titles: Vec<String> = (0..50).map(|i| format!("{i:060}")).collect();
    let draft = serde_json::json!({"title": "x".repeat(60), "steps": titles}).to_string();
    call(&tools, "plan_create", &draft).await.unwrap();
    for i in 0..1_000 {
        let status = ["in_progress", "done", "pending", "skipped"][i % 4];
        let change = serde_json::json!({"step": i % 50 + 1, "status": status}).to_string();
        call(&tools, "plan_advance", &change).await.unwrap();
    }
    let size = fs::metadata(&file).unwrap().len();
    assert!(size < 10_000_000, "{size} bytes");
    assert_eq!(lines(&file).len(), 1_002);
}

/// A file that is read by several threads reads like any other.
#[tokio::test]
async fn a_long_session_reads_like_a_short_one() {
    let folder = folder();
    let file = folder.path().join("s.jsonl");
    let mut text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"long\",\"timestamp\":\"2026-01-02T03:04:05.000Z\"}\n".to_owned();
    let mut parent = "null".to_owned();
    let (mut branch, mut damaged) = (Vec::new(), Vec::new());
    for i in 0..40_000 {
        let line = i as u64 + 2;
        match i {
            5_000 | 20_000 => {
                text.push_str("{\"type\":\"message\",\"id\":\"torn\n");
                damaged.push(line);
                continue;
            }
            7_000 => {
                text.push_str("  \n");
                continue;
            }
            _ => {}
        }
        let rest = match i {
            // An id that only the long way reads, with an escape, and a plan in the middle.
            9_000 => "\"type\":\"message\",\"x\":{\"\\ud83d\":1e999}".to_owned(),
            30_000 => format!(
                "\"type\":\"custom\",\"customType\":\"pi-harness/plan-execute\",\"data\":{{\"title\":\"Long\",\"steps\":[{{\"id\":1,\"title\":\"{}\",\"status\":\"pending\"}}]}}",
                "ü".repeat(400)
            ),
            _ => format!("\"type\":\"message\",\"text\":\"{}\"", "x".repeat(i % 300)),
        };
        text.push_str(&format!("{{{rest},\"id\":\"{i:08x}\",\"parentId\":{parent}}}\n"));
        parent = format!("\"{i:08x}\"");
        branch.push(format!("{i:08x}"));
    }
    text.push_str("{\"type\":\"message\",\"id\":\"cut");
    assert!(text.len() > 6_000_000);
    fs::write(&file, &text).unwrap();
    let session = PiSession::open(&file).await.unwrap();
    assert_eq!(session.damage().lines, damaged);
    assert_eq!(session.branch_ids().await.unwrap(), branch);
    let tools = plan_session(&host(), session).await;
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["title"], "Long");
    call(&tools, "plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap();
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&format!("{text}\n{{\"type\":\"custom\"")));
    assert_eq!(call(&open(&file).await, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "done");
}
