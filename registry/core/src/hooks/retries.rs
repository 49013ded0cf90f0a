//! When a failed message is sent again.

use a2a_registry_domain::identifiers::{Entropy, random_fraction};
use a2a_registry_domain::timestamp::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use a2a_registry_store::entity::hook_delivery;
use a2a_registry_store::hook_deliveries::DeliveryOutcome;

use crate::hooks::sending::SentMessage;

/// How long a delivery is tried.
const MAX_RETRY_TIME: i64 = 3 * DAY;
/// The pauses after the first failures; the last one is repeated.
const RETRY_PAUSES: [i64; 7] = [
    5 * SECOND,
    MINUTE,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
];
/// The share of a pause by which it varies in either direction, so that many receivers are not asked at once.
const JITTER: f64 = 0.2;

/// The pause after this many failures, varied at random.
pub(super) fn retry_pause(failures: i32, entropy: &dyn Entropy) -> i64 {
    let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(0);
    let pause = RETRY_PAUSES[index.min(RETRY_PAUSES.len() - 1)];
    let factor = 1.0 + JITTER * (2.0 * random_fraction(entropy) - 1.0);
    (pause as f64 * factor) as i64
}

/// The outcome of a failed message: it is sent again until it has been tried for [`MAX_RETRY_TIME`].
pub(super) fn failed_outcome(
    row: &hook_delivery::Model,
    sent: &SentMessage,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> DeliveryOutcome {
    let pause = retry_pause(row.attempts.saturating_add(1), entropy).max(sent.retry_after);
    let due_at = now.plus_micros(pause).0;
    let first = row.first_attempt_at.unwrap_or(now.0);
    let last = first.saturating_add(MAX_RETRY_TIME);
    DeliveryOutcome::Failed {
        status: sent.status.map(i32::from),
        error: sent.error.clone().unwrap_or_default(),
        due_at: (due_at <= last).then_some(due_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Randomness that is the same byte everywhere.
    #[derive(Debug)]
    struct Constant(u8);

    impl Entropy for Constant {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(self.0);
        }
    }

    #[test]
    fn a_message_is_tried_for_three_days_ever_less_often() {
        for random in [Constant(0), Constant(127), Constant(255)] {
            let (mut at, mut pauses) = (0, Vec::new());
            for failures in 1.. {
                let pause = retry_pause(failures, &random);
                if at + pause > MAX_RETRY_TIME {
                    break;
                }
                at += pause;
                pauses.push(pause);
            }
            assert!(at > 2 * DAY, "{at}");
            assert!((10..=17).contains(&pauses.len()), "{pauses:?}");
            assert!(pauses.is_sorted(), "{pauses:?}");
        }
        let fixed = retry_pause(1, &Constant(127));
        assert!((4 * SECOND..6 * SECOND).contains(&fixed), "{fixed}");
    }
}
