//! PostgreSQL through a proxy that cuts connections while a transaction is committed.

use plan_execute_host::journal::{
    AppendError, Journal, Payload,
    sql::{Database, SqlSession},
};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
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
    address: SocketAddr,
}

impl Proxy {
    async fn start(server: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cut = Arc::new(AtomicU8::new(Cut::None as u8));
        let armed = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if armed.load(Ordering::SeqCst) == Cut::AfterForGood as u8 + 1 {
                    continue;
                }
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&armed)));
            }
        });
        Proxy { cut, address }
    }

    fn cut(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }
}

/// Hands on what both sides send, until one of them ends or the proxy cuts.
async fn pass(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>) {
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
                if server.write_all(&up[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&down[..length]).await.is_err() {
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

#[tokio::test]
async fn a_lost_answer_to_commit_is_settled() {
    let Some(url) = conformance::postgres() else { return };
    let (scheme, place) = url.split_once('@').unwrap();
    let (server, name) = place.split_once('/').unwrap();
    let proxy = Proxy::start(server.to_owned()).await;
    let through = format!("{scheme}@{}/{name}", proxy.address);
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
