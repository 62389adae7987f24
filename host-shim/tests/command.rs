//! The built program, as its users run it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

struct Place {
    folder: tempfile::TempDir,
}

/// What a run left: exit status, standard output, standard error.
struct Done {
    status: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A session file of the given fixture.
    fn fixture(&self, name: &str) -> PathBuf {
        let file = self.path(&format!("{name}.jsonl"));
        fs::write(&file, fs::read(fixture(name)).unwrap()).unwrap();
        file
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("plan-execute").unwrap();
        command.args(arguments).current_dir(self.folder.path());
        // The compiled code of all these runs is kept in one place, which belongs to the build.
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Done {
        let output = self.command(arguments).write_stdin(input).output().unwrap();
        Done {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What is in the folder, with its content.
    fn content(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(&path).unwrap_or_default()))
            .collect();
        files.sort();
        files
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/pi-session").join(name).join("session.jsonl")
}

impl Done {
    fn plan(&self) -> Value {
        assert_eq!((self.status, self.err.as_str()), (0, ""));
        assert!(self.out.ends_with('\n') && self.out.lines().count() == 1, "{}", self.out);
        serde_json::from_str(&self.out).unwrap()
    }

    fn refusal(&self, code: &str) -> Value {
        assert_eq!((self.status, self.out.as_str()), (1, ""), "{}", self.err);
        let error: Value = serde_json::from_str(&self.err).unwrap();
        assert_eq!(error["error"]["code"], code, "{error}");
        let keys: Vec<&str> = error["error"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["code", "message", "data"]);
        error
    }

    /// One sentence that contains `words`, and nothing on standard output.
    fn failure(&self, status: i32, words: &str) {
        assert_eq!((self.status, self.out.as_str()), (status, ""), "{}", self.err);
        assert!(self.err.starts_with("error: ") && self.err.lines().count() == 1, "{}", self.err);
        assert!(self.err.contains(words), "{:?} lacks {words:?}", self.err);
    }
}

const DRAFT: &str = r#"{"title":"T","steps":["a","b"],"dependencies":[{"step":2,"dependsOn":[1]}]}"#;

#[test]
fn a_plan_from_its_making_to_its_end() {
    let place = Place::new();
    let session = ["--session", "s.jsonl"];
    let call = |tool: &str, arguments: &str| place.run(&[&["call", tool, arguments][..], &session].concat());
    let made = place.run(&[&["call", "plan_create", DRAFT, "--create"][..], &session].concat());
    assert_eq!(
        made.out,
        "{\"title\":\"T\",\"steps\":[{\"id\":1,\"title\":\"a\",\"status\":\"pending\"},{\"id\":2,\"title\":\"b\",\"status\":\"pending\",\"dependsOn\":[1]}]}\n"
    );
    let refused = call("plan_advance", r#"{"step":2,"status":"done"}"#).refusal("unmet-prerequisites");
    assert_eq!(refused["error"]["data"]["waitingFor"], serde_json::json!([1]));
    call("plan_advance", r#"{"step":1,"status":"done"}"#).plan();
    let done = call("plan_advance", r#"{"step":2,"status":"done"}"#).plan();
    assert_eq!(place.run(&[&["call", "plan_get"][..], &session].concat()).plan(), done);
    // --create uses a session that is there.
    assert_eq!(place.run(&[&["call", "plan_get", "--create"][..], &session].concat()).plan(), done);
    let lines = fs::read_to_string(place.path("s.jsonl")).unwrap().lines().count();
    assert_eq!(lines, 4, "a header, the plan, two advances");
}

#[test]
fn arguments_from_standard_input() {
    let place = Place::new();
    place.run_with(&["call", "plan_create", "-", "--session", "s.jsonl", "--create"], DRAFT).plan();
    place.run_with(&["call", "plan_advance", "-", "--session", "s.jsonl"], "{").refusal("invalid-arguments");
    let output = place.command(&["call", "plan_get", "-", "--session", "s.jsonl"]).write_stdin(&b"\xff"[..]).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

#[test]
fn a_folder_gets_a_file_of_the_name_that_pi_would_give() {
    let place = Place::new();
    fs::create_dir(place.path("sessions")).unwrap();
    let done = place.run(&["call", "plan_create", DRAFT, "--session", "sessions", "--create"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let names: Vec<String> = fs::read_dir(place.path("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    let (time, id) = name.split_once('_').unwrap();
    assert_eq!(done.err, format!("session: sessions/{name}\n"));
    assert!(time.len() == 24 && time.ends_with('Z') && id.ends_with(".jsonl") && id.len() == 42, "{name}");
}

#[test]
fn the_branch_that_pi_stands_on_and_the_other() {
    let place = Place::new();
    let file = place.fixture("two-branches");
    let file = file.to_str().unwrap();
    let before = place.content();
    assert_eq!(place.run(&["call", "plan_get", "--session", file]).plan()["title"], "Right");
    assert_eq!(place.run(&["call", "plan_get", "--session", file, "--leaf", "c711c1f2"]).plan()["title"], "Left");
    assert_eq!(place.content(), before);
    // A change on the other branch makes it the one that the session stands on.
    let change = r#"{"step":2,"status":"done"}"#;
    place.run(&["call", "plan_advance", change, "--session", file, "--leaf", "c711c1f2"]).plan();
    assert_eq!(place.run(&["call", "plan_get", "--session", file]).plan()["title"], "Left");
}

#[test]
fn bad_input_is_one_sentence_and_writes_nothing() {
    let place = Place::new();
    fs::write(place.path("text"), "no session\n").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    fs::write(place.path("empty"), "").unwrap();
    fs::write(place.path("cut.wasm"), &plan_execute_host::components::PLAN_EXECUTE[..100_000]).unwrap();
    fs::write(place.path("core.wasm"), b"\0asm\x01\0\0\0").unwrap();
    fs::write(place.path("text.wasm"), "(component)").unwrap();
    let other: Vec<u8> = {
        let mut bytes = plan_execute_host::components::PLAN_EXECUTE.to_vec();
        let wanted = b"session-journal@0.1.0";
        while let Some(at) = bytes.windows(wanted.len()).position(|window| window == wanted) {
            bytes[at + wanted.len() - 3] = b'7';
        }
        bytes
    };
    fs::write(place.path("other.wasm"), other).unwrap();
    let session = place.fixture("two-branches");
    let session = session.to_str().unwrap();
    let before = place.content();
    for (arguments, status, words) in [
        (&["call", "plan_get", "--session", "missing.jsonl"][..], 3, "there is no session file missing.jsonl"),
        (&["call", "plan_get", "--session", "folder"], 3, "folder is a folder"),
        (&["call", "plan_get", "--session", "text"], 3, "text is no session file of Pi (line 1"),
        (&["call", "plan_get", "--session", "text", "--create"], 3, "text is no session file of Pi (line 1"),
        (&["call", "plan_get", "--session", "no/s.jsonl", "--create"], 3, "there is no folder no"),
        (&["call", "plan_get", "--session", "/dev/null"], 3, "no regular file"),
        (&["call", "plan_get", "--session", session, "--leaf", "nowhere"], 3, "there is no entry nowhere"),
        (&["call", "plan_get", "--session", session, "--component", "missing.wasm"], 3, "missing.wasm cannot be read"),
        (&["call", "plan_get", "--session", session, "--component", "folder"], 3, "folder cannot be read"),
        (
            &["call", "plan_get", "--session", session, "--component", "cut.wasm"],
            3,
            "cut.wasm was not loaded: the component is damaged",
        ),
        (&["call", "plan_get", "--session", session, "--component", "core.wasm"], 3, "core module"),
        (&["call", "plan_get", "--session", session, "--component", "text.wasm"], 3, "no WebAssembly component"),
        (
            &["call", "plan_get", "--session", session, "--component", "other.wasm"],
            3,
            "needs plan-execute:plugin/session-journal@0.7.0",
        ),
    ] {
        place.run(arguments).failure(status, words);
        assert_eq!(place.content(), before, "{arguments:?}");
    }
    for (arguments, code) in [
        (&["call", "plan_create", "{", "--session", "new.jsonl", "--create"][..], "invalid-arguments"),
        (&["call", "plan_create", "[]", "--session", "new.jsonl", "--create"], "invalid-arguments"),
        (
            &["call", "plan_create", r#"{"title":1,"steps":"a"}"#, "--session", "new.jsonl", "--create"],
            "invalid-arguments",
        ),
        (&["call", "plan_delete", "--session", "new.jsonl", "--create"], "unknown-tool"),
        (&["call", "plan_get", "--session", "new.jsonl", "--create"], "no-plan"),
        (&["call", "plan_get", "--session", "empty"], "no-plan"),
        (&["call", "plan_advance", r#"{"step":9,"status":"done"}"#, "--session", session], "unknown-step"),
        (&["call", "plan_advance", r#"{"step":"1","status":"done"}"#, "--session", session], "invalid-arguments"),
    ] {
        place.run(arguments).refusal(code);
        assert_eq!(place.content(), before, "{arguments:?}");
    }
    for arguments in [
        &[][..],
        &["call"],
        &["call", "plan_get"],
        &["call", "plan_get", "--session"],
        &["call", "plan_get", "{}", "{}", "--session", session],
        &["plan_get", "--session", session],
        &["call", "plan_get", "--session", session, "--force"],
    ] {
        let done = place.run(arguments);
        assert_eq!((done.status, done.out.as_str()), (2, ""), "{arguments:?}");
        assert!(!done.err.is_empty());
        assert_eq!(place.content(), before, "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_session_that_cannot_be_written_is_left_alone() {
    // Root may write where the mode forbids it, so a folder in place of the file's folder has to do there.
    let place = Place::new();
    let file = place.fixture("linear");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let writable = fs::File::options().append(true).open(&file).is_ok();
    let before = fs::read(&file).unwrap();
    let done = place.run(&["call", "plan_create", DRAFT, "--session", file.to_str().unwrap()]);
    if writable {
        done.plan();
    } else {
        let error = done.refusal("unavailable");
        assert!(error["error"]["message"].as_str().unwrap().contains("cannot be written"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), before);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_size_limit_is_a_full_disk() {
    let place = Place::new();
    // Long enough that nothing else which the program writes reaches the limit.
    let file = place.fixture("linear");
    let long =
        format!("{{\"type\":\"x\",\"id\":\"0a0a0a0a\",\"parentId\":null,\"text\":\"{}\"}}\n", "x".repeat(8 << 20));
    fs::write(&file, [fs::read(&file).unwrap(), long.into_bytes()].concat()).unwrap();
    let before = fs::read(&file).unwrap();
    let session = file.to_str().unwrap();
    let mut command = std::process::Command::new("prlimit");
    command.arg(format!("--fsize={}", before.len() + 50)).arg(assert_cmd::cargo::cargo_bin("plan-execute"));
    let output = command.args(["call", "plan_create", DRAFT, "--session", session]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], "unavailable");
    assert!(error["error"]["message"].as_str().unwrap().contains("no room"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);
    place.run(&["call", "plan_create", DRAFT, "--session", session]).plan();
}

#[test]
fn damaged_lines_are_named() {
    let place = Place::new();
    let file = place.fixture("damaged-leading-garbage");
    let done = place.run(&["call", "plan_get", "--session", file.to_str().unwrap()]);
    assert_eq!(done.status, 0);
    assert!(done.err.starts_with("warning: line 1 of "), "{}", done.err);
    let file = place.fixture("damaged-torn-plan");
    let error = place.run(&["call", "plan_get", "--session", file.to_str().unwrap()]).refusal("no-plan");
    assert!(error["warnings"][0].as_str().unwrap().contains("line 5 of"), "{error}");
}

#[test]
fn another_component_runs_with_the_same_commands() {
    let place = Place::new();
    // One byte more, in a section of its own, makes it a component that nobody vouches for.
    let mut bytes = plan_execute_host::components::PLAN_EXECUTE.to_vec();
    bytes.extend(b"\0\x02\x01x");
    fs::write(place.path("mine.wasm"), bytes).unwrap();
    let mine = ["--session", "s.jsonl", "--component", "mine.wasm"];
    place.run(&[&["call", "plan_create", DRAFT, "--create"][..], &mine].concat()).plan();
    assert_eq!(place.run(&[&["call", "plan_get"][..], &mine].concat()).plan()["title"], "T");
    assert_eq!(place.run(&["call", "plan_get", "--session", "s.jsonl"]).plan()["title"], "T");
    assert_eq!(place.run(&["demo", "--component", "mine.wasm"]).status, 0);
}

#[test]
fn a_demo_for_whoever_looks_at_it_first() {
    let place = Place::new();
    let before = place.content();
    let done = place.run(&["demo"]);
    assert_eq!((done.status, done.err.as_str()), (0, ""));
    for words in [
        "> plan_create {\"title\":\"Release 1.0\"",
        "\"code\":\"unmet-prerequisites\"",
        "> (branch at the entry ",
        "> (open the file again)",
        "\"status\":\"skipped\"",
    ] {
        assert!(done.out.contains(words), "{words}");
    }
    assert_eq!(place.content(), before);
    let session = done.out.lines().next().unwrap().strip_prefix("Session: ").unwrap();
    assert!(!Path::new(session).exists(), "{session} was left behind");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin("plan-execute");
    let script = format!("{} demo | head -n 1", program.display());
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(place.folder.path()).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn the_cache_is_the_users_alone_and_is_not_needed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let run = |cache: &Path| {
        let mut command = place.command(&["call", "plan_create", DRAFT, "--session", "s.jsonl", "--create"]);
        command.env("XDG_CACHE_HOME", cache).assert().success();
    };
    let cache = place.path("cache");
    run(&cache);
    let folder = cache.join("plan-execute");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    // A file that was changed is compiled anew.
    let whole = fs::read(&files[0]).unwrap();
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(&files[0], &changed).unwrap();
    run(&cache);
    assert_eq!(fs::read(&files[0]).unwrap(), whole);
    // A folder that others can enter is not used, and neither is one that cannot be made.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&files[0]).unwrap();
    run(&cache);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    run(Path::new("/dev/null"));
}
