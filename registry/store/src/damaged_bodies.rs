//! Card bodies that were found not to match their digest since this process started.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum number of digests recorded. Reads of further damaged bodies fail too, and are recorded once others are
/// repaired.
pub const MAX_DAMAGED_BODIES: usize = 1_000;

#[derive(Debug, Default)]
pub struct DamagedBodies {
    /// Whether each damaged body was reported, by its digest.
    reported_by_digest: Mutex<BTreeMap<String, bool>>,
    recorded: Notify,
}

impl DamagedBodies {
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Waits until another digest is recorded. A digest recorded before the call counts too.
    pub async fn wait_for_next(&self) {
        self.recorded.notified().await;
    }

    pub fn unreported_digests(&self, limit: usize) -> Vec<String> {
        let found = self.lock();
        let open = found.iter().filter(|(_, reported)| !**reported);
        open.map(|(digest, _)| digest.clone()).take(limit).collect()
    }

    pub fn mark_reported(&self, digest: &str) {
        if let Some(reported) = self.lock().get_mut(digest) {
            *reported = true;
        }
    }

    pub(super) fn record(&self, digest: &str) {
        let mut found = self.lock();
        if found.len() < MAX_DAMAGED_BODIES && !found.contains_key(digest) {
            found.insert(digest.to_owned(), false);
            self.recorded.notify_one();
        }
    }

    /// Removes a body that matches its digest again.
    pub(super) fn remove(&self, digest: &str) {
        self.lock().remove(digest);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.reported_by_digest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_remembered_digests_is_bounded() {
        let bodies = DamagedBodies::default();
        for number in 0..MAX_DAMAGED_BODIES + 10 {
            bodies.record(&format!("sha256:{number:04}"));
        }
        assert_eq!(bodies.count(), MAX_DAMAGED_BODIES);
        bodies.mark_reported("sha256:0000");
        assert_eq!(bodies.unreported_digests(1), ["sha256:0001"]);
        // A repaired one makes room.
        bodies.remove("sha256:0000");
        bodies.record("sha256:9999");
        assert_eq!(bodies.count(), MAX_DAMAGED_BODIES);
        // A second read of a damaged body is not reported again.
        bodies.mark_reported("sha256:9999");
        bodies.record("sha256:9999");
        let open = bodies.unreported_digests(MAX_DAMAGED_BODIES);
        assert!(!open.contains(&"sha256:9999".to_owned()));
    }
}
