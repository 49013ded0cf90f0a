//! Misspelled words, in queries and in cards.

use super::labels::told;
use super::*;

/// Agents that contain a word, as many as `count`, with ids from `first` on.
fn holders(first: u64, count: u64, word: &str) -> impl Iterator<Item = AgentDocument> {
    (first..first + count).map(move |number| AgentDocument {
        description: format!("Will {word} whatever you give it"),
        ..agent(number, "Agent")
    })
}

fn hidden(agents: impl Iterator<Item = AgentDocument>) -> impl Iterator<Item = AgentDocument> {
    agents.map(|agent| AgentDocument {
        visible_to: vec!["group:x".to_owned()],
        ..agent
    })
}

fn total(index: &Index, query: &str) -> u64 {
    index.search(&text(query)).unwrap().total
}

#[test]
fn an_error_in_a_card_hides_no_correction() {
    let dir = tempfile::tempdir().unwrap();
    let mistyped = holders(1, 1, "trasnlate");
    let index = built(
        dir.path(),
        mistyped.chain(holders(100, 30, "translate")).collect(),
    );
    let hits = index.search(&text("trasnlate")).unwrap().hits;
    assert_eq!(hits.len(), 31);
    assert_eq!(hits[0].id, id(1), "what was asked for comes first");
    assert!(hits[0].score.unwrap() > hits[1].score.unwrap());
    let highlight = &hits[1].highlights[0];
    assert_eq!(&highlight.text[highlight.ranges[0].clone()], "translate");
    // The correct word is not expanded to the misspelled one.
    assert_eq!(total(&index, "translate"), 30);
}

#[test]
fn two_words_that_are_both_in_use_stay_two_words() {
    for (rare, usual, expected) in [
        (1, 19, 1),
        (1, 20, 21),
        (2, 39, 2),
        (2, 40, 42),
        // Three agents are too many for a typing error.
        (3, 200, 3),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let agents = holders(1, rare, "contact").chain(holders(100, usual, "contract"));
        let index = built(dir.path(), agents.collect());
        assert_eq!(total(&index, "contact"), expected, "{rare} {usual}");
    }
    // A word is not a correction of its own stem, and short words are not corrected.
    let dir = tempfile::tempdir().unwrap();
    let agents = holders(1, 1, "tasted").chain(holders(100, 30, "task"));
    let index = built(dir.path(), agents.collect());
    assert_eq!(total(&index, "tasted"), 1);
    assert_eq!(total(&index, "tastes"), 1);
}

/// Only visible agents decide whether a word is rare, and whether another is far more frequent.
#[test]
fn hidden_agents_neither_make_an_error_a_word_nor_a_word_an_error() {
    let seen: Vec<AgentDocument> = holders(1, 1, "trasnlate")
        .chain(holders(100, 30, "translate"))
        .chain(holders(200, 5, "flight"))
        .chain(holders(300, 1, "contact"))
        .chain(holders(400, 10, "contract"))
        .collect();
    let unseen = hidden(holders(1_000, 600, "trasnlate"))
        .chain(hidden(holders(2_000, 1_100, "fligth")))
        .chain(hidden(holders(4_000, 500, "contract")));
    let folder = tempfile::tempdir().unwrap();
    let all = built(folder.path(), unseen.chain(seen.clone()).collect());
    let folder = tempfile::tempdir().unwrap();
    let alone = built(folder.path(), seen);
    for (query, expected) in [("trasnlate", 31), ("fligth", 5), ("contact", 1)] {
        let request = text(query);
        let told = (told(&all, &request), told(&alone, &request));
        assert_eq!(told.0, told.1, "{query}");
        assert_eq!(told.0.1, expected, "{query}");
    }
}
