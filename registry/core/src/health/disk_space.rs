//! Free space on the disk of a folder.

use std::io;
use std::path::Path;

/// The bytes that this user may still write to the file system of a path; `None` where the system does not tell.
#[cfg(unix)]
pub fn free_disk_bytes(path: &Path) -> io::Result<Option<u64>> {
    let system = rustix::fs::statvfs(path)?;
    Ok(Some(system.f_bavail.saturating_mul(system.f_frsize)))
}

#[cfg(not(unix))]
pub fn free_disk_bytes(_: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
