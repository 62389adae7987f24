//! The real server, `plan-execute mcp`, in the hands of a client.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// One server on one session.
pub(crate) struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The plan.
    Plan(Value),
    /// The tool's code, and the message.
    Refused(String, String),
    /// The server itself could not do it. The message.
    Failed(String),
    /// The server is gone.
    Gone,
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    // A file size limit that is reached is an error and no signal.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_plan-execute")]).args(arguments);
    // The compiled code of all these runs is kept in one place, which belongs to the build.
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command
}

/// Makes the session with its first plan.
pub(crate) fn create(session: &str, draft: &str) {
    let made = command(&["call", "plan_create", draft, "--session", session, "--create"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

impl Worker {
    pub(crate) fn start(session: &str) -> Worker {
        let mut command = command(&["mcp", "--session", session]);
        // It warns of damaged lines when it starts. That is little, so nothing waits for it to be read.
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = pipes.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut worker = Worker { process, input, output };
        let client = json!({ "name": "test", "version": "1" });
        let version = "2025-11-25";
        let initialize = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        if worker.ask("initialize", initialize).is_none() {
            panic!("the server did not start: {:?}", worker.process.wait_with_output());
        }
        worker
    }

    /// Its number as a process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.input, "{request}").ok()?;
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        // A line that was cut is no answer.
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap())
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> Answer {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let Some(mut answer) = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })) else {
            return Answer::Gone;
        };
        let result = &mut answer["result"];
        if result["isError"] == json!(false) {
            return Answer::Plan(result["structuredContent"].take());
        }
        let message = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        match result["_meta"]["plan-execute/code"].as_str() {
            Some(code) => Answer::Refused(code.to_owned(), message),
            None => Answer::Failed(message),
        }
    }

    /// The plan as it is shown, which must work.
    pub(crate) fn plan(&mut self) -> Value {
        match self.call("plan_get", "{}") {
            Answer::Plan(plan) => plan,
            other => panic!("the plan cannot be read: {other:?}"),
        }
    }

    /// Waits until the process is gone.
    pub(crate) fn wait(mut self) {
        drop(self.input);
        self.process.wait().unwrap();
    }
}
