//! Reader of skills and addresses in members of other names, if their form is unambiguous.

use serde_json::Value;

use super::{capability, skill};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{
    self, LengthLimit, MAX_LIST_ELEMENTS, MemberPosition, MemberReader, is_spelling_of,
};
use crate::{Skill, rules};

/// Members of `capabilities` that list skills in real cards.
pub(crate) const TOOL_MEMBERS: [&str; 2] = ["tools", "skills"];

/// Members that list skills in real cards.
pub(crate) const MISPLACED_SKILL_MEMBERS: [&str; 3] = ["capabilities", "tools", "services"];

/// Members that contain the agent's address in real cards, with the object that contains each.
const MISPLACED_ADDRESS_MEMBERS: [(Option<&str>, &str); 3] = [
    (None, "endpoint"),
    (Some("endpoints"), "a2aUrl"),
    (Some("endpoints"), "baseUrl"),
];

/// The first address in such a member, with its position; `find` returns a member of the card.
pub(crate) fn find_misplaced_address<'v>(
    find: impl Fn(&'static str) -> Option<&'v Value>,
) -> Option<(MemberPosition, &'v str)> {
    MISPLACED_ADDRESS_MEMBERS
        .into_iter()
        .find_map(|(outer, name)| {
            let (spelling, value) = match outer {
                None => (name.to_owned(), find(name)?),
                Some(outer) => {
                    let members = find(outer)?.as_object()?;
                    let (spelling, value) =
                        members.iter().find(|(key, _)| is_spelling_of(key, name))?;
                    (spelling.clone(), value)
                }
            };
            let text = value.as_str()?.trim();
            let is_address = (text.contains("://") || text.starts_with('/'))
                && text.chars().count() <= LengthLimit::Address.max_chars()
                && !text.contains(char::is_whitespace);
            is_address.then(|| (MemberPosition::new(outer, spelling), text))
        })
}

/// Whether a list of that many skills is so long that readers see only its beginning.
pub(crate) fn is_long_skill_list(skill_count: usize) -> bool {
    skill_count > 100
}

/// Takes the first of these lists that is unambiguously a list of skills. Only for cards without other skills.
pub(super) fn take_misplaced_skills(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Vec<Skill> {
    for name in MISPLACED_SKILL_MEMBERS {
        let Some(list) = members
            .remaining_member(name)
            .filter(|list| is_skill_list(name, list))
        else {
            continue;
        };
        let found = format!("{} elements", list.as_array().map_or(0, Vec::len));
        let position = members.position_of(name);
        let parent = members.pointer();
        let pointer = position.pointer_in(&parent);
        if let Some(Value::Array(list)) = members.take_remaining_member(name) {
            out.add(&rules::SKILLS_ELSEWHERE, &pointer, &found);
            return read_skill_list(list, &pointer, out);
        }
    }
    Vec::new()
}

/// Reads the skills in a list that has a finding as a whole.
pub(super) fn read_skill_list(
    list: Vec<Value>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<Skill> {
    let mut skills = Vec::new();
    for (index, value) in member_reader::truncate_list(list, pointer, out)
        .into_iter()
        .enumerate()
    {
        if !is_non_capability(&value) {
            continue;
        }
        let pointer = pointer.element(index);
        match value {
            // The finding about the list also covers its texts.
            Value::String(text) => {
                let name = member_reader::trim_and_truncate(text, &pointer, LengthLimit::Line, out);
                let name = name.filter(|name| !name.is_empty());
                skills.extend(name.map(|name| Skill {
                    id: name.clone(),
                    name,
                    ..Skill::default()
                }));
            }
            other => skills.extend(skill::read_skill(other, None, &pointer, &[], out)),
        }
    }
    skills
}

/// The indices of the skills in such a list; `None` if it is not unambiguously one.
pub(crate) fn skill_indices(name: &str, list: &Value) -> Option<Vec<usize>> {
    let elements = list.as_array().filter(|_| is_skill_list(name, list))?;
    let numbered_elements = elements.iter().take(MAX_LIST_ELEMENTS).enumerate();
    let skills = numbered_elements.filter(|(_, value)| is_non_capability(value));
    Some(skills.map(|(index, _)| index).collect())
}

/// Whether every element of the list can be a skill, and at least one is one.
fn is_skill_list(list_name: &str, list: &Value) -> bool {
    let Value::Array(list) = list else {
        return false;
    };
    let can_be_skill = |value: &Value| match value {
        Value::String(text) => {
            list_name != "services" && !text.trim().is_empty() && !text.contains("://")
        }
        Value::Object(members) => {
            let is_text = |name: &str| members.get(name).is_some_and(Value::is_string);
            match list_name {
                "capabilities" => is_text("name") || is_text("id"),
                // Records of other standards list their endpoints in members of these names.
                _ => {
                    is_text("name")
                        && is_text("description")
                        && !members.contains_key("endpoint")
                        && !members.contains_key("url")
                }
            }
        }
        _ => false,
    };
    list.iter().all(can_be_skill) && list.iter().any(is_non_capability)
}

/// Whether the element is something other than a capability of the protocol.
pub(super) fn is_non_capability(value: &Value) -> bool {
    let name = value.as_str().or_else(|| value.get("name")?.as_str());
    !name.is_some_and(capability::is_known_capability)
}
