//! What policies say about admitting a card, for the account that registered it.

use a2a_card::AgentCard;
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::ChangeClass;
use a2a_registry_policy::{Action, AgentFacts, Effect, Matches, Mode, PolicySet, Principal};
use a2a_registry_store::entity::{account, domain, version};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::{Handle, Write, accounts, domains, groups, waivers};
use uuid::Uuid;

use crate::accounts::authentication::named_in_policies;
use crate::admission::agent_facts::{ShownCard, change_word, words};
use crate::commit::approver::POLICY;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::error::AppError;
use crate::policy_sets::shipped_rule;
use crate::signatures::KeyBinding;

/// What policies say about a card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The rule by which the card may be approved, with the identifier of the policy where somebody has written it.
    pub permit: Option<(Rule, Option<String>)>,
    /// The policies that forbid it, without those that are waived.
    pub forbids: Vec<String>,
    /// The places of policies on a dry run that would have changed this.
    tried: Vec<u16>,
}

/// A version that policies are asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub version: &'a VersionKey,
    /// The class of its change against what is served; `None` where nothing is.
    pub change: Option<ChangeClass>,
    pub has_error: bool,
    pub domain: Option<&'a domain::Model>,
}

/// What the newest policies say about a version that is decided on; what policies on a dry run would have changed is counted.
pub async fn said_in_decision(
    context: &Context,
    write: &Write,
    ledger: &Ledger<'_>,
    state: &AgentState,
    question: Question<'_>,
) -> Result<Said, AppError> {
    let said = said_about(context, write, ledger, state, question).await?;
    if !said.tried.is_empty() {
        let set = ledger.admitting(context, write).await?;
        let principal = registrant(write, state.agent.submitter).await?;
        let (id, day) = (state.agent.id.to_string(), context.now().day());
        let (action, tried) = (Action::Admit, &said.tried);
        context
            .dry_runs
            .note(&set, action, &id, &principal, tried, day);
    }
    Ok(said)
}

/// What the newest policies say about admitting a version of an agent.
async fn said_about(
    context: &Context,
    write: &Write,
    ledger: &Ledger<'_>,
    state: &AgentState,
    question: Question<'_>,
) -> Result<Said, AppError> {
    let set = ledger.admitting(context, write).await?;
    let matches = match set.has_written(Action::Admit) {
        true => {
            let facts = all_facts(context, write, ledger, state, question).await?;
            set.matches(Action::Admit, &facts)
        }
        false => {
            let facts = plain_facts(context, ledger, state, question);
            context.policies.shipped_matches(&set, &facts)
        }
    };
    let principal = match set.asks_who(Action::Admit) {
        true => registrant(write, state.agent.submitter).await?,
        false => Principal::default(),
    };
    let waived = match set.has_written(Action::Admit) {
        true => waived(context, write, state.agent.id, question.version).await?,
        false => Vec::new(),
    };
    let waived: Vec<&str> = waived.iter().map(String::as_str).collect();
    Ok(said(&set, &principal, &matches, &waived))
}

/// What a set says about a card that these of its policies match.
fn said(set: &PolicySet, principal: &Principal, matches: &Matches, waived: &[&str]) -> Said {
    let waived = set.places_of_forbids(waived);
    let verdict = set.verdict(Action::Admit, principal, matches, &waived);
    let tried = set.would_change(Action::Admit, principal, matches, &waived, &verdict);
    if !verdict.allowed {
        return Said {
            permit: None,
            forbids: verdict.policies,
            tried,
        };
    }
    Said {
        permit: first_permit(set, &verdict.policies),
        forbids: Vec::new(),
        tried,
    }
}

/// The permit that a decision names: a shipped one that trusts the domain, then the first that somebody has written, then a
/// shipped one about small changes.
fn first_permit(set: &PolicySet, permits: &[String]) -> Option<(Rule, Option<String>)> {
    let named = |id: &String| set.policies().iter().find(|policy| policy.id == *id);
    let found = permits.iter().filter_map(named);
    let ranked = found.map(|policy| match shipped_rule(&policy.id) {
        Some((place, rule)) if policy.is_shipped => {
            let after_written = matches!(rule, Rule::NoChange | Rule::LowChange);
            ((after_written, place), (rule, None))
        }
        _ => ((false, usize::MAX), (Rule::Policy, Some(policy.id.clone()))),
    });
    ranked
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, permit)| permit)
}

/// The facts that the shipped policies ask for, which need no further rows.
fn plain_facts(
    context: &Context,
    ledger: &Ledger<'_>,
    state: &AgentState,
    question: Question<'_>,
) -> AgentFacts {
    AgentFacts {
        id: state.agent.id.to_string(),
        domain: state.agent.domain.clone(),
        verified: question.domain.is_some_and(is_verified),
        proof_methods: words(proof_methods(question)),
        covered: ledger.coverage_of(question.version).is_admitted(),
        has_error: question.has_error,
        allow_listed: context.rules.allows(&state.agent.domain),
        change: change_word(question.change).to_owned(),
        ..AgentFacts::default()
    }
}

/// The methods by which the domain is verified, with spaces between.
fn proof_methods<'a>(question: Question<'a>) -> &'a str {
    let kept = question.domain.and_then(|row| row.proof_methods.as_deref());
    kept.unwrap_or_default()
}

fn is_verified(row: &domain::Model) -> bool {
    row.state == DomainState::Verified
}

/// All facts about a version, with the changes that this act has made so far.
async fn all_facts(
    context: &Context,
    write: &Write,
    ledger: &Ledger<'_>,
    state: &AgentState,
    question: Question<'_>,
) -> Result<AgentFacts, AppError> {
    let plain = plain_facts(context, ledger, state, question);
    let id = question.version.id;
    let fresh = ledger.versions.iter().chain(&ledger.judged);
    let fresh = fresh.rev().find(|row| row.id == id).cloned();
    let row = match fresh {
        Some(row) => Some(row),
        None => versions::versions_by_ids(write, &[id]).await?.pop(),
    };
    let card = |row: &version::Model| serde_json::from_str::<AgentCard>(&row.model).ok();
    let read = row.and_then(|row| Some((card(&row)?, row)));
    let Some((card, row)) = read else {
        return Ok(plain);
    };
    let domain: Vec<domain::Model> = question.domain.cloned().into_iter().collect();
    let binding = KeyBinding::of_domains(write, &domain).await?;
    let binding = binding.into_values().next().unwrap_or_default();
    let version = version::Model {
        standing: ledger.coverage_of(question.version).into(),
        ..row
    };
    let shown = ShownCard {
        agent: &state.agent,
        version: &version,
        card: &card,
        binding: &binding,
        is_of_verified_domain: plain.verified,
        proof_methods: proof_methods(question),
        is_admitted: plain.covered,
        change: question.change,
    };
    Ok(shown.facts(&context.rules))
}

async fn waived(
    context: &Context,
    write: &Write,
    agent: Uuid,
    version: &VersionKey,
) -> Result<Vec<String>, AppError> {
    let now = context.now().0;
    let granted = waivers::waivers_of(write, &[agent]).await?.into_iter();
    let counts = granted.filter(|one| one.counts_for(&version.content_digest, now));
    Ok(counts.map(|one| one.policy).collect())
}

/// An account as policies see it, with its groups; nobody where there is none that may be used.
pub async fn registrant(on: &impl Handle, account: Option<Uuid>) -> Result<Principal, AppError> {
    let ids: Vec<Uuid> = account.into_iter().collect();
    let found = accounts::accounts_by_ids(on, &ids).await?.pop();
    let Some(account) = found.filter(account::Model::may_be_used) else {
        return Ok(Principal::default());
    };
    let groups = groups::groups_of(on, &[account.id]).await?;
    Ok(Principal {
        account: Some(account.name),
        groups: named_in_policies(&groups),
    })
}

/// Puts an agent on hold whose content policies forbid, and lifts that hold where none does.
pub fn hold_by_policy(ledger: &mut Ledger<'_>, state: &mut AgentState, forbids: &[String]) {
    match forbids {
        [] => {
            let reason = "no policy forbids it";
            ledger.lift(state, Hold::Policy, POLICY, reason);
        }
        forbids => {
            let named: Vec<String> = forbids.iter().map(|id| format!("`{id}`")).collect();
            let reason = format!("forbidden by {}", named.join(", "));
            ledger.hold(state, Hold::Policy, POLICY, &reason);
        }
    }
}

/// Whether policies could put an agent on hold, or release it.
pub fn may_hold(set: &PolicySet, state: &AgentState) -> bool {
    let mut about = set.about(Action::Admit);
    state.holds.contains(&Hold::Policy)
        || about.any(|(_, policy)| {
            policy.mode == Mode::Enforce
                && !policy.is_shipped
                && (policy.effect == Effect::Forbid || policy.conditional)
        })
}

/// Puts an agent on hold, or releases it, as policies say about the content that it shows: what is served, or else the newest.
pub async fn follow_policies(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    let set = ledger.admitting(context, write).await?;
    if state.agent.retired_at.is_some() || !may_hold(&set, state) {
        return Ok(());
    }
    let shown = state.agent.approved_version.or(state.agent.newest_version);
    let shown: Vec<Uuid> = shown.into_iter().collect();
    let Some(key) = versions::version_keys(write, &shown).await?.pop() else {
        return Ok(());
    };
    let row = versions::versions_by_ids(write, &shown).await?.pop();
    let domain = domains::domains_by_ids(write, &[state.agent.domain_id]).await?;
    let question = Question {
        version: &key,
        change: state.agent.approved_version.map(|_| ChangeClass::None),
        has_error: row.is_some_and(|row| row.has_error),
        domain: domain.first(),
    };
    let said = said_about(context, write, ledger, state, question).await?;
    hold_by_policy(ledger, state, &said.forbids);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use a2a_registry_domain::admission_rules::{self, DomainPattern, Facts, Rules, Ruling};
    use a2a_registry_policy::PolicyText;

    use super::*;
    use crate::memory::policies::ShippedMatches;
    use crate::policy_sets::beside;

    /// The ruling by the shipped policies, beside a set that says nothing about admitting.
    fn decide(facts: &Facts<'_>, rules: &Rules) -> Ruling {
        let set = PolicySet::compile_beside(1, &[], &beside(rules)).unwrap();
        let asked = AgentFacts {
            domain: facts.domain.to_owned(),
            verified: facts.verified,
            covered: facts.admitted,
            has_error: facts.has_error,
            allow_listed: rules.allows(facts.domain),
            change: change_word(facts.change).to_owned(),
            ..AgentFacts::default()
        };
        let matches = set.matches(Action::Admit, &asked);
        let none = BTreeSet::new();
        let verdict = set.verdict(Action::Admit, &Principal::default(), &matches, &none);
        let permit = first_permit(&set, &verdict.policies);
        let permitted = permit.filter(|_| verdict.allowed).map(|(rule, _)| rule);
        admission_rules::decide(
            &Facts {
                permitted,
                ..*facts
            },
            rules,
        )
    }

    fn facts(change: Option<ChangeClass>) -> Facts<'static> {
        Facts {
            domain: "agents.example.com",
            verified: false,
            change,
            admitted: true,
            has_error: false,
            signature_invalid: false,
            person: None,
            permitted: None,
        }
    }

    fn rules(deny: &[&str], allow: &[&str], approve_all: bool) -> Rules {
        let patterns = |list: &[&str]| {
            list.iter()
                .map(|text| DomainPattern((*text).into()))
                .collect()
        };
        Rules {
            deny_domains: patterns(deny),
            allow_domains: patterns(allow),
            approve_all,
        }
    }

    #[test]
    fn the_first_rule_wins() {
        let all = rules(&["*.example.com"], &["*.example.com"], true);
        assert_eq!(decide(&facts(None), &all), Ruling::Denied);
        let rejected = Facts {
            person: Some(false),
            ..facts(None)
        };
        assert_eq!(
            decide(&rejected, &rules(&[], &["*.example.com"], true)),
            Ruling::Rejected
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Critical)), &rules(&[], &[], true)),
            Ruling::Approved(Rule::ApproveAll)
        );
    }

    /// However trusted the domain is, an invalid signature waits for a person, whose decision counts.
    #[test]
    fn no_rule_admits_an_invalid_signature() {
        let allow = rules(&[], &["*.example.com"], false);
        let all = rules(&[], &["*.example.com"], true);
        let changes = [
            None,
            Some(ChangeClass::None),
            Some(ChangeClass::Low),
            Some(ChangeClass::High),
            Some(ChangeClass::Critical),
        ];
        for rules in [&rules(&[], &[], false), &allow, &all] {
            for change in changes {
                for verified in [false, true] {
                    let invalid = Facts {
                        verified,
                        signature_invalid: true,
                        ..facts(change)
                    };
                    assert_eq!(decide(&invalid, rules), Ruling::Pending, "{invalid:?}");
                    for (person, ruling) in [
                        (true, Ruling::Approved(Rule::Person)),
                        (false, Ruling::Rejected),
                    ] {
                        let decided = Facts {
                            person: Some(person),
                            ..invalid
                        };
                        assert_eq!(decide(&decided, rules), ruling, "{decided:?}");
                    }
                }
            }
        }
        let denied = rules(&["*.example.com"], &[], true);
        let invalid = Facts {
            signature_invalid: true,
            ..facts(None)
        };
        assert_eq!(decide(&invalid, &denied), Ruling::Denied);
    }

    /// What was evaluated for one card holds for every other one of which the shipped policies are told the same.
    #[test]
    fn shipped_policies_ask_for_the_facts_alone_by_which_they_are_evaluated_once() {
        let set = beside(&rules(&[], &["*.example.com"], false));
        let set = PolicySet::compile_beside(1, &[], &set).unwrap();
        let known = ShippedMatches::default();
        for place in 0..160_usize {
            let is = |bit: usize| (place >> bit) & 1 == 1;
            let classes = ["first", "none", "low", "high", "critical"];
            let first = AgentFacts {
                verified: is(0),
                allow_listed: is(1),
                covered: is(2),
                has_error: is(3),
                change: classes[place / 32].to_owned(),
                ..AgentFacts::default()
            };
            let other = AgentFacts {
                id: place.to_string(),
                domain: "other.example.com".to_owned(),
                proof_methods: vec!["dns".to_owned()],
                labels: vec!["team=a".to_owned()],
                trust: 3,
                signature: "valid".to_owned(),
                lifecycle: "approved".to_owned(),
                owner_present: true,
                ..first.clone()
            };
            for card in [&first, &other] {
                let matches = set.matches(Action::Admit, card);
                assert_eq!(known.evaluate(&set, card), matches, "{card:?}");
            }
        }
    }

    #[test]
    fn allowed_domains_stop_at_errors_and_critical_changes() {
        let allow = rules(&[], &["*.example.com"], false);
        assert_eq!(
            decide(&facts(None), &allow),
            Ruling::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::High)), &allow),
            Ruling::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Critical)), &allow),
            Ruling::Pending
        );
        let broken = Facts {
            has_error: true,
            ..facts(None)
        };
        assert_eq!(decide(&broken, &allow), Ruling::Pending);
    }

    #[test]
    fn a_verified_domain_gets_its_first_card_and_small_changes_through() {
        let none = rules(&[], &[], false);
        let verified = |change| Facts {
            verified: true,
            ..facts(change)
        };
        assert_eq!(
            decide(&verified(None), &none),
            Ruling::Approved(Rule::VerifiedDomain)
        );
        assert_eq!(
            decide(&verified(Some(ChangeClass::High)), &none),
            Ruling::Pending
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Low)), &none),
            Ruling::Approved(Rule::LowChange)
        );
        assert_eq!(decide(&facts(None), &none), Ruling::Pending);
    }

    /// A nomination waits for a person, even on an allowed or proved domain; a small change to a card that a person has
    /// approved does not.
    #[test]
    fn rules_that_trust_a_domain_decide_on_no_nomination() {
        let nominated = |change| Facts {
            verified: true,
            admitted: false,
            ..facts(change)
        };
        let allow = rules(&[], &["*.example.com"], false);
        for change in [None, Some(ChangeClass::High), Some(ChangeClass::Critical)] {
            assert_eq!(decide(&nominated(change), &allow), Ruling::Pending);
        }
        assert_eq!(
            decide(&nominated(Some(ChangeClass::Low)), &allow),
            Ruling::Approved(Rule::LowChange)
        );
        let by_person = Facts {
            person: Some(true),
            ..nominated(None)
        };
        assert_eq!(decide(&by_person, &allow), Ruling::Approved(Rule::Person));
        assert_eq!(
            decide(&nominated(None), &rules(&[], &[], true)),
            Ruling::Approved(Rule::ApproveAll)
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
        let set = PolicySet::compile_beside(1, &[off, tagged], &beside(&Rules::default())).unwrap();
        let verified = AgentFacts {
            verified: true,
            covered: true,
            change: "first".into(),
            ..AgentFacts::default()
        };
        let permit = |facts: &AgentFacts| {
            let matches = set.matches(Action::Admit, facts);
            let none = BTreeSet::new();
            let verdict = set.verdict(Action::Admit, &Principal::default(), &matches, &none);
            first_permit(&set, &verdict.policies)
        };
        assert_eq!(permit(&verified), None);
        let tagged = AgentFacts {
            tags: vec!["x".into()],
            change: "low".into(),
            ..verified
        };
        assert_eq!(permit(&tagged), Some((Rule::Policy, Some("tagged".into()))));
        let plain = AgentFacts {
            tags: Vec::new(),
            ..tagged
        };
        assert_eq!(permit(&plain), Some((Rule::LowChange, None)));
    }
}
