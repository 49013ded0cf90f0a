//! The members of an object, as the various clients find them.
//!
//! Clients recognise members differently: some accept `snake_case` too, some ignore case, some take the first and
//! some the last of two with the same name. Members that only some of them would find are kept apart here, so that no
//! rule mistakes one for an unknown member.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::tree::{Sides, same_sides};
use crate::member::snake_case;

pub(super) type Member<'a> = (&'a str, &'a Value);

/// A member of either object, with its value in both.
pub(super) type Pair<'a> = (&'a str, Sides<'a>);

/// The members of one object, by the clients that find them.
pub(super) struct Fields<'a> {
    names: &'static [&'static str],
    found: Vec<Option<Member<'a>>>,
    /// Members that some clients take for one of the known ones, besides those in [`Fields::get`].
    pub(super) doubles: Vec<Member<'a>>,
    /// Members that no client reads.
    pub(super) rest: Vec<Member<'a>>,
}

impl<'a> Fields<'a> {
    /// Splits the members into known ones (`names`, in camelCase), those that some clients take for them, and others.
    pub(super) fn of(object: &'a Map<String, Value>, names: &'static [&'static str]) -> Self {
        let mut fields = Fields {
            names,
            found: vec![None; names.len()],
            doubles: Vec::new(),
            rest: Vec::new(),
        };
        let mut odd = Vec::new();
        for (name, value) in object {
            let place = names.iter().position(|known| known == name);
            match place.and_then(|place| fields.found.get_mut(place)) {
                Some(slot) => *slot = Some((name, value)),
                None => odd.push((name.as_str(), value)),
            }
        }
        for (name, value) in odd {
            let Some(place) = names.iter().position(|known| folds_to(name, known)) else {
                fields.rest.push((name, value));
                continue;
            };
            let free = fields.found.get_mut(place).filter(|slot| slot.is_none());
            match free {
                Some(slot) if snake_case(names[place]) == name => *slot = Some((name, value)),
                _ => fields.doubles.push((name, value)),
            }
        }
        fields
    }

    pub(super) fn member(&self, name: &str) -> Option<Member<'a>> {
        let place = self.names.iter().position(|known| *known == name)?;
        *self.found.get(place)?
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.member(name).map(|(_, value)| value)
    }

    pub(super) fn changed(&self, before: &Fields<'a>, name: &'static str) -> Option<Pair<'a>> {
        let sides = (before.get(name), self.get(name));
        let spelling = self.member(name).or(before.member(name))?.0;
        (!same_sides(sides)).then_some((spelling, sides))
    }

    /// The known members that are spelt differently in `new`.
    pub(super) fn respelt(&self, new: &Fields<'a>) -> Vec<Pair<'a>> {
        let members = self.found.iter().zip(&new.found);
        let respelt = members.filter_map(|(old, new)| {
            let ((old, before), (new, after)) = ((*old)?, (*new)?);
            (old != new).then_some((new, (Some(before), Some(after))))
        });
        respelt.collect()
    }

    pub(super) fn non_null(&self, name: &str) -> Option<&'a Value> {
        self.get(name).filter(|value| !value.is_null())
    }
}

/// The members that differ between two objects: those of the newer one first, then the removed ones.
pub(super) fn pairs<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> impl Iterator<Item = Pair<'a>> {
    let kept = after
        .iter()
        .map(|(name, value)| (name.as_str(), (before.get(name), Some(value))));
    let gone = before
        .iter()
        .filter(|(name, _)| !after.contains_key(*name))
        .map(|(name, value)| (name.as_str(), (Some(value), None)));
    kept.chain(gone).filter(|(_, sides)| !same_sides(*sides))
}

pub(super) fn listed_pairs<'a>(before: &[Member<'a>], after: &[Member<'a>]) -> Vec<Pair<'a>> {
    let mut old: HashMap<&str, &'a Value> = before.iter().copied().collect();
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for (name, value) in after {
        let sides = (old.remove(name), Some(*value));
        if !same_sides(sides) {
            pairs.push((name, sides));
        }
    }
    let gone = before.iter().filter(|(name, _)| old.contains_key(name));
    pairs.extend(gone.map(|(name, value)| (*name, (Some(*value), None))));
    pairs
}

/// Whether some client takes `name` for `known`: they are equal once the mark of a repeated member and every character
/// but letters and digits are dropped, and case is folded (also `ſ` to `s` and the Kelvin sign to `k`).
pub(super) fn folds_to(name: &str, known: &str) -> bool {
    let name = name.split('\0').next().unwrap_or_default();
    folded(name).eq(folded(known))
}

/// The ASCII letters and digits of a name in lower case.
fn folded(name: &str) -> impl Iterator<Item = char> {
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

    fn divided(object: &Value) -> (Vec<String>, Vec<String>, Vec<String>) {
        let fields = Fields::of(object.as_object().unwrap(), NAMES);
        let names = |members: &[Member<'_>]| members.iter().map(|m| m.0.to_owned()).collect();
        let known: Vec<Member<'_>> = NAMES.iter().filter_map(|n| fields.member(n)).collect();
        (names(&known), names(&fields.doubles), names(&fields.rest))
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
            divided(&json!({"protocol_version": 1, "url": 2, "other": 3})),
            owned_names(&["url", "protocol_version"], &[], &["other"])
        );
        assert_eq!(
            divided(
                &json!({"protocol_version": 1, "protocolVersion": 2, "URL": 3, "\u{17f}\u{212a}ills": 4})
            ),
            owned_names(
                &["protocolVersion"],
                &["protocol_version", "URL", "\u{17f}\u{212a}ills"],
                &[]
            )
        );
        assert_eq!(
            divided(&json!({"url\u{0}1": 1, "url": 2, "curl": 3, "": 4})),
            owned_names(&["url"], &["url\u{0}1"], &["curl", ""])
        );
    }
}
