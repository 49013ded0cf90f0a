//! The tokens whose use this process has noted in the present hour, so that each is written at most once an hour.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

const HOUR: i64 = 3600 * 1_000_000;

#[derive(Debug, Default)]
pub struct TokenUses(Mutex<(i64, HashSet<Uuid>)>);

impl TokenUses {
    /// The hour to write as that of the token's last use; `None` if it is written, or about to be.
    pub fn to_note(&self, token: Uuid, last: Option<i64>, now: i64) -> Option<i64> {
        let hour = now - now.rem_euclid(HOUR);
        if last.is_some_and(|last| last >= hour) {
            return None;
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.0 != hour {
            *noted = (hour, HashSet::new());
        }
        noted.1.insert(token).then_some(hour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_noted_once_an_hour() {
        let (uses, token) = (TokenUses::default(), Uuid::from_u128(7));
        assert_eq!(uses.to_note(token, None, 5 * HOUR + 9), Some(5 * HOUR));
        assert_eq!(uses.to_note(token, None, 5 * HOUR + 10), None);
        assert_eq!(
            uses.to_note(Uuid::nil(), Some(5 * HOUR), 5 * HOUR + 10),
            None
        );
        assert_eq!(
            uses.to_note(token, Some(5 * HOUR), 6 * HOUR),
            Some(6 * HOUR)
        );
        // A clock that was set back writes nothing earlier.
        assert_eq!(uses.to_note(token, Some(6 * HOUR), 5 * HOUR), None);
    }
}
