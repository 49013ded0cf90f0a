//! What becomes of an outcome: versions, decisions, lifecycle, attempts, next visits and events, for a
//! whole group of visits in one transaction.
//!
//! Everything a group needs is loaded in a handful of queries, worked out in memory, and written in a
//! handful of multi-row statements: one transaction a card would be fifteen times slower.

mod card;
mod group;
mod source;

use std::collections::BTreeSet;

use a2a_crawler::{Outcome, SourceOutcome, Verdict};
use serde_json::json;

use self::group::Group;
use self::source::Success;
use super::App;
use super::error::AppError;
use super::ledger::{CRAWLER, Ledger, SYSTEM, Touched};
use crate::domain::event::EventKind;
use crate::domain::ids::unit_random;
use crate::domain::lifecycle::LivenessState;
use crate::domain::timestamp::{SECOND, Timestamp};
use crate::store::Write;

/// The pause between two visits of a host, outside `allow_networks`.
pub const SPACING: i64 = 60 * SECOND;

impl App {
    /// Takes in a group of outcomes in one transaction. An outcome whose lease has ended is dropped:
    /// another process has made that visit.
    ///
    /// # Errors
    /// Where the database fails; nothing of the group is kept then.
    pub async fn ingest(&self, group: &[Outcome]) -> Result<(), AppError> {
        let now = self.now();
        let write = self.store.write().await?;
        let mut state = Group::load(&write, group).await?;
        let mut ledger = Ledger::new(now, self.entropy.as_ref());
        for outcome in group {
            if state.holds_lease(outcome) {
                self.ingest_visit(&write, &mut state, &mut ledger, outcome)
                    .await?;
            }
        }
        state.write_crawl(&write).await?;
        let trimmed = std::mem::take(&mut state.changed);
        let touched = ledger.write(&write).await?;
        for (agent, keep) in trimmed {
            write.versions_trim(agent, &keep).await?;
        }
        write.commit().await?;
        self.after_write(&touched);
        Ok(())
    }

    async fn ingest_visit(
        &self,
        write: &Write,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        outcome: &Outcome,
    ) -> Result<(), AppError> {
        let now = ledger.now();
        let mut fed = BTreeSet::new();
        for result in &outcome.sources {
            if group.sources.contains_key(&result.source_key) {
                fed.extend(group.agent_of_source(result.source_key));
                self.ingest_source(write, group, ledger, result).await?;
                fed.extend(group.agent_of_source(result.source_key));
            }
        }
        // After all of them: one source that fails says little while the next one answers.
        for agent in fed {
            self.follow_liveness(group, ledger, agent, now);
        }
        let exempt = self.spacing_exempt(group, outcome);
        group.finish_visit(outcome.domain_key, now, if exempt { 0 } else { SPACING });
        Ok(())
    }

    async fn ingest_source(
        &self,
        write: &Write,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        result: &SourceOutcome,
    ) -> Result<(), AppError> {
        let now = ledger.now();
        group.record_attempts(result);
        let random = unit_random(self.entropy.as_ref());
        match &result.verdict {
            Verdict::Fetched(fetched) => {
                let changed = self
                    .ingest_card(write, group, ledger, result.source_key, fetched)
                    .await?;
                let success = if changed {
                    Success::Changed
                } else {
                    Success::Same
                };
                group.succeeded(result.source_key, &fetched.freshness, success, now, random);
            }
            Verdict::NotModified(freshness) => {
                group.succeeded(
                    result.source_key,
                    freshness,
                    Success::NotModified,
                    now,
                    random,
                );
            }
            Verdict::Failed {
                outcome,
                retry_after,
            } => {
                group.failed(result.source_key, *outcome, *retry_after, now, random);
            }
        }
        Ok(())
    }

    /// Lets an agent follow the state of its sources, tells where that changed, and retires it where it
    /// has been gone for too long.
    fn follow_liveness(
        &self,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        agent: uuid::Uuid,
        now: Timestamp,
    ) {
        let Some(seen) = group.liveness_of(agent) else {
            return;
        };
        let Some(state) = group.agents.get_mut(&agent) else {
            return;
        };
        let row = &mut state.agent;
        let known = (row.liveness.clone(), row.liveness_reason.clone());
        row.last_seen_at = row.last_seen_at.max(seen.last_seen_at);
        row.liveness = seen.state.as_str().into();
        row.liveness_reason.clone_from(&seen.reason);
        row.gone_since = match seen.state {
            LivenessState::Gone => row.gone_since.or(Some(now.0)),
            LivenessState::Fresh | LivenessState::Stale => None,
        };
        ledger.put_agent(row);
        if known != (row.liveness.clone(), row.liveness_reason.clone()) {
            let data = json!({"state": row.liveness, "reason": row.liveness_reason});
            ledger.agent_event(EventKind::AgentLiveness, agent, CRAWLER, data);
        }
        if row
            .gone_since
            .is_some_and(|since| source::retires(since, now))
        {
            ledger.retire(state, SYSTEM, "the card could not be reached for 30 days");
        }
    }

    fn spacing_exempt(&self, group: &Group, outcome: &Outcome) -> bool {
        let inside = |address| {
            self.config
                .crawler
                .allow_networks
                .iter()
                .any(|network| network.contains(&address))
        };
        let addressed = outcome
            .sources
            .iter()
            .flat_map(|result| &result.attempts)
            .filter_map(|attempt| attempt.address);
        let literal = group.domain_literal(outcome.domain_key);
        addressed.chain(literal).any(inside)
    }

    /// Makes everybody in this process forget what a write has made wrong, and wakes the followers.
    pub(crate) fn after_write(&self, touched: &Touched) {
        self.changes.note(&touched.agents);
        if let Some(seq) = touched.seq {
            self.index.note_changed(&touched.agents, seq);
            self.wake.events.send_replace(seq);
        }
    }
}
