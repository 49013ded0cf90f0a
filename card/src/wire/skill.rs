//! Reader of skills: objects in every version, texts and named tools in real cards.

use std::collections::HashSet;
use std::mem;

use serde_json::{Map, Value};

use super::value_spellings::take_modes;
use super::{misplaced_members, security};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MAX_LIST_ELEMENTS, MemberReader};
use crate::{SecurityScheme, Skill, rules};

/// Members of an example that is an object, those with its prompt first.
const PROMPT_MEMBERS: [&str; 11] = [
    "input", "prompt", "query", "question", "request", "message", "parts", "text", "content",
    "example", "name",
];

/// Maximum depth at which an example is searched for its prompt.
const MAX_PROMPT_DEPTH: usize = 4;

/// Takes the examples; an example that is an object is replaced by its prompt.
fn take_examples(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> Vec<String> {
    let list = members.peek_member("examples").and_then(Value::as_array);
    if !list.is_some_and(|list| list.iter().any(Value::is_object)) {
        return members.take_texts("examples", LengthLimit::Prose, out);
    }
    let Some((position, Value::Array(list))) = members.take_member("examples", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let mut texts = Vec::new();
    for (index, value) in member_reader::truncate_list(list, &pointer, out)
        .into_iter()
        .enumerate()
    {
        let pointer = pointer.element(index);
        let prompt = value
            .as_object()
            .and_then(|_| find_example_prompt(&value, MAX_PROMPT_DEPTH));
        let text = match prompt.map(str::to_owned) {
            Some(text) => {
                out.add_coerced_type(&pointer, &value, "a text");
                member_reader::trim_and_truncate(text, &pointer, LengthLimit::Prose, out)
            }
            None => member_reader::read_text(value, &pointer, LengthLimit::Prose, out)
                .ok()
                .flatten(),
        };
        texts.extend(text.filter(|text| !text.is_empty()));
    }
    texts
}

/// Takes the tags; a text with commas is split into several tags.
fn take_tags(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> Vec<String> {
    let is_text = members.peek_member("tags").is_some_and(Value::is_string);
    let tags = members.take_texts("tags", LengthLimit::Line, out);
    if !is_text {
        return tags;
    }
    let parts = tags.iter().flat_map(|text| text.split([',', ';']));
    let parts = parts.map(str::trim).filter(|tag| !tag.is_empty());
    parts.take(MAX_LIST_ELEMENTS).map(str::to_owned).collect()
}

fn find_example_prompt(value: &Value, depth: usize) -> Option<&str> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then_some(text),
        Value::Object(members) if depth > 0 => PROMPT_MEMBERS
            .iter()
            .find_map(|name| find_example_prompt(members.get(*name)?, depth - 1)),
        Value::Array(list) if depth > 0 => list
            .iter()
            .find_map(|one| find_example_prompt(one, depth - 1)),
        _ => None,
    }
}

/// Takes `skills`. `declared_schemes` are the card's own security schemes, to which skills refer.
pub(super) fn take_skills(
    members: &mut MemberReader<'_>,
    declared_schemes: &[SecurityScheme],
    out: &mut FindingCollector,
) -> Vec<Skill> {
    let Some((position, value)) = members.take_member("skills", out) else {
        return Vec::new();
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    match value {
        Value::Array(list) => read_listed_skills(list, &pointer, declared_schemes, out),
        Value::Object(named) if named.values().all(Value::is_object) => {
            out.add(&rules::SKILL_SHAPE, &pointer, "an object");
            self::read_named_skills(named, &pointer, declared_schemes, out)
        }
        Value::Object(lists_by_name) if lists_by_name.values().any(Value::is_array) => {
            out.add(&rules::SKILL_SHAPE, &pointer, "lists in an object");
            let lists = lists_by_name
                .into_iter()
                .filter_map(|(name, value)| match value {
                    Value::Array(list) => Some(misplaced_members::read_skill_list(
                        list,
                        &pointer.member(&name),
                        out,
                    )),
                    _ => None,
                });
            let mut unique_ids = HashSet::new();
            let skills = lists
                .flatten()
                .filter(|skill| unique_ids.insert(skill.id.clone()));
            skills.take(MAX_LIST_ELEMENTS).collect()
        }
        Value::String(_) => {
            out.add_with_value(&rules::SKILL_SHAPE, &pointer, &value);
            read_listed_skills(vec![value], &pointer, declared_schemes, out)
        }
        other => {
            out.add_with_value(&rules::SKILL_SHAPE, &pointer, &other);
            members.retain_unreadable(&position, other);
            Vec::new()
        }
    }
}

pub(super) fn read_listed_skills(
    list: Vec<Value>,
    pointer: &JsonPointer<'_>,
    declared_schemes: &[SecurityScheme],
    out: &mut FindingCollector,
) -> Vec<Skill> {
    let mut skills = Vec::new();
    for (index, value) in member_reader::truncate_list(list, pointer, out)
        .into_iter()
        .enumerate()
    {
        skills.extend(read_skill(
            value,
            None,
            &pointer.element(index),
            declared_schemes,
            out,
        ));
    }
    skills
}

pub(super) fn read_named_skills(
    skills_by_name: Map<String, Value>,
    pointer: &JsonPointer<'_>,
    declared_schemes: &[SecurityScheme],
    out: &mut FindingCollector,
) -> Vec<Skill> {
    if skills_by_name.len() > MAX_LIST_ELEMENTS {
        out.add(
            &rules::LIST_CUT,
            pointer,
            &format!("{} skills", skills_by_name.len()),
        );
    }
    let mut skills = Vec::new();
    for (name, value) in skills_by_name.into_iter().take(MAX_LIST_ELEMENTS) {
        let pointer = pointer.member(&name);
        skills.extend(read_skill(
            value,
            Some(&name),
            &pointer,
            declared_schemes,
            out,
        ));
    }
    skills
}

/// Reads one skill; `key` is its name in an object of skills.
pub(super) fn read_skill(
    value: Value,
    key: Option<&str>,
    pointer: &JsonPointer<'_>,
    declared_schemes: &[SecurityScheme],
    out: &mut FindingCollector,
) -> Option<Skill> {
    let members = match value {
        Value::Object(members) => members,
        Value::String(text) => {
            out.add(&rules::SKILL_TEXT, pointer, &text);
            let name = member_reader::trim_and_truncate(text, pointer, LengthLimit::Line, out)
                .filter(|t| !t.is_empty())?;
            return Some(Skill {
                id: name.clone(),
                name,
                ..Skill::default()
            });
        }
        other => {
            out.add_wrong_type(
                pointer,
                &other,
                "an object with `id`, `name`, `description` and `tags`",
            );
            return None;
        }
    };
    let mut members = MemberReader::new(members, *pointer);
    let (id, name) = take_id_and_name(&mut members, key, pointer, out)?;
    Some(Skill {
        id,
        name,
        description: members.take_text("description", LengthLimit::Prose, out),
        tags: take_tags(&mut members, out),
        examples: take_examples(&mut members, out),
        input_modes: take_modes(&mut members, "inputModes", out),
        output_modes: take_modes(&mut members, "outputModes", out),
        security: security::take_security_requirements(&mut members, declared_schemes, out),
    })
}

/// Takes the id and the name of a skill; a missing one is taken from the other. `None`, with a finding, if both are
/// missing.
fn take_id_and_name(
    members: &mut MemberReader<'_>,
    key: Option<&str>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Option<(String, String)> {
    let key = key
        .and_then(|key| {
            member_reader::trim_and_truncate(key.to_owned(), pointer, LengthLimit::Line, out)
        })
        .filter(|key| !key.is_empty());
    let mut id = members.take_text("id", LengthLimit::Line, out).or(key);
    let name = members.take_text("name", LengthLimit::Line, out);
    if id.is_none() && name.is_none() {
        // The Open Agentic Schema Framework names skills by their class.
        id = members
            .take_text("className", LengthLimit::Line, out)
            .or_else(|| members.take_text("categoryName", LengthLimit::Line, out));
    }
    match (id, name) {
        (Some(id), Some(name)) => Some((id, name)),
        (None, Some(name)) => {
            out.add(&rules::SKILL_ID, pointer, &name);
            Some((name.clone(), name))
        }
        (Some(id), None) => {
            out.add(&rules::SKILL_NAME, pointer, &id);
            Some((id.clone(), id))
        }
        (None, None) => {
            let empty = MemberReader::new(Map::new(), members.pointer());
            let rest = mem::replace(members, empty).into_remaining();
            out.add_with_value(&rules::SKILL_NAMELESS, pointer, &Value::Object(rest));
            None
        }
    }
}
