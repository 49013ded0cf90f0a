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
}

impl AgeProgress {
    pub fn finished(at: Timestamp) -> Self {
        Self {
            done: at,
            as_of: at,
        }
    }

    pub async fn load(db: &impl Executor) -> Result<Self, StoreError> {
        Ok(Self::parse(settings::setting_value(db, SETTING).await?))
    }

    /// Loads the progress, which no other write can change until this one ends.
    pub async fn lock(write: &WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self::parse(settings::lock_setting(write, SETTING).await?))
    }

    pub async fn store(self, write: &WriteTransaction) -> Result<(), StoreError> {
        let value = format!("{} {}", self.done.0, self.as_of.0);
        write.set_setting(SETTING, &value).await
    }

    fn parse(stored: Option<String>) -> Self {
        let parts = stored.as_deref().and_then(|value| value.split_once(' '));
        let parse = |(done, as_of): (&str, &str)| {
            Some(Self {
                done: Timestamp(done.parse().ok()?),
                as_of: Timestamp(as_of.parse().ok()?),
            })
        };
        parts.and_then(parse).unwrap_or_default()
    }
}
