//! The parts of a score, one below another.

use a2a_registry_api::Hit;
use serde_json::Value;

use crate::pages::text;

/// Levels of parts that are shown, and parts of one hit.
const LEVELS: usize = 8;
const PARTS: usize = 100;

/// How the score of a hit came about.
pub(crate) struct ScoreView {
    pub score: String,
    pub parts: Vec<PartView>,
    /// Whether there are more parts.
    pub cut: bool,
}

/// One part of a score.
pub(crate) struct PartView {
    /// How deep it lies, from 1; what follows one level deeper is what it is made of.
    pub level: usize,
    pub value: String,
    pub what: String,
}

impl ScoreView {
    /// The view of a hit's score, where its parts were asked for.
    pub fn new(hit: &Hit) -> Option<Self> {
        let explanation = hit.matched.explain.as_ref()?;
        let mut parts = Vec::new();
        add(explanation, 1, &mut parts);
        let cut = parts.len() > PARTS;
        parts.truncate(PARTS);
        Some(Self {
            score: format!("{:.3}", hit.matched.score.unwrap_or_default()),
            parts,
            cut,
        })
    }
}

fn add(part: &Value, level: usize, parts: &mut Vec<PartView>) {
    if level > LEVELS || parts.len() > PARTS {
        return;
    }
    let context = part["context"].as_array().into_iter().flatten();
    let described = std::iter::once(&part["description"]).chain(context);
    let what: Vec<&str> = described.filter_map(Value::as_str).collect();
    parts.push(PartView {
        level,
        value: format!("{:.3}", part["value"].as_f64().unwrap_or_default()),
        what: text::line(&what.join(" "), text::LINE),
    });
    for detail in part["details"].as_array().into_iter().flatten() {
        add(detail, level + 1, parts);
    }
}
