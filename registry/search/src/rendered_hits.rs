//! Rendered hits and catalog entries, as stored in the index.

use tantivy::TantivyDocument;
use tantivy::schema::Value as _;

use super::document::MAX_SHOWN_SKILLS;
use super::schema::{IndexFields, SKILL_SEPARATOR};

/// Adds up to [`MAX_SHOWN_SKILLS`] of the separately rendered skills to a rendered hit. If there are more, those at
/// `matched_indices` come first.
pub(super) fn insert_rendered_skills(
    hit: &[u8],
    rendered_skills: &str,
    matched_indices: impl Iterator<Item = usize>,
) -> Vec<u8> {
    let Some(head) = hit
        .strip_suffix(b"}")
        .filter(|_| !rendered_skills.is_empty())
    else {
        return hit.to_vec();
    };
    let mut output = Vec::with_capacity(head.len() + rendered_skills.len().min(hit.len() * 4) + 16);
    output.extend_from_slice(head);
    output.extend_from_slice(b",\"skills\":[");
    let skills: Vec<&str> = rendered_skills.split(SKILL_SEPARATOR).collect();
    if skills.len() <= MAX_SHOWN_SKILLS {
        output.extend_from_slice(rendered_skills.as_bytes());
    } else {
        let mut chosen_indices: Vec<usize> = matched_indices.collect();
        for number in 0..skills.len() {
            if chosen_indices.len() >= MAX_SHOWN_SKILLS {
                break;
            }
            if !chosen_indices.contains(&number) {
                chosen_indices.push(number);
            }
        }
        let chosen = chosen_indices.iter().take(MAX_SHOWN_SKILLS);
        let chosen: Vec<&str> = chosen
            .filter_map(|number| skills.get(*number).copied())
            .collect();
        output.extend_from_slice(chosen.join(SKILL_SEPARATOR).as_bytes());
    }
    output.extend_from_slice(b"]}");
    output
}

pub(super) fn rendered_hit<'a>(stored: &'a TantivyDocument, fields: &IndexFields) -> &'a [u8] {
    let first = |field| stored.get_first(field);
    let text = first(fields.hit).and_then(|value| value.as_str());
    match text {
        Some(hit) => hit.as_bytes(),
        None => first(fields.hit_bytes)
            .and_then(|value| value.as_bytes())
            .unwrap_or_default(),
    }
}

/// The catalog entry of a document; empty if it has none.
pub(super) fn rendered_catalog_entry<'a>(
    stored: &'a TantivyDocument,
    fields: &IndexFields,
) -> &'a [u8] {
    let entry = stored.get_first(fields.catalog_entry);
    entry
        .and_then(|value| value.as_str())
        .unwrap_or_default()
        .as_bytes()
}
