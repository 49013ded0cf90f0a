//! The scan that assigns all agents the addresses that are checked for them: its position, and requests for another.

use a2a_registry_domain::timestamp::DAY;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::settings::lock_setting;
use super::{StoreError, WriteTransaction};

/// The setting with the position of the scan.
pub const ENDPOINT_SCAN_SETTING: &str = "endpoint_checks_scan";

/// How often all agents are gone through, for what no event of theirs reports.
const SCAN_INTERVAL: i64 = DAY;

/// Position of the scan, as [`ENDPOINT_SCAN_SETTING`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScanPosition {
    /// After this agent, or at the beginning.
    After(Option<Uuid>),
    /// After this agent, and another scan follows, because what is permitted has changed since the beginning.
    Repeated(Uuid),
    /// The last scan ended at this time.
    EndedAt(i64),
}

impl ScanPosition {
    /// An unreadable position begins a new scan.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or(Self::After(None))
    }

    /// The position, which nobody else can change until this write ends.
    pub async fn lock(write: &WriteTransaction) -> Result<Self, StoreError> {
        let stored = lock_setting(write, ENDPOINT_SCAN_SETTING).await?;
        Ok(Self::parse(&stored.unwrap_or_default()))
    }

    pub async fn store(self, write: &WriteTransaction) -> Result<(), StoreError> {
        let text = json!(self).to_string();
        write.set_setting(ENDPOINT_SCAN_SETTING, &text).await
    }

    pub const fn is_due(self, now: i64) -> bool {
        match self {
            Self::After(_) | Self::Repeated(_) => true,
            Self::EndedAt(at) => now.saturating_sub(at) >= SCAN_INTERVAL || at > now,
        }
    }

    pub const fn last_agent(self) -> Option<Uuid> {
        match self {
            Self::After(agent) => agent,
            Self::Repeated(agent) => Some(agent),
            Self::EndedAt(_) => None,
        }
    }

    /// The position after a page that ends with this agent, or with the last of all agents at `now`.
    pub const fn after_page(self, page_end: Option<Uuid>, now: i64) -> Self {
        match (page_end, self) {
            (Some(agent), Self::Repeated(_)) => Self::Repeated(agent),
            (Some(agent), _) => Self::After(Some(agent)),
            (None, Self::Repeated(_)) => Self::After(None),
            (None, _) => Self::EndedAt(now),
        }
    }
}

impl WriteTransaction {
    /// Lets all agents be assigned their addresses again, because what is permitted has changed. A scan that is under
    /// way goes on, and another one follows it: requests that keep coming would otherwise keep it from its end.
    pub async fn request_endpoint_scan(&self) -> Result<(), StoreError> {
        let next = match ScanPosition::lock(self).await? {
            ScanPosition::EndedAt(_) => ScanPosition::After(None),
            ScanPosition::After(Some(agent)) => ScanPosition::Repeated(agent),
            ScanPosition::After(None) | ScanPosition::Repeated(_) => return Ok(()),
        };
        next.store(self).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_due_once_a_day() {
        let id = Uuid::from_u128(7);
        for position in [
            ScanPosition::After(None),
            ScanPosition::After(Some(id)),
            ScanPosition::Repeated(id),
            ScanPosition::EndedAt(5),
        ] {
            let text = json!(position).to_string();
            assert_eq!(ScanPosition::parse(&text), position);
        }
        assert_eq!(ScanPosition::parse("?"), ScanPosition::After(None));
        let ended = ScanPosition::EndedAt(10 * DAY);
        assert!(!ended.is_due(10 * DAY));
        assert!(!ended.is_due(11 * DAY - 1));
        assert!(ended.is_due(11 * DAY));
        assert!(ended.is_due(10 * DAY - 1), "the clock was set back");
        assert!(ScanPosition::After(None).is_due(0));
    }

    #[test]
    fn a_scan_that_is_requested_again_ends_before_the_next_one_begins() {
        let (first, last) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let repeated = ScanPosition::Repeated(first);
        assert_eq!(repeated.last_agent(), Some(first));
        let later = repeated.after_page(Some(last), 7);
        assert_eq!(later, ScanPosition::Repeated(last));
        let again = later.after_page(None, 7);
        assert_eq!(again, ScanPosition::After(None));
        assert_eq!(again.after_page(None, 7), ScanPosition::EndedAt(7));
    }
}
