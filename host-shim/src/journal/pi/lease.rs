//! A write lease (Linux): while it is held, any other program that opens the file waits.
//!
//! Pi takes no lock. A lease is the one thing that makes it wait for the few milliseconds of an append.

use std::fs::File;

/// A write lease on a file, given back when it is dropped.
pub(super) struct Lease<'a> {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing to give back"))]
    file: &'a File,
}

impl<'a> Lease<'a> {
    /// Asks for a lease. The system grants none while anyone else has the file open, on file systems without leases, and on
    /// files of other users.
    #[cfg(target_os = "linux")]
    pub(super) fn take(file: &'a File) -> Option<Lease<'a>> {
        // By default the system announces a waiting program with SIGIO, which ends a process that has no handler for it.
        // SIGURG is ignored unless someone asks for it.
        (control(file, F_SETSIG, libc::SIGURG) && control(file, libc::F_SETLEASE, libc::F_WRLCK))
            .then_some(Lease { file })
    }

    /// Other systems have no leases.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn take(_: &'a File) -> Option<Lease<'a>> {
        None
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Closing the file would give it back too, a moment later.
        control(self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// Chooses the signal. libc does not name it.
#[cfg(target_os = "linux")]
const F_SETSIG: i32 = linux_raw_sys::general::F_SETSIG as i32;

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "neither rustix nor nix offers leases")]
fn control(file: &File, command: i32, argument: i32) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: both commands take an integer and touch no memory of ours; the descriptor is open while `file` lives.
    unsafe { libc::fcntl(file.as_raw_fd(), command, argument) == 0 }
}
