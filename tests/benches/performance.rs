//! The figures of the README, each beside what it is compared with. `tests/bench` runs them and prints the table.
//!
//! Files stand in the build folder, on whatever disk that is.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails has no figure")]

use conformance::{attach, host, plan_session, plan_tools};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use plan_execute_guest::{journal as guest, planner::Planner, tools};
use plan_execute_host::{
    Attached,
    journal::{
        Encoding, Entry, Journal, Memory, Payload, Position,
        pi::PiSession,
        sql::{Database, SqlSession},
    },
};
use plan_guest_support::payload;
use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    future::Future,
    io::{BufRead, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

const TYPE: &str = "pi-harness/plan-execute";
const SIZES: [usize; 3] = [10, 10_000, 1_000_000];

/// A plan of 50 steps with titles of 60 characters, as it is saved.
fn plan() -> String {
    let mut text = format!(r#"{{"title":"{:060}","steps":["#, 0);
    for id in 1..=50 {
        let separator = if id == 1 { "" } else { "," };
        write!(text, r#"{separator}{{"id":{id},"title":"{id:060}","status":"pending","dependsOn":[{}]}}"#, id % 50 + 1)
            .unwrap();
    }
    // The last step waits for the first: without that one there is no circle.
    text = text.replace(r#","dependsOn":[1]}"#, "}");
    text + "]}"
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benches");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A session file with so many entries, the plan tenth from the end. It is made once.
fn session_file(entries: usize) -> PathBuf {
    let file = folder().join(format!("{entries}.jsonl"));
    if file.exists() {
        return file;
    }
    let mut text = String::from(
        r#"{"type":"session","version":3,"id":"01a00000-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/srv/demo"}"#,
    );
    let mut parent = "null".to_owned();
    for i in 0..entries {
        let entry = match i {
            _ if i + 10 == entries => format!(r#""type":"custom","customType":"{TYPE}","data":{}"#, plan()),
            _ => format!(
                r#""type":"message","message":{{"role":"user","content":"What is the state of item {i}, and which of the files were changed since?","timestamp":1767323045000}}"#
            ),
        };
        write!(
            text,
            "\n{{{entry},\"id\":\"{i:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-02T03:04:05.000Z\"}}"
        )
        .unwrap();
        parent = format!("\"{i:08x}\"");
    }
    text.push('\n');
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, &file).unwrap();
    file
}

/// A session in memory with so many entries, the plan tenth from the end.
fn session_in_memory(entries: usize) -> Memory {
    let memory = Memory::new(Encoding::Json);
    for i in 0..entries {
        match i + 10 == entries {
            true => memory.push(Some(TYPE), Payload::json(plan())),
            false => memory.push(None, Payload::json("{}")),
        };
    }
    memory
}

/// The same journal for the rules when they are called natively.
struct Native {
    memory: Memory,
    at: Position,
}

fn now<T>(future: impl Future<Output = T>) -> T {
    // The memory journal never waits.
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => unreachable!("the memory journal waited"),
    }
}

impl guest::Branch for Native {
    fn session_token(&self) -> String {
        self.at.token()
    }
    fn preferred_encoding(&self) -> payload::Encoding {
        payload::Encoding::Json
    }
    fn latest(&self, custom_type: &str) -> Result<Option<guest::Entry>, guest::ReadError> {
        let entry: Option<Entry> = now(self.memory.latest(&self.at, custom_type)).unwrap();
        Ok(entry.map(|e| guest::Entry { id: e.id, encoding: payload::Encoding::Json, bytes: e.payload.bytes }))
    }
    fn append(&self, _: &str, _: payload::Encoding, _: Vec<u8>) -> Result<(), guest::AppendError> {
        unreachable!("plan_get appends nothing")
    }
}

/// One call on a fresh instance, and nothing else.
async fn get(tools: &Attached) -> String {
    tools.call_alone("plan_get", "{}").await.unwrap().unwrap().text
}

/// The same as a harness makes it: queued, on an instance that was configured.
async fn get_queued(tools: &Attached) -> String {
    tools.call("plan_get", "{}").await.unwrap().unwrap().text
}

/// One thread for everything but file operations, so that no figure depends on how fast the system wakes threads.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn plan_get(c: &mut Criterion) {
    let runtime = runtime();
    let host = host();
    let memory = session_in_memory(10);
    let tools = runtime.block_on(plan_session(&host, memory.clone()));
    let native = Native { at: now(memory.position()).unwrap(), memory };
    let text = tools::call(&mut Planner::default(), &native, "plan_get", "{}").unwrap();
    assert_eq!(text, runtime.block_on(get(&tools)));
    let mut group = c.benchmark_group("plan_get");
    group.bench_function("native", |b| {
        b.iter(|| tools::call(&mut Planner::default(), &native, "plan_get", "{}").unwrap())
    });
    group.bench_function("component", |b| b.to_async(&runtime).iter(|| get(&tools)));
    group.bench_function("queued", |b| b.to_async(&runtime).iter(|| get_queued(&tools)));
    group.bench_function("attach", |b| {
        let (plugin, session) =
            runtime.block_on(async { (plan_tools(&host).await, host.open(Memory::default()).await.unwrap()) });
        b.to_async(&runtime).iter(|| attach(&plugin, &session));
    });
    for entries in SIZES {
        let tools = runtime.block_on(plan_session(&host, session_in_memory(entries)));
        group.bench_function(format!("memory/{entries}"), |b| b.to_async(&runtime).iter(|| get(&tools)));
        let file = runtime.block_on(PiSession::open(session_file(entries))).unwrap();
        let tools = runtime.block_on(plan_session(&host, file));
        group.bench_function(format!("pi/{entries}"), |b| b.to_async(&runtime).iter(|| get(&tools)));
    }
    group.finish();
}

fn plan_advance(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("plan_advance");
    group.measurement_time(Duration::from_secs(10));
    let file = folder().join("advance.jsonl");
    fs::copy(session_file(10), &file).unwrap();
    let tools = runtime.block_on(async { plan_session(&host(), PiSession::open(&file).await.unwrap()).await });
    let mut step = 0;
    let mut advance = |queued: bool| {
        step += 1;
        let change = format!(r#"{{"step":50,"status":"{}"}}"#, ["skipped", "pending"][step % 2]);
        let answer = match queued {
            true => runtime.block_on(tools.call("plan_advance", &change)),
            false => runtime.block_on(tools.call_alone("plan_advance", &change)),
        };
        answer.unwrap().unwrap();
    };
    advance(true);
    let text = fs::read_to_string(&file).unwrap();
    let line = format!("{}\n", text.lines().last().unwrap());
    group.bench_function("durable", |b| b.iter(|| advance(false)));
    group.bench_function("queued", |b| b.iter(|| advance(true)));
    let by_hand = folder().join("by-hand.jsonl");
    fs::copy(session_file(10), &by_hand).unwrap();
    group.bench_function("by hand", |b| {
        b.iter(|| {
            let mut file = File::options().append(true).open(&by_hand).unwrap();
            file.write_all(line.as_bytes()).unwrap();
            file.sync_data().unwrap();
        });
    });
    // What of that is not the disk.
    let tools = runtime.block_on(plan_session(&host(), session_in_memory(10)));
    group.bench_function("in memory", |b| {
        b.iter(|| {
            step += 1;
            let change = format!(r#"{{"step":50,"status":"{}"}}"#, ["skipped", "pending"][step % 2]);
            runtime.block_on(tools.call_alone("plan_advance", &change)).unwrap().unwrap();
        });
    });
    group.finish();
}

fn open(c: &mut Criterion) {
    let runtime = runtime();
    let file = session_file(1_000_000);
    let mut group = c.benchmark_group("open");
    group.sample_size(10);
    let before = resident();
    let session = runtime.block_on(PiSession::open(&file)).unwrap();
    // Criterion knows of times alone.
    fs::write(folder().join("memory.txt"), ((resident() - before) / 1024).to_string()).unwrap();
    drop(session);
    group.bench_function("session", |b| {
        b.iter_batched(|| (), |()| runtime.block_on(PiSession::open(&file)).unwrap(), BatchSize::PerIteration);
    });
    group.bench_function("read", |b| b.iter_batched(|| (), |()| fs::read(&file).unwrap(), BatchSize::PerIteration));
    group.finish();
}

/// A client of the MCP server that asks one thing at a time.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn start() -> Client {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/plan-execute");
        let mut command = Command::new(program);
        command.args(["mcp", "--session"]).arg(session_file(10)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let mut client = Client { server, input, output, line: String::new() };
        client.ask(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        );
        client.input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
        client
    }

    fn ask(&mut self, request: &str) {
        self.input.write_all(format!("{request}\n").as_bytes()).unwrap();
        self.line.clear();
        self.output.read_line(&mut self.line).unwrap();
        assert!(self.line.contains(r#""result""#), "{}", self.line);
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.server.wait().unwrap().success());
    }
}

fn mcp(c: &mut Criterion) {
    let mut group = c.benchmark_group("mcp");
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let mut client = Client::start();
    let get = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"plan_get","arguments":{}}}"#;
    group.bench_function("plan_get", |b| b.iter(|| client.ask(get)));
    client.end();
    group.bench_function("start", |b| {
        b.iter_custom(|rounds| {
            let mut total = Duration::ZERO;
            for _ in 0..rounds {
                let started = Instant::now();
                let mut client = Client::start();
                client.ask(list);
                total += started.elapsed();
                client.end();
            }
            total
        });
    });
    group.finish();
}

/// The databases to measure: SQLite, and the server that `PLAN_EXECUTE_POSTGRES` names.
fn databases(runtime: &Runtime) -> Vec<(&'static str, Database)> {
    let file = format!("sqlite:{}", folder().join("plans.db").display());
    let mut databases = vec![("sqlite", runtime.block_on(Database::open(&file, true)).unwrap())];
    if let Ok(url) = env::var("PLAN_EXECUTE_POSTGRES") {
        databases.push(("postgresql", runtime.block_on(Database::open(&url, true)).unwrap()));
    }
    databases
}

/// A session of the database with so many entries. It is made once.
async fn session_in_database(database: &Database, entries: usize) -> SqlSession {
    let name = entries.to_string();
    if let Ok(session) = database.session(&name).await {
        return session;
    }
    // Each file needs an id of its own in one database.
    let text = fs::read_to_string(session_file(entries)).unwrap();
    let file = folder().join("import.jsonl");
    fs::write(&file, text.replacen("-000000000001", &format!("-{entries:012}"), 1)).unwrap();
    let session = database.import(&file, &name).await.unwrap();
    fs::remove_file(&file).unwrap();
    session
}

fn sql(c: &mut Criterion) {
    let runtime = runtime();
    for (kind, database) in databases(&runtime) {
        let mut group = c.benchmark_group(format!("sql {kind}"));
        for entries in [10, 1_000_000] {
            let session = runtime.block_on(session_in_database(&database, entries));
            let at = runtime.block_on(session.position()).unwrap();
            group.bench_function(format!("latest/{entries}"), |b| {
                b.to_async(&runtime).iter(|| async { session.latest(&at, TYPE).await.unwrap().unwrap() });
            });
        }
        let _ = runtime.block_on(database.delete("advance"));
        let session = runtime.block_on(database.create("advance")).unwrap();
        let at = runtime.block_on(session.position()).unwrap();
        let payload = Payload::json(plan()).check().unwrap();
        runtime.block_on(session.append(&at, TYPE, &payload)).unwrap();
        let tools = runtime.block_on(plan_session(&host(), session));
        let mut step = 0;
        group.bench_function("durable", |b| {
            b.iter(|| {
                step += 1;
                let change = format!(r#"{{"step":50,"status":"{}"}}"#, ["skipped", "pending"][step % 2]);
                runtime.block_on(tools.call_alone("plan_advance", &change)).unwrap().unwrap();
            });
        });
        let (pool, bytes) = (&database.pool(), payload.as_payload().bytes.clone());
        let column = if kind == "sqlite" { "BLOB" } else { "BYTEA" };
        for statement in
            ["DROP TABLE IF EXISTS bare".into(), format!("CREATE TABLE bare (id TEXT PRIMARY KEY, payload {column})")]
        {
            runtime.block_on(sqlx::query(sqlx::AssertSqlSafe(statement)).execute(pool)).unwrap();
        }
        let mut number = 0_u64;
        group.bench_function("bare", |b| {
            b.iter(|| {
                number += 1;
                runtime.block_on(async {
                    let mut transaction = pool.begin().await.unwrap();
                    let insert = sqlx::query("INSERT INTO bare (id, payload) VALUES ($1, $2)");
                    insert.bind(number.to_string()).bind(bytes.clone()).execute(&mut *transaction).await.unwrap();
                    transaction.commit().await.unwrap();
                });
            });
        });
        runtime.block_on(sqlx::query("DROP TABLE bare").execute(pool)).unwrap();
        group.finish();
    }
}

/// Resident memory of this process, in KiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn process(c: &mut Criterion) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/plan-execute");
    let file = session_file(10);
    let mut group = c.benchmark_group("process");
    group.bench_function("call plan_get", |b| {
        b.iter(|| {
            let output = Command::new(&program).args(["call", "plan_get", "--session"]).arg(&file).output().unwrap();
            assert!(output.status.success());
        });
    });
    group.finish();
}

// Opening comes first: memory that earlier benchmarks left behind would make reading a file look several times faster.
criterion_group!(benches, open, plan_get, plan_advance, process, mcp, sql);
criterion_main!(benches);
