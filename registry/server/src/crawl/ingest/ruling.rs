//! The ruling on a version of a card that came in: what the rules say of it, and what follows.

use a2a_registry_domain::admission::{Facts, Rule, Ruling, decide};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::Write;
use a2a_registry_store::versions::VersionKey;
use uuid::Uuid;

use crate::admission::change::change_between;
use crate::commit::ledger::{AgentState, Decider, Ledger};
use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::error::AppError;

/// Puts a version that waits before the rules again, after its signatures were judged differently.
#[expect(clippy::too_many_arguments, reason = "everything a ruling looks at")]
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
        context, group, ledger, state, waiting, class, has_error, None,
    );
    Ok(())
}

/// Applies the admission rules to a version. `word` is the account that has approved it with the registration.
#[expect(clippy::too_many_arguments, reason = "everything a ruling looks at")]
pub(crate) fn rule(
    context: &Context,
    group: &Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    key: &VersionKey,
    class: Option<ChangeClass>,
    has_error: bool,
    word: Option<Uuid>,
) {
    let domain = group.domains.get(&state.agent.domain_id);
    let signature_invalid = key.signature.may_be(SignatureState::Invalid);
    // Whoever approved with the registration has not seen that the signature is broken.
    let word = word
        .filter(|_| !signature_invalid)
        .and_then(|account| submitters_word(group, account));
    let facts = Facts {
        domain: &state.agent.domain.clone(),
        verified: domain.is_some_and(|row| row.state == DomainState::Verified),
        change: class,
        admitted: ledger.standing_of(key).is_admitted(),
        has_error,
        signature_invalid,
        person: word
            .as_ref()
            .map(|_| true)
            .or_else(|| persons_decision(group, key, domain.map_or(0, |row| row.generation_since))),
    };
    let ruling = decide(&facts, &context.rules);
    let submitter = state
        .agent
        .submitter
        .and_then(|id| group.accounts.get(&id))
        .map(|account| account.name.clone());
    match ruling {
        Ruling::Approved(Rule::Person) => {
            let by = word.unwrap_or_else(|| Decider::policy(Rule::Person));
            ledger.approve(state, key, class, &by);
        }
        Ruling::Approved(rule) => ledger.approve(state, key, class, &Decider::policy(rule)),
        Ruling::Rejected => {
            ledger.refuse(state, key, &Decider::policy(Rule::Person));
        }
        Ruling::Pending if state.asks(key.id, class) => {}
        Ruling::Pending => ledger.ask(state, key, class, submitter),
        Ruling::Denied => {
            ledger.hold(
                state,
                Hold::Denied,
                "policy",
                "the domain is on deny_domains",
            );
        }
    }
}

/// `register --approve`: the submitter's word.
fn submitters_word(group: &Group, account: Uuid) -> Option<Decider> {
    let account = group.accounts.get(&account)?;
    Some(Decider {
        actor: account.name.clone(),
        rule: Rule::Person,
        reason: Some("approved with the registration".into()),
        self_approved: true,
    })
}

/// The last decision of a person on exactly this content.
fn persons_decision(group: &Group, key: &VersionKey, since: i64) -> Option<bool> {
    group
        .decisions
        .get(&key.agent_id)?
        .iter()
        .rev()
        .filter(|row| row.at >= since)
        .find(|row| row.content_digest == key.content_digest && row.signing == key.signing)
        .map(|row| row.approved)
}
