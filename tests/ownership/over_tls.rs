//! TLS-dependent trust: the lowest level, and the proof by a file on port 443.

use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::trust::TrustLevel;
use serde_json::Value;

use super::tls_site::{ProofFile, TlsSite};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{OriginResponse, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::tls::{Authority, TlsFront};

/// A registry, an origin behind TLS, and an authority that the registry trusts.
struct TlsSetup {
    registry: ServingRegistry,
    origin: Origin,
    front: TlsFront,
    authority: Authority,
}

impl TlsSetup {
    async fn new() -> Self {
        let setup = RegistrySetup::with_default_config();
        let authority = Authority::new("the tests' own");
        let trusted = setup.scratch_folder().join("authority.pem");
        std::fs::write(&trusted, authority.pem()).unwrap();
        let origin = Origin::start();
        let front = TlsFront::bind(
            ([127, 0, 0, 1], 0).into(),
            authority.identity("127.0.0.1"),
            &origin,
        )
        .await
        .unwrap();
        let registry = setup
            .with_config_lines(&format!(
                "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_ports = \"any\"\nextra_ca = [{trusted:?}]\n"
            ))
            .start()
            .await;
        Self {
            registry,
            origin,
            front,
            authority,
        }
    }

    /// The only agent, as its admin sees it.
    async fn agent(&self) -> Value {
        let id = eventually("the agent is found", || async {
            let path = "/v1/agents?lifecycle=pending";
            let found = self
                .registry
                .api
                .get_as_admin(path)
                .await
                .expect_status(200);
            found["agents"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
        self.registry
            .api
            .get_as_admin(&format!("/v1/agents/{id}"))
            .await
            .expect_status(200)
    }
}

/// A card over TLS reaches the first level of trust, until its certificate becomes invalid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_tls_gives_the_first_level_of_trust() {
    let setup = TlsSetup::new().await;
    let path = "/.well-known/agent-card.json";
    setup.origin.set_reply(
        path,
        OriginReply::json(card_bytes("Travel", "Books flights")),
    );
    let domain = setup
        .registry
        .api
        .register(&setup.front.url(path))
        .await
        .domain;
    // The first visit is stored before the next one is requested, so that its attempt is not taken for the next one's.
    let agent = setup.agent().await;
    assert_eq!(agent["trust"]["level"], "L0", "{agent}");
    assert_eq!(agent["liveness"]["state"], "fresh");

    setup
        .front
        .replace_certificate(setup.authority.expired_identity("127.0.0.1"));
    let domain = setup.registry.api.recrawl_and_wait(&domain).await;
    assert_eq!(
        domain["sources"][0]["last_attempt"]["outcome"], "tls_invalid",
        "{domain}"
    );
    let agent = setup.agent().await;
    assert_eq!(agent["trust"]["level"], Value::Null, "{agent}");
    assert_eq!(agent["liveness"]["state"], "stale");
    setup.registry.stop().await;
}

/// A card behind a certificate of an untrusted authority is not accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_with_an_untrusted_certificate_is_not_accepted() {
    let setup = TlsSetup::new().await;
    let path = "/.well-known/agent-card.json";
    setup.origin.set_reply(
        path,
        OriginReply::json(card_bytes("Travel", "Books flights")),
    );
    setup
        .front
        .replace_certificate(Authority::new("a stranger").identity("127.0.0.1"));
    let domain = setup
        .registry
        .api
        .register(&setup.front.url(path))
        .await
        .domain;
    let domain = setup.registry.api.recrawl_and_wait(&domain).await;
    assert_eq!(
        domain["sources"][0]["last_attempt"]["outcome"], "tls_invalid",
        "{domain}"
    );
    assert!(
        setup.origin.requests_to(path).is_empty(),
        "no request was sent"
    );
    setup.registry.stop().await;
}

both_databases!(a_file_proves_a_domain);

/// The file proves a domain only byte for byte, and raises the owner to the next level of trust.
async fn a_file_proves_a_domain(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::at_site(url, &site).await;
    let origin = &site.origin;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    setup
        .registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    let file = ProofFile::from_view(&view);
    let (path, place) = (file.path.as_str(), &file.url);

    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("absent".into(), place.clone())),
        "{results:?}"
    );
    let text = |body: &str| OriginReply::json(body).with_header("content-type", "text/plain");
    origin.set_reply(path, text("something else"));
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("wrong".into(), place.clone())),
        "{results:?}"
    );
    assert_eq!(setup.state().await, "unverified");

    origin.set_reply(path, text(&file.body));
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("held".into(), place.clone())),
        "{results:?}"
    );
    let view = setup.domain_view(&acme).await;
    assert_eq!(
        (view.state.as_str(), view.proofs[0].method.as_str()),
        ("verified", "http")
    );
    let agent = setup.registry.agent(DOMAIN).await;
    assert_eq!(agent.lifecycle, Lifecycle::Approved);
    assert!(agent.urn.is_some());
    let hit = agent_show_checked(&setup.registry.app, &acme, &agent.id.to_string())
        .await
        .unwrap();
    assert_eq!(hit.hit.summary.trust.level, Some(TrustLevel::L1.into()));
    // The file is checked every day, and the proof lapses when it is removed.
    assert_eq!(setup.next_day().await, "verified");
    origin.set_reply(path, OriginReply::status(404));
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(setup.state().await, "lapsed");
}
