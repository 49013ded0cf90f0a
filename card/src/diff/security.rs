//! Rules for the credentials that callers need: schemes, requirements, and `authentication` of 0.1.

use std::collections::HashSet;

use serde_json::Value;

use super::change::ChangeClass::{Critical, High};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::display::unmarked_member_name;
use super::json_equality::{BeforeAfter, MemberType, both_empty_or_null, is_empty_or_null};
use super::lists_and_texts::add_change_if_reordered;
use super::object_members::{ObjectMembers, differing_listed_members};
use super::requirements::{
    RequirementChange, SchemeScopes, compare_auth_alternatives, parse_auth_alternatives,
};
use super::schemes;
use crate::json_pointer::JsonPointer;
use crate::wire::informal_credentials;

/// Member with the requirements, for each generation of clients, and the address that these clients call.
const REQUIREMENT_MEMBERS: [(&str, &str); 2] = [
    ("securityRequirements", "supportedInterfaces"),
    ("security", "url"),
];

/// Maximum number of schemes and scopes in a card's own requirements that are compared with those of a skill.
const MAX_CARD_REQUIREMENT_NAMES: usize = 256;

/// Whether clients that know only this address of the newer card can call it.
pub(super) type CallabilityCheck<'r> = &'r dyn Fn(&str) -> bool;

pub(super) fn compare_security(
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    is_callable: CallabilityCheck<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    if let Some((name, values)) = new.changed_member(old, "securitySchemes") {
        schemes::compare_schemes(
            &pointer.member(name),
            values,
            &referenced_scheme_names(new),
            out,
        );
    }
    if let Some((name, values)) = new.changed_member(old, "authentication") {
        let class = if both_empty_or_null(values, MemberType::Object) {
            High
        } else {
            Critical
        };
        let reason = "the way callers authenticate changed";
        add_each_difference(class, &pointer.member(name), values, reason, out);
    }
    compare_requirements(
        old,
        new,
        &InheritedRequirements::default(),
        is_callable,
        pointer,
        out,
    );
}

/// Compares credentials in members of no version, which some clients obey, and removes these from both cards.
pub(super) fn compare_nonstandard_credentials<'a>(
    old: &mut ObjectMembers<'a>,
    new: &mut ObjectMembers<'a>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let is_about_credentials = |name: &str| {
        let name = unmarked_member_name(name);
        informal_credentials::is_about_credentials(&name) || name == "schemes"
    };
    let mut credential_holders = HashSet::new();
    for (name, values) in differing_listed_members(&old.unknown, &new.unknown) {
        if !is_about_credentials(name) {
            if has_changed_credentials(&unmarked_member_name(name), values) {
                let reason = "callers may have to authenticate differently";
                add_each_difference(
                    Critical,
                    &pointer.member(&unmarked_member_name(name)),
                    values,
                    reason,
                    out,
                );
                credential_holders.insert(name);
            }
            continue;
        }
        let name = unmarked_member_name(name);
        let requires_credentials = |value: Option<&Value>| {
            value.is_some_and(|value| {
                informal_credentials::member_requires_credentials(&name, value)
            })
        };
        let class = if requires_credentials(values.0) || requires_credentials(values.1) {
            Critical
        } else {
            High
        };
        let reason = "callers may have to authenticate differently";
        add_each_difference(class, &pointer.member(&name), values, reason, out);
    }
    for card in [old, new] {
        card.unknown
            .retain(|(name, _)| !is_about_credentials(name) && !credential_holders.contains(name));
    }
}

/// Whether the credential members inside a member differ and require credentials.
fn has_changed_credentials(holder: &str, values: BeforeAfter<'_>) -> bool {
    let owned_members = |value: Option<&'_ Value>| -> Vec<(String, Value)> {
        let members = value.map_or_else(Vec::new, |value| {
            informal_credentials::nested_credential_members(holder, value)
        });
        let borrowed = members.into_iter();
        borrowed
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()
    };
    let (before, after) = (owned_members(values.0), owned_members(values.1));
    let mut members = before.iter().chain(&after);
    before != after
        && members
            .any(|(name, value)| informal_credentials::member_requires_credentials(name, value))
}

/// Requirements of both cards for every caller, which apply to skills without requirements of their own.
#[derive(Default)]
pub(super) struct InheritedRequirements<'a> {
    old: VisibleAuthAlternatives<'a>,
    new: VisibleAuthAlternatives<'a>,
}

/// Alternatives that clients of each of [`REQUIREMENT_MEMBERS`] see; `None` if they cannot be determined.
type VisibleAuthAlternatives<'a> = Option<[Option<Vec<SchemeScopes<'a>>>; 2]>;

impl<'a> InheritedRequirements<'a> {
    /// Reads both cards. Very long requirements are not compared again for every skill.
    pub(super) fn new(old: &ObjectMembers<'a>, new: &ObjectMembers<'a>) -> Self {
        let read_card = |card: &ObjectMembers<'a>| {
            let alternatives_by_member = REQUIREMENT_MEMBERS.map(|(member, _)| {
                visible_auth_alternatives(card, member, None).filter(|list| {
                    let names = list
                        .iter()
                        .flat_map(|one| one.values().map(|s| s.len() + 1));
                    list.len() + names.sum::<usize>() <= MAX_CARD_REQUIREMENT_NAMES
                })
            });
            Some(alternatives_by_member)
        };
        InheritedRequirements {
            old: read_card(old),
            new: read_card(new),
        }
    }

    /// Whether a new skill requires less than the older card required of every caller.
    pub(super) fn is_weakened_by(&self, skill: &ObjectMembers<'_>) -> bool {
        REQUIREMENT_MEMBERS
            .iter()
            .enumerate()
            .any(|(member_index, (member, _))| {
                let skill_alternatives = visible_auth_alternatives(
                    skill,
                    member,
                    inherited_auth_alternatives(&self.new, member_index),
                );
                let card_alternatives =
                    inherited_auth_alternatives(&self.old, member_index).and_then(Option::as_deref);
                skill.get_non_null(member).is_some()
                    && compare_auth_alternatives(card_alternatives, skill_alternatives.as_deref())
                        == RequirementChange::Weaker
            })
    }
}

/// The card's own requirements as one generation of clients sees them; `None` if there is no card to inherit from.
fn inherited_auth_alternatives<'s, 'a>(
    card: &'s VisibleAuthAlternatives<'a>,
    member_index: usize,
) -> Option<&'s Option<Vec<SchemeScopes<'a>>>> {
    card.as_ref()?.get(member_index)
}

/// The alternatives for clients that read `member`: from it, else from the other generation's member, else the
/// card's.
fn visible_auth_alternatives<'a>(
    holder: &ObjectMembers<'a>,
    member: &str,
    inherited: Option<&Option<Vec<SchemeScopes<'a>>>>,
) -> Option<Vec<SchemeScopes<'a>>> {
    let other_member = REQUIREMENT_MEMBERS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name != member);
    let requirement = holder
        .get_non_null(member)
        .or_else(|| holder.get_non_null(other_member?));
    match (requirement, inherited) {
        (None, Some(card)) => card.clone(),
        (requirement, _) => parse_auth_alternatives(requirement),
    }
}

/// Compares the requirements of two cards or skills as sets: order has no meaning, because each one was approved.
pub(super) fn compare_requirements<'a>(
    old: &ObjectMembers<'a>,
    new: &ObjectMembers<'a>,
    card_requirements: &InheritedRequirements<'a>,
    is_callable: CallabilityCheck<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    for (member_index, (member, address)) in REQUIREMENT_MEMBERS.into_iter().enumerate() {
        let Some((name, values)) = new.changed_member(old, member) else {
            continue;
        };
        let pointer = pointer.member(name);
        if add_change_if_reordered(&pointer, values, out) {
            continue;
        }
        let old_alternatives = visible_auth_alternatives(
            old,
            member,
            inherited_auth_alternatives(&card_requirements.old, member_index),
        );
        let new_alternatives = visible_auth_alternatives(
            new,
            member,
            inherited_auth_alternatives(&card_requirements.new, member_index),
        );
        let required_before = !is_empty_or_null(values.0, MemberType::List)
            && !old_alternatives.as_deref().is_some_and(admits_everyone);
        // The card's requirements apply to a skill without its own.
        let inherits = card_requirements.new.is_some()
            && REQUIREMENT_MEMBERS
                .iter()
                .all(|(name, _)| new.get_non_null(name).is_none());
        let is_lost = required_before
            && new.get_non_null(member).is_none()
            && is_callable(address)
            && !inherits;
        let (class, reason) = match compare_auth_alternatives(
            old_alternatives.as_deref(),
            new_alternatives.as_deref(),
        ) {
            RequirementChange::Weaker => {
                (Critical, "callers are admitted that were rejected before")
            }
            _ if is_lost => (Critical, "some clients no longer see the requirements"),
            RequirementChange::Stricter => (High, "callers need more credentials"),
            RequirementChange::Same => (
                High,
                "callers need the same credentials, written in a different form",
            ),
        };
        out.add(class, &pointer, values, reason);
    }
}

fn admits_everyone(alternatives: &[SchemeScopes<'_>]) -> bool {
    alternatives.iter().any(SchemeScopes::is_empty)
}

/// All texts and names in the requirements of a card and its skills, which may refer to schemes.
fn referenced_scheme_names<'a>(card: &ObjectMembers<'a>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (member, _) in REQUIREMENT_MEMBERS {
        collect_scheme_names(card.get(member), &mut names);
        let skills = card.get("skills").and_then(Value::as_array);
        for skill in skills.into_iter().flatten() {
            collect_scheme_names(skill.get(member), &mut names);
        }
    }
    names
}

fn collect_scheme_names<'a>(value: Option<&'a Value>, names: &mut HashSet<&'a str>) {
    match value {
        Some(Value::String(text)) => {
            names.insert(text);
        }
        Some(Value::Array(list)) => list
            .iter()
            .for_each(|value| collect_scheme_names(Some(value), names)),
        Some(Value::Object(members)) => {
            for (name, value) in members {
                names.insert(name);
                collect_scheme_names(Some(value), names);
            }
        }
        _ => {}
    }
}
