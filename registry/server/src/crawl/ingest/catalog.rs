//! A fetched catalog: which cards a domain names, and which it does not name any more.

use std::collections::BTreeSet;

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::CatalogEntry;
use a2a_crawler::liveness::{NOT_FOUND_FETCHES, NOT_FOUND_PERIOD};
use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;
use a2a_registry_store::{Write, domains};
use serde_json::json;
use time::Duration;

use crate::commit::ledger::{CRAWLER, Ledger};
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::crawl::ingest::relisting::Relisted;
use crate::error::AppError;
use crate::sources::places::{Places, cards_asked_for, places};
use crate::sources::{asks, is_catalog, new_source};

/// What of a catalog's entries is not asked.
#[derive(Debug, Default)]
struct Left {
    /// Entries beyond what a domain may have.
    too_many: usize,
    /// Entries of agents that were retired.
    retired: usize,
    /// Entries whose agent another catalog of the domain, or another entry, places elsewhere.
    placed: usize,
}

impl Left {
    /// What to tell the owner; `None` where nothing is left.
    fn told(&self, limit: usize) -> Option<String> {
        let mut parts = Vec::new();
        if self.too_many > 0 {
            parts.push(format!(
                "{} beyond the {limit} that a domain may have",
                self.too_many
            ));
        }
        if self.retired > 0 {
            parts.push(format!(
                "{} of retired agents, whose card URLs would have to be registered",
                self.retired
            ));
        }
        if self.placed > 0 {
            parts.push(format!("{} placed elsewhere by another entry", self.placed));
        }
        (!parts.is_empty()).then(|| format!("not asked: {}", parts.join(", ")))
    }
}

/// Takes in a catalog: every card that it names is a source from now on, and what it does not name any more
/// ends after the patience that a card has which is not found. Says whether anything has changed.
pub(crate) async fn ingest_catalog(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool, AppError> {
    group.answered(source, &fetched.url);
    let Some(catalog) = group.sources.get(&source).cloned() else {
        return Ok(false);
    };
    let mut reading = Reading::begin(context, group, ledger.now(), catalog);
    for entry in &fetched.entries {
        match group.source_of(reading.catalog.domain_id, entry) {
            Some(known) => {
                reading
                    .names_again(write, group, ledger, known, entry)
                    .await?;
            }
            None => reading.names_first(write, group, entry).await?,
        }
    }
    if let Some(told) = reading.left.told(context.config.limits.agents_per_domain) {
        group.explain(source, &told);
    }
    let Reading {
        catalog,
        listed,
        mut changed,
        ..
    } = reading;
    if fetched.complete {
        let missing = |row: &source::Model| !listed.contains(&row.id);
        changed |= miss(write, group, ledger, &catalog, missing).await?;
    }
    if changed {
        group.regarded_anew.insert(catalog.domain_id);
    }
    Ok(changed)
}

/// A catalog while its entries are gone through.
struct Reading {
    catalog: source::Model,
    now: Timestamp,
    /// Whose word stands behind what it names.
    standing: Standing,
    places: Places,
    /// The sources that it names.
    listed: BTreeSet<i64>,
    left: Left,
    /// The sources of the domain that ended with their agents, once they are asked for.
    retired: Option<Vec<source::Model>>,
    /// Whether anything has changed.
    changed: bool,
}

impl Reading {
    fn begin(context: &Context, group: &Group, now: Timestamp, catalog: source::Model) -> Self {
        let sources = group.of_domain(catalog.domain_id);
        let asked = cards_asked_for(sources, |row| group.standing_of(row.id));
        Self {
            standing: match group.standing_of(catalog.id) {
                Standing::Covered => Standing::Covered,
                _ => Standing::Nomination,
            },
            places: places(&context.config.limits, asked.into_values()),
            listed: BTreeSet::new(),
            left: Left::default(),
            retired: None,
            changed: false,
            now,
            catalog,
        }
    }

    /// An entry stands for a source that is there.
    async fn names_again(
        &mut self,
        write: &Write,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        known: i64,
        entry: &CatalogEntry,
    ) -> Result<(), AppError> {
        self.listed.insert(known);
        match group.relist(known, &self.catalog, entry, self.now) {
            Relisted::Same => {}
            Relisted::Anew => self.changed = true,
            Relisted::Elsewhere => self.left.placed += 1,
            Relisted::Moved => {
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

    /// An entry stands for no source yet: it becomes one, unless its agent was retired or there is no place for it.
    async fn names_first(
        &mut self,
        write: &Write,
        group: &mut Group,
        entry: &CatalogEntry,
    ) -> Result<(), AppError> {
        if self.was_retired(write, entry).await? {
            self.left.retired += 1;
        } else if self.places.refusal("", self.standing).is_some() {
            self.left.too_many += 1;
        } else {
            self.places.take(self.standing);
            let row = named(&self.catalog, entry, self.now);
            let row = write.source_insert(row).await?;
            self.listed.insert(row.id);
            group.sources.insert(row.id, row);
            self.changed = true;
        }
        Ok(())
    }

    /// Whether the source that an entry stands for ended with its agent.
    async fn was_retired(&mut self, write: &Write, entry: &CatalogEntry) -> Result<bool, AppError> {
        let ended = match &mut self.retired {
            Some(ended) => ended,
            None => {
                let ended = domains::sources_retired(write, self.catalog.domain_id).await?;
                self.retired.insert(ended)
            }
        };
        Ok(ended.iter().any(|row| stands_for(row, entry)))
    }
}

/// What a catalog did not name before, it does not name now.
pub(crate) async fn catalog_is_the_same(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
) -> Result<(), AppError> {
    if let Some(catalog) = group.sources.get(&source).filter(|row| is_catalog(row)) {
        let catalog = catalog.clone();
        miss(write, group, ledger, &catalog, |row| {
            row.unlisted_since.is_some()
        })
        .await?;
    }
    Ok(())
}

/// Notes that a catalog does not name these of its entries, and ends those it has not named for long enough.
/// Says whether any of that is news.
async fn miss(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    catalog: &source::Model,
    missing: impl Fn(&source::Model) -> bool,
) -> Result<bool, AppError> {
    let now = ledger.now();
    let named_by = |row: &source::Model| {
        row.catalog_id == Some(catalog.id) && row.ended_at.is_none() && missing(row)
    };
    let missed: Vec<i64> = group
        .sources
        .values()
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
            // It was registered and stays; only the catalog's word for it ends.
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
        group.regarded_anew.insert(catalog.domain_id);
        // Another catalog may name it, and would not say so again by itself.
        group.want_other_catalogs(catalog);
    }
    Ok(news)
}

/// A source that a catalog names for the first time. The word of whoever registered the domain counts for what
/// its catalog names at the first look.
fn named(catalog: &source::Model, entry: &CatalogEntry, now: Timestamp) -> source::Model {
    let url = entry.url.to_string();
    let first_look = catalog.last_success_at.is_none();
    source::Model {
        identifier: Some(entry.identifier.clone()),
        catalog_id: Some(catalog.id),
        approve_as: catalog.approve_as.filter(|_| first_look),
        ..new_source(catalog.domain_id, SourceKind::Entry, url, now)
    }
}

/// Whether a source that ended with its agent was what an entry names.
fn stands_for(row: &source::Model, entry: &CatalogEntry) -> bool {
    row.identifier.as_ref() == Some(&entry.identifier) || asks(row, &entry.url)
}
