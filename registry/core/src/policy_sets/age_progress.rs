//! The moment as of which policies about finding and calling compare the ages of agents.
//!
//! It is stored, and it moves on only with events about the agents that reach an age which policies compare. So
//! processes that have applied the same events decide alike, whatever their clocks say. Admission counts to the time
//! of its write, because its decision is stored.

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::{Executor, StoreError, WriteTransaction, settings};

const SETTING: &str = "policy_ages";

/// How far events tell of agents that have reached an age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgeProgress {
    /// Until when there is an event for each agent.
    pub done: Timestamp,
    /// The moment as of which ages count. Later than `done` while the events are being written.
    pub as_of: Timestamp,
    /// When a process last wrote some of them.
    pub worked_at: Timestamp,
}

impl AgeProgress {
    pub fn finished(at: Timestamp) -> Self {
        Self {
            done: at,
            as_of: at,
            worked_at: at,
        }
    }

    /// Whether the same events are being written, by this process or another one.
    pub fn is_same_search(self, other: Self) -> bool {
        (self.done, self.as_of) == (other.done, other.as_of)
    }

    pub async fn load(db: &impl Executor) -> Result<Self, StoreError> {
        Ok(Self::parse(settings::setting_value(db, SETTING).await?))
    }

    /// Loads the progress, which no other write can change until this one ends.
    pub async fn lock(write: &WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self::parse(settings::lock_setting(write, SETTING).await?))
    }

    pub async fn store(self, write: &WriteTransaction) -> Result<(), StoreError> {
        let value = format!("{} {} {}", self.done.0, self.as_of.0, self.worked_at.0);
        write.set_setting(SETTING, &value).await
    }

    fn parse(stored: Option<String>) -> Self {
        let times: Option<Vec<i64>> = stored
            .as_deref()
            .and_then(|value| value.split(' ').map(|time| time.parse().ok()).collect());
        match times.as_deref() {
            Some([done, as_of, worked_at]) => Self {
                done: Timestamp(*done),
                as_of: Timestamp(*as_of),
                worked_at: Timestamp(*worked_at),
            },
            _ => Self::default(),
        }
    }
}
