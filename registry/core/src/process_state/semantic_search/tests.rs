//! Tests of the texts of an agent that are encoded.

use a2a_registry_domain::facet::{Facet, FacetMap};
use a2a_registry_search::vectors::MAX_VECTORS;
use a2a_registry_search::{AgentDocument, SkillText};

use crate::embeddings::embedded_texts::{embedding_texts, text_digest};

fn skill(name: &str) -> SkillText {
    SkillText {
        name: name.into(),
        description: "Books a seat.".into(),
        tags: vec!["travel".into(), "air".into()],
        examples: vec!["Two to Tokyo?".into(), "  ".into()],
        ..SkillText::default()
    }
}

#[test]
fn a_whole_card_its_description_and_each_of_its_first_skills_are_texts() {
    let document = AgentDocument {
        name: "Wings".into(),
        description: "Flies people".into(),
        facets: FacetMap::from([(Facet::Tag, vec!["air".into(), "travel".into()])]),
        other_texts: vec!["Mind the quorum".into()],
        skills: (0..30)
            .map(|number| skill(&format!("Skill {number}")))
            .collect(),
        ..AgentDocument::default()
    };
    let texts = embedding_texts(&document);
    assert_eq!(texts.len(), MAX_VECTORS);
    assert!(
        texts[0].starts_with("Wings. Flies people. Skill 0. Books a seat. Two to Tokyo? Skill 1.")
            && texts[0].ends_with("Two to Tokyo? air, travel. Mind the quorum"),
        "{}",
        texts[0]
    );
    assert_eq!(texts[1], "Wings. Flies people");
    assert_eq!(texts[2], "Skill 0. Books a seat. travel, air");
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let document = AgentDocument {
        description: "ä".repeat(20_000),
        ..AgentDocument::default()
    };
    let texts = embedding_texts(&document);
    assert_eq!(texts[0].chars().count(), 8_000);
}

#[test]
fn other_texts_have_another_digest() {
    let of = |texts: &[&str]| {
        text_digest(
            &texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    let others = [
        of(&["a", "bc"]),
        of(&["abc"]),
        of(&["ab", "c", ""]),
        of(&[]),
    ];
    assert!(!others.contains(&of(&["ab", "c"])));
    assert_eq!(of(&["ab", "c"]).len(), "2-".len() + 64);
}
