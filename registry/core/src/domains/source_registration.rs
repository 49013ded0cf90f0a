//! Adds sources to a domain, and the caller to the registrants of existing sources, within the limits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, source, source_registrant};
use a2a_registry_store::{WriteTransaction, agents, domains, registrants};
use uuid::Uuid;

use crate::admission::coverage::CoverageEvidence;
use crate::config::LimitsConfig;
use crate::context::AppContext;
use crate::domains::domain_access::is_owner_or_disputant;
use crate::domains::registration_limits::RegistrationCounts;
use crate::domains::registration_target::RegistrationTarget;
use crate::error::{AppError, Result};
use crate::sources::domain_agent_quota::{DomainAgentQuota, card_targets, domain_agent_quota};
use crate::sources::{card_target, is_card_source, new_source_row, source_card_url};
use crate::visibility::caller::Caller;

#[derive(Debug, Default)]
pub struct AddedSources {
    /// The first source that the caller had not registered before.
    pub first_new: Option<(SourceKind, String)>,
    pub has_new_source: bool,
    /// The sources of other registrants that the caller has now registered too.
    pub joined_sources: Vec<source::Model>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    pub sees_all: bool,
}

impl AddedSources {
    fn record_first_new(&mut self, kind: SourceKind, url: &str) {
        self.first_new.get_or_insert_with(|| (kind, url.to_owned()));
    }
}

type CardTarget = (bool, String);

/// The card target of a source; `None` for a kind that only a later build knows.
fn source_card_target(source: &source::Model) -> Option<CardTarget> {
    let kind = source.kind.known_value()?;
    Some(card_target(kind, &source.url))
}

/// Maps the card URLs that a domain's sources fetch to their coverage. A source is compared only with catalogs and
/// with sources of the same URL: comparing all of them would take quadratic time for each URL of a bulk, while other
/// writes wait.
fn coverage_by_target(
    sources: &[source::Model],
    evidence: &CoverageEvidence,
) -> BTreeMap<CardTarget, CoverageLevel> {
    let mut by_url: HashMap<&str, Vec<&source::Model>> = HashMap::new();
    for source in sources {
        by_url
            .entry(source_card_url(source))
            .or_default()
            .push(source);
    }
    let listing: BTreeSet<i64> = sources.iter().filter_map(|one| one.catalog_id).collect();
    let catalogs = sources.iter().filter(|one| listing.contains(&one.id));
    let catalogs: Vec<&source::Model> = catalogs.collect();
    card_targets(sources.iter(), |one| {
        let url = source_card_url(one);
        let same = by_url.get(url).into_iter().flatten().copied();
        let others = catalogs.iter().copied();
        let others = others.filter(move |catalog| source_card_url(catalog) != url);
        evidence.source_coverage(one, same.chain(others))
    })
}

/// The targets that a registrant knows to be taken, and those that count twice for it (see [`CountedSources`]);
/// `listed` are the public agents.
fn known_and_shared_targets(
    new_registrant: &source_registrant::Model,
    sources: &[source::Model],
    evidence: &CoverageEvidence,
    listed_agents: &[Uuid],
) -> (BTreeSet<CardTarget>, BTreeMap<CardTarget, CoverageLevel>) {
    let is_listed =
        |one: &source::Model| one.agent_id.is_some_and(|id| listed_agents.contains(&id));
    let is_own = |one: &source::Model| {
        let all = evidence.registrants(one.id);
        all.iter()
            .any(|one| is_same_registrant(one, new_registrant))
    };
    let is_registered_by_others = |one: &source::Model| {
        let all = evidence.registrants(one.id);
        all.is_empty()
            || all
                .iter()
                .any(|one| !is_same_registrant(one, new_registrant))
    };
    let cards = || sources.iter().filter(|one| is_card_source(one));
    let others = cards().filter(|one| is_registered_by_others(one));
    let others: BTreeSet<CardTarget> = others.filter_map(source_card_target).collect();
    let known_sources = cards().filter(|one| is_own(one) || is_listed(one));
    let own = cards().filter(|one| is_own(one) && !is_listed(one));
    let shared = own.filter_map(|one| {
        let target = source_card_target(one).filter(|target| others.contains(target))?;
        Some((
            target,
            evidence.new_source_coverage(one, new_registrant, [].iter()),
        ))
    });
    (
        known_sources.filter_map(source_card_target).collect(),
        shared.collect(),
    )
}

/// The sources of one domain, and how they count for the next registration.
struct CountedSources {
    sources: Vec<source::Model>,
    /// The public agents of the domain.
    listed_agents: Vec<Uuid>,
    /// The card URLs that the sources fetch, with the coverage of each.
    target_coverage: BTreeMap<CardTarget, CoverageLevel>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    sees_all: bool,
    /// The card URLs that the caller knows to be registered: all of them, or for a caller that neither owns the domain
    /// nor registered it first, those that it has registered itself and those of listed agents.
    known_targets: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered and that have ended since. Adding one of them again counts no
    /// more than adding one that has not ended.
    ended_targets: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered and others have too, with the coverage that they would have as
    /// new ones. They count twice, so that the remaining quota does not reveal which URLs others had registered
    /// before.
    shared_targets: BTreeMap<CardTarget, CoverageLevel>,
}

impl CountedSources {
    /// Counts everything again; `new_registrant` is a registration of the caller.
    fn recompute_targets(
        &mut self,
        new_registrant: &source_registrant::Model,
        evidence: &CoverageEvidence,
    ) {
        let all = &self.sources;
        let target_coverage = coverage_by_target(all, evidence);
        (self.known_targets, self.shared_targets) = match self.sees_all {
            true => (target_coverage.keys().cloned().collect(), BTreeMap::new()),
            false => known_and_shared_targets(new_registrant, all, evidence, &self.listed_agents),
        };
        self.known_targets
            .extend(self.ended_targets.iter().cloned());
        self.target_coverage = target_coverage;
    }

    /// Counts a source that was just added. If no other source has its URL, nothing else changes, and it is not
    /// compared with all others: a bulk may add a thousand sources to one domain. For a caller without rights on the
    /// domain, who may add few, a new URL takes as long as one that others have registered.
    fn count_new_source(
        &mut self,
        added: &source::Model,
        new_registrant: &source_registrant::Model,
        evidence: &CoverageEvidence,
    ) {
        let Some(target) = source_card_target(added).filter(|_| is_card_source(added)) else {
            return;
        };
        let is_other = |one: &source::Model| {
            one.id != added.id && source_card_url(one) == source_card_url(added)
        };
        if !self.sees_all
            || self.target_coverage.contains_key(&target)
            || self.sources.iter().any(is_other)
        {
            return self.recompute_targets(new_registrant, evidence);
        }
        let coverage_level = evidence.source_coverage(added, self.sources.iter());
        self.known_targets.insert(target.clone());
        self.target_coverage.insert(target, coverage_level);
    }

    fn agent_quota(&self, limits: &LimitsConfig) -> DomainAgentQuota {
        let taken = self
            .target_coverage
            .values()
            .chain(self.shared_targets.values());
        domain_agent_quota(limits, taken.copied())
    }

    /// Whether a card URL uses no further place of the quota.
    fn is_target_known(&self, kind: SourceKind, url: &str) -> bool {
        self.known_targets.contains(&card_target(kind, url))
    }
}

/// Adds sources to domains, one registration after the other, each as if the previous ones were already written.
pub struct SourceAdder<'a> {
    context: &'a AppContext,
    write: &'a WriteTransaction,
    caller: &'a Caller,
    now: Timestamp,
    /// The coverage of the sources of all these domains.
    evidence: CoverageEvidence,
    domains: HashMap<i64, CountedSources>,
    pub counts: RegistrationCounts,
}

impl<'a> SourceAdder<'a> {
    /// Loads the sources of these domains, which the caller has locked.
    pub async fn load(
        context: &'a AppContext,
        write: &'a WriteTransaction,
        caller: &'a Caller,
        rows: &[domain::Model],
        counts: RegistrationCounts,
        now: Timestamp,
    ) -> Result<Self> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let sources = domains::live_sources_by_domain(write, &ids).await?;
        let proofs = domains::valid_proofs_by_domain(write, &ids).await?;
        let listed_agents = agents::listed_agents_by_domain(write, &ids, false).await?;
        let account = caller.account.as_ref();
        let ended = match account.filter(|_| !caller.has_permission(Permission::SeeAll)) {
            Some(account) => registrants::registered_ended_sources(write, &ids, account.id).await?,
            None => Vec::new(),
        };
        let mut adder = Self {
            evidence: CoverageEvidence::load(write, rows, &sources, now).await?,
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
        let new_registrant = registrant_row(caller, 0, now);
        for row in rows {
            let own = proofs.iter().filter(|proof| proof.domain_id == row.id);
            let own: Vec<proof::Model> = own.cloned().collect();
            let sees_all = caller.has_permission(Permission::SeeAll)
                || is_owner_or_disputant(caller, row, &own, now)
                || caller.is_account(row.account_id);
            let of_domain = ended.iter().map(|(source, _)| source);
            let of_domain = of_domain.filter(|one| one.domain_id == row.id && !sees_all);
            let cards = of_domain.filter(|source| is_card_source(source));
            let listed = listed_agents
                .iter()
                .filter(|agent| agent.domain_id == row.id);
            let mut counted = CountedSources {
                sources: by_domain.remove(&row.id).unwrap_or_default(),
                listed_agents: listed.map(|agent| agent.id).collect(),
                target_coverage: BTreeMap::new(),
                sees_all,
                known_targets: BTreeSet::new(),
                ended_targets: cards.filter_map(source_card_target).collect(),
                shared_targets: BTreeMap::new(),
            };
            counted.recompute_targets(&new_registrant, &adder.evidence);
            adder.domains.insert(row.id, counted);
        }
        Ok(adder)
    }

    /// Adds the missing sources of a registration, and the caller to the registrants of the existing ones. A rejected
    /// registration writes nothing.
    pub async fn add_registration(
        &mut self,
        row: &domain::Model,
        target: &RegistrationTarget,
        approve: bool,
    ) -> Result<AddedSources> {
        let Some(mut counted) = self.domains.remove(&row.id) else {
            return Err(AppError::internal("a domain was not loaded".to_owned()));
        };
        let added = self.add_to_domain(&mut counted, row, target, approve).await;
        self.domains.insert(row.id, counted);
        added
    }

    async fn add_to_domain(
        &mut self,
        counted: &mut CountedSources,
        row: &domain::Model,
        target: &RegistrationTarget,
        approve: bool,
    ) -> Result<AddedSources> {
        let account = self.caller.account.as_ref().filter(|_| approve);
        let approve_as = account.map(|account| account.id);
        let mut quota = counted.agent_quota(&self.context.config().limits);
        let mut added = AddedSources {
            sees_all: counted.sees_all,
            ..AddedSources::default()
        };
        // Only the first source of a registration can be refused, before anything is written: the others are catalogs.
        for (kind, url) in &target.sources {
            let source = source::Model {
                approve_as,
                ..new_source_row(row.id, *kind, url.clone(), self.now)
            };
            if !kind.is_catalog() && !counted.is_target_known(*kind, url) {
                self.take_quota_place(counted, &mut quota, &source, row, target)?;
            }
            let same = |one: &&source::Model| one.kind == *kind && one.url == *url;
            match counted.sources.iter().find(same).cloned() {
                Some(existing) => {
                    self.add_registrant(counted, *kind, &existing, approve_as, &mut added)
                        .await?;
                }
                None => {
                    self.insert_source(counted, *kind, source, &mut added)
                        .await?
                }
            }
        }
        Ok(added)
    }

    /// Adds the caller to the registrants of an existing source.
    async fn add_registrant(
        &mut self,
        counted: &mut CountedSources,
        kind: SourceKind,
        existing: &source::Model,
        approve_as: Option<Uuid>,
        added: &mut AddedSources,
    ) -> Result<()> {
        let own_registrant = registrant_row(self.caller, existing.id, self.now);
        let others = self.evidence.registrants(existing.id);
        let is_own = others
            .iter()
            .any(|one| is_same_registrant(one, &own_registrant));
        // Networks are stored only for counting, up to the limit; an account is always stored.
        let is_full = others.len() >= self.context.config().limits.networks_per_source;
        if !is_own {
            self.check_card_limit(counted, kind, &existing.url).await?;
        }
        if let (Some(account), None) = (approve_as, existing.agent_id) {
            self.write
                .set_source_preapproval(existing.id, account)
                .await?;
        }
        if is_own || (is_full && self.caller.account.is_none()) {
            return Ok(());
        }
        if self.write.insert_registrant(own_registrant.clone()).await? {
            added.record_first_new(kind, &existing.url);
            added.joined_sources.push(existing.clone());
            self.count_added_card(counted, kind);
        }
        self.evidence.add_registrant(own_registrant.clone());
        counted.recompute_targets(&own_registrant, &self.evidence);
        Ok(())
    }

    /// Refuses another card source if the caller has reached its limit over all domains, unless the source already
    /// counts.
    async fn check_card_limit(
        &mut self,
        counted: &CountedSources,
        kind: SourceKind,
        url: &str,
    ) -> Result<()> {
        if kind.is_catalog() || counted.ended_targets.contains(&card_target(kind, url)) {
            return Ok(());
        }
        self.counts
            .check_card_limit(self.context, self.write, self.caller)
            .await
    }

    fn count_added_card(&mut self, counted: &CountedSources, kind: SourceKind) {
        if !kind.is_catalog() {
            self.counts
                .count_added_card(!counted.ended_targets.is_empty());
        }
    }

    /// Takes one place of the domain's agent quota.
    fn take_quota_place(
        &self,
        counted: &CountedSources,
        quota: &mut DomainAgentQuota,
        source: &source::Model,
        row: &domain::Model,
        target: &RegistrationTarget,
    ) -> Result<()> {
        let new_registrant = registrant_row(self.caller, 0, self.now);
        // A refusal must not reveal whether others have registered the URL.
        let compared_sources = if counted.sees_all {
            counted.sources.as_slice()
        } else {
            &[]
        };
        let coverage_level =
            self.evidence
                .new_source_coverage(source, &new_registrant, compared_sources.iter());
        let refusal = quota.limit_message(&row.name, coverage_level);
        if let Some(refusal) =
            refusal.filter(|_| !self.caller.has_permission(Permission::Administer))
        {
            return Err(registration_limit_error(target, format!("{refusal}.")));
        }
        quota.count_agent(coverage_level);
        Ok(())
    }

    /// Adds a source, with the caller as its first registrant.
    async fn insert_source(
        &mut self,
        counted: &mut CountedSources,
        kind: SourceKind,
        source: source::Model,
        added: &mut AddedSources,
    ) -> Result<()> {
        self.check_card_limit(counted, kind, &source.url).await?;
        let source = self.write.insert_source(source).await?;
        let own_registrant = registrant_row(self.caller, source.id, self.now);
        self.write.insert_registrant(own_registrant.clone()).await?;
        added.record_first_new(kind, &source.url);
        added.has_new_source = true;
        self.count_added_card(counted, kind);
        self.evidence.add_registrant(own_registrant.clone());
        counted.sources.push(source.clone());
        counted.count_new_source(&source, &own_registrant, &self.evidence);
        Ok(())
    }
}

/// Whether two registrations are by the same caller.
fn is_same_registrant(first: &source_registrant::Model, second: &source_registrant::Model) -> bool {
    (first.account_id, &first.network) == (second.account_id, &second.network)
}

fn registration_limit_error(target: &RegistrationTarget, detail: String) -> AppError {
    AppError {
        members: vec![(target.pointer.into(), detail.clone())],
        ..AppError::limit_reached(detail)
    }
}

/// Builds the row of the caller's registration of a source.
fn registrant_row(caller: &Caller, source: i64, now: Timestamp) -> source_registrant::Model {
    let account = caller.account.as_ref();
    source_registrant::Model {
        id: 0,
        source_id: source,
        account_id: account.map(|account| account.id),
        network: caller
            .network
            .filter(|_| account.is_none())
            .map(|network| network.to_string()),
        role: account.map(|account| account.registration_role().into()),
        registered_at: now.0,
    }
}
