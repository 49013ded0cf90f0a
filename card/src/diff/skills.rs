//! Rules for skills: their texts, which people and models read, and the credentials that they require.

use serde_json::Value;

use super::change::ChangeClass::{Critical, High, Low};
use super::changes::{Changes, each};
use super::fields::Fields;
use super::leftovers;
use super::lists::{BLANK, elements, modes, reordered, wording};
use super::matching::matches;
use super::security::{CardRequirements, Reaches, requirements};
use super::tree::{Kind, both_blank, canonical, same};
use crate::pointer::Pointer;

const SKILL: &[&str] = &[
    "id",
    "name",
    "description",
    "tags",
    "examples",
    "inputModes",
    "outputModes",
    "security",
    "securityRequirements",
];

#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Id(&'a str),
    Name(&'a str),
    Whole(String),
}

/// Compares the skills of two cards, matched by their ids.
pub(super) fn compare(
    old_card: &Fields<'_>,
    new_card: &Fields<'_>,
    reaches: Reaches<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let Some((name, sides)) = new_card.changed(old_card, "skills") else {
        return;
    };
    let at = at.name(name);
    if both_blank(sides, Kind::List) {
        out.add(Low, &at, sides, BLANK);
        return;
    }
    let (Some(old), Some(new)) = (elements(sides.0), elements(sides.1)) else {
        each(
            High,
            &at,
            sides,
            "the skills are written in another form",
            out,
        );
        return;
    };
    let keys = |list| <[Value]>::iter(list).map(key).collect::<Vec<_>>();
    let matched = matches(keys(old), keys(new));
    if !matched.ambiguous && reordered(&at, sides, out) {
        return;
    }
    let card = CardRequirements::of(old_card, new_card);
    for place in matched.added {
        if let Some(skill) = new.get(place) {
            added(&at.index(place), skill, &card, out);
        }
    }
    for (from, to) in matched.both {
        if let (Some(before), Some(after)) = (old.get(from), new.get(to))
            && !same(before, after)
            && let (Value::Object(old), Value::Object(new)) = (before, after)
        {
            let (old, new) = (Fields::of(old, SKILL), Fields::of(new, SKILL));
            skill(&at.index(to), &old, &new, &card, reaches, out);
        }
    }
    for place in matched.gone {
        let (class, reason) = if new.is_empty() {
            (High, "all skills were removed")
        } else {
            (Low, "a skill was removed")
        };
        out.add(class, &at.index(place), (old.get(place), None), reason);
    }
    if matched.reordered {
        out.add(Low, &at, (None, None), "the skills are in another order");
    }
}

fn added(at: &Pointer<'_>, skill: &Value, card: &CardRequirements<'_>, out: &mut Changes) {
    let fields = skill.as_object().map(|members| Fields::of(members, SKILL));
    let (class, reason) = if fields.is_some_and(|fields| card.is_undercut(&fields)) {
        (
            Critical,
            "a new skill that requires fewer credentials than the card did",
        )
    } else {
        (High, "a new skill")
    };
    out.add(class, at, (None, Some(skill)), reason);
}

/// The key of a skill: its id, else its name, else all of it.
fn key(skill: &Value) -> Key<'_> {
    let text = |name: &str| skill.get(name).and_then(Value::as_str);
    match (text("id"), text("name")) {
        (Some(id), _) => Key::Id(id),
        (None, Some(name)) => Key::Name(name),
        (None, None) => Key::Whole(canonical(skill)),
    }
}

fn skill<'a>(
    at: &Pointer<'_>,
    old: &Fields<'a>,
    new: &Fields<'a>,
    card: &CardRequirements<'a>,
    reaches: Reaches<'_>,
    out: &mut Changes,
) {
    requirements(old, new, card, reaches, at, out);
    for (name, kind, reason) in [
        ("id", Kind::Text, "a skill has another id"),
        ("name", Kind::Text, "a skill has another name"),
        (
            "description",
            Kind::Text,
            "the description of a skill changed",
        ),
        ("tags", Kind::List, "the tags of a skill changed"),
        ("examples", Kind::List, "the examples of a skill changed"),
    ] {
        if let Some((name, sides)) = new.changed(old, name) {
            wording(&at.name(name), sides, kind, reason, out);
        }
    }
    for name in ["inputModes", "outputModes"] {
        if let Some((name, sides)) = new.changed(old, name) {
            modes(&at.name(name), sides, out);
        }
    }
    leftovers::compare(at, old, new, out);
}
