//! What was last seen of the database and of the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use a2a_registry_domain::timestamp::Timestamp;
use tokio::sync::Mutex;

/// When the disk was last looked at, and why it takes no writes where it takes none.
pub(crate) type Probed = (Timestamp, Result<(), String>);

/// What was last seen of the disk. Held while a look is under way, so that the others wait for its outcome.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(pub(crate) Arc<Mutex<Option<Probed>>>);

/// When the database was last heard of, in microseconds of [`Context::uptime`]: setting the clock makes nobody silent.
#[derive(Debug)]
pub(crate) struct Heard(pub(crate) AtomicU64);

impl Heard {
    pub(crate) fn new(uptime: Duration) -> Self {
        Self(AtomicU64::new(microseconds(uptime)))
    }
}

pub(crate) fn microseconds(uptime: Duration) -> u64 {
    u64::try_from(uptime.as_micros()).unwrap_or(u64::MAX)
}
