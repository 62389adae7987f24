//! Compiling components that nobody vouches for, in a process of its own.
//!
//! A component can be made so that compiling it takes hours, or all the memory there is. A process of its own can be ended.

use crate::{Error, Kept, Limit, Limits};
use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
    process::{ExitStatus, Stdio},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    process::{Child, Command},
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
    /// [`Error::Limit`] with [`Limit::Compile`], [`Limit::CompileMemory`] or [`Limit::Compiled`]; [`Error::Invalid`] where the
    /// component is at fault; [`Error::Compile`]. The process has ended after each of them.
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
        let conversation = async {
            bound(&child, limits.compile_memory)?;
            converse(&mut child, component, limits.compiled).await
        };
        let conversation = timeout(limits.compile, conversation).await;
        // What still runs is of no use to anybody, and is gone before this returns. Perhaps it has ended already.
        let _ = child.kill().await;
        let limit = |limit| Err(Error::Limit { plugin: "(not loaded yet)".into(), limit, kept: Kept::default() });
        let (status, code, words) = match conversation {
            Ok(Ok(said)) => said,
            Ok(Err(Stop::TooMuch)) => return limit(Limit::Compiled(limits.compiled)),
            Ok(Err(Stop::Broken(error))) => return Err(failed("broke off", error)),
            Err(_) => return limit(Limit::Compile(limits.compile)),
        };
        match status.code() {
            Some(0) => Ok(code),
            Some(AT_FAULT) => Err(Error::Invalid(words)),
            // This is what Rust says before it ends a process that gets no memory.
            _ if words.contains("memory allocation of") => limit(Limit::CompileMemory(limits.compile_memory)),
            _ => Err(Error::Compile(format!("the compiler process ended with {status}: {words}"))),
        }
    }
}

/// Why a conversation with a compiler process ended before the process did.
enum Stop {
    /// It has more to say than it may.
    TooMuch,
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Broken(error)
    }
}

/// The most that is kept of what a compiler process complains of, in bytes.
const WORDS: u64 = 4096;

/// Hands the component to the process. Returns its status, its code of at most `most` bytes, and its complaints.
async fn converse(child: &mut Child, component: &[u8], most: usize) -> Result<(ExitStatus, Vec<u8>, String), Stop> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut input), Some(output), Some(mut errors)) = pipes else {
        return Err(io::Error::other("it has no pipes").into());
    };
    let (mut code, mut words) = (Vec::new(), Vec::new());
    let feed = async {
        // A process that ends early closes its input; what it says then counts.
        let _ = input.write_all(component).await;
        drop(input);
        Ok(())
    };
    let read = async {
        output.take(most as u64 + 1).read_to_end(&mut code).await?;
        if code.len() > most { Err(Stop::TooMuch) } else { Ok(()) }
    };
    let listen = async {
        (&mut errors).take(WORDS).read_to_end(&mut words).await?;
        copy(&mut errors, &mut sink()).await?;
        Ok(())
    };
    tokio::try_join!(feed, read, listen)?;
    let status = child.wait().await?;
    Ok((status, code, String::from_utf8_lossy(&words).trim().to_owned()))
}

/// Holds a process to so many bytes of memory, before it has seen anything of the component.
#[cfg(target_os = "linux")]
fn bound(child: &Child, memory: u64) -> io::Result<()> {
    use rustix::{
        io::Errno,
        process::{Pid, Resource, Rlimit, prlimit},
    };
    let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return Ok(()) };
    let most = Some(memory);
    match prlimit(Some(pid), Resource::Data, Rlimit { current: most, maximum: most }) {
        // It has ended already.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn bound(_: &Child, _: u64) -> io::Result<()> {
    Ok(())
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
