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
fn only_a_far_more_frequent_word_corrects_one_in_use() {
    for (rare, usual, expected) in [
        (1, 19, 1),
        (1, 20, 21),
        (2, 39, 2),
        (2, 40, 42),
        // Three agents are too many for a typing error.
        (3, 200, 3),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let agents = holders(1, rare, "trasnlate").chain(holders(100, usual, "translate"));
        let index = built(dir.path(), agents.collect());
        assert_eq!(total(&index, "trasnlate"), expected, "{rare} {usual}");
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
        .chain(holders(300, 1, "calender"))
        .chain(holders(400, 10, "calendar"))
        .collect();
    let unseen = hidden(holders(1_000, 600, "trasnlate"))
        .chain(hidden(holders(2_000, 1_100, "fligth")))
        .chain(hidden(holders(4_000, 500, "calendar")));
    let folder = tempfile::tempdir().unwrap();
    let all = built(folder.path(), unseen.chain(seen.clone()).collect());
    let folder = tempfile::tempdir().unwrap();
    let alone = built(folder.path(), seen);
    for (query, expected) in [("trasnlate", 31), ("fligth", 5), ("calender", 1)] {
        let request = text(query);
        let told = (told(&all, &request), told(&alone, &request));
        assert_eq!(told.0, told.1, "{query}");
        assert_eq!(told.0.1, expected, "{query}");
    }
}

/// Each of these words is similar to a word of a card, and is no typing error.
#[test]
fn everyday_words_match_nothing_that_is_only_spelled_alike() {
    let dir = tempfile::tempdir().unwrap();
    let description = "We dark new booking banking biking hiring printing welding seeing packing parsing house driving \
        moving data skill bench bridge lower coffer angle window violation handle past tenants pump rental handyman \
        rate warden knotting poultry break number guarding batch fist wait couch medal model";
    let trap = AgentDocument {
        description: description.to_owned(),
        ..agent(1, "Trap")
    };
    let index = built(dir.path(), vec![trap]);
    for word in [
        "wedding",
        "weddings",
        "sewing",
        "parking",
        "parked",
        "painting",
        "baking",
        "hiking",
        "cooking",
        "gardening",
        "knitting",
        "fishing",
        "horse",
        "diving",
        "mowing",
        "dating",
        "skiing",
        "beach",
        "bride",
        "flower",
        "coffee",
        "angel",
        "widow",
        "violin",
        "candle",
        "pasta",
        "tennis",
        "puppy",
        "dentist",
        "plumber",
        "barber",
        "pottery",
        "bread",
        "karate",
        "honey",
        "metal",
        "coach",
        "waist",
    ] {
        assert_eq!(total(&index, word), 0, "{word}");
    }
}

#[test]
fn errors_in_a_word_are_corrected_and_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let agents = holders(1, 3, "recipe").chain(holders(10, 2, "restaurants"));
    let index = built(dir.path(), agents.collect());
    for (query, hits, correction) in [
        // Two errors, and one.
        ("recepie", 3, "recipe"),
        ("recipie", 3, "recipe"),
        ("recpie", 3, "recipe"),
        // Only another inflection is in use.
        ("resturant", 2, "restaurants"),
        ("restrants", 2, "restaurants"),
    ] {
        let answer = index.search(&text(query)).unwrap();
        assert_eq!(answer.total, hits, "{query}");
        let hint = &answer.hints[0];
        let told = (hint.kind, hint.text.as_str(), hint.similar_words.as_slice());
        assert_eq!(
            told,
            (HintKind::Corrected, query, &[correction.to_owned()][..])
        );
    }
    for wrong in ["ercipe", "racipies", "reports", "record"] {
        assert_eq!(total(&index, wrong), 0, "{wrong}");
    }
    // A German word that no agent has is no English one with two errors.
    assert_eq!(total(&index, "ich suche das recepie"), 0);
    assert!(index.search(&text("recipe")).unwrap().hints.is_empty());
}

/// Words are counted as of the last commit, but an agent is hidden at once.
#[test]
fn a_correction_is_not_named_after_its_agents_are_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let agents = holders(1, 3, "recipe").chain(holders(10, 2, "weather"));
    let index = built(dir.path(), agents.collect());
    let hints_name_it = |query: &str| {
        let answer = index.search(&text(query)).unwrap();
        format!("{:?}", answer.hints).contains("recipe")
    };
    assert!(hints_name_it("recepie weather"));
    index.record_hidden_agents(&[id(1), id(2)], 2);
    assert!(hints_name_it("recepie weather"), "one agent is left");
    index.record_hidden_agents(&[id(3)], 3);
    assert!(!hints_name_it("recepie weather"));
    assert!(!hints_name_it("recepie"));
}

#[test]
fn the_encoder_gets_the_corrected_words() {
    let dir = tempfile::tempdir().unwrap();
    let unseen = hidden(holders(50, 9, "wether"));
    let agents = holders(1, 3, "weather").chain(holders(10, 2, "restaurant"));
    let index = built(dir.path(), agents.chain(unseen).collect());
    for (query, expected) in [
        (
            "wether and a resturant, please",
            Some("weather and a restaurant, please"),
        ),
        (
            "find me an agent that tells the wether",
            Some("tells the weather"),
        ),
        ("the weather", None),
        ("wedding", None),
        ("kubernetes", None),
        ("wether tag:travel -resturant", Some("weather")),
        ("", None),
        ("???", None),
    ] {
        let corrected = index.correct_query(query, &public()).unwrap();
        assert_eq!(corrected.as_deref(), expected, "{query}");
        assert!(
            may_have_typing_errors(query) || expected.is_none(),
            "{query}"
        );
    }
    assert!(!may_have_typing_errors(
        "find me an agent that plans weddings"
    ));
    // Another class finds the agents with this word.
    let labels = ["public".to_owned(), "group:x".to_owned()];
    assert_eq!(index.correct_query("wether", &labels).unwrap(), None);
}
