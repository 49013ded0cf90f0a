//! Withdrawal of a registration, which ends only the sources that belong to no other account
//! (docs/publish/register.md#withdraw-a-registration).

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{Act, Transfer};
use a2a_registry_core::agents::lifecycle_actions::agent_retire;
use a2a_registry_core::domains::owner_actions::domain_transfer;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::{domain_delete, source_withdraw};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_store::entity::source;
use time::Duration;
use uuid::Uuid;

use super::other_accounts::{card_registration, url};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{CatalogExtent, OriginResponse, card_bytes};

/// A site with a card at every path, a broken one at the well-known path, and a catalog that names these paths.
fn site(source: &source::Model, named: &[&str]) -> OriginResponse {
    match source.kind.as_str() {
        "ard" => {
            let entries = named.iter().map(|path| ((*path).to_owned(), url(path)));
            OriginResponse::Catalog(entries.collect(), CatalogExtent::Complete)
        }
        "ai_catalog" => OriginResponse::Failure(NotFound),
        "well_known" => OriginResponse::Card(br#"{"name": "Broken", "skills": []}"#.to_vec()),
        _ => OriginResponse::Card(card_bytes(&source.url, "Is there")),
    }
}

impl OwnershipSetup {
    /// Visits such a site until the cards of its catalog have come in.
    async fn visit_site(&self, named: &[&str]) {
        for _ in 0..3 {
            self.registry.advance(Duration::minutes(2));
            self.registry
                .run_due_visits(|source| site(source, named))
                .await;
        }
    }

    async fn id_of(&self, kind: &str) -> String {
        let view = self.domain_view(&self.registry.admin).await;
        let source = view
            .sources
            .into_iter()
            .find(|one| one.kind.as_str() == kind);
        source.unwrap().id
    }

    async fn lifecycle(&self, agent: Uuid) -> String {
        let all = self.registry.agents().await;
        let row = all.into_iter().find(|row| row.id == agent).unwrap();
        row.lifecycle.as_str().to_owned()
    }

    /// Every source, with the lifecycle of its agent.
    async fn sources_with_lifecycles(&self) -> Vec<(String, Option<String>)> {
        let view = self.domain_view(&self.registry.admin).await;
        let mut all = Vec::new();
        for source in view.sources {
            let lifecycle = match source.agent {
                Some(agent) => Some(self.lifecycle(agent).await),
                None => None,
            };
            all.push((source.kind.to_string(), lifecycle));
        }
        all
    }
}

both_databases!(
    a_stranger_cannot_end_the_owners_sources,
    sources_in_the_owners_catalog_are_the_owners,
    a_former_owner_cannot_end_the_new_owners_sources,
    the_entries_of_a_catalog_end_with_it,
    a_source_that_a_catalog_names_keeps_its_registrant,
    a_withdrawn_card_can_be_named_by_a_catalog,
    an_unchanged_catalog_names_a_withdrawn_card_again,
    a_withdrawn_registration_gives_no_rights
);

/// A stranger registered the domain, and its owner only a card: the stranger cannot end sources that the domain's proof
/// covers.
async fn a_stranger_cannot_end_the_owners_sources(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [stranger, owner] = [
        setup.create_publisher("stranger").await,
        setup.create_publisher("owner").await,
    ];
    let app = &setup.registry.app;
    setup.register(&stranger, DOMAIN).await;
    let view = register_domain(app, &owner, &card_registration("/own.json"))
        .await
        .unwrap();
    setup.visit_site(&["/a.json"]).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let before = setup.sources_with_lifecycles().await;
    let is = |kind: &str, lifecycle: &str| (kind.to_owned(), Some(lifecycle.to_owned()));
    for fed in [
        is("entry", "approved"),
        is("url", "approved"),
        is("well_known", "pending"),
    ] {
        assert!(before.contains(&fed), "{before:?}");
    }
    for kind in ["ard", "ai_catalog", "well_known"] {
        source_withdraw(app, &stranger, DOMAIN, &setup.id_of(kind).await)
            .await
            .unwrap();
    }
    assert_eq!(setup.sources_with_lifecycles().await, before);
    let view = setup.domain_view(&owner).await;
    assert!(
        view.sources
            .iter()
            .all(|one| one.own || one.kind.as_str() == "entry"),
        "{view:#?}"
    );
    let view = setup.domain_view(&stranger).await;
    assert!(view.sources.iter().all(|one| !one.own), "{view:#?}");
    setup.registry.assert_index_matches_database().await;
}

/// A source that a stranger registered and the owner's catalog names is the owner's as long as the catalog names it.
async fn sources_in_the_owners_catalog_are_the_owners(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [stranger, owner] = [
        setup.create_publisher("stranger").await,
        setup.create_publisher("owner").await,
    ];
    let app = &setup.registry.app;
    let view = setup.register(&owner, DOMAIN).await;
    register_domain(app, &stranger, &card_registration("/a.json"))
        .await
        .unwrap();
    setup.visit_site(&["/a.json"]).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let (id, agent) = setup.source_of("/a.json").await;
    assert_eq!(setup.lifecycle(agent).await, "approved");
    source_withdraw(app, &stranger, DOMAIN, &id).await.unwrap();
    assert_eq!(setup.source_of("/a.json").await, (id, agent));
    assert_eq!(setup.lifecycle(agent).await, "approved");
    setup
        .registry
        .crawl_domain_with(DOMAIN, |source| site(source, &[]))
        .await;
    assert_eq!(setup.lifecycle(agent).await, "pending");
    setup.registry.assert_index_matches_database().await;
}

/// A former owner withdraws its own registration, and ends nothing of the new owner's, proved or not yet.
async fn a_former_owner_cannot_end_the_new_owners_sources(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (former, agent) = setup.prove_with_agent().await;
    let heir = setup.create_publisher("heir").await;
    let app = &setup.registry.app;
    let to = Transfer {
        account: "heir".into(),
    };
    domain_transfer(app, &former, DOMAIN, &to).await.unwrap();
    let before = setup.sources_with_lifecycles().await;
    source_withdraw(app, &former, DOMAIN, &setup.id_of("ard").await)
        .await
        .unwrap();
    setup.place_standing_record(&setup.domain_view(&heir).await);
    setup.verify(&heir).await.unwrap();
    for kind in ["ai_catalog", "well_known"] {
        source_withdraw(app, &former, DOMAIN, &setup.id_of(kind).await)
            .await
            .unwrap();
    }
    assert_eq!(setup.sources_with_lifecycles().await, before);
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    setup.registry.assert_index_matches_database().await;
}

/// A catalog's entries belong to the owner of the catalog: they end with it, and while one of them is approved the
/// catalog stays.
async fn the_entries_of_a_catalog_end_with_it(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let first = setup.create_publisher("first").await;
    setup.register(&first, DOMAIN).await;
    setup.visit_site(&["/a.json", "/b.json"]).await;
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    let (_, approved) = setup.source_of("/a.json").await;
    let (_, pending) = setup.source_of("/b.json").await;
    setup.registry.approve_open_review(approved).await;
    let catalog = setup.id_of("ard").await;
    let kept = source_withdraw(app, &first, DOMAIN, &catalog)
        .await
        .unwrap_err();
    assert_eq!(kept.kind, ErrorKind::Conflict);
    assert!(kept.public.contains(&approved.to_string()), "{kept:?}");
    let over = Act {
        reason: "over".into(),
        hold: None,
    };
    agent_retire(app, admin, &approved.to_string(), &over)
        .await
        .unwrap();
    source_withdraw(app, &first, DOMAIN, &catalog)
        .await
        .unwrap();
    assert_eq!(setup.lifecycle(pending).await, "retired");
    let view = setup.domain_view(admin).await;
    assert!(
        view.sources
            .iter()
            .all(|one| one.kind.as_str() != "entry" && one.kind.as_str() != "ard"),
        "{view:#?}"
    );
    setup.registry.assert_index_matches_database().await;
}

/// A source that another account registered stays that account's when a catalog names it: it does not end with the
/// catalog.
async fn a_source_that_a_catalog_names_keeps_its_registrant(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [first, second] = [
        setup.create_publisher("first").await,
        setup.create_publisher("second").await,
    ];
    let app = &setup.registry.app;
    setup.register(&first, DOMAIN).await;
    register_domain(app, &second, &card_registration("/b.json"))
        .await
        .unwrap();
    setup.visit_site(&["/a.json", "/b.json"]).await;
    let (_, of_first) = setup.source_of("/a.json").await;
    let (_, of_second) = setup.source_of("/b.json").await;
    setup.registry.approve_open_review(of_second).await;
    let refused = domain_delete(app, &first, DOMAIN).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_eq!(setup.lifecycle(of_second).await, "approved");
    for kind in ["ard", "ai_catalog", "well_known"] {
        source_withdraw(app, &first, DOMAIN, &setup.id_of(kind).await)
            .await
            .unwrap();
    }
    assert_eq!(setup.lifecycle(of_first).await, "retired");
    assert_eq!(setup.lifecycle(of_second).await, "approved");
    setup.registry.assert_index_matches_database().await;
}

/// A withdrawn registration does not keep the domain's catalog from naming the same card.
async fn a_withdrawn_card_can_be_named_by_a_catalog(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [stranger, owner] = [
        setup.create_publisher("stranger").await,
        setup.create_publisher("owner").await,
    ];
    let app = &setup.registry.app;
    register_domain(app, &stranger, &card_registration("/a.json"))
        .await
        .unwrap();
    setup.visit_site(&[]).await;
    let (id, before) = setup.source_of("/a.json").await;
    source_withdraw(app, &stranger, DOMAIN, &id).await.unwrap();
    assert_eq!(setup.lifecycle(before).await, "retired");
    setup.register(&owner, DOMAIN).await;
    setup.visit_site(&["/a.json"]).await;
    let (_, now) = setup.source_of("/a.json").await;
    assert_ne!(now, before);
    assert_eq!(setup.lifecycle(now).await, "pending");
    setup.registry.assert_index_matches_database().await;
}

/// An unchanged catalog names a card again after its registration was withdrawn.
async fn an_unchanged_catalog_names_a_withdrawn_card_again(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [stranger, owner] = [
        setup.create_publisher("stranger").await,
        setup.create_publisher("owner").await,
    ];
    let app = &setup.registry.app;
    setup.register(&owner, DOMAIN).await;
    register_domain(app, &stranger, &card_registration("/a.json"))
        .await
        .unwrap();
    setup.visit_site(&["/a.json"]).await;
    let (id, before) = setup.source_of("/a.json").await;
    source_withdraw(app, &stranger, DOMAIN, &id).await.unwrap();
    for _ in 0..2 {
        setup
            .registry
            .crawl_conditionally(DOMAIN, |source| match source.kind.as_str() {
                "ard" if !source.full_wanted => OriginResponse::NotModified,
                _ => site(source, &["/a.json"]),
            })
            .await;
    }
    let (again, now) = setup.source_of("/a.json").await;
    assert!(again != id && now != before);
    assert_eq!(setup.lifecycle(now).await, "pending");
    setup.registry.assert_index_matches_database().await;
}

/// An account that withdraws a shared registration no longer sees the agent, and is no longer its submitter.
async fn a_withdrawn_registration_gives_no_rights(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [first, second] = setup.register_two_accounts().await;
    let (app, registry) = (&setup.registry.app, &setup.registry);
    let (id, agent) = setup.source_of("/first.json").await;
    register_domain(app, &second, &card_registration("/first.json"))
        .await
        .unwrap();
    source_withdraw(app, &first, DOMAIN, &id).await.unwrap();
    assert!(setup.is_invisible(&first, agent).await);
    assert!(
        setup.is_invisible(&second, agent).await,
        "the account did not register the domain first"
    );
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes(&url("/first.json"), "Has changed")),
        )
        .await;
    let review = registry.find_open_review(agent).await.unwrap();
    assert_eq!(review.submitter.as_deref(), Some("second"));
    registry.assert_index_matches_database().await;
}
