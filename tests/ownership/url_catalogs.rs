//! Catalogs registered by their URL (docs/publish/prove.md#what-a-proof-covers): the cards that they list are
//! nominations by the account that registered the catalog, unless that account is the proved owner.

use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::source;
use a2a_registry_store::registrants::source_count_by_registrant;
use time::Duration;

use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{
    CatalogExtent, InProcessRegistry, OriginResponse, card_bytes,
};

both_databases!(
    a_strangers_catalog_nominates_and_counts_for_the_stranger,
    a_catalog_nominates_a_bounded_number,
    a_strangers_catalog_takes_nothing_from_the_domains_own,
    a_strangers_catalog_names_no_agent,
    what_a_catalog_began_is_not_told_to_strangers,
    an_approval_is_for_what_the_catalog_lists_first,
    the_owners_catalog_covers_what_it_lists,
    a_catalog_is_read_again_when_its_domain_is_proved,
    a_proof_that_comes_while_the_catalog_is_fetched_is_not_missed,
    a_url_that_brought_a_card_is_no_catalog,
    the_url_of_a_well_known_catalog_is_that_catalog
);

const LIST: &str = "/lists/all.json";

fn site_url(path: &str) -> String {
    format!("https://{DOMAIN}{path}")
}

/// The entries of cards at these paths, named after them.
fn listing(paths: &[String]) -> OriginResponse {
    let entries = paths.iter().map(|path| (path.clone(), site_url(path)));
    OriginResponse::Catalog(entries.collect(), CatalogExtent::Complete)
}

fn paths(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("/{number}.json")).collect()
}

/// A site with a catalog at [`LIST`], and a card of its own at every other URL.
fn answer(source: &source::Model, listed: &[String]) -> OriginResponse {
    if source.url == site_url(LIST) {
        return listing(listed);
    }
    OriginResponse::Card(card_bytes(&source.url, "Lives here"))
}

async fn register_list(setup: &OwnershipSetup, caller: &Caller) -> DomainView {
    let what = Registration {
        card_url: Some(site_url(LIST)),
        ..Registration::default()
    };
    register::register_domain(&setup.registry.app, caller, &what)
        .await
        .unwrap()
}

async fn visit(setup: &OwnershipSetup, listed: &[String]) {
    setup
        .registry
        .run_due_visits(|source| answer(source, listed))
        .await;
    setup.registry.advance(Duration::minutes(2));
}

async fn entries(setup: &OwnershipSetup) -> Vec<SourceView> {
    let view = setup.domain_view(&setup.registry.admin).await;
    let mut all = view.sources;
    all.retain(|source| source.kind == SourceKind::Entry);
    all
}

/// The detail of the newest attempt at the catalog.
async fn last_attempt_detail(setup: &OwnershipSetup) -> String {
    let view = setup.domain_view(&setup.registry.admin).await;
    let list = view
        .sources
        .iter()
        .find(|source| source.url == site_url(LIST));
    list.unwrap().last_attempt.as_ref().unwrap().detail.clone()
}

fn has_coverage(sources: &[SourceView], expected: Coverage) -> bool {
    sources.iter().all(|source| source.coverage == expected)
}

async fn a_strangers_catalog_nominates_and_counts_for_the_stranger(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.limits.sources_per_account = 3).await;
    let setup = OwnershipSetup::with_registry(registry);
    let ann = setup.create_publisher("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(4)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 2, "the catalog itself is the third");
    assert!(has_coverage(&named, Coverage::Nomination));
    let detail = last_attempt_detail(&setup).await;
    assert!(
        detail.contains("/2.json") && detail.contains("/3.json"),
        "{detail}"
    );
    let id = ann.account.as_ref().unwrap().id;
    assert_eq!(
        source_count_by_registrant(&setup.registry.store, id)
            .await
            .unwrap(),
        3
    );
    let further = Registration {
        card_url: Some(site_url("/further.json")),
        ..Registration::default()
    };
    let refused = register::register_domain(&setup.registry.app, &ann, &further).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::LimitReached);
    // PostgreSQL rolls the refused registration back a moment later; leases skip the rows that it has locked until then.
    let listed = paths(4);
    while setup
        .registry
        .run_due_visits(|source| answer(source, &listed))
        .await
        == 0
    {
        tokio::task::yield_now().await;
    }
    for source in entries(&setup).await {
        assert!(source.agent.is_some(), "{source:?}");
    }
    setup.registry.assert_index_matches_database().await;
}

async fn a_catalog_nominates_a_bounded_number(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.limits.agents_per_domain = 500).await;
    let setup = OwnershipSetup::with_registry(registry);
    let admin = setup.registry.admin.clone();
    register_list(&setup, &admin).await;
    visit(&setup, &paths(53)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 50);
    assert!(has_coverage(&named, Coverage::Nomination), "an admin's too");
    let detail = last_attempt_detail(&setup).await;
    assert!(detail.contains("3 beyond"), "{detail}");
    for last in ["/50.json", "/51.json", "/52.json"] {
        assert!(detail.contains(last), "{detail}");
    }
}

/// Neither an identifier nor a URL that the domain's own catalog lists changes hands. An identifier that a stranger's catalog
/// used first is free for the domain's own, which takes over nothing that the other one has brought.
async fn a_strangers_catalog_takes_nothing_from_the_domains_own(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.create_publisher("ann").await;
    register_list(&setup, &ann).await;
    let evil = OriginResponse::Catalog(
        vec![
            ("x".to_owned(), site_url("/evil.json")),
            ("y".to_owned(), site_url("/.well-known/agent-card.json")),
            ("self".to_owned(), site_url(LIST)),
        ],
        CatalogExtent::Complete,
    );
    let own = OriginResponse::Catalog(
        vec![("x".to_owned(), site_url("/x.json"))],
        CatalogExtent::Complete,
    );
    let site = |source: &source::Model| match source.kind.as_str() {
        "ard" => own.clone(),
        "ai_catalog" => OriginResponse::Failure(a2a_crawler::AttemptOutcome::NotFound),
        _ if source.url == site_url(LIST) => evil.clone(),
        _ => OriginResponse::Card(card_bytes(&source.url, "Lives here")),
    };
    setup.registry.run_due_visits(site).await;
    setup.registry.advance(Duration::minutes(2));
    let first = entries(&setup).await;
    assert!(
        first
            .iter()
            .any(|source| source.url == site_url("/evil.json"))
    );
    let admin = setup.registry.admin.clone();
    setup.register(&admin, DOMAIN).await;
    for _ in 0..3 {
        setup.registry.crawl_domain_with(DOMAIN, site).await;
        let named = entries(&setup).await;
        let x = named
            .iter()
            .find(|source| source.url == site_url("/x.json"));
        assert_eq!(x.unwrap().coverage, Coverage::Covered, "{named:?}");
        let evil = named
            .iter()
            .find(|source| source.url == site_url("/evil.json"));
        assert_eq!(evil.unwrap().coverage, Coverage::Nomination, "{named:?}");
        assert_ne!(evil.unwrap().agent, x.unwrap().agent);
    }
    let mut slots: Vec<String> = setup
        .registry
        .agents()
        .await
        .into_iter()
        .map(|row| row.slot)
        .collect();
    slots.retain(|slot| slot.ends_with("/evil.json") || slot.starts_with("entry"));
    slots.sort();
    assert_eq!(slots, ["entry x".to_owned(), site_url("/evil.json")]);
    let view = setup.domain_view(&admin).await;
    let list = view
        .sources
        .iter()
        .find(|source| source.url == site_url(LIST));
    assert_eq!(list.unwrap().coverage, Coverage::Nomination);
}

/// The identifier that it gives to a card is no name of the agent, also where the owner registers that card later.
async fn a_strangers_catalog_names_no_agent(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.create_publisher("ann").await;
    register_list(&setup, &ann).await;
    let named = format!("urn:air:{DOMAIN}:fleet:anns");
    let list = OriginResponse::Catalog(vec![(named, site_url("/y.json"))], CatalogExtent::Complete);
    let site = |source: &source::Model| match source.kind.known_value() {
        Some(SourceKind::Url) if source.url == site_url(LIST) => list.clone(),
        Some(SourceKind::Url | SourceKind::Entry) => {
            OriginResponse::Card(card_bytes("Yonder", "Lives here"))
        }
        _ => OriginResponse::Failure(a2a_crawler::AttemptOutcome::NotFound),
    };
    for _ in 0..2 {
        setup.registry.run_due_visits(site).await;
        setup.registry.advance(Duration::minutes(2));
    }
    assert_eq!(setup.registry.agent(DOMAIN).await.slot, site_url("/y.json"));
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let what = Registration {
        card_url: Some(site_url("/y.json")),
        ..Registration::default()
    };
    register::register_domain(&setup.registry.app, &owner, &what)
        .await
        .unwrap();
    setup.registry.crawl_domain_with(DOMAIN, site).await;
    let agent = setup.registry.agent(DOMAIN).await;
    let minted = format!("urn:air:{DOMAIN}:agents:yonder");
    assert_eq!(agent.urn.as_deref(), Some(minted.as_str()));
}

/// Whether a catalog began a source would tell which URLs others had registered before.
async fn what_a_catalog_began_is_not_told_to_strangers(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let admin = setup.registry.admin.clone();
    setup.register(&admin, DOMAIN).await;
    let ann = setup.create_publisher("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(2)).await;
    assert_eq!(entries(&setup).await.len(), 2);
    let told = setup.domain_view(&ann).await;
    let told: Vec<String> = told.sources.into_iter().map(|source| source.url).collect();
    assert_eq!(told, [site_url(LIST)]);
}

/// Nobody has seen the card that the URL of a catalog brings later.
async fn an_approval_is_for_what_the_catalog_lists_first(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let what = Registration {
        card_url: Some(site_url(LIST)),
        approve: true,
        ..Registration::default()
    };
    register::register_domain(&setup.registry.app, &setup.registry.admin, &what)
        .await
        .unwrap();
    visit(&setup, &[]).await;
    let later = OriginResponse::Card(card_bytes("Later", "Was a list"));
    setup.registry.crawl_domain(DOMAIN, later).await;
    let agent = setup.registry.agent(DOMAIN).await;
    assert_eq!(agent.lifecycle, Lifecycle::Pending);
}

async fn the_owners_catalog_covers_what_it_lists(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.create_publisher("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(2)).await;
    assert!(has_coverage(&entries(&setup).await, Coverage::Nomination));
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    assert!(has_coverage(&entries(&setup).await, Coverage::Nomination));
    register_list(&setup, &owner).await;
    assert!(has_coverage(&entries(&setup).await, Coverage::Covered));
    setup
        .registry
        .crawl_domain_with(DOMAIN, |source| answer(source, &paths(4)))
        .await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 4);
    assert!(has_coverage(&named, Coverage::Covered));
    let id = owner.account.as_ref().unwrap().id;
    let counted = source_count_by_registrant(&setup.registry.store, id)
        .await
        .unwrap();
    assert_eq!(counted, 2, "the well-known paths and the catalog");
}

/// What a catalog lists beyond the limits of a stranger's nominations comes with the proof, and not a day later.
async fn a_catalog_is_read_again_when_its_domain_is_proved(url: &str) {
    proved_after_the_catalog(url, false).await;
}

async fn a_proof_that_comes_while_the_catalog_is_fetched_is_not_missed(url: &str) {
    proved_after_the_catalog(url, true).await;
}

async fn proved_after_the_catalog(url: &str, while_fetched: bool) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.limits.sources_per_account = 3).await;
    let setup = OwnershipSetup::with_registry(registry);
    let owner = setup.create_publisher("acme").await;
    let view = register_list(&setup, &owner).await;
    visit(&setup, &paths(6)).await;
    assert_eq!(entries(&setup).await.len(), 2, "its owner is not known");
    setup.place_standing_record(&view);
    if while_fetched {
        setup.registry.advance(Duration::days(2));
        let outcomes = setup
            .registry
            .lease_due_outcomes(|source| answer(source, &paths(6)));
        let group = outcomes.await;
        setup.verify(&owner).await.unwrap();
        ingest_outcomes(&setup.registry.app, &group).await.unwrap();
    } else {
        setup.verify(&owner).await.unwrap();
    }
    setup.registry.advance(Duration::minutes(2));
    visit(&setup, &paths(6)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 6);
    assert!(has_coverage(&named, Coverage::Covered));
}

/// An agent keeps its last good card where its URL brings a catalog, and entries leave with a catalog that brings a card.
async fn a_url_that_brought_a_card_is_no_catalog(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let admin = setup.registry.admin.clone();
    register_list(&setup, &admin).await;
    let as_card = || OriginResponse::Card(card_bytes("Single", "Was here first"));
    setup.registry.run_due_visits(|_| as_card()).await;
    let agent = setup.registry.agent(DOMAIN).await;
    setup
        .registry
        .crawl_domain(DOMAIN, listing(&paths(2)))
        .await;
    assert_eq!(entries(&setup).await.len(), 0);
    let kept = setup.registry.agent(DOMAIN).await;
    assert_eq!((kept.id, kept.liveness.as_str()), (agent.id, "stale"));
    let detail = last_attempt_detail(&setup).await;
    assert!(detail.contains("withdraw"), "{detail}");

    let other = Registration {
        card_url: Some(site_url("/other-list.json")),
        ..Registration::default()
    };
    register::register_domain(&setup.registry.app, &admin, &other)
        .await
        .unwrap();
    let site = |lists: bool| {
        move |source: &source::Model| {
            if source.url != site_url("/other-list.json") {
                return OriginResponse::Card(card_bytes(&source.url, "Lives here"));
            }
            if lists {
                listing(&paths(1))
            } else {
                OriginResponse::Card(card_bytes("List", "Is a card now"))
            }
        }
    };
    setup.registry.crawl_domain_with(DOMAIN, site(true)).await;
    assert_eq!(entries(&setup).await.len(), 1);
    for _ in 0..4 {
        setup.registry.advance(Duration::hours(12));
        setup.registry.crawl_domain_with(DOMAIN, site(false)).await;
    }
    assert_eq!(entries(&setup).await.len(), 0);
}

async fn the_url_of_a_well_known_catalog_is_that_catalog(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.create_publisher("ann").await;
    for (path, kind) in [
        ("/.well-known/ard.json", SourceKind::Ard),
        ("/.well-known/ai-catalog.json", SourceKind::AiCatalog),
    ] {
        let what = Registration {
            card_url: Some(site_url(path)),
            ..Registration::default()
        };
        let view = register::register_domain(&setup.registry.app, &ann, &what)
            .await
            .unwrap();
        let source = view
            .sources
            .iter()
            .find(|source| source.url == site_url(path));
        assert_eq!(source.unwrap().kind, kind);
        assert_eq!(source.unwrap().coverage, Coverage::Covered);
    }
}
