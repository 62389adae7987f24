//! Sessions in databases: what the command says of wrong addresses, and what the library does with sessions.

#![cfg(feature = "sql")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use plan_execute_host::journal::{
    Journal, Payload,
    sql::{Database, SqlError, SqlSession},
};
use std::{fs, path::Path, process::Command};

/// Runs the command in a folder: exit status, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_plan-execute")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The files in a folder, but for those that SQLite has beside an open database.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect();
    names.sort();
    names
}

#[test]
fn wrong_addresses_are_told_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let session = |name: &str| format!("sqlite:plans.db#{name}");
    let plan = r#"{"title":"T","steps":["a"]}"#;
    assert_eq!(run(at, &["call", "plan_create", plan, "--session", &session("one"), "--create"]).0, 0);
    fs::write(at.join("text.db"), "This is no database, and it is long enough to be looked at.".repeat(100)).unwrap();
    for (arguments, status, words) in [
        (&["show", "--session", "sqlite:plans.db"][..], 2, &["name one", "sqlite:plans.db#NAME"][..]),
        (&["show", "--session", "sqlite:plans.db#two"], 3, &["no session \"two\"", "--create"]),
        (&["show", "--session", "sqlite:none.db#one"], 3, &["no database none.db", "--create"]),
        (&["sessions", "sqlite:none.db"], 3, &["no database none.db"]),
        (&["sessions", "sqlite:text.db"], 3, &["text.db", "not a database"]),
        (&["sessions", "plans.db"], 2, &["no database", "sqlite:FILE"]),
        (&["sessions", "mysql://a"], 2, &["no database"]),
        (&["sessions", "postgres://me:secret@127.0.0.1:1/plans"], 3, &["postgres://me@127.0.0.1:1/plans", "refused"]),
        (&["call", "plan_get", "--session", "sqlite:no/folder/p.db#a", "--create"], 3, &["no/folder/p.db"]),
    ] {
        let before = files(at);
        let (found, stdout, stderr) = run(at, arguments);
        assert_eq!((found, stdout.as_str()), (status, ""), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(words.iter().all(|words| stderr.contains(words)), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
        assert_eq!(files(at), before, "{arguments:?}");
    }
    assert!(fs::read_to_string(at.join("text.db")).unwrap().starts_with("This is no database"));
    let (_, stdout, _) = run(at, &["sessions", "sqlite:plans.db", "--json"]);
    assert!(stdout.contains(r#""name":"one""#) && stdout.contains(r#""entries":1"#), "{stdout}");
}

#[tokio::test]
async fn a_file_of_another_program_or_a_newer_version_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    execute(&format!("{}?mode=rwc", url("other.db")), "CREATE TABLE customers (name TEXT)").await;
    let before = fs::read(folder.path().join("other.db")).unwrap();
    for create in [false, true] {
        let refused = Database::open(&url("other.db"), create).await;
        assert!(matches!(refused, Err(SqlError::OtherProgram(table)) if table == "customers"));
    }
    assert_eq!(fs::read(folder.path().join("other.db")).unwrap(), before, "not a byte was changed");
    Database::open(&url("newer.db"), true).await.unwrap();
    execute(&url("newer.db"), "INSERT INTO plan_execute_schema (version) VALUES (99)").await;
    let refused = Database::open(&url("newer.db"), true).await;
    assert!(matches!(refused, Err(SqlError::NewerSchema { found: 99, .. })));
}

/// A server that takes connections and never says a word.
#[test]
fn a_database_that_does_not_answer_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me:secret@{}/plans", silent.local_addr().unwrap());
    let (status, stdout, stderr) = run(folder.path(), &["sessions", &url]);
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert!(stderr.contains("did not answer within") && !stderr.contains("secret"), "{stderr}");
}

/// A file size limit makes SQLite's COMMIT fail half-way: nobody knows what was kept, and nothing that was acknowledged is
/// lost.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_io_error_at_commit_is_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let steps: Vec<String> = (1..=50).map(|step| format!("Step {step} {}", "x".repeat(60))).collect();
    let plan = serde_json::json!({ "title": "T", "steps": steps }).to_string();
    assert_eq!(run(at, &["call", "plan_create", &plan, "--session", "sqlite:plans.db#one", "--create"]).0, 0);
    // While this one is open, nobody shortens the write-ahead log.
    let open = Database::open(&format!("sqlite:{}", at.join("plans.db").display()), false).await.unwrap();
    let held = open.session("one").await.unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 512; exec {} call plan_advance \"$0\" --session sqlite:plans.db#one",
        env!("CARGO_BIN_EXE_plan-execute")
    );
    let (mut acknowledged, mut failed) = (0, None);
    while failed.is_none() {
        assert!(acknowledged < 200, "the limit was never reached");
        let status = ["done", "pending"][acknowledged % 2];
        let change = format!(r#"{{"step":1,"status":"{status}"}}"#);
        let output = Command::new("sh").args(["-c", &script, &change]).current_dir(at).output().unwrap();
        match output.status.code() {
            Some(0) => acknowledged += 1,
            code => failed = Some((code, String::from_utf8(output.stderr).unwrap())),
        }
    }
    let (code, stderr) = failed.unwrap();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("reopen-required") && stderr.contains("write failed"), "{stderr}");
    let (_, log, _) = run(at, &["log", "--json", "--session", "sqlite:plans.db#one"]);
    let log: Vec<serde_json::Value> = serde_json::from_str(&log).unwrap();
    assert!([acknowledged + 1, acknowledged + 2].contains(&log.len()), "{} of {acknowledged}", log.len());
    for (number, revision) in log.iter().enumerate().skip(1).take(acknowledged) {
        assert_eq!(revision["plan"]["steps"][0]["status"], ["done", "pending"][(number - 1) % 2]);
    }
    assert_eq!(
        run(at, &["call", "plan_advance", r#"{"step":2,"status":"done"}"#, "--session", "sqlite:plans.db#one"]).0,
        0
    );
    drop(held);
}

/// The addresses of the databases that there are to test on.
fn urls(folder: &Path) -> Vec<String> {
    let mut urls = vec![format!("sqlite:{}", folder.join("plans.db").display())];
    match std::env::var("PLAN_EXECUTE_POSTGRES") {
        Ok(url) => urls.push(url),
        Err(_) => eprintln!("skipped in part: PLAN_EXECUTE_POSTGRES names no server"),
    }
    urls
}

/// The databases that there are to test on.
async fn databases(folder: &Path) -> Vec<Database> {
    let mut databases = Vec::new();
    for url in urls(folder) {
        databases.push(Database::open(&url, true).await.unwrap());
    }
    databases
}

async fn append(session: &SqlSession, text: &str) -> String {
    let at = session.position().await.unwrap();
    let payload = Payload::json(serde_json::Value::from(text).to_string()).check().unwrap();
    session.append(&at, "test/plan", &payload).await.unwrap().id
}

async fn latest(session: &SqlSession) -> Option<String> {
    let at = session.position().await.unwrap();
    let entry = session.latest(&at, "test/plan").await.unwrap()?;
    serde_json::from_slice(&entry.payload.bytes).unwrap()
}

#[tokio::test]
async fn sessions_are_forked_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let name = |what: &str| format!("{what}-{}", std::process::id());
    for database in databases(folder.path()).await {
        let session = database.create(&name("main")).await.unwrap();
        let taken = database.create(&name("main")).await;
        assert!(matches!(taken, Err(SqlError::NameTaken(_))));
        let first = append(&session, "1").await;
        let at = session.position().await.unwrap();
        let message = session.push(&at, b"\x00 bytes of the harness \xff").await.unwrap().id;
        let second = append(&session, "2").await;
        append(&session, "3").await;
        session.branch(Some(&second)).await.unwrap();
        append(&session, "side").await;

        let fork = database.fork(&session, &second, &name("fork")).await.unwrap();
        assert_ne!(fork.session_id(), session.session_id());
        assert_eq!(latest(&fork).await.as_deref(), Some("2"));
        let at = fork.branch(Some(&message)).await.unwrap();
        assert_eq!(fork.latest(&at, "test/plan").await.unwrap().unwrap().id, first, "a fork keeps ids");
        append(&fork, "of the fork").await;
        assert_eq!(latest(&session).await.as_deref(), Some("side"), "a fork leaves the other one alone");
        assert_eq!(latest(&fork).await.as_deref(), Some("of the fork"));
        let missing = database.fork(&session, "none", &name("third")).await;
        assert!(matches!(missing, Err(SqlError::NoEntry(_))));
        let taken = database.fork(&session, &second, &name("fork")).await;
        assert!(matches!(taken, Err(SqlError::NameTaken(_))));
        assert!(matches!(database.session(&name("third")).await, Err(SqlError::NoSession(_))));

        database.delete(&name("main")).await.unwrap();
        assert!(matches!(database.delete(&name("main")).await, Err(SqlError::NoSession(_))));
        assert!(session.position().await.is_err(), "a session that was deleted is no session any more");
        assert_eq!(latest(&fork).await.as_deref(), Some("of the fork"), "its fork is");
        database.delete(&name("fork")).await.unwrap();
    }
}

/// Runs statements on a database, beside whoever has it open.
async fn execute(url: &str, sql: &str) {
    use sqlx::Connection;
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn tables_of_an_older_version_are_brought_on() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("old.db").display());
    execute(&format!("{url}?mode=rwc"), include_str!("version-1.sql")).await;
    let database = Database::open(&url, false).await.unwrap();
    let session = database.session("old").await.unwrap();
    assert_eq!(session.position().await.unwrap().leaf.as_deref(), Some("e2"));
    assert_eq!(latest(&session).await.as_deref(), Some("2"));
    append(&session, "3").await;
    assert_eq!(latest(&session).await.as_deref(), Some("3"));
    assert_eq!(database.sessions().await.unwrap()[0].entries, 3);
    assert_eq!(Database::open(&url, false).await.unwrap().sessions().await.unwrap().len(), 1, "opened once more");
}

/// Programs that begin at once: each finds the tables there, whoever made them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tables_that_are_made_at_once_are_made_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut urls = vec![format!("sqlite:{}", folder.path().join(format!("{round}.db")).display())];
        if let Ok(server) = std::env::var("PLAN_EXECUTE_POSTGRES") {
            let name = format!("plans_{}_{round}", std::process::id());
            execute(&server, &format!("CREATE DATABASE {name}")).await;
            urls.push(format!("{}/{name}", server.rsplit_once('/').unwrap().0));
        }
        for url in urls {
            let opened: Vec<_> = (0..8)
                .map(|_| {
                    let url = url.clone();
                    tokio::spawn(async move { Database::open(&url, true).await.map(drop) })
                })
                .collect();
            for opened in opened {
                opened.await.unwrap().unwrap_or_else(|error| panic!("{url}: {error}"));
            }
        }
    }
}

/// Looks that were begun before an append and end after it move nothing back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn looks_do_not_disturb_appends() {
    let folder = tempfile::tempdir().unwrap();
    for database in databases(folder.path()).await {
        let session = database.create(&format!("looks-{}", std::process::id())).await.unwrap();
        let mut at = session.position().await.unwrap();
        let looking: Vec<_> = (0..3)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move {
                    loop {
                        session.position().await.unwrap();
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for number in 0..500 {
            let payload = Payload::json(number.to_string()).check().unwrap();
            let appended = session.append(&at, "test/plan", &payload).await;
            at.leaf = Some(appended.unwrap_or_else(|error| panic!("{number}: {error}")).id.as_str().into());
        }
        looking.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// What a server that took over without the newest entries leaves, or a backup that was put back.
#[tokio::test]
async fn another_history_is_another_opening() {
    let folder = tempfile::tempdir().unwrap();
    for (database, url) in databases(folder.path()).await.into_iter().zip(urls(folder.path())) {
        for (case, replace) in [
            ("fewer", ""),
            ("as many", "UPDATE plan_execute_entries SET id = 'other' WHERE session_id = 'ID' AND ordinal = 1;"),
            (
                "more",
                "UPDATE plan_execute_entries SET id = 'other' WHERE session_id = 'ID' AND ordinal = 1;
                 UPDATE plan_execute_entries SET id = 'another' WHERE session_id = 'ID' AND ordinal = 2;",
            ),
        ] {
            let name = format!("{case}-{}", std::process::id());
            let session = database.create(&name).await.unwrap();
            append(&session, "1").await;
            append(&session, "2").await;
            let at = session.position().await.unwrap();
            if case == "more" {
                append(&database.session(&name).await.unwrap(), "3").await;
            }
            let id = session.session_id();
            let cut = format!("DELETE FROM plan_execute_entries WHERE session_id = '{id}' AND ordinal = 1;");
            let sql = if replace.is_empty() { cut } else { replace.replace("ID", id) };
            execute(&url, &sql).await;
            let payload = Payload::json("4").check().unwrap();
            let refused = session.append(&at, "test/plan", &payload).await;
            assert!(refused.is_err(), "{case}: an entry below one that is gone");
            let now = session.position().await.unwrap();
            assert_ne!(now.opening, at.opening, "{case}");
            let refused = session.append(&at, "test/plan", &payload).await;
            assert_eq!(refused.unwrap_err(), plan_execute_host::journal::AppendError::SessionChanged, "{case}");
            append(&session, "5").await;
            assert_eq!(latest(&session).await.as_deref(), Some("5"), "{case}");
            database.delete(&name).await.unwrap();
        }
    }
}

/// A file that is moved away, with or without another one in its place, takes nothing on any more.
#[tokio::test]
async fn another_file_is_another_opening() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plans.db");
    let url = format!("sqlite:{}", file.display());
    let database = Database::open(&url, true).await.unwrap();
    let session = database.create("one").await.unwrap();
    append(&session, "1").await;
    let at = session.position().await.unwrap();
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::rename(
            format!("{}{ending}", file.display()),
            format!("{}{ending}", folder.path().join("away.db").display()),
        );
    }
    let payload = Payload::json("2").check().unwrap();
    assert!(session.append(&at, "test/plan", &payload).await.is_err(), "nobody would find it");
    assert!(session.position().await.is_err());
    assert!(!file.exists(), "nothing is made in its place");
    let other = Database::open(&url, true).await.unwrap().create("one").await.unwrap();
    append(&other, "of the other file").await;
    let error = session.position().await.unwrap_err();
    assert!(error.to_string().contains("not in the database any more"), "it is another session: {error}");
    // The first one comes back.
    drop(other);
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", file.display()));
        let _ = fs::rename(
            format!("{}{ending}", folder.path().join("away.db").display()),
            format!("{}{ending}", file.display()),
        );
    }
    append(&session, "3").await;
    assert_eq!(latest(&session).await.as_deref(), Some("3"));
}

/// On a read-only file system a database can be read, and a write is refused with the reason.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_read_only_file_system_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let plan = r#"{"title":"T","steps":["a"]}"#;
    assert_eq!(run(at, &["call", "plan_create", plan, "--session", "sqlite:plans.db#one", "--create"]).0, 0);
    // The command leaves it to the next one to put the log into the file.
    execute(&format!("sqlite:{}", at.join("plans.db").display()), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    fs::create_dir(at.join("ro")).unwrap();
    let mount = "mount -t tmpfs tmpfs ro && cp plans.db ro/ && mount -o remount,ro ro";
    let in_namespace = |command: &str| {
        let script = format!("{mount} && exec {} {command}", env!("CARGO_BIN_EXE_plan-execute"));
        let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(at).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    if Command::new("unshare").args(["-rm", "sh", "-c", mount]).current_dir(at).status().map_or(true, |s| !s.success())
    {
        eprintln!("skipped: this machine lets nobody mount anything");
        return;
    }
    let (status, stdout, stderr) = in_namespace("call plan_get --session sqlite:ro/plans.db#one");
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\"title\":\"T\""));
    for arguments in ["show --session sqlite:ro/plans.db#one", "sessions sqlite:ro/plans.db"] {
        assert_eq!(in_namespace(arguments).0, 0, "{arguments}");
    }
    let (status, _, stderr) =
        in_namespace(r#"call plan_advance '{"step":1,"status":"done"}' --session sqlite:ro/plans.db#one"#);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("readonly") || stderr.contains("read-only"), "{stderr}");
    let (status, _, stderr) = in_namespace("call plan_get --session sqlite:ro/new.db#one --create");
    assert_eq!(status, 3, "{stderr}");
    assert!(stderr.contains("the file system is read-only"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
