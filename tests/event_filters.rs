//! Filters of events, on both databases: lists, in pages and from either end, and streams show the same events.

use a2a_registry_api::{CollectionContent, Event, NewSavedSearch};
use a2a_registry_core::collections::actions::collection_create;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::{EventListQuery, event_list, load_events_after};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_domain::event::EventKind;
use a2a_registry_http::saved_searches::saved_search_put;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

both_databases!(lists_and_streams_show_the_same_events);

const FIRST: &str = "first.agents-test.com";
const SECOND: &str = "second.agents-test.com";

async fn listed(registry: &InProcessRegistry, wanted: &EventListQuery) -> Vec<Event> {
    let mut page = PageRequest {
        page_size: Some(2),
        page_token: None,
    };
    let mut events = Vec::new();
    loop {
        let list = event_list(&registry.app, &registry.admin, wanted, &page).await;
        let list = list.unwrap();
        events.extend(list.events);
        page.page_token = list.next_page_token;
        if page.page_token.is_none() {
            return events;
        }
    }
}

/// Kinds and subjects of the events that the filter selects, oldest first.
async fn found(registry: &InProcessRegistry, filter: EventFilter) -> Vec<(String, String)> {
    let (mut streamed, mut position) = (Vec::new(), 0);
    loop {
        let (app, admin) = (&registry.app, &registry.admin);
        let next = load_events_after(app, admin, &filter, &mut position, 2).await;
        let next = next.unwrap();
        if next.is_empty() {
            break;
        }
        streamed.extend(next);
    }
    let mut wanted = EventListQuery {
        filter,
        ..EventListQuery::default()
    };
    assert_eq!(listed(registry, &wanted).await, streamed);
    wanted.newest_first = true;
    let mut backwards = listed(registry, &wanted).await;
    backwards.reverse();
    assert_eq!(backwards, streamed);
    let shown = streamed.into_iter();
    shown
        .map(|event| (event.kind.to_string(), event.subject))
        .collect()
}

fn of_agents(agents: &[Uuid]) -> EventFilter {
    EventFilter {
        agents: agents.iter().map(Uuid::to_string).collect(),
        ..EventFilter::default()
    }
}

async fn lists_and_streams_show_the_same_events(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let card = card_bytes("First", "Books seats on night trains.");
    let first = registry.register_approved_card(FIRST, &card).await.id;
    let card = card_bytes("Second", "Waters plants.");
    let second = registry.register_approved_card(SECOND, &card).await.id;
    registry.catch_up().await;

    let of_first = found(&registry, of_agents(&[first])).await;
    let kinds: Vec<&str> = of_first.iter().map(|(kind, _)| kind.as_str()).collect();
    for kind in [
        "agent.discovered",
        "review.opened",
        "agent.approved",
        "review.closed",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let of_second = found(&registry, of_agents(&[second])).await;
    let of_both = found(&registry, of_agents(&[first, second])).await;
    assert_eq!(of_both.len(), of_first.len() + of_second.len());
    let of_nobody = found(&registry, of_agents(&[Uuid::nil()])).await;
    assert!(of_nobody.is_empty(), "{of_nobody:?}");

    let of_domain = EventFilter {
        domains: vec![FIRST.to_uppercase()],
        ..EventFilter::default()
    };
    let of_domain = found(&registry, of_domain).await;
    let registered = ("domain.registered".to_owned(), FIRST.to_owned());
    assert!(of_domain.contains(&registered), "{of_domain:?}");
    assert!(of_first.iter().all(|event| of_domain.contains(event)));
    assert!(!of_second.iter().any(|event| of_domain.contains(event)));

    let saved = NewSavedSearch {
        name: "trains".into(),
        query: "q=night+trains&tag=tests".into(),
    };
    let saved = saved_search_put(&registry.app, &registry.admin, &saved).await;
    let of_search = EventFilter {
        search: Some(saved.unwrap().id),
        ..EventFilter::default()
    };
    assert_eq!(found(&registry, of_search.clone()).await, of_first);
    let content = CollectionContent {
        filter: format!("domain:{SECOND}"),
        ..CollectionContent::default()
    };
    collection_create(&registry.app, &registry.admin, "plants", &content)
        .await
        .unwrap();
    let of_collection = EventFilter {
        collections: vec!["plants".into()],
        ..EventFilter::default()
    };
    assert_eq!(found(&registry, of_collection.clone()).await, of_second);
    let of_neither = EventFilter {
        search: of_search.search,
        ..of_collection.clone()
    };
    let of_neither = found(&registry, of_neither).await;
    assert!(of_neither.is_empty(), "{of_neither:?}");
    let openings = EventFilter {
        kinds: vec![EventKind::ReviewOpened],
        ..of_collection
    };
    assert_eq!(found(&registry, openings).await.len(), 1);
}
