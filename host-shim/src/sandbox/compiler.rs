//! Compiling components that nobody vouches for, in a process of its own.
//!
//! A component can be made so that compiling it takes hours. A process of its own can be ended.

use crate::{Error, Kept, Limit, Limits};
use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
    process::Stdio,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

/// A program that reads a component on standard input and writes compiled code on standard output, as
/// [`compile_standard_input`] does.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Compiler {
    /// Compiles `component`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] with [`Limit::Compile`]; [`Error::Invalid`] where the component is at fault; [`Error::Compile`].
    pub(super) async fn compile(&self, component: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
        let failed = |what: &str, error: io::Error| Error::Compile(format!("the compiler process {what}: {error}"));
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed("cannot be started", e))?;
        let (mut input, mut output, mut errors) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(input), Some(output), Some(errors)) => (input, output, errors),
            _ => return Err(Error::Compile("the compiler process has no pipes".into())),
        };
        let (mut code, mut words) = (Vec::new(), Vec::new());
        let work = async {
            // A process that ends early closes its input; what it says then counts.
            let feed = async {
                let _ = input.write_all(component).await;
                drop(input);
                Ok(())
            };
            tokio::try_join!(feed, output.read_to_end(&mut code), errors.read_to_end(&mut words))?;
            child.wait().await
        };
        let status = match timeout(limits.compile, work).await {
            Ok(status) => status.map_err(|e| failed("broke off", e))?,
            Err(_) => {
                let limit = Limit::Compile(limits.compile);
                return Err(Error::Limit { plugin: "(not loaded yet)".into(), limit, kept: Kept::default() });
            }
        };
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        match status.code() {
            Some(0) => Ok(code),
            Some(AT_FAULT) => Err(Error::Invalid(words)),
            _ => Err(Error::Compile(format!("the compiler process ended with {status}: {words}"))),
        }
    }
}

/// The exit status of a compiler process that found the component at fault.
const AT_FAULT: i32 = 65;

/// What a [`Compiler`] program does: reads a component on standard input and writes its compiled code on standard output.
/// Returns the exit status for the process. Call it first thing in `main`, for an argument of your choice.
pub fn compile_standard_input() -> i32 {
    let mut component = Vec::new();
    let compiled = io::stdin()
        .read_to_end(&mut component)
        .map_err(|e| (74, e.to_string()))
        .and_then(|_| super::engine(None).map_err(|e| (70, e.to_string())))
        .and_then(|engine| engine.precompile_component(&component).map_err(|e| (AT_FAULT, format!("{e:#}"))))
        .and_then(|code| io::stdout().lock().write_all(&code).map_err(|e| (74, e.to_string())));
    match compiled {
        Ok(()) => 0,
        Err((status, words)) => {
            // Where even this cannot be written, the status has to do.
            let _ = writeln!(io::stderr(), "{}", words.lines().collect::<Vec<_>>().join(" "));
            status
        }
    }
}
