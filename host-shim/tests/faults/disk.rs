//! A full disk, while a stand-in for Pi writes to the same one.
//!
//! The disk is a small tmpfs in a mount namespace of the test's own. Where the machine allows none, a limit for the size of the
//! server's files stands in for it.

use crate::{
    ledger::{Ledger, advance_to, create, draft, faults},
    place::{Place, in_file, torn},
    worker::{self, Answer, Worker},
};
use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    process::{Pid, Resource, Rlimit, prlimit},
};
use serde_json::{Value, json};
use std::{
    env,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Where the inner run of a test finds its small disk.
const DISK: &str = "PLAN_EXECUTE_FAULTS_DISK";

#[test]
fn session_files() {
    on_small_disk("disk::session_files", beside_pi);
}

#[test]
fn sqlite() {
    on_small_disk("disk::sqlite", in_database);
}

/// Runs the test `name` once more in a mount namespace where there is a small disk, or `run` here where there can be none.
#[expect(clippy::print_stderr, reason = "the rows of the inner run")]
fn on_small_disk(name: &str, run: fn(&Space)) {
    if let Some(folder) = env::var_os(DISK) {
        return run(&Space { folder: folder.into(), disk: true });
    }
    let folder = tempfile::tempdir().unwrap();
    let inside = |command: &[&str]| {
        let mount = "mount -t tmpfs -o size=64m none \"$0\" && exec \"$@\"";
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", mount]).arg(folder.path()).args(command);
        unshare.env(DISK, folder.path()).output()
    };
    if !inside(&["true"]).is_ok_and(|done| done.status.success()) {
        return run(&Space { folder: folder.path().into(), disk: false });
    }
    let program = env::current_exe().unwrap();
    let done = inside(&[program.to_str().unwrap(), name, "--exact", "--nocapture"]).unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    eprint!("{stderr}");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// The room that the server has.
struct Space {
    folder: PathBuf,
    /// Is the folder a disk of its own?
    disk: bool,
}

impl Space {
    fn kind(&self) -> &'static str {
        if self.disk { "full disk" } else { "file size limit" }
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Leaves `room` bytes: on the disk, or for `file` where there is no disk.
    fn fill(&self, worker: &Worker, file: &Path, room: u64) {
        if !self.disk {
            let size = fs::metadata(file).map_or(0, |metadata| metadata.len());
            return limit(worker, Some(size + room));
        }
        let found = statvfs(&self.folder).unwrap();
        let free = (found.f_bavail * found.f_bsize).saturating_sub(room);
        let ballast = File::create(self.ballast()).unwrap();
        fallocate(&ballast, FallocateFlags::empty(), 0, free).unwrap();
    }

    fn free(&self, worker: &Worker) {
        match self.disk {
            true => fs::remove_file(self.ballast()).unwrap(),
            false => limit(worker, None),
        }
    }
}

/// Bounds the size of the files that the server may make.
fn limit(worker: &Worker, bytes: Option<u64>) {
    let pid = Pid::from_raw(worker.id().try_into().unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// What is known after a refusal: that nothing was written, or nothing.
fn refused(ledger: &mut Ledger, answer: Answer) {
    match answer {
        Answer::Refused(code, _) if code == "unavailable" => {}
        Answer::Refused(code, message) if code == "reopen-required" => {
            assert!(message.contains("write failed"), "{message}");
            ledger.unknown();
        }
        Answer::Failed(message) => assert!(message.contains("cannot be reopened yet"), "{message}"),
        other => panic!("{other:?}"),
    }
}

/// The most calls until the disk is full.
const CALLS: usize = 2_000;

fn in_database(space: &Space) {
    let place = Place::sqlite(&space.folder);
    worker::create(&place.session(), &draft(20));
    let mut ledger = Ledger::new(place.journal(), space.kind());
    let log = space.folder.join("s.db-wal");
    let pi = Pi::new(&space.folder);
    for _ in 0..faults() {
        let mut worker = Worker::start(&place.session());
        ledger.shown(&worker.plan());
        let advance = |worker: &mut Worker, ledger: &Ledger| worker.call("plan_advance", &advance_to(ledger.next()));
        match advance(&mut worker, &ledger) {
            Answer::Plan(plan) => ledger.saved(&plan),
            other => panic!("an advance with room enough was refused: {other:?}"),
        }
        space.fill(&worker, &log, fastrand::u64(..64 * 1024));
        let writing = pi.write_beside();
        let refusal = (0..CALLS).find_map(|_| match advance(&mut worker, &ledger) {
            Answer::Plan(plan) => {
                ledger.saved(&plan);
                None
            }
            refusal => Some(refusal),
        });
        refused(&mut ledger, refusal.expect("the disk is full some time"));
        ledger.faults += 1;
        // It stays full for a while.
        for _ in 0..fastrand::usize(..3) {
            match advance(&mut worker, &ledger) {
                Answer::Plan(plan) => ledger.saved(&plan),
                refusal => refused(&mut ledger, refusal),
            }
        }
        drop(writing);
        space.free(&worker);
        // With room again, the very server goes on.
        ledger.shown(&worker.plan());
        match advance(&mut worker, &ledger) {
            Answer::Plan(plan) => ledger.saved(&plan),
            other => panic!("an advance with room enough was refused: {other:?}"),
        }
        worker.wait();
        ledger.holds(&place.plans());
        pi.check();
    }
    ledger.close();
}

fn beside_pi(space: &Space) {
    let place = Place::file(&space.folder);
    let Place::File(file) = &place else { unreachable!() };
    worker::create(&place.session(), &create(0, 400));
    let mut ledger = Ledger::new(place.journal(), space.kind());
    let pi = Pi::open(file);
    let mut worker = Worker::start(&place.session());
    for _ in 0..faults() {
        space.fill(&worker, file, fastrand::u64(..64 * 1024));
        let writing = pi.write_beside();
        let mut full = None;
        for _ in 0..CALLS {
            match worker.call("plan_create", &create(ledger.next(), 400)) {
                Answer::Plan(plan) => ledger.saved(&plan),
                // Pi wrote in between.
                Answer::Refused(code, _) if code == "branch-changed" => {}
                refusal => {
                    full = Some(refusal);
                    break;
                }
            }
        }
        refused(&mut ledger, full.expect("the disk is full some time"));
        ledger.faults += 1;
        // What became of it is settled with the next call, at the latest.
        worker.call("plan_get", "{}");
        drop(writing);
        ledger.settle(&in_file(file));
        space.free(&worker);
        // With room again, the very server goes on.
        ledger.shown_beside_pi(&worker.plan());
        match worker.call("plan_create", &create(ledger.next(), 400)) {
            Answer::Plan(plan) => ledger.saved(&plan),
            other => panic!("a plan was refused with room enough: {other:?}"),
        }
        ledger.holds(&in_file(file));
        pi.check();
    }
    worker.wait();
    ledger.torn = Some(torn(file));
    ledger.close();
}

/// Writes to a session file as Pi does: for each entry it opens the file, writes, and closes it. Like a Pi that was opened
/// just now, it goes on from the last line.
struct Pi {
    file: PathBuf,
    /// What stands in the file since it was written, and where.
    written: Mutex<Written>,
}

/// Bytes, and where they were written.
type Written = Vec<(u64, Vec<u8>)>;

/// Writes until it is dropped.
struct Writing<'a> {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<Written>>,
    pi: &'a Pi,
}

impl Pi {
    /// With a session file of its own in the folder.
    fn new(folder: &Path) -> Pi {
        let file = folder.join("pi.jsonl");
        let header = json!({ "type": "session", "version": 3, "id": "pi", "timestamp": "2026-01-02T03:04:05.000Z" });
        fs::write(&file, format!("{header}\n")).unwrap();
        Pi::open(&file)
    }

    fn open(file: &Path) -> Pi {
        Pi { file: file.into(), written: Default::default() }
    }

    fn write_beside(&self) -> Writing<'_> {
        let stop = Arc::new(AtomicBool::new(false));
        let (file, stopped) = (self.file.clone(), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut written = Written::new();
            while !stopped.load(Ordering::Relaxed) {
                // A disk that is full is Pi's trouble as well.
                let _ = append(&file, &mut written);
                thread::sleep(Duration::from_micros(fastrand::u64(..10_000)));
            }
            written
        });
        Writing { stop, thread: Some(thread), pi: self }
    }

    /// Every byte still stands where it was written.
    fn check(&self) {
        let file = File::open(&self.file).unwrap();
        for (offset, bytes) in &*self.written.lock().unwrap() {
            let mut found = vec![0; bytes.len()];
            file.read_exact_at(&mut found, *offset).unwrap();
            assert!(found == *bytes, "a line of Pi's was changed at byte {offset}");
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let written = self.thread.take().unwrap().join().unwrap();
        self.pi.written.lock().unwrap().extend(written);
    }
}

/// One entry, in as many writes as it takes, until one of them fails.
fn append(path: &Path, written: &mut Written) -> io::Result<()> {
    let id = format!("{:08x}", fastrand::u32(..));
    let message = json!({ "role": "user", "content": "x".repeat(fastrand::usize(..2_000)) });
    let entry = json!({ "type": "message", "id": id, "parentId": last_id(path)?, "message": message });
    let line = format!("{entry}\n");
    let mut rest = line.as_bytes();
    let mut file = File::options().append(true).open(path)?;
    while !rest.is_empty() {
        let length = file.write(rest)?;
        written.push((file.stream_position()? - length as u64, rest[..length].to_vec()));
        rest = &rest[length..];
    }
    Ok(())
}

/// The id of the last entry that can be read.
fn last_id(path: &Path) -> io::Result<Value> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(64 * 1024)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let entries = tail.split(|byte| *byte == b'\n').rev().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    Ok(entries.filter(|entry| entry["type"] != "session").map(|entry| entry["id"].clone()).next().unwrap_or_default())
}
