//! The texts of an agent that are encoded: the card as a whole, and each of its first skills.

use a2a_registry_search::Document;
use a2a_registry_search::vectors::MAX_VECTORS;
use ring::digest::{Context, SHA256};

/// The most characters of one text; no encoder reads further.
const MAX_CHARS: usize = 8_000;

/// The texts of an agent: of the card first, then of its skills.
pub(crate) fn texts(document: &Document) -> Vec<String> {
    let card = [document.name.as_str(), document.description.as_str()];
    let tags = [document.tags.join(", ")];
    let whole = joined(card.into_iter().chain(tags.iter().map(String::as_str)));
    let skills = document.skills.iter().take(MAX_VECTORS - 1).map(|skill| {
        let tags = skill.tags.join(", ");
        let said = [
            skill.name.as_str(),
            skill.description.as_str(),
            tags.as_str(),
        ];
        joined(
            said.into_iter()
                .chain(skill.examples.iter().map(String::as_str)),
        )
    });
    std::iter::once(whole).chain(skills).collect()
}

/// Hexadecimal SHA-256 of texts, by which changed ones are recognised.
pub(crate) fn digest(texts: &[String]) -> String {
    let mut context = Context::new(&SHA256);
    for text in texts {
        // No text contains this byte, so different lists of texts differ when joined by it.
        context.update(text.as_bytes());
        context.update(&[0xff]);
    }
    context
        .finish()
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Texts joined as sentences, without empty ones, up to the limit.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut whole = String::new();
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        if !whole.is_empty() {
            whole.push_str(if whole.ends_with(['.', '!', '?']) {
                " "
            } else {
                ". "
            });
        }
        whole.push_str(text);
    }
    match whole.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => whole[..end].to_owned(),
        None => whole,
    }
}
