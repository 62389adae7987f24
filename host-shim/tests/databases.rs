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
    sqlx::any::install_default_drivers();
    let execute = async |name: &str, sql: &'static str| {
        use sqlx::Connection;
        let mut connection = sqlx::AnyConnection::connect(&format!("{}?mode=rwc", url(name))).await.unwrap();
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    };
    execute("other.db", "CREATE TABLE customers (name TEXT)").await;
    let before = fs::read(folder.path().join("other.db")).unwrap();
    for create in [false, true] {
        let refused = Database::open(&url("other.db"), create).await;
        assert!(matches!(refused, Err(SqlError::OtherProgram(table)) if table == "customers"));
    }
    assert_eq!(fs::read(folder.path().join("other.db")).unwrap(), before, "not a byte was changed");
    Database::open(&url("newer.db"), true).await.unwrap();
    execute("newer.db", "INSERT INTO plan_execute_schema (version) VALUES (99)").await;
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

/// The databases that there are to test on.
async fn databases(folder: &Path) -> Vec<Database> {
    let sqlite = format!("sqlite:{}", folder.join("plans.db").display());
    let mut databases = vec![Database::open(&sqlite, true).await.unwrap()];
    match std::env::var("PLAN_EXECUTE_POSTGRES") {
        Ok(url) => databases.push(Database::open(&url, true).await.unwrap()),
        Err(_) => eprintln!("skipped in part: PLAN_EXECUTE_POSTGRES names no server"),
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
