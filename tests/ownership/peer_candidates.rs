//! Registries that catalogs name: which are candidates for peers, and until when
//! (docs/find/federation.md#candidates-for-peers).

use std::net::TcpListener;
use std::sync::Arc;

use a2a_crawler::AttemptOutcome::{NotFound, Timeout};
use a2a_crawler::catalog::MAX_ENTRIES;
use a2a_registry_api::DomainPatch;
use a2a_registry_core::config::{Config, PeerConfig};
use a2a_registry_core::domains::owner_actions::domain_patch;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_store::entity::source;
use a2a_registry_store::peer_candidates::proved_peer_candidates;
use serde_json::{Value, json};
use time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::api::RegistryClient;
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const MAIN: &str = "urn:air:travel.agents-test.com:registry:main";
const NONE: [&str; 0] = [];

fn entry(identifier: &str, kind: &str, url: &str) -> Value {
    json!({"identifier": identifier, "type": kind, "url": url, "displayName": "Travel registry"})
}

fn registry(identifier: &str, url: &str) -> Value {
    entry(identifier, "application/ai-registry+json", url)
}

fn lists(entries: &[Value]) -> OriginResponse {
    OriginResponse::CatalogDocument(json!({"specVersion": "1.0", "entries": entries}).to_string())
}

/// A catalog that names the registry.
fn catalog_with_registry() -> OriginResponse {
    lists(&[registry(MAIN, "/ard")])
}

/// What the site of a domain answers: this at `ard.json`, and a card at the well-known path.
fn site(ard: &OriginResponse) -> impl Fn(&source::Model) -> OriginResponse + '_ {
    move |source| match source.kind.as_str() {
        "ard" => ard.clone(),
        "ai_catalog" => OriginResponse::Failure(NotFound),
        _ => OriginResponse::Card(card_bytes("Travel", "Books flights")),
    }
}

/// The candidates as the API shows them.
async fn fetch_candidates(stage: &InProcessRegistry) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let api = RegistryClient::new(&format!("http://{}", listener.local_addr().unwrap()));
    let end = CancellationToken::new();
    let serving = a2a_registry_server::serve::run_server(
        Arc::clone(&stage.app),
        listener,
        end.clone(),
        Arc::new(Metrics::new()),
    );
    let serving = AbortOnDropHandle::new(tokio::spawn(serving));
    let list = api.get_as_admin("/v1/peers").await.expect_status(200);
    end.cancel();
    serving.await.unwrap().unwrap();
    list["candidates"].clone()
}

impl OwnershipSetup {
    /// An account that has proved the domain, which was not visited yet.
    async fn proved(&self) -> Caller {
        let owner = self.create_publisher("acme").await;
        let view = self.register(&owner, DOMAIN).await;
        self.place_standing_record(&view);
        let found = domain_verify(&self.registry.app, &owner, DOMAIN).await;
        assert_eq!(found.unwrap().domain.state.as_str(), "verified");
        owner
    }

    /// Fetches everything of the domain now.
    async fn crawl_catalog(&self, ard: &OriginResponse) {
        self.registry.crawl_domain_with(DOMAIN, site(ard)).await;
    }

    /// The identifiers of the candidates.
    async fn candidates(&self) -> Vec<String> {
        let rows = proved_peer_candidates(&self.registry.store, 100)
            .await
            .unwrap();
        rows.into_iter().map(|row| row.identifier).collect()
    }
}

both_databases!(
    registries_of_a_proved_domain_are_candidates,
    a_peer_is_no_candidate,
    registries_of_denied_domains_are_no_candidates,
    nothing_is_kept_before_the_proof,
    candidates_go_with_the_proof_and_the_domain,
    candidates_follow_the_catalog
);

/// Nothing else that a catalog lists beside agents leaves a trace.
async fn registries_of_a_proved_domain_are_candidates(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup.proved().await;
    let other = "urn:air:neighbour.agents-test.com:registry:main";
    let server = "urn:air:travel.agents-test.com:tools:sorter";
    let ard = lists(&[
        entry(server, "application/mcp-server-card+json", "/mcp.json"),
        registry(other, "https://neighbour.agents-test.com/ard"),
        registry(MAIN, "/ard"),
        registry("urn:ai:travel.agents-test.com:registry:old", "/old/ard"),
    ]);
    setup.crawl_catalog(&ard).await;
    let old = "urn:air:travel.agents-test.com:registry:old";
    assert_eq!(setup.candidates().await, [MAIN, old]);
    setup.crawl_catalog(&ard).await;
    assert_eq!(setup.candidates().await, [MAIN, old]);
    assert_eq!(setup.registry.agents().await.len(), 1);
    let first = json!({
        "identifier": MAIN,
        "display_name": "Travel registry",
        "url": "https://travel.agents-test.com/ard",
        "domain": DOMAIN,
    });
    let shown = fetch_candidates(&setup.registry).await;
    assert_eq!((shown.as_array().unwrap().len(), &shown[0]), (2, &first));
}

/// The setup of a domain whose catalog names a registry, after a restart with another configuration.
async fn restarted(url: &str, configure: impl FnOnce(&mut Config)) -> OwnershipSetup {
    let setup = OwnershipSetup::new(url).await;
    setup.proved().await;
    setup.crawl_catalog(&catalog_with_registry()).await;
    let OwnershipSetup {
        registry: stage,
        names,
    } = setup;
    drop(names);
    let setup = OwnershipSetup::with_registry(stage.restart(configure).await);
    assert_eq!(setup.candidates().await, [MAIN]);
    setup
}

async fn a_peer_is_no_candidate(url: &str) {
    let peer = PeerConfig {
        url: "https://travel.agents-test.com/ard/search".to_owned(),
        share_private: false,
    };
    let setup = restarted(url, |config| {
        config.federation.peers.insert("travel".to_owned(), peer);
    });
    assert_eq!(fetch_candidates(&setup.await.registry).await, json!([]));
}

async fn registries_of_denied_domains_are_no_candidates(url: &str) {
    let setup = restarted(url, |config| {
        config.governance.deny_domains = vec![DomainPattern(DOMAIN.into())];
    });
    assert_eq!(fetch_candidates(&setup.await.registry).await, json!([]));
}

async fn nothing_is_kept_before_the_proof(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.crawl_catalog(&catalog_with_registry()).await;
    assert_eq!(setup.candidates().await, NONE);
    // The proof has the catalogs fetched in full, though nothing was due for hours.
    setup.place_standing_record(&view);
    domain_verify(&setup.registry.app, &owner, DOMAIN)
        .await
        .unwrap();
    assert_eq!(setup.candidates().await, NONE);
    setup.registry.advance(Duration::minutes(2));
    setup
        .registry
        .run_due_visits(site(&catalog_with_registry()))
        .await;
    assert_eq!(setup.candidates().await, [MAIN]);
}

async fn candidates_go_with_the_proof_and_the_domain(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let owner = setup.proved().await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.crawl_catalog(&catalog_with_registry()).await;
    assert_eq!(setup.candidates().await, [MAIN]);
    setup.remove(STANDING);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(setup.state().await, "lapsed");
    assert_eq!(setup.candidates().await, NONE);
    setup.place_standing_record(&view);
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(setup.candidates().await, [MAIN]);

    let opt = |out: bool| DomainPatch {
        opt_out: Some(out),
        ..DomainPatch::default()
    };
    domain_patch(&setup.registry.app, &owner, DOMAIN, &opt(true))
        .await
        .unwrap();
    assert_eq!(setup.candidates().await, NONE);
    domain_patch(&setup.registry.app, &owner, DOMAIN, &opt(false))
        .await
        .unwrap();
    assert_eq!(setup.candidates().await, [MAIN]);
    domain_delete(&setup.registry.app, &setup.registry.admin, DOMAIN)
        .await
        .unwrap();
    assert_eq!(setup.candidates().await, NONE);
}

async fn candidates_follow_the_catalog(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup.proved().await;
    setup.crawl_catalog(&catalog_with_registry()).await;
    // Failed fetches end nothing, however many.
    for _ in 0..5 {
        setup.registry.advance(Duration::hours(20));
        setup.crawl_catalog(&OriginResponse::Failure(Timeout)).await;
    }
    assert_eq!(setup.candidates().await, [MAIN]);
    // Nor does a catalog that is not read to its end.
    let number = |number: usize| entry(&format!("tool {number}"), "text/markdown", "/tool");
    let many: Vec<Value> = (0..=MAX_ENTRIES).map(number).collect();
    setup.crawl_catalog(&lists(&many)).await;
    assert_eq!(setup.candidates().await, [MAIN]);
    // One that does not name it does, and one that is not there.
    setup.crawl_catalog(&lists(&[])).await;
    assert_eq!(setup.candidates().await, NONE);
    setup.crawl_catalog(&catalog_with_registry()).await;
    assert_eq!(setup.candidates().await, [MAIN]);
    setup
        .crawl_catalog(&OriginResponse::Failure(NotFound))
        .await;
    assert_eq!(setup.candidates().await, NONE);
}
