//! Members of a rendered hit. The default ones come first in its text, and markers enclose the others, so that a
//! search extracts the default ones without parsing; any others are found by name.

use std::fmt;

use a2a_registry_api::HitFields;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The marker around members that are not shown by default. It is white space in JSON, and escaped within a text.
const HIDDEN_MARKER: char = '\t';

/// The members of a JSON object in their order, each with its original text.
struct RawJsonMembers<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawJsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawJsonMembersVisitor;

        impl<'de> Visitor<'de> for RawJsonMembersVisitor {
            type Value = RawJsonMembers<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawJsonMembers(members))
            }
        }

        deserializer.deserialize_map(RawJsonMembersVisitor)
    }
}

/// Writes a hit with its default members first and markers around the others; its skills likewise.
pub fn mark_hidden_hit_members(hit: &[u8]) -> serde_json::Result<Vec<u8>> {
    let fields = HitFields::default();
    let hit = write_hit_object(
        &String::from_utf8_lossy(hit),
        "",
        fields,
        HiddenMemberTreatment::Marked,
    )?;
    Ok(hit.into_bytes())
}

pub fn mark_hidden_skill_members(skill: &str) -> serde_json::Result<String> {
    let fields = HitFields::default();
    write_hit_object(
        skill,
        HitFields::SKILLS,
        fields,
        HiddenMemberTreatment::Marked,
    )
}

/// A hit with the requested members and no others.
pub fn select_hit_members(hit: &[u8], fields: HitFields) -> Vec<u8> {
    let text = std::str::from_utf8(hit).unwrap_or_default();
    if !fields.shows_default_summary() {
        let selected = write_hit_object(text, "", fields, HiddenMemberTreatment::Omitted);
        // The index holds only objects, so the members can always be selected.
        return selected.map_or_else(|_| hit.to_vec(), String::into_bytes);
    }
    let mut selected = Vec::with_capacity(hit.len());
    for part in text.split(HIDDEN_MARKER).step_by(2) {
        selected.extend_from_slice(part.as_bytes());
    }
    selected
}

/// The treatment of an object's members that are not shown by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HiddenMemberTreatment {
    /// They follow the others, enclosed in markers.
    Marked,
    /// They are omitted.
    Omitted,
}

/// Writes an object, which is the hit or within one of its members, with the members that `fields` selects first.
fn write_hit_object(
    json: &str,
    parent: &str,
    fields: HitFields,
    hidden_members: HiddenMemberTreatment,
) -> serde_json::Result<String> {
    let RawJsonMembers(members) = serde_json::from_str(json)?;
    let is_shown = |name: &str| match parent {
        "" => fields.includes(name),
        within => fields.includes(&format!("{within}.{name}")),
    };
    let (shown, hidden): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(name, _)| is_shown(name));
    let mut text = String::with_capacity(json.len() + 16);
    text.push('{');
    for (name, value) in shown {
        write_hit_member(&mut text, name, value, fields, hidden_members)?;
    }
    if hidden_members == HiddenMemberTreatment::Marked && !hidden.is_empty() {
        text.push(HIDDEN_MARKER);
        for (name, value) in hidden {
            write_hit_member(&mut text, name, value, fields, hidden_members)?;
        }
        text.push(HIDDEN_MARKER);
    }
    text.push('}');
    Ok(text)
}

fn write_hit_member(
    text: &mut String,
    name: &str,
    value: &RawValue,
    fields: HitFields,
    hidden_members: HiddenMemberTreatment,
) -> serde_json::Result<()> {
    if !matches!(text.trim_end_matches(HIDDEN_MARKER), "{") {
        text.push(',');
    }
    text.push('"');
    text.push_str(name);
    text.push_str("\":");
    if name != HitFields::SKILLS {
        text.push_str(value.get());
        return Ok(());
    }
    let skills: Vec<&RawValue> = serde_json::from_str(value.get())?;
    let skills = skills
        .into_iter()
        .map(|skill| write_hit_object(skill.get(), name, fields, hidden_members));
    let skills = skills.collect::<serde_json::Result<Vec<_>>>()?;
    text.push('[');
    text.push_str(&skills.join(","));
    text.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    /// A hit whose texts look like members, markers and skills.
    fn hit() -> Value {
        json!({
            "links": {"self": "x\t,\"skills\":[", "card": "\t"},
            "id": "00000000-0000-0000-0000-000000000007",
            "labels": {"links": "id", "replacement": "name"},
            "name": "A\t\"B\",\"id\":1}",
            "urn": null,
            "skills": [
                {"tags": ["\t"], "description": "d\n\t", "name": "one\t", "id": "s1"},
                {"id": "s2", "name": "two", "description": null, "tags": []},
            ],
            "trust": {"level": null, "links": []},
            "card_digest": "sha256:0",
        })
    }

    fn read(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn a_marked_hit_says_the_same_and_is_cut_to_its_usual_members() {
        let whole = hit();
        let marked = mark_hidden_hit_members(&serde_json::to_vec(&whole).unwrap()).unwrap();
        assert_eq!(read(&marked), whole);
        assert_eq!(
            mark_hidden_hit_members(&marked).unwrap(),
            marked,
            "marked twice"
        );
        let usual = select_hit_members(&marked, HitFields::default());
        let mut expected = whole.clone();
        let members = expected.as_object_mut().unwrap();
        members.retain(|name, _| !["links", "labels", "card_digest"].contains(&name.as_str()));
        members["skills"] = json!([{"id": "s1", "name": "one\t"}, {"id": "s2", "name": "two"}]);
        assert_eq!(read(&usual), expected);
        // Selecting members by name gives the same result.
        let named = write_hit_object(
            std::str::from_utf8(&marked).unwrap(),
            "",
            HitFields::default(),
            HiddenMemberTreatment::Omitted,
        );
        assert_eq!(read(named.unwrap().as_bytes()), expected);
    }

    #[test]
    fn any_members_are_found_by_their_names() {
        let marked = mark_hidden_hit_members(&serde_json::to_vec(&hit()).unwrap()).unwrap();
        let whole = hit();
        let shown = |names: &[&str]| {
            let fields = HitFields::from_names(names.iter().copied()).unwrap();
            read(&select_hit_members(&marked, fields))
        };
        let id = &whole["id"];
        assert_eq!(shown(&["score"]), json!({"id": id}));
        assert_eq!(
            shown(&["links", "name"]),
            json!({"id": id, "links": whole["links"], "name": whole["name"]})
        );
        assert_eq!(
            shown(&["skills.description"]),
            json!({"id": id, "skills": [
                {"id": "s1", "name": "one\t", "description": "d\n\t"},
                {"id": "s2", "name": "two", "description": null},
            ]})
        );
        let all: Vec<&str> = HitFields::all_names().collect();
        assert_eq!(shown(&all), whole);
    }

    /// The index joins skills to their hit; each skill has its own markers.
    #[test]
    fn skills_that_are_joined_to_a_hit_are_cut_as_well() {
        let mut whole = hit();
        let skills = whole["skills"].take();
        whole.as_object_mut().unwrap().remove("skills");
        let marked = mark_hidden_hit_members(&serde_json::to_vec(&whole).unwrap()).unwrap();
        let skills = skills.as_array().unwrap().iter();
        let skills: Vec<String> = skills
            .map(|one| mark_hidden_skill_members(&one.to_string()).unwrap())
            .collect();
        let mut joined = marked.strip_suffix(b"}").unwrap().to_vec();
        joined.extend_from_slice(format!(",\"skills\":[{}]}}", skills.join(",\n")).as_bytes());
        assert_eq!(read(&joined), hit());
        let usual = read(&select_hit_members(&joined, HitFields::default()));
        assert_eq!(
            usual["skills"],
            json!([{"id": "s1", "name": "one\t"}, {"id": "s2", "name": "two"}])
        );
        assert_eq!(usual.get("links"), None);
    }
}
