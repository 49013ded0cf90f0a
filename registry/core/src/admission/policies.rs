//! Evaluates the policies on admitting a card, with the account that registered it as the principal.

use a2a_card::AgentCard;
use a2a_registry_api::PolicyDecision;
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::ChangeClass;
use a2a_registry_policy::{
    Action, AgentAttributes, Effect, PolicyMatches, PolicyMode, PolicySet, Principal,
};
use a2a_registry_store::entity::{account, agent, domain, version};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::{Executor, WriteTransaction, accounts, domains, groups, waivers};
use uuid::Uuid;

use crate::accounts::authentication::policy_group_names;
use crate::admission::policy_subject::{PolicySubject, change_class_name, split_words};
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::context::AppContext;
use crate::decision_log::{DecisionFacts, account_asker, decision_asker, record_decision};
use crate::error::AppError;
use crate::policy_sets::default_policy_rule;
use crate::policy_sets::notices::hold_reason;
use crate::signatures::DomainKeyBinding;
use crate::visibility::caller::Caller;

/// The policies' decision on a card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionPolicyDecision {
    /// The rule by which the card may be approved, with the identifier of the policy if that is a custom one.
    pub permit: Option<(Rule, Option<String>)>,
    /// The policies that forbid it, except waived ones.
    pub forbidden_by: Vec<String>,
    /// What the owner is told of these policies.
    hold_reason: String,
    /// The number of the set that decided.
    set_number: u64,
    /// The positions of policies on a dry run that would have changed this.
    dry_run_positions: Vec<u16>,
}

/// A version that policies evaluate.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionCandidate<'a> {
    pub version: &'a VersionSummary,
    /// The class of its change against the served content; `None` if nothing is served.
    pub change: Option<ChangeClass>,
    pub has_error: bool,
    pub domain: Option<&'a domain::Model>,
}

/// Evaluates the newest policies on a version that is being decided, and counts the policies on a dry run that would
/// have changed the result.
pub async fn evaluate_and_count_dry_runs(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    state: &AgentChangeState,
    candidate: AdmissionCandidate<'_>,
) -> Result<AdmissionPolicyDecision, AppError> {
    let decision = evaluate_version(context, write, change_set, state, candidate).await?;
    if !decision.dry_run_positions.is_empty() {
        let set = change_set.admission_policies(context, write).await?;
        let principal = registrant_principal(write, state.agent.submitter).await?;
        let (id, day) = (state.agent.id.to_string(), context.now().days_since_epoch());
        let (action, tried) = (Action::Admit, &decision.dry_run_positions);
        context
            .dry_runs
            .count_changes(&set, action, &id, &principal, tried, day);
    }
    Ok(decision)
}

/// Evaluates the newest policies on admitting a version of an agent.
async fn evaluate_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    state: &AgentChangeState,
    candidate: AdmissionCandidate<'_>,
) -> Result<AdmissionPolicyDecision, AppError> {
    let set = change_set.admission_policies(context, write).await?;
    let has_custom_policy = set.has_active_custom_policy(Action::Admit);
    let facts = match has_custom_policy {
        true => load_version_attributes(context, write, change_set, state, candidate).await?,
        false => default_policy_facts(context, change_set, state, candidate),
    };
    let matches = set.match_agent(Action::Admit, &facts);
    let principal = match set.depends_on_principal(Action::Admit) {
        true => registrant_principal(write, state.agent.submitter).await?,
        false => Principal::default(),
    };
    let waived_policies = match has_custom_policy {
        true => load_waived_policies(context, write, state.agent.id, candidate.version).await?,
        false => Vec::new(),
    };
    let waived_policies: Vec<&str> = waived_policies.iter().map(String::as_str).collect();
    Ok(evaluate_admission(
        &set,
        &principal,
        &matches,
        &waived_policies,
    ))
}

/// The decision of a policy set on a card that these of its policies match.
fn evaluate_admission(
    set: &PolicySet,
    principal: &Principal,
    matches: &PolicyMatches,
    waived_policies: &[&str],
) -> AdmissionPolicyDecision {
    let waived = set.forbid_indices(waived_policies);
    let decision = set.decide(Action::Admit, principal, matches, &waived);
    let dry_run_positions =
        set.decision_changing_dry_runs(Action::Admit, principal, matches, &waived, &decision);
    if !decision.allowed {
        return AdmissionPolicyDecision {
            hold_reason: hold_reason(set, &decision.policies),
            forbidden_by: decision.policies,
            set_number: set.number(),
            dry_run_positions,
            ..AdmissionPolicyDecision::default()
        };
    }
    AdmissionPolicyDecision {
        permit: select_permit(set, &decision.policies),
        set_number: set.number(),
        dry_run_positions,
        ..AdmissionPolicyDecision::default()
    }
}

/// The permit that a decision names: a built-in one that trusts the domain, else the first custom one, else a built-in
/// one about small changes.
fn select_permit(set: &PolicySet, permits: &[String]) -> Option<(Rule, Option<String>)> {
    let named = |id: &String| set.policies().iter().find(|policy| policy.id == *id);
    let permit_policies = permits.iter().filter_map(named);
    let ranked = permit_policies.map(|policy| match default_policy_rule(&policy.id) {
        Some((place, rule)) if policy.is_built_in => {
            let after_written = matches!(rule, Rule::NoChange | Rule::LowChange);
            ((after_written, place), (rule, None))
        }
        _ => ((false, usize::MAX), (Rule::Policy, Some(policy.id.clone()))),
    });
    ranked
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, permit)| permit)
}

/// The attributes that the built-in policies use, which need no further rows.
fn default_policy_facts(
    context: &AppContext,
    change_set: &ChangeSet<'_>,
    state: &AgentChangeState,
    candidate: AdmissionCandidate<'_>,
) -> AgentAttributes {
    AgentAttributes {
        id: state.agent.id.to_string(),
        domain: state.agent.domain.clone(),
        verified: candidate.domain.is_some_and(is_domain_verified),
        proof_methods: split_words(domain_proof_methods(candidate)),
        covered: change_set
            .version_coverage_level(candidate.version)
            .is_admitted(),
        has_error: candidate.has_error,
        allow_listed: context.rules().allows(&state.agent.domain),
        change: change_class_name(candidate.change).to_owned(),
        ..AgentAttributes::default()
    }
}

/// The methods by which the domain is verified, separated by spaces.
fn domain_proof_methods<'a>(candidate: AdmissionCandidate<'a>) -> &'a str {
    let methods = candidate
        .domain
        .and_then(|row| row.proof_methods.as_deref());
    methods.unwrap_or_default()
}

fn is_domain_verified(row: &domain::Model) -> bool {
    row.state == DomainState::Verified
}

/// Loads all attributes of a version, including the changes made so far in this change set.
async fn load_version_attributes(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &ChangeSet<'_>,
    state: &AgentChangeState,
    candidate: AdmissionCandidate<'_>,
) -> Result<AgentAttributes, AppError> {
    let default_facts = default_policy_facts(context, change_set, state, candidate);
    let id = candidate.version.id;
    let fresh = change_set.versions.iter().chain(&change_set.reverified);
    let fresh = fresh.rev().find(|row| row.id == id).cloned();
    let row = match fresh {
        Some(row) => Some(row),
        None => versions::versions_by_ids(write, &[id]).await?.pop(),
    };
    let card = |row: &version::Model| serde_json::from_str::<AgentCard>(&row.model).ok();
    let read = row.and_then(|row| Some((card(&row)?, row)));
    let Some((card, row)) = read else {
        return Ok(default_facts);
    };
    let domain: Vec<domain::Model> = candidate.domain.cloned().into_iter().collect();
    let binding = DomainKeyBinding::load_for_domains(write, &domain).await?;
    let binding = binding.into_values().next().unwrap_or_default();
    let version = version::Model {
        standing: change_set.version_coverage_level(candidate.version).into(),
        ..row
    };
    let current_card = PolicySubject {
        agent: &state.agent,
        version: &version,
        card: &card,
        binding: &binding,
        has_verified_domain: default_facts.verified,
        proof_methods: domain_proof_methods(candidate),
        is_admitted: default_facts.covered,
        change: candidate.change,
    };
    Ok(current_card.agent_attributes(&context.rules(), context.now()))
}

async fn load_waived_policies(
    context: &AppContext,
    write: &WriteTransaction,
    agent: Uuid,
    version: &VersionSummary,
) -> Result<Vec<String>, AppError> {
    let now = context.now().0;
    let granted = waivers::active_waivers_by_agent(write, &[agent])
        .await?
        .into_iter();
    let counts = granted.filter(|one| one.waiver_covers_content(&version.content_digest, now));
    Ok(counts.map(|one| one.policy).collect())
}

/// An account as a policy principal, with its groups; an anonymous one without an account that may be used.
pub async fn registrant_principal(
    db: &impl Executor,
    account: Option<Uuid>,
) -> Result<Principal, AppError> {
    let ids: Vec<Uuid> = account.into_iter().collect();
    let found = accounts::accounts_by_ids(db, &ids).await?.pop();
    let Some(account) = found.filter(account::Model::is_account_active) else {
        return Ok(Principal::default());
    };
    let groups = groups::groups_by_account(db, &[account.id]).await?;
    Ok(Principal {
        account: Some(account.name),
        groups: policy_group_names(&groups),
    })
}

/// Puts an agent on hold if policies forbid its content, and lifts that hold if none does.
pub fn sync_policy_hold(
    context: &AppContext,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    decision: &AdmissionPolicyDecision,
) {
    if decision.forbidden_by.is_empty() {
        let reason = "no policy forbids it";
        change_set.lift_hold(state, Hold::Policy, POLICY_ACTOR, reason);
    } else if !state.holds.contains(&Hold::Policy) {
        let id = record_admission_denial(context, &state.agent, decision);
        let reason = format!("{}. This is decision {id}", decision.hold_reason);
        change_set.place_hold(state, Hold::Policy, POLICY_ACTOR, &reason);
    }
}

/// Records the refusal of an agent's content by policies, for the account that registered it.
fn record_admission_denial(
    context: &AppContext,
    agent: &agent::Model,
    decision: &AdmissionPolicyDecision,
) -> Uuid {
    let asker = match agent.owner_id.or(agent.submitter) {
        Some(account) => account_asker(account),
        None => decision_asker(&Caller::default()),
    };
    let facts = DecisionFacts {
        action: Action::Admit.as_str(),
        subject: "registrant".to_owned(),
        resource: agent.id.to_string(),
    };
    let denied = PolicyDecision {
        reason: Some(format!("{}.", decision.hold_reason)),
        policies: decision.forbidden_by.clone(),
        number: decision.set_number,
        agent: Some(agent.id),
        ..PolicyDecision::default()
    };
    record_decision(context, asker, POLICY_ACTOR, facts, denied).id
}

/// Whether policies could place or lift a hold on an agent.
pub fn can_change_policy_hold(set: &PolicySet, state: &AgentChangeState) -> bool {
    let mut about = set.policies_for_action(Action::Admit);
    state.holds.contains(&Hold::Policy)
        || about.any(|(_, policy)| {
            policy.mode == PolicyMode::Enforce
                && !policy.is_built_in
                && (policy.effect == Effect::Forbid || policy.is_conditional)
        })
}

/// Places or lifts the policy hold of an agent by its current content: the served version, or the newest if none is
/// served.
pub async fn update_policy_hold(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
) -> Result<(), AppError> {
    let set = change_set.admission_policies(context, write).await?;
    if state.agent.retired_at.is_some() || !can_change_policy_hold(&set, state) {
        return Ok(());
    }
    let current_version = state.agent.approved_version.or(state.agent.newest_version);
    let version_ids: Vec<Uuid> = current_version.into_iter().collect();
    let Some(key) = versions::version_summaries(write, &version_ids)
        .await?
        .pop()
    else {
        return Ok(());
    };
    let row = versions::versions_by_ids(write, &version_ids).await?.pop();
    let domain = domains::domains_by_ids(write, &[state.agent.domain_id]).await?;
    let candidate = AdmissionCandidate {
        version: &key,
        change: state.agent.approved_version.map(|_| ChangeClass::None),
        has_error: row.is_some_and(|row| row.has_error),
        domain: domain.first(),
    };
    let decision = evaluate_version(context, write, change_set, state, candidate).await?;
    sync_policy_hold(context, change_set, state, &decision);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use a2a_registry_domain::admission_rules::{
        self, AdmissionDecision, AdmissionFacts, AdmissionRules, DomainPattern,
    };
    use a2a_registry_domain::timestamp::Timestamp;
    use a2a_registry_policy::PolicyText;

    use super::*;
    use crate::policy_sets::default_policies;

    /// The decision by the built-in policies, with a set that has no policies about admission.
    fn decide_by_default_policies(
        facts: &AdmissionFacts<'_>,
        rules: &AdmissionRules,
    ) -> AdmissionDecision {
        let set = PolicySet::compile_with_defaults(
            1,
            &[],
            &default_policies(rules),
            Timestamp::default(),
        )
        .unwrap();
        let asked = AgentAttributes {
            domain: facts.domain.to_owned(),
            verified: facts.verified,
            covered: facts.admitted,
            has_error: facts.has_error,
            allow_listed: rules.allows(facts.domain),
            change: change_class_name(facts.change).to_owned(),
            ..AgentAttributes::default()
        };
        let matches = set.match_agent(Action::Admit, &asked);
        let none = BTreeSet::new();
        let verdict = set.decide(Action::Admit, &Principal::default(), &matches, &none);
        let permit = select_permit(&set, &verdict.policies);
        let permitted = permit.filter(|_| verdict.allowed).map(|(rule, _)| rule);
        admission_rules::decide_admission(
            &AdmissionFacts {
                permitting_rule: permitted,
                ..*facts
            },
            rules,
        )
    }

    fn sample_admission_facts(change: Option<ChangeClass>) -> AdmissionFacts<'static> {
        AdmissionFacts {
            domain: "agents.example.com",
            verified: false,
            change,
            admitted: true,
            has_error: false,
            signature_invalid: false,
            person_approved: None,
            permitting_rule: None,
        }
    }

    fn sample_admission_rules(deny: &[&str], allow: &[&str], approve_all: bool) -> AdmissionRules {
        let patterns = |list: &[&str]| {
            list.iter()
                .map(|text| DomainPattern((*text).into()))
                .collect()
        };
        AdmissionRules {
            deny_domains: patterns(deny),
            allow_domains: patterns(allow),
            approve_all,
        }
    }

    #[test]
    fn the_first_rule_wins() {
        let all = sample_admission_rules(&["*.example.com"], &["*.example.com"], true);
        assert_eq!(
            decide_by_default_policies(&sample_admission_facts(None), &all),
            AdmissionDecision::Denied
        );
        let rejected = AdmissionFacts {
            person_approved: Some(false),
            ..sample_admission_facts(None)
        };
        assert_eq!(
            decide_by_default_policies(
                &rejected,
                &sample_admission_rules(&[], &["*.example.com"], true)
            ),
            AdmissionDecision::Rejected
        );
        assert_eq!(
            decide_by_default_policies(
                &sample_admission_facts(Some(ChangeClass::Critical)),
                &sample_admission_rules(&[], &[], true)
            ),
            AdmissionDecision::Approved(Rule::ApproveAll)
        );
    }

    /// However trusted the domain is, a card with an invalid signature waits for a person, whose decision counts.
    #[test]
    fn no_rule_admits_an_invalid_signature() {
        let allow = sample_admission_rules(&[], &["*.example.com"], false);
        let all = sample_admission_rules(&[], &["*.example.com"], true);
        let changes = [
            None,
            Some(ChangeClass::None),
            Some(ChangeClass::Low),
            Some(ChangeClass::High),
            Some(ChangeClass::Critical),
        ];
        for rules in [&sample_admission_rules(&[], &[], false), &allow, &all] {
            for change in changes {
                for verified in [false, true] {
                    let invalid = AdmissionFacts {
                        verified,
                        signature_invalid: true,
                        ..sample_admission_facts(change)
                    };
                    assert_eq!(
                        decide_by_default_policies(&invalid, rules),
                        AdmissionDecision::Pending,
                        "{invalid:?}"
                    );
                    for (person, ruling) in [
                        (true, AdmissionDecision::Approved(Rule::Person)),
                        (false, AdmissionDecision::Rejected),
                    ] {
                        let decided = AdmissionFacts {
                            person_approved: Some(person),
                            ..invalid
                        };
                        assert_eq!(
                            decide_by_default_policies(&decided, rules),
                            ruling,
                            "{decided:?}"
                        );
                    }
                }
            }
        }
        let denied = sample_admission_rules(&["*.example.com"], &[], true);
        let invalid = AdmissionFacts {
            signature_invalid: true,
            ..sample_admission_facts(None)
        };
        assert_eq!(
            decide_by_default_policies(&invalid, &denied),
            AdmissionDecision::Denied
        );
    }

    #[test]
    fn allowed_domains_stop_at_errors_and_critical_changes() {
        let allow = sample_admission_rules(&[], &["*.example.com"], false);
        assert_eq!(
            decide_by_default_policies(&sample_admission_facts(None), &allow),
            AdmissionDecision::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide_by_default_policies(&sample_admission_facts(Some(ChangeClass::High)), &allow),
            AdmissionDecision::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide_by_default_policies(
                &sample_admission_facts(Some(ChangeClass::Critical)),
                &allow
            ),
            AdmissionDecision::Pending
        );
        let broken = AdmissionFacts {
            has_error: true,
            ..sample_admission_facts(None)
        };
        assert_eq!(
            decide_by_default_policies(&broken, &allow),
            AdmissionDecision::Pending
        );
    }

    #[test]
    fn a_verified_domain_gets_its_first_card_and_small_changes_through() {
        let none = sample_admission_rules(&[], &[], false);
        let verified = |change| AdmissionFacts {
            verified: true,
            ..sample_admission_facts(change)
        };
        assert_eq!(
            decide_by_default_policies(&verified(None), &none),
            AdmissionDecision::Approved(Rule::VerifiedDomain)
        );
        assert_eq!(
            decide_by_default_policies(&verified(Some(ChangeClass::High)), &none),
            AdmissionDecision::Pending
        );
        assert_eq!(
            decide_by_default_policies(&sample_admission_facts(Some(ChangeClass::Low)), &none),
            AdmissionDecision::Approved(Rule::LowChange)
        );
        assert_eq!(
            decide_by_default_policies(&sample_admission_facts(None), &none),
            AdmissionDecision::Pending
        );
    }

    /// A nomination waits for a person, even on an allowed or verified domain; a small change to a card that a person
    /// has approved does not.
    #[test]
    fn rules_that_trust_a_domain_decide_on_no_nomination() {
        let nominated = |change| AdmissionFacts {
            verified: true,
            admitted: false,
            ..sample_admission_facts(change)
        };
        let allow = sample_admission_rules(&[], &["*.example.com"], false);
        for change in [None, Some(ChangeClass::High), Some(ChangeClass::Critical)] {
            assert_eq!(
                decide_by_default_policies(&nominated(change), &allow),
                AdmissionDecision::Pending
            );
        }
        assert_eq!(
            decide_by_default_policies(&nominated(Some(ChangeClass::Low)), &allow),
            AdmissionDecision::Approved(Rule::LowChange)
        );
        let by_person = AdmissionFacts {
            person_approved: Some(true),
            ..nominated(None)
        };
        assert_eq!(
            decide_by_default_policies(&by_person, &allow),
            AdmissionDecision::Approved(Rule::Person)
        );
        assert_eq!(
            decide_by_default_policies(&nominated(None), &sample_admission_rules(&[], &[], true)),
            AdmissionDecision::Approved(Rule::ApproveAll)
        );
    }

    #[test]
    fn a_written_policy_replaces_a_shipped_one_and_is_named_before_small_changes() {
        let text = |id: &str, text: &str| PolicyText {
            id: id.to_owned(),
            text: text.to_owned(),
        };
        let off = text(
            "verified-domain",
            "@mode(\"off\") permit (principal, action == Action::\"admit\", resource);",
        );
        let tagged = text(
            "tagged",
            "permit (principal, action == Action::\"admit\", resource) when { resource.tags.contains(\"x\") };",
        );
        let set = PolicySet::compile_with_defaults(
            1,
            &[off, tagged],
            &default_policies(&AdmissionRules::default()),
            Timestamp::default(),
        )
        .unwrap();
        let verified = AgentAttributes {
            verified: true,
            covered: true,
            change: "first".into(),
            ..AgentAttributes::default()
        };
        let permit = |facts: &AgentAttributes| {
            let matches = set.match_agent(Action::Admit, facts);
            let none = BTreeSet::new();
            let verdict = set.decide(Action::Admit, &Principal::default(), &matches, &none);
            select_permit(&set, &verdict.policies)
        };
        assert_eq!(permit(&verified), None);
        let tagged = AgentAttributes {
            tags: vec!["x".into()],
            change: "low".into(),
            ..verified
        };
        assert_eq!(permit(&tagged), Some((Rule::Policy, Some("tagged".into()))));
        let plain = AgentAttributes {
            tags: Vec::new(),
            ..tagged
        };
        assert_eq!(permit(&plain), Some((Rule::LowChange, None)));
    }
}
