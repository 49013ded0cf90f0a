//! The texts of an agent that are encoded: the whole card, its name and description, and each of its first skills.
//!
//! The whole card finds agents by everything they say. The other texts are short, so that a question about one topic
//! is near an agent that covers many. A skill's examples are only in the text of the whole card, because in the
//! skill's own text they would draw its vector away from what the skill does.

use a2a_registry_domain::facet::Facet;
use a2a_registry_search::AgentDocument;
use a2a_registry_search::vectors::MAX_VECTORS;
use ring::digest::{Context, SHA256};

/// Maximum number of characters of one text. No encoder reads more.
const MAX_TEXT_CHARS: usize = 8_000;
/// Prefix of the digests of these texts: the version of their layout. It must change with the layout, so that all
/// vectors are computed again.
pub const LAYOUT_PREFIX: &str = "2-";

/// Builds the texts of an agent: the whole card first, then its parts.
pub fn embedding_texts(document: &AgentDocument) -> Vec<String> {
    let name_and_description = [document.name.as_str(), document.description.as_str()];
    let tags = document.facets[Facet::Tag].join(", ");
    let skills = document.skills.iter().flat_map(|skill| {
        let said = [skill.name.as_str(), skill.description.as_str()];
        said.into_iter()
            .chain(skill.examples.iter().map(String::as_str))
    });
    let others = document.other_texts.iter().map(String::as_str);
    let whole = name_and_description
        .into_iter()
        .chain(skills)
        .chain([tags.as_str()]);
    let whole = whole.chain(others);
    let mut texts = vec![
        join_sentences(whole),
        join_sentences(name_and_description.into_iter()),
    ];
    let skills = document.skills.iter().take(MAX_VECTORS - texts.len());
    texts.extend(skills.map(|skill| {
        let tags = skill.tags.join(", ");
        join_sentences([skill.name.as_str(), skill.description.as_str(), &tags].into_iter())
    }));
    texts
}

/// Computes the digest that detects changed texts: their layout and their hexadecimal SHA-256.
pub fn text_digest(texts: &[String]) -> String {
    let mut context = Context::new(&SHA256);
    for text in texts {
        // No text contains this byte, so different lists of texts differ when joined by it.
        context.update(text.as_bytes());
        context.update(&[0xff]);
    }
    let bytes = context.finish();
    let hexadecimal = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
    std::iter::once(LAYOUT_PREFIX.to_owned())
        .chain(hexadecimal)
        .collect()
}

/// Returns the first bits of a digest, enough to recognize unchanged texts; `None` for texts of another layout.
pub fn digest_prefix(digest: &str) -> Option<u64> {
    let hexadecimal = digest.strip_prefix(LAYOUT_PREFIX)?.get(..16)?;
    u64::from_str_radix(hexadecimal, 16).ok()
}

/// Joins the non-empty texts as sentences, up to the limit.
fn join_sentences<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut sentences = String::new();
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        if !sentences.is_empty() {
            sentences.push_str(if sentences.ends_with(['.', '!', '?']) {
                " "
            } else {
                ". "
            });
        }
        sentences.push_str(text);
    }
    match sentences.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => sentences[..end].to_owned(),
        None => sentences,
    }
}
