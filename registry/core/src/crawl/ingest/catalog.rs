//! Ingest of a fetched catalog: its new entries, and those that it no longer names.

use std::collections::BTreeSet;

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::CatalogEntry;
use a2a_crawler::fetch::bounded;
use a2a_crawler::liveness::{NOT_FOUND_FETCHES, NOT_FOUND_PERIOD};
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;
use a2a_registry_store::{Write, domains};
use serde_json::json;
use time::Duration;

use crate::commit::approver::CRAWLER;
use crate::commit::ledger::Ledger;
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::crawl::ingest::nominations::{MAX_NOMINATED, Nominations};
use crate::crawl::ingest::relisting::Relisting;
use crate::error::Result;
use crate::sources::quota::{AgentQuota, cards_asked_for, quota};
use crate::sources::{asks, is_catalog, new_source};

const MAX_NAMED: usize = 5;

/// The identifiers of the entries of a catalog that are not fetched, by reason.
#[derive(Debug, Default)]
struct SkippedEntries {
    /// Entries beyond the domain's quota of agents.
    too_many: Vec<String>,
    /// Entries beyond the nominations that the catalog and its registrant have left.
    not_nominated: Vec<String>,
    /// Entries of agents that were retired.
    retired: Vec<String>,
    /// Entries whose agent has another URL in another catalog or entry of the domain.
    placed: Vec<String>,
}

impl SkippedEntries {
    /// A phrase for the owner; `None` if no entry is skipped.
    fn sentence(&self, limit: usize) -> Option<String> {
        let reasons = [
            (
                &self.too_many,
                format!("beyond the limit of {limit} agents per domain"),
            ),
            (
                &self.not_nominated,
                format!(
                    "beyond the {MAX_NOMINATED} that such a catalog may nominate, or beyond the cards that its registrant may register"
                ),
            ),
            (
                &self.retired,
                "of retired agents, whose card URLs would have to be registered".to_owned(),
            ),
            (&self.placed, "with another URL in another entry".to_owned()),
        ];
        let parts = reasons.iter().filter(|(skipped, _)| !skipped.is_empty());
        let parts: Vec<String> = parts
            .map(|(skipped, reason)| format!("{} {reason} ({})", skipped.len(), named_few(skipped)))
            .collect();
        (!parts.is_empty()).then(|| format!("not fetched: {}", parts.join(", ")))
    }
}

fn named_few(names: &[String]) -> String {
    let few: Vec<String> = names
        .iter()
        .take(MAX_NAMED)
        .map(|name| bounded(name, 80))
        .collect();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", few.join(", "))
}

/// Ingests a catalog: every card that it names becomes a source, and entries that it no longer names end after the same
/// time as a card that is not found. Returns whether anything has changed.
pub async fn ingest_catalog(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool> {
    group.answered(source, &fetched.url);
    let Some(catalog) = group.sources.get(&source).cloned() else {
        return Ok(false);
    };
    let mut reading = CatalogReader::begin(context, write, group, ledger.now(), catalog).await?;
    for entry in &fetched.entries {
        match group.source_of(&reading.catalog, entry) {
            Some(known) => {
                reading
                    .names_again(write, group, ledger, known, entry)
                    .await?;
            }
            None => reading.names_first(write, group, entry).await?,
        }
    }
    if let Some(skipped) = reading
        .left
        .sentence(context.config.limits.agents_per_domain)
    {
        group.explain(source, &skipped);
    }
    let CatalogReader {
        catalog,
        listed,
        mut changed,
        ..
    } = reading;
    if let Some(row) = group.touch(source) {
        // The approval is for what the first fetch lists, and not for a card that the URL brings later.
        row.approve_as = None;
    }
    if fetched.complete {
        let missing = |row: &source::Model| !listed.contains(&row.id);
        changed |= miss(write, group, ledger, &catalog, missing).await?;
    }
    if changed {
        group.coverage_changed.insert(catalog.domain_id);
    }
    Ok(changed)
}

struct CatalogReader {
    catalog: source::Model,
    now: Timestamp,
    standing: CoverageLevel,
    quota: AgentQuota,
    /// What it may nominate, if it was registered by its URL and its entries are not covered.
    nominations: Option<Nominations>,
    listed: BTreeSet<i64>,
    left: SkippedEntries,
    /// The sources of the domain that ended with their agents, loaded on first use.
    retired: Option<Vec<source::Model>>,
    changed: bool,
}

impl CatalogReader {
    async fn begin(
        context: &Context,
        write: &Write,
        group: &Group,
        now: Timestamp,
        catalog: source::Model,
    ) -> Result<Self> {
        let sources = group.of_domain(catalog.domain_id);
        let asked = cards_asked_for(sources, |row| group.coverage_of(row.id));
        let standing = match group.standings.of_catalog(&catalog) {
            CoverageLevel::Covered => CoverageLevel::Covered,
            _ => CoverageLevel::Nomination,
        };
        let nominates = standing == CoverageLevel::Nomination && !is_catalog(&catalog);
        Ok(Self {
            standing,
            nominations: match nominates {
                true => Some(Nominations::load(context, write, group, &catalog).await?),
                false => None,
            },
            quota: quota(&context.config.limits, asked.into_values()),
            listed: BTreeSet::new(),
            left: SkippedEntries::default(),
            retired: None,
            changed: false,
            now,
            catalog,
        })
    }

    /// Handles an entry of an existing source.
    async fn names_again(
        &mut self,
        write: &Write,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        known: i64,
        entry: &CatalogEntry,
    ) -> Result<()> {
        self.listed.insert(known);
        match group.relist(known, &self.catalog, entry, self.now) {
            Relisting::Same => {}
            Relisting::Anew => self.changed = true,
            Relisting::Elsewhere => self.left.placed.push(entry.identifier.clone()),
            Relisting::Moved => {
                write.source_move(known, entry.url.as_str()).await?;
                if let Some(agent) = group.agent_of_source(known) {
                    let data = json!({"source": entry.url, "fed": true});
                    ledger.agent_event(EventKind::AgentUpdated, agent, CRAWLER, data);
                }
                self.changed = true;
            }
        }
        Ok(())
    }

    /// Handles an entry without a source: adds one, unless its agent was retired or the quota is used up.
    async fn names_first(
        &mut self,
        write: &Write,
        group: &mut Group,
        entry: &CatalogEntry,
    ) -> Result<()> {
        let identifier = || entry.identifier.clone();
        if self.was_retired(write, group, entry).await? {
            self.left.retired.push(identifier());
        } else if self.quota.refusal("", self.standing).is_some() {
            self.left.too_many.push(identifier());
        } else if self
            .nominations
            .as_ref()
            .is_some_and(Nominations::is_used_up)
        {
            self.left.not_nominated.push(identifier());
        } else {
            self.quota.take(self.standing);
            let row = named(&self.catalog, entry, self.now);
            let row = write.source_insert(row).await?;
            if let Some(nominations) = &mut self.nominations {
                nominations.take(write, row.id, self.now).await?;
            }
            self.listed.insert(row.id);
            group.add_source(row);
            self.changed = true;
        }
        Ok(())
    }

    /// Whether the source of an entry ended with its agent.
    async fn was_retired(
        &mut self,
        write: &Write,
        group: &Group,
        entry: &CatalogEntry,
    ) -> Result<bool> {
        let ended = match &mut self.retired {
            Some(ended) => ended,
            None => {
                let ended = domains::sources_retired(write, self.catalog.domain_id).await?;
                self.retired.insert(ended)
            }
        };
        let catalog = &self.catalog;
        let is_same =
            |row: &source::Model| group.is_named(row, catalog, entry) || asks(row, &entry.url);
        Ok(ended.iter().any(is_same))
    }
}

/// Ends the entries that a catalog no longer names, also of one that has become a card.
pub async fn catalog_is_the_same(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
) -> Result<()> {
    let row = group.sources.get(&source);
    if let Some(catalog) = row.filter(|row| is_catalog(row) || row.kind == SourceKind::Url) {
        let catalog = catalog.clone();
        miss(write, group, ledger, &catalog, |row| {
            row.unlisted_since.is_some()
        })
        .await?;
    }
    Ok(())
}

/// Marks all entries of a registered URL that returns a card now: it is no longer a catalog.
pub async fn miss_every_entry(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
) -> Result<()> {
    let row = group.sources.get(&source);
    if let Some(row) = row.filter(|row| row.kind == SourceKind::Url).cloned() {
        miss(write, group, ledger, &row, |_| true).await?;
    }
    Ok(())
}

/// Marks the entries that a catalog does not name, and ends those that it has not named for long enough. Returns
/// whether anything has changed.
async fn miss(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    catalog: &source::Model,
    missing: impl Fn(&source::Model) -> bool,
) -> Result<bool> {
    let now = ledger.now();
    let named_by = |row: &source::Model| {
        row.catalog_id == Some(catalog.id) && row.ended_at.is_none() && missing(row)
    };
    let missed: Vec<i64> = group
        .all_of_domain(catalog.domain_id)
        .filter(|row| named_by(row))
        .map(|row| row.id)
        .collect();
    let mut news = false;
    for id in missed {
        let Some(row) = group.touch(id) else { continue };
        news |= row.unlisted_since.is_none();
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
            write.source_end(id, now.0).await?;
            if let Some(agent) = agent {
                let data = json!({"source": url, "fed": false});
                ledger.agent_event(EventKind::AgentUpdated, agent, CRAWLER, data);
            }
        }
    }
    if news {
        group.coverage_changed.insert(catalog.domain_id);
        // Another catalog may name it, but would not be read again unchanged.
        group.want_other_catalogs(catalog);
    }
    Ok(news)
}

/// A new source for a catalog entry. An approval with the domain's registration applies to the entries of the catalog's
/// first fetch.
fn named(catalog: &source::Model, entry: &CatalogEntry, now: Timestamp) -> source::Model {
    let url = entry.url.to_string();
    let first_look = catalog.last_success_at.is_none();
    source::Model {
        identifier: Some(entry.identifier.clone()),
        entry_digest: entry.digest.clone(),
        catalog_id: Some(catalog.id),
        approve_as: catalog.approve_as.filter(|_| first_look),
        ..new_source(catalog.domain_id, SourceKind::Entry, url, now)
    }
}
