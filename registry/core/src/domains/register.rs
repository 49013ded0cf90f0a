//! Registration of a domain, or of another source of one.

use std::collections::BTreeSet;

use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, PolicySet};
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;

use crate::commit::admitting::admitting_set;
use crate::commit::publish::searchable;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::domains::register_batch::{AdmittedRegistration, write_batch};
use crate::domains::target::{Target, target};
use crate::domains::view::domain_view;
use crate::domains::visible_part::recorded_view;
use crate::error::{AppError, ErrorKind, Result};
use crate::sources::source_name;
use crate::visibility::caller::Caller;

/// Registers a domain's well-known paths and catalogs, or one card URL. Its first visit is due at once. A repeated
/// registration adds missing sources, and gets the same response.
pub async fn register(
    context: &Context,
    caller: &Caller,
    what: &Registration,
) -> Result<DomainView> {
    caller.demand_registration(&context.config.governance)?;
    let admitted = admit(context, caller, what)?;
    let set = admitting_set(context, &context.store).await?;
    refuse_by_policy(context, caller, &set, &admitted)?;
    let batch = std::slice::from_ref(&admitted);
    let written = write_batch(context, caller, batch, false).await?;
    let result = written.results.into_iter().next();
    let nothing = || AppError::internal("a registration has no result".to_owned());
    let domain = result.ok_or_else(nothing)??;
    // The wait for the index would reveal that the URL already belongs to a listed agent, hidden from the caller or
    // not.
    let shown: Vec<&Touched> = written.shown.iter().collect();
    searchable(context, &shown).await;
    registered_view(context, caller, domain, &admitted.target).await
}

/// The domain in the response to a registration, with only the caller's own sources.
async fn registered_view(
    context: &Context,
    caller: &Caller,
    domain: i64,
    new: &Target,
) -> Result<DomainView> {
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
async fn anonymous_view(context: &Context, domain: i64, new: &Target) -> Result<Vec<SourceView>> {
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

/// Refuses an approval with the registration that the caller may not give.
fn refuse_approval(context: &Context, caller: &Caller) -> Result<()> {
    if !caller.may(Permission::Approve) {
        return Err(AppError::forbidden(
            "Only a curator may approve with the registration.",
        ));
    }
    if !context.config.governance.registrant_may_approve(None) {
        return Err(AppError::forbidden(
            "This registry wants others to approve (`governance.four_eyes`, `governance.deciders`): register without approving.",
        ));
    }
    Ok(())
}

fn refuse_denied(context: &Context, name: &str) -> Result<()> {
    if context.rules.denies(name) {
        return Err(AppError::new(
            ErrorKind::DomainDenied,
            format!("{name} is on this registry's list of denied domains (`deny_domains`)."),
        ));
    }
    Ok(())
}

/// Checks what a registration names, and whether the caller may approve with it if it asks for that.
pub fn admit(
    context: &Context,
    caller: &Caller,
    what: &Registration,
) -> Result<AdmittedRegistration> {
    if what.approve {
        refuse_approval(context, caller)?;
    }
    let target = target(context, what)?;
    refuse_denied(context, &target.domain.name)?;
    Ok(AdmittedRegistration {
        target,
        approve: what.approve,
    })
}

/// Refuses what no policy permits the caller to register.
pub fn refuse_by_policy(
    context: &Context,
    caller: &Caller,
    set: &PolicySet,
    admitted: &AdmittedRegistration,
) -> Result<()> {
    let name = admitted.target.domain.name.as_str();
    let (principal, matches) = (caller.principal(), set.matches_domain(name));
    let waived = BTreeSet::new();
    let verdict = set.verdict(Action::Register, &principal, &matches, &waived);
    let tried = set.would_change(Action::Register, &principal, &matches, &waived, &verdict);
    let day = context.now().day();
    context
        .dry_runs
        .note(set, Action::Register, name, &principal, &tried, day);
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
