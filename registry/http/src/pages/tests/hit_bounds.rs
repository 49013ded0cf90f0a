//! Tests that the size of an agent in lists is bounded for every card.

use a2a_registry_api::{HitSkill, Summary};
use a2a_registry_api::{Interface, Provider};
use a2a_registry_core::agents::hit_limits::{MAX_SKILL_TAGS, truncate_summary};
use a2a_registry_search::{MAX_SHOWN_SKILLS, MAX_SKILLS};

use super::samples;

/// Summary of an agent with `count` items of every kind, each with `bytes` bytes.
fn summary_of(count: usize, bytes: usize) -> Summary {
    let card = br#"{"name": "A", "description": "b", "version": "1", "url": "https://a.example", "skills": []}"#;
    let card = a2a_card::parse_card(card).unwrap().card;
    let text = "é".repeat(bytes / 2);
    let texts = vec![text.clone(); count];
    let skill = HitSkill {
        id: text.clone(),
        name: text.clone(),
        description: Some(text.clone()),
        tags: texts.clone(),
    };
    let interface = Interface {
        url: format!("https://a.example/{text}"),
        binding: text.clone(),
        protocol_version: Some(text.clone()),
        tenant: None,
    };
    let mut summary = samples::summary(&card, 1);
    summary.provider = Some(Provider {
        organization: Some(text.clone()),
        url: Some(format!("https://a.example/{text}")),
    });
    summary.capabilities.extensions.clone_from(&texts);
    summary.auth.clone_from(&texts);
    summary.tags = texts;
    summary.name.clone_from(&text);
    summary.description = Some(text.clone());
    summary.version = Some(text);
    summary.interfaces = vec![interface; count];
    summary.skills = vec![skill; count];
    summary.skills_total = count as u64;
    summary
}

#[test]
fn a_hit_is_small_whatever_its_card_holds() {
    for (count, bytes) in [(1, 1_000_000), (2_000, 10), (200, 3_000), (40, 1_000)] {
        let mut hit = truncate_summary(summary_of(count, bytes));
        assert!(hit.shortened, "{count} × {bytes}");
        assert_eq!(hit.skills_total, count as u64);
        assert!(hit.skills.len() <= MAX_SKILLS);
        hit.skills.truncate(MAX_SHOWN_SKILLS);
        let size = serde_json::to_vec(&hit).unwrap().len();
        assert!(size < 80 * 1024, "{count} × {bytes}: {size} bytes");
    }
}

#[test]
fn a_usual_hit_is_whole() {
    let summary = summary_of(MAX_SHOWN_SKILLS, 100);
    assert_eq!(truncate_summary(summary.clone()), summary);
    let mut long = summary;
    long.skills[9].tags.push("one more".to_owned());
    let hit = truncate_summary(long.clone());
    assert!(hit.shortened && hit.skills[9].tags.len() == MAX_SKILL_TAGS);
    assert_eq!(hit.skills[..9], long.skills[..9]);
}
