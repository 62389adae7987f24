//! SIGKILL at random moments of a run of advances.

use crate::{
    ledger::{Ledger, advance_to, draft, faults},
    place::{Place, torn},
    worker::{Answer, Worker, create},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    io::Write,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How long the titles are: entries of some pages, whose writing takes a while.
const TITLE: usize = 400;

/// Kills one server after another. `settled` waits until nothing of the last one goes on; `between` may do more damage.
fn run(place: &Place, worker_session: &str, settled: impl Fn(), between: impl Fn(usize)) -> Ledger {
    create(&place.session(), &draft(TITLE));
    let mut ledger = Ledger::new(place.journal(), "SIGKILL in a run of advances");
    // How long an advance takes, so that kills fall into every moment of one.
    let mut advance = Duration::from_millis(20);
    for round in 0..faults() {
        let mut worker = Worker::start(worker_session);
        ledger.shown(&worker.plan());
        let pid = Pid::from_raw(worker.id().try_into().unwrap()).unwrap();
        let wait = advance.mul_f64(fastrand::f64() * 4.0);
        let (started, before) = (Instant::now(), ledger.acknowledged());
        let killer = thread::spawn(move || {
            thread::sleep(wait);
            kill_process(pid, Signal::KILL).unwrap();
            Instant::now()
        });
        loop {
            match worker.call("plan_advance", &advance_to(ledger.next())) {
                Answer::Plan(plan) => ledger.saved(&plan),
                Answer::Gone => break,
                refused => panic!("an advance was refused: {refused:?}"),
            }
        }
        ledger.unknown();
        let killed = killer.join().unwrap();
        worker.wait();
        ledger.faults += 1;
        let done = u32::try_from(ledger.acknowledged() - before).unwrap();
        if done > 0 {
            advance = (advance * 3 + (killed - started) / done) / 4;
        }
        settled();
        ledger.holds(&place.plans());
        between(round);
    }
    let mut worker = Worker::start(worker_session);
    ledger.shown(&worker.plan());
    match worker.call("plan_advance", &advance_to(ledger.next())) {
        Answer::Plan(plan) => ledger.saved(&plan),
        refused => panic!("the session does not go on: {refused:?}"),
    }
    worker.wait();
    ledger.holds(&place.plans());
    ledger
}

/// Half a line, as a program leaves it that is killed while it writes.
fn tear(file: &Path) {
    let line = br#"{"type":"message","id":"feed0001","parentId":null,"message":{"role":"user","con"#;
    let length = fastrand::usize(1..line.len());
    File::options().append(true).open(file).unwrap().write_all(&line[..length]).unwrap();
}

#[test]
fn session_files() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::file(folder.path());
    let Place::File(file) = &place else { unreachable!() };
    let between = |round| {
        if round % 2 == 0 {
            tear(file);
        }
    };
    let mut ledger = run(&place, &place.session(), || {}, between);
    ledger.torn = Some(torn(file));
    assert!(ledger.torn >= Some(faults() / 2), "each torn line stands alone");
    ledger.close();
}

#[test]
fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::sqlite(folder.path());
    run(&place, &place.session(), || {}, |_| {}).close();
}

#[test]
fn postgresql() {
    let Some(url) = crate::postgres::shared() else { return };
    let name = format!("killed-{}", std::process::id());
    let place = Place::Database { url: url.clone(), name: name.clone() };
    // The server goes on for a moment with what a client has sent that is gone.
    let settled = || crate::postgres::wait_for_clients(&url, &name);
    run(&place, &format!("{url}?application_name={name}#{name}"), settled, |_| {}).close();
}
