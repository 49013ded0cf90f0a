//! Hidden agents leave no trace: the responses are those of an index that never contained them. This includes words
//! with typing errors, whose corrections depend on the words in the index.

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

/// Parts of a response that do not depend on the idf of a word.
type Told = (BTreeSet<Uuid>, u64, BTreeMap<Facet, FacetCounts>, Vec<Hint>);

pub(super) fn told(index: &Index, request: &SearchRequest) -> Told {
    let answer = index.search(request).unwrap();
    let hits = ids(&answer).into_iter().collect();
    (
        hits,
        answer.total,
        answer.facets.into_iter().collect(),
        answer.hints,
    )
}

/// All sets of labels, the empty one too.
fn sets_of_labels() -> impl Iterator<Item = Vec<String>> {
    let held = |set: u32, place: usize| set & (1 << place) != 0;
    (0..1 << LABELS.len()).map(move |set| {
        let held = LABELS
            .iter()
            .enumerate()
            .filter(|(place, _)| held(set, *place));
        held.map(|(_, label)| (*label).to_owned()).collect()
    })
}

/// An index of only the agents with one of these labels, with its folder.
fn alone(agents: &[AgentDocument], labels: &[String]) -> (tempfile::TempDir, Index) {
    let seen = agents.iter().filter(|agent| visible(agent, labels));
    let folder = tempfile::tempdir().unwrap();
    let index = built(folder.path(), seen.cloned().collect());
    (folder, index)
}

#[test]
fn what_is_not_seen_leaves_no_trace() {
    let mut found_by_error = 0;
    let mut hinted = 0;
    for seed in 1..=3 {
        let mut dice = Dice(seed * 0x51_7cc1);
        // Few words each, so that often only hidden agents contain a word.
        let agents: Vec<AgentDocument> = (0..40)
            .map(|number| AgentDocument {
                skills: Vec::new(),
                description: dice.words(&WORDS, 1),
                ..with(random_agent(&mut dice, number), Facet::Skill, &[])
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let all = built(folder.path(), agents.clone());
        for labels in sets_of_labels() {
            let (_folder, alone) = alone(&agents, &labels);
            for _ in 0..60 {
                let word = match dice.below(3) {
                    0 => dice.pick(&WORDS),
                    _ => dice.pick(&MISTYPED),
                };
                let request = SearchRequest {
                    text: Some(format!("{word} {}", dice.words(&WORDS, 1))),
                    visible_to: labels.clone(),
                    class_labels: labels.clone(),
                    ..random_request(&mut dice)
                };
                let told = (told(&all, &request), told(&alone, &request));
                assert_eq!(told.0, told.1, "{request:?}");
                found_by_error += usize::from(MISTYPED.contains(&word) && told.0.1 > 0);
                hinted += told
                    .0
                    .3
                    .iter()
                    .filter(|hint| !hint.similar_words.is_empty())
                    .count();
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

/// A random query that uses the syntax.
pub(super) fn written(dice: &mut Dice) -> String {
    let word = dice.pick(&WORDS).to_owned();
    let other = dice.pick(&WORDS).to_owned();
    let begin = &word[..word.floor_char_boundary(3)];
    let tag = dice.pick(&["Travel", "finance", "nowhere"]);
    let provider = dice.pick(&["acme", "hotel", "bank"]);
    match dice.below(8) {
        0 => format!("{begin}*"),
        1 => format!("{begin}* AND {other}"),
        2 => format!("\"{word} {other}\" OR {other} AND tag:{tag}"),
        3 => format!("tag:{tag} OR provider:{provider}"),
        4 => format!("{word} -{other} tag:{tag}"),
        5 => format!("provider:{provider} tag:{tag}"),
        6 => format!("-{word} skill:{other}"),
        _ => format!("{word} AND {other}"),
    }
}

#[test]
fn what_is_not_seen_leaves_no_trace_in_the_syntax() {
    let mut found = 0;
    let mut hinted = 0;
    for seed in 1..=2 {
        let mut dice = Dice(seed * 0x2f_0b31);
        let agents: Vec<AgentDocument> = (0..60)
            .map(|number| random_agent(&mut dice, number))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let all = built(folder.path(), agents.clone());
        for labels in sets_of_labels() {
            let (_folder, alone) = alone(&agents, &labels);
            for _ in 0..80 {
                let request = SearchRequest {
                    text: Some(written(&mut dice)),
                    visible_to: labels.clone(),
                    class_labels: labels.clone(),
                    ..random_request(&mut dice)
                };
                let told = (told(&all, &request), told(&alone, &request));
                assert_eq!(told.0, told.1, "{request:?}");
                found += usize::from(told.0.1 > 0);
                hinted += told
                    .0
                    .3
                    .iter()
                    .filter(|hint| hint.matches_without.is_some())
                    .count();
            }
        }
    }
    assert!(found > 150 && hinted > 150, "{found} {hinted}");
}

/// The hidden words, names, skills and tags with one prefix are far more than are read of the visible ones.
#[test]
fn what_is_not_seen_crowds_nothing_out() {
    let named = |number: u64, name: &str| AgentDocument {
        skills: vec![SkillText {
            id: "s".into(),
            name: name.to_owned(),
            ..SkillText::default()
        }],
        ..with(agent(number, name), Facet::Tag, &[&name.to_lowercase()])
    };
    let seen: Vec<AgentDocument> = (0..40)
        .map(|number| named(number, &format!("Ab{number}")))
        .collect();
    let hidden = (100..5_100).map(|number| AgentDocument {
        visible_to: vec!["group:x".into()],
        ..named(number, &format!("Aa{number}"))
    });
    let folder = tempfile::tempdir().unwrap();
    let all = built(folder.path(), hidden.chain(seen.clone()).collect());
    let folder = tempfile::tempdir().unwrap();
    let alone = built(folder.path(), seen);
    let suggested = all.suggest("a", &public(), 50).unwrap();
    assert_eq!(suggested, alone.suggest("a", &public(), 50).unwrap());
    assert_eq!(suggested.len(), 50);
    for query in ["aa*", "ab*", "ab* AND ab1", "a1"] {
        let request = text(query);
        assert_eq!(told(&all, &request), told(&alone, &request), "{query}");
    }
}

/// An explanation without the values that depend on idf and on lengths.
fn shape(explanation: &serde_json::Value) -> serde_json::Value {
    use serde_json::{Value, json};
    let what = explanation["description"].as_str().unwrap();
    for counted in ["n, ", "N, ", "avgdl"] {
        assert!(!what.starts_with(counted), "{what}");
    }
    let details: Vec<Value> = explanation["details"]
        .as_array()
        .into_iter()
        .flatten()
        .map(shape)
        .collect();
    let own = ["freq,", "k1,", "b,", "dl,"];
    let own = own.iter().any(|own| what.starts_with(own));
    json!([
        what,
        own.then(|| &explanation["value"]),
        explanation["context"],
        details
    ])
}

#[test]
fn explanations_count_nobody() {
    let mut dice = Dice(0x71_3355);
    let agents: Vec<AgentDocument> = (0..200)
        .map(|number| random_agent(&mut dice, number))
        .collect();
    let (_alone, alone) = alone(&agents, &public());
    let folder = tempfile::tempdir().unwrap();
    let all = built(folder.path(), agents);
    let mut explained = 0;
    for query in [
        "flight hotel",
        "\"bank\" tokyo",
        "tra* AND flight",
        "bank OR tag:travel",
        "fligth",
    ] {
        let request = SearchRequest {
            explain: true,
            ..text(query)
        };
        let shapes = |index: &Index| -> BTreeMap<Uuid, serde_json::Value> {
            let hits = index.search(&request).unwrap().hits.into_iter();
            hits.filter_map(|hit| Some((hit.id, shape(&hit.explain?))))
                .collect()
        };
        let shapes = (shapes(&all), shapes(&alone));
        assert_eq!(shapes.0, shapes.1, "{query}");
        explained += shapes.0.len();
    }
    assert!(explained > 20, "{explained}");
}
