//! Pages of a semantic search: vectors are stored later than the events of their agents.

use a2a_registry_api::AgentList;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use uuid::Uuid;

use super::{ScriptedEncoder, finish, hit_ids, open, patient};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

/// Numbers of the agents that exist from the beginning.
const LATE: std::ops::Range<usize> = 1..6;

/// Publishes cards with these numbers: the higher the number, the less the card is about money; number 0 is about nothing
/// else.
async fn banks(registry: &InProcessRegistry, numbers: std::ops::Range<usize>) -> Vec<Uuid> {
    let mut banks = Vec::new();
    for number in numbers {
        let money = "money ".repeat(LATE.end - number);
        let about = if number == 0 { money } else { money + "poems" };
        let domain = format!("bank{number}.agents-test.com");
        let card = card_bytes("Bureau", &about);
        banks.push(registry.register_approved_card(&domain, &card).await.id);
    }
    registry.catch_up().await;
    banks
}

async fn page(registry: &InProcessRegistry, token: Option<&String>) -> AgentList {
    let query = SearchQuery {
        q: Some("cash".into()),
        mode: Some("semantic".into()),
        page_size: Some(2),
        page_token: token.cloned(),
        ..SearchQuery::default()
    };
    let bytes = search_agents(&registry.app, &Caller::default(), &query)
        .await
        .unwrap();
    let list: AgentList = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(list.mode, "semantic");
    list
}

/// All agents on the pages from this one on, none of which may begin again.
async fn rest(stages: &[&InProcessRegistry], first: &AgentList) -> Vec<Uuid> {
    let mut shown = hit_ids(first);
    let mut token = first.next_page_token.clone();
    for registry in stages.iter().cycle() {
        let Some(next) = token else { break };
        let list = page(registry, Some(&next)).await;
        assert_eq!(list.order, "relevance");
        shown.extend(hit_ids(&list));
        token = list.next_page_token;
    }
    shown
}

both_databases!(a_later_vector_ends_no_list);

/// A vector that is stored between two pages changes what is near, so that a hit may repeat or be missing; the list goes on
/// as a semantic one, and a new list has every agent once.
async fn a_later_vector_ends_no_list(url: &str) {
    let registry = patient(url).await;
    let late = banks(&registry, LATE).await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let [best] = banks(&registry, 0..1).await[..] else {
        panic!()
    };
    let before = page(&registry, None).await;
    assert_eq!((hit_ids(&before), before.total), (late[..2].to_vec(), 5));
    finish(&registry, &mut embedding).await;
    let after = page(&registry, None).await;
    assert_eq!((hit_ids(&after), after.total), (vec![best, late[0]], 6));
    assert!(rest(&[&registry], &before).await.starts_with(&late[..2]));
    assert_eq!(
        rest(&[&registry], &after).await,
        [vec![best], late].concat()
    );
}

/// A process continues another's list if both have the same vectors.
#[tokio::test]
async fn processes_with_the_same_vectors_share_a_semantic_list() {
    let database = Database::postgres().await;
    let here = patient(database.url()).await;
    let late = banks(&here, LATE).await;
    let encoder = ScriptedEncoder::new("shared", 0);
    let mut embedding = open(&here, &encoder).await;
    finish(&here, &mut embedding).await;
    let there = here.second_process().await;
    let mut others = open(&there, &encoder).await;
    finish(&there, &mut others).await;
    let first = page(&here, None).await;
    assert_eq!(rest(&[&there, &here], &first).await, late);
    let [best] = banks(&here, 0..1).await[..] else {
        panic!()
    };
    there.catch_up().await;
    finish(&there, &mut others).await;
    let first = page(&there, None).await;
    assert_eq!(hit_ids(&first), [best, late[0]]);
    finish(&here, &mut embedding).await;
    assert_eq!(
        rest(&[&here, &there], &first).await,
        [vec![best], late].concat()
    );
}
