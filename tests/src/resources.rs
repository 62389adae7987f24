//! What this process takes of the machine.

use std::{fs, io};

/// Memory, open files and threads of this process. Linux alone tells.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Resident memory in KiB.
    pub memory: usize,
    /// Open file descriptors.
    pub files: usize,
    /// Threads.
    pub threads: usize,
}

impl Resources {
    /// What it takes now; `None` on other systems.
    pub fn now() -> Option<Resources> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let field = |name: &str| -> Option<usize> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let count = |folder| -> io::Result<usize> { Ok(fs::read_dir(folder)?.count()) };
        Some(Resources { memory: field("VmRSS")?, files: count("/proc/self/fd").ok()?, threads: field("Threads")? })
    }
}
