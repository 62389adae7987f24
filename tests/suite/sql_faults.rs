//! Databases that fail: SQLite without room, and PostgreSQL through a proxy that cuts connections while a transaction is
//! committed.

use crate::ledger::{Ledger, create, faults, number};
use plan_execute_host::journal::{
    AppendError, Journal, Payload, ReadError,
    sql::{Database, SqlSession},
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The custom type of the entries. Through the proxy, only the statement that inserts one names it; it commits by itself.
const TYPE: &str = "test/number";

/// What the proxy does at the next such statement.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Cut {
    None,
    /// Cuts before the server hears of it.
    Before,
    /// Lets the server commit, and cuts before the answer.
    After,
    /// As `After`, and lets nobody connect any more.
    AfterForGood,
}

struct Proxy {
    cut: Arc<AtomicU8>,
    bytes: Arc<Bytes>,
    address: SocketAddr,
}

/// Cuts at places in the stream of bytes.
#[derive(Default)]
struct Bytes {
    passed: AtomicUsize,
    /// After how many bytes more, in whichever direction, the connection that they are on is cut; and then the next one.
    until: Mutex<VecDeque<usize>>,
}

impl Bytes {
    /// How many of these bytes pass. Fewer than all: then the connection is cut.
    fn pass(&self, length: usize) -> usize {
        self.passed.fetch_add(length, Ordering::SeqCst);
        let mut until = self.until.lock().unwrap();
        let Some(next) = until.front_mut() else { return length };
        if *next >= length {
            *next -= length;
            return length;
        }
        let passes = *next;
        until.pop_front();
        passes
    }
}

impl Proxy {
    async fn start(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cut = Arc::new(AtomicU8::new(Cut::None as u8));
        let armed = Arc::clone(&cut);
        let bytes = Arc::new(Bytes::default());
        let passing = Arc::clone(&bytes);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if armed.load(Ordering::SeqCst) == Cut::AfterForGood as u8 + 1 {
                    continue;
                }
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&armed), Arc::clone(&passing)));
            }
        });
        Proxy { cut, bytes, address }
    }

    fn cut(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }
}

/// Hands on what both sides send, until one of them ends or the proxy cuts.
async fn pass(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>, bytes: Arc<Bytes>) {
    let (mut up, mut down) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                if up[..length].windows(TYPE.len()).any(|window| window == TYPE.as_bytes()) {
                    let armed = cut.swap(Cut::None as u8, Ordering::SeqCst);
                    if armed == Cut::Before as u8 {
                        return;
                    }
                    if armed == Cut::After as u8 || armed == Cut::AfterForGood as u8 {
                        if armed == Cut::AfterForGood as u8 {
                            cut.store(armed + 1, Ordering::SeqCst);
                        }
                        server.write_all(&up[..length]).await.unwrap();
                        // The server's answer shows that it has committed.
                        let _ = server.read(&mut down).await;
                        return;
                    }
                }
                let passes = bytes.pass(length);
                if server.write_all(&up[..passes]).await.is_err() || passes < length {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                let passes = bytes.pass(length);
                if client.write_all(&down[..passes]).await.is_err() || passes < length {
                    return;
                }
            }
        }
    }
}

async fn append(session: &SqlSession, number: u32) -> Result<String, AppendError> {
    let at = session.position().await.unwrap();
    let payload = Payload::json(number.to_string()).check().unwrap();
    Ok(session.append(&at, TYPE, &payload).await?.id)
}

async fn numbers(session: &SqlSession) -> Vec<String> {
    let at = session.position().await.unwrap();
    let entries = session.entries(&at, TYPE, None, 100).await.unwrap();
    entries.into_iter().rev().map(|entry| String::from_utf8(entry.payload.bytes).unwrap()).collect()
}

/// A proxy before the server at `url`, and the address that leads through it.
async fn before(url: &str) -> (Proxy, String) {
    let (scheme, place) = url.split_once('@').unwrap();
    let (server, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(server.to_owned()).await;
    let through = format!("{scheme}@{}/{name}", proxy.address);
    (proxy, through)
}

#[tokio::test]
async fn a_lost_answer_to_commit_is_settled() {
    let Some(url) = conformance::postgres() else { return };
    let (proxy, through) = before(&url).await;
    let direct = Database::open(&url, true).await.unwrap();
    for round in 0..5 {
        let name = format!("cut-{}-{round}", std::process::id());
        let session = Database::open(&through, true).await.unwrap().create(&name).await.unwrap();
        append(&session, 1).await.unwrap();
        let beside = direct.session(&name).await.unwrap();

        proxy.cut(Cut::After);
        let id = append(&session, 2).await.expect("it was committed, as a look at the session's row shows");
        assert_eq!(beside.position().await.unwrap().leaf.as_deref(), Some(id.as_str()));

        proxy.cut(Cut::Before);
        let refused = append(&session, 3).await;
        assert!(matches!(refused, Err(AppendError::Unavailable(_))), "{refused:?}");
        append(&session, 4).await.expect("what was not committed costs one call");
        assert_eq!(numbers(&beside).await, ["1", "2", "4"]);

        proxy.cut(Cut::AfterForGood);
        let unknown = append(&session, 5).await;
        assert!(matches!(unknown, Err(AppendError::Failed(_))), "{unknown:?}");
        assert_eq!(numbers(&beside).await, ["1", "2", "4", "5"]);
        proxy.cut(Cut::None);
        session.reopen().await.unwrap();
        assert_eq!(numbers(&session).await, ["1", "2", "4", "5"], "what the storage holds counts");
    }
}

/// A plan that has its number in its title.
async fn append_plan(session: &SqlSession, number: u64) -> Result<Value, AppendError> {
    let at = session.position().await?;
    let plan = create(number, 20);
    let payload = Payload::json(plan.clone()).check().unwrap();
    session.append(&at, "test/plan", &payload).await?;
    Ok(serde_json::from_str(&plan).unwrap())
}

async fn plans(session: &SqlSession) -> Vec<Value> {
    let at = session.position().await.unwrap();
    let (mut plans, mut before) = (Vec::new(), None::<String>);
    loop {
        let page = session.entries(&at, "test/plan", before.as_deref(), 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        plans.extend(page.iter().map(|entry| serde_json::from_slice::<Value>(&entry.payload.bytes).unwrap()));
    }
    plans.reverse();
    plans
}

/// Connections that are cut at every place of an append, sometimes the next one too.
#[tokio::test]
async fn connections_that_are_cut_anywhere() {
    let Some(url) = conformance::postgres() else { return };
    let (proxy, through) = before(&url).await;
    let name = format!("cuts-{}", std::process::id());
    let session = Database::open(&through, true).await.unwrap().create(&name).await.unwrap();
    let direct = Database::open(&url, true).await.unwrap();
    let beside = direct.session(&name).await.unwrap();
    append_plan(&session, 0).await.unwrap();
    let mut ledger = Ledger::new("PostgreSQL", "connection cut");
    // How many bytes an append is.
    let before = proxy.bytes.passed.load(Ordering::SeqCst);
    ledger.saved(&append_plan(&session, 1).await.unwrap());
    let append = proxy.bytes.passed.load(Ordering::SeqCst) - before;
    // Every place comes in turn; none is as likely to be missed as another.
    let cuts = faults();
    for round in 0..cuts {
        let mut until = VecDeque::from([append * round / cuts]);
        if round % 3 == 0 {
            until.push_back(fastrand::usize(..append));
        }
        ledger.faults += until.len();
        *proxy.bytes.until.lock().unwrap() = until;
        // Until all cuts were made, and an append was saved behind them.
        loop {
            let all = proxy.bytes.until.lock().unwrap().is_empty();
            match append_plan(&session, ledger.next()).await {
                Ok(plan) => {
                    ledger.saved(&plan);
                    if all {
                        break;
                    }
                }
                // Nothing was written: the same append again would be a second one.
                Err(AppendError::Unavailable(_)) => {}
                Err(AppendError::Failed(_)) => {
                    ledger.unknown();
                    // Opening again waits for what is still under way, and keeps out what comes later.
                    while let Err(error) = session.reopen().await {
                        assert!(matches!(error, ReadError::Unavailable(_)), "{error}");
                    }
                    ledger.settle(&plans(&beside).await);
                }
                Err(error) => panic!("{error}"),
            }
        }
        ledger.holds(&plans(&beside).await);
    }
    ledger.close();
}

/// SQLite ends a transaction by itself when it has no room. Whatever is acknowledged on that connection afterwards is there for
/// others, too.
#[tokio::test]
async fn after_a_full_database_an_append_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("plans.db").display());
    let session = Database::open(&url, true).await.unwrap().create("full").await.unwrap();
    let beside = Database::open(&url, false).await.unwrap().session("full").await.unwrap();
    append_plan(&session, 0).await.unwrap();
    // With all others taken, everything happens on one connection.
    let pool = session.database().pool();
    let mut taken = Vec::new();
    while taken.len() + 1 < pool.options().get_max_connections() as usize {
        taken.push(pool.acquire().await.unwrap());
    }
    for round in 0..4 {
        let at = session.position().await.unwrap();
        let large = Payload::json(format!("\"{}\"", "x".repeat(100_000))).check().unwrap();
        for _ in 0..round {
            // No page more than there are.
            sqlx::query("PRAGMA max_page_count = 1").fetch_all(&pool).await.unwrap();
            let full = session.append(&at, "test/large", &large).await;
            assert!(matches!(full, Err(AppendError::Unavailable(_))), "{full:?}");
        }
        sqlx::query("PRAGMA max_page_count = 1000000").fetch_all(&pool).await.unwrap();
        // An append that is refused for another reason rolls back what the driver takes for its transaction.
        append_plan(&beside, 3 * round + 1).await.unwrap();
        let stale = session.append(&at, "test/large", &large).await;
        assert_eq!(stale, Err(AppendError::BranchChanged));
        append_plan(&session, 3 * round + 2).await.unwrap();
        append_plan(&session, 3 * round + 3).await.unwrap();
        let reopened = Database::open(&url, false).await.unwrap().session("full").await.unwrap();
        let found = plans(&reopened).await.iter().filter_map(number).collect::<Vec<_>>();
        assert_eq!(found, (0..=3 * round + 3).collect::<Vec<_>>());
    }
}
