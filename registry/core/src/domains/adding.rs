//! Adds sources to a domain, and the caller to the registrants of existing ones, within the limits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, source, source_registrant};
use a2a_registry_store::{Write, agents, coverage, domains};
use uuid::Uuid;

use crate::admission::coverage::SourceCoverage;
use crate::config::LimitsConfig;
use crate::context::Context;
use crate::domains::domain_access::is_owner;
use crate::domains::registration_counts::RegistrationCounts;
use crate::domains::target::Target;
use crate::error::{AppError, Result};
use crate::sources::quota::{AgentQuota, cards_asked_for, quota};
use crate::sources::{asked_for, asks_for_a_card, card_url, new_source};
use crate::visibility::caller::Caller;

#[derive(Debug, Default)]
pub struct AddedSources {
    /// The first source that the caller had not registered before.
    pub first: Option<(SourceKind, String)>,
    pub sources: bool,
    /// The sources of other registrants that the caller has registered too.
    pub registrants_of: Vec<source::Model>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    pub sees_all: bool,
}

impl AddedSources {
    fn note(&mut self, kind: SourceKind, url: &str) {
        self.first.get_or_insert_with(|| (kind, url.to_owned()));
    }
}

type CardTarget = (bool, String);

/// The target of a source; `None` for a kind that only a later build knows.
fn target_of(source: &source::Model) -> Option<CardTarget> {
    let kind = source.kind.known()?;
    Some(asked_for(kind, &source.url))
}

/// The card URLs that the sources of a domain fetch, with the coverage of each. A source is compared only with those of
/// its URL and with catalogs: comparing with all others would cost, for each URL of a bulk, the square of their number,
/// while other writes wait.
fn asked_of(
    all: &[source::Model],
    standings: &SourceCoverage,
) -> BTreeMap<CardTarget, CoverageLevel> {
    let mut alike: HashMap<&str, Vec<&source::Model>> = HashMap::new();
    for one in all {
        alike.entry(card_url(one)).or_default().push(one);
    }
    let listing: BTreeSet<i64> = all.iter().filter_map(|one| one.catalog_id).collect();
    let catalogs = all.iter().filter(|one| listing.contains(&one.id));
    let catalogs: Vec<&source::Model> = catalogs.collect();
    cards_asked_for(all.iter(), |one| {
        let url = card_url(one);
        let same = alike.get(url).into_iter().flatten().copied();
        let others = catalogs.iter().copied();
        let others = others.filter(move |catalog| card_url(catalog) != url);
        standings.of_source(one, same.chain(others))
    })
}

/// The taken places that a registrant knows of, and those that count twice for it (see [`KnownSources`]); `listed` are
/// the public agents.
fn places_of(
    by: &source_registrant::Model,
    all: &[source::Model],
    standings: &SourceCoverage,
    listed: &[Uuid],
) -> (BTreeSet<CardTarget>, BTreeMap<CardTarget, CoverageLevel>) {
    let is_listed = |one: &source::Model| one.agent_id.is_some_and(|id| listed.contains(&id));
    let is_own = |one: &source::Model| {
        let all = standings.registrants(one.id);
        all.iter().any(|one| is_same(one, by))
    };
    let is_others = |one: &source::Model| {
        let all = standings.registrants(one.id);
        all.is_empty() || all.iter().any(|one| !is_same(one, by))
    };
    let cards = || all.iter().filter(|one| asks_for_a_card(one));
    let others = cards().filter(|one| is_others(one));
    let others: BTreeSet<CardTarget> = others.filter_map(target_of).collect();
    let known = cards().filter(|one| is_own(one) || is_listed(one));
    let own = cards().filter(|one| is_own(one) && !is_listed(one));
    let shared = own.filter_map(|one| {
        let target = target_of(one).filter(|target| others.contains(target))?;
        Some((target, standings.of_new(one, by, [].iter())))
    });
    (known.filter_map(target_of).collect(), shared.collect())
}

/// The sources of one domain, and what of them counts for the next registration.
struct KnownSources {
    all: Vec<source::Model>,
    /// The public agents of the domain.
    listed: Vec<Uuid>,
    /// The card URLs that the sources fetch, with the coverage of each.
    asked: BTreeMap<CardTarget, CoverageLevel>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    sees_all: bool,
    /// The card URLs that the caller knows to be registered: all of them, or for a caller that neither owns the domain
    /// nor registered it first, those that it has registered itself and those of listed agents.
    known: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered and that have ended since. Adding one again costs as little as
    /// adding one again that has not ended.
    ended: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered although others have too, with the coverage that they would have
    /// as new ones. They count twice: what was registered before must not leave the caller more places than what was
    /// not.
    shared: BTreeMap<CardTarget, CoverageLevel>,
}

impl KnownSources {
    /// Counts everything again; `by` is a registration of the caller.
    fn count(&mut self, by: &source_registrant::Model, standings: &SourceCoverage) {
        let all = &self.all;
        let asked = asked_of(all, standings);
        (self.known, self.shared) = match self.sees_all {
            true => (asked.keys().cloned().collect(), BTreeMap::new()),
            false => places_of(by, all, standings, &self.listed),
        };
        self.known.extend(self.ended.iter().cloned());
        self.asked = asked;
    }

    /// Counts a source that was just added. One whose URL no other source has changes nothing else, and is not compared
    /// with all others: a bulk may add a thousand to one domain. For a stranger, who may add few, a new URL takes as
    /// long as one that others have registered.
    fn count_new(
        &mut self,
        new: &source::Model,
        by: &source_registrant::Model,
        standings: &SourceCoverage,
    ) {
        let Some(target) = target_of(new).filter(|_| asks_for_a_card(new)) else {
            return;
        };
        let is_other = |one: &source::Model| one.id != new.id && card_url(one) == card_url(new);
        if !self.sees_all || self.asked.contains_key(&target) || self.all.iter().any(is_other) {
            return self.count(by, standings);
        }
        let standing = standings.of_source(new, self.all.iter());
        self.known.insert(target.clone());
        self.asked.insert(target, standing);
    }

    fn quota(&self, limits: &LimitsConfig) -> AgentQuota {
        let taken = self.asked.values().chain(self.shared.values());
        quota(limits, taken.copied())
    }

    /// Whether a card URL takes no further place.
    fn is_place_known(&self, kind: SourceKind, url: &str) -> bool {
        self.known.contains(&asked_for(kind, url))
    }
}

/// Adds sources to domains, one registration after the other, each as if it were alone and the previous ones were
/// written.
pub struct SourceAdder<'a> {
    context: &'a Context,
    write: &'a Write,
    caller: &'a Caller,
    now: Timestamp,
    /// The coverage of the sources of all these domains.
    standings: SourceCoverage,
    domains: HashMap<i64, KnownSources>,
    pub counts: RegistrationCounts,
}

impl<'a> SourceAdder<'a> {
    /// The caller has locked these domains.
    pub async fn load(
        context: &'a Context,
        write: &'a Write,
        caller: &'a Caller,
        rows: &[domain::Model],
        counts: RegistrationCounts,
        now: Timestamp,
    ) -> Result<Self> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let sources = domains::sources_of(write, &ids).await?;
        let proofs = domains::proofs_of(write, &ids).await?;
        let listed = agents::agents_listed_of(write, &ids, false).await?;
        let account = caller.account.as_ref();
        let ended = match account.filter(|_| !caller.may(Permission::SeeAll)) {
            Some(account) => coverage::ended_registrations(write, &ids, account.id).await?,
            None => Vec::new(),
        };
        let mut adder = Self {
            standings: SourceCoverage::load(write, rows, &sources, now).await?,
            domains: HashMap::new(),
            counts,
            context,
            write,
            caller,
            now,
        };
        let mut by_domain: HashMap<i64, Vec<source::Model>> = HashMap::new();
        for source in sources {
            by_domain.entry(source.domain_id).or_default().push(source);
        }
        let by = registrant(caller, 0, now);
        for row in rows {
            let own = proofs.iter().filter(|proof| proof.domain_id == row.id);
            let own: Vec<proof::Model> = own.cloned().collect();
            let sees_all = caller.may(Permission::SeeAll)
                || is_owner(caller, row, &own, now)
                || caller.is(row.account_id);
            let of_domain = ended.iter().map(|(source, _)| source);
            let of_domain = of_domain.filter(|one| one.domain_id == row.id && !sees_all);
            let cards = of_domain.filter(|source| asks_for_a_card(source));
            let listed = listed.iter().filter(|agent| agent.domain_id == row.id);
            let mut known = KnownSources {
                all: by_domain.remove(&row.id).unwrap_or_default(),
                listed: listed.map(|agent| agent.id).collect(),
                asked: BTreeMap::new(),
                sees_all,
                known: BTreeSet::new(),
                ended: cards.filter_map(target_of).collect(),
                shared: BTreeMap::new(),
            };
            known.count(&by, &adder.standings);
            adder.domains.insert(row.id, known);
        }
        Ok(adder)
    }

    /// Adds the missing sources of a registration, and the caller to the registrants of the existing ones. A refused
    /// registration has written nothing.
    pub async fn add(
        &mut self,
        row: &domain::Model,
        new: &Target,
        approve: bool,
    ) -> Result<AddedSources> {
        let Some(mut known) = self.domains.remove(&row.id) else {
            return Err(AppError::internal("a domain was not loaded".to_owned()));
        };
        let added = self.add_to(&mut known, row, new, approve).await;
        self.domains.insert(row.id, known);
        added
    }

    async fn add_to(
        &mut self,
        known: &mut KnownSources,
        row: &domain::Model,
        new: &Target,
        approve: bool,
    ) -> Result<AddedSources> {
        let account = self.caller.account.as_ref().filter(|_| approve);
        let approve_as = account.map(|account| account.id);
        let mut quota = known.quota(&self.context.config.limits);
        let mut added = AddedSources {
            sees_all: known.sees_all,
            ..AddedSources::default()
        };
        // Only the first place of a domain may be refused, before anything is written: the others are catalogs.
        for (kind, url) in &new.sources {
            let source = source::Model {
                approve_as,
                ..new_source(row.id, *kind, url.clone(), self.now)
            };
            if !kind.is_catalog() && !known.is_place_known(*kind, url) {
                self.take_place(known, &mut quota, &source, row, new)?;
            }
            let same = |one: &&source::Model| one.kind == *kind && one.url == *url;
            match known.all.iter().find(same).cloned() {
                Some(existing) => {
                    self.join(known, *kind, &existing, approve_as, &mut added)
                        .await?;
                }
                None => self.begin(known, *kind, source, &mut added).await?,
            }
        }
        Ok(added)
    }

    /// Adds the caller to the registrants of an existing source.
    async fn join(
        &mut self,
        known: &mut KnownSources,
        kind: SourceKind,
        existing: &source::Model,
        approve_as: Option<Uuid>,
        added: &mut AddedSources,
    ) -> Result<()> {
        let own = registrant(self.caller, existing.id, self.now);
        let others = self.standings.registrants(existing.id);
        let is_own = others.iter().any(|one| is_same(one, &own));
        // Networks are stored to be counted, up to the limit; an account is always stored.
        let is_full = others.len() >= self.context.config.limits.networks_per_source;
        if !is_own {
            self.may_add(known, kind, &existing.url).await?;
        }
        if let (Some(account), None) = (approve_as, existing.agent_id) {
            self.write.source_approve_as(existing.id, account).await?;
        }
        if is_own || (is_full && self.caller.account.is_none()) {
            return Ok(());
        }
        if self.write.registrant_add(own.clone()).await? {
            added.note(kind, &existing.url);
            added.registrants_of.push(existing.clone());
            self.count_card(known, kind);
        }
        self.standings.add_registrant(own.clone());
        known.count(&own, &self.standings);
        Ok(())
    }

    /// Refuses another card source if the caller has reached its limit over all domains. One that already counts is not
    /// refused.
    async fn may_add(&mut self, known: &KnownSources, kind: SourceKind, url: &str) -> Result<()> {
        if kind.is_catalog() || known.ended.contains(&asked_for(kind, url)) {
            return Ok(());
        }
        self.counts
            .check_cards(self.context, self.write, self.caller)
            .await
    }

    fn count_card(&mut self, known: &KnownSources, kind: SourceKind) {
        if !kind.is_catalog() {
            self.counts.added_card(!known.ended.is_empty());
        }
    }

    /// Takes one place of the domain's quota of agents.
    fn take_place(
        &self,
        known: &KnownSources,
        quota: &mut AgentQuota,
        source: &source::Model,
        row: &domain::Model,
        new: &Target,
    ) -> Result<()> {
        let by = registrant(self.caller, 0, self.now);
        // A refusal must not reveal whether others have registered the URL.
        let beside = if known.sees_all {
            known.all.as_slice()
        } else {
            &[]
        };
        let standing = self.standings.of_new(source, &by, beside.iter());
        let refusal = quota.refusal(&row.name, standing);
        if let Some(refusal) = refusal.filter(|_| !self.caller.may(Permission::Administer)) {
            return Err(limit_reached(new, format!("{refusal}.")));
        }
        quota.take(standing);
        Ok(())
    }

    /// Adds a source, with the caller as its first registrant.
    async fn begin(
        &mut self,
        known: &mut KnownSources,
        kind: SourceKind,
        source: source::Model,
        added: &mut AddedSources,
    ) -> Result<()> {
        self.may_add(known, kind, &source.url).await?;
        let source = self.write.source_insert(source).await?;
        let own = registrant(self.caller, source.id, self.now);
        self.write.registrant_add(own.clone()).await?;
        added.note(kind, &source.url);
        added.sources = true;
        self.count_card(known, kind);
        self.standings.add_registrant(own.clone());
        known.all.push(source.clone());
        known.count_new(&source, &own, &self.standings);
        Ok(())
    }
}

/// Whether two registrations are by the same caller.
fn is_same(one: &source_registrant::Model, other: &source_registrant::Model) -> bool {
    (one.account_id, &one.network) == (other.account_id, &other.network)
}

fn limit_reached(new: &Target, told: String) -> AppError {
    AppError {
        members: vec![(new.pointer.into(), told.clone())],
        ..AppError::limit_reached(told)
    }
}

/// The row of the caller's registration of a source.
fn registrant(caller: &Caller, source: i64, now: Timestamp) -> source_registrant::Model {
    let account = caller.account.as_ref();
    source_registrant::Model {
        id: 0,
        source_id: source,
        account_id: account.map(|account| account.id),
        network: caller
            .network
            .filter(|_| account.is_none())
            .map(|network| network.to_string()),
        role: account.map(|account| account.registers_as().into()),
        registered_at: now.0,
    }
}
