//! `approve` on a registration covers the first card that comes in, and no card that the approver has not seen.

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{Event, NewGeneration, Registration};
use a2a_registry_core::domains::generation::domain_new_generation;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::events::list::events_after;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::ReviewState;
use time::Duration;

use super::others::{at, url};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::signer::Signer;
use crate::support::stage::{OriginAnswer, Read, card};

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
    let stage = &setup.stage;
    for comes_before in [true, false] {
        register(&stage.app, &stage.admin, &whole()).await.unwrap();
        if comes_before {
            stage
                .crawl(DOMAIN, OriginAnswer::Card(card("Travel", "Books flights")))
                .await;
            assert_eq!(stage.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
        }
        stage.advance(Duration::minutes(1));
        let sold = NewGeneration {
            reason: "sold".into(),
        };
        domain_new_generation(&stage.app, &stage.admin, DOMAIN, &sold)
            .await
            .unwrap();
        if comes_before {
            let admin = stage.admin.account.as_ref().unwrap();
            let events = events_after(&stage.app, &stage.admin, &mut 0, 1000).await;
            let opened = |event: &&Event| event.kind == EventKind::ReviewOpened;
            let opened = events.unwrap().iter().rfind(opened).cloned();
            assert_eq!(
                opened.unwrap().actor,
                admin.name,
                "who asked for the review"
            );
        }
        stage
            .crawl(
                DOMAIN,
                OriginAnswer::Card(card("Travel", "Of another owner")),
            )
            .await;
        let agent = stage.agent(DOMAIN).await;
        assert_eq!(agent.lifecycle, Lifecycle::Pending, "{comes_before}");
        assert!(stage.open_review(agent.id).await.is_some());
        stage.index_equals_database().await;
        domain_delete(&stage.app, &stage.admin, DOMAIN)
            .await
            .unwrap();
    }
}

/// A first card that it could not approve uses it up: after a person's rejection, another card is not approved.
async fn an_approval_in_advance_does_not_outlast_a_rejection(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let stage = &setup.stage;
    let signer = Signer::new("https://travel.agents-test.com/keys.json");
    let mut broken: serde_json::Value =
        serde_json::from_slice(&signer.sign(&card("Travel", "Books flights"))).unwrap();
    broken["description"] = "Says something else".into();
    register(&stage.app, &stage.admin, &whole()).await.unwrap();
    let broken = serde_json::to_vec(&broken).unwrap();
    stage
        .crawl(DOMAIN, OriginAnswer::Signed(broken, signer.found()))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    assert_eq!(stage.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    stage.reject(agent).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Travel", "Whatever comes")))
        .await;
    assert_eq!(stage.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    assert_eq!(stage.served(agent).await, None);
}

/// It covers the cards that the catalog named at the first fetch, not those it names later instead.
async fn an_approval_in_advance_does_not_follow_a_moved_entry(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let stage = &setup.stage;
    register(&stage.app, &stage.admin, &whole()).await.unwrap();
    for named in ["/a.json", "/b.json", "/b.json"] {
        stage
            .crawl_with(DOMAIN, |source| match source.kind.as_str() {
                "ard" => OriginAnswer::Catalog(vec![("one".into(), url(named))], Read::Whole),
                "entry" if source.url == url("/b.json") => {
                    OriginAnswer::Card(card("Other", "Is elsewhere"))
                }
                _ => OriginAnswer::Fails(NotFound),
            })
            .await;
    }
    assert_eq!(stage.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    stage.index_equals_database().await;
}

/// A copy that joined another agent was all that the curator saw: a card behind a later redirect is not approved.
async fn an_approval_in_advance_does_not_follow_a_redirect(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (_, own) = setup.prove_with_agent().await;
    let stage = &setup.stage;
    let same = card("Travel", "Books flights");
    register(&stage.app, &stage.admin, &with_approval(at("/copy.json")))
        .await
        .unwrap();
    stage.advance(Duration::minutes(2));
    stage.visit(|_| OriginAnswer::Card(same.clone())).await;
    let (_, joined) = setup.source_of("/copy.json").await;
    assert_eq!(joined, own);
    let evil = card("Evil", "Somewhere else");
    stage
        .crawl_with(DOMAIN, |source| {
            if source.url == url("/copy.json") {
                OriginAnswer::Redirected(evil.clone(), "https://evil.example/card.json".into())
            } else {
                OriginAnswer::Card(same.clone())
            }
        })
        .await;
    let (_, other) = setup.source_of("/copy.json").await;
    assert_ne!(other, own);
    let row = stage
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == other)
        .unwrap();
    assert_eq!(row.lifecycle, Lifecycle::Pending);
    let states: Vec<ReviewState> = stage
        .reviews(other)
        .await
        .into_iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(states, [ReviewState::Open]);
    assert!(stage.served(own).await.is_some());
    stage.index_equals_database().await;
}
