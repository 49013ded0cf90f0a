//! Registration of a domain, or of another source of one.

use std::collections::BTreeSet;

use a2a_crawler::guard::Domain;
use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::Action;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Write, agents, domains, versions};
use serde_json::json;

use crate::admission::covering::follow_coverage;
use crate::caller::Caller;
use crate::commit::admitting::admitting_set;
use crate::commit::approver::{Approver, SYSTEM};
use crate::commit::ledger::Ledger;
use crate::commit::publish::{after_write, searchable};
use crate::commit::state::state_of;
use crate::commit::touched::Touched;
use crate::config::{GovernanceConfig, Registration as WhoRegisters};
use crate::context::Context;
use crate::domains::acts::refuse_opted_out;
use crate::domains::adding::{AddedSources, add_sources};
use crate::domains::target::{Target, target};
use crate::domains::view::domain_view;
use crate::domains::visible_part::recorded_view;
use crate::error::{AppError, ErrorKind};
use crate::ownership::challenges::ensure_challenge;
use crate::ownership::{disputed, is_disputed, is_provable};
use crate::sources::{new_domain, source_name};

/// Registers a domain's well-known paths and catalogs, or one card URL. Its first visit is due at once. A repeated
/// registration adds missing sources, and gets the same response.
///
/// # Errors
/// `Invalid` unless exactly one of the two is given; `TargetRefused` by the guard; `DomainDenied` by `deny_domains`; `PolicyDenied`;
/// `Conflict` while it is disputed; `LimitReached`; `Unauthenticated` or `Forbidden` if the caller may not register.
pub async fn register(
    context: &Context,
    caller: &Caller,
    what: &Registration,
) -> Result<DomainView, AppError> {
    may_register(context, caller, what)?;
    let new = target(context, what)?;
    refuse_denied(context, &new.domain.name)?;
    refuse_by_policy(context, caller, &new.domain.name).await?;
    let now = context.now();
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let row = domain_of(context, &write, caller, &new.domain, now).await?;
    let added = add_sources(context, &write, caller, &row, &new, what.approve, now).await?;
    if let Some((kind, url)) = &added.first {
        let account = caller.account.as_ref();
        let actor = account.map_or("anyone", |account| account.name.as_str());
        let data = json!({"kind": kind, "url": url});
        ledger.event(EventKind::DomainRegistered, &row.name, actor, data);
    }
    if added.sources {
        write
            .domain_make_visit_due(row.id, now.0.max(row.not_before))
            .await?;
    }
    // Written before the agents are updated, which reads them from the database.
    let updated = update_agents(context, &write, &row, &added, now).await?;
    if what.approve {
        approve_pending(
            &context.config.governance,
            &write,
            &mut ledger,
            caller,
            &row,
            &new,
        )
        .await?;
    }
    if let Some(account) = &caller.account
        && is_provable(&row)
    {
        ensure_challenge(context, &write, row.id, account.id).await?;
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &updated);
    after_write(context, &touched);
    context.wake.visits.notify_one();
    context.wake.checks.notify_one();
    // Others would see by the wait for the index that the URL already belongs to a listed agent, hidden from them or not.
    if added.sees_all {
        searchable(context, &[&updated, &touched]).await;
    }
    registered_view(context, caller, row.id, &new).await
}

/// The domain as the response to a registration shows it: of its sources only the caller's own.
async fn registered_view(
    context: &Context,
    caller: &Caller,
    domain: i64,
    new: &Target,
) -> Result<DomainView, AppError> {
    let mut view = domain_view(context, caller, domain).await?;
    let all = view.sources.len();
    view.sources.retain(|source| source.own);
    view.complete &= view.sources.len() == all;
    if caller.account.is_none() {
        view.sources = anonymous_view(context, domain, new).await?;
    }
    Ok(view)
}

/// The sources of an anonymous registration, without the results of their fetches.
async fn anonymous_view(
    context: &Context,
    domain: i64,
    new: &Target,
) -> Result<Vec<SourceView>, AppError> {
    let sources = domains::sources_of(&context.store, &[domain]).await?;
    let anonymous_view = |row: &&source::Model| {
        let mut all = new.sources.iter();
        all.any(|(kind, url)| row.kind == *kind && row.url == *url)
    };
    let view = |source: &source::Model| SourceView {
        id: source_name(context, source),
        ..recorded_view(source, context.now())
    };
    Ok(sources.iter().filter(anonymous_view).map(view).collect())
}

/// Updates the agents of a domain after another caller has registered some of its sources too: their coverage, and who
/// may see them. For a new source there is nothing to update, and that is found out for a stranger all the same: the time of the
/// response must not tell which URLs others have registered.
async fn update_agents(
    context: &Context,
    write: &Write,
    row: &domain::Model,
    added: &AddedSources,
    now: Timestamp,
) -> Result<Touched, AppError> {
    let sources = &added.registrants_of;
    let is_new_to_stranger = added.sources && !added.sees_all;
    if sources.is_empty() && !is_new_to_stranger {
        return Ok(Touched::default());
    }
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

fn may_register(context: &Context, caller: &Caller, what: &Registration) -> Result<(), AppError> {
    let open = context.config.governance.registration == WhoRegisters::Open;
    if !open || caller.account.is_some() {
        caller.demand(Permission::Register)?;
    }
    if what.approve && !caller.may(Permission::Approve) {
        return Err(AppError::new(
            ErrorKind::Forbidden,
            "Only a curator may approve with the registration.",
        ));
    }
    if what.approve && !context.config.governance.registrant_may_approve(None) {
        return Err(AppError::new(
            ErrorKind::Forbidden,
            "This registry wants others to approve (`governance.four_eyes`, `governance.deciders`): register without approving.",
        ));
    }
    Ok(())
}

fn refuse_denied(context: &Context, name: &str) -> Result<(), AppError> {
    if context.rules.denies(name) {
        return Err(AppError::new(
            ErrorKind::DomainDenied,
            format!("{name} is on this registry's list of denied domains (`deny_domains`)."),
        ));
    }
    Ok(())
}

/// Refuses what no policy permits the caller to register.
async fn refuse_by_policy(context: &Context, caller: &Caller, name: &str) -> Result<(), AppError> {
    let set = admitting_set(context, &context.store).await?;
    let (principal, matches) = (caller.principal(), set.matches_domain(name));
    let waived = BTreeSet::new();
    let verdict = set.verdict(Action::Register, &principal, &matches, &waived);
    let tried = set.would_change(Action::Register, &principal, &matches, &waived, &verdict);
    let day = context.now().day();
    context
        .dry_runs
        .note(&set, Action::Register, name, &principal, &tried, day);
    if verdict.allowed {
        return Ok(());
    }
    let by = match caller.may(Permission::SeeAll) && !verdict.policies.is_empty() {
        true => format!(" ({})", verdict.policies.join(", ")),
        false => String::new(),
    };
    Err(AppError::new(
        ErrorKind::PolicyDenied,
        format!("The policies of this registry do not let you register {name}{by}; ask its admin."),
    ))
}

/// The registered domain, or a new one. Refuses a domain that accepts no registration.
async fn domain_of(
    context: &Context,
    write: &Write,
    caller: &Caller,
    domain: &Domain,
    now: Timestamp,
) -> Result<domain::Model, AppError> {
    let Some(row) = domains::domain_by_name(write, &domain.name).await? else {
        return begin_domain(context, write, caller, domain, now).await;
    };
    refuse_opted_out(&row)?;
    if is_disputed(&row)? && !caller.may(Permission::Curate) {
        return Err(disputed(&row));
    }
    Ok(row)
}

async fn begin_domain(
    context: &Context,
    write: &Write,
    caller: &Caller,
    domain: &Domain,
    now: Timestamp,
) -> Result<domain::Model, AppError> {
    if let Some(account) = &caller.account
        && !account.may(Permission::Administer)
    {
        let limit = context.config.limits.domains_per_account;
        if domains::domain_count(write, account.id).await? >= limit {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!("This account has reached its limit of {limit} domains."),
            ));
        }
    }
    // A deleted domain that is registered again keeps the spacing of its last visit.
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

/// Approves the waiting newest card of a known agent, for a registration with `--approve`.
async fn approve_pending(
    governance: &GovernanceConfig,
    write: &Write,
    ledger: &mut Ledger<'_>,
    caller: &Caller,
    row: &domain::Model,
    new: &Target,
) -> Result<(), AppError> {
    let account = caller.demand(Permission::Approve)?;
    let sources = domains::sources_of(write, &[row.id]).await?;
    let anonymous_view = |one: &source::Model| {
        let same = |(kind, url): &(SourceKind, String)| one.kind == *kind && one.url == *url;
        new.sources.iter().any(same)
    };
    let known = sources.iter().filter(|one| anonymous_view(one));
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
    // A rejected first card has no open review, but can be approved now.
    let Some(version) = asked.or(state.agent.newest_version.filter(|_| rejected)) else {
        return Ok(());
    };
    let class = match &state.open_review {
        Some(question) => question.change_class()?,
        None => None,
    };
    if !governance.registrant_may_approve(class) {
        return Ok(());
    }
    let Some(key) = versions::version_keys(write, &[version]).await?.pop() else {
        return Ok(());
    };
    let by = Approver::person(account, &state, "approved with the registration");
    ledger.approve(&mut state, &key, class, &by);
    Ok(())
}
