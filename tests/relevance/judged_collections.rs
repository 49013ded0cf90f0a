//! Collections of cards and judged queries: our own, questions about real cards in two halves, cards and questions in
//! nine languages, and held-out examples of real cards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use a2a_card::bytes_digest;
use serde::Deserialize;
use serde_json::Value;

/// Cards, and queries with the agents that are relevant to them.
#[derive(Debug, Clone)]
pub struct JudgedCollection {
    /// Bytes of cards with different names.
    pub cards: Vec<Vec<u8>>,
    pub queries: Vec<JudgedQuery>,
}

/// A query as a user types it, and the names of the relevant agents.
#[derive(Debug, Clone, Deserialize)]
pub struct JudgedQuery {
    pub query: String,
    pub kind: String,
    /// The half of its set; only the newer sets state it.
    #[serde(default)]
    pub half: Option<QueryHalf>,
    pub expect: BTreeSet<String>,
}

/// A half of a set of queries: the one that ranking may be tuned on, and the one that is set aside until the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryHalf {
    Tune,
    Aside,
}

/// Our own collection: 60 agents, and 120 queries in the words of users.
pub fn own_collection() -> JudgedCollection {
    written(include_str!("agents.json"), include_str!("queries.json"))
}

/// Cards in nine languages, and questions to them in those languages; the kinds are the languages.
pub fn languages() -> JudgedCollection {
    written(
        include_str!("language_agents.json"),
        include_str!("language_queries.json"),
    )
}

fn written(cards: &str, queries: &str) -> JudgedCollection {
    let cards: Vec<Value> = serde_json::from_str(cards).unwrap();
    let bytes = |card| serde_json::to_vec(card).unwrap();
    JudgedCollection {
        cards: cards.iter().map(bytes).collect(),
        queries: serde_json::from_str(queries).unwrap(),
    }
}

/// Real cards, and questions to them that were written before anything was tuned.
#[derive(Debug, Clone)]
pub struct RealCardQuestions {
    /// Bytes of cards with different names.
    pub cards: Vec<Vec<u8>>,
    /// The questions that ranking may be tuned on.
    pub tuned_on: Vec<JudgedQuery>,
    /// The questions that only tell how well the tuning holds for others.
    pub set_aside: Vec<JudgedQuery>,
}

/// The real cards of a folder, and the questions to them, halved by the parity of the queries' digests.
pub fn real_card_questions(folder: &Path) -> RealCardQuestions {
    let cards = real_cards(folder);
    let queries: Vec<JudgedQuery> =
        serde_json::from_str(include_str!("real_queries.json")).unwrap();
    assert_cards_exist(&cards, &queries);
    let (tuned_on, set_aside) = queries
        .into_iter()
        .partition(|judged| is_odd(&bytes_digest(judged.query.as_bytes())));
    RealCardQuestions {
        cards: cards.into_values().collect(),
        tuned_on,
        set_aside,
    }
}

/// The real cards of a folder by name, one of each.
pub fn real_cards(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut cards = BTreeMap::new();
    for (name, bytes) in named(folder) {
        cards.entry(name).or_insert(bytes);
    }
    cards
}

/// Checks that every agent that a query expects has a card.
pub fn assert_cards_exist(cards: &BTreeMap<String, Vec<u8>>, queries: &[JudgedQuery]) {
    for expected in queries.iter().flat_map(|judged| &judged.expect) {
        assert!(cards.contains_key(expected), "no card of {expected:?}");
    }
}

/// The cards of a folder that can be parsed, with their names, in the order of their files.
fn named(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let read = files.into_iter().map(|file| std::fs::read(file).unwrap());
    read.filter_map(|bytes| Some((a2a_card::parse_card(&bytes).ok()?.card.name, bytes)))
        .collect()
}

fn is_odd(digest: &str) -> bool {
    digest.bytes().last().unwrap() % 2 == 1
}

/// Real cards, one per name. Of each card with examples one example, chosen by `seed`, is removed, and is a query to which
/// this card is relevant. The kinds are the halves of the cards by the parity of their digests.
pub fn held_out(folder: &Path, seed: u64) -> JudgedCollection {
    let mut cards: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for (name, bytes) in named(folder) {
        let Ok(card) = serde_json::from_slice(&bytes) else {
            continue;
        };
        cards.entry(name).or_insert((bytes_digest(&bytes), card));
    }
    let mut collection = JudgedCollection {
        cards: Vec::new(),
        queries: Vec::new(),
    };
    for (name, (digest, mut card)) in cards {
        if let Some(query) = hold_out(&mut card, &name, seed) {
            collection.queries.push(JudgedQuery {
                query,
                kind: if is_odd(&digest) { "odd" } else { "even" }.to_owned(),
                half: None,
                expect: BTreeSet::from([name]),
            });
        }
        collection.cards.push(serde_json::to_vec(&card).unwrap());
    }
    collection
}

/// Removes one example from a card, and returns it.
fn hold_out(card: &mut Value, name: &str, seed: u64) -> Option<String> {
    let skills = card.get_mut("skills")?.as_array_mut()?;
    let mut positions: Vec<(usize, usize)> = Vec::new();
    for (skill, of) in skills.iter().enumerate() {
        let examples = of["examples"].as_array().into_iter().flatten();
        let texts = examples.enumerate().filter(|(_, text)| text.is_string());
        positions.extend(texts.map(|(example, _)| (skill, example)));
    }
    let hash = bytes_digest(format!("{seed} {name}").as_bytes());
    let hash = u64::from_str_radix(hash.get(7..22)?, 16).ok()?;
    let (skill, example) =
        *positions.get(usize::try_from(hash).ok()?.checked_rem(positions.len())?)?;
    let examples = skills[skill]["examples"].as_array_mut()?;
    examples.remove(example).as_str().map(str::to_owned)
}
