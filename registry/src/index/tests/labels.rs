//! What a caller may not see leaves no trace: the answers are those of an index that never held it, for words with
//! typing errors too, whose meaning depends on the words that the index knows.

use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{LABELS, WORDS, random_agent, random_request, visible};
use super::*;

/// One typing error each, and two for the hints.
const MISTYPED: [&str; 8] = [
    "fligt",
    "flihgts",
    "hotell",
    "translaet",
    "tokyoo",
    "bankimg",
    "trasnlaton",
    "bokFlight",
];

/// Everything of an answer that does not hang on how rare a word is.
type Told = (
    BTreeSet<Uuid>,
    u64,
    BTreeMap<FacetName, FacetCounts>,
    Vec<Hint>,
);

fn told(index: &Index, request: &SearchRequest) -> Told {
    let answer = index.search(request).unwrap();
    let hits = ids(&answer).into_iter().collect();
    (
        hits,
        answer.total,
        answer.facets.into_iter().collect(),
        answer.hints,
    )
}

#[test]
fn what_is_not_seen_leaves_no_trace() {
    let mut found_by_error = 0;
    let mut hinted = 0;
    for seed in 1..=3 {
        let mut dice = Dice(seed * 0x51_7cc1);
        // Few words each, so that a word is often held by somebody unseen alone.
        let agents: Vec<Document> = (0..40)
            .map(|number| Document {
                skills: Vec::new(),
                skill_ids: Vec::new(),
                description: dice.words(&WORDS, 1),
                ..random_agent(&mut dice, number)
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let all = built(folder.path(), agents.clone());
        for mask in 0..8 {
            let labels: Vec<String> = (0..LABELS.len())
                .filter(|place| mask & (1 << place) != 0)
                .map(|place| LABELS[place].to_owned())
                .collect();
            let seen = agents.iter().filter(|agent| visible(agent, &labels));
            let folder = tempfile::tempdir().unwrap();
            let alone = built(folder.path(), seen.cloned().collect());
            for _ in 0..60 {
                let word = match dice.below(3) {
                    0 => dice.pick(&WORDS),
                    _ => dice.pick(&MISTYPED),
                };
                let request = SearchRequest {
                    text: Some(format!("{word} {}", dice.words(&WORDS, 1))),
                    visible_to: labels.clone(),
                    ..random_request(&mut dice)
                };
                let told = (told(&all, &request), told(&alone, &request));
                assert_eq!(told.0, told.1, "{request:?}");
                found_by_error += usize::from(MISTYPED.contains(&word) && told.0.1 > 0);
                hinted += told.0.3.iter().filter(|hint| !hint.near.is_empty()).count();
                let prefix = &word[..word.floor_char_boundary(2)];
                assert_eq!(
                    all.suggest(prefix, &labels, 50).unwrap(),
                    alone.suggest(prefix, &labels, 50).unwrap(),
                    "{prefix} for {labels:?}"
                );
            }
        }
    }
    assert!(
        found_by_error > 100 && hinted > 20,
        "{found_by_error} {hinted}"
    );
}
