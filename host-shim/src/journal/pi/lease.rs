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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };

    #[test]
    fn whoever_opens_the_file_waits() {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let file = File::options().append(true).open(temporary.path()).unwrap();
        assert!(Lease::take(&file).is_none(), "the file is open elsewhere");
        let path = temporary.into_temp_path();
        let Some(lease) = Lease::take(&file) else {
            // A file system without leases: then nobody waits, and there is nothing to show.
            return;
        };
        let (opened, when_opened) = mpsc::channel();
        let opener = thread::spawn({
            let path = path.to_path_buf();
            move || {
                File::open(path).unwrap();
                opened.send(Instant::now()).unwrap();
            }
        });
        assert!(when_opened.recv_timeout(Duration::from_millis(200)).is_err(), "it did not wait");
        let given_back = Instant::now();
        drop(lease);
        assert!(when_opened.recv().unwrap() >= given_back);
        opener.join().unwrap();
    }
}
