//! Counts of the deliveries to hooks that this process has attempted, by result.

use std::sync::atomic::{AtomicU64, Ordering};

use a2a_registry_store::hook_deliveries::DeliveryOutcome;

#[derive(Debug, Default)]
pub struct DeliveryCounts {
    delivered: AtomicU64,
    /// Sent again later.
    failed: AtomicU64,
    dead: AtomicU64,
}

impl DeliveryCounts {
    pub fn record(&self, outcome: &DeliveryOutcome) {
        let count = match outcome {
            DeliveryOutcome::Delivered { .. } => &self.delivered,
            DeliveryOutcome::Failed {
                due_at: Some(_), ..
            } => &self.failed,
            DeliveryOutcome::Failed { .. } => &self.dead,
            DeliveryOutcome::Moot => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn by_result(&self) -> [(&'static str, u64); 3] {
        [
            ("delivered", &self.delivered),
            ("failed", &self.failed),
            ("dead", &self.dead),
        ]
        .map(|(result, count)| (result, count.load(Ordering::Relaxed)))
    }
}
