//! JSON-RPC messages, one on each line.
//!
//! The library's own transport passes over what it cannot read, so that whoever sent it waits for ever, and takes on any
//! number of requests. This one answers whatever was sent, and reads on only while few requests wait for their answers.

use rmcp::{
    ErrorData, RoleServer,
    model::RequestId,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
};

/// The longest message, in bytes. The arguments of a tool have a smaller limit of their own.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// How many requests may wait for their answers before no more are read.
const MAX_PENDING: usize = 256;

type Incoming = RxJsonRpcMessage<RoleServer>;
type Outgoing = TxJsonRpcMessage<RoleServer>;

/// The transport.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<AsyncMutex<W>>,
    line: Vec<u8>,
    /// The rest of a line that is too long is passed over.
    too_long: bool,
    /// Messages of a batch that were not handed out yet.
    batch: VecDeque<Value>,
    /// Did a request come yet? Before the first one there is nothing to notify anybody of.
    begun: bool,
    slots: Arc<Semaphore>,
    pending: Arc<Mutex<HashMap<RequestId, OwnedSemaphorePermit>>>,
}

/// What a line holds.
enum Line {
    Message(Box<Incoming>),
    /// Several messages at once, as the protocol of 2025-03-26 has them.
    Batch(VecDeque<Value>),
    /// Nothing that anybody waits for.
    Nothing,
    Wrong(ErrorData, Option<RequestId>),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Lines<R, W> {
        Lines {
            input: BufReader::new(input),
            output: Arc::new(AsyncMutex::new(output)),
            line: Vec::new(),
            too_long: false,
            batch: VecDeque::new(),
            begun: false,
            slots: Arc::new(Semaphore::new(MAX_PENDING)),
            pending: Arc::default(),
        }
    }

    /// Reads one line into `self.line`; `None` at the end. Whoever stops waiting loses nothing.
    async fn read(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.too_long |= self.line.len() + taken > MAX_MESSAGE;
            if self.too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                let error = format!("the message is longer than {MAX_MESSAGE} bytes: send a shorter one");
                return Ok(Some(Line::Wrong(ErrorData::invalid_request(error, None), None)));
            }
            let line = parse(&self.line);
            self.line.clear();
            return Ok(Some(line));
        }
    }

    /// Answers what is no message.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>, slot: OwnedSemaphorePermit) {
        let send = send(Arc::clone(&self.output), Outgoing::error(error, id));
        tokio::spawn(async move {
            // Where the client does not listen any more, it is gone.
            let _ = send.await;
            drop(slot);
        });
    }
}

impl<R, W> Lines<R, W> {
    fn pending(&self) -> MutexGuard<'_, HashMap<RequestId, OwnedSemaphorePermit>> {
        lock(&self.pending)
    }
}

fn lock(
    pending: &Mutex<HashMap<RequestId, OwnedSemaphorePermit>>,
) -> MutexGuard<'_, HashMap<RequestId, OwnedSemaphorePermit>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn send<W: AsyncWrite + Unpin>(output: Arc<AsyncMutex<W>>, message: Outgoing) -> io::Result<()> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let slot = match &message {
            Outgoing::Response(answer) => self.pending().remove(&answer.id),
            Outgoing::Error(answer) => answer.id.as_ref().and_then(|id| self.pending().remove(id)),
            Outgoing::Request(_) | Outgoing::Notification(_) => None,
        };
        let send = send(Arc::clone(&self.output), message);
        async move {
            let sent = send.await;
            drop(slot);
            sent
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            // It is never closed.
            let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
            let line = match self.batch.pop_front() {
                Some(value) => message(value),
                // A client that cannot be read from any more is gone.
                None => self.read().await.ok()??,
            };
            match line {
                Line::Message(message) => match &*message {
                    Incoming::Request(request) => {
                        self.begun = true;
                        self.pending().insert(request.id.clone(), slot);
                        return Some(*message);
                    }
                    Incoming::Notification(notification) => {
                        if let rmcp::model::ClientNotification::CancelledNotification(cancelled) =
                            &notification.notification
                            && let Some(id) = &cancelled.params.request_id
                        {
                            // It is not answered any more.
                            self.pending().remove(id);
                        }
                        if self.begun {
                            return Some(*message);
                        }
                    }
                    Incoming::Response(_) | Incoming::Error(_) if self.begun => return Some(*message),
                    Incoming::Response(_) | Incoming::Error(_) => {}
                },
                Line::Batch(batch) => self.batch = batch,
                Line::Nothing => {}
                Line::Wrong(error, id) => self.refuse(error, id, slot),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

/// Takes a line apart.
fn parse(line: &[u8]) -> Line {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Line::Nothing;
    }
    // Most lines are messages.
    if let Ok(message) = serde_json::from_slice(line) {
        return Line::Message(Box::new(message));
    }
    let value = serde_json::from_slice(line).or_else(|error| match str::from_utf8(line) {
        Ok(text) => serde_json::from_str(&without_lone_surrogates(text)).map_err(|_| error),
        Err(_) => Err(error),
    });
    match value {
        Ok(value) => message(value),
        Err(error) => {
            let error = format!("the line is no JSON ({error}): send one JSON-RPC message on each line");
            Line::Wrong(ErrorData::parse_error(error, None), None)
        }
    }
}

/// Takes a value for a message, or several.
fn message(value: Value) -> Line {
    let wrong = |what: &str, id| {
        let error = format!("{what}: send a JSON-RPC 2.0 request, notification or response");
        Line::Wrong(ErrorData::invalid_request(error, None), id)
    };
    let object = match value {
        Value::Array(batch) if batch.is_empty() => return wrong("the batch is empty", None),
        Value::Array(batch) if batch.iter().any(Value::is_array) => return wrong("a batch holds a batch", None),
        Value::Array(batch) => return Line::Batch(batch.into()),
        Value::Object(object) => object,
        _ => return wrong("the line holds no object", None),
    };
    let id = object.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let notifies = object.contains_key("method") && !object.contains_key("id");
    match serde_json::from_value(Value::Object(object)) {
        Ok(message) => Line::Message(Box::new(message)),
        // Nobody waits for an answer to a notification, also where it is one of another protocol.
        Err(_) if notifies => Line::Nothing,
        Err(error) => wrong(&format!("the object is no message of the protocol ({error})"), id),
    }
}

/// JSON text with `\ufffd` in place of halves of surrogate pairs, which JavaScript writes and Rust does not read.
fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json.as_bytes()[at..].iter().position(|&byte| byte == b'\\') {
        at += found;
        match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(&json[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The second character of an escape does not begin one.
            _ => at = (at + 2).min(json.len()),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{EmptyResult, NumberOrString, ServerResult};
    use std::time::Duration;
    use tokio::{
        io::{DuplexStream, WriteHalf, duplex, split},
        time::timeout,
    };

    #[test]
    fn every_line_is_something() {
        for (line, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "message"),
            ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n", "message"),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "message"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud83d"}}}"#,
                "message",
            ),
            ("", "nothing"),
            (" \r\n", "nothing"),
            (r#"{"method":"$/other"}"#, "nothing"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#, "batch of 2"),
            ("[]", "-32600 without id"),
            ("[[]]", "-32600 without id"),
            ("7", "-32600 without id"),
            ("{}", "-32600 without id"),
            (r#"{"id":3}"#, "-32600 with id"),
            (r#"{"id":"x","method":7}"#, "-32600 with id"),
            (r#"{"id":[],"method":"ping"}"#, "-32600 without id"),
            (r#"{"id":1,"#, "-32700 without id"),
            ("\"\\ud83", "-32700 without id"),
        ] {
            let found = match parse(line.as_bytes()) {
                Line::Message(_) => "message".to_owned(),
                Line::Batch(batch) => format!("batch of {}", batch.len()),
                Line::Nothing => "nothing".into(),
                Line::Wrong(error, id) => {
                    format!("{} {} id", error.code.0, if id.is_some() { "with" } else { "without" })
                }
            };
            assert_eq!(found, kind, "{line:?}");
        }
        assert!(matches!(parse(b"{\"a\":\"\xff\"}"), Line::Wrong(..)));
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (json, mended) in [
            (r#""plain é \\ \n \u00e9""#, r#""plain é \\ \n \u00e9""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ude00\ud83d!""#, r#""\ufffd\ufffd!""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\uD83D""#, r#""\\\ufffd""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("\\é", "\\é"),
        ] {
            assert_eq!(without_lone_surrogates(json), mended);
        }
    }

    type Duplex = Lines<tokio::io::ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

    /// The transport, and the client's end.
    fn lines() -> (Duplex, DuplexStream) {
        let (client, server) = duplex(1024 * 1024);
        let (input, output) = split(server);
        (Lines::new(input, output), client)
    }

    fn answer(id: i64) -> Outgoing {
        Outgoing::response(ServerResult::EmptyResult(EmptyResult {}), NumberOrString::Number(id))
    }

    #[tokio::test]
    async fn few_requests_are_taken_on_at_a_time() {
        let (mut lines, mut client) = lines();
        for id in 0..MAX_PENDING + 2 {
            let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            client.write_all(request.as_bytes()).await.unwrap();
        }
        for _ in 0..MAX_PENDING {
            lines.receive().await.unwrap();
        }
        let wait = Duration::from_millis(50);
        assert!(timeout(wait, lines.receive()).await.is_err(), "as many as may be wait already");
        lines.send(answer(7)).await.unwrap();
        assert!(lines.receive().await.is_some(), "one was answered");
        assert!(timeout(wait, lines.receive()).await.is_err());
        lines.send(answer(7)).await.unwrap();
        assert!(timeout(wait, lines.receive()).await.is_err(), "the same one counts once");
    }

    #[tokio::test]
    async fn what_is_too_long_is_refused_and_the_next_line_is_read() {
        let (mut lines, mut client) = lines();
        let long = vec![b'x'; MAX_MESSAGE + 1];
        let write = async {
            client.write_all(&long).await.unwrap();
            client.write_all(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        };
        let (received, ()) = tokio::join!(lines.receive(), write);
        assert!(matches!(received, Some(Incoming::Request(_))));
        let mut error = String::new();
        BufReader::new(&mut client).read_line(&mut error).await.unwrap();
        assert!(error.contains("-32600") && error.contains("longer"), "{error}");
    }

    #[tokio::test]
    async fn a_cancelled_request_waits_for_nothing() {
        let (mut lines, mut client) = lines();
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        client.write_all(ping).await.unwrap();
        lines.receive().await.unwrap();
        assert_eq!(lines.pending().len(), 1);
        let cancel = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
        client.write_all(cancel).await.unwrap();
        lines.receive().await.unwrap();
        assert!(lines.pending().is_empty());
    }
}
