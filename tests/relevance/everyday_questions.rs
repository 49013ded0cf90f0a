//! Questions to real cards as people type them, in sets whose halves the data state: with filters or negations in
//! words, that no card answers, short, and messy or misspelt; and queries whose first hit would embarrass.

use std::collections::BTreeSet;
use std::path::Path;

use super::judged_collections::{JudgedQuery, QueryHalf, assert_cards_exist, real_cards};

/// The expectation of an embarrassing query that no card answers.
const NOTHING: &str = "nothing";

/// A set of questions of one sort.
#[derive(Debug, Clone)]
pub struct QuestionSet {
    pub name: &'static str,
    pub title: &'static str,
    pub queries: Vec<JudgedQuery>,
}

impl QuestionSet {
    fn new(name: &'static str, title: &'static str, json: &str) -> Self {
        Self {
            name,
            title,
            queries: serde_json::from_str(json).unwrap(),
        }
    }

    pub fn queries_in_half(&self, half: QueryHalf) -> Vec<JudgedQuery> {
        let queries = self.queries.iter();
        let in_half = queries.filter(|judged| judged.half == Some(half));
        in_half.cloned().collect()
    }
}

/// The sets of questions that some card answers.
pub fn answerable_question_sets() -> Vec<QuestionSet> {
    vec![
        QuestionSet::new(
            "filters",
            "Questions with filters or negations in words",
            include_str!("filter_queries.json"),
        ),
        QuestionSet::new(
            "short",
            "Questions of one or two words",
            include_str!("short_queries.json"),
        ),
        QuestionSet::new(
            "messy",
            "Messy or misspelt questions",
            include_str!("messy_queries.json"),
        ),
    ]
}

/// The questions that no card answers; their kinds say how near the nearest cards are.
pub fn unanswerable_questions() -> QuestionSet {
    QuestionSet::new(
        "unanswerable",
        "Questions that no card answers",
        include_str!("unanswerable_queries.json"),
    )
}

/// A query whose first hit would embarrass.
#[derive(Debug, Clone)]
pub struct EmbarrassingQuery {
    pub query: String,
    /// The agents that may come first.
    pub expect: BTreeSet<String>,
    /// Whether it may end without a hit that fits.
    pub may_find_nothing: bool,
}

/// The embarrassing queries: one a line with the agents that may come first, after a tab and between bars.
pub fn embarrassing_queries() -> Vec<EmbarrassingQuery> {
    let lines = include_str!("embarrassing_queries.tsv").lines();
    let parsed = lines.map(|line| {
        let (query, expected) = line.split_once('\t').unwrap();
        let mut expect: BTreeSet<String> = expected.split(" | ").map(str::to_owned).collect();
        let may_find_nothing = expect.remove(NOTHING);
        EmbarrassingQuery {
            query: query.to_owned(),
            expect,
            may_find_nothing,
        }
    });
    parsed.collect()
}

/// The real cards of a folder, which have every agent that these questions expect.
pub fn everyday_question_cards(folder: &Path) -> Vec<Vec<u8>> {
    let cards = real_cards(folder);
    for set in answerable_question_sets() {
        assert_cards_exist(&cards, &set.queries);
    }
    for expected in embarrassing_queries().iter().flat_map(|one| &one.expect) {
        assert!(cards.contains_key(expected), "no card of {expected:?}");
    }
    cards.into_values().collect()
}
