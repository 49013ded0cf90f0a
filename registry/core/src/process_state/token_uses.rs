//! The tokens whose use this process has recorded in the current hour, so that each use is written at most once an
//! hour.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

const HOUR: i64 = 3600 * 1_000_000;

#[derive(Debug, Default)]
pub struct TokenUseTracker(Mutex<(i64, HashSet<Uuid>)>);

impl TokenUseTracker {
    /// Returns the hour to write as the token's last use; `None` if it is already written or being written.
    pub fn hour_to_record(&self, token: Uuid, last_used_at: Option<i64>, now: i64) -> Option<i64> {
        let hour = now - now.rem_euclid(HOUR);
        if last_used_at.is_some_and(|last| last >= hour) {
            return None;
        }
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.0 != hour {
            *recorded = (hour, HashSet::new());
        }
        recorded.1.insert(token).then_some(hour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_noted_once_an_hour() {
        let (uses, token) = (TokenUseTracker::default(), Uuid::from_u128(7));
        assert_eq!(
            uses.hour_to_record(token, None, 5 * HOUR + 9),
            Some(5 * HOUR)
        );
        assert_eq!(uses.hour_to_record(token, None, 5 * HOUR + 10), None);
        assert_eq!(
            uses.hour_to_record(Uuid::nil(), Some(5 * HOUR), 5 * HOUR + 10),
            None
        );
        assert_eq!(
            uses.hour_to_record(token, Some(5 * HOUR), 6 * HOUR),
            Some(6 * HOUR)
        );
        // After the clock was set back, no earlier hour is written.
        assert_eq!(uses.hour_to_record(token, Some(6 * HOUR), 5 * HOUR), None);
    }
}
