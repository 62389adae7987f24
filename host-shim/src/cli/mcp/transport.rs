//! JSON-RPC messages, one on each line.
//!
//! The library's own transport passes over what it cannot read, so that whoever sent it waits for ever, and takes on any
//! number of requests. This one answers whatever was sent, and reads on only while few requests wait for their answers.

use super::requests::{Kind, Requests, Slot};
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientNotification, ClientRequest, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerResult},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::VecDeque, io, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Mutex,
};

/// The longest message, in bytes. The arguments of a tool have a smaller limit of their own.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

type Incoming = RxJsonRpcMessage<RoleServer>;
type Outgoing = TxJsonRpcMessage<RoleServer>;

/// The transport.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    line: Vec<u8>,
    /// The rest of a line that is too long is passed over.
    too_long: bool,
    /// Messages of a batch that were not handed out yet.
    batch: VecDeque<Value>,
    /// Did a request come yet? Before the first one there is nothing to notify anybody of.
    begun: bool,
    ended: bool,
    requests: Requests,
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
    pub(super) fn new(input: R, output: W, requests: Requests) -> Lines<R, W> {
        Lines {
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            too_long: false,
            batch: VecDeque::new(),
            begun: false,
            ended: false,
            requests,
        }
    }

    /// Reads one line into `self.line`; `None` at the end. Whoever stops waiting loses nothing.
    async fn read(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // What stands there without a line feed is a message, or was cut.
                let rest = std::mem::take(&mut self.line);
                return Ok(serde_json::from_slice(rest.trim_ascii()).ok().map(message));
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

    /// Answers what is no message that can be served.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>, slot: Slot) {
        let output = Arc::clone(&self.output);
        tokio::spawn(async move {
            // Where the client does not listen any more, it is gone.
            let _ = write(output, line(&Outgoing::error(error, id))).await;
            drop(slot);
        });
    }
}

fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

async fn write<W: AsyncWrite + Unpin>(output: Arc<Mutex<W>>, line: io::Result<Vec<u8>>) -> io::Result<()> {
    let line = line?;
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// An answer whose structured part was put by.
#[derive(Serialize)]
struct Structured<'a> {
    jsonrpc: &'a JsonRpcVersion2_0,
    id: &'a RequestId,
    result: StructuredResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StructuredResult<'a> {
    #[serde(flatten)]
    result: &'a ServerResult,
    structured_content: &'a RawValue,
}

impl<'a> Structured<'a> {
    fn new(answer: &'a JsonRpcResponse<ServerResult>, structured_content: &'a RawValue) -> Structured<'a> {
        let result = StructuredResult { result: &answer.result, structured_content };
        Structured { jsonrpc: &answer.jsonrpc, id: &answer.id, result }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: Outgoing) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let ended = match &message {
            Outgoing::Response(answer) => self.requests.end(&answer.id),
            Outgoing::Error(answer) => answer.id.as_ref().and_then(|id| self.requests.end(id)),
            Outgoing::Request(_) | Outgoing::Notification(_) => None,
        };
        let (slot, structured) = ended.unzip();
        let line = match (&message, structured.flatten()) {
            (Outgoing::Response(answer), Some(structured)) => line(&Structured::new(answer, &structured)),
            _ => line(&message),
        };
        let write = write(Arc::clone(&self.output), line);
        async move {
            let written = write.await;
            drop(slot);
            written
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            if self.ended {
                // The library gives what is under way a few seconds from here on, and then nothing.
                self.requests.finish().await;
                return None;
            }
            let slot = self.requests.slot().await?;
            let line = match self.batch.pop_front() {
                Some(value) => message(value),
                None => match self.read().await {
                    Ok(Some(line)) => line,
                    // A client that cannot be read from any more is gone.
                    Ok(None) | Err(_) => {
                        self.ended = true;
                        continue;
                    }
                },
            };
            match line {
                Line::Message(message) => match &*message {
                    Incoming::Request(request) => {
                        self.begun = true;
                        let kind = match &request.request {
                            ClientRequest::SubscriptionsListenRequest(_) => Kind::Stream,
                            _ => Kind::Answer,
                        };
                        match self.requests.begin(&request.id, kind, slot) {
                            Ok(()) => return Some(*message),
                            Err(slot) => {
                                let error =
                                    "a request of this id still waits for its answer: give each an id of its own";
                                self.refuse(ErrorData::invalid_request(error, None), Some(request.id.clone()), slot);
                            }
                        }
                    }
                    Incoming::Notification(notification) => {
                        if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                            && let Some(id) = &cancelled.params.request_id
                        {
                            // It is not answered any more.
                            self.requests.end(id);
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
    use super::{super::requests::MAX_PENDING, *};
    use rmcp::model::{EmptyResult, NumberOrString};
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
        (Lines::new(input, output, Requests::new()), client)
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
        let cancel = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
        client.write_all(cancel).await.unwrap();
        lines.receive().await.unwrap();
        assert!(lines.requests.end(&NumberOrString::Number(1)).is_none());
    }

    #[tokio::test]
    async fn the_last_message_needs_no_line_feed() {
        for (text, messages) in [
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 1),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} \r", 1),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi", 0),
            ("", 0),
        ] {
            let (mut lines, mut client) = lines();
            client.write_all(text.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            for _ in 0..messages {
                assert!(matches!(lines.receive().await, Some(Incoming::Request(_))), "{text}");
                lines.send(answer(1)).await.unwrap();
            }
            assert!(lines.receive().await.is_none(), "{text}");
        }
    }

    #[tokio::test]
    async fn the_end_of_the_input_waits_for_answers() {
        let (mut lines, mut client) = lines();
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        client.shutdown().await.unwrap();
        lines.receive().await.unwrap();
        assert!(timeout(Duration::from_millis(50), lines.receive()).await.is_err(), "one waits for its answer");
        lines.send(answer(1)).await.unwrap();
        assert!(lines.receive().await.is_none());
    }

    #[tokio::test]
    async fn an_id_that_is_in_use_is_refused() {
        let (mut lines, mut client) = lines();
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        client.write_all(ping.repeat(2).as_bytes()).await.unwrap();
        lines.receive().await.unwrap();
        assert!(timeout(Duration::from_millis(50), lines.receive()).await.is_err());
        let mut error = String::new();
        BufReader::new(&mut client).read_line(&mut error).await.unwrap();
        assert!(error.contains("-32600") && error.contains("\"id\":1"), "{error}");
    }

    #[tokio::test]
    async fn what_was_put_by_is_part_of_the_answer() {
        let (mut lines, mut client) = lines();
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        lines.receive().await.unwrap();
        let id = NumberOrString::Number(1);
        lines.requests.put_by(&id, RawValue::from_string("{\"a\":1.0}".into()).unwrap());
        let result = rmcp::model::CallToolResult::success(vec![rmcp::model::ContentBlock::text("t")]);
        lines.send(Outgoing::response(ServerResult::CallToolResult(result.clone()), id.clone())).await.unwrap();
        let mut line = String::new();
        BufReader::new(&mut client).read_line(&mut line).await.unwrap();
        let with_a_value = {
            let mut result = result;
            result.structured_content = Some(serde_json::json!({"a": 1.0}));
            serde_json::to_value(Outgoing::response(ServerResult::CallToolResult(result), id)).unwrap()
        };
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), with_a_value);
    }
}
