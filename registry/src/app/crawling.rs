//! Visits for the crawler.

use std::time::Duration;

use super::App;
use crate::domain::timestamp::Timestamp;
use crate::store::entity::{domain, source};
use crate::store::{StoreError, crawl, domains};

impl App {
    /// Leases due visits for `lease_us` microseconds, each with its due sources. A domain with nothing
    /// left to ask is visited no more.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_lease(
        &self,
        limit: usize,
        lease_us: i64,
    ) -> Result<Vec<(domain::Model, Vec<source::Model>)>, StoreError> {
        let now = self.now();
        let mut random = [0; 8];
        self.entropy.fill(&mut random);
        let lease = i64::from_le_bytes(random);
        let until = now.plus(lease_us).0;
        let leased = self
            .store
            .visits_lease(now.0, until, lease, limit as u64)
            .await?;
        let ids: Vec<i64> = leased.iter().map(|row| row.id).collect();
        let mut sources = domains::sources_of(&self.store, &ids).await?;
        sources.sort_by_key(|source| (source.domain_id, source.next_due_at > now.0, source.id));
        let mut visits = Vec::with_capacity(leased.len());
        for domain in leased {
            let mut due: Vec<source::Model> = sources
                .iter()
                .filter(|source| source.domain_id == domain.id)
                .cloned()
                .collect();
            if due.is_empty() {
                self.store.visits_end(domain.id).await?;
                continue;
            }
            // A visit that came early, as after a change of spacing, still asks its earliest source.
            let asked = due
                .iter()
                .filter(|source| source.next_due_at <= now.0)
                .count()
                .max(1);
            due.truncate(asked);
            visits.push((domain, due));
        }
        Ok(visits)
    }

    /// Gives leased visits back, unmade; they are due again after the pause.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_give_back(
        &self,
        held: &[(i64, i64)],
        pause: Duration,
    ) -> Result<(), StoreError> {
        let pause = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
        let rest = (pause > 0).then(|| self.now().0.saturating_add(pause));
        self.store.visits_give_back(held, rest).await
    }

    /// When the next visit is due.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(crawl::visits_next_due(&self.store, self.now().0)
            .await?
            .map(Timestamp))
    }

    /// Makes the crawler look for due visits now.
    pub fn wake_crawler(&self) {
        self.wake.visits.notify_one();
    }
}
