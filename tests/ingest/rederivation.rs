//! Derives data of an older build again (docs/develop/architecture.md#invariants).

use a2a_registry_core::config::Config;
use a2a_registry_core::crawl::derivation::rederive_version_page;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::Executor as _;
use a2a_registry_store::decisions::decisions_by_agent;
use a2a_registry_store::entity::version;
use a2a_registry_store::versions::{body_by_digest, versions_below_derivation};
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _};

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

async fn derived(registry: &InProcessRegistry) -> usize {
    registry.catch_up().await;
    let events = load_events_after(
        &registry.app,
        &registry.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    events
        .iter()
        .filter(|event| event.kind == EventKind::AgentDerived)
        .count()
}

pub async fn age(registry: &InProcessRegistry, change: version::ActiveModel) {
    let write = registry.store.begin_write().await.unwrap();
    version::Entity::update_many()
        .set(version::ActiveModel {
            derivation: Set(-1),
            ..change
        })
        .filter(version::Column::Derivation.gte(0))
        .exec(write.connection())
        .await
        .unwrap();
    write.commit().await.unwrap();
}

both_databases!(
    old_rows_are_derived_again,
    a_waiting_card_is_decided_on_its_new_derivation,
    a_decision_keeps_its_content,
    a_decision_during_derivation_stands
);

/// Old rows are derived again from the same bytes: no new version, and an event only if the result differs.
async fn old_rows_are_derived_again(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Derived", "Again");
    let agent = registry
        .register_approved_card("derived.agents-test.com", &bytes)
        .await;
    let fresh = registry.versions(agent.id).await;
    assert_eq!(
        rederive_version_page(&registry.app).await.unwrap(),
        0,
        "no version is of an older build"
    );

    age(&registry, version::ActiveModel::default()).await;
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 1);
    assert_eq!(derived(&registry).await, 0, "the result is the same");
    assert_eq!(registry.versions(agent.id).await, fresh);

    for change in [
        version::ActiveModel {
            findings: Set("[]".into()),
            has_error: Set(true),
            ..Default::default()
        },
        version::ActiveModel {
            model: Set(fresh[0].model.replace("Derived", "Misread")),
            ..Default::default()
        },
        version::ActiveModel {
            signature: Set(SignatureState::Unknown.into()),
            ..Default::default()
        },
        version::ActiveModel {
            content_digest: Set("sha256:old".into()),
            ..Default::default()
        },
    ] {
        let before = derived(&registry).await;
        age(&registry, change).await;
        assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 1);
        assert_eq!(derived(&registry).await, before + 1);
        assert_eq!(registry.versions(agent.id).await, fresh);
        registry.assert_index_matches_database().await;
    }
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );
    assert_eq!(
        body_by_digest(&registry.store, &fresh[0].digest)
            .await
            .unwrap(),
        Some(bytes)
    );
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 0);
}

/// A waiting card is put before the rules again once it is read without errors.
async fn a_waiting_card_is_decided_on_its_new_derivation(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Derived", "Later allowed");
    let agent = registry
        .register_with_card("derived.agents-test.com", &bytes)
        .await;
    age(
        &registry,
        version::ActiveModel {
            has_error: Set(true),
            ..Default::default()
        },
    )
    .await;
    let allow = |config: &mut Config| {
        config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())];
    };
    let registry = registry.restart(allow).await;
    assert_eq!(
        registry.public_card_bytes(agent.id).await,
        None,
        "its derivation has an error"
    );
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 1);
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(bytes));
    assert_eq!(registry.find_open_review(agent.id).await, None);
    registry.assert_index_matches_database().await;
}

/// A decision moves with its bytes to the digest that the new parser computes.
async fn a_decision_keeps_its_content(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Derived", "Decided on");
    let agent = registry
        .register_approved_card("derived.agents-test.com", &bytes)
        .await;
    let fresh = registry.versions(agent.id).await.remove(0);
    age(
        &registry,
        version::ActiveModel {
            content_digest: Set("sha256:old".into()),
            ..Default::default()
        },
    )
    .await;
    let write = registry.store.begin_write().await.unwrap();
    write
        .update_decision_digests(fresh.id, "sha256:old", "old")
        .await
        .unwrap();
    write.commit().await.unwrap();
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 1);
    let made = decisions_by_agent(&registry.store, &[agent.id])
        .await
        .unwrap();
    assert!(!made.is_empty());
    for decision in made {
        assert_eq!(
            (&decision.content_digest, &decision.signing),
            (&fresh.content_digest, &fresh.signing)
        );
    }
}

/// A decision made between reading an old row and writing its new derivation is kept.
async fn a_decision_during_derivation_stands(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_with_card(
            "derived.agents-test.com",
            &card_bytes("Derived", "Meanwhile"),
        )
        .await;
    age(&registry, version::ActiveModel::default()).await;
    let old = versions_below_derivation(&registry.store, 0, 10)
        .await
        .unwrap();
    registry.approve_open_review(agent.id).await;
    let write = registry.store.begin_write().await.unwrap();
    for row in old {
        write
            .update_derived_version_columns(version::Model {
                derivation: 7,
                ..row
            })
            .await
            .unwrap();
    }
    write.commit().await.unwrap();
    let row = registry.versions(agent.id).await.remove(0);
    assert_eq!(row.derivation, 7);
    assert_eq!(row.state, VersionState::Approved);
    assert!(row.ever_approved);
}
