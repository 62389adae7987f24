//! The process's limit for the size of files.

use std::io;

/// May this process make a file `len` bytes long? A write beyond the limit would end the process by a signal.
pub(crate) fn check(len: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| len > limit) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    #[cfg(not(unix))]
    let _ = len;
    Ok(())
}
