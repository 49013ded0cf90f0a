//! The members of search hits: a few by default, and any by its name, on both engines.

use std::collections::BTreeSet;

use a2a_registry_api::HitFields;
use a2a_registry_api::search_query::{LookupQuery, SearchQuery};
use a2a_registry_core::search::{lookup_agents, search_agents};
use a2a_registry_core::visibility::caller::Caller;
use serde_json::{Value, json};

use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse};

both_databases!(a_search_shows_what_is_named, pages_go_on_whatever_they_show);

/// Agents.
const AGENTS: usize = 10;
/// Bytes of a page of ten usual agents, at most.
const PAGE_BYTES: usize = 12 * 1024;

/// A card of usual size: a paragraph about the agent, and one or two lines about each of four skills.
fn usual_card(number: &str) -> Vec<u8> {
    let mut card: Value =
        serde_json::from_str(&card_json(&format!("Zebra {number}"), "riding")).unwrap();
    card["description"] = json!("Some words about zebras and what they do. ".repeat(6));
    let skills = ["ride", "feed", "groom", "paint"].map(|name| {
        json!({
            "id": format!("{name}-zebras"), "name": format!("To {name} zebras"),
            "description": "Words about the skill and how it is used. ".repeat(3),
            "tags": [name, "zebras", "animals"], "examples": ["please"],
        })
    });
    card["skills"] = json!(skills);
    card.to_string().into_bytes()
}

async fn stage_with_agents(url: &str) -> InProcessRegistry {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    for number in 0..AGENTS {
        registry
            .register_domain(&format!("d{number}.agents-test.com"))
            .await;
    }
    let made = registry
        .run_due_visits(|source| {
            let host = source.url.trim_start_matches("https://d");
            OriginResponse::Card(usual_card(host.split('.').next().unwrap()))
        })
        .await;
    assert_eq!(made, AGENTS);
    registry.catch_up().await;
    registry
}

/// A page of a search for all of them, with its bytes.
async fn search_page(
    registry: &InProcessRegistry,
    fields: &[&str],
    explain: Option<bool>,
) -> (Value, usize) {
    let query = SearchQuery {
        q: Some("zebras".to_owned()),
        page_size: Some(10),
        fields: fields.iter().map(|name| (*name).to_owned()).collect(),
        explain,
        ..SearchQuery::default()
    };
    let bytes = search_agents(&registry.app, &Caller::default(), &query)
        .await
        .unwrap();
    let page: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(page["agents"].as_array().unwrap().len(), AGENTS, "{page}");
    (page, bytes.len())
}

fn members(value: &Value) -> BTreeSet<&str> {
    let members = value.as_object().unwrap();
    members.keys().map(String::as_str).collect()
}

async fn a_search_shows_what_is_named(url: &str) {
    let registry = stage_with_agents(url).await;
    let (usual, bytes) = search_page(&registry, &[], None).await;
    assert!(bytes <= PAGE_BYTES, "{bytes} bytes");
    let hit = &usual["agents"][0];
    // None of them is deprecated, and none is a duplicate of another.
    let absent = ["deprecation", "duplicates"];
    let expected = HitFields::default_names().filter(|name| !absent.contains(name));
    assert_eq!(members(hit), expected.collect(), "{hit}");
    assert_eq!(members(&hit["skills"][0]), BTreeSet::from(["id", "name"]));
    assert_eq!(hit["matched_skills"].as_array().unwrap().len(), 4);

    let all: Vec<&str> = HitFields::all_names().collect();
    let (whole, _) = search_page(&registry, &all, None).await;
    let whole = &whole["agents"][0];
    for name in HitFields::all_names() {
        let (found, _) = search_page(&registry, &[name], None).await;
        let found = &found["agents"][0];
        let (member, inner) = name.split_once('.').unwrap_or((name, ""));
        let mut expected = BTreeSet::from(["id"]);
        expected.extend(Some(member).filter(|name| !absent.contains(name)));
        assert_eq!(members(found), expected, "{name}");
        match (member, inner) {
            ("skills", inner) => {
                let mut expected = BTreeSet::from(["id", "name"]);
                expected.extend(Some(inner).filter(|inner| !inner.is_empty()));
                assert_eq!(members(&found["skills"][3]), expected, "{name}");
            }
            ("explain", "summary") => {
                assert_eq!(members(&found["explain"]), BTreeSet::from(["summary"]));
                let sentences = found["explain"]["summary"].as_array().unwrap();
                assert!(!sentences.is_empty(), "{found}");
            }
            (member, _) => assert_eq!(found[member], whole[member], "{name}"),
        }
    }
    assert!(
        !whole["highlights"].as_array().unwrap().is_empty(),
        "{whole}"
    );

    // An explanation is beside what is named.
    let (found, _) = search_page(&registry, &["name"], Some(true)).await;
    let found = &found["agents"][0];
    assert_eq!(members(found), BTreeSet::from(["explain", "id", "name"]));
    assert!(found["explain"]["value"].is_number(), "{found}");

    // A look-up shows everything.
    let query = LookupQuery {
        url: Some("d1.agents-test.com".into()),
        ..LookupQuery::default()
    };
    let found = lookup_agents(&registry.app, &Caller::default(), &query)
        .await
        .unwrap();
    let summary = &found.agents[0].summary;
    assert!(summary.links.card.ends_with("/card") && summary.card_digest.starts_with("sha256:"));
    assert_eq!(summary.skills[0].tags, ["ride", "zebras", "animals"]);
}

/// A token belongs to the search and not to what is shown of it.
async fn pages_go_on_whatever_they_show(url: &str) {
    let registry = stage_with_agents(url).await;
    let mut found = Vec::new();
    let mut token = None;
    for fields in [&["name"][..], &[], &["links", "highlights"], &["urn"]] {
        let query = SearchQuery {
            q: Some("zebras".to_owned()),
            page_size: Some(3),
            fields: fields.iter().map(|name| (*name).to_owned()).collect(),
            page_token: token,
            ..SearchQuery::default()
        };
        let bytes = search_agents(&registry.app, &Caller::default(), &query)
            .await
            .unwrap();
        let page: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(page["order"], "relevance");
        let hits = page["agents"].as_array().unwrap().iter();
        found.extend(hits.map(|hit| hit["id"].as_str().unwrap().to_owned()));
        token = page["next_page_token"].as_str().map(str::to_owned);
    }
    assert_eq!((found.len(), token), (AGENTS, None));
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!(distinct.len(), AGENTS);
}
