//! Score explanations as a flat list of parts.

use a2a_registry_api::Hit;
use a2a_registry_core::text::{self, TEASER};
use serde_json::Value;

/// Maximum number of levels and parts shown for one hit.
const MAX_LEVELS: usize = 8;
const MAX_PARTS: usize = 100;
/// Maximum number of sentences for one hit.
const MAX_SENTENCES: usize = 12;

pub(crate) struct ScoreView {
    pub score: String,
    /// Descriptions of the matches and their weights.
    pub sentences: Vec<String>,
    pub parts: Vec<ScorePartView>,
    /// Whether parts are left out.
    pub cut: bool,
}

/// A part of a score.
pub(crate) struct ScorePartView {
    /// Depth, starting at 1. The following parts that are one level deeper add up to this part.
    pub level: usize,
    pub value: String,
    pub what: String,
}

impl ScoreView {
    /// View of a hit's score, if it has one, and the tree of its parts if requested.
    pub fn new(hit: &Hit, with_parts: bool) -> Option<Self> {
        let explanation = hit.matched.explain.as_ref()?;
        let mut parts = Vec::new();
        if with_parts {
            append_score_parts(explanation, 1, &mut parts);
        }
        let cut = parts.len() > MAX_PARTS;
        parts.truncate(MAX_PARTS);
        Some(Self {
            score: format!("{:.3}", hit.matched.score.unwrap_or_default()),
            sentences: explanation["summary"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .take(MAX_SENTENCES)
                .map(|sentence| text::single_line(sentence, TEASER))
                .collect(),
            parts,
            cut,
        })
    }
}

fn append_score_parts(part: &Value, level: usize, parts: &mut Vec<ScorePartView>) {
    if level > MAX_LEVELS || parts.len() > MAX_PARTS {
        return;
    }
    let context = part["context"].as_array().into_iter().flatten();
    let described = std::iter::once(&part["description"]).chain(context);
    let descriptions: Vec<&str> = described.filter_map(Value::as_str).collect();
    parts.push(ScorePartView {
        level,
        value: format!("{:.3}", part["value"].as_f64().unwrap_or_default()),
        what: text::single_line(&descriptions.join(" "), text::LINE),
    });
    for detail in part["details"].as_array().into_iter().flatten() {
        append_score_parts(detail, level + 1, parts);
    }
}
