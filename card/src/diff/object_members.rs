//! Members of an object, as the various clients find them.
//!
//! Clients recognise members differently: some also accept `snake_case`, some ignore case, and of two members with one
//! name some use the first and some the last. Members that only some clients find are kept apart here, so that no rule
//! treats one as an unknown member.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::json_equality::{BeforeAfter, is_value_unchanged};
use crate::member_reader::to_snake_case;

pub(super) type MemberRef<'a> = (&'a str, &'a Value);

/// A member of either object, with its value in both.
pub(super) type MemberBeforeAfter<'a> = (&'a str, BeforeAfter<'a>);

/// Members of one object, grouped by the clients that find them.
pub(super) struct ObjectMembers<'a> {
    known_names: &'static [&'static str],
    known: Vec<Option<MemberRef<'a>>>,
    /// Members that some clients read as one of the known ones, besides those in [`ObjectMembers::get`].
    pub(super) ambiguous: Vec<MemberRef<'a>>,
    /// Members that no client reads.
    pub(super) unknown: Vec<MemberRef<'a>>,
}

impl<'a> ObjectMembers<'a> {
    /// Splits the members into known ones (`names`, in camelCase), those that some clients read as known, and others.
    pub(super) fn new(
        object: &'a Map<String, Value>,
        known_names: &'static [&'static str],
    ) -> Self {
        let mut members = ObjectMembers {
            known_names,
            known: vec![None; known_names.len()],
            ambiguous: Vec::new(),
            unknown: Vec::new(),
        };
        let mut unmatched = Vec::new();
        for (name, value) in object {
            let index = known_names.iter().position(|known| known == name);
            match index.and_then(|place| members.known.get_mut(place)) {
                Some(slot) => *slot = Some((name, value)),
                None => unmatched.push((name.as_str(), value)),
            }
        }
        for (name, value) in unmatched {
            let Some(index) = known_names
                .iter()
                .position(|known| is_loose_spelling(name, known))
            else {
                members.unknown.push((name, value));
                continue;
            };
            let empty_slot = members.known.get_mut(index).filter(|slot| slot.is_none());
            match empty_slot {
                Some(slot) if to_snake_case(known_names[index]) == name => {
                    *slot = Some((name, value))
                }
                _ => members.ambiguous.push((name, value)),
            }
        }
        members
    }

    pub(super) fn find_member(&self, name: &str) -> Option<MemberRef<'a>> {
        let index = self.known_names.iter().position(|known| *known == name)?;
        *self.known.get(index)?
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.find_member(name).map(|(_, value)| value)
    }

    pub(super) fn changed_member(
        &self,
        before: &ObjectMembers<'a>,
        name: &'static str,
    ) -> Option<MemberBeforeAfter<'a>> {
        let values = (before.get(name), self.get(name));
        let spelling = self.find_member(name).or(before.find_member(name))?.0;
        (!is_value_unchanged(values)).then_some((spelling, values))
    }

    /// The known members whose spelling differs in `new`.
    pub(super) fn respelled_members(&self, new: &ObjectMembers<'a>) -> Vec<MemberBeforeAfter<'a>> {
        let members = self.known.iter().zip(&new.known);
        let respelled = members.filter_map(|(old, new)| {
            let ((old, before), (new, after)) = ((*old)?, (*new)?);
            (old != new).then_some((new, (Some(before), Some(after))))
        });
        respelled.collect()
    }

    pub(super) fn get_non_null(&self, name: &str) -> Option<&'a Value> {
        self.get(name).filter(|value| !value.is_null())
    }
}

/// The members that differ between two objects: those of the newer one first, then the removed ones.
pub(super) fn differing_members<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> impl Iterator<Item = MemberBeforeAfter<'a>> {
    let newer_members = after
        .iter()
        .map(|(name, value)| (name.as_str(), (before.get(name), Some(value))));
    let removed = before
        .iter()
        .filter(|(name, _)| !after.contains_key(*name))
        .map(|(name, value)| (name.as_str(), (Some(value), None)));
    newer_members
        .chain(removed)
        .filter(|(_, values)| !is_value_unchanged(*values))
}

pub(super) fn differing_listed_members<'a>(
    before: &[MemberRef<'a>],
    after: &[MemberRef<'a>],
) -> Vec<MemberBeforeAfter<'a>> {
    let mut unmatched: HashMap<&str, &'a Value> = before.iter().copied().collect();
    let mut pairs: Vec<MemberBeforeAfter<'a>> = Vec::new();
    for (name, value) in after {
        let values = (unmatched.remove(name), Some(*value));
        if !is_value_unchanged(values) {
            pairs.push((name, values));
        }
    }
    let removed = before
        .iter()
        .filter(|(name, _)| unmatched.contains_key(name));
    pairs.extend(removed.map(|(name, value)| (*name, (Some(*value), None))));
    pairs
}

/// Whether some client reads `name` as `known_name`: they are equal once the mark of a repeated member and every
/// character but letters and digits are dropped, and case is folded (also `ſ` to `s` and the Kelvin sign to `k`).
pub(super) fn is_loose_spelling(name: &str, known_name: &str) -> bool {
    let name = name.split('\0').next().unwrap_or_default();
    folded_chars(name).eq(folded_chars(known_name))
}

/// The ASCII letters and digits of a name in lower case.
fn folded_chars(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter_map(|character| match character {
        'ſ' => Some('s'),
        '\u{212a}' => Some('k'),
        _ if character.is_ascii_alphanumeric() => Some(character.to_ascii_lowercase()),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMES: &[&str] = &["url", "protocolVersion", "skills"];

    fn member_names_by_group(object: &Value) -> (Vec<String>, Vec<String>, Vec<String>) {
        let members = ObjectMembers::new(object.as_object().unwrap(), NAMES);
        let names = |members: &[MemberRef<'_>]| members.iter().map(|m| m.0.to_owned()).collect();
        let known: Vec<MemberRef<'_>> = NAMES
            .iter()
            .filter_map(|n| members.find_member(n))
            .collect();
        (
            names(&known),
            names(&members.ambiguous),
            names(&members.unknown),
        )
    }

    fn owned_names(
        known: &[&str],
        doubles: &[&str],
        rest: &[&str],
    ) -> (Vec<String>, Vec<String>, Vec<String>) {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        (owned(known), owned(doubles), owned(rest))
    }

    #[test]
    fn members_are_divided_by_the_clients_that_find_them() {
        assert_eq!(
            member_names_by_group(&json!({"protocol_version": 1, "url": 2, "other": 3})),
            owned_names(&["url", "protocol_version"], &[], &["other"])
        );
        assert_eq!(
            member_names_by_group(
                &json!({"protocol_version": 1, "protocolVersion": 2, "URL": 3, "\u{17f}\u{212a}ills": 4})
            ),
            owned_names(
                &["protocolVersion"],
                &["protocol_version", "URL", "\u{17f}\u{212a}ills"],
                &[]
            )
        );
        assert_eq!(
            member_names_by_group(&json!({"url\u{0}1": 1, "url": 2, "curl": 3, "": 4})),
            owned_names(&["url"], &["url\u{0}1"], &["curl", ""])
        );
    }
}
