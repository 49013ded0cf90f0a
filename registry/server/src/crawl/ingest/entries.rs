//! Ingest of the entries of a catalog that are no cards (docs/model.md#entries).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use a2a_crawler::catalog::manifest::PROFILE;
use a2a_crawler::catalog::{Authority, Endorsement, TypedEntry, publisher_of};
use a2a_crawler::fetch::bounded;
use a2a_crawler::liveness::{NOT_FOUND_FETCHES, NOT_FOUND_PERIOD};
use a2a_crawler::{AttemptOutcome, FetchedCatalog};
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::agents::known_urns;
use a2a_registry_store::entity::{domain, entry, source};
use a2a_registry_store::{Write, entries};
use serde_json::json;
use time::Duration;

use crate::commit::approver::CRAWLER;
use crate::commit::ledger::Ledger;
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::entry_rows::{MAX_KEPT, denies_entry, end_entries, entry_event, keeps_entries_of};
use crate::error::AppError;
use crate::visibility::entry_is_shown;

/// How long the result of verifying a manifest counts while the signer cannot be asked again.
const VERIFIED_FOR: i64 = 7 * DAY;

/// After this many fetches in a row that found no catalog (404, 410), over the same time as an agent's card, its entries
/// end. A missing catalog is fetched once a week.
const ABSENT_FETCHES: i32 = 2;

/// Why an entry is not kept, counted for the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NotKept {
    /// Its identifier is no URN.
    NoUrn,
    /// Its publisher is another domain, and no verified manifest of that domain endorses it.
    NotEndorsed,
    /// The manifest that would endorse it could not be checked.
    Unchecked,
    /// An agent has its identifier.
    AnAgents,
    /// Another catalog lists its identifier, and counts more.
    Elsewhere,
    /// The domain has as many as are kept.
    TooMany,
}

impl NotKept {
    const fn phrase(self) -> &'static str {
        match self {
            Self::NoUrn => "without a urn:air of a domain",
            Self::NotEndorsed => "of another publisher, without a verified manifest of it",
            Self::Unchecked => "with a manifest that could not be checked",
            Self::AnAgents => "with the identifier of an agent",
            Self::Elsewhere => "with an identifier that another catalog lists",
            Self::TooMany => "beyond the number kept of one domain",
        }
    }
}

/// Ingests the entries that are no cards; returns whether anything has changed. Nothing is kept of a domain that nobody has
/// proved, or whose catalog came from somewhere that the proof does not cover.
pub(crate) async fn ingest_entries(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool, AppError> {
    let Some(catalog) = group.sources.get(&source).cloned() else {
        return Ok(false);
    };
    let Some(domain) = group.domains.get(&catalog.domain_id).cloned() else {
        return Ok(false);
    };
    let covered = group.coverage_of(source) == CoverageLevel::Covered;
    if !keeps_entries_of(context.config(), &domain) || !covered {
        return Ok(false);
    }
    let mut reading =
        EntryReader::begin(context, write, group, ledger, catalog, domain, fetched).await?;
    for other in &fetched.others {
        reading.take(ledger, other);
    }
    if fetched.complete {
        let listed = reading.listed.clone();
        reading.miss(ledger.now(), NOT_FOUND_FETCHES.cast_signed(), |row| {
            !listed.contains(&row.identifier)
        });
    }
    if let Some(sentence) = reading.sentence() {
        group.explain(source, &sentence);
    }
    reading.write(write, ledger).await
}

/// A fetch of a catalog without content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutContent {
    /// It has not changed, so what was missing is missing again.
    NotModified,
    /// It is not there: 404 or 410.
    Absent,
    /// It could not be fetched, which says nothing about what it lists.
    Failed,
}

impl WithoutContent {
    /// What a failed fetch says.
    pub(crate) const fn of(outcome: AttemptOutcome) -> Self {
        match outcome {
            AttemptOutcome::NotFound | AttemptOutcome::Gone => Self::Absent,
            _ => Self::Failed,
        }
    }
}

/// Follows a fetch of a catalog without content: counts what is missing, and ends what was verified too long ago.
pub(crate) async fn entries_missed(
    context: &Context,
    write: &Write,
    group: &Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetch: WithoutContent,
) -> Result<(), AppError> {
    let catalog = group
        .sources
        .get(&source)
        .filter(|_| group.is_catalog(source));
    let domain = catalog.and_then(|row| group.domains.get(&row.domain_id));
    let (Some(catalog), Some(domain)) = (catalog, domain) else {
        return Ok(());
    };
    if !keeps_entries_of(context.config(), domain) {
        return Ok(());
    }
    let known = entries::entries_of(write, &[domain.id]).await?;
    let mut reading = EntryReader::of(ledger.now(), catalog.clone(), domain.clone(), known);
    let fetches = match fetch {
        WithoutContent::Absent => ABSENT_FETCHES,
        _ => NOT_FOUND_FETCHES.cast_signed(),
    };
    reading.miss(ledger.now(), fetches, |row| match fetch {
        WithoutContent::NotModified => row.unlisted_since.is_some(),
        WithoutContent::Absent => true,
        WithoutContent::Failed => false,
    });
    reading.write(write, ledger).await?;
    Ok(())
}

/// A catalog while its entries are read.
struct EntryReader {
    catalog: source::Model,
    domain: domain::Model,
    now: Timestamp,
    /// The entries of the domain, by identifier.
    known: BTreeMap<String, entry::Model>,
    /// The catalogs of the domain that answer, by their keys.
    catalogs: BTreeMap<i64, SourceKind>,
    /// The entries of other domains with identifiers of this catalog, and whether they are shown.
    foreign: BTreeMap<String, (entry::Model, bool)>,
    /// The identifiers that agents have.
    agents: HashSet<String>,
    /// The identifiers that `deny_domains` hides.
    denied: HashSet<String>,
    listed: BTreeSet<String>,
    put: BTreeMap<String, (entry::Model, Option<EventKind>)>,
    ended: Vec<entry::Model>,
    not_kept: BTreeMap<NotKept, usize>,
}

impl EntryReader {
    fn of(
        now: Timestamp,
        catalog: source::Model,
        domain: domain::Model,
        known: Vec<entry::Model>,
    ) -> Self {
        let named = |row: entry::Model| (row.identifier.clone(), row);
        Self {
            catalog,
            domain,
            now,
            known: known.into_iter().map(named).collect(),
            catalogs: BTreeMap::new(),
            foreign: BTreeMap::new(),
            agents: HashSet::new(),
            denied: HashSet::new(),
            listed: BTreeSet::new(),
            put: BTreeMap::new(),
            ended: Vec::new(),
            not_kept: BTreeMap::new(),
        }
    }

    async fn begin(
        context: &Context,
        write: &Write,
        group: &Group,
        ledger: &Ledger<'_>,
        catalog: source::Model,
        domain: domain::Model,
        fetched: &FetchedCatalog,
    ) -> Result<Self, AppError> {
        let now = ledger.now();
        let known = entries::entries_of(write, &[domain.id]).await?;
        let others = fetched.others.iter();
        let named: Vec<String> = others.map(|one| one.identifier.clone()).collect();
        let mut agents = known_urns(write, &named).await?;
        let given = |name: &&String| ledger.has_urn(name);
        agents.extend(named.iter().filter(given).cloned());
        let cards = group.of_domain(domain.id);
        let cards = cards.filter_map(|row| group.identifier_of(row));
        agents.extend(cards.map(str::to_owned));
        let foreign = entries::entries_named(write, &named).await?.into_iter();
        let foreign = foreign
            .filter(|(row, _)| row.domain_id != domain.id)
            .map(|(row, of)| {
                let shown = entry_is_shown(&row, &of, now);
                (row.identifier.clone(), (row, shown))
            });
        let catalogs = group.of_domain(domain.id).filter(|row| {
            row.liveness == SourceState::Fresh
                && row.kind.known().is_some_and(SourceKind::is_catalog)
        });
        let catalogs = catalogs.filter_map(|row| Some((row.id, row.kind.known()?)));
        Ok(Self {
            catalogs: catalogs.collect(),
            foreign: foreign.collect(),
            denied: named
                .into_iter()
                .filter(|name| denies_entry(|name| context.rules.denies(name), &domain.name, name))
                .collect(),
            agents,
            ..Self::of(now, catalog, domain, known)
        })
    }

    /// Takes one entry.
    fn take(&mut self, ledger: &Ledger<'_>, other: &TypedEntry) {
        self.listed.insert(other.identifier.clone());
        let known = self.known.get(&other.identifier).cloned();
        if let Err(why) = self.verdict(other, known.as_ref()) {
            *self.not_kept.entry(why).or_default() += 1;
            match known {
                // Who cannot be asked takes nothing back.
                Some(row) if why == NotKept::Unchecked => self.list_again(row),
                Some(row) if why != NotKept::Elsewhere => self.end(row),
                _ => {}
            }
            return;
        }
        if let Some((row, _)) = self.foreign.remove(&other.identifier) {
            self.ended.push(row);
        }
        let row = self.row(ledger, other, known.as_ref());
        let what = match &known {
            None => Some(EventKind::EntryListed),
            Some(before) if is_same(before, &row) => None,
            Some(_) => Some(EventKind::EntryChanged),
        };
        let row = match (&known, what) {
            (Some(before), None) => entry::Model {
                changed_at: before.changed_at,
                ..row
            },
            _ => row,
        };
        self.known.insert(other.identifier.clone(), row.clone());
        self.put.insert(other.identifier.clone(), (row, what));
    }

    /// Whether an entry is kept.
    fn verdict(&self, other: &TypedEntry, known: Option<&entry::Model>) -> Result<(), NotKept> {
        let publisher = publisher_of(&other.identifier).ok_or(NotKept::NoUrn)?;
        let authority = other.authority();
        let own = authority == Authority::DomainVerified && publisher == self.domain.name;
        let endorsed = matches!(&other.endorsement, Endorsement::Verified { domain, .. } if domain == publisher);
        if !own && !endorsed {
            return Err(match other.endorsement {
                Endorsement::Unchecked(_) => NotKept::Unchecked,
                _ => NotKept::NotEndorsed,
            });
        }
        if self.agents.contains(&other.identifier) {
            return Err(NotKept::AnAgents);
        }
        if let Some((row, shown)) = self.foreign.get(&other.identifier) {
            let theirs = row.authority == Authority::DomainVerified.as_str();
            // The publisher's own catalog counts more than any other, and of others the first.
            if *shown && (theirs || !own) {
                return Err(NotKept::Elsewhere);
            }
        }
        if let Some(row) = known
            && row.catalog_id != self.catalog.id
            && row.unlisted_since.is_none()
            && let Some(kind) = self.catalogs.get(&row.catalog_id)
            && (*kind == SourceKind::Ard || self.catalog.kind == *kind)
        {
            return Err(NotKept::Elsewhere);
        }
        if known.is_none() && self.known.len() >= MAX_KEPT {
            return Err(NotKept::TooMany);
        }
        Ok(())
    }

    /// The row of an entry.
    fn row(
        &self,
        ledger: &Ledger<'_>,
        other: &TypedEntry,
        known: Option<&entry::Model>,
    ) -> entry::Model {
        let now = self.now.0;
        let own = other.authority() == Authority::DomainVerified;
        let authority = match own {
            true => Authority::DomainVerified,
            false => Authority::ManifestVerified,
        };
        let until = match &other.endorsement {
            Endorsement::Verified { expires_at, .. } if !own => {
                let expires = expires_at.map(|at| Timestamp::from(at).0);
                let until = now.saturating_add(VERIFIED_FOR);
                Some(expires.map_or(until, |expires| expires.min(until)))
            }
            _ => None,
        };
        entry::Model {
            id: known.map_or_else(|| ledger.new_id(), |row| row.id),
            domain_id: self.domain.id,
            catalog_id: self.catalog.id,
            identifier: other.identifier.clone(),
            listed_as: other.listed_as.clone(),
            media_type: other.media_type.clone(),
            registry: other.is_registry(),
            display_name: other.display_name.clone(),
            description: other.description.clone(),
            version: other.version.clone(),
            updated_at: other.updated_at.map(|at| Timestamp::from(at).0),
            url: other.url.as_ref().map(ToString::to_string),
            raw: other.raw.clone(),
            words: words_of(other),
            authority: authority.as_str().to_owned(),
            verification: verification(&other.endorsement, self.now),
            verified_until: until,
            denied: self.denied.contains(&other.identifier),
            unlisted_since: None,
            unlisted_looks: 0,
            created_at: known.map_or(now, |row| row.created_at),
            changed_at: now,
        }
    }

    /// Marks an entry as listed, and leaves it as it is otherwise.
    fn list_again(&mut self, row: entry::Model) {
        if row.catalog_id == self.catalog.id && row.unlisted_since.is_some() {
            let row = entry::Model {
                unlisted_since: None,
                unlisted_looks: 0,
                ..row
            };
            self.put.insert(row.identifier.clone(), (row, None));
        }
    }

    fn end(&mut self, row: entry::Model) {
        self.known.remove(&row.identifier);
        self.ended.push(row);
    }

    /// Marks the entries of this catalog that it does not list, and ends those that it has not listed for long enough, or
    /// whose verification is too old.
    fn miss(&mut self, now: Timestamp, fetches: i32, missing: impl Fn(&entry::Model) -> bool) {
        let of_this = self
            .known
            .values()
            .filter(|row| row.catalog_id == self.catalog.id);
        let is_over = |row: &entry::Model| row.verified_until.is_some_and(|until| until <= now.0);
        let over: Vec<entry::Model> = of_this
            .clone()
            .filter(|row| is_over(row))
            .cloned()
            .collect();
        let missed: Vec<entry::Model> = of_this.filter(|row| missing(row)).cloned().collect();
        for row in over {
            self.put.remove(&row.identifier);
            self.end(row);
        }
        for mut row in missed.into_iter().filter(|row| !is_over(row)) {
            let since = *row.unlisted_since.get_or_insert(now.0);
            row.unlisted_looks = row.unlisted_looks.saturating_add(1);
            let lasted = Duration::microseconds(now.0.saturating_sub(since));
            if lasted >= NOT_FOUND_PERIOD && row.unlisted_looks >= fetches {
                self.end(row);
            } else {
                self.put.insert(row.identifier.clone(), (row, None));
            }
        }
    }

    /// A phrase for the owner about the entries that are not kept; `None` if all are.
    fn sentence(&self) -> Option<String> {
        let parts = self.not_kept.iter();
        let parts: Vec<String> = parts
            .map(|(why, count)| format!("{count} {}", why.phrase()))
            .collect();
        (!parts.is_empty()).then(|| format!("other entries not kept: {}", parts.join(", ")))
    }

    /// Writes what was collected; returns whether anything has changed.
    async fn write(self, write: &Write, ledger: &mut Ledger<'_>) -> Result<bool, AppError> {
        let news = self.put.values().any(|(_, what)| what.is_some());
        let changed = news || !self.ended.is_empty();
        // Ends first: an identifier may pass from one domain to another.
        end_entries(write, ledger, &self.ended, CRAWLER).await?;
        let mut rows = Vec::new();
        for (row, what) in self.put.into_values() {
            if let Some(kind) = what {
                entry_event(ledger, kind, &row, CRAWLER);
            }
            rows.push(row);
        }
        write.entries_put(rows).await?;
        Ok(changed)
    }
}

/// Whether two rows show the same. A verification that was made again with the same result is no change.
fn is_same(before: &entry::Model, now: &entry::Model) -> bool {
    let shown = |row: &entry::Model| entry::Model {
        verification: result_of(row),
        verified_until: None,
        unlisted_since: None,
        unlisted_looks: 0,
        changed_at: 0,
        ..row.clone()
    };
    shown(before) == shown(now)
}

/// The result of a row's verification, without its time.
fn result_of(row: &entry::Model) -> Option<String> {
    let kept = row.verification.as_deref()?;
    let value: serde_json::Value = serde_json::from_str(kept).ok()?;
    Some(format!(
        "{} {}",
        value.get("result")?,
        value.get("fault").unwrap_or_default()
    ))
}

/// The result of verifying an entry's manifest, as it is kept; `None` if its publisher has signed none.
fn verification(endorsement: &Endorsement, now: Timestamp) -> Option<String> {
    let (result, signer, fault) = match endorsement {
        Endorsement::None => return None,
        Endorsement::Verified { domain, .. } => {
            ("verified", Some(format!("did:web:{domain}")), None)
        }
        Endorsement::Failed(fault) => ("failed", None, Some(fault.as_str().to_owned())),
        Endorsement::Unchecked(why) => ("unchecked", None, Some(bounded(why, 200))),
    };
    let at = now.0;
    let kept =
        json!({"result": result, "profile": PROFILE, "signer": signer, "fault": fault, "at": at});
    Some(kept.to_string())
}

/// The words that an entry is found by in a list.
fn words_of(other: &TypedEntry) -> String {
    let description = other.description.as_deref().unwrap_or_default();
    let text = format!("{} {} {description}", other.identifier, other.display_name);
    text.to_lowercase().replace('\0', "")
}
