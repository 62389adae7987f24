//! PostgreSQL: the server that all tests share, servers of their own, and a run in which one of those is stopped and started.

use crate::{
    ledger::{Ledger, advance_to, draft, faults},
    place::Place,
    worker::{Answer, Worker, create},
};
use sqlx::{AnyConnection, Connection, Row};
use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// The server to test on, which `.ci/with-postgres` starts. Without one, what needs it is skipped.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn shared() -> Option<String> {
    let url = env::var("PLAN_EXECUTE_POSTGRES").ok();
    if url.is_none() {
        eprintln!("skipped: PLAN_EXECUTE_POSTGRES names no server");
    }
    url
}

/// Waits until the server has ended all connections of the clients with this name.
pub(crate) fn wait_for_clients(url: &str, name: &str) {
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = AnyConnection::connect(url).await.unwrap();
        loop {
            let query = "SELECT COUNT(*) AS clients FROM pg_stat_activity WHERE application_name = $1";
            let row = sqlx::query(query).bind(name.to_owned()).fetch_one(&mut connection).await.unwrap();
            if row.get::<i64, _>("clients") == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
}

/// A server of one test's own.
struct Server {
    process: Child,
    url: String,
    /// The shell command that controls it, without what it is to do.
    control: String,
}

impl Server {
    fn start() -> Server {
        let mut process = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/with-postgres"))
            .args(["sh", "-c", "echo $PLAN_EXECUTE_POSTGRES; echo $PLAN_EXECUTE_POSTGRES_CONTROL; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (url, control) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
        Server { process, url, control }
    }

    fn control(&self, what: &str) {
        let done = Command::new("sh").args(["-c", &format!("{} {what}", self.control)]).output().unwrap();
        assert!(done.status.success(), "{what}: {done:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// In half of the stops it breaks off whatever it does, as if it had crashed.
#[test]
fn stopped_and_started_in_the_middle_of_a_run() {
    if shared().is_none() {
        return;
    }
    let server = Server::start();
    let place = Place::Database { url: server.url.clone(), name: "restarts".into() };
    create(&place.session(), &draft(20));
    let mut ledger = Ledger::new(place.journal(), "server stopped and started");
    let mut worker = Worker::start(&place.session());
    for round in 0..faults() {
        thread::scope(|scope| {
            let restart = scope.spawn(|| {
                thread::sleep(Duration::from_micros(fastrand::u64(..40_000)));
                server.control(["stop --mode immediate", "stop --mode fast"][round % 2]);
                server.control("start");
            });
            // Until it runs again and has saved something.
            let mut saved = 0;
            while !restart.is_finished() || saved == 0 {
                match worker.call("plan_advance", &advance_to(ledger.next())) {
                    Answer::Plan(plan) => {
                        ledger.saved(&plan);
                        saved = usize::from(restart.is_finished());
                    }
                    // Nothing was written: the same advance again would be a second one.
                    Answer::Refused(code, _) if code == "unavailable" => {}
                    Answer::Refused(code, message) if code == "reopen-required" => {
                        assert!(message.contains("write failed"), "{message}");
                        ledger.unknown();
                        settle(&mut worker, &mut ledger);
                    }
                    Answer::Failed(message) => assert!(message.contains("cannot be reopened yet"), "{message}"),
                    other => panic!("{other:?}"),
                }
            }
            restart.join().unwrap();
        });
        ledger.faults += 1;
        ledger.shown(&worker.plan());
        ledger.holds(&place.plans());
    }
    worker.wait();
    ledger.close();
}

/// Looks what became of a write of unknown outcome, as soon as the server tells.
fn settle(worker: &mut Worker, ledger: &mut Ledger) {
    loop {
        match worker.call("plan_get", "{}") {
            Answer::Plan(plan) => return ledger.shown(&plan),
            Answer::Refused(code, message) => assert_eq!(code, "unavailable", "{message}"),
            Answer::Failed(message) => assert!(message.contains("cannot be reopened yet"), "{message}"),
            Answer::Gone => panic!("the command ended"),
        }
    }
}
