//! The score that rescoring adds to a candidate, with its reasons.

use tantivy::Score;
use tantivy::query::Explanation;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RescoreBonus {
    pub skill: Score,
    /// The part that the score `skill` belongs to.
    pub part: u32,
    pub phrases: Score,
    pub nearness: Score,
    pub stop_words: Score,
    pub exact_form: Score,
}

impl RescoreBonus {
    pub fn sum(self) -> Score {
        self.skill + self.phrases + self.nearness + self.stop_words + self.exact_form
    }

    /// The parts of the added score, which the explanation lists after the first score.
    pub fn explanations(self) -> Vec<Explanation> {
        [
            ("the best skill", self.skill),
            ("words in the order of the query", self.phrases),
            ("words near each other", self.nearness),
            ("stop words", self.stop_words),
            ("words in their exact form", self.exact_form),
        ]
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(what, value)| Explanation::new(what, value))
        .collect()
    }

    /// The same parts as reasons in words; `skill_name` returns the name of a part's skill.
    pub fn reasons(self, skill_name: impl Fn(u32) -> Option<String>) -> Vec<(String, Score)> {
        let best = match skill_name(self.part) {
            Some(name) => format!("skill {name} is the best matching part"),
            None => "the agent's own texts are the best matching part".to_owned(),
        };
        [
            (best.as_str(), self.skill),
            ("words follow each other as in the query", self.phrases),
            ("words of the query are near each other", self.nearness),
            ("stop words of the query occur too", self.stop_words),
            ("words occur exactly as written", self.exact_form),
        ]
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(reason, value)| (reason.to_owned(), value))
        .collect()
    }
}
