//! The last known states of the database and the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::StoreErrorKind;
use tokio::sync::Mutex;

/// The time of the last disk check, and its error.
pub type DiskCheckResult = (Timestamp, Result<(), String>);

/// The last disk check. Locked while a check is in progress, so that other callers wait for its result.
#[derive(Debug, Clone, Default)]
pub struct LastDiskCheck(pub Arc<Mutex<Option<DiskCheckResult>>>);

/// The monotonic time of the last check whether the database accepts writes, and why it does not.
pub type WriteCheckResult = (Duration, Result<(), StoreErrorKind>);

/// The last check of writes. Locked while a check is in progress, so that other callers wait for its result.
#[derive(Debug, Default)]
pub struct LastWriteCheck(pub Mutex<Option<WriteCheckResult>>);

/// The time of the last response of the database, in microseconds of
/// [`AppContext::monotonic_time`](crate::context::AppContext::monotonic_time), which a change of the clock
/// does not affect.
#[derive(Debug)]
pub struct LastDatabaseContact(pub AtomicU64);

impl LastDatabaseContact {
    pub fn new(uptime: Duration) -> Self {
        Self(AtomicU64::new(uptime_microseconds(uptime)))
    }
}

pub fn uptime_microseconds(uptime: Duration) -> u64 {
    u64::try_from(uptime.as_micros()).unwrap_or(u64::MAX)
}
