//! Comparison of the remaining members of an object, after the rules of its known members.

use super::change::ChangeClass::{self, Critical, High};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::display::unmarked_member_name;
use super::object_members::{ObjectMembers, differing_listed_members};
use crate::json_pointer::JsonPointer;

/// Adds the changes that the rules of known members cannot see: members that only some clients read as known ones,
/// unknown members, and known ones with a changed spelling.
pub(super) fn compare_unknown_members(
    pointer: &JsonPointer<'_>,
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    out: &mut ChangeCollector,
) {
    compare_classified_unknown_members(pointer, old, new, |_| Critical, out);
}

/// Like [`compare_unknown_members`]; `class_of` gives the class of a member that only some clients read as a known
/// one.
pub(super) fn compare_classified_unknown_members(
    pointer: &JsonPointer<'_>,
    old: &ObjectMembers<'_>,
    new: &ObjectMembers<'_>,
    class_of: impl Fn(&str) -> ChangeClass,
    out: &mut ChangeCollector,
) {
    for (name, values) in differing_listed_members(&old.ambiguous, &new.ambiguous) {
        let shown = unmarked_member_name(name);
        let reason = "some clients read this member as a known one";
        add_each_difference(class_of(name), &pointer.member(&shown), values, reason, out);
    }
    for (name, values) in differing_listed_members(&old.unknown, &new.unknown) {
        let shown = unmarked_member_name(name);
        let reason = "no rule covers this member";
        add_each_difference(High, &pointer.member(&shown), values, reason, out);
    }
    for (name, values) in old.respelled_members(new) {
        let reason =
            "the member's name is spelt differently, and some clients accept only one spelling";
        out.add(High, &pointer.member(name), values, reason);
    }
}
