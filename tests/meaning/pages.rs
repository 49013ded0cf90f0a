//! Pages of a semantic list: vectors are stored later than the events of their agents.

use a2a_registry_api::AgentList;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::search;
use a2a_registry_core::visibility::caller::Caller;
use uuid::Uuid;

use super::{Scripted, finish, ids, open, patient};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::stage::{Stage, card};

/// Numbers of the agents that exist from the beginning.
const LATE: std::ops::Range<usize> = 1..6;

/// Publishes cards with these numbers: the higher the number, the less the card is about money; number 0 is about nothing
/// else.
async fn banks(stage: &Stage, numbers: std::ops::Range<usize>) -> Vec<Uuid> {
    let mut banks = Vec::new();
    for number in numbers {
        let money = "money ".repeat(LATE.end - number);
        let about = if number == 0 { money } else { money + "poems" };
        let domain = format!("bank{number}.agents-test.com");
        let card = card("Bureau", &about);
        banks.push(stage.publish_approved(&domain, &card).await.id);
    }
    stage.settle().await;
    banks
}

async fn page(stage: &Stage, token: Option<&String>) -> AgentList {
    let query = SearchQuery {
        q: Some("cash".into()),
        mode: Some("semantic".into()),
        page_size: Some(2),
        page_token: token.cloned(),
        ..SearchQuery::default()
    };
    let bytes = search(&stage.app, &Caller::default(), &query)
        .await
        .unwrap();
    let list: AgentList = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(list.mode, "semantic");
    list
}

/// All agents on the pages from this one on, none of which may begin again.
async fn rest(stages: &[&Stage], first: &AgentList) -> Vec<Uuid> {
    let mut shown = ids(first);
    let mut token = first.next_page_token.clone();
    for stage in stages.iter().cycle() {
        let Some(next) = token else { break };
        let list = page(stage, Some(&next)).await;
        assert_eq!(list.order, "relevance");
        shown.extend(ids(&list));
        token = list.next_page_token;
    }
    shown
}

both_databases!(a_later_vector_ends_no_list);

/// A vector that is stored between two pages changes what is near, so that a hit may repeat or be missing; the list goes on
/// as a semantic one, and a new list has every agent once.
async fn a_later_vector_ends_no_list(url: &str) {
    let stage = patient(url).await;
    let late = banks(&stage, LATE).await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    let [best] = banks(&stage, 0..1).await[..] else {
        panic!()
    };
    let before = page(&stage, None).await;
    assert_eq!((ids(&before), before.total), (late[..2].to_vec(), 5));
    finish(&stage, &mut embedding).await;
    let after = page(&stage, None).await;
    assert_eq!((ids(&after), after.total), (vec![best, late[0]], 6));
    assert!(rest(&[&stage], &before).await.starts_with(&late[..2]));
    assert_eq!(rest(&[&stage], &after).await, [vec![best], late].concat());
}

/// A process continues another's list if both have the same vectors.
#[tokio::test]
async fn processes_with_the_same_vectors_share_a_semantic_list() {
    let database = Database::postgres().await;
    let here = patient(database.url()).await;
    let late = banks(&here, LATE).await;
    let encoder = Scripted::new("shared", 0);
    let mut embedding = open(&here, &encoder).await;
    finish(&here, &mut embedding).await;
    let there = here.beside().await;
    let mut others = open(&there, &encoder).await;
    finish(&there, &mut others).await;
    let first = page(&here, None).await;
    assert_eq!(rest(&[&there, &here], &first).await, late);
    let [best] = banks(&here, 0..1).await[..] else {
        panic!()
    };
    there.settle().await;
    finish(&there, &mut others).await;
    let first = page(&there, None).await;
    assert_eq!(ids(&first), [best, late[0]]);
    finish(&here, &mut embedding).await;
    assert_eq!(
        rest(&[&here, &there], &first).await,
        [vec![best], late].concat()
    );
}
