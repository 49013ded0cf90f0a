//! Ingest of a fetched catalog: its new entries, and those that it no longer lists.

use std::collections::BTreeSet;

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::CatalogCardEntry;
use a2a_crawler::foreign_text::sanitize_text;
use a2a_crawler::liveness::{NOT_FOUND_FETCHES, NOT_FOUND_PERIOD};
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;
use a2a_registry_store::{WriteTransaction, domains};
use serde_json::json;
use time::Duration;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::CRAWLER_ACTOR;
use crate::context::AppContext;
use crate::crawl::ingest::batch::IngestBatch;
use crate::crawl::ingest::nominations::{MAX_NOMINATED, NominationAllowance};
use crate::crawl::ingest::source_updates::CatalogEntryEffect;
use crate::error::Result;
use crate::sources::domain_agent_quota::{DomainAgentQuota, card_targets, domain_agent_quota};
use crate::sources::{fetches_card_at, is_catalog_source, new_source_row};

const MAX_IDENTIFIERS_SHOWN: usize = 5;

/// The identifiers of the catalog entries that are not fetched, by reason.
#[derive(Debug, Default)]
struct SkippedCatalogEntries {
    /// Entries beyond the domain's quota of agents.
    over_quota: Vec<String>,
    /// Entries beyond the remaining nominations of the catalog and its registrant.
    over_nomination_limit: Vec<String>,
    /// Entries of agents that were retired.
    retired: Vec<String>,
    /// Entries whose agent has another URL in another catalog or entry of the domain.
    other_url: Vec<String>,
}

impl SkippedCatalogEntries {
    /// A message for the owner; `None` if no entry is skipped.
    fn owner_message(&self, limit: usize) -> Option<String> {
        let reasons = [
            (
                &self.over_quota,
                format!("beyond the limit of {limit} agents per domain"),
            ),
            (
                &self.over_nomination_limit,
                format!(
                    "beyond the {MAX_NOMINATED} cards that such a catalog may nominate, or beyond the limit of its \
                     registrant"
                ),
            ),
            (
                &self.retired,
                "of retired agents, whose card URLs must be registered to be fetched".to_owned(),
            ),
            (
                &self.other_url,
                "with another URL in another entry".to_owned(),
            ),
        ];
        let parts = reasons.iter().filter(|(skipped, _)| !skipped.is_empty());
        let parts: Vec<String> = parts
            .map(|(skipped, reason)| {
                format!(
                    "{} {reason} ({})",
                    skipped.len(),
                    shorten_name_list(skipped)
                )
            })
            .collect();
        (!parts.is_empty()).then(|| format!("not fetched: {}", parts.join(", ")))
    }
}

fn shorten_name_list(names: &[String]) -> String {
    let few: Vec<String> = names
        .iter()
        .take(MAX_IDENTIFIERS_SHOWN)
        .map(|name| sanitize_text(name, 80))
        .collect();
    let more = match names.len().saturating_sub(MAX_IDENTIFIERS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", few.join(", "))
}

/// Ingests a catalog: every card that it lists becomes a source, and entries that it no longer lists end after the
/// same time as a card that is not found. Returns whether anything has changed.
pub async fn ingest_catalog(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool> {
    batch.record_response_origin(source, &fetched.url);
    let Some(catalog) = batch.sources.get(&source).cloned() else {
        return Ok(false);
    };
    let mut reader =
        CatalogIngester::load(context, write, batch, change_set.now(), catalog).await?;
    for entry in &fetched.entries {
        match batch.entry_source(&reader.catalog, entry) {
            Some(existing) => {
                reader
                    .ingest_existing_entry(write, batch, change_set, existing, entry)
                    .await?;
            }
            None => reader.ingest_new_entry(write, batch, entry).await?,
        }
    }
    if let Some(skipped) = reader
        .skipped
        .owner_message(context.config().limits.agents_per_domain)
    {
        batch.append_attempt_detail(source, &skipped);
    }
    let CatalogIngester {
        catalog,
        listed,
        mut changed,
        ..
    } = reader;
    if let Some(row) = batch.source_mut(source) {
        // The approval applies to the entries of the first fetch, and not to a card that the URL returns later.
        row.approve_as = None;
    }
    if fetched.is_complete {
        let missing = |row: &source::Model| !listed.contains(&row.id);
        changed |= mark_missing_entries(write, batch, change_set, &catalog, missing).await?;
    }
    if changed {
        batch.coverage_changed.insert(catalog.domain_id);
    }
    Ok(changed)
}

struct CatalogIngester {
    catalog: source::Model,
    now: Timestamp,
    coverage_level: CoverageLevel,
    quota: DomainAgentQuota,
    /// The remaining nominations, if the catalog was registered by its URL and its entries are not covered.
    nominations: Option<NominationAllowance>,
    listed: BTreeSet<i64>,
    skipped: SkippedCatalogEntries,
    /// The sources of the domain that ended with their agents, loaded on first use.
    retired_sources: Option<Vec<source::Model>>,
    changed: bool,
}

impl CatalogIngester {
    async fn load(
        context: &AppContext,
        write: &WriteTransaction,
        batch: &IngestBatch,
        now: Timestamp,
        catalog: source::Model,
    ) -> Result<Self> {
        let sources = batch.live_domain_sources(catalog.domain_id);
        let targets = card_targets(sources, |row| batch.source_coverage(row.id));
        let coverage_level = match batch.coverage_evidence.catalog_coverage(&catalog) {
            CoverageLevel::Covered => CoverageLevel::Covered,
            _ => CoverageLevel::Nomination,
        };
        let nominates = coverage_level == CoverageLevel::Nomination && !is_catalog_source(&catalog);
        Ok(Self {
            coverage_level,
            nominations: match nominates {
                true => Some(NominationAllowance::load(context, write, batch, &catalog).await?),
                false => None,
            },
            quota: domain_agent_quota(&context.config().limits, targets.into_values()),
            listed: BTreeSet::new(),
            skipped: SkippedCatalogEntries::default(),
            retired_sources: None,
            changed: false,
            now,
            catalog,
        })
    }

    /// Handles an entry of an existing source.
    async fn ingest_existing_entry(
        &mut self,
        write: &WriteTransaction,
        batch: &mut IngestBatch,
        change_set: &mut ChangeSet<'_>,
        existing: i64,
        entry: &CatalogCardEntry,
    ) -> Result<()> {
        self.listed.insert(existing);
        match batch.apply_catalog_entry(existing, &self.catalog, entry, self.now) {
            CatalogEntryEffect::Unchanged => {}
            CatalogEntryEffect::NewlyListed => self.changed = true,
            CatalogEntryEffect::OtherUrl => self.skipped.other_url.push(entry.identifier.clone()),
            CatalogEntryEffect::Moved => {
                write.set_source_url(existing, entry.url.as_str()).await?;
                if let Some(agent) = batch.agent_of_source(existing) {
                    let data = json!({"source": entry.url, "fed": true});
                    change_set.add_agent_event(EventKind::AgentUpdated, agent, CRAWLER_ACTOR, data);
                }
                self.changed = true;
            }
        }
        Ok(())
    }

    /// Handles an entry without a source: adds one, unless the entry's agent was retired or the quota is used up.
    async fn ingest_new_entry(
        &mut self,
        write: &WriteTransaction,
        batch: &mut IngestBatch,
        entry: &CatalogCardEntry,
    ) -> Result<()> {
        let identifier = || entry.identifier.clone();
        if self.was_entry_retired(write, batch, entry).await? {
            self.skipped.retired.push(identifier());
        } else if self.quota.limit_message("", self.coverage_level).is_some() {
            self.skipped.over_quota.push(identifier());
        } else if self
            .nominations
            .as_ref()
            .is_some_and(NominationAllowance::is_used_up)
        {
            self.skipped.over_nomination_limit.push(identifier());
        } else {
            self.quota.count_agent(self.coverage_level);
            let row = new_entry_source(&self.catalog, entry, self.now);
            let row = write.insert_source(row).await?;
            if let Some(nominations) = &mut self.nominations {
                nominations.consume(write, row.id, self.now).await?;
            }
            self.listed.insert(row.id);
            batch.add_source(row);
            self.changed = true;
        }
        Ok(())
    }

    /// Whether the source of an entry ended with its agent.
    async fn was_entry_retired(
        &mut self,
        write: &WriteTransaction,
        batch: &IngestBatch,
        entry: &CatalogCardEntry,
    ) -> Result<bool> {
        let retired_sources = match &mut self.retired_sources {
            Some(ended) => ended,
            None => {
                let ended =
                    domains::sources_of_retired_agents(write, self.catalog.domain_id).await?;
                self.retired_sources.insert(ended)
            }
        };
        let catalog = &self.catalog;
        let is_same = |row: &source::Model| {
            batch.is_named_by_entry(row, catalog, entry) || fetches_card_at(row, &entry.url)
        };
        Ok(retired_sources.iter().any(is_same))
    }
}

/// Ends the entries that a catalog no longer lists, including those of one that has become a card.
pub async fn end_unlisted_entries(
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
) -> Result<()> {
    let row = batch.sources.get(&source);
    if let Some(catalog) = row.filter(|row| is_catalog_source(row) || row.kind == SourceKind::Url) {
        let catalog = catalog.clone();
        mark_missing_entries(write, batch, change_set, &catalog, |row| {
            row.unlisted_since.is_some()
        })
        .await?;
    }
    Ok(())
}

/// Marks all entries of a registered URL that now returns a card as missing: it is no longer a catalog.
pub async fn mark_all_entries_missing(
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
) -> Result<()> {
    let row = batch.sources.get(&source);
    if let Some(row) = row.filter(|row| row.kind == SourceKind::Url).cloned() {
        mark_missing_entries(write, batch, change_set, &row, |_| true).await?;
    }
    Ok(())
}

/// Marks the entries that a catalog does not list, and ends those that have been missing for long enough. Returns
/// whether anything has changed.
async fn mark_missing_entries(
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    catalog: &source::Model,
    is_missing: impl Fn(&source::Model) -> bool,
) -> Result<bool> {
    let now = change_set.now();
    let is_missed_entry = |row: &source::Model| {
        row.catalog_id == Some(catalog.id) && row.ended_at.is_none() && is_missing(row)
    };
    let missed_ids: Vec<i64> = batch
        .all_domain_sources(catalog.domain_id)
        .filter(|row| is_missed_entry(row))
        .map(|row| row.id)
        .collect();
    let mut has_newly_missing = false;
    for id in missed_ids {
        let Some(row) = batch.source_mut(id) else {
            continue;
        };
        has_newly_missing |= row.unlisted_since.is_none();
        let since = *row.unlisted_since.get_or_insert(now.0);
        row.unlisted_looks = row.unlisted_looks.saturating_add(1);
        if row.kind != SourceKind::Entry {
            // A registered source stays; it only loses the coverage by the catalog.
            row.catalog_id = None;
            row.unlisted_since = None;
            row.unlisted_looks = 0;
            continue;
        }
        let lasted = Duration::microseconds(now.0.saturating_sub(since));
        let looks = u32::try_from(row.unlisted_looks).unwrap_or(0);
        if lasted >= NOT_FOUND_PERIOD && looks >= NOT_FOUND_FETCHES {
            row.ended_at = Some(now.0);
            let (agent, url) = (row.agent_id, row.url.clone());
            write.end_source(id, now.0).await?;
            if let Some(agent) = agent {
                let data = json!({"source": url, "fed": false});
                change_set.add_agent_event(EventKind::AgentUpdated, agent, CRAWLER_ACTOR, data);
            }
        }
    }
    if has_newly_missing {
        batch.coverage_changed.insert(catalog.domain_id);
        // Another catalog may list it, but would not be parsed again while it is unchanged.
        batch.schedule_other_catalog_fetches(catalog);
    }
    Ok(has_newly_missing)
}

/// A new source for a catalog entry. An approval with the domain's registration applies to the entries of the
/// catalog's first fetch.
fn new_entry_source(
    catalog: &source::Model,
    entry: &CatalogCardEntry,
    now: Timestamp,
) -> source::Model {
    let url = entry.url.to_string();
    let is_first_fetch = catalog.last_success_at.is_none();
    source::Model {
        identifier: Some(entry.identifier.clone()),
        entry_digest: entry.digest.clone(),
        catalog_id: Some(catalog.id),
        approve_as: catalog.approve_as.filter(|_| is_first_fetch),
        ..new_source_row(catalog.domain_id, SourceKind::Entry, url, now)
    }
}
