//! Policies as labels: the labels of an agent by the policies that match it, and the restrictions of a caller's
//! labels.
//!
//! The labels contain the number of the set, so that an agent that was not evaluated under the set in force is shown to
//! no one, and a caller's labels never mix two sets.

use std::collections::BTreeSet;

use a2a_registry_policy::{
    Action, AgentAttributes, Effect, Policy, PolicyMatches, PolicyMode, PolicySet, Principal,
    PrincipalScope,
};
use a2a_registry_search::{NEVER_MARK, ONLY_MARK};

/// The label of an agent that was evaluated under a set.
pub fn evaluated_set_label(set: &PolicySet) -> String {
    format!("p{}", set.number())
}

/// The number of the set to which a label belongs, and whether it is that of evaluated agents.
pub fn policy_label_set(label: &str) -> Option<(u64, bool)> {
    let text = label.strip_prefix('p')?;
    let digits = text.split(['+', '-']).next()?;
    Some((digits.parse().ok()?, digits.len() == text.len()))
}

/// The labels by policies that another set has too, each with the one that stands for it in this set.
pub fn carried_policy_labels(
    set: &PolicySet,
    before: &PolicySet,
    carried: &[(u16, u16)],
) -> Vec<(String, String)> {
    let pairs = carried.iter().flat_map(|(there, here)| {
        [
            (
                matched_permit_label(before, *there),
                matched_permit_label(set, *here),
            ),
            (
                matched_forbid_label(before, *there),
                matched_forbid_label(set, *here),
            ),
        ]
    });
    pairs.collect()
}

/// The label of an agent that this permit matches.
fn matched_permit_label(set: &PolicySet, position: u16) -> String {
    format!("p{}+{position}", set.number())
}

/// The label of an agent that this forbid matches, or for which a policy could not be evaluated.
fn matched_forbid_label(set: &PolicySet, position: u16) -> String {
    format!("p{}-{position}", set.number())
}

/// The labels of an agent by the policies of a set about finding it; none if every policy matches every agent.
/// `waived` are forbids that do not apply to it.
pub fn discovery_policy_labels(
    set: &PolicySet,
    facts: &AgentAttributes,
    waived: &BTreeSet<u16>,
) -> Vec<String> {
    if set.is_independent_of_resource(Action::Discover) {
        return Vec::new();
    }
    let mut matches = set.match_agent(Action::Discover, facts);
    matches.remove_waived(waived);
    let mut labels = vec![evaluated_set_label(set)];
    labels.extend(matched_policy_labels(set, &matches));
    labels
}

/// The labels of an agent by these policies about finding it. A policy that matches every agent needs none.
pub fn matched_policy_labels(set: &PolicySet, matches: &PolicyMatches) -> Vec<String> {
    let mut labels = Vec::new();
    for (position, policy) in set.policies_for_action(Action::Discover) {
        if !policy.is_conditional {
            continue;
        }
        if matches.failed.contains(&position) {
            labels.push(matched_forbid_label(set, position));
        } else if matches.matching.contains(&position) {
            labels.push(match policy.effect {
                Effect::Permit => matched_permit_label(set, position),
                Effect::Forbid => matched_forbid_label(set, position),
            });
        }
    }
    labels
}

/// The restrictions of a set's policies on what a caller finds; `None` if nothing is permitted.
pub fn caller_restrictions(set: &PolicySet, principal: &Principal) -> Option<Vec<String>> {
    policy_restrictions(
        set,
        |policy| policy.scope.contains(principal),
        |policy| policy.scope.contains(principal),
    )
}

/// The restrictions on what every caller of a class finds, regardless of groups: only permits for everyone count, and
/// every forbid.
pub fn caller_class_restrictions(set: &PolicySet) -> Option<Vec<String>> {
    policy_restrictions(
        set,
        |policy| policy.scope == PrincipalScope::Everybody,
        |_| true,
    )
}

/// Whether a set leaves everything to visibility and holds: all its policies apply to everyone and every agent, and
/// they permit.
pub fn is_unrestricted_policy_set(set: &PolicySet) -> bool {
    set.is_independent_of_resource(Action::Discover)
        && caller_class_restrictions(set) == Some(Vec::new())
}

fn policy_restrictions(
    set: &PolicySet,
    permits: impl Fn(&Policy) -> bool,
    forbids: impl Fn(&Policy) -> bool,
) -> Option<Vec<String>> {
    let (mut only, mut never) = (Vec::new(), Vec::new());
    let mut is_always_permitted = false;
    for (position, policy) in set.policies_for_action(Action::Discover) {
        if policy.mode != PolicyMode::Enforce {
            continue;
        }
        match (policy.effect, policy.is_conditional) {
            (Effect::Forbid, false) if forbids(policy) => return None,
            (Effect::Permit, false) if permits(policy) => is_always_permitted = true,
            (Effect::Permit, true) if permits(policy) => {
                only.push(format!(
                    "{ONLY_MARK}{}",
                    matched_permit_label(set, position)
                ));
            }
            _ => {}
        }
        // A permit that could not be evaluated counts as a forbid too.
        if policy.is_conditional && forbids(policy) {
            never.push(format!(
                "{NEVER_MARK}{}",
                matched_forbid_label(set, position)
            ));
        }
    }
    match is_always_permitted {
        true if never.is_empty() => return Some(Vec::new()),
        // An agent that was not evaluated is not shown, regardless of permits.
        true => only = vec![format!("{ONLY_MARK}{}", evaluated_set_label(set))],
        false if only.is_empty() => return None,
        false => {}
    }
    only.extend(never);
    Some(only)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::collections::BTreeSet;

    use a2a_registry_policy::PolicyText;
    use a2a_registry_search::is_visible_to;

    use super::*;

    fn compile_test_policies(texts: &[&str]) -> PolicySet {
        let written: Vec<PolicyText> = (0..)
            .zip(texts)
            .map(|(number, text): (u32, _)| PolicyText {
                id: format!("p{number}"),
                text: (*text).to_owned(),
            })
            .collect();
        PolicySet::compile(3, &written).unwrap()
    }

    const OPEN: &str = "permit (principal, action, resource);";

    #[test]
    fn a_set_without_conditions_needs_no_labels() {
        let nobody = Principal::default();
        let open = compile_test_policies(&[OPEN]);
        assert!(
            discovery_policy_labels(&open, &AgentAttributes::default(), &BTreeSet::new())
                .is_empty()
        );
        assert_eq!(caller_restrictions(&open, &nobody), Some(Vec::new()));
        assert_eq!(caller_class_restrictions(&open), Some(Vec::new()));
        assert!(is_unrestricted_policy_set(&open));
        let for_some = "permit (principal in Group::\"a\", action, resource);";
        assert!(
            is_unrestricted_policy_set(&compile_test_policies(&[OPEN, for_some]))
                && !is_unrestricted_policy_set(&compile_test_policies(&[for_some]))
        );
        for closed in [
            &[] as &[&str],
            &[OPEN, "forbid (principal, action, resource);"],
        ] {
            assert_eq!(
                caller_restrictions(&compile_test_policies(closed), &nobody),
                None
            );
            assert!(!is_unrestricted_policy_set(&compile_test_policies(closed)));
        }
    }

    #[test]
    fn labels_name_their_set() {
        let set = PolicySet::compile(12, &[]).unwrap();
        for (label, expected) in [
            (evaluated_set_label(&set), Some((12, true))),
            (matched_permit_label(&set, 3), Some((12, false))),
            (matched_forbid_label(&set, 4), Some((12, false))),
            ("public".to_owned(), None),
            ("p".to_owned(), None),
        ] {
            assert_eq!(policy_label_set(&label), expected, "{label}");
        }
    }

    /// Labels decide like the sets, for every combination of scopes, effects, conditions and failures.
    #[test]
    fn labels_decide_as_the_policies_do() {
        let scopes = [
            "principal",
            "principal in Group::\"a\"",
            "principal == Account::\"ann\"",
        ];
        let conditions = [
            "",
            "when { resource.tags.contains(\"x\") }",
            "when { resource.trust * 4611686018427387904 > 0 }",
        ];
        let mut texts = Vec::new();
        for effect in ["permit", "forbid"] {
            for scope in scopes {
                for condition in conditions {
                    texts.push(format!("{effect} ({scope}, action, resource) {condition};"));
                }
            }
        }
        let agents = [
            AgentAttributes {
                trust: 0,
                ..AgentAttributes::default()
            },
            AgentAttributes {
                tags: vec!["x".into()],
                ..AgentAttributes::default()
            },
            AgentAttributes {
                trust: 4,
                ..AgentAttributes::default()
            },
        ];
        let member = |account: Option<&str>, groups: &[&str]| Principal {
            account: account.map(str::to_owned),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        };
        let callers = [
            member(None, &[]),
            member(Some("ann"), &[]),
            member(Some("bob"), &["a"]),
            member(Some("ann"), &["a"]),
        ];
        let mut shown = 0;
        for first in &texts {
            for second in &texts {
                let set = compile_test_policies(&[first, second]);
                for facts in &agents {
                    let matches = set.match_agent(Action::Discover, facts);
                    let mut carries = discovery_policy_labels(&set, facts, &BTreeSet::new());
                    carries.push("public".into());
                    for caller in &callers {
                        let labels = caller_restrictions(&set, caller).map(|mut narrowed| {
                            narrowed.push("public".into());
                            narrowed
                        });
                        let by_labels =
                            labels.is_some_and(|labels| is_visible_to(&labels, &carries));
                        let verdict =
                            set.decide(Action::Discover, caller, &matches, &BTreeSet::new());
                        assert_eq!(
                            by_labels, verdict.allowed,
                            "{first} {second} {facts:?} {caller:?}"
                        );
                        shown += usize::from(by_labels);
                    }
                    // Every member of the class finds what the class finds.
                    let common = caller_class_restrictions(&set).map(|mut narrowed| {
                        narrowed.push("public".into());
                        narrowed
                    });
                    if common.is_some_and(|labels| is_visible_to(&labels, &carries)) {
                        for caller in &callers {
                            let verdict =
                                set.decide(Action::Discover, caller, &matches, &BTreeSet::new());
                            assert!(verdict.allowed, "{first} {second} {facts:?} {caller:?}");
                        }
                    }
                }
            }
        }
        assert!(shown > 500, "{shown}");
    }
}
