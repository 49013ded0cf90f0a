//! Registering a domain, or a further source of one.

use a2a_crawler::guard::{Domain, GuardRefusal, normalised};
use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source, source_registrant};
use a2a_registry_store::{Write, agents, coverage, domains, versions};
use serde_json::json;

use crate::admission::coverage::Standings;
use crate::admission::covering::follow_coverage;
use crate::caller::Caller;
use crate::commit::ledger::{Ledger, SYSTEM, Touched};
use crate::commit::shown::{after_write, searchable};
use crate::commit::state::{person, state_of};
use crate::config::Registration as WhoRegisters;
use crate::context::Context;
use crate::domains::acts::refuse_opted_out;
use crate::domains::part::unasked;
use crate::domains::view::{Sight, domain_view};
use crate::error::{AppError, ErrorKind};
use crate::ownership::challenges::challenge_where_none;
use crate::ownership::{disputed, is_disputed, is_provable};
use crate::sources::places::{cards_asked_for, places};
use crate::sources::{asked_for, catalogs_of, is_well_known, new_domain, new_source, source_name};

/// What is to be asked of a domain: kinds, and what the database keeps as their URLs. The first one is what was
/// named.
struct Target {
    domain: Domain,
    sources: Vec<(SourceKind, String)>,
    pointer: &'static str,
}

/// Registers a domain's well-known paths and catalogs, or one card URL. Its first visit is due at once. What is
/// registered already gets the missing sources, and the same answer.
///
/// # Errors
/// `Invalid` unless exactly one of the two is given; `TargetRefused` by the guard; `DomainDenied`
/// by `deny_domains`; `Conflict` while it is disputed; `LimitReached`; `Unauthenticated` and `Forbidden` by who
/// asks.
pub async fn register(
    context: &Context,
    caller: &Caller,
    what: &Registration,
) -> Result<DomainView, AppError> {
    may_register(context, caller)?;
    if what.approve && !caller.may(Permission::Curate) {
        return Err(AppError::new(
            ErrorKind::Forbidden,
            "Only a curator or an admin may approve with the registration.",
        ));
    }
    let new = target(context, what)?;
    if context.rules.denies(&new.domain.name) {
        return Err(AppError::new(
            ErrorKind::DomainDenied,
            format!(
                "The operator of this registry does not admit {}.",
                new.domain.name
            ),
        ));
    }
    let now = context.now();
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let row = match domains::domain_by_name(&write, &new.domain.name).await? {
        Some(row) => {
            refuse_opted_out(&row)?;
            if is_disputed(&row)? && !caller.may(Permission::Curate) {
                return Err(disputed(&row));
            }
            row
        }
        None => begin_domain(context, &write, caller, &new.domain, now).await?,
    };
    let added = add_sources(context, &write, caller, &row, &new, what.approve, now).await?;
    if let Some((kind, url)) = &added.first {
        let actor = caller
            .account
            .as_ref()
            .map_or("anyone", |account| account.name.as_str());
        let data = json!({"kind": kind, "url": url});
        ledger.event(EventKind::DomainRegistered, &row.name, actor, data);
    }
    if added.sources {
        write
            .domain_make_visit_due(row.id, now.0.max(row.not_before))
            .await?;
    }
    let regarded = if added.registrants_of.is_empty() {
        Touched::default()
    } else {
        // Written before what follows, which finds the agents as they are then.
        regard(context, &write, &row, &added.registrants_of, now).await?
    };
    if what.approve {
        approve_pending(&write, &mut ledger, caller, &row, &new).await?;
    }
    if let Some(account) = &caller.account
        && is_provable(&row)
    {
        challenge_where_none(context, &write, row.id, account.id).await?;
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &regarded);
    after_write(context, &touched);
    context.wake.visits.notify_one();
    context.wake.checks.notify_one();
    searchable(context, &[&regarded, &touched]).await;
    let mut view = domain_view(context, caller, row.id).await?;
    let all = view.sources.len();
    view.sources.retain(|source| source.own);
    view.complete &= view.sources.len() == all;
    if caller.account.is_none() {
        view.sources = named(context, row.id, &new).await?;
    }
    Ok(view)
}

/// What somebody without an account has named, and nothing of what became of it.
async fn named(context: &Context, domain: i64, new: &Target) -> Result<Vec<SourceView>, AppError> {
    let sources = domains::sources_of(&context.store, &[domain]).await?;
    let named = |row: &&source::Model| {
        let mut all = new.sources.iter();
        all.any(|(kind, url)| row.kind == *kind && row.url == *url)
    };
    let view = |source: &source::Model| SourceView {
        id: source_name(context, source),
        next_due: None,
        ..unasked(source, context.now(), Sight::Outside)
    };
    Ok(sources.iter().filter(named).map(view).collect())
}

/// Lets the agents of a domain follow that somebody else has registered some of its sources too: coverage, and who
/// may see them.
async fn regard(
    context: &Context,
    write: &Write,
    row: &domain::Model,
    sources: &[source::Model],
    now: Timestamp,
) -> Result<Touched, AppError> {
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    follow_coverage(context, write, &mut ledger, row).await?;
    for source in sources {
        if let Some(agent) = source.agent_id {
            let data = json!({"source": source.url, "registered": true});
            ledger.agent_event(EventKind::AgentUpdated, agent, SYSTEM, data);
        }
    }
    ledger.write(write).await
}

fn may_register(context: &Context, caller: &Caller) -> Result<(), AppError> {
    let open = context.config.governance.registration == WhoRegisters::Open;
    if open && caller.account.is_none() {
        return Ok(());
    }
    caller.demand(Permission::Register).map(|_| ())
}

/// What is to be asked, judged by the guard before anything is stored.
fn target(context: &Context, what: &Registration) -> Result<Target, AppError> {
    match (&what.domain, &what.card_url) {
        (Some(domain), None) => {
            let refused = |refusal| refused("/domain", &refusal);
            let domain = context.guard.check_domain(domain.trim()).map_err(refused)?;
            let mut sources = vec![(SourceKind::WellKnown, domain.origin.to_string())];
            sources.extend(catalogs_of(&domain.origin));
            Ok(Target {
                domain,
                sources,
                pointer: "/domain",
            })
        }
        (None, Some(url)) => {
            let refused = |refusal| refused("/card_url", &refusal);
            let url = context.guard.check_url(url.trim()).map_err(refused)?;
            let url = normalised(url);
            let domain = Domain::of(&url);
            let source = if is_well_known(&url) {
                (SourceKind::WellKnown, domain.origin.to_string())
            } else {
                (SourceKind::Url, url.into())
            };
            Ok(Target {
                domain,
                sources: vec![source],
                pointer: "/card_url",
            })
        }
        _ => Err(AppError::invalid(
            "",
            "Give exactly one of `domain` and `card_url`.",
        )),
    }
}

async fn begin_domain(
    context: &Context,
    write: &Write,
    caller: &Caller,
    domain: &Domain,
    now: Timestamp,
) -> Result<domain::Model, AppError> {
    if let Some(account) = &caller.account
        && !account.role.may(Permission::Administer)
    {
        let limit = context.config.limits.domains_per_account;
        if domains::domain_count(write, account.id).await? >= limit {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!("This account has registered {limit} domains, as many as it may."),
            ));
        }
    }
    // Deleted and named again, a host rests as it would have.
    let rested = domains::rest_of_deleted(write, &domain.name).await?;
    let rests_until = rested.map_or(now.0, |rest| rest.max(now.0));
    let row = domain::Model {
        account_id: caller.account.as_ref().map(|account| account.id),
        nominated_from: caller.network.map(|network| network.to_string()),
        not_before: rests_until,
        visit_due_at: Some(rests_until),
        ..new_domain(&domain.name, domain.origin.scheme(), now)
    };
    Ok(write.domain_insert(row).await?)
}

/// Adds the sources that are missing, and the caller to those who have registered what is there.
async fn add_sources(
    context: &Context,
    write: &Write,
    caller: &Caller,
    row: &domain::Model,
    new: &Target,
    approve: bool,
    now: Timestamp,
) -> Result<Added, AppError> {
    let all = domains::sources_of(write, &[row.id]).await?;
    let standings = Standings::load(write, [row], &all).await?;
    let approve_as = caller
        .account
        .as_ref()
        .filter(|_| approve)
        .map(|account| account.id);
    let asked = cards_asked_for(all.iter(), |one| standings.of_source(one, all.iter()));
    let mut places = places(&context.config.limits, asked.values().copied());
    let mut added = Added::default();
    for (kind, url) in &new.sources {
        let by = |source| registrant(caller, source, now);
        if let Some(known) = all.iter().find(|one| one.kind == *kind && one.url == *url) {
            if let (Some(account), None) = (approve_as, known.agent_id) {
                write.source_approve_as(known.id, account).await?;
            }
            let others = standings.registrants(known.id);
            let same = by(known.id);
            if others.iter().any(|one| is_same(one, &same)) {
                continue;
            }
            // Networks are noted to be counted, and no more of them than that takes; an account is never kept out.
            let limit = context.config.limits.networks_per_source;
            if caller.account.is_none() && others.len() >= limit {
                continue;
            }
            may_add(context, write, caller, *kind).await?;
            if write.registrant_add(same).await? {
                added.first.get_or_insert_with(|| (*kind, url.clone()));
                added.registrants_of.push(known.clone());
            }
            continue;
        }
        let source = source::Model {
            approve_as,
            ..new_source(row.id, *kind, url.clone(), now)
        };
        if !kind.is_catalog() && !asked.contains_key(&asked_for(*kind, url)) {
            let standing = standings.of_new(&source, &registrant(caller, 0, now), all.iter());
            let refusal = places.refusal(&row.name, standing);
            if let Some(refusal) = refusal.filter(|_| !caller.may(Permission::Administer)) {
                return Err(limit_reached(new, format!("{refusal}.")));
            }
            places.take(standing);
        }
        may_add(context, write, caller, *kind).await?;
        let source = write.source_insert(source).await?;
        write.registrant_add(by(source.id)).await?;
        added.first.get_or_insert_with(|| (*kind, url.clone()));
        added.sources = true;
    }
    Ok(added)
}

/// Whether the caller may register one card source more, on whatever domain.
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
                format!("This account has registered {limit} card sources, as many as it may."),
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

/// `--approve` for a source whose agent is known already: its newest card, where it waits, is
/// approved on the caller's word.
async fn approve_pending(
    write: &Write,
    ledger: &mut Ledger<'_>,
    caller: &Caller,
    row: &domain::Model,
    new: &Target,
) -> Result<(), AppError> {
    let account = caller.demand(Permission::Curate)?;
    let sources = domains::sources_of(write, &[row.id]).await?;
    let named = |one: &source::Model| {
        let same = |(kind, url): &(SourceKind, String)| one.kind == *kind && one.url == *url;
        new.sources.iter().any(same)
    };
    let known = sources.iter().filter(|one| named(one));
    let Some(agent) = known.filter_map(|source| source.agent_id).next() else {
        return Ok(());
    };
    if agents::agents_by_ids(write, &[agent]).await?.is_empty() {
        return Ok(());
    }
    let mut state = state_of(write, agent).await?;
    let rejected = state.agent.lifecycle == Lifecycle::Rejected;
    let asked = state
        .open_review
        .as_ref()
        .map(|question| question.version_id);
    // A first card that was rejected has no open question any more, but can be thought over.
    let Some(version) = asked.or(state.agent.newest_version.filter(|_| rejected)) else {
        return Ok(());
    };
    let class = match &state.open_review {
        Some(question) => question.change_class()?,
        None => None,
    };
    let Some(key) = versions::version_keys(write, &[version]).await?.pop() else {
        return Ok(());
    };
    let by = person(account, &state, "approved with the registration");
    ledger.approve(&mut state, &key, class, &by);
    Ok(())
}

/// What a registration has added.
#[derive(Debug, Default)]
struct Added {
    /// The first source that the caller had not registered before.
    first: Option<(SourceKind, String)>,
    /// Whether any source is new.
    sources: bool,
    /// The sources that others have registered before.
    registrants_of: Vec<source::Model>,
}

/// Whether two registrations are the same caller's.
fn is_same(one: &source_registrant::Model, other: &source_registrant::Model) -> bool {
    (one.account_id, &one.network) == (other.account_id, &other.network)
}

fn limit_reached(new: &Target, told: String) -> AppError {
    AppError {
        members: vec![(new.pointer.into(), told.clone())],
        ..AppError::new(ErrorKind::LimitReached, told)
    }
}

/// That the caller has registered a source.
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
        role: account.map(|account| account.role.into()),
        registered_at: now.0,
    }
}

fn refused(pointer: &str, refusal: &GuardRefusal) -> AppError {
    AppError {
        members: vec![(pointer.into(), refusal.to_string())],
        ..AppError::new(ErrorKind::TargetRefused, refusal.to_string())
    }
}
