//! Compares the rest of an object, after the rules of its known members.

use super::change::ChangeClass::{self, Critical, High};
use super::changes::{Changes, each};
use super::fields::{Fields, listed_pairs};
use super::shown::shown_name;
use crate::pointer::Pointer;

/// Adds the changes that the rules of known members cannot see: members that only some clients take for known ones,
/// unknown members, and known ones with a changed spelling.
pub(super) fn compare(at: &Pointer<'_>, old: &Fields<'_>, new: &Fields<'_>, out: &mut Changes) {
    compare_weighed(at, old, new, |_| Critical, out);
}

/// Like [`compare`]; `weight` gives the class of a member that only some clients take for a known one.
pub(super) fn compare_weighed(
    at: &Pointer<'_>,
    old: &Fields<'_>,
    new: &Fields<'_>,
    weight: impl Fn(&str) -> ChangeClass,
    out: &mut Changes,
) {
    for (name, sides) in listed_pairs(&old.doubles, &new.doubles) {
        let shown = shown_name(name);
        let reason = "some clients take this member for a known one";
        each(weight(name), &at.name(&shown), sides, reason, out);
    }
    for (name, sides) in listed_pairs(&old.rest, &new.rest) {
        let shown = shown_name(name);
        let reason = "no rule knows this member";
        each(High, &at.name(&shown), sides, reason, out);
    }
    for (name, sides) in old.respelt(new) {
        let reason =
            "the member's name is spelt differently, and some clients know only one spelling";
        out.add(High, &at.name(name), sides, reason);
    }
}
