//! The rows that a batch of outcomes reads and changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use a2a_crawler::foreign_text::{MAX_SUMMARY, sanitize_text};
use a2a_crawler::visit_calendar::VisitCalendar;
use a2a_crawler::{Freshness, SourceOutcome, SourceResult, VisitOutcome};
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{
    account, decision, domain, enrolled_key, fetch_attempt, source, source_day,
};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::visit_results::MAX_ATTEMPTS_PER_SOURCE;
use a2a_registry_store::{
    WriteTransaction, accounts, agents, decisions, domains, ownership, registrants, reviews,
};
use time::Duration;
use uuid::Uuid;

use crate::admission::coverage::{CoverageEvidence, url_origin};
use crate::commit::agent_state::AgentChangeState;
use crate::crawl::ingest::attempts::attempts_with_details;
use crate::crawl::ingest::domain_index::BatchDomainIndex;
use crate::error::AppError;
use crate::signatures::DomainKeyBinding;
use crate::sources::is_card_source;

#[derive(Debug)]
pub struct HostCrawlLimits {
    /// The pause before the next visit, in microseconds: the registry's spacing, or the host's `Retry-After`.
    pub spacing: i64,
    /// The address block whose visits are limited, `Some(None)` for none; `None` if the visit did not determine it.
    pub network: Option<Option<String>>,
}

/// The rows that the outcomes of one batch read and change.
#[derive(Debug, Default)]
pub struct IngestBatch {
    pub domains: HashMap<i64, domain::Model>,
    pub sources: BTreeMap<i64, source::Model>,
    pub agents: BTreeMap<Uuid, AgentChangeState>,
    /// The sources and agents of each domain.
    pub(super) domain_index: BatchDomainIndex,
    /// Approved and newest versions of those agents.
    pub versions: HashMap<Uuid, VersionSummary>,
    /// The decisions of persons on those agents, oldest first.
    pub decisions: HashMap<Uuid, Vec<decision::Model>>,
    pub accounts: HashMap<Uuid, account::Model>,
    enrolled: HashMap<i64, Vec<enrolled_key::Model>>,
    /// The coverage of those sources.
    pub coverage_evidence: CoverageEvidence,
    /// The sources of those versions, with the origins that served them.
    pub version_sources: HashMap<(Uuid, i64), String>,
    /// The domains whose cards may have a different coverage after this batch.
    pub coverage_changed: BTreeSet<i64>,
    /// Whether the circuit breaker is open, so that failures change no state.
    pub breaker_open: bool,
    attempts: Vec<fetch_attempt::Model>,
    /// Fetches of each source by day, and how many of them succeeded.
    day_totals: BTreeMap<(i64, i32), (i32, i32)>,
    /// Sources without an earlier successful fetch on this day: their outdated daily totals are deleted.
    first_fetched_today: Vec<i64>,
    /// The sources whose rows have changed.
    changed_sources: BTreeSet<i64>,
    /// The sources for which a full fetch was requested before this batch.
    full_fetch_wanted: BTreeSet<i64>,
    /// Whether versions must be verified again after this write, because other keys were found for them.
    pub needs_reverification: bool,
    /// Agents with a new version, and the versions that must not be trimmed.
    pub changed_agents: Vec<(Uuid, Vec<Uuid>)>,
}

impl IngestBatch {
    /// Loads everything: eight queries, whatever the size of the batch; four if no card has changed.
    pub async fn load(
        write: &WriteTransaction,
        outcomes: &[VisitOutcome],
        now: Timestamp,
    ) -> Result<Self, AppError> {
        let domain_ids: Vec<i64> = outcomes.iter().map(|outcome| outcome.domain_key).collect();
        let mut batch = Self::default();
        for row in write.lock_leased_domains(&domain_ids).await? {
            batch.domains.insert(row.id, row);
        }
        let domain_ids: Vec<i64> = batch.domains.keys().copied().collect();
        // Agents are read before sources: a write that retires an agent locks its row while its sources end, so the
        // sources read after it are consistent.
        for agent in agents::live_agents_by_domain(write, &domain_ids).await? {
            let state = AgentChangeState {
                agent,
                holds: Vec::new(),
                open_review: None,
                secondary_reviews: Vec::new(),
            };
            batch.add_agent(state);
        }
        for row in domains::live_sources_by_domain(write, &domain_ids).await? {
            if row.full_wanted {
                batch.full_fetch_wanted.insert(row.id);
            }
            batch.add_source(row);
        }
        let quiet = |one: &SourceOutcome| matches!(one.result, SourceResult::NotModified(_));
        let mut visited = outcomes.iter().flat_map(|outcome| &outcome.sources);
        if !visited.all(quiet) {
            let (rows, sources) = (batch.domains.values(), batch.sources.values());
            batch.coverage_evidence = CoverageEvidence::load(write, rows, sources, now).await?;
        }
        let mut account_ids: Vec<Uuid> = batch
            .sources
            .values()
            .flat_map(|row| batch.coverage_evidence.registrants(row.id))
            .filter_map(|row| row.account_id)
            .collect();
        account_ids.extend(batch.domains.values().filter_map(|row| row.account_id));
        account_ids.extend(batch.sources.values().filter_map(|row| row.approve_as));
        account_ids.extend(
            batch
                .agents
                .values()
                .filter_map(|state| state.agent.submitter),
        );
        account_ids.sort_unstable();
        account_ids.dedup();
        for row in accounts::accounts_by_ids(write, &account_ids).await? {
            batch.accounts.insert(row.id, row);
        }
        for row in ownership::enrolled_keys_by_domain(write, &domain_ids).await? {
            batch.enrolled.entry(row.domain_id).or_default().push(row);
        }
        batch.load_rows_for_decisions(write, outcomes).await?;
        Ok(batch)
    }

    /// Loads the rows that decisions need; none if no card has changed.
    async fn load_rows_for_decisions(
        &mut self,
        write: &WriteTransaction,
        outcomes: &[VisitOutcome],
    ) -> Result<(), AppError> {
        let has_agent_without_source =
            |domain: &i64| !self.agents_without_source(*domain).is_empty();
        let changed_domains: BTreeSet<i64> = outcomes
            .iter()
            .filter(|outcome| {
                let quiet =
                    |one: &SourceOutcome| matches!(one.result, SourceResult::NotModified(_));
                !outcome.sources.iter().all(quiet)
            })
            .map(|outcome| outcome.domain_key)
            .chain(
                self.domains
                    .keys()
                    .copied()
                    .filter(has_agent_without_source),
            )
            .collect();
        let ids: Vec<Uuid> = self
            .agents
            .values()
            .filter(|state| changed_domains.contains(&state.agent.domain_id))
            .map(|state| state.agent.id)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        for row in agents::holds_of_agents(write, &ids).await? {
            let state = self.agents.get_mut(&row.agent_id);
            if let (Some(state), Some(hold)) = (state, row.hold.known_value()) {
                state.holds.push(hold);
            }
        }
        for row in reviews::open_reviews_by_agent(write, &ids).await? {
            if let Some(state) = self.agents.get_mut(&row.agent_id) {
                state.add_review(row);
            }
        }
        for row in decisions::human_decisions_by_agent(write, &ids).await? {
            self.decisions.entry(row.agent_id).or_default().push(row);
        }
        let version_ids: Vec<Uuid> = self
            .agents
            .values()
            .filter(|state| changed_domains.contains(&state.agent.domain_id))
            .flat_map(|state| [state.agent.approved_version, state.agent.newest_version])
            .flatten()
            .collect();
        for key in versions::version_summaries(write, &version_ids).await? {
            self.versions.insert(key.id, key);
        }
        for row in registrants::version_sources_by_version(write, &version_ids).await? {
            self.version_sources
                .insert((row.version_id, row.source_id), row.answered_by);
        }
        Ok(())
    }

    /// Whether this crawler still holds the lease of the outcome's visit.
    pub fn has_lease(&self, outcome: &VisitOutcome) -> bool {
        self.domains
            .get(&outcome.domain_key)
            .is_some_and(|row| row.lease == Some(outcome.lease_token))
    }

    /// The keys enrolled for a source's domain.
    pub fn enrolled_keys(&self, source: i64) -> &[enrolled_key::Model] {
        self.sources
            .get(&source)
            .and_then(|row| self.enrolled.get(&row.domain_id))
            .map_or(&[], Vec::as_slice)
    }

    pub fn key_binding(&self, source: i64) -> DomainKeyBinding {
        let row = self.sources.get(&source);
        let domain = row.and_then(|row| self.domains.get(&row.domain_id));
        domain.map_or_else(DomainKeyBinding::default, |row| {
            DomainKeyBinding::for_domain(row, self.enrolled_keys(source))
        })
    }

    pub fn agent_of_source(&self, source: i64) -> Option<Uuid> {
        self.sources.get(&source)?.agent_id
    }

    /// The identifier of a catalog entry, if a catalog of its domain contains it.
    pub fn own_catalog_entry_identifier<'r>(&self, row: &'r source::Model) -> Option<&'r str> {
        let catalog = row.catalog_id.and_then(|id| self.sources.get(&id));
        self.coverage_evidence
            .own_catalog_entry_identifier(row, catalog)
    }

    /// Records the origin of a source's full response.
    pub fn record_response_origin(&mut self, source: i64, url: &str) -> String {
        let origin = url_origin(url);
        if let Some(row) = self.source_mut(source)
            && row.answered_by.as_deref() != Some(&origin)
        {
            let domain = row.domain_id;
            let is_first = row.answered_by.replace(origin.clone()).is_none();
            if !is_first {
                self.coverage_changed.insert(domain);
            }
        }
        origin
    }

    /// The row of a source, for a change that is written with the batch.
    pub fn source_mut(&mut self, source: i64) -> Option<&mut source::Model> {
        self.changed_sources.insert(source);
        self.sources.get_mut(&source)
    }

    /// Appends to the detail of the last attempt of a source.
    pub fn append_attempt_detail(&mut self, source: i64, further: &str) {
        let mut attempts = self.attempts.iter_mut().rev();
        if let Some(attempt) = attempts.find(|attempt| attempt.source_id == source) {
            attempt.detail = sanitize_text(&format!("{}; {further}", attempt.detail), MAX_SUMMARY);
        }
    }

    /// The domain's host, if it is an IP literal.
    pub fn domain_ip_literal(&self, domain: i64) -> Option<IpAddr> {
        let name = &self.domains.get(&domain)?.name;
        let url = url::Url::parse(&format!("http://{name}/")).ok()?;
        match url.host()? {
            url::Host::Ipv4(address) => Some(address.into()),
            url::Host::Ipv6(address) => Some(address.into()),
            url::Host::Domain(_) => None,
        }
    }

    /// Stores every attempt, including failed ones, and counts the fetch for its day. Failures while the circuit
    /// breaker is open are not counted, nor are requested fetches, so that repeated requests cannot change the success
    /// rate of planned ones.
    pub fn record_attempts(&mut self, result: &SourceOutcome, now: Timestamp) {
        self.changed_sources.insert(result.source_key);
        let is_success = !matches!(result.result, SourceResult::Failed { .. });
        // A catalog that never existed does not count as missing.
        let row = self.sources.get(&result.source_key);
        let can_be_missed =
            row.is_some_and(|row| is_card_source(row) || row.last_success_at.is_some());
        let by_plan = row.is_some_and(|row| row.planned_at.is_none_or(|at| at <= now.0));
        if by_plan && (is_success || (can_be_missed && !self.breaker_open)) {
            let day = i32::try_from(now.0.div_euclid(DAY)).unwrap_or(i32::MAX);
            let totals = self.day_totals.entry((result.source_key, day)).or_default();
            totals.0 += 1;
            totals.1 += i32::from(is_success);
        }
        let is_of_today = |at: i64| Timestamp(at).days_since_epoch() == now.days_since_epoch();
        if row.is_some_and(|row| row.attempts > 0 && !row.last_success_at.is_some_and(is_of_today))
        {
            self.first_fetched_today.push(result.source_key);
        }
        if let Some(row) = self.sources.get_mut(&result.source_key) {
            store_freshness(row, &result.result);
            store_card_url(row, result);
            if is_success {
                let answered = result.attempts.last().and_then(|last| last.address);
                row.answered_from = answered.map(|address| address.to_string());
            }
        }
        for (attempt, detail) in attempts_with_details(result) {
            let Some(source) = self.sources.get_mut(&result.source_key) else {
                return;
            };
            let number = source.attempts;
            source.attempts += 1;
            self.attempts.push(fetch_attempt::Model {
                source_id: result.source_key,
                place: i32::try_from(number % MAX_ATTEMPTS_PER_SOURCE).unwrap_or(0),
                number,
                at: Timestamp::from(attempt.started_at).0,
                url: attempt.url.clone(),
                outcome: attempt.outcome.as_str().into(),
                status: attempt.status.map(i32::from),
                address: attempt.address.map(|address| address.to_string()),
                detail,
                conditional: attempt.is_conditional,
                elapsed_ms: i32::try_from(attempt.elapsed_ms).unwrap_or(i32::MAX),
            });
        }
    }

    /// Finishes the visit: the next one is due with its earliest source, and not before the spacing allows. A visit
    /// requested in the meantime makes all sources due again.
    pub fn finish_domain_visit(
        &mut self,
        domain: i64,
        now: Timestamp,
        host_limits: &HostCrawlLimits,
        planned: &mut VisitCalendar,
    ) {
        let earliest = now.plus_micros(host_limits.spacing).0;
        let wanted = self
            .domains
            .get_mut(&domain)
            .and_then(|row| row.wanted_at.take());
        if wanted.is_some() {
            let ids: Vec<i64> = self.all_domain_sources(domain).map(|row| row.id).collect();
            for id in ids {
                let full_wanted = self.full_fetch_wanted.contains(&id);
                if let Some(source) = self.source_mut(id) {
                    source.planned_at = source.planned_at.or(Some(source.next_due_at));
                    source.next_due_at = earliest;
                    source.full_wanted = full_wanted;
                }
            }
        }
        let due = self
            .live_domain_sources(domain)
            // A missing catalog is fetched along with other sources; one of a kind that only a later build knows is
            // not.
            .filter(|source| source.liveness != SourceState::Absent)
            .filter(|source| source.kind.known_value().is_some())
            .map(|source| source.next_due_at)
            .min();
        let Some(row) = self.domains.get_mut(&domain) else {
            return;
        };
        let interval_before = row.visit_interval_us.map(Duration::microseconds);
        row.not_before = earliest;
        // A domain that has opted out has no further visits after this one.
        row.visit_due_at = due
            .filter(|_| row.opted_out_by.is_none())
            .map(|due| due.max(row.not_before));
        row.visit_interval_us = match (row.visit_due_at, wanted) {
            (Some(due), None) => Some(due.saturating_sub(now.0).max(1)),
            _ => None,
        };
        if let Some(network) = &host_limits.network {
            row.network.clone_from(network);
        }
        row.lease = None;
        row.leased_until = None;
        planned.apply_interval_change(
            interval_before,
            row.visit_interval_us.map(Duration::microseconds),
        );
        if let Some(due) = row.visit_due_at {
            planned.add_visits(Timestamp(due).into(), now.into(), 1);
        }
    }

    pub async fn write_crawl_results(
        &mut self,
        write: &WriteTransaction,
        now: Timestamp,
    ) -> Result<(), AppError> {
        let visited: Vec<domain::Model> = self
            .domains
            .values()
            .filter(|row| row.lease.is_none())
            .cloned()
            .collect();
        let sources = self
            .changed_sources
            .iter()
            .filter_map(|id| self.sources.get(id))
            .cloned()
            .collect();
        write.update_sources(sources).await?;
        write.finish_visits(visited).await?;
        // A fetch may make more requests than the number of attempts that are stored.
        let attempts: BTreeMap<_, _> = std::mem::take(&mut self.attempts)
            .into_iter()
            .map(|attempt| ((attempt.source_id, attempt.place), attempt))
            .collect();
        write
            .upsert_fetch_attempts(attempts.into_values().collect())
            .await?;
        let days = std::mem::take(&mut self.day_totals);
        let days = days
            .into_iter()
            .map(|((source_id, day), (looks, good))| source_day::Model {
                source_id,
                day,
                looks,
                good,
            });
        write.add_daily_source_totals(days.collect()).await?;
        let first_of_day = std::mem::take(&mut self.first_fetched_today);
        write
            .trim_daily_source_totals(&first_of_day, now.days_since_epoch())
            .await?;
        Ok(())
    }
}

/// Stores the URL that returned a card, even if its response had no validators.
fn store_card_url(row: &mut source::Model, result: &SourceOutcome) {
    if matches!(result.result, SourceResult::Fetched(_))
        && let Some(brought) = result.attempts.last()
    {
        row.validator_url = Some(brought.url.clone());
    }
}

/// Maximum number of bytes of `Vary` that are stored.
const MAX_VARY: usize = 255;

/// Stores the caching headers of a successful response, which the owner can see. A 304 without `Vary` does not change
/// the stored one.
fn store_freshness(row: &mut source::Model, verdict: &SourceResult) {
    let (freshness, is_full): (&Freshness, bool) = match verdict {
        SourceResult::Fetched(card) => (&card.freshness, true),
        SourceResult::Catalog(catalog) => (&catalog.freshness, true),
        SourceResult::NotModified(freshness) => (freshness, false),
        SourceResult::Failed { .. } => return,
    };
    row.max_age = freshness.max_age.map(i64::from);
    if is_full || freshness.vary.is_some() {
        // Names of header fields are ASCII, so each character is one byte.
        let truncated =
            |vary: &String| vary.chars().filter(char::is_ascii).take(MAX_VARY).collect();
        row.vary = freshness.vary.as_ref().map(truncated);
    }
}

#[cfg(test)]
mod tests {
    use a2a_registry_domain::source::SourceKind;

    use super::*;
    use crate::sources::new_source_row;

    #[test]
    fn what_an_answer_says_about_its_keeping_is_kept_within_a_bound() {
        let mut row = new_source_row(
            1,
            SourceKind::Url,
            "https://a.example/".into(),
            Timestamp(0),
        );
        let mut answer = |vary: Option<&str>, max_age| {
            let freshness = Freshness {
                max_age,
                vary: vary.map(str::to_owned),
                ..Freshness::default()
            };
            store_freshness(&mut row, &SourceResult::NotModified(freshness));
            (row.vary.clone(), row.max_age)
        };
        let accept = Some("accept".to_owned());
        assert_eq!(answer(Some("accept"), Some(60)), (accept.clone(), Some(60)));
        assert_eq!(answer(None, None), (accept, None));
        let (vary, _) = answer(Some(&"x".repeat(1000)), None);
        assert_eq!(vary.map(|vary| vary.len()), Some(MAX_VARY));
    }
}
