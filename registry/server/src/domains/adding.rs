//! Adds sources to a domain, and the caller to the registrants of existing ones, within the limits.

use std::collections::BTreeMap;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source, source_registrant};
use a2a_registry_store::{Write, coverage, domains};
use uuid::Uuid;

use crate::admission::coverage::SourceCoverage;
use crate::caller::Caller;
use crate::context::Context;
use crate::domains::target::Target;
use crate::error::{AppError, ErrorKind};
use crate::sources::quota::{AgentQuota, cards_asked_for, quota};
use crate::sources::{asked_for, new_source};

/// The sources that a registration has added.
#[derive(Debug, Default)]
pub(crate) struct AddedSources {
    /// The first source that the caller had not registered before.
    pub(crate) first: Option<(SourceKind, String)>,
    /// Whether any source is new.
    pub(crate) sources: bool,
    /// The sources of other registrants that the caller has registered too.
    pub(crate) registrants_of: Vec<source::Model>,
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
    let mut quota = quota(&context.config.limits, adding.asked.values().copied());
    let mut added = AddedSources::default();
    for (kind, url) in &new.sources {
        let same = |one: &&source::Model| one.kind == *kind && one.url == *url;
        if let Some(known) = adding.all.iter().find(same) {
            adding.join(*kind, known, &mut added).await?;
            continue;
        }
        let source = source::Model {
            approve_as: adding.approve_as,
            ..new_source(row.id, *kind, url.clone(), now)
        };
        if !kind.is_catalog() && !adding.asked.contains_key(&asked_for(*kind, url)) {
            adding.take_place(&mut quota, &source, new)?;
        }
        adding.begin(*kind, source, &mut added).await?;
    }
    Ok(added)
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
    asked: BTreeMap<(bool, String), CoverageLevel>,
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
        })
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
        // Networks are stored to be counted, and no more of them than the limit; an account is always stored.
        let limit = self.context.config.limits.networks_per_source;
        if self.caller.account.is_none() && others.len() >= limit {
            return Ok(());
        }
        may_add(self.context, self.write, self.caller, kind).await?;
        if self.write.registrant_add(own).await? {
            added.note(kind, &known.url);
            added.registrants_of.push(known.clone());
        }
        Ok(())
    }

    /// Takes one place of the domain's quota of agents.
    fn take_place(
        &self,
        quota: &mut AgentQuota,
        source: &source::Model,
        new: &Target,
    ) -> Result<(), AppError> {
        let by = registrant(self.caller, 0, self.now);
        let standing = self.standings.of_new(source, &by, self.all.iter());
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
        may_add(self.context, self.write, self.caller, kind).await?;
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
