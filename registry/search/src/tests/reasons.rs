//! Explanations in sentences: their numbers add up to the score, and they name members, words and what counts for
//! them.

use std::collections::HashSet;
use std::sync::Arc;

use super::oracle::{WORDS, random_agent, random_request};
use super::*;
use crate::analysis::{QueryWord, analyze_query, indexed_words};
use crate::highlight::Highlighter;
use crate::languages::LanguageSet;
use crate::vectors::{AgentVectors, VectorChange, VectorStore};

fn sentences(hit: &HitRow) -> Vec<String> {
    let summary = &hit.explain.as_ref().unwrap()["summary"];
    serde_json::from_value(summary.clone()).unwrap()
}

/// The numbers of a hit's sentences, and their total.
fn figures(hit: &HitRow) -> (Vec<f32>, f32) {
    let mut whole = None;
    let figures = sentences(hit).into_iter().map(|sentence| {
        let figures = sentence.rsplit_once(" of ").unwrap();
        let (before, after) = match sentence.find("): ") {
            // Details follow the numbers.
            Some(end) => sentence[..end].rsplit_once(" of ").unwrap(),
            None => figures,
        };
        let part = before.rsplit_once('(').unwrap().1.parse().unwrap();
        let of: f32 = after.trim_end_matches(')').parse().unwrap();
        assert_eq!(*whole.get_or_insert(of), of, "{sentence}");
        part
    });
    (figures.collect(), whole.unwrap_or_default())
}

#[expect(clippy::cast_precision_loss, reason = "there are a few")]
fn check_sum(hit: &HitRow, request: &SearchRequest) {
    let score = hit.score.unwrap();
    let (parts, whole) = figures(hit);
    let sum: f32 = parts.iter().sum();
    let rounding = 0.005 * (parts.len() + 1) as f32 + 0.001 * score;
    let all = sentences(hit);
    assert!(
        (sum - score).abs() <= rounding,
        "{score} {all:?} {request:?}"
    );
    assert!((whole - score).abs() <= 0.0051, "{score} {all:?}");
}

fn explained(request: &SearchRequest) -> SearchRequest {
    SearchRequest {
        explain: true,
        sort: SortOrder::Relevance,
        ..request.clone()
    }
}

/// The same search, explained without the computation.
fn in_sentences(request: &SearchRequest) -> SearchRequest {
    SearchRequest {
        parts: RequestedHitParts {
            computation: false,
            ..RequestedHitParts::default()
        },
        ..request.clone()
    }
}

/// A hit without the computation of its score has only sentences, whose numbers add up to the same score.
fn check_brief(hit: &HitRow, brief: &HitRow, request: &SearchRequest) {
    assert_eq!((hit.id, hit.score), (brief.id, brief.score));
    let shown = brief.explain.as_ref().unwrap().as_object().unwrap();
    assert_eq!(shown.keys().collect::<Vec<_>>(), ["summary"]);
    check_sum(brief, request);
}

#[test]
fn the_figures_of_full_text_add_up_to_the_score() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(31);
    let agents = (0..150).map(|number| random_agent(&mut dice, number));
    let index = built(dir.path(), agents.collect());
    let mut checked = 0;
    let queries = [
        "\"hotel translate\" bank",
        "flight AND hotel",
        "bank OR Tokyo flight",
        "trans* -hotel",
        "the flight to the bank",
        "skill:translate AND flights",
    ];
    for round in 0..40 {
        let mut request = explained(&random_request(&mut dice));
        request.text = match queries.get(round) {
            Some(query) => Some((*query).to_owned()),
            None => Some(dice.words(&WORDS, 4)),
        };
        request.filters = Filters::default();
        request.visible_to = public();
        request.class_labels = public();
        let hits = index.search(&request).unwrap().hits;
        let brief = index.search(&in_sentences(&request)).unwrap().hits;
        for (hit, brief) in hits.iter().zip(&brief).take(MAX_EXPLAINED_HITS) {
            if hit.score.is_some() {
                check_sum(hit, &request);
                check_brief(hit, brief, &request);
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn the_figures_of_both_kinds_add_up_to_the_score() {
    const DIMENSIONS: usize = 16;
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(32);
    let agents: Vec<AgentDocument> = (0..200)
        .map(|number| random_agent(&mut dice, number))
        .collect();
    let index = built(&dir.path().join("index"), agents.clone());
    let vectors = VectorStore::create(&dir.path().join("vectors"), DIMENSIONS).unwrap();
    let vector = |dice: &mut Dice| {
        let values = (0..DIMENSIONS).map(|_| dice.below(2001) as f32 - 1000.0);
        let values: Vec<f32> = values.collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values
            .into_iter()
            .map(|value| value / length)
            .collect::<Vec<f32>>()
    };
    let changes: Vec<VectorChange> = agents
        .iter()
        .map(|agent| {
            let vectors = [vector(&mut dice), vector(&mut dice)];
            (agent.id, Some((1, AgentVectors::new(&vectors).unwrap())))
        })
        .collect();
    vectors.replace_agent_vectors(&changes).unwrap();
    let vectors = Arc::new(vectors);
    let mut by_meaning = 0;
    for round in 0..30 {
        let query = ["flight", "flight hotel translate bank Tokyo"][round % 2];
        let mut request = explained(&text(query));
        request.semantic = Some(SemanticQuery {
            vectors: Arc::clone(&vectors),
            query: vector(&mut dice).into(),
            cutoff: 0.2,
            semantic_only: round % 5 == 0,
        });
        let hits = index.search(&request).unwrap().hits;
        let brief = index.search(&in_sentences(&request)).unwrap().hits;
        for (hit, brief) in hits.into_iter().zip(&brief).take(MAX_EXPLAINED_HITS) {
            check_sum(&hit, &request);
            check_brief(&hit, brief, &request);
            by_meaning += usize::from(
                sentences(&hit)
                    .iter()
                    .any(|one| one.contains("semantic similarity adds")),
            );
        }
    }
    assert!(by_meaning > 50, "{by_meaning}");
}

#[test]
fn sentences_name_members_words_and_what_counts_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let skill = SkillText {
        id: "book".to_owned(),
        name: "Book a flight".to_owned(),
        description: "Books a cheap flight".to_owned(),
        ..SkillText::default()
    };
    let mut agents = vec![agent(1, "Flight desk"), agent(2, "Other"), agent(3, "More")];
    agents[0].skills = vec![skill];
    agents[0].description = "Sends an invoice for all flights".to_owned();
    let index = built(dir.path(), agents);
    let why = |query: &str| {
        let answer = index.search(&explained(&text(query))).unwrap();
        sentences(&answer.hits[0])
            .into_iter()
            .map(|sentence| sentence.split(" (").next().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    let both = why("book flight");
    for expected in [
        "skill \"Book a flight\" contains \"book\"",
        "skill \"Book a flight\" is the best matching part",
        "words of the query are near each other",
    ] {
        assert!(both.iter().any(|sentence| sentence == expected), "{both:?}");
    }
    assert_eq!(
        why("flight")[0],
        "skill \"Book a flight\", name and description contain \"flight\""
    );
    assert_eq!(why("book")[0], "skill \"Book a flight\" contains \"book\"");
    assert_eq!(why("desks")[0], "name contains \"desk\" for \"desks\"");
    assert_eq!(
        why("bill")[0],
        "description contains \"invoice\", which counts for \"bill\" at half weight"
    );
    assert_eq!(
        why("invo*")[0],
        "description contains \"invoice\", which counts for \"invo\" at half weight"
    );
}

#[test]
fn a_skill_s_name_is_quoted_in_one_bounded_line() {
    let dir = tempfile::tempdir().unwrap();
    let skills = (0..9).map(|number| SkillText {
        id: number.to_string(),
        name: format!("flight\n{{}} {number} {}", "x".repeat(500)),
        ..SkillText::default()
    });
    let mut one = agent(1, "One");
    one.skills = skills.collect();
    let index = built(dir.path(), vec![one]);
    let answer = index.search(&explained(&text("flight"))).unwrap();
    let sentences = sentences(&answer.hits[0]);
    assert!(
        sentences[0].contains("and 6 other texts contain \"flight\""),
        "{sentences:?}"
    );
    for sentence in &sentences {
        assert!(
            sentence.len() < 400 && !sentence.contains('\n'),
            "{sentence}"
        );
    }
    check_sum(&answer.hits[0], &text("flight"));
}

/// Texts that are not analyzed because no word of a query can begin in them contain none of its forms.
#[test]
fn a_text_without_the_beginning_of_a_word_has_no_form_of_it() {
    let mut dice = Dice(59);
    let odd = [
        "bookFlights2Tokyo",
        "GPT4Banking",
        "e-mail translations",
        "naïveté",
        "THE BANKS",
        "web3Hotel",
        "dying",
        "traveller's",
    ];
    let agents: Vec<AgentDocument> = (0..100)
        .map(|number| random_agent(&mut dice, number))
        .collect();
    let mut texts: Vec<&str> = odd.to_vec();
    for agent in &agents {
        texts.extend([
            agent.name.as_str(),
            &agent.description,
            &agent.provider,
            &agent.facets[Facet::Domain][0],
        ]);
        texts.extend(agent.skills.iter().map(|skill| skill.name.as_str()));
    }
    let (mut skipped, mut held) = (0, 0);
    for _ in 0..60 {
        let words = analyze_query(&dice.words(&WORDS, 3)).words;
        let forms = words.iter().flat_map(QueryWord::weighted_forms);
        let forms: HashSet<String> = forms.map(|(form, _)| form.to_owned()).collect();
        let highlighter = Highlighter::new(&words);
        for text in &texts {
            let found = indexed_words(text, LanguageSet::NONE).into_iter();
            let has_form = found
                .flat_map(|piece| piece.forms())
                .any(|form| forms.contains(&form));
            let may_hold = highlighter.may_contain_word(text);
            assert!(may_hold || !has_form, "{text:?} {forms:?}");
            skipped += usize::from(!may_hold);
            held += usize::from(has_form);
        }
    }
    assert!(skipped > 500 && held > 500, "{skipped} {held}");
}
