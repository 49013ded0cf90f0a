//! A fetched catalog: which cards a domain names, and which it does not name any more.

use std::collections::BTreeSet;

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::CatalogEntry;
use a2a_crawler::liveness::{NOT_FOUND_LOOKS, NOT_FOUND_PERIOD};
use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;
use a2a_registry_store::{Write, domains};
use serde_json::json;
use time::Duration;

use crate::commit::ledger::{CRAWLER, Ledger};
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::error::AppError;
use crate::sources::places::{cards_asked_for, places};
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
    let now = ledger.now();
    let limit = context.config.limits.agents_per_domain;
    let standing = match group.standing_of(source) {
        Standing::Covered => Standing::Covered,
        _ => Standing::Nomination,
    };
    let sources = group.of_domain(catalog.domain_id);
    let asked = cards_asked_for(sources, |row| group.standing_of(row.id));
    let mut places = places(&context.config.limits, asked.into_values());
    let mut listed = BTreeSet::new();
    let mut left = Left::default();
    let mut retired = None;
    let mut changed = false;
    for entry in &fetched.entries {
        if let Some(known) = group.source_of(catalog.domain_id, entry) {
            listed.insert(known);
            match group.relist(known, &catalog, entry, now) {
                Relisted::Same => {}
                Relisted::Anew => changed = true,
                Relisted::Elsewhere => left.placed += 1,
                Relisted::Moved => {
                    write.source_move(known, entry.url.as_str()).await?;
                    if let Some(agent) = group.agent_of_source(known) {
                        let data = json!({"source": entry.url, "fed": true});
                        ledger.agent_event(EventKind::AgentUpdated, agent, CRAWLER, data);
                    }
                    changed = true;
                }
            }
            continue;
        }
        let ended = match &mut retired {
            Some(ended) => ended,
            None => retired.insert(domains::sources_retired(write, catalog.domain_id).await?),
        };
        if ended.iter().any(|row| stands_for(row, entry)) {
            left.retired += 1;
        } else if places.refusal("", standing).is_some() {
            left.too_many += 1;
        } else {
            places.take(standing);
            let row = write.source_insert(named(&catalog, entry, now)).await?;
            listed.insert(row.id);
            group.sources.insert(row.id, row);
            changed = true;
        }
    }
    if let Some(told) = left.told(limit) {
        group.explain(source, &told);
    }
    if fetched.complete {
        changed |= miss(write, group, ledger, &catalog, |row| {
            !listed.contains(&row.id)
        })
        .await?;
    }
    if changed {
        group.regarded_anew.insert(catalog.domain_id);
    }
    Ok(changed)
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
        if lasted >= NOT_FOUND_PERIOD && looks >= NOT_FOUND_LOOKS {
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

/// What it means that a catalog names a source that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relisted {
    Same,
    /// Where it was; the catalog's word for it is new.
    Anew,
    /// At another URL than before.
    Moved,
    /// At another URL than whoever is heard first says, or at one that another entry has.
    Elsewhere,
}

impl Group {
    /// Whether a source is a catalog.
    pub(crate) fn is_catalog(&self, source: i64) -> bool {
        self.sources.get(&source).is_some_and(is_catalog)
    }

    fn of_domain(&self, domain: i64) -> impl Iterator<Item = &source::Model> {
        let live = move |row: &&source::Model| row.domain_id == domain && row.ended_at.is_none();
        self.sources.values().filter(live)
    }

    /// The source that an entry stands for: the one of its identifier, or else one that asks for its URL.
    fn source_of(&self, domain: i64, entry: &CatalogEntry) -> Option<i64> {
        let named = |row: &&source::Model| row.identifier.as_ref() == Some(&entry.identifier);
        self.of_domain(domain)
            .find(named)
            .or_else(|| self.of_domain(domain).find(|row| asks(row, &entry.url)))
            .map(|row| row.id)
    }

    /// The catalog that has named a source keeps it; another one takes over where that one does not name it any
    /// more, is not there, or counts less.
    fn relist(
        &mut self,
        id: i64,
        catalog: &source::Model,
        entry: &CatalogEntry,
        now: Timestamp,
    ) -> Relisted {
        let Some(row) = self.sources.get(&id) else {
            return Relisted::Same;
        };
        if row.kind != SourceKind::Entry {
            return self.name(id, catalog);
        }
        let by = row.catalog_id.and_then(|id| self.sources.get(&id));
        let speaks = by.is_some_and(|by| {
            let counts_more = by.kind == SourceKind::Ard;
            let there = by.liveness == SourceState::Fresh;
            by.id != catalog.id && there && (counts_more || by.kind == catalog.kind)
        });
        let named = row.identifier.as_ref() == Some(&entry.identifier);
        let moves = named && row.url != entry.url.as_str();
        if speaks && row.unlisted_since.is_none() {
            return if moves {
                Relisted::Elsewhere
            } else {
                Relisted::Same
            };
        }
        let domain = row.domain_id;
        let url = entry.url.as_str();
        let taken = moves
            && self
                .of_domain(domain)
                .any(|other| other.kind == SourceKind::Entry && other.url == url);
        let Some(row) = self.touch(id) else {
            return Relisted::Same;
        };
        let is_anew = row.unlisted_since.is_some() || row.catalog_id != Some(catalog.id);
        row.catalog_id = Some(catalog.id);
        row.unlisted_since = None;
        row.unlisted_looks = 0;
        if taken {
            return Relisted::Elsewhere;
        }
        if moves {
            row.url = url.to_owned();
            row.validator_url = None;
            row.next_due_at = now.0;
            row.planned_at = None;
            // The word was given for what was named at the first look.
            row.approve_as = None;
            return Relisted::Moved;
        }
        if is_anew {
            Relisted::Anew
        } else {
            Relisted::Same
        }
    }

    /// Notes that a catalog names a URL that was registered. It keeps its kind: it stays when the catalog drops it.
    fn name(&mut self, id: i64, catalog: &source::Model) -> Relisted {
        let by = |row: &source::Model| row.catalog_id.and_then(|id| self.sources.get(&id));
        let is_named = self.sources.get(&id).and_then(by).is_some();
        if is_named {
            return Relisted::Same;
        }
        if let Some(row) = self.touch(id) {
            row.catalog_id = Some(catalog.id);
        }
        Relisted::Anew
    }

    /// Has the other catalogs of a domain asked in full the next time.
    fn want_other_catalogs(&mut self, catalog: &source::Model) {
        let others: Vec<i64> = self
            .of_domain(catalog.domain_id)
            .filter(|row| row.id != catalog.id && is_catalog(row))
            .map(|row| row.id)
            .collect();
        for id in others {
            if let Some(row) = self.touch(id) {
                row.full_wanted = true;
            }
        }
    }
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
