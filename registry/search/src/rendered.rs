//! Rendered hits and entries as the index stores them.

use tantivy::TantivyDocument;
use tantivy::schema::Value as _;

use super::document::MAX_SHOWN_SKILLS;
use super::schema::{Fields, SKILL_SEPARATOR};

/// Adds to a rendered hit up to [`MAX_SHOWN_SKILLS`] of the skills that are rendered apart. If there are more, those
/// with the `matched` numbers come first.
pub(super) fn with_skills(
    hit: &[u8],
    shown: &str,
    matched: impl Iterator<Item = usize>,
) -> Vec<u8> {
    let Some(head) = hit.strip_suffix(b"}").filter(|_| !shown.is_empty()) else {
        return hit.to_vec();
    };
    let mut whole = Vec::with_capacity(head.len() + shown.len().min(hit.len() * 4) + 16);
    whole.extend_from_slice(head);
    whole.extend_from_slice(b",\"skills\":[");
    let skills: Vec<&str> = shown.split(SKILL_SEPARATOR).collect();
    if skills.len() <= MAX_SHOWN_SKILLS {
        whole.extend_from_slice(shown.as_bytes());
    } else {
        let mut chosen: Vec<usize> = matched.collect();
        for number in 0..skills.len() {
            if chosen.len() >= MAX_SHOWN_SKILLS {
                break;
            }
            if !chosen.contains(&number) {
                chosen.push(number);
            }
        }
        let chosen = chosen.iter().take(MAX_SHOWN_SKILLS);
        let chosen: Vec<&str> = chosen
            .filter_map(|number| skills.get(*number).copied())
            .collect();
        whole.extend_from_slice(chosen.join(SKILL_SEPARATOR).as_bytes());
    }
    whole.extend_from_slice(b"]}");
    whole
}

pub(super) fn rendered_hit<'a>(stored: &'a TantivyDocument, fields: &Fields) -> &'a [u8] {
    let first = |field| stored.get_first(field);
    let text = first(fields.hit).and_then(|value| value.as_str());
    match text {
        Some(hit) => hit.as_bytes(),
        None => first(fields.hit_bytes)
            .and_then(|value| value.as_bytes())
            .unwrap_or_default(),
    }
}

/// Empty if the document has no entry.
pub(super) fn rendered_entry<'a>(stored: &'a TantivyDocument, fields: &Fields) -> &'a [u8] {
    let entry = stored.get_first(fields.entry);
    entry
        .and_then(|value| value.as_str())
        .unwrap_or_default()
        .as_bytes()
}
