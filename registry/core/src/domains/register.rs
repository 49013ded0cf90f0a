//! Registration of a domain, or of a further source of a domain.

use std::collections::BTreeSet;

use a2a_registry_api::{DomainView, PolicyDecision, Registration, SourceView};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{Action, AuthorizationDecision, PolicySet};
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;

use crate::commit::admission_policies::load_admission_policies;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::publish::await_searchable_agents;
use crate::context::AppContext;
use crate::decision_log::{DecisionFacts, asker_name, decision_asker, record_decision};
use crate::domains::register_batch::{CheckedRegistration, write_registrations};
use crate::domains::registration_target::{RegistrationTarget, resolve_registration_target};
use crate::domains::view::domain_view;
use crate::domains::visible_contents::source_registration_view;
use crate::error::{AppError, ErrorKind, PolicyDenial, Result};
use crate::policy_sets::notices::{decision_notices, denial_text, notice_sentences};
use crate::sources::public_source_id;
use crate::visibility::caller::Caller;

/// Registers a domain's well-known paths and catalogs, or one card URL. The first visit is due at once. A repeated
/// registration adds missing sources and gets the same response.
pub async fn register_domain(
    context: &AppContext,
    caller: &Caller,
    registration: &Registration,
) -> Result<DomainView> {
    caller.require_registration_right(&context.config().governance)?;
    let admitted = check_registration(context, caller, registration)?;
    let set = load_admission_policies(context, &context.store).await?;
    enforce_register_policy(context, caller, &set, &admitted)?;
    let batch = std::slice::from_ref(&admitted);
    let written = write_registrations(context, caller, batch, false).await?;
    let result = written.results.into_iter().next();
    let nothing = || AppError::internal("a registration has no result".to_owned());
    let domain = result.ok_or_else(nothing)??;
    // Waiting for the index would reveal that the URL already belongs to a listed agent, even one hidden from the
    // caller.
    let visible_changes: Vec<&CommittedChanges> = written.visible_changes.iter().collect();
    await_searchable_agents(context, &visible_changes).await;
    registered_domain_view(context, caller, domain, &admitted.target).await
}

/// Builds the domain in the response to a registration, with only the caller's own sources.
async fn registered_domain_view(
    context: &AppContext,
    caller: &Caller,
    domain: i64,
    target: &RegistrationTarget,
) -> Result<DomainView> {
    let mut view = domain_view(context, caller, domain).await?;
    let all = view.sources.len();
    view.sources.retain(|source| source.own);
    view.complete &= view.sources.len() == all;
    if caller.account.is_none() {
        view.sources = anonymous_source_views(context, domain, target).await?;
    }
    Ok(view)
}

/// The sources of an anonymous registration, without the results of their fetches.
async fn anonymous_source_views(
    context: &AppContext,
    domain: i64,
    target: &RegistrationTarget,
) -> Result<Vec<SourceView>> {
    let sources = domains::live_sources_by_domain(&context.store, &[domain]).await?;
    let is_target_source = |row: &&source::Model| {
        let mut all = target.sources.iter();
        all.any(|(kind, url)| row.kind == *kind && row.url == *url)
    };
    let view = |source: &source::Model| SourceView {
        id: public_source_id(context, source),
        ..source_registration_view(source, context.now())
    };
    Ok(sources.iter().filter(is_target_source).map(view).collect())
}

/// Refuses to approve with the registration if the caller may not approve.
fn require_approval_right(context: &AppContext, caller: &Caller) -> Result<()> {
    if !caller.has_permission(Permission::Approve) {
        return Err(AppError::forbidden(
            "Only a curator may approve with the registration.",
        ));
    }
    if !context.config().governance.registrant_may_approve(None) {
        return Err(AppError::forbidden(
            "This registry requires approval by other accounts (`governance.four_eyes`, `governance.deciders`). \
             Register without approving.",
        ));
    }
    Ok(())
}

fn reject_denied_domain(context: &AppContext, name: &str) -> Result<()> {
    if context.rules().denies(name) {
        return Err(AppError::new(
            ErrorKind::DomainDenied,
            format!("{name} is on this registry's list of denied domains (`deny_domains`)."),
        ));
    }
    Ok(())
}

/// Checks the target of a registration and, if it asks for approval, the caller's right to approve.
pub fn check_registration(
    context: &AppContext,
    caller: &Caller,
    registration: &Registration,
) -> Result<CheckedRegistration> {
    if registration.approve {
        require_approval_right(context, caller)?;
    }
    let target = resolve_registration_target(context, registration)?;
    reject_denied_domain(context, &target.domain.name)?;
    Ok(CheckedRegistration {
        target,
        approve: registration.approve,
    })
}

/// Refuses a registration that no policy permits.
pub fn enforce_register_policy(
    context: &AppContext,
    caller: &Caller,
    set: &PolicySet,
    admitted: &CheckedRegistration,
) -> Result<()> {
    let name = admitted.target.domain.name.as_str();
    let (principal, matches) = (caller.principal(), set.match_domain(name));
    let waived = BTreeSet::new();
    let decision = set.decide(Action::Register, &principal, &matches, &waived);
    let tried =
        set.decision_changing_dry_runs(Action::Register, &principal, &matches, &waived, &decision);
    let day = context.now().days_since_epoch();
    context
        .dry_runs
        .count_changes(set, Action::Register, name, &principal, &tried, day);
    if decision.allowed {
        return Ok(());
    }
    Err(registration_denial(context, caller, set, name, decision))
}

/// Records the refusal of a registration by policies, and explains it.
fn registration_denial(
    context: &AppContext,
    caller: &Caller,
    set: &PolicySet,
    name: &str,
    decision: AuthorizationDecision,
) -> AppError {
    let by = match caller.has_permission(Permission::SeeAll) && !decision.policies.is_empty() {
        true => format!(" ({})", decision.policies.join(", ")),
        false => String::new(),
    };
    let notices = decision_notices(set, &decision);
    let advice = match notices.is_empty() {
        true => "Ask its admin.".to_owned(),
        false => notice_sentences(&notices),
    };
    let facts = DecisionFacts {
        action: Action::Register.as_str(),
        subject: asker_name(caller).to_owned(),
        resource: name.to_owned(),
    };
    let denied = PolicyDecision {
        reason: Some(denial_text(&decision, &notices)),
        policies: decision.policies,
        notices,
        number: set.number(),
        ..PolicyDecision::default()
    };
    let asker = decision_asker(caller);
    let recorded = record_decision(context, asker, asker_name(caller), facts, denied);
    let id = recorded.id;
    let text = format!(
        "The policies of this registry do not permit you to register {name}{by}. {advice} This is decision {id}."
    );
    AppError {
        denial: Some(Box::new(PolicyDenial {
            decision: id,
            notices: recorded.notices,
        })),
        ..AppError::new(ErrorKind::PolicyDenied, text)
    }
}
