//! Applies the admission rules to an ingested version, with the rows of its group.

use a2a_registry_domain::admission_rules::{Rule, Ruling};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_store::Write;
use a2a_registry_store::versions::VersionKey;
use uuid::Uuid;

use crate::admission::change::change_between;
use crate::admission::decision::{DecisionInput, decide_on};
use crate::commit::approver::{Approver, CRAWLER, POLICY};
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::error::AppError;

/// Applies the rules again to a waiting version whose signature state has changed.
#[expect(
    clippy::too_many_arguments,
    reason = "everything that a ruling depends on"
)]
pub(crate) async fn rule_again(
    context: &Context,
    write: &Write,
    group: &Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    source: i64,
    version: Uuid,
    has_error: bool,
) -> Result<(), AppError> {
    let key = |id: Option<Uuid>| group.versions.get(&id?);
    let Some(waiting) = key(Some(version)).filter(|key| key.state == VersionState::Pending) else {
        return Ok(());
    };
    let class = match key(state.agent.approved_version) {
        None => None,
        Some(approved) => {
            let binding = group.key_binding(source);
            let class = change_between(
                context,
                write,
                &state.agent,
                approved,
                waiting,
                &binding,
                &ledger.bodies,
            );
            Some(class.await?)
        }
    };
    rule(
        context, write, group, ledger, state, waiting, class, has_error, None,
    )
    .await
}

/// Applies the admission rules to a version. `approved_by` is the account that has approved it with the registration.
#[expect(
    clippy::too_many_arguments,
    reason = "everything that a ruling depends on"
)]
pub(crate) async fn rule(
    context: &Context,
    write: &Write,
    group: &Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    key: &VersionKey,
    class: Option<ChangeClass>,
    has_error: bool,
    approved_by: Option<Uuid>,
) -> Result<(), AppError> {
    let name = |id: Uuid| Some(group.accounts.get(&id)?.name.clone());
    let decisions = group.decisions.get(&key.agent_id);
    let case = DecisionInput {
        version: key,
        change: class,
        has_error,
        domain: group.domains.get(&state.agent.domain_id),
        decisions: decisions.map_or(&[], Vec::as_slice),
        registration_approval: approved_by
            .and_then(|account| registration_approver(group, account)),
        submitter: state.agent.submitter.and_then(name),
        actor: CRAWLER,
    };
    // A new agent of a denied domain is put on hold with its first card; existing ones when the rules change.
    if decide_on(context, write, ledger, state, case).await? == Ruling::Denied {
        ledger.hold(state, Hold::Denied, POLICY, "the domain is on deny_domains");
    }
    Ok(())
}

/// The approver of a registration with `--approve`.
fn registration_approver(group: &Group, account: Uuid) -> Option<Approver> {
    let account = group.accounts.get(&account)?;
    Some(Approver {
        actor: account.name.clone(),
        rule: Rule::Person,
        reason: Some("approved with the registration".into()),
        self_approved: true,
    })
}
