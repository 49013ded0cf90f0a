//! Adds sources to a domain, and the caller to the registrants of existing ones, within the limits.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source, source_registrant};
use a2a_registry_store::{Write, agents, coverage, domains};
use uuid::Uuid;

use crate::admission::coverage::SourceCoverage;
use crate::caller::Caller;
use crate::context::Context;
use crate::domains::detail_level::is_owner;
use crate::domains::target::Target;
use crate::error::{AppError, ErrorKind};
use crate::sources::quota::{AgentQuota, cards_asked_for, quota};
use crate::sources::{asked_for, asks_for_a_card, new_source};

/// The sources that a registration has added.
#[derive(Debug, Default)]
pub(crate) struct AddedSources {
    /// The first source that the caller had not registered before.
    pub(crate) first: Option<(SourceKind, String)>,
    /// Whether any source is new.
    pub(crate) sources: bool,
    /// The sources of other registrants that the caller has registered too.
    pub(crate) registrants_of: Vec<source::Model>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    pub(crate) sees_all: bool,
}

impl AddedSources {
    fn note(&mut self, kind: SourceKind, url: &str) {
        self.first.get_or_insert_with(|| (kind, url.to_owned()));
    }
}

/// Adds the missing sources, and the caller to the registrants of the existing ones.
///
/// # Errors
/// `LimitReached`.
pub(crate) async fn add_sources(
    context: &Context,
    write: &Write,
    caller: &Caller,
    row: &domain::Model,
    new: &Target,
    approve: bool,
    now: Timestamp,
) -> Result<AddedSources, AppError> {
    let adding = SourceAdder::load(context, write, caller, row, approve, now).await?;
    let mut quota = adding.quota();
    let mut added = AddedSources {
        sees_all: adding.sees_all,
        ..AddedSources::default()
    };
    for (kind, url) in &new.sources {
        let source = source::Model {
            approve_as: adding.approve_as,
            ..new_source(row.id, *kind, url.clone(), now)
        };
        if !kind.is_catalog() && !adding.is_place_known(*kind, url) {
            adding.take_place(&mut quota, &source, new)?;
        }
        let same = |one: &&source::Model| one.kind == *kind && one.url == *url;
        if let Some(known) = adding.all.iter().find(same) {
            adding.join(*kind, known, &mut added).await?;
            continue;
        }
        adding.begin(*kind, source, &mut added).await?;
    }
    Ok(added)
}

/// The target of a card source (see [`asked_for`]).
type CardTarget = (bool, String);

/// The target of a source; `None` for a kind that only a later build knows.
fn target_of(source: &source::Model) -> Option<CardTarget> {
    let kind = source.kind.known()?;
    Some(asked_for(kind, &source.url))
}

/// What of the taken places a registrant knows, and what counts twice for it (see [`SourceAdder`]); `listed` are the agents that
/// everybody finds.
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

/// The card URLs that a caller who does not see everything has registered and that have ended since.
async fn ended_targets(
    write: &Write,
    caller: &Caller,
    row: &domain::Model,
    sees_all: bool,
) -> Result<BTreeSet<CardTarget>, AppError> {
    let Some(account) = caller.account.as_ref().filter(|_| !sees_all) else {
        return Ok(BTreeSet::new());
    };
    let ended = coverage::ended_registrations(write, &[row.id], account.id).await?;
    let cards = ended.iter().map(|(source, _)| source);
    let cards = cards.filter(|source| asks_for_a_card(source));
    Ok(cards.filter_map(target_of).collect())
}

/// The state of a domain before sources are added to it.
struct SourceAdder<'a> {
    context: &'a Context,
    write: &'a Write,
    caller: &'a Caller,
    row: &'a domain::Model,
    /// The account that approves the first cards with its registration.
    approve_as: Option<Uuid>,
    now: Timestamp,
    /// The sources of the domain, with their coverage.
    all: Vec<source::Model>,
    standings: SourceCoverage,
    /// The card URLs that they fetch, with the coverage of each.
    asked: BTreeMap<CardTarget, CoverageLevel>,
    /// Whether the caller owns the domain, registered it first or sees everything.
    sees_all: bool,
    /// The card URLs of which the caller knows that they are registered: all of them, or for whoever neither owns the domain
    /// nor registered it first those that it has registered itself and those of listed agents.
    known: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered and that have ended since. Adding one again costs as little as adding one
    /// again that has not ended.
    ended: BTreeSet<CardTarget>,
    /// The card URLs that such a caller has registered although others have too, with the coverage that they would have as
    /// new ones. They count twice: what was registered before must not leave the caller more places than what was not.
    shared: BTreeMap<CardTarget, CoverageLevel>,
}

impl<'a> SourceAdder<'a> {
    async fn load(
        context: &'a Context,
        write: &'a Write,
        caller: &'a Caller,
        row: &'a domain::Model,
        approve: bool,
        now: Timestamp,
    ) -> Result<Self, AppError> {
        let all = domains::sources_of(write, &[row.id]).await?;
        let standings = SourceCoverage::load(write, [row], &all, now).await?;
        let asked = cards_asked_for(all.iter(), |one| standings.of_source(one, all.iter()));
        let account = caller.account.as_ref().filter(|_| approve);
        let proofs = domains::proofs_of(write, &[row.id]).await?;
        let listed = agents::agents_listed_of(write, row.id, false).await?;
        let listed: Vec<Uuid> = listed.iter().map(|agent| agent.id).collect();
        let sees_all = caller.may(Permission::SeeAll) || is_owner(caller, row, &proofs, now);
        let sees_all = sees_all || caller.is(row.account_id);
        let (mut known, shared): (BTreeSet<CardTarget>, _) = match sees_all {
            true => (asked.keys().cloned().collect(), BTreeMap::new()),
            false => places_of(&registrant(caller, 0, now), &all, &standings, &listed),
        };
        let ended = ended_targets(write, caller, row, sees_all).await?;
        known.extend(ended.iter().cloned());
        Ok(Self {
            context,
            write,
            caller,
            row,
            approve_as: account.map(|account| account.id),
            now,
            all,
            standings,
            asked,
            sees_all,
            known,
            ended,
            shared,
        })
    }

    /// The places that are taken, as the caller may know of them.
    fn quota(&self) -> AgentQuota {
        let taken = self.asked.values().chain(self.shared.values());
        quota(&self.context.config.limits, taken.copied())
    }

    /// Whether a card URL takes no further place.
    fn is_place_known(&self, kind: SourceKind, url: &str) -> bool {
        self.known.contains(&asked_for(kind, url))
    }

    /// Adds the caller to the registrants of an existing source.
    async fn join(
        &self,
        kind: SourceKind,
        known: &source::Model,
        added: &mut AddedSources,
    ) -> Result<(), AppError> {
        if let (Some(account), None) = (self.approve_as, known.agent_id) {
            self.write.source_approve_as(known.id, account).await?;
        }
        let others = self.standings.registrants(known.id);
        let own = registrant(self.caller, known.id, self.now);
        if others.iter().any(|one| is_same(one, &own)) {
            return Ok(());
        }
        self.may_add(kind, &known.url).await?;
        // Networks are stored to be counted, and no more of them than the limit; an account is always stored.
        let limit = self.context.config.limits.networks_per_source;
        if self.caller.account.is_none() && others.len() >= limit {
            return Ok(());
        }
        if self.write.registrant_add(own).await? {
            added.note(kind, &known.url);
            added.registrants_of.push(known.clone());
        }
        Ok(())
    }

    /// Refuses one more card source if the caller has reached its limit over all domains. One that counts already is not
    /// refused.
    async fn may_add(&self, kind: SourceKind, url: &str) -> Result<(), AppError> {
        if self.ended.contains(&asked_for(kind, url)) {
            return Ok(());
        }
        may_add(self.context, self.write, self.caller, kind).await
    }

    /// Takes one place of the domain's quota of agents.
    fn take_place(
        &self,
        quota: &mut AgentQuota,
        source: &source::Model,
        new: &Target,
    ) -> Result<(), AppError> {
        let by = registrant(self.caller, 0, self.now);
        // What the URL is to others must not show in a refusal.
        let beside = if self.sees_all {
            self.all.as_slice()
        } else {
            &[]
        };
        let standing = self.standings.of_new(source, &by, beside.iter());
        let refusal = quota.refusal(&self.row.name, standing);
        if let Some(refusal) = refusal.filter(|_| !self.caller.may(Permission::Administer)) {
            return Err(limit_reached(new, format!("{refusal}.")));
        }
        quota.take(standing);
        Ok(())
    }

    /// Adds a source, with the caller as its first registrant.
    async fn begin(
        &self,
        kind: SourceKind,
        source: source::Model,
        added: &mut AddedSources,
    ) -> Result<(), AppError> {
        self.may_add(kind, &source.url).await?;
        let source = self.write.source_insert(source).await?;
        let own = registrant(self.caller, source.id, self.now);
        self.write.registrant_add(own).await?;
        added.note(kind, &source.url);
        added.sources = true;
        Ok(())
    }
}

/// Refuses one more card source if the caller has reached its limit over all domains.
async fn may_add(
    context: &Context,
    write: &Write,
    caller: &Caller,
    kind: SourceKind,
) -> Result<(), AppError> {
    if kind.is_catalog() || caller.may(Permission::Administer) {
        return Ok(());
    }
    let limits = &context.config.limits;
    if let Some(account) = &caller.account {
        let limit = limits.sources_per_account;
        if coverage::sources_registered(write, account.id).await? >= limit {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!("This account has reached its limit of {limit} card sources."),
            ));
        }
    } else if let Some(network) = caller.network {
        let limit = limits.pending_nominations;
        let network = network.to_string();
        if coverage::nominations_pending(write, &network).await? >= limit {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!(
                    "{limit} cards that were named from your network wait for a curator, as many \
                     as may. Use a token, or wait for a decision."
                ),
            ));
        }
    }
    Ok(())
}

/// Whether two registrations are by the same caller.
fn is_same(one: &source_registrant::Model, other: &source_registrant::Model) -> bool {
    (one.account_id, &one.network) == (other.account_id, &other.network)
}

fn limit_reached(new: &Target, told: String) -> AppError {
    AppError {
        members: vec![(new.pointer.into(), told.clone())],
        ..AppError::new(ErrorKind::LimitReached, told)
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
