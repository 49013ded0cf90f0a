//! Word statistics of a class of callers, against a naive count, and with hidden agents.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::tokenizer::{TokenStream as _, Tokenizer as _};

use super::labels::written;
use super::oracle::{LABELS, WORDS, matches, random_agent, random_request, visible};
use super::replicas::whole;
use super::*;
use crate::analysis::analyze_query;
use crate::schema::PROTOCOL_FACETS;
use crate::text_layout::{AgentTexts, JoinedTextsTokenizer, join_agent_texts as laid_out};

/// The searched words of an agent.
fn words_of(agent: &AgentDocument) -> Vec<String> {
    let mut texts = AgentTexts {
        name: agent.name.clone(),
        description: agent.description.clone(),
        provider: format!(
            "{} {}",
            agent.provider,
            agent.facets[Facet::Domain].concat()
        )
        .trim()
        .to_owned(),
        skills: agent.skills.clone(),
        other: agent.other_texts.clone(),
        ..AgentTexts::default()
    };
    texts.protocol = PROTOCOL_FACETS
        .map(|facet| agent.facets[facet].clone())
        .concat();
    texts.protocol.sort();
    texts.protocol.dedup();
    let silent = crate::schema::UNINFORMATIVE_VALUES;
    texts
        .protocol
        .retain(|value| !silent.contains(&value.as_str()));
    let text = laid_out(&texts);
    let mut words = Vec::new();
    JoinedTextsTokenizer
        .token_stream(&text)
        .process(&mut |token| words.push(token.text.clone()));
    words
}

/// BM25 score of one word, computed naively from the agents of the class.
struct Naive {
    counted: Vec<Vec<String>>,
}

impl Naive {
    fn of<'a>(agents: impl Iterator<Item = &'a AgentDocument>) -> Self {
        Self {
            counted: agents.map(words_of).collect(),
        }
    }

    fn idf(&self, form: &str) -> f64 {
        let count = self.counted.len() as f64;
        if count == 0.0 {
            return 1.0;
        }
        let holds = |words: &&Vec<String>| words.iter().any(|word| word == form);
        let held = self.counted.iter().filter(holds).count() as f64;
        (1.0 + (count - held + 0.5) / (held + 0.5)).ln()
    }

    fn mean_length(&self) -> f64 {
        // Field-length norms are stored in one byte, so the mean length uses the rounded lengths.
        let kept = |words: &Vec<String>| {
            let length = u32::try_from(words.len()).unwrap();
            f64::from(FieldNormReader::id_to_fieldnorm(
                FieldNormReader::fieldnorm_to_id(length),
            ))
        };
        match self.counted.len() {
            0 => 100.0,
            count => self.counted.iter().map(kept).sum::<f64>() / count as f64,
        }
    }

    fn score(&self, agent: &AgentDocument, form: &str) -> f64 {
        let words = words_of(agent);
        let often = words.iter().filter(|word| *word == form).count() as f64;
        let length = u32::try_from(words.len()).unwrap();
        let length = FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(length));
        let norm = 1.2 * (0.25 + 0.75 * f64::from(length) / self.mean_length());
        self.idf(form) * 2.2 * often / (often + norm)
    }
}

/// Scores of the first scoring, which sums the scores of words.
fn first_scores(index: &Index, request: &SearchRequest) -> Vec<(Uuid, f32)> {
    let compiled = index.compile_query(request).unwrap();
    let best = tantivy::collector::TopDocs::with_limit(1_000).order_by_score();
    let found = compiled.searcher.search(&*compiled.query, &best).unwrap();
    let found = found.into_iter().map(|(score, address)| {
        let reader = compiled.searcher.segment_reader(address.segment_ord);
        let ids = crate::agent_id_reader::AgentIdReader::open(reader).unwrap();
        (ids.get(address.doc_id), score)
    });
    found.collect()
}

#[test]
fn scores_equal_a_naive_count() {
    let mut scored = 0;
    for seed in 1..=3 {
        let mut dice = Dice(seed * 0x3d_9911);
        let mut agents: std::collections::BTreeMap<Uuid, AgentDocument> = (0..90)
            .map(|number| (id(number), random_agent(&mut dice, number)))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let index = built(folder.path(), agents.values().cloned().collect());
        for seq in 2..6 {
            let changed: Vec<AgentDocument> = (0..12)
                .map(|_| {
                    let number = dice.below(110);
                    random_agent(&mut dice, number)
                })
                .collect();
            let gone = [id(dice.below(110)), id(dice.below(110))];
            gone.iter().for_each(|id| {
                agents.remove(id);
            });
            agents.extend(changed.iter().map(|agent| (agent.id, agent.clone())));
            index.apply_changes(changed, &gone, seq).unwrap();
        }
        for number in 0..40 {
            // Every set of labels may be a class; the empty one has no agents.
            let class: Vec<String> = LABELS[..number % 4]
                .iter()
                .map(|label| (*label).to_owned())
                .collect();
            let word = dice.pick(&["flight", "hotel", "bank", "tokyo"]);
            let request = SearchRequest {
                text: Some(word.to_owned()),
                visible_to: LABELS.map(str::to_owned).to_vec(),
                class_labels: class.clone(),
                limit: 1_000,
                ..SearchRequest::default()
            };
            let plain = SearchRequest {
                visible_to: class,
                ..SearchRequest::default()
            };
            let naive = Naive::of(agents.values().filter(|agent| matches(agent, &plain)));
            let prepared = index.0.prepare_query(&request).unwrap();
            let statistics = index
                .0
                .corpus_statistics(&prepared.view, &request.class_labels)
                .unwrap();
            let length = f64::from(statistics.mean_length());
            assert!((length - naive.mean_length()).abs() < 1e-3);
            let mut forms: Vec<(String, f64)> = Vec::new();
            for word in &prepared.query.words {
                forms.push((word.base_form().to_owned(), 1.0));
                forms.extend(word.other_forms.iter().map(|other| (other.clone(), 0.5)));
            }
            for (found, score) in first_scores(&index, &request) {
                let worths = forms
                    .iter()
                    .map(|(form, weight)| weight * naive.score(&agents[&found], form));
                let expected = worths.fold(0.0, f64::max);
                assert!(
                    (f64::from(score) - expected).abs() < 1e-4 * expected.max(1.0),
                    "{score} {expected} {request:?}"
                );
                scored += 1;
            }
        }
    }
    assert!(scored > 1_000, "{scored}");
}

/// Queries of several words and their rescoring use the same counts: an index of only the class gives equal scores.
#[test]
fn hidden_agents_move_no_score() {
    let mut dice = Dice(0x51_aa07);
    let mut agents: Vec<AgentDocument> = (0..80)
        .map(|number| random_agent(&mut dice, number))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let index = built(&folder.path().join("all"), agents.clone());
    let alone = built(
        &folder.path().join("alone"),
        agents
            .iter()
            .filter(|agent| visible(agent, &public()))
            .cloned()
            .collect(),
    );
    index.apply_changes(Vec::new(), &[], 500).unwrap();
    alone.apply_changes(Vec::new(), &[], 500).unwrap();
    let mut asked: Vec<SearchRequest> = (0..45)
        .map(|number| {
            let text = match number % 3 {
                0 => written(&mut dice),
                _ => dice.words(&WORDS, 5),
            };
            SearchRequest {
                text: Some(text),
                visible_to: public(),
                class_labels: public(),
                explain: true,
                ..random_request(&mut dice)
            }
        })
        .collect();
    asked.push(text("flight hotel"));
    let answers = |index: &Index| -> Vec<String> {
        let answers = asked.iter().map(|request| index.search(request).unwrap());
        answers.map(|answer| whole(&answer)).collect()
    };
    let expected = answers(&alone);
    assert_eq!(answers(&index), expected);
    // Hidden agents are added, changed and removed; no score changes.
    let words = WORDS.join(" ");
    for round in 0..3 {
        let hidden: Vec<AgentDocument> = (1_000..1_150)
            .map(|number| {
                let agent = AgentDocument {
                    description: format!("{words} {}", dice.words(&WORDS, 9)),
                    visible_to: vec!["internal".to_owned()],
                    ..agent(number, dice.pick(&WORDS))
                };
                let lifecycle = dice.pick(&["pending", "suspended", "approved"]);
                with(agent, Facet::Lifecycle, &[lifecycle])
            })
            .collect();
        let gone: Vec<Uuid> = (1_000..1_000 + round * 40).map(id).collect();
        agents = hidden.clone();
        index.apply_changes(hidden, &[], 500).unwrap();
        assert_eq!(answers(&index), expected);
        index.apply_changes(Vec::new(), &gone, 500).unwrap();
        assert_eq!(answers(&index), expected);
    }
    assert!(!agents.is_empty());
    // Agents that are on hold or gone are not counted either, whatever their labels.
    let held = AgentDocument {
        description: words,
        ..agent(2_000, "flight")
    };
    let gone = AgentDocument {
        id: id(2_001),
        ..with(held.clone(), Facet::Liveness, &["gone"])
    };
    let held = with(held, Facet::Lifecycle, &["suspended"]);
    let plain = text("flight hotel translate");
    let before = whole(&index.search(&plain).unwrap());
    index.apply_changes(vec![held, gone], &[], 500).unwrap();
    assert_eq!(whole(&index.search(&plain).unwrap()), before);
    assert_eq!(
        index.count_listed_agents(&public()).unwrap(),
        index
            .search(&SearchRequest { limit: 0, ..all() })
            .unwrap()
            .total
    );
}

#[test]
fn a_class_without_agents_scores_every_word_alike() {
    let folder = tempfile::tempdir().unwrap();
    let pending = |number: u64, words: &str| AgentDocument {
        description: words.to_owned(),
        visible_to: vec!["curators".to_owned()],
        ..agent(number, "Agent")
    };
    let index = built(
        folder.path(),
        (1..40)
            .map(|number| pending(number, "common"))
            .chain([pending(50, "singular")])
            .collect(),
    );
    let score = |word: &str| {
        let request = SearchRequest {
            visible_to: vec!["curators".to_owned()],
            ..text(word)
        };
        let hits = index.search(&request).unwrap().hits;
        hits[0].score.unwrap()
    };
    assert!((score("common") - score("singular")).abs() < 1e-5);
    let words = analyze_query("common").words;
    assert_eq!(words.len(), 1);
}

#[test]
fn domains_are_counted_once_however_many_segments_hold_them_and_only_those_of_visible_agents() {
    let folder = tempfile::tempdir().unwrap();
    let of = |number: u64, domain: &str| with(agent(number, "Agent"), Facet::Domain, &[domain]);
    let hidden = AgentDocument {
        visible_to: vec!["curators".to_owned()],
        ..of(3, "hidden.example")
    };
    let index = built(
        folder.path(),
        vec![of(1, "a.example"), of(2, "a.example"), hidden],
    );
    assert_eq!(index.count_domains(&public()).unwrap(), 1);
    let later = vec![of(4, "a.example"), of(5, "b.example")];
    index.apply_changes(later, &[], 2).unwrap();
    assert_eq!(index.count_domains(&public()).unwrap(), 2);
    let curators = ["curators".to_owned(), "public".to_owned()];
    assert_eq!(index.count_domains(&curators).unwrap(), 3);
    index.apply_changes(Vec::new(), &[id(5)], 3).unwrap();
    assert_eq!(index.count_domains(&public()).unwrap(), 1);
}
