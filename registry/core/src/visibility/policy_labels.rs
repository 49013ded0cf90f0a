//! Policies as labels: what an agent carries by the policies that match it, and how they narrow what a caller's labels
//! show.
//!
//! The labels contain the number of the set, so that an agent that was not evaluated under the set in force is shown to
//! no one, and a caller's labels never mix two sets.

use std::collections::BTreeSet;

use a2a_registry_policy::{
    Action, AgentFacts, Effect, Mode, Policy, PolicySet, Principal, PrincipalScope,
};
use a2a_registry_search::{NEVER, ONLY};

/// The label of an agent that was evaluated under a set.
pub fn evaluated(set: &PolicySet) -> String {
    format!("p{}", set.number())
}

/// The label of an agent that this permit matches.
fn permitted(set: &PolicySet, place: u16) -> String {
    format!("p{}+{place}", set.number())
}

/// The label of an agent that this forbid matches, or for which a policy could not be evaluated.
fn forbidden(set: &PolicySet, place: u16) -> String {
    format!("p{}-{place}", set.number())
}

/// The labels that an agent carries by the policies of a set about finding it; none if every policy matches every
/// agent. `waived` are forbids that do not count for it.
pub fn carried(set: &PolicySet, facts: &AgentFacts, waived: &BTreeSet<u16>) -> Vec<String> {
    if set.is_plain(Action::Discover) {
        return Vec::new();
    }
    let mut matches = set.matches(Action::Discover, facts);
    matches.without(waived);
    let mut labels = vec![evaluated(set)];
    for (place, policy) in set.about(Action::Discover) {
        if matches.failed.contains(&place) {
            labels.push(forbidden(set, place));
        } else if matches.matching.contains(&place) {
            labels.push(match policy.effect {
                Effect::Permit => permitted(set, place),
                Effect::Forbid => forbidden(set, place),
            });
        }
    }
    labels
}

/// How the policies of a set narrow what a caller finds; `None` if nothing is permitted.
pub fn narrowing(set: &PolicySet, principal: &Principal) -> Option<Vec<String>> {
    narrowed(
        set,
        |policy| policy.scope.holds(principal),
        |policy| policy.scope.holds(principal),
    )
}

/// The same for what every caller with the class's labels finds, whatever its groups: only permits for everyone count,
/// and every forbid.
pub fn common_narrowing(set: &PolicySet) -> Option<Vec<String>> {
    narrowed(
        set,
        |policy| policy.scope == PrincipalScope::Everybody,
        |_| true,
    )
}

/// Whether a set leaves everything to visibility and holds: whatever it says applies to everyone and every agent, and
/// it permits.
pub fn is_open(set: &PolicySet) -> bool {
    set.is_plain(Action::Discover) && common_narrowing(set) == Some(Vec::new())
}

fn narrowed(
    set: &PolicySet,
    permits: impl Fn(&Policy) -> bool,
    forbids: impl Fn(&Policy) -> bool,
) -> Option<Vec<String>> {
    let (mut only, mut never) = (Vec::new(), Vec::new());
    let mut permitted_always = false;
    for (place, policy) in set.about(Action::Discover) {
        if policy.mode != Mode::Enforce {
            continue;
        }
        match (policy.effect, policy.conditional) {
            (Effect::Forbid, false) if forbids(policy) => return None,
            (Effect::Permit, false) if permits(policy) => permitted_always = true,
            (Effect::Permit, true) if permits(policy) => {
                only.push(format!("{ONLY}{}", permitted(set, place)));
            }
            _ => {}
        }
        // A permit that could not be evaluated forbids too.
        if policy.conditional && forbids(policy) {
            never.push(format!("{NEVER}{}", forbidden(set, place)));
        }
    }
    match permitted_always {
        true if never.is_empty() => return Some(Vec::new()),
        // Whatever permits, an agent that was not evaluated is not shown.
        true => only = vec![format!("{ONLY}{}", evaluated(set))],
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
    use a2a_registry_search::sees;

    use super::*;

    fn set(texts: &[&str]) -> PolicySet {
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
        let open = set(&[OPEN]);
        assert!(carried(&open, &AgentFacts::default(), &BTreeSet::new()).is_empty());
        assert_eq!(narrowing(&open, &nobody), Some(Vec::new()));
        assert_eq!(common_narrowing(&open), Some(Vec::new()));
        assert!(is_open(&open));
        let for_some = "permit (principal in Group::\"a\", action, resource);";
        assert!(is_open(&set(&[OPEN, for_some])) && !is_open(&set(&[for_some])));
        for closed in [
            &[] as &[&str],
            &[OPEN, "forbid (principal, action, resource);"],
        ] {
            assert_eq!(narrowing(&set(closed), &nobody), None);
            assert!(!is_open(&set(closed)));
        }
    }

    /// Labels decide as the sets do, for every mixture of scopes, effects, conditions and failures.
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
            AgentFacts {
                trust: 0,
                ..AgentFacts::default()
            },
            AgentFacts {
                tags: vec!["x".into()],
                ..AgentFacts::default()
            },
            AgentFacts {
                trust: 4,
                ..AgentFacts::default()
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
                let set = set(&[first, second]);
                for facts in &agents {
                    let matches = set.matches(Action::Discover, facts);
                    let mut carries = carried(&set, facts, &BTreeSet::new());
                    carries.push("public".into());
                    for caller in &callers {
                        let labels = narrowing(&set, caller).map(|mut narrowed| {
                            narrowed.push("public".into());
                            narrowed
                        });
                        let by_labels = labels.is_some_and(|labels| sees(&labels, &carries));
                        let verdict =
                            set.verdict(Action::Discover, caller, &matches, &BTreeSet::new());
                        assert_eq!(
                            by_labels, verdict.allowed,
                            "{first} {second} {facts:?} {caller:?}"
                        );
                        shown += usize::from(by_labels);
                    }
                    // What the class finds, each of its members finds.
                    let common = common_narrowing(&set).map(|mut narrowed| {
                        narrowed.push("public".into());
                        narrowed
                    });
                    if common.is_some_and(|labels| sees(&labels, &carries)) {
                        for caller in &callers {
                            let verdict =
                                set.verdict(Action::Discover, caller, &matches, &BTreeSet::new());
                            assert!(verdict.allowed, "{first} {second} {facts:?} {caller:?}");
                        }
                    }
                }
            }
        }
        assert!(shown > 500, "{shown}");
    }
}
