//! The combination of the full-text score and the semantic score, with its reasons.

use tantivy::Score;
use tantivy::query::Explanation;

use crate::vectors::AgentSimilarity;

/// Weight of the full-text score if some agent covers the query; the rest, up to 1, is the semantic weight.
const TEXT_WEIGHT: Score = 0.7;
/// Share of the query's maximum full-text score at which the best match covers the query; below, full text has less
/// weight.
const FULL_COVERAGE_SHARE: Score = 0.5;

/// What an exact match scores in addition: more than any other agent can have.
const EXACT_MATCH_BONUS: Score = 1.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HybridMode {
    /// The weighted sum of both scores, exact matches first.
    WeightedSum,
    /// Full-text matches first, by their full-text score.
    TextFirst,
    SemanticOnly,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextScoreScale {
    best_score: Score,
    /// Weight of full-text scores; the rest, up to 1, is the semantic weight.
    text_weight: Score,
}

impl TextScoreScale {
    pub fn new(best_score: Score, max_score: Option<Score>) -> Self {
        let covered = max_score.map_or(1.0, |promise| best_score / (FULL_COVERAGE_SHARE * promise));
        Self {
            best_score,
            text_weight: TEXT_WEIGHT * covered.min(1.0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HybridScore {
    pub mode: HybridMode,
    /// Full-text score; `None` if the entry is not a full-text match.
    pub text_score: Option<Score>,
    pub scale: TextScoreScale,
    /// Similarity and semantic score, if the entry is a nearest neighbor.
    pub semantic: Option<(AgentSimilarity, Score)>,
    /// The number of nearer neighbors, if the entry is one.
    pub nearer_count: usize,
    /// Whether the entry is an exact match.
    pub is_exact: bool,
}

impl HybridScore {
    pub fn score(self) -> Score {
        let text = self.text_score.map(|words| words / self.scale.best_score);
        let semantic = self.semantic.map_or(0.0, |(_, worth)| worth);
        let combined = match self.mode {
            HybridMode::WeightedSum => {
                let weight = self.scale.text_weight;
                weight * text.unwrap_or(0.0) + (1.0 - weight) * semantic
            }
            HybridMode::TextFirst => {
                text.map_or((1.0 - TEXT_WEIGHT) * semantic, |words| 1.0 + words)
            }
            HybridMode::SemanticOnly => semantic,
        };
        match self.is_exact {
            true => combined + EXACT_MATCH_BONUS,
            false => combined,
        }
    }

    pub fn text_score(self) -> Option<Score> {
        self.text_score
    }

    pub fn matches_text(self) -> bool {
        self.text_score.is_some()
    }

    /// The lowest full-text score that reaches this combined score without a semantic score.
    pub fn required_text_score(self, score: Score) -> Score {
        let share = match self.mode {
            HybridMode::WeightedSum => score / self.scale.text_weight.max(Score::MIN_POSITIVE),
            HybridMode::TextFirst | HybridMode::SemanticOnly => score - 1.0,
        };
        share.max(0.0) * self.scale.best_score
    }

    pub fn text_factor(self) -> Score {
        match self.mode {
            HybridMode::WeightedSum => self.scale.text_weight / self.scale.best_score,
            HybridMode::TextFirst => 1.0 / self.scale.best_score,
            HybridMode::SemanticOnly => 0.0,
        }
    }

    /// The parts of the combined score besides full text: each with its reason in words, its share and the details.
    /// `skill_name` returns the name of a skill by number.
    pub fn reasons(
        self,
        skill_name: impl Fn(usize) -> Option<String>,
    ) -> Vec<(&'static str, Score, String)> {
        let mut reasons = Vec::new();
        let matches_text = self.text_score.is_some();
        if self.mode == HybridMode::TextFirst && matches_text {
            let reason = "text matches come first because the query has required parts";
            reasons.push((reason, 1.0, String::new()));
        }
        if self.is_exact {
            let reason = "the query is the whole name, tag, skill or identifier of the agent";
            reasons.push((reason, EXACT_MATCH_BONUS, String::new()));
        }
        let weight = match self.mode {
            HybridMode::WeightedSum => 1.0 - self.scale.text_weight,
            HybridMode::TextFirst if matches_text => return reasons,
            HybridMode::TextFirst => 1.0 - TEXT_WEIGHT,
            HybridMode::SemanticOnly => 1.0,
        };
        if let Some((similarity, score)) = self.semantic {
            let mut detail = format!(": similarity {:.2} of the card", similarity.card);
            if let Some((part_index, value)) = similarity.part {
                // The first part is the name and description, the others are the skills.
                let part = match part_index.checked_sub(1) {
                    None => "name and description".to_owned(),
                    Some(number) => {
                        let name = skill_name(number).unwrap_or_else(|| part_index.to_string());
                        format!("skill {name}")
                    }
                };
                detail.push_str(&format!(", {value:.2} of {part}"));
            }
            match self.nearer_count {
                0 => detail.push_str(", the nearest"),
                nearer => detail.push_str(&format!(", with {nearer} nearer")),
            }
            reasons.push(("semantic similarity adds", weight * score, detail));
        }
        reasons
    }

    pub fn explanation(self, text: Option<Explanation>) -> Explanation {
        let title = match self.mode {
            HybridMode::WeightedSum => "weighted sum of text and semantic scores:",
            HybridMode::TextFirst => {
                "text before semantic score, because the query has required parts:"
            }
            HybridMode::SemanticOnly => "semantic score only:",
        };
        let mut root = Explanation::new(title, self.score());
        if self.is_exact {
            let title = "exact match of a name, tag, skill or identifier";
            root.add_detail(Explanation::new(title, EXACT_MATCH_BONUS));
        }
        if let Some((score, words)) = self.text_score.zip(text) {
            let mut part = Explanation::new(
                "text score, divided by the query's best:",
                score / self.scale.best_score,
            );
            if self.mode == HybridMode::WeightedSum {
                part.add_detail(Explanation::new(
                    "weight of text, lower if no agent covers the query",
                    self.scale.text_weight,
                ));
            }
            part.add_detail(Explanation::new("best text score", self.scale.best_score));
            part.add_detail(words);
            root.add_detail(part);
        }
        if let Some((similarity, worth)) = self.semantic {
            let mut part = Explanation::new("semantic score, from 0 to 1 for the nearest:", worth);
            if self.mode == HybridMode::WeightedSum {
                part.add_detail(Explanation::new(
                    "weight of semantic score",
                    1.0 - self.scale.text_weight,
                ));
            }
            part.add_detail(Explanation::new("similarity of the card", similarity.card));
            if let Some((place, value)) = similarity.part {
                // The first part is the name and description, the others are the skills.
                part.add_detail(Explanation::new_with_string(
                    match place {
                        0 => "similarity of name and description".to_owned(),
                        skill => format!("similarity of skill {skill}"),
                    },
                    value,
                ));
            }
            root.add_detail(part);
        }
        root
    }
}
