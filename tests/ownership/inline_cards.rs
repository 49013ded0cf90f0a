//! Catalogs as the crawler fetches them, over TLS: cards inside entries, and stated digests.

use std::sync::Arc;

use a2a_card::bytes_digest;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use a2a_crawler::{Clock, FetchTarget, SourceTask, VisitOutcome};
use a2a_registry_api::Recrawl;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::domains::live_sources_by_domain;
use a2a_registry_store::entity::source;
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::tls_site::TlsSite;
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{LEASE_MICROSECONDS, card_bytes};
use crate::support::origin::OriginReply;

const ARD: &str = "/.well-known/ard.json";

/// A stopped clock for the test's fetcher, at the time of the registry's clock.
#[derive(Debug)]
struct FixedClock(OffsetDateTime);

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        self.0
    }
}

impl OwnershipSetup {
    /// A registry whose resolver leads the domain's name to the site, proved by an account.
    async fn proved_at(url: &str, site: &TlsSite) -> Self {
        let setup = Self::new(url).await;
        setup.names.set(DOMAIN, [site.address().ip()]);
        let owner = setup.create_publisher("acme").await;
        let view = setup.register(&owner, DOMAIN).await;
        setup.place_standing_record(&view);
        let found = domain_verify(&setup.registry.app, &owner, DOMAIN).await;
        assert_eq!(found.unwrap().domain.state.as_str(), "verified");
        setup
    }

    /// Fetches every source of the domain as the crawler does, and ingests what it finds.
    async fn fetch_over_tls(&self, site: &TlsSite) {
        self.registry.advance(Duration::minutes(2));
        let recrawl = Recrawl { full: true };
        let admin = &self.registry.admin;
        domain_recrawl(&self.registry.app, admin, DOMAIN, &recrawl)
            .await
            .unwrap();
        let fetcher = self.fetcher(site);
        let leased = lease_visits(&self.registry.app, 10, LEASE_MICROSECONDS)
            .await
            .unwrap();
        assert_eq!(leased.len(), 1);
        let mut group = Vec::new();
        for (domain, sources) in leased {
            let mut outcomes = Vec::new();
            for source in sources {
                outcomes.push(fetcher.fetch_source(&task(&source)).await);
            }
            group.push(VisitOutcome {
                domain_key: domain.id,
                lease_token: domain.lease.unwrap(),
                sources: outcomes,
            });
        }
        ingest_outcomes(&self.registry.app, &group).await.unwrap();
    }

    fn fetcher(&self, site: &TlsSite) -> Fetcher {
        let guard = SsrfGuard::new(GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..GuardConfig::default()
        });
        let config = FetcherConfig {
            guard,
            limits: FetchLimits::default(),
            contact_url: None,
            extra_ca: vec![site.root()],
            key_hosts: Vec::new(),
        };
        let clock = Arc::new(FixedClock(self.registry.now()));
        Fetcher::new(config, self.names.clone(), clock).unwrap()
    }

    async fn source_rows(&self) -> Vec<source::Model> {
        let agents = self.registry.agents().await;
        let id = agents.first().map_or(1, |agent| agent.domain_id);
        live_sources_by_domain(&self.registry.store, &[id])
            .await
            .unwrap()
    }
}

/// The requests for a source.
fn task(row: &source::Model) -> SourceTask {
    let url = row.url.parse().unwrap();
    SourceTask {
        source_key: row.id,
        target: match row.kind.known_value().unwrap() {
            SourceKind::WellKnown => FetchTarget::WellKnown { origin: url },
            SourceKind::Ard | SourceKind::AiCatalog => FetchTarget::Catalog {
                url,
                read_registries: true,
            },
            _ if url.fragment().is_some() => FetchTarget::InlineCard {
                url,
                identifier: row.identifier.clone().unwrap(),
            },
            _ => FetchTarget::CardUrl { url },
        },
        validators: None,
        credential: None,
    }
}

fn catalog(entries: &[Value]) -> OriginReply {
    OriginReply::json(json!({"specVersion": "1.0", "entries": entries}).to_string())
        .with_etag("\"1\"")
}

both_databases!(
    a_card_inside_an_entry_becomes_an_agent,
    a_card_with_another_digest_is_not_taken
);

/// Byte for byte as it stands in the catalog, and with the catalog's URL.
async fn a_card_inside_an_entry_becomes_an_agent(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::proved_at(url, &site).await;
    let text = String::from_utf8(card_bytes("Inline", "Lives in a catalog")).unwrap();
    let text = text.replacen('{', "{ \n  ", 1);
    let identifier = format!("urn:air:{DOMAIN}:agents:inline-one");
    let document = format!(
        r#"{{"entries":[{{"identifier":"{identifier}","type":"application/a2a-agent-card+json","data":{text}}}]}}"#
    );
    site.origin
        .set_reply(ARD, OriginReply::json(document.clone()));
    setup.fetch_over_tls(&site).await;
    setup.fetch_over_tls(&site).await;
    let agent = setup.registry.agent(DOMAIN).await;
    assert_eq!(agent.urn.as_deref(), Some(identifier.as_str()));
    let place = format!("https://{DOMAIN}{ARD}#{identifier}");
    let sources = setup.source_rows().await;
    assert!(
        sources
            .iter()
            .any(|row| row.url == place && row.agent_id == Some(agent.id))
    );
    setup.registry.catch_up().await;
    assert_eq!(
        setup.registry.public_card_bytes(agent.id).await,
        Some(text.clone().into_bytes())
    );
    // Another card in the same entry is another version of the same agent.
    let changed = document.replace("Lives in", "Moved within");
    site.origin.set_reply(ARD, OriginReply::json(changed));
    setup.fetch_over_tls(&site).await;
    assert_eq!(setup.registry.versions(agent.id).await.len(), 2);
    assert_eq!(setup.registry.agents().await.len(), 1);
}

async fn a_card_with_another_digest_is_not_taken(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::proved_at(url, &site).await;
    let (promised, other) = (
        card_bytes("Promised", "As the catalog says"),
        card_bytes("Other", "As nobody says"),
    );
    let named = |bytes: &[u8]| {
        json!({
            "identifier": "a", "type": "application/a2a-agent-card+json", "url": "/a.json", "digest": bytes_digest(bytes),
        })
    };
    site.origin.set_reply(ARD, catalog(&[named(&promised)]));
    site.origin
        .set_reply("/a.json", OriginReply::json(other.clone()));
    setup.fetch_over_tls(&site).await;
    setup.fetch_over_tls(&site).await;
    assert_eq!(setup.registry.agents().await, []);
    site.origin
        .set_reply("/a.json", OriginReply::json(promised.clone()));
    setup.fetch_over_tls(&site).await;
    let agent = setup.registry.agent(DOMAIN).await;
    assert_eq!(setup.registry.versions(agent.id).await.len(), 1);
    // The card changes before the catalog does, and counts when the catalog has followed.
    site.origin
        .set_reply("/a.json", OriginReply::json(other.clone()));
    setup.fetch_over_tls(&site).await;
    assert_eq!(setup.registry.versions(agent.id).await.len(), 1);
    site.origin.set_reply(ARD, catalog(&[named(&other)]));
    setup.fetch_over_tls(&site).await;
    setup.fetch_over_tls(&site).await;
    assert_eq!(setup.registry.versions(agent.id).await.len(), 2);
}
