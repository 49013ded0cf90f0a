//! Catalogs that were registered by their URL (docs/ownership.md#coverage): what they list are nominations of whoever
//! registered them, unless that is the proved owner.

use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::domains::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::coverage::sources_registered;
use a2a_registry_store::entity::source;
use time::Duration;

use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Read, Stage, card};

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

fn at(path: &str) -> String {
    format!("https://{DOMAIN}{path}")
}

/// The entries of cards at these paths, named after them.
fn listing(paths: &[String]) -> OriginAnswer {
    let entries = paths.iter().map(|path| (path.clone(), at(path)));
    OriginAnswer::Catalog(entries.collect(), Read::Whole)
}

fn paths(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("/{number}.json")).collect()
}

/// A site with a catalog at [`LIST`], and a card of its own at every other URL.
fn answer(source: &source::Model, listed: &[String]) -> OriginAnswer {
    if source.url == at(LIST) {
        return listing(listed);
    }
    OriginAnswer::Card(card(&source.url, "Lives here"))
}

async fn register_list(setup: &OwnershipSetup, caller: &Caller) -> DomainView {
    let what = Registration {
        card_url: Some(at(LIST)),
        ..Registration::default()
    };
    register::register(&setup.stage.app, caller, &what)
        .await
        .unwrap()
}

async fn visit(setup: &OwnershipSetup, listed: &[String]) {
    setup.stage.visit(|source| answer(source, listed)).await;
    setup.stage.advance(Duration::minutes(2));
}

async fn entries(setup: &OwnershipSetup) -> Vec<SourceView> {
    let view = setup.domain_view(&setup.stage.admin).await;
    let mut all = view.sources;
    all.retain(|source| source.kind == SourceKind::Entry);
    all
}

/// The detail of the newest attempt at the catalog.
async fn told(setup: &OwnershipSetup) -> String {
    let view = setup.domain_view(&setup.stage.admin).await;
    let list = view.sources.iter().find(|source| source.url == at(LIST));
    list.unwrap().last_attempt.as_ref().unwrap().detail.clone()
}

fn has_coverage(sources: &[SourceView], expected: Coverage) -> bool {
    sources.iter().all(|source| source.coverage == expected)
}

async fn a_strangers_catalog_nominates_and_counts_for_the_stranger(url: &str) {
    let stage = Stage::with(url, |config| config.limits.sources_per_account = 3).await;
    let setup = OwnershipSetup::on(stage);
    let ann = setup.account("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(4)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 2, "the catalog itself is the third");
    assert!(has_coverage(&named, Coverage::Nomination));
    let detail = told(&setup).await;
    assert!(
        detail.contains("/2.json") && detail.contains("/3.json"),
        "{detail}"
    );
    let id = ann.account.as_ref().unwrap().id;
    assert_eq!(sources_registered(&setup.stage.store, id).await.unwrap(), 3);
    let further = Registration {
        card_url: Some(at("/further.json")),
        ..Registration::default()
    };
    let refused = register::register(&setup.stage.app, &ann, &further).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::LimitReached);
    visit(&setup, &paths(4)).await;
    for source in entries(&setup).await {
        assert!(source.agent.is_some(), "{source:?}");
    }
    setup.stage.index_equals_database().await;
}

async fn a_catalog_nominates_a_bounded_number(url: &str) {
    let stage = Stage::with(url, |config| config.limits.agents_per_domain = 500).await;
    let setup = OwnershipSetup::on(stage);
    let admin = setup.stage.admin.clone();
    register_list(&setup, &admin).await;
    visit(&setup, &paths(53)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 50);
    assert!(has_coverage(&named, Coverage::Nomination), "an admin's too");
    let detail = told(&setup).await;
    assert!(detail.contains("3 beyond"), "{detail}");
    for last in ["/50.json", "/51.json", "/52.json"] {
        assert!(detail.contains(last), "{detail}");
    }
}

/// Neither an identifier nor a URL that the domain's own catalog lists changes hands. An identifier that a stranger's catalog
/// used first is free for the domain's own, which takes over nothing that the other one has brought.
async fn a_strangers_catalog_takes_nothing_from_the_domains_own(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.account("ann").await;
    register_list(&setup, &ann).await;
    let evil = OriginAnswer::Catalog(
        vec![
            ("x".to_owned(), at("/evil.json")),
            ("y".to_owned(), at("/.well-known/agent-card.json")),
            ("self".to_owned(), at(LIST)),
        ],
        Read::Whole,
    );
    let own = OriginAnswer::Catalog(vec![("x".to_owned(), at("/x.json"))], Read::Whole);
    let site = |source: &source::Model| match source.kind.as_str() {
        "ard" => own.clone(),
        "ai_catalog" => OriginAnswer::Fails(a2a_crawler::AttemptOutcome::NotFound),
        _ if source.url == at(LIST) => evil.clone(),
        _ => OriginAnswer::Card(card(&source.url, "Lives here")),
    };
    setup.stage.visit(site).await;
    setup.stage.advance(Duration::minutes(2));
    let first = entries(&setup).await;
    assert!(first.iter().any(|source| source.url == at("/evil.json")));
    let admin = setup.stage.admin.clone();
    setup.register(&admin, DOMAIN).await;
    for _ in 0..3 {
        setup.stage.crawl_with(DOMAIN, site).await;
        let named = entries(&setup).await;
        let x = named.iter().find(|source| source.url == at("/x.json"));
        assert_eq!(x.unwrap().coverage, Coverage::Covered, "{named:?}");
        let evil = named.iter().find(|source| source.url == at("/evil.json"));
        assert_eq!(evil.unwrap().coverage, Coverage::Nomination, "{named:?}");
        assert_ne!(evil.unwrap().agent, x.unwrap().agent);
    }
    let mut slots: Vec<String> = setup
        .stage
        .agents()
        .await
        .into_iter()
        .map(|row| row.slot)
        .collect();
    slots.retain(|slot| slot.ends_with("/evil.json") || slot.starts_with("entry"));
    slots.sort();
    assert_eq!(slots, ["entry x".to_owned(), at("/evil.json")]);
    let view = setup.domain_view(&admin).await;
    let list = view.sources.iter().find(|source| source.url == at(LIST));
    assert_eq!(list.unwrap().coverage, Coverage::Nomination);
}

/// The identifier that it gives to a card is no name of the agent, also where the owner registers that card later.
async fn a_strangers_catalog_names_no_agent(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.account("ann").await;
    register_list(&setup, &ann).await;
    let named = format!("urn:air:{DOMAIN}:fleet:anns");
    let list = OriginAnswer::Catalog(vec![(named, at("/y.json"))], Read::Whole);
    let site = |source: &source::Model| match source.kind.known() {
        Some(SourceKind::Url) if source.url == at(LIST) => list.clone(),
        Some(SourceKind::Url | SourceKind::Entry) => {
            OriginAnswer::Card(card("Yonder", "Lives here"))
        }
        _ => OriginAnswer::Fails(a2a_crawler::AttemptOutcome::NotFound),
    };
    for _ in 0..2 {
        setup.stage.visit(site).await;
        setup.stage.advance(Duration::minutes(2));
    }
    assert_eq!(setup.stage.agent(DOMAIN).await.slot, at("/y.json"));
    let owner = setup.account("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let what = Registration {
        card_url: Some(at("/y.json")),
        ..Registration::default()
    };
    register::register(&setup.stage.app, &owner, &what)
        .await
        .unwrap();
    setup.stage.crawl_with(DOMAIN, site).await;
    let agent = setup.stage.agent(DOMAIN).await;
    let minted = format!("urn:air:{DOMAIN}:agents:yonder");
    assert_eq!(agent.urn.as_deref(), Some(minted.as_str()));
}

/// Whether a catalog began a source would tell which URLs others had registered before.
async fn what_a_catalog_began_is_not_told_to_strangers(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let admin = setup.stage.admin.clone();
    setup.register(&admin, DOMAIN).await;
    let ann = setup.account("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(2)).await;
    assert_eq!(entries(&setup).await.len(), 2);
    let told = setup.domain_view(&ann).await;
    let told: Vec<String> = told.sources.into_iter().map(|source| source.url).collect();
    assert_eq!(told, [at(LIST)]);
}

/// Nobody has seen the card that the URL of a catalog brings later.
async fn an_approval_is_for_what_the_catalog_lists_first(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let what = Registration {
        card_url: Some(at(LIST)),
        approve: true,
        ..Registration::default()
    };
    register::register(&setup.stage.app, &setup.stage.admin, &what)
        .await
        .unwrap();
    visit(&setup, &[]).await;
    let later = OriginAnswer::Card(card("Later", "Was a list"));
    setup.stage.crawl(DOMAIN, later).await;
    let agent = setup.stage.agent(DOMAIN).await;
    assert_eq!(agent.lifecycle, Lifecycle::Pending);
}

async fn the_owners_catalog_covers_what_it_lists(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.account("ann").await;
    register_list(&setup, &ann).await;
    visit(&setup, &paths(2)).await;
    assert!(has_coverage(&entries(&setup).await, Coverage::Nomination));
    let owner = setup.account("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    assert!(has_coverage(&entries(&setup).await, Coverage::Nomination));
    register_list(&setup, &owner).await;
    assert!(has_coverage(&entries(&setup).await, Coverage::Covered));
    setup
        .stage
        .crawl_with(DOMAIN, |source| answer(source, &paths(4)))
        .await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 4);
    assert!(has_coverage(&named, Coverage::Covered));
    let id = owner.account.as_ref().unwrap().id;
    let counted = sources_registered(&setup.stage.store, id).await.unwrap();
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
    let stage = Stage::with(url, |config| config.limits.sources_per_account = 3).await;
    let setup = OwnershipSetup::on(stage);
    let owner = setup.account("acme").await;
    let view = register_list(&setup, &owner).await;
    visit(&setup, &paths(6)).await;
    assert_eq!(entries(&setup).await.len(), 2, "its owner is not known");
    setup.place_standing_record(&view);
    if while_fetched {
        setup.stage.advance(Duration::days(2));
        let outcomes = setup.stage.outcomes(|source| answer(source, &paths(6)));
        let group = outcomes.await;
        setup.verify(&owner).await.unwrap();
        ingest(&setup.stage.app, &group).await.unwrap();
    } else {
        setup.verify(&owner).await.unwrap();
    }
    setup.stage.advance(Duration::minutes(2));
    visit(&setup, &paths(6)).await;
    let named = entries(&setup).await;
    assert_eq!(named.len(), 6);
    assert!(has_coverage(&named, Coverage::Covered));
}

/// An agent keeps its last good card where its URL brings a catalog, and entries leave with a catalog that brings a card.
async fn a_url_that_brought_a_card_is_no_catalog(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let admin = setup.stage.admin.clone();
    register_list(&setup, &admin).await;
    let as_card = || OriginAnswer::Card(card("Single", "Was here first"));
    setup.stage.visit(|_| as_card()).await;
    let agent = setup.stage.agent(DOMAIN).await;
    setup.stage.crawl(DOMAIN, listing(&paths(2))).await;
    assert_eq!(entries(&setup).await.len(), 0);
    let kept = setup.stage.agent(DOMAIN).await;
    assert_eq!((kept.id, kept.liveness.as_str()), (agent.id, "stale"));
    let detail = told(&setup).await;
    assert!(detail.contains("withdraw"), "{detail}");

    let other = Registration {
        card_url: Some(at("/other-list.json")),
        ..Registration::default()
    };
    register::register(&setup.stage.app, &admin, &other)
        .await
        .unwrap();
    let site = |lists: bool| {
        move |source: &source::Model| {
            if source.url != at("/other-list.json") {
                return OriginAnswer::Card(card(&source.url, "Lives here"));
            }
            if lists {
                listing(&paths(1))
            } else {
                OriginAnswer::Card(card("List", "Is a card now"))
            }
        }
    };
    setup.stage.crawl_with(DOMAIN, site(true)).await;
    assert_eq!(entries(&setup).await.len(), 1);
    for _ in 0..4 {
        setup.stage.advance(Duration::hours(12));
        setup.stage.crawl_with(DOMAIN, site(false)).await;
    }
    assert_eq!(entries(&setup).await.len(), 0);
}

async fn the_url_of_a_well_known_catalog_is_that_catalog(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let ann = setup.account("ann").await;
    for (path, kind) in [
        ("/.well-known/ard.json", SourceKind::Ard),
        ("/.well-known/ai-catalog.json", SourceKind::AiCatalog),
    ] {
        let what = Registration {
            card_url: Some(at(path)),
            ..Registration::default()
        };
        let view = register::register(&setup.stage.app, &ann, &what)
            .await
            .unwrap();
        let source = view.sources.iter().find(|source| source.url == at(path));
        assert_eq!(source.unwrap().kind, kind);
        assert_eq!(source.unwrap().coverage, Coverage::Covered);
    }
}
