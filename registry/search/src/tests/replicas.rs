//! Replicas: two indexes of the same agents give equal responses, whatever their segments and deletions are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::labels::written;
use super::oracle::{WORDS, random_agent, random_request};
use super::*;
use crate::vectors::{AgentVectors, VectorChange, VectorStore};

const AGENTS: u64 = 240;
const DIMENSIONS: usize = 16;
const SORTS: [SortOrder; 4] = [
    SortOrder::Relevance,
    SortOrder::Name,
    SortOrder::Updated,
    SortOrder::Newest,
];

/// Agents in their final state, and in an earlier one.
struct History {
    agents: BTreeMap<Uuid, AgentDocument>,
    earlier: Vec<AgentDocument>,
}

impl History {
    fn of(dice: &mut Dice) -> Self {
        let agents = (0..AGENTS).map(|number| (id(number), random_agent(dice, number)));
        Self {
            agents: agents.collect(),
            // Other texts under the same ids, and some agents that are deleted later.
            earlier: (0..AGENTS + 60)
                .map(|number| random_agent(dice, number))
                .collect(),
        }
    }

    fn last(&self) -> Vec<AgentDocument> {
        self.agents.values().cloned().collect()
    }

    fn gone(&self) -> Vec<Uuid> {
        let gone = self.earlier.iter().map(|agent| agent.id);
        gone.filter(|id| !self.agents.contains_key(id)).collect()
    }

    /// Builds the index in one commit.
    fn rebuilt(&self, dir: &Path) -> Index {
        let index = built(dir, self.last());
        index.apply_changes(Vec::new(), &[], 1_000).unwrap();
        index
    }

    /// Builds the index in this many commits, in which most agents are written several times and some are deleted.
    fn grown(&self, dir: &Path, commits: usize, dice: &mut Dice) -> Index {
        let index = built(dir, self.earlier[..90].to_vec());
        let size = (AGENTS as usize).div_ceil(commits);
        let mut last = self.last();
        for place in (1..last.len()).rev() {
            let other = usize::try_from(dice.below(place as u64 + 1)).unwrap();
            last.swap(place, other);
        }
        let mut seq = 1;
        for some in self.earlier[60..].chunks(size * 2).chain(last.chunks(size)) {
            seq += 1;
            index.apply_changes(some.to_vec(), &[], seq).unwrap();
        }
        index
            .apply_changes(Vec::new(), &self.gone(), 1_000)
            .unwrap();
        index
    }
}

fn segments(index: &Index) -> (usize, u32) {
    let searcher = index.0.current_view().unwrap().searcher;
    let readers = searcher.segment_readers();
    let deleted = readers.iter().map(|reader| reader.num_deleted_docs()).sum();
    (readers.len(), deleted)
}

/// The whole response as text, with exact scores.
pub(super) fn whole(answer: &IndexSearchResponse) -> String {
    let hits: Vec<_> = answer
        .hits
        .iter()
        .map(|hit| {
            (
                hit.id,
                &hit.hit,
                hit.score.map(f32::to_bits),
                &hit.position,
                &hit.highlights,
                &hit.matched_skills,
                &hit.explain,
                &hit.duplicates,
            )
        })
        .collect();
    format!(
        "{} {} {:?} {} {:?} {:?} {hits:#?}",
        answer.applied_seq,
        answer.total,
        answer.groups,
        answer.has_more,
        answer.facets,
        answer.hints
    )
}

fn vector(dice: &mut Dice) -> Vec<f32> {
    let values: Vec<f32> = (0..DIMENSIONS)
        .map(|_| dice.below(2001) as f32 - 1000.0)
        .collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.into_iter().map(|value| value / length).collect()
}

/// Vectors of all agents, written in this order.
fn vectors(dir: &Path, changes: impl Iterator<Item = VectorChange>) -> Arc<VectorStore> {
    let vectors = VectorStore::create(dir, DIMENSIONS).unwrap();
    for change in changes {
        vectors.replace_agent_vectors(&[change]).unwrap();
    }
    Arc::new(vectors)
}

fn asked(dice: &mut Dice, number: usize) -> SearchRequest {
    let mistyped = ["fligt", "translatoin", "bankng", "tokyp"];
    let text = match dice.below(4) {
        0 => written(dice),
        1 => format!("{} {}", dice.pick(&mistyped), dice.words(&WORDS, 2)),
        2 => format!(
            "{} AND {} AND {}",
            dice.pick(&WORDS),
            dice.pick(&WORDS),
            dice.pick(&WORDS)
        ),
        _ => dice.words(&WORDS, 6),
    };
    let visible_to = vec!["public".to_owned(), "internal".to_owned()];
    SearchRequest {
        text: Some(text),
        class_labels: visible_to[..1 + number % 2].to_vec(),
        visible_to,
        sort: SORTS[usize::try_from(dice.below(6)).unwrap() % 4],
        limit: 7,
        explain: true,
        group_duplicates: number.is_multiple_of(2),
        ..random_request(dice)
    }
}

#[test]
fn pages_of_two_indexes_are_pages_of_one() {
    let mut dice = Dice(0x1d_5511);
    let folder = tempfile::tempdir().unwrap();
    let history = History::of(&mut dice);
    let indexes = [
        history.rebuilt(&folder.path().join("a")),
        history.grown(&folder.path().join("b"), 40, &mut dice),
        history.grown(&folder.path().join("c"), 9, &mut dice),
    ];
    let shapes: Vec<_> = indexes.iter().map(segments).collect();
    // Merges run in the background, so two indexes may come to have the same shape.
    assert!(shapes.iter().any(|shape| *shape != shapes[0]), "{shapes:?}");

    let made: Vec<VectorChange> = history
        .agents
        .keys()
        .map(|id| {
            let some: Vec<Vec<f32>> = (0..=dice.below(4)).map(|_| vector(&mut dice)).collect();
            (*id, Some((1, AgentVectors::new(&some).unwrap())))
        })
        .collect();
    let near = [
        vectors(&folder.path().join("v"), made.iter().cloned()),
        vectors(&folder.path().join("w"), made.iter().rev().cloned()),
        vectors(
            &folder.path().join("x"),
            made.iter().cloned().chain(made.iter().take(50).cloned()),
        ),
    ];

    let (mut pages, mut hits) = (0, 0);
    for number in 0..200 {
        let mut request = asked(&mut dice, number);
        let meaning = (number % 3 == 0).then(|| (vector(&mut dice), dice.below(2) == 0));
        for page in 0..40 {
            let answers: Vec<IndexSearchResponse> = indexes
                .iter()
                .zip(&near)
                .map(|(index, vectors)| {
                    let meaning = meaning.as_ref().map(|(query, alone)| SemanticQuery {
                        vectors: Arc::clone(vectors),
                        query: query.clone().into(),
                        cutoff: 0.05,
                        semantic_only: *alone,
                    });
                    let request = SearchRequest {
                        semantic: meaning,
                        ..request.clone()
                    };
                    index.search(&request).unwrap()
                })
                .collect();
            for other in &answers[1..] {
                assert_eq!(whole(&answers[0]), whole(other), "{request:?}");
            }
            pages += 1;
            hits += answers[0].hits.len();
            // The next page continues after the page of another index.
            let shown = &answers[(number + page) % answers.len()];
            match shown.hits.last() {
                Some(last) if shown.has_more => request.after = Some(last.position.clone()),
                _ => break,
            }
        }
    }
    assert!(pages > 400 && hits > 2_000, "{pages} {hits}");
    for (number, id) in (0..).zip(history.agents.keys()) {
        let found = indexes.iter().zip(&near).map(|(index, vectors)| {
            let request = SimilarRequest {
                id: *id,
                visible_to: vec!["public".to_owned(), "internal".to_owned()],
                class_labels: public(),
                limit: 10,
                vectors: (number % 2 == 0).then(|| (Arc::clone(vectors), 0.05)),
            };
            let found = index.find_similar_agents(&request).unwrap();
            let hits = found.hits.iter();
            let hits = hits.map(|hit| (hit.id, hit.score.map(f32::to_bits)));
            (hits.collect::<Vec<_>>(), found.duplicates)
        });
        let found: Vec<_> = found.collect();
        assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
    }
    for prefix in ["a", "b", "f", "t", "tr", "na", "東", "ho", "bank"] {
        for labels in [&["public"][..], &["public", "internal"]] {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            let suggested = indexes[0].suggest(prefix, &labels, 50).unwrap();
            for other in &indexes[1..] {
                assert_eq!(
                    suggested,
                    other.suggest(prefix, &labels, 50).unwrap(),
                    "{prefix}"
                );
            }
        }
    }
}

/// More names, words and similar words share a prefix than are read: which ones count depends neither on segments nor
/// on deletions.
#[test]
fn bounds_cut_the_same_wherever_agents_lie() {
    let named = |number: u64| {
        let name = format!("Ab{number:05}");
        AgentDocument {
            description: format!(
                "abcdef{} {name}",
                char::from_u32(0x4e00 + number as u32).unwrap()
            ),
            ..with(agent(number, &name), Facet::Tag, &[&name.to_lowercase()])
        }
    };
    let all: Vec<AgentDocument> = (0..3_000).map(named).collect();
    let folder = tempfile::tempdir().unwrap();
    let whole_index = built(&folder.path().join("a"), all.clone());
    whole_index.apply_changes(Vec::new(), &[], 1_000).unwrap();
    let grown = built(
        &folder.path().join("b"),
        (3_000..4_500).map(named).collect(),
    );
    for (some, seq) in all.chunks(170).rev().zip(2..) {
        grown.apply_changes(some.to_vec(), &[], seq).unwrap();
    }
    let gone: Vec<Uuid> = (3_000..4_500).map(id).collect();
    grown.apply_changes(Vec::new(), &gone, 1_000).unwrap();
    for prefix in ["a", "ab", "ab0", "ab01"] {
        let suggested = whole_index.suggest(prefix, &public(), 50).unwrap();
        assert_eq!(suggested.len(), 50);
        assert_eq!(suggested, grown.suggest(prefix, &public(), 50).unwrap());
    }
    for query in ["ab*", "ab01*", "abcdefg", "abcdefgh", "ab00001"] {
        let request = SearchRequest {
            explain: true,
            ..text(query)
        };
        let answers = [&whole_index, &grown].map(|index| index.search(&request).unwrap());
        assert_eq!(whole(&answers[0]), whole(&answers[1]), "{query}");
    }
}

/// Floating-point sums of three and more numbers depend on their order, and the order of costs depends on the segment.
#[test]
fn demands_are_summed_in_the_order_of_the_query() {
    let mut dice = Dice(0x77_1234);
    let words = ["alpha", "beta", "gamma", "delta", "epsilon"];
    let described = |number: u64, dice: &mut Dice, often: &[&str]| AgentDocument {
        description: format!("{} {}", words.join(" "), dice.words(often, 40)),
        ..agent(number, "Agent")
    };
    let shared: Vec<AgentDocument> = (0..50)
        .map(|number| described(number, &mut dice, &words))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut indexes = Vec::new();
    for (place, rare) in words.iter().enumerate() {
        // Besides the same agents, each segment is full of another word, whose agents are then deleted.
        let filler: Vec<AgentDocument> = (100..400)
            .map(|number| AgentDocument {
                description: words
                    .iter()
                    .filter(|word| *word != rare)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(" "),
                ..agent(number, "Agent")
            })
            .collect();
        let gone: Vec<Uuid> = filler.iter().map(|agent| agent.id).collect();
        let both = shared.iter().cloned().chain(filler).collect();
        let index = built(&folder.path().join(place.to_string()), both);
        for (gone, seq) in gone.chunks(100).zip(2..) {
            index.apply_changes(Vec::new(), gone, seq).unwrap();
        }
        indexes.push(index);
    }
    for query in [
        "alpha AND beta AND gamma AND delta",
        "epsilon AND delta AND \"gamma\" AND beta AND alpha",
        "alpha AND beta OR gamma AND delta AND epsilon",
    ] {
        let answers: Vec<String> = indexes
            .iter()
            .map(|index| whole(&index.search(&text(query)).unwrap()))
            .collect();
        for other in &answers[1..] {
            assert_eq!(&answers[0], other, "{query}");
        }
    }
}
