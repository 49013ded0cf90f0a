//! Reads skills: objects in every version, texts and named tools in real cards.

use std::collections::HashSet;
use std::mem;

use serde_json::{Map, Value};

use super::names::take_modes;
use super::{elsewhere, security};
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, Members};
use crate::pointer::Pointer;
use crate::{SecurityScheme, Skill, rules};

/// Members of an example that is an object, the ones with its prompt first.
const PROMPTS: [&str; 11] = [
    "input", "prompt", "query", "question", "request", "message", "parts", "text", "content",
    "example", "name",
];

/// Deepest object in an example that is searched for its prompt.
const PROMPT_DEPTH: usize = 4;

/// Takes the examples; of one that is an object, its prompt.
fn examples(members: &mut Members<'_>, out: &mut Findings) -> Vec<String> {
    let list = members.peek("examples").and_then(Value::as_array);
    if !list.is_some_and(|list| list.iter().any(Value::is_object)) {
        return members.texts("examples", Length::Prose, out);
    }
    let Some((spot, Value::Array(list))) = members.take("examples", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    let mut texts = Vec::new();
    for (index, value) in member::cut(list, &at, out).into_iter().enumerate() {
        let at = at.index(index);
        let prompt = value.as_object().and_then(|_| prompt(&value, PROMPT_DEPTH));
        let text = match prompt.map(str::to_owned) {
            Some(text) => {
                out.coerced(&at, &value, "a text");
                member::bounded(text, &at, Length::Prose, out)
            }
            None => member::text(value, &at, Length::Prose, out).ok().flatten(),
        };
        texts.extend(text.filter(|text| !text.is_empty()));
    }
    texts
}

/// Takes the tags; one text with commas is several.
fn tags(members: &mut Members<'_>, out: &mut Findings) -> Vec<String> {
    let is_text = members.peek("tags").is_some_and(Value::is_string);
    let tags = members.texts("tags", Length::Line, out);
    if !is_text {
        return tags;
    }
    let split = tags.iter().flat_map(|text| text.split([',', ';']));
    let split = split.map(str::trim).filter(|tag| !tag.is_empty());
    split.take(MAX_LIST).map(str::to_owned).collect()
}

fn prompt(value: &Value, depth: usize) -> Option<&str> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then_some(text),
        Value::Object(members) if depth > 0 => PROMPTS
            .iter()
            .find_map(|name| prompt(members.get(*name)?, depth - 1)),
        Value::Array(list) if depth > 0 => list.iter().find_map(|one| prompt(one, depth - 1)),
        _ => None,
    }
}

/// Takes `skills`. `declared` are the card's own security schemes, which skills refer to.
pub(super) fn skills(
    members: &mut Members<'_>,
    declared: &[SecurityScheme],
    out: &mut Findings,
) -> Vec<Skill> {
    let Some((spot, value)) = members.take("skills", out) else {
        return Vec::new();
    };
    let parent = members.at();
    let at = spot.below(&parent);
    match value {
        Value::Array(list) => listed(list, &at, declared, out),
        Value::Object(named) if named.values().all(Value::is_object) => {
            out.add(&rules::SKILL_SHAPE, &at, "an object");
            self::named(named, &at, declared, out)
        }
        Value::Object(tiers) if tiers.values().any(Value::is_array) => {
            out.add(&rules::SKILL_SHAPE, &at, "lists in an object");
            let lists = tiers.into_iter().filter_map(|(name, value)| match value {
                Value::Array(list) => Some(elsewhere::listed(list, &at.name(&name), out)),
                _ => None,
            });
            let mut seen = HashSet::new();
            let skills = lists
                .flatten()
                .filter(|skill| seen.insert(skill.id.clone()));
            skills.take(MAX_LIST).collect()
        }
        Value::String(_) => {
            out.add_value(&rules::SKILL_SHAPE, &at, &value);
            listed(vec![value], &at, declared, out)
        }
        other => {
            out.add_value(&rules::SKILL_SHAPE, &at, &other);
            members.keep(&spot, other);
            Vec::new()
        }
    }
}

pub(super) fn listed(
    list: Vec<Value>,
    at: &Pointer<'_>,
    declared: &[SecurityScheme],
    out: &mut Findings,
) -> Vec<Skill> {
    let mut skills = Vec::new();
    for (index, value) in member::cut(list, at, out).into_iter().enumerate() {
        skills.extend(skill(value, None, &at.index(index), declared, out));
    }
    skills
}

pub(super) fn named(
    named: Map<String, Value>,
    at: &Pointer<'_>,
    declared: &[SecurityScheme],
    out: &mut Findings,
) -> Vec<Skill> {
    if named.len() > MAX_LIST {
        out.add(&rules::LIST_CUT, at, &format!("{} skills", named.len()));
    }
    let mut skills = Vec::new();
    for (name, value) in named.into_iter().take(MAX_LIST) {
        let at = at.name(&name);
        skills.extend(skill(value, Some(&name), &at, declared, out));
    }
    skills
}

/// Reads one skill; `key` is the name under which an object of skills has it.
pub(super) fn skill(
    value: Value,
    key: Option<&str>,
    at: &Pointer<'_>,
    declared: &[SecurityScheme],
    out: &mut Findings,
) -> Option<Skill> {
    let members = match value {
        Value::Object(members) => members,
        Value::String(text) => {
            out.add(&rules::SKILL_TEXT, at, &text);
            let name = member::bounded(text, at, Length::Line, out).filter(|t| !t.is_empty())?;
            return Some(Skill {
                id: name.clone(),
                name,
                ..Skill::default()
            });
        }
        other => {
            out.mistyped(
                at,
                &other,
                "an object with `id`, `name`, `description` and `tags`",
            );
            return None;
        }
    };
    let mut members = Members::new(members, *at);
    let (id, name) = id_and_name(&mut members, key, at, out)?;
    Some(Skill {
        id,
        name,
        description: members.text("description", Length::Prose, out),
        tags: tags(&mut members, out),
        examples: examples(&mut members, out),
        input_modes: take_modes(&mut members, "inputModes", out),
        output_modes: take_modes(&mut members, "outputModes", out),
        security: security::requirements(&mut members, declared, out),
    })
}

/// Takes the id and the name of a skill, one from the other where it is missing; `None`, with a finding, without either.
fn id_and_name(
    members: &mut Members<'_>,
    key: Option<&str>,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Option<(String, String)> {
    let key = key
        .and_then(|key| member::bounded(key.to_owned(), at, Length::Line, out))
        .filter(|key| !key.is_empty());
    let mut id = members.text("id", Length::Line, out).or(key);
    let name = members.text("name", Length::Line, out);
    if id.is_none() && name.is_none() {
        // The Open Agentic Schema Framework names skills by their class.
        id = members
            .text("className", Length::Line, out)
            .or_else(|| members.text("categoryName", Length::Line, out));
    }
    match (id, name) {
        (Some(id), Some(name)) => Some((id, name)),
        (None, Some(name)) => {
            out.add(&rules::SKILL_ID, at, &name);
            Some((name.clone(), name))
        }
        (Some(id), None) => {
            out.add(&rules::SKILL_NAME, at, &id);
            Some((id.clone(), id))
        }
        (None, None) => {
            let empty = Members::new(Map::new(), members.at());
            let rest = mem::replace(members, empty).rest();
            out.add_value(&rules::SKILL_NAMELESS, at, &Value::Object(rest));
            None
        }
    }
}
