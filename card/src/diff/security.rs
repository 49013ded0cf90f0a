//! Rules for the credentials that callers need: schemes, requirements, and `authentication` of 0.1.

use std::collections::HashSet;

use serde_json::Value;

use super::change::ChangeClass::{Critical, High};
use super::changes::{Changes, each};
use super::fields::{Fields, listed_pairs};
use super::lists::reordered;
use super::requirements::{Alternative, RequirementChange, alternatives, weigh};
use super::schemes;
use super::shown::shown_name;
use super::tree::{Kind, Sides, both_blank, is_blank};
use crate::pointer::Pointer;
use crate::wire::informal;

/// The member with the requirements for each generation of clients, and the address that they call.
const VIEWS: [(&str, &str); 2] = [
    ("securityRequirements", "supportedInterfaces"),
    ("security", "url"),
];

/// Most schemes and scopes of a card's own requirements that are compared with those of a skill.
const MAX_CARD_NAMES: usize = 256;

/// Whether clients that know only this address of the newer card can call it.
pub(super) type Reaches<'r> = &'r dyn Fn(&str) -> bool;

pub(super) fn compare(
    old: &Fields<'_>,
    new: &Fields<'_>,
    reaches: Reaches<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    if let Some((name, sides)) = new.changed(old, "securitySchemes") {
        schemes::compare(&at.name(name), sides, &named(new), out);
    }
    if let Some((name, sides)) = new.changed(old, "authentication") {
        let class = if both_blank(sides, Kind::Object) {
            High
        } else {
            Critical
        };
        let reason = "callers authenticate in another way";
        each(class, &at.name(name), sides, reason, out);
    }
    requirements(old, new, &CardRequirements::default(), reaches, at, out);
}

/// Compares credentials in members of no version, which some clients obey, and removes these from `rest`.
pub(super) fn compare_undefined_members<'a>(
    old: &mut Fields<'a>,
    new: &mut Fields<'a>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    let is_about = |name: &str| {
        let name = shown_name(name);
        informal::is_about_credentials(&name) || name == "schemes"
    };
    let mut leading = HashSet::new();
    for (name, sides) in listed_pairs(&old.rest, &new.rest) {
        if !is_about(name) {
            if holds_other_credentials(&shown_name(name), sides) {
                let reason = "callers may have to authenticate in another way";
                each(Critical, &at.name(&shown_name(name)), sides, reason, out);
                leading.insert(name);
            }
            continue;
        }
        let name = shown_name(name);
        let asks = |side: Option<&Value>| side.is_some_and(|value| informal::asks(&name, value));
        let class = if asks(sides.0) || asks(sides.1) {
            Critical
        } else {
            High
        };
        let reason = "callers may have to authenticate in another way";
        each(class, &at.name(&name), sides, reason, out);
    }
    for card in [old, new] {
        card.rest
            .retain(|(name, _)| !is_about(name) && !leading.contains(name));
    }
}

/// Whether the credential members inside a member differ, and require anything.
fn holds_other_credentials(holder: &str, sides: Sides<'_>) -> bool {
    let held = |side: Option<&'_ Value>| -> Vec<(String, Value)> {
        let members = side.map_or_else(Vec::new, |value| informal::held_members(holder, value));
        let owned = members.into_iter();
        owned
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()
    };
    let (before, after) = (held(sides.0), held(sides.1));
    let mut members = before.iter().chain(&after);
    before != after && members.any(|(name, value)| informal::asks(name, value))
}

/// The requirements of both cards for every caller, which apply to skills without requirements of their own.
#[derive(Default)]
pub(super) struct CardRequirements<'a> {
    old: VisibleAlternatives<'a>,
    new: VisibleAlternatives<'a>,
}

/// The alternatives that clients of each of [`VIEWS`] see; `None` where they cannot be determined.
type VisibleAlternatives<'a> = Option<[Option<Vec<Alternative<'a>>>; 2]>;

impl<'a> CardRequirements<'a> {
    /// Reads both cards. Very long requirements are not compared again for every skill.
    pub(super) fn of(old: &Fields<'a>, new: &Fields<'a>) -> Self {
        let read = |card: &Fields<'a>| {
            let views = VIEWS.map(|(own, _)| {
                visible_alternatives(card, own, None).filter(|list| {
                    let names = list
                        .iter()
                        .flat_map(|one| one.values().map(|s| s.len() + 1));
                    list.len() + names.sum::<usize>() <= MAX_CARD_NAMES
                })
            });
            Some(views)
        };
        CardRequirements {
            old: read(old),
            new: read(new),
        }
    }

    /// Whether a new skill requires less than the older card did of every caller.
    pub(super) fn is_undercut(&self, skill: &Fields<'_>) -> bool {
        VIEWS.iter().enumerate().any(|(view, (own, _))| {
            let asked = visible_alternatives(skill, own, card_requirements(&self.new, view));
            let before = card_requirements(&self.old, view).and_then(Option::as_deref);
            skill.non_null(own).is_some()
                && weigh(before, asked.as_deref()) == RequirementChange::Weaker
        })
    }
}

/// The card's own requirements as clients of one view see them; `None` where there is no card to fall back to.
fn card_requirements<'s, 'a>(
    card: &'s VisibleAlternatives<'a>,
    view: usize,
) -> Option<&'s Option<Vec<Alternative<'a>>>> {
    card.as_ref()?.get(view)
}

/// The alternatives for clients that read `own`: those in it, else in the other generation's member, else the card's.
fn visible_alternatives<'a>(
    holder: &Fields<'a>,
    own: &str,
    card: Option<&Option<Vec<Alternative<'a>>>>,
) -> Option<Vec<Alternative<'a>>> {
    let other = VIEWS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name != own);
    let requirement = holder.non_null(own).or_else(|| holder.non_null(other?));
    match (requirement, card) {
        (None, Some(card)) => card.clone(),
        (requirement, _) => alternatives(requirement),
    }
}

/// Compares the requirements of two cards or skills as sets: the order has no meaning, since each one was approved.
pub(super) fn requirements<'a>(
    old: &Fields<'a>,
    new: &Fields<'a>,
    card: &CardRequirements<'a>,
    reaches: Reaches<'_>,
    at: &Pointer<'_>,
    out: &mut Changes,
) {
    for (view, (own, address)) in VIEWS.into_iter().enumerate() {
        let Some((name, sides)) = new.changed(old, own) else {
            continue;
        };
        let at = at.name(name);
        if reordered(&at, sides, out) {
            continue;
        }
        let was = visible_alternatives(old, own, card_requirements(&card.old, view));
        let is = visible_alternatives(new, own, card_requirements(&card.new, view));
        let asked = !is_blank(sides.0, Kind::List) && !was.as_deref().is_some_and(is_open);
        // The card's requirements apply to a skill without its own.
        let inherits =
            card.new.is_some() && VIEWS.iter().all(|(name, _)| new.non_null(name).is_none());
        let lost = asked && new.non_null(own).is_none() && reaches(address) && !inherits;
        let (class, reason) = match weigh(was.as_deref(), is.as_deref()) {
            RequirementChange::Weaker => (Critical, "callers are admitted that were not before"),
            _ if lost => (Critical, "some clients no longer see the requirements"),
            RequirementChange::Stricter => (High, "callers need more credentials"),
            RequirementChange::Same => (
                High,
                "callers need the same credentials, written in another form",
            ),
        };
        out.add(class, &at, sides, reason);
    }
}

fn is_open(alternatives: &[Alternative<'_>]) -> bool {
    alternatives.iter().any(Alternative::is_empty)
}

/// Every text and name in the requirements of a card and its skills: all schemes that they may refer to.
fn named<'a>(card: &Fields<'a>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (own, _) in VIEWS {
        collect(card.get(own), &mut names);
        let skills = card.get("skills").and_then(Value::as_array);
        for skill in skills.into_iter().flatten() {
            collect(skill.get(own), &mut names);
        }
    }
    names
}

fn collect<'a>(value: Option<&'a Value>, names: &mut HashSet<&'a str>) {
    match value {
        Some(Value::String(text)) => {
            names.insert(text);
        }
        Some(Value::Array(list)) => list.iter().for_each(|value| collect(Some(value), names)),
        Some(Value::Object(members)) => {
            for (name, value) in members {
                names.insert(name);
                collect(Some(value), names);
            }
        }
        _ => {}
    }
}
