//! What remains of an object when the rules of its members are done.

use super::change::ChangeClass::{self, Critical, High};
use super::changes::{Changes, each};
use super::fields::{Fields, listed_pairs};
use super::shown::shown_name;
use crate::pointer::Pointer;

/// Adds what the rules of known members cannot see: members that only some readers take for those, members
/// nobody knows, and known ones that are spelt otherwise than before.
pub(super) fn compare(at: &Pointer<'_>, old: &Fields<'_>, new: &Fields<'_>, out: &mut Changes) {
    compare_weighed(at, old, new, |_| Critical, out);
}

/// The same, where `weight` tells the class of a member that only some readers take for a known one.
pub(super) fn compare_weighed(
    at: &Pointer<'_>,
    old: &Fields<'_>,
    new: &Fields<'_>,
    weight: impl Fn(&str) -> ChangeClass,
    out: &mut Changes,
) {
    for (name, sides) in listed_pairs(&old.doubles, &new.doubles) {
        let shown = shown_name(name);
        let reason = "some readers take this member for a known one";
        each(weight(name), &at.name(&shown), sides, reason, out);
    }
    for (name, sides) in listed_pairs(&old.rest, &new.rest) {
        let shown = shown_name(name);
        let reason = "no rule knows this member";
        each(High, &at.name(&shown), sides, reason, out);
    }
    for (name, sides) in old.respelt(new) {
        let reason = "the member is spelt otherwise, and some readers know one spelling only";
        out.add(High, &at.name(name), sides, reason);
    }
}
