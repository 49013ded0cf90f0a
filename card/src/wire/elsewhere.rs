//! Reads the skills and the address of cards that have them under another name, where the form is plain.

use serde_json::Value;

use super::{capability, skill};
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, Members, Spot, is_spelling};
use crate::pointer::Pointer;
use crate::{Skill, rules};

/// Members of `capabilities` that list skills in real cards.
pub(crate) const TOOL_PLACES: [&str; 2] = ["tools", "skills"];

/// Members that list skills in real cards.
pub(crate) const SKILL_PLACES: [&str; 3] = ["capabilities", "tools", "services"];

/// Members that contain the agent's address in real cards, with the object that they are in.
const ADDRESS_PLACES: [(Option<&str>, &str); 3] = [
    (None, "endpoint"),
    (Some("endpoints"), "a2aUrl"),
    (Some("endpoints"), "baseUrl"),
];

/// The first address in such a member, with its position; `find` gives a member of the card.
pub(crate) fn address<'v>(
    find: impl Fn(&'static str) -> Option<&'v Value>,
) -> Option<(Spot, &'v str)> {
    ADDRESS_PLACES.into_iter().find_map(|(outer, name)| {
        let (spelling, value) = match outer {
            None => (name.to_owned(), find(name)?),
            Some(outer) => {
                let members = find(outer)?.as_object()?;
                let (spelling, value) = members.iter().find(|(key, _)| is_spelling(key, name))?;
                (spelling.clone(), value)
            }
        };
        let text = value.as_str()?.trim();
        let is_address = (text.contains("://") || text.starts_with('/'))
            && text.chars().count() <= Length::Address.limit()
            && !text.contains(char::is_whitespace);
        is_address.then(|| (Spot::new(outer, spelling), text))
    })
}

/// Whether a list of that many skills is so long that readers see only its beginning.
pub(crate) fn is_long(skills: usize) -> bool {
    skills > 100
}

/// Takes the first of these lists that is plainly one of skills. Only for cards without other skills.
pub(super) fn skills(members: &mut Members<'_>, out: &mut Findings) -> Vec<Skill> {
    for name in SKILL_PLACES {
        let Some(list) = members.leftover(name).filter(|list| is_plain(name, list)) else {
            continue;
        };
        let found = format!("{} elements", list.as_array().map_or(0, Vec::len));
        let spot = members.spot(name);
        let parent = members.at();
        let at = spot.below(&parent);
        if let Some(Value::Array(list)) = members.take_leftover(name) {
            out.add(&rules::SKILLS_ELSEWHERE, &at, &found);
            return listed(list, &at, out);
        }
    }
    Vec::new()
}

/// Skills in a list that has a finding as a whole.
pub(super) fn listed(list: Vec<Value>, at: &Pointer<'_>, out: &mut Findings) -> Vec<Skill> {
    let mut skills = Vec::new();
    for (index, value) in member::cut(list, at, out).into_iter().enumerate() {
        if !is_skill(&value) {
            continue;
        }
        let at = at.index(index);
        match value {
            // One finding about the list says enough about its texts.
            Value::String(text) => {
                let name = member::bounded(text, &at, Length::Line, out);
                let name = name.filter(|name| !name.is_empty());
                skills.extend(name.map(|name| Skill {
                    id: name.clone(),
                    name,
                    ..Skill::default()
                }));
            }
            other => skills.extend(skill::skill(other, None, &at, &[], out)),
        }
    }
    skills
}

/// The places of the skills in such a list; `None` if it is not plainly one.
pub(crate) fn places_of_skills(name: &str, list: &Value) -> Option<Vec<usize>> {
    let elements = list.as_array().filter(|_| is_plain(name, list))?;
    let numbered = elements.iter().take(MAX_LIST).enumerate();
    let skills = numbered.filter(|(_, value)| is_skill(value));
    Some(skills.map(|(place, _)| place).collect())
}

/// Whether every element of the list can be a skill, and one of them is one.
fn is_plain(place: &str, list: &Value) -> bool {
    let Value::Array(list) = list else {
        return false;
    };
    let fits = |value: &Value| match value {
        Value::String(text) => {
            place != "services" && !text.trim().is_empty() && !text.contains("://")
        }
        Value::Object(members) => {
            let is_text = |name: &str| members.get(name).is_some_and(Value::is_string);
            match place {
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
    list.iter().all(fits) && list.iter().any(is_skill)
}

/// Whether the element is something else than a capability of the protocol.
pub(crate) fn is_skill(value: &Value) -> bool {
    let name = value.as_str().or_else(|| value.get("name")?.as_str());
    !name.is_some_and(capability::is_known)
}
