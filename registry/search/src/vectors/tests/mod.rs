//! The vector store against a naive comparison of all agents.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;

/// A pseudo-random vector of unit length; the same seed gives the same vector.
fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dimensions).map(|_| next()).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.into_iter().map(|value| value / length).collect()
}

fn agent(seed: u64, count: u64, dimensions: usize) -> AgentVectors {
    let vectors: Vec<Vec<f32>> = (0..count)
        .map(|one| vector(seed * 100 + one, dimensions))
        .collect();
    AgentVectors::new(&vectors).unwrap()
}

fn id(number: u64) -> Uuid {
    Uuid::from_u64_pair(number % 7, number)
}

fn empty(dimensions: usize) -> (TempDir, VectorStore) {
    let folder = TempDir::new().unwrap();
    let vectors = VectorStore::create(&folder.path().join("vectors"), dimensions).unwrap();
    (folder, vectors)
}

/// The slots of these agents as a set.
fn allowed(vectors: &VectorStore, ids: impl Iterator<Item = Uuid>) -> SlotBitSet {
    let slots = vectors.assign_slots(ids);
    let mut bits = SlotBitSet::with_capacity(vectors.snapshot().slot_count());
    slots.into_iter().for_each(|slot| bits.insert(slot));
    bits
}

/// The nearest neighbors by a comparison with all agents, in slot order.
fn naive(
    vectors: &VectorStore,
    agents: &BTreeMap<Uuid, AgentVectors>,
    query: &[f32],
) -> Vec<Neighbor> {
    let code = codes::query_vector_code(query);
    let mut all: Vec<(u32, Uuid, &AgentVectors)> = agents
        .iter()
        .map(|(id, agent)| {
            let codes = codes::agent_vector_codes(agent);
            let distances = codes
                .chunks(code.len())
                .map(|one| codes::hamming_distance(one, &code));
            (distances.min().unwrap(), *id, agent)
        })
        .collect();
    all.sort_by_key(|(distance, id, _)| (*distance, *id));
    all.truncate(MAX_NEAREST);
    let mut near: Vec<Neighbor> = all
        .into_iter()
        .map(|(_, id, agent)| Neighbor {
            slot: vectors.assign_slots(std::iter::once(id))[0],
            similarity: quantized::compute_similarity(
                agent.as_bytes(),
                &quantized::QuantizedQuery::new(query),
            ),
        })
        .collect();
    near.sort_by_key(|near| near.slot);
    near
}

#[test]
fn the_nearest_of_many_are_those_of_a_naive_comparison() {
    for dimensions in [24, 100, 384, 768] {
        let (_folder, vectors) = empty(dimensions);
        let agents: BTreeMap<Uuid, AgentVectors> = (0..3000)
            .map(|number| (id(number), agent(number, 1 + number % 6, dimensions)))
            .collect();
        let changes: Vec<_> = agents
            .iter()
            .map(|(id, agent)| (*id, Some((7, agent.clone()))))
            .collect();
        for some in changes.chunks(700) {
            vectors.replace_agent_vectors(some).unwrap();
        }
        assert_eq!(vectors.agent_count(), 3000);
        let query = vector(u64::MAX / 3, dimensions);
        let everybody = allowed(&vectors, agents.keys().copied());
        let found = vectors.snapshot().find_nearest(&query, &everybody).unwrap();
        assert_eq!(found.len(), MAX_NEAREST);
        assert_eq!(found, naive(&vectors, &agents, &query), "{dimensions}");
    }
}

#[test]
fn of_a_few_allowed_slots_only_those_are_found() {
    // Lengths with and without a specialized loop; the last chunk, and its last group of slots, is not full.
    for dimensions in [1, 65, 384, 512, 768, 1024] {
        let (_folder, vectors) = empty(dimensions);
        let agents: BTreeMap<Uuid, AgentVectors> = (0..1037)
            .map(|number| (id(number), agent(number, 1 + number % 5, dimensions)))
            .collect();
        let changes: Vec<_> = agents
            .iter()
            .map(|(id, agent)| (*id, Some((1, agent.clone()))))
            .collect();
        // These agents have a slot without vectors.
        vectors.assign_slots((2000..2003).map(id));
        vectors.replace_agent_vectors(&changes).unwrap();
        let query = vector(u64::MAX / 5, dimensions);
        for every in [1, 2, 7, 64, 300, 5000] {
            let few: BTreeMap<Uuid, AgentVectors> = agents
                .iter()
                .enumerate()
                .filter(|(place, _)| place % every == every / 2)
                .map(|(_, (id, agent))| (*id, agent.clone()))
                .collect();
            let empty_slots = (2000..2003).map(id);
            let bits = allowed(&vectors, few.keys().copied().chain(empty_slots));
            let found = vectors.snapshot().find_nearest(&query, &bits).unwrap();
            assert_eq!(found, naive(&vectors, &few, &query), "{dimensions} {every}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any order of changes, a search finds exactly the allowed agents with vectors.
    #[test]
    fn what_was_changed_is_found_as_it_is(
        changes in prop::collection::vec((0_u64..40, prop::option::of((0_u64..1000, 1_u64..19))), 1..120),
        hidden in prop::collection::vec(0_u64..40, 0..20),
        group in 1_usize..9,
    ) {
        let (_folder, vectors) = empty(64);
        let mut agents = BTreeMap::new();
        for some in changes.chunks(group) {
            let some: Vec<_> = some
                .iter()
                .map(|(number, made)| (id(*number), made.map(|(seed, count)| (seed, agent(seed, count, 64)))))
                .collect();
            for (id, made) in &some {
                match made {
                    Some((_, made)) => agents.insert(*id, made.clone()),
                    None => agents.remove(id),
                };
            }
            vectors.replace_agent_vectors(&some).unwrap();
            for (id, _) in &some {
                let last = some.iter().rfind(|(other, _)| other == id).unwrap();
                prop_assert_eq!(vectors.text_stamp(*id), last.1.as_ref().map(|(stamp, _)| *stamp));
            }
        }
        prop_assert_eq!(vectors.agent_count(), agents.len());
        for number in hidden {
            agents.remove(&id(number));
        }
        let bits = allowed(&vectors, agents.keys().copied());
        let query = vector(77, 64);
        let found = vectors.snapshot().find_nearest(&query, &bits).unwrap();
        prop_assert_eq!(found, naive(&vectors, &agents, &query));
    }
}

#[test]
fn agents_of_one_distance_are_told_apart_by_their_ids() {
    let (_folder, vectors) = empty(64);
    let same = agent(5, 1, 64);
    // In descending order of ids, and more than are compared.
    let changes: Vec<_> = (0..1500_u64)
        .rev()
        .map(|number| (Uuid::from_u64_pair(0, number), Some((1, same.clone()))))
        .collect();
    vectors.replace_agent_vectors(&changes).unwrap();
    let bits = allowed(&vectors, changes.iter().map(|(id, _)| *id));
    let found = vectors
        .snapshot()
        .find_nearest(&vector(9, 64), &bits)
        .unwrap();
    let snapshot = vectors.snapshot();
    let mut ids: Vec<Uuid> = found
        .iter()
        .map(|near| {
            let (chunk, place) = locate_slot(near.slot);
            snapshot.chunks[chunk].ids[place]
        })
        .collect();
    ids.sort_unstable();
    let first: Vec<Uuid> = (0..MAX_NEAREST as u64)
        .map(|number| Uuid::from_u64_pair(0, number))
        .collect();
    assert_eq!(ids, first);
}

#[test]
fn a_search_goes_on_with_what_it_began_with() {
    let (_folder, vectors) = empty(64);
    vectors
        .replace_agent_vectors(&[(id(1), Some((1, agent(1, 3, 64))))])
        .unwrap();
    let bits = allowed(&vectors, std::iter::once(id(1)));
    let (before, query) = (vectors.snapshot(), vector(1, 64));
    let found = before.find_nearest(&query, &bits).unwrap();
    vectors
        .replace_agent_vectors(&[(id(1), Some((2, agent(2, 1, 64))))])
        .unwrap();
    assert_eq!(before.find_nearest(&query, &bits).unwrap(), found);
    assert_ne!(
        vectors.snapshot().find_nearest(&query, &bits).unwrap(),
        found
    );
    vectors.replace_agent_vectors(&[(id(1), None)]).unwrap();
    assert_eq!(vectors.snapshot().find_nearest(&query, &bits).unwrap(), []);
    assert_eq!(vectors.agent_count(), 0);
    assert!(vectors.snapshot().version() > before.version());
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (folder, vectors) = empty(64);
    let other = (id(1), Some((1, agent(1, 1, 32))));
    assert!(matches!(
        vectors.replace_agent_vectors(&[other]),
        Err(VectorsError::Dimensions(32))
    ));
    assert_eq!(vectors.agent_count(), 0);
    let bits = SlotBitSet::default();
    let asked = vectors.snapshot().find_nearest(&vector(1, 32), &bits);
    assert!(matches!(asked, Err(VectorsError::Dimensions(32))));
    for dimensions in [0, MAX_DIMENSIONS + 1] {
        assert!(VectorStore::create(folder.path(), dimensions).is_err());
        assert!(AgentVectors::new(&[vec![0.1; dimensions]]).is_err());
    }
    assert!(AgentVectors::new(&[]).is_err());
    assert!(AgentVectors::new(&[vec![0.5; 4], vec![0.5; 3]]).is_err());
    assert!(AgentVectors::from_bytes(vec![0; 9], 4).is_err());
    assert!(AgentVectors::from_bytes(vec![0; 8 * 19], 4).is_err());
    let many = AgentVectors::new(&vec![vec![0.5; 4]; 40]).unwrap();
    assert_eq!(many.vector_count(), MAX_VECTORS);
}

#[test]
fn the_file_goes_with_its_vectors_and_what_is_left_over_at_the_start() {
    let (folder, vectors) = empty(8);
    let folder = folder.path().join("vectors");
    let files = || std::fs::read_dir(&folder).unwrap().count();
    vectors
        .replace_agent_vectors(&[(id(1), Some((1, agent(1, 2, 8))))])
        .unwrap();
    let held = vectors.snapshot();
    drop(vectors);
    assert_eq!(files(), 1, "a search still reads it");
    drop(held);
    assert_eq!(files(), 0);
    std::fs::write(folder.join("7.vectors"), "left over").unwrap();
    std::fs::write(folder.join("notes.txt"), "of somebody").unwrap();
    remove_leftover_vector_files(&folder).unwrap();
    assert_eq!(files(), 1);
    remove_leftover_vector_files(&folder.join("nowhere")).unwrap();
}

#[test]
fn a_file_of_which_little_is_used_is_wasteful() {
    let (_folder, vectors) = empty(MAX_DIMENSIONS);
    let large = agent(1, 17, MAX_DIMENSIONS);
    let bytes = large.as_bytes().len() as u64;
    for _ in 0..=MIN_REBUILD_WASTE / bytes {
        assert!(!vectors.needs_rebuild());
        vectors
            .replace_agent_vectors(&[(id(1), Some((1, large.clone())))])
            .unwrap();
    }
    vectors
        .replace_agent_vectors(&[(id(1), Some((2, large)))])
        .unwrap();
    assert!(vectors.needs_rebuild());
}

#[test]
fn a_million_agents_fit_into_their_memory() {
    // The words of a code of 384 numbers, and a hash table twice as large as necessary.
    let (_folder, vectors) = empty(384);
    let all: Vec<Uuid> = (0..20_000).map(id).collect();
    for some in all.chunks(777) {
        vectors.assign_slots(some.iter().copied());
    }
    let each = vectors.byte_size() / 20_000;
    assert!(
        each <= 450 - 4,
        "{each} bytes an agent, and four more for its place in the index"
    );
}
