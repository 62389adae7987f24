//! The plan tools on every journal while it fails: what the guest is told, what may be done afterwards, and what is kept.

use crate::{
    journals::{InDatabase, InFiles, InMemory},
    ledger::{Ledger, advance_to, draft, faults, number},
};
use conformance::{call, host, host_with, plan_session};
use plan_execute_host::{
    Attached, Host,
    journal::{
        AppendError, Encoding, Journal, ReadError,
        conformance::Storage,
        fault::{Faulty, How, Operation},
        sql::SqlSession,
    },
    plans::CUSTOM_TYPE,
};
use serde_json::Value;
use sqlx::{AnyConnection, Connection};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The time for one operation. Only what is made to hang takes longer, as a rule; where a machine is slow, that is one more
/// fault of the same kind.
const OPERATION: Duration = Duration::from_millis(500);

fn impatient() -> Host {
    host_with(|limits| limits.operation = OPERATION)
}

/// Every plan on the branch, the oldest first.
async fn plans(journal: &impl Journal) -> Vec<Value> {
    let at = journal.position().await.unwrap();
    let (mut plans, mut before) = (Vec::new(), None::<String>);
    loop {
        let page = journal.entries(&at, CUSTOM_TYPE, before.as_deref(), 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        plans.extend(page.iter().map(|entry| match entry.payload.encoding {
            Encoding::Json => serde_json::from_slice::<Value>(&entry.payload.bytes).unwrap(),
            Encoding::Cbor => ciborium::from_reader(&entry.payload.bytes[..]).unwrap(),
        }));
    }
    plans.reverse();
    plans
}

/// Every way in which an operation that the tools and their host use can fail.
fn ways() -> Vec<(Operation, How)> {
    let down = || How::Before(AppendError::Unavailable("the storage is down".into()));
    let used = [Operation::Position, Operation::Latest, Operation::Append, Operation::Branch, Operation::Reopen];
    let each = |operation| {
        let ways = [
            down(),
            How::Middle { kept: false },
            How::Middle { kept: true },
            How::After,
            How::Hang,
            How::AnswerLost,
            How::Panic,
        ];
        ways.map(|how| (operation, how))
    };
    used.into_iter().flat_map(each).collect()
}

/// A run of advances in which the journal fails again and again, each time in the next way.
async fn scripted<S: Storage>(storage: &S, name: &str) {
    let journal = Faulty::new(storage.create().await);
    call(&plan_session(&host(), journal.clone()).await, "plan_create", &draft(20)).await.unwrap();
    let tools = plan_session(&impatient(), journal.clone()).await;
    let mut ledger = Ledger::new(name, "journal double");
    let ways = ways();
    for (operation, how) in ways.iter().cycle().take(faults().max(ways.len())) {
        journal.next(*operation, how.clone());
        let case = format!("{name}: {operation:?} failed as {how:?}");
        match operation {
            Operation::Branch | Operation::Reopen => {
                let moved = match operation {
                    Operation::Branch => {
                        let leaf = tools.session().position().await.unwrap().leaf;
                        tools.session().branch(leaf.as_deref()).await
                    }
                    _ => tools.session().reopen().await,
                };
                let error = moved.expect_err(&case);
                let expected = matches!(error, ReadError::Unavailable(_)) || *how == How::Panic;
                assert!(expected, "{case}: {error}");
                journal.release();
                // What was begun still ends, and is another opening then.
                while tools.session().reopen().await.is_err() {}
            }
            _ => advance_with_fault(&tools, *operation, how, &mut ledger, &case).await,
        }
        journal.release();
        opened(&tools).await;
        // The next call works, and what the storage holds counts.
        ledger.shown(&plan(&tools).await);
        advance(&tools, &mut ledger).await;
    }
    ledger.faults = journal.made();
    ledger.holds(&plans(journal.inner()).await);
    if let Some(other) = storage.open_again(journal.inner()).await {
        ledger.holds(&plans(&other).await);
    }
    ledger.close();
}

/// An advance while an operation fails, with what the guest is told and what may be done until the session is opened again.
async fn advance_with_fault(tools: &Attached, operation: Operation, how: &How, ledger: &mut Ledger, case: &str) {
    let answer = tools.call("plan_advance", &advance_to(ledger.next())).await;
    match (operation, how, answer) {
        (Operation::Position | Operation::Latest, How::Panic, Ok(Err(error))) => {
            assert_eq!(error.code, "other", "{case}")
        }
        (Operation::Position | Operation::Latest, _, Ok(Err(error))) => assert_eq!(error.code, "unavailable", "{case}"),
        (Operation::Append, How::Before(_), Ok(Err(error))) => assert_eq!(error.code, "unavailable", "{case}"),
        (Operation::Append, _, Ok(Err(error))) => {
            assert_eq!(error.code, "reopen-required", "{case}");
            assert!(error.message.contains("write failed") && error.message.contains("reopen"), "{}", error.message);
            ledger.unknown();
            for (tool, arguments) in [("plan_get", "{}"), ("plan_advance", &*advance_to(ledger.next()))] {
                let shown = call(tools, tool, arguments).await.expect_err(case);
                assert_eq!(shown.code, "reopen-required", "{case}: {tool}");
            }
        }
        (_, _, answer) => panic!("{case}: {answer:?}"),
    }
}

/// Opens the session again where that is needed, as soon as it can be.
async fn opened(tools: &Attached) {
    while tools.session().reopen_required().is_some() {
        match tools.session().reopen().await {
            Ok(_) => return,
            Err(error) => assert!(matches!(error, ReadError::Unavailable(_)), "{error}"),
        }
    }
}

/// The plan that is shown, however slow the machine is.
async fn plan(tools: &Attached) -> Value {
    loop {
        match call(tools, "plan_get", "{}").await {
            Ok(plan) => return plan,
            Err(error) => assert_eq!(error.code, "unavailable", "{}", error.message),
        }
    }
}

/// An advance without a fault, however slow the machine is.
async fn advance(tools: &Attached, ledger: &mut Ledger) {
    let next = ledger.next();
    while ledger.next() == next {
        match call(tools, "plan_advance", &advance_to(next)).await {
            Ok(plan) => ledger.saved(&plan),
            Err(error) if error.code == "unavailable" => {}
            Err(error) => {
                assert_eq!(error.code, "reopen-required", "{}", error.message);
                ledger.unknown();
                opened(tools).await;
                ledger.shown(&plan(tools).await);
            }
        }
    }
}

#[tokio::test]
async fn scripted_in_memory() {
    scripted(&InMemory(Encoding::Json), "memory").await;
}

#[tokio::test]
async fn scripted_in_session_files() {
    scripted(&InFiles(tempfile::tempdir().unwrap()), "session file").await;
}

#[tokio::test]
async fn scripted_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    scripted(&InDatabase::in_folder(folder.path()).await, "SQLite").await;
}

#[tokio::test]
async fn scripted_in_postgresql() {
    if let Some(url) = conformance::postgres() {
        scripted(&InDatabase::open(&url).await, "PostgreSQL").await;
    }
}

/// Whoever keeps the storage from taking our writes, until it is dropped.
trait Holder {
    async fn release(self);
}

/// Another process that holds the lock on a file.
struct Lock(Child);

impl Lock {
    fn hold(file: &Path) -> Lock {
        let mut process = Command::new("flock")
            .arg(file)
            .args(["sh", "-c", "echo held; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Lock(process)
    }
}

impl Holder for Lock {
    async fn release(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

/// A transaction of somebody else's.
struct Transaction(AnyConnection);

impl Transaction {
    async fn hold(url: &str, statements: [&'static str; 2], name: &str) -> Transaction {
        let mut connection = AnyConnection::connect(url).await.unwrap();
        let [begin, lock] = statements;
        sqlx::query(begin).execute(&mut connection).await.unwrap();
        sqlx::query(lock).bind(name.to_owned()).fetch_all(&mut connection).await.unwrap();
        Transaction(connection)
    }
}

impl Holder for Transaction {
    async fn release(mut self) {
        sqlx::query("ROLLBACK").execute(&mut self.0).await.unwrap();
        self.0.close().await.unwrap();
    }
}

/// Appends that take longer than they may: the session is not opened again before the write has ended, and then the write is
/// there, once. Others see the session as it was, and then as it is.
async fn outlived<S: Storage, H: Holder>(storage: &S, name: &str, hold: impl AsyncFn(&S::Journal) -> H)
where
    S::Journal: Clone,
{
    let journal = storage.create().await;
    call(&plan_session(&host(), journal.clone()).await, "plan_create", &draft(20)).await.unwrap();
    let tools = plan_session(&impatient(), journal.clone()).await;
    let mut ledger = Ledger::new(name, "append that outlives its time");
    for _ in 0..faults() {
        let next = ledger.next();
        let holder = hold(&journal).await;
        let error = call(&tools, "plan_advance", &advance_to(next)).await.unwrap_err();
        assert_eq!(error.code, "reopen-required", "{}", error.message);
        ledger.unknown();
        ledger.faults += 1;
        let early = tools.session().reopen().await;
        assert!(matches!(early, Err(ReadError::Unavailable(_))), "the write goes on: {early:?}");
        assert_eq!(call(&tools, "plan_get", "{}").await.unwrap_err().code, "reopen-required");
        let beside = storage.open_again(&journal).await.unwrap();
        assert_eq!(plans(&beside).await.last().and_then(number), Some(next - 1), "nothing of it is seen yet");
        holder.release().await;
        opened(&tools).await;
        ledger.shown(&plan(&tools).await);
        assert_eq!(ledger.next(), next + 1, "the write that went on is there");
        ledger.holds(&plans(&beside).await);
        advance(&tools, &mut ledger).await;
    }
    ledger.holds(&plans(&journal).await);
    ledger.close();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn outlived_in_session_files() {
    let storage = InFiles(tempfile::tempdir().unwrap());
    outlived(&storage, "session file", async |journal| Lock::hold(journal.path())).await;
}

#[tokio::test]
async fn outlived_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("plans.db").display());
    let statements = ["BEGIN IMMEDIATE", "SELECT id FROM plan_execute_sessions WHERE name = $1"];
    let hold = async |journal: &SqlSession| Transaction::hold(&url, statements, journal.name()).await;
    outlived(&InDatabase::in_folder(folder.path()).await, "SQLite", hold).await;
}

#[tokio::test]
async fn outlived_in_postgresql() {
    let Some(url) = conformance::postgres() else { return };
    let statements = ["BEGIN", "SELECT id FROM plan_execute_sessions WHERE name = $1 FOR UPDATE"];
    let hold = async |journal: &SqlSession| Transaction::hold(&url, statements, journal.name()).await;
    outlived(&InDatabase::open(&url).await, "PostgreSQL", hold).await;
}
