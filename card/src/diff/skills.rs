//! Rules for skills: their texts, which people and models read, and the credentials that they require.

use serde_json::Value;

use super::change::ChangeClass::{Critical, High, Low};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::json_equality::{MemberType, both_empty_or_null, canonical_text, values_equal};
use super::list_matching::match_lists;
use super::lists_and_texts::{
    STILL_EMPTY, add_change_if_reordered, compare_modes, compare_wording, list_elements,
};
use super::object_members::ObjectMembers;
use super::security::{CallabilityCheck, InheritedRequirements, compare_requirements};
use super::unknown_members;
use crate::json_pointer::JsonPointer;
use crate::wire::member_names::SKILL_MEMBERS;

#[derive(PartialEq, Eq, Hash)]
enum SkillKey<'a> {
    Id(&'a str),
    Name(&'a str),
    Whole(String),
}

/// Compares the skills of two cards, matched by their ids.
pub(super) fn compare_skills(
    old_card: &ObjectMembers<'_>,
    new_card: &ObjectMembers<'_>,
    is_callable: CallabilityCheck<'_>,
    pointer: &JsonPointer<'_>,
    out: &mut ChangeCollector,
) {
    let Some((name, values)) = new_card.changed_member(old_card, "skills") else {
        return;
    };
    let pointer = pointer.member(name);
    if both_empty_or_null(values, MemberType::List) {
        out.add(Low, &pointer, values, STILL_EMPTY);
        return;
    }
    let (Some(old), Some(new)) = (list_elements(values.0), list_elements(values.1)) else {
        let reason = "the skills are written in a different form";
        return add_each_difference(High, &pointer, values, reason, out);
    };
    let skill_keys = |list| <[Value]>::iter(list).map(skill_key).collect::<Vec<_>>();
    let matching = match_lists(skill_keys(old), skill_keys(new));
    if !matching.ambiguous && add_change_if_reordered(&pointer, values, out) {
        return;
    }
    let card_requirements = InheritedRequirements::new(old_card, new_card);
    for index in matching.added {
        if let Some(skill) = new.get(index) {
            compare_added_skill(&pointer.element(index), skill, &card_requirements, out);
        }
    }
    for (old_index, new_index) in matching.matched {
        if let (Some(before), Some(after)) = (old.get(old_index), new.get(new_index))
            && !values_equal(before, after)
            && let (Value::Object(before), Value::Object(after)) = (before, after)
        {
            let before = ObjectMembers::new(before, &SKILL_MEMBERS);
            let after = ObjectMembers::new(after, &SKILL_MEMBERS);
            let pointer = pointer.element(new_index);
            compare_skill(
                &pointer,
                &before,
                &after,
                &card_requirements,
                is_callable,
                out,
            );
        }
    }
    for index in matching.removed {
        let (class, reason) = match new.is_empty() {
            true => (High, "all skills were removed"),
            false => (Low, "a skill was removed"),
        };
        let pointer = pointer.element(index);
        out.add(class, &pointer, (old.get(index), None), reason);
    }
    if matching.reordered {
        out.add(
            Low,
            &pointer,
            (None, None),
            "the skills are in a different order",
        );
    }
}

fn compare_added_skill(
    pointer: &JsonPointer<'_>,
    skill: &Value,
    card_requirements: &InheritedRequirements<'_>,
    out: &mut ChangeCollector,
) {
    let members = skill
        .as_object()
        .map(|members| ObjectMembers::new(members, &SKILL_MEMBERS));
    let (class, reason) = if members.is_some_and(|fields| card_requirements.is_weakened_by(&fields))
    {
        (
            Critical,
            "a new skill that requires fewer credentials than the card did",
        )
    } else {
        (High, "a new skill")
    };
    out.add(class, pointer, (None, Some(skill)), reason);
}

/// The key of a skill: its id, else its name, else all of it.
fn skill_key(skill: &Value) -> SkillKey<'_> {
    let text = |name: &str| skill.get(name).and_then(Value::as_str);
    match (text("id"), text("name")) {
        (Some(id), _) => SkillKey::Id(id),
        (None, Some(name)) => SkillKey::Name(name),
        (None, None) => SkillKey::Whole(canonical_text(skill)),
    }
}

fn compare_skill<'a>(
    pointer: &JsonPointer<'_>,
    old: &ObjectMembers<'a>,
    new: &ObjectMembers<'a>,
    card_requirements: &InheritedRequirements<'a>,
    is_callable: CallabilityCheck<'_>,
    out: &mut ChangeCollector,
) {
    compare_requirements(old, new, card_requirements, is_callable, pointer, out);
    for (name, kind, reason) in [
        ("id", MemberType::Text, "the id of a skill changed"),
        ("name", MemberType::Text, "the name of a skill changed"),
        (
            "description",
            MemberType::Text,
            "the description of a skill changed",
        ),
        ("tags", MemberType::List, "the tags of a skill changed"),
        (
            "examples",
            MemberType::List,
            "the examples of a skill changed",
        ),
    ] {
        if let Some((name, values)) = new.changed_member(old, name) {
            compare_wording(&pointer.member(name), values, kind, reason, out);
        }
    }
    for name in ["inputModes", "outputModes"] {
        if let Some((name, values)) = new.changed_member(old, name) {
            compare_modes(&pointer.member(name), values, out);
        }
    }
    unknown_members::compare_unknown_members(pointer, old, new, out);
}
