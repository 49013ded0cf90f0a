//! Followers: domains whose sources redirect to another domain; that domain's state decides on them, also under
//! concurrent changes.

use std::sync::Arc;

use a2a_registry_api::{DomainPatch, NewGeneration, Transfer};
use a2a_registry_core::domains::enrolled_keys::key_enrol;
use a2a_registry_core::domains::owner_actions::{domain_patch, domain_transfer};
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_store::entity::version_source;
use a2a_registry_store::{Store, WriteTransaction, domains};
use serde_json::json;
use time::Duration;

use super::{DOMAIN, OwnershipSetup};
use crate::support::database::{Database, wait_for_lock_waiter};
use crate::support::in_process_registry::{OriginResponse, card_bytes};

const OTHER: &str = "other.agents-test.com";

/// Runs `doing` while `held` locks a domain; once `doing` waits for the lock, releases it and awaits `doing`.
async fn once_free<T>(store: &Store, held: WriteTransaction, doing: impl Future<Output = T>) -> T {
    let mut doing = std::pin::pin!(doing);
    tokio::select! {
        biased;
        _ = &mut doing => panic!("the act ended without waiting for the domain's lock"),
        () = wait_for_lock_waiter(store) => {}
    }
    held.commit().await.unwrap();
    doing.await
}

/// A write that holds a domain's lock and has ended its ownership.
async fn write_that_ended_ownership(setup: &OwnershipSetup, domain: &str) -> WriteTransaction {
    let write = setup.registry.store.begin_write().await.unwrap();
    let row = domains::domain_by_name(&write, domain).await.unwrap();
    let mut row = row.unwrap();
    row.state = DomainState::Unverified.into();
    row.owner_id = None;
    write.set_domain_ownership(&row).await.unwrap();
    write
}

/// Registers and proves these domains for one account, crawls them (all but `OTHER` give `answer`), and returns the
/// account.
async fn owned(setup: &OwnershipSetup, proved: &[&str], answer: OriginResponse) -> Caller {
    let owner = setup.create_publisher("acme").await;
    for domain in proved {
        let view = setup.register(&owner, domain).await;
        setup.place_standing_record(&view);
        let found = domain_verify(&setup.registry.app, &owner, domain).await;
        assert_eq!(found.unwrap().domain.state.as_str(), "verified");
    }
    setup.registry.advance(Duration::minutes(2));
    let answer = |url: &str| match url.contains(OTHER) {
        true => OriginResponse::NotModified,
        false => answer.clone(),
    };
    setup
        .registry
        .run_due_visits(|source| answer(&source.url))
        .await;
    owner
}

fn redirected() -> OriginResponse {
    OriginResponse::RedirectedCard(
        card_bytes("Travel", "Books flights"),
        format!("https://{OTHER}/card.json"),
    )
}

/// The agent's lifecycle, whether it has a URN, and the coverage of its first version.
async fn agent_state(setup: &OwnershipSetup) -> (String, bool, String) {
    let agent = setup.registry.agent(DOMAIN).await;
    let mut versions = setup.registry.versions(agent.id).await;
    let coverage = versions.remove(0).standing;
    let [lifecycle, coverage] = [agent.lifecycle.as_str(), coverage.as_str()].map(str::to_owned);
    (lifecycle, agent.urn.is_some(), coverage)
}

fn nominated() -> (String, bool, String) {
    ("pending".into(), false, "nomination".into())
}

/// Proving a redirect target judges the redirecting domain by its state once its lock is free, not by the state read
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_is_judged_by_its_current_state_on_postgres() {
    let database = Database::postgres().await;
    let setup = OwnershipSetup::new(database.url()).await;
    let owner = owned(&setup, &[DOMAIN], redirected()).await;
    assert_eq!(agent_state(&setup).await, nominated());
    let view = setup.register(&owner, OTHER).await;
    setup.place_standing_record(&view);
    let held = write_that_ended_ownership(&setup, DOMAIN).await;
    let proving = domain_verify(&setup.registry.app, &owner, OTHER);
    let proved = once_free(&setup.registry.store, held, proving).await;
    assert_eq!(proved.unwrap().domain.state.as_str(), "verified");
    assert_eq!(agent_state(&setup).await, nominated());
}

/// A card behind a redirect is judged by the target host's state once that host's lock is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirected_card_is_judged_by_the_target_hosts_current_state_on_postgres() {
    let database = Database::postgres().await;
    let setup = OwnershipSetup::new(database.url()).await;
    owned(&setup, &[DOMAIN, OTHER], OriginResponse::NotModified).await;
    let held = write_that_ended_ownership(&setup, OTHER).await;
    let crawl = setup.registry.crawl_domain(DOMAIN, redirected());
    once_free(&setup.registry.store, held, crawl).await;
    assert_eq!(agent_state(&setup).await, nominated());
}

/// An agent whose card starts to come through a redirect while the target's new generation waits for the lock loses its
/// coverage with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_linked_meanwhile_loses_its_coverage_on_postgres() {
    let database = Database::postgres().await;
    let setup = OwnershipSetup::new(database.url()).await;
    let own = OriginResponse::Card(card_bytes("Travel", "Books flights"));
    owned(&setup, &[DOMAIN, OTHER], own).await;
    let (lifecycle, named, coverage) = agent_state(&setup).await;
    assert_eq!(
        (lifecycle.as_str(), named, coverage.as_str()),
        ("approved", true, "covered")
    );
    // Ingest takes the same lock.
    let held = setup.registry.store.begin_write().await.unwrap();
    let other = domains::domain_by_name(&held, OTHER).await.unwrap();
    let agent = setup.registry.agent(DOMAIN).await;
    let sources = domains::live_sources_by_domain(&setup.registry.store, &[agent.domain_id])
        .await
        .unwrap();
    let agent_source = sources
        .iter()
        .find(|source| source.agent_id == Some(agent.id));
    let version_source = version_source::Model {
        version_id: agent.newest_version.unwrap(),
        source_id: agent_source.unwrap().id,
        answered_by: format!("https://{}", other.unwrap().name),
    };
    held.upsert_version_sources(vec![version_source])
        .await
        .unwrap();
    let app = Arc::clone(&setup.registry.app);
    let why = NewGeneration {
        reason: "sold".into(),
    };
    let new_generation = domain_new_generation(&app, &setup.registry.admin, OTHER, &why);
    once_free(&setup.registry.store, held, new_generation)
        .await
        .unwrap();
    let (lifecycle, _, coverage) = agent_state(&setup).await;
    assert_eq!(
        (lifecycle.as_str(), coverage.as_str()),
        ("pending", "nomination")
    );
}

/// An act whose caller loses the domain while it waits for the lock is refused with a conflict and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_owner_changes_nothing_on_postgres() {
    let patch = DomainPatch {
        contact: Some("mailto:ops@acme.example".into()),
        opt_out: None,
        ..DomainPatch::default()
    };
    let to = Transfer {
        account: "heir".into(),
    };
    let key =
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    for act in ["patch", "transfer", "enrol"] {
        let database = Database::postgres().await;
        let setup = OwnershipSetup::new(database.url()).await;
        let owner = owned(&setup, &[DOMAIN], OriginResponse::NotModified).await;
        setup.create_publisher("heir").await;
        let held = write_that_ended_ownership(&setup, DOMAIN).await;
        let app = &setup.registry.app;
        let doing = async {
            match act {
                "patch" => domain_patch(app, &owner, DOMAIN, &patch).await,
                "transfer" => domain_transfer(app, &owner, DOMAIN, &to).await,
                _ => key_enrol(app, &owner, DOMAIN, "k1", &key).await,
            }
        };
        let refused = once_free(&setup.registry.store, held, doing).await;
        let kind = refused.err().map(|error| error.kind);
        assert_eq!(kind, Some(ErrorKind::Conflict), "{act}");
        let view = setup.domain_view(&setup.registry.admin).await;
        assert_eq!(
            (view.contact, view.keys.len(), view.proofs.len()),
            (None, 0, 1),
            "{act}"
        );
    }
}
