//! `approve` on a registration covers the first card that comes in, and no card that the approver has not seen.

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{Event, NewGeneration, Registration};
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::ReviewState;
use time::Duration;

use super::other_accounts::{card_registration, url};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{CatalogExtent, OriginResponse, card_bytes};
use crate::support::signer::CardSigner;

fn with_approval(what: Registration) -> Registration {
    Registration {
        approve: true,
        ..what
    }
}

fn whole() -> Registration {
    with_approval(Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    })
}

both_databases!(
    an_approval_in_advance_ends_with_the_generation,
    an_approval_in_advance_does_not_outlast_a_rejection,
    an_approval_in_advance_does_not_follow_a_moved_entry,
    an_approval_in_advance_does_not_follow_a_redirect
);

/// Cards of another owner are not approved by it, whether a card came in before or not.
async fn an_approval_in_advance_ends_with_the_generation(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let registry = &setup.registry;
    for comes_before in [true, false] {
        register_domain(&registry.app, &registry.admin, &whole())
            .await
            .unwrap();
        if comes_before {
            registry
                .crawl_domain(
                    DOMAIN,
                    OriginResponse::Card(card_bytes("Travel", "Books flights")),
                )
                .await;
            assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
        }
        registry.advance(Duration::minutes(1));
        let sold = NewGeneration {
            reason: "sold".into(),
        };
        domain_new_generation(&registry.app, &registry.admin, DOMAIN, &sold)
            .await
            .unwrap();
        if comes_before {
            let admin = registry.admin.account.as_ref().unwrap();
            let events = load_events_after(
                &registry.app,
                &registry.admin,
                &EventFilter::default(),
                &mut 0,
                1000,
            )
            .await;
            let opened = |event: &&Event| event.kind == EventKind::ReviewOpened;
            let opened = events.unwrap().iter().rfind(opened).cloned();
            assert_eq!(
                opened.unwrap().actor,
                admin.name,
                "who asked for the review"
            );
        }
        registry
            .crawl_domain(
                DOMAIN,
                OriginResponse::Card(card_bytes("Travel", "Of another owner")),
            )
            .await;
        let agent = registry.agent(DOMAIN).await;
        assert_eq!(agent.lifecycle, Lifecycle::Pending, "{comes_before}");
        assert!(registry.find_open_review(agent.id).await.is_some());
        registry.assert_index_matches_database().await;
        domain_delete(&registry.app, &registry.admin, DOMAIN)
            .await
            .unwrap();
    }
}

/// A first card that it could not approve uses it up: after a person's rejection, another card is not approved.
async fn an_approval_in_advance_does_not_outlast_a_rejection(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let registry = &setup.registry;
    let signer = CardSigner::new("https://travel.agents-test.com/keys.json");
    let mut broken: serde_json::Value =
        serde_json::from_slice(&signer.sign(&card_bytes("Travel", "Books flights"))).unwrap();
    broken["description"] = "Says something else".into();
    register_domain(&registry.app, &registry.admin, &whole())
        .await
        .unwrap();
    let broken = serde_json::to_vec(&broken).unwrap();
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(broken, signer.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    registry.reject_open_review(agent).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Travel", "Whatever comes")),
        )
        .await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    assert_eq!(registry.public_card_bytes(agent).await, None);
}

/// It covers the cards that the catalog named at the first fetch, not those it names later instead.
async fn an_approval_in_advance_does_not_follow_a_moved_entry(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let registry = &setup.registry;
    register_domain(&registry.app, &registry.admin, &whole())
        .await
        .unwrap();
    for named in ["/a.json", "/b.json", "/b.json"] {
        registry
            .crawl_domain_with(DOMAIN, |source| match source.kind.as_str() {
                "ard" => OriginResponse::Catalog(
                    vec![("one".into(), url(named))],
                    CatalogExtent::Complete,
                ),
                "entry" if source.url == url("/b.json") => {
                    OriginResponse::Card(card_bytes("Other", "Is elsewhere"))
                }
                _ => OriginResponse::Failure(NotFound),
            })
            .await;
    }
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    registry.assert_index_matches_database().await;
}

/// A copy that joined another agent was all that the curator saw: a card behind a later redirect is not approved.
async fn an_approval_in_advance_does_not_follow_a_redirect(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (_, own) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    let same = card_bytes("Travel", "Books flights");
    register_domain(
        &registry.app,
        &registry.admin,
        &with_approval(card_registration("/copy.json")),
    )
    .await
    .unwrap();
    registry.advance(Duration::minutes(2));
    registry
        .run_due_visits(|_| OriginResponse::Card(same.clone()))
        .await;
    let (_, joined) = setup.source_of("/copy.json").await;
    assert_eq!(joined, own);
    let evil = card_bytes("Evil", "Somewhere else");
    registry
        .crawl_domain_with(DOMAIN, |source| {
            if source.url == url("/copy.json") {
                OriginResponse::RedirectedCard(
                    evil.clone(),
                    "https://evil.example/card.json".into(),
                )
            } else {
                OriginResponse::Card(same.clone())
            }
        })
        .await;
    let (_, other) = setup.source_of("/copy.json").await;
    assert_ne!(other, own);
    let row = registry
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == other)
        .unwrap();
    assert_eq!(row.lifecycle, Lifecycle::Pending);
    let states: Vec<ReviewState> = registry
        .review_states(other)
        .await
        .into_iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(states, [ReviewState::Open]);
    assert!(registry.public_card_bytes(own).await.is_some());
    registry.assert_index_matches_database().await;
}
