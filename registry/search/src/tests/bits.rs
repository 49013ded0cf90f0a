//! Counts of a term within a set of documents.

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED, Term};

use super::*;
use crate::doc_bit_set::{DocBitSet, VisibleDocs};

#[test]
fn holders_equal_a_walk_over_all_postings() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(0x3b_1175);
    // Words of every frequency, some of them in runs of documents.
    let agents = (0..3_000_u64).map(|number| {
        let often = if dice.below(10) > 0 { "often" } else { "" };
        let seldom = if dice.below(300) == 0 { "seldom" } else { "" };
        let stretch = if (number / 500).is_multiple_of(2) {
            "stretch"
        } else {
            ""
        };
        agent(number, &format!("all {often} {seldom} {stretch}"))
    });
    let index = built(dir.path(), agents.collect());
    let searcher = index.compile_query(&all()).unwrap().searcher;
    let field = index.0.fields.text;
    for reader in searcher.segment_readers() {
        let inverted = reader.inverted_index(field).unwrap();
        let last = reader.max_doc();
        for set in 0..8_u32 {
            let mut bits = DocBitSet::empty(last);
            for document in 0..last {
                let chosen = match set {
                    0 => true,
                    1 => false,
                    2 => dice.below(2) == 0,
                    3 => dice.below(400) == 0,
                    4 => (document / 700).is_multiple_of(2),
                    // A single document is hidden.
                    5 => document != last / 2,
                    6 => document != 0 && document + 1 != last,
                    _ => document + 1 == last,
                };
                if chosen {
                    bits.insert(document);
                }
            }
            let seen = VisibleDocs::new(reader, Arc::new(bits.clone()));
            assert_eq!(seen.len(), bits.len());
            for word in ["all", "often", "seldom", "stretch"] {
                let term = Term::from_field_text(field, word);
                let Some(info) = inverted.get_term_info(&term).unwrap() else {
                    continue;
                };
                let postings = || {
                    let read = IndexRecordOption::Basic;
                    inverted.read_postings_from_terminfo(&info, read).unwrap()
                };
                let mut walk = postings();
                let mut expected = Vec::new();
                while walk.doc() != TERMINATED {
                    if bits.contains(walk.doc()) {
                        expected.push(walk.doc());
                    }
                    walk.advance();
                }
                let among: Vec<_> = bits.intersect_postings(postings()).collect();
                assert_eq!(among, expected, "{word} {set}");
                let count = u32::try_from(expected.len()).unwrap();
                for enough in [1, 2, 50, u32::MAX] {
                    let holders = seen.count_term_docs(&inverted, &info, enough).unwrap();
                    assert_eq!(holders, count.min(enough), "{word} {set} {enough}");
                }
            }
        }
    }
}

#[test]
fn living_documents_are_those_that_are_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(
        dir.path(),
        (0..200).map(|number| agent(number, "Agent")).collect(),
    );
    let deleted: Vec<Uuid> = [0, 63, 64, 65, 127, 199].map(id).to_vec();
    index.apply_changes(Vec::new(), &deleted, 2).unwrap();
    let searcher = index.compile_query(&all()).unwrap().searcher;
    let mut living = 0;
    for reader in searcher.segment_readers() {
        let bits = DocBitSet::alive(reader);
        let expected: Vec<u32> = reader.doc_ids_alive().collect();
        assert_eq!(bits.iter().collect::<Vec<_>>(), expected);
        living += bits.len();
    }
    assert_eq!(living, 194);
}
