//! Catalogs as the crawler really fetches them, over TLS: cards inside entries, and stated digests.

use std::sync::Arc;

use a2a_card::digest;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{Guard, GuardConfig};
use a2a_crawler::{Clock, Slot, SourceTask, VisitOutcome};
use a2a_registry_api::Recrawl;
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::crawl::job::visits_lease;
use a2a_registry_core::domains::acts::domain_recrawl;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::domains::sources_of;
use a2a_registry_store::entity::source;
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::site::Site;
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::origin::OriginReply;
use crate::support::stage::{LEASE, card};

const ARD: &str = "/.well-known/ard.json";

/// The stage's clock for a fetcher of the test.
#[derive(Debug)]
struct At(OffsetDateTime);

impl Clock for At {
    fn now(&self) -> OffsetDateTime {
        self.0
    }
}

impl OwnershipSetup {
    /// A registry whose resolver leads the domain's name to the site, proved by an account.
    async fn proved_at(url: &str, site: &Site) -> Self {
        let setup = Self::new(url).await;
        setup.names.set(DOMAIN, [site.address().ip()]);
        let owner = setup.account("acme").await;
        let view = setup.register(&owner, DOMAIN).await;
        setup.place_standing_record(&view);
        let found = domain_verify(&setup.stage.app, &owner, DOMAIN).await;
        assert_eq!(found.unwrap().domain.state.as_str(), "verified");
        setup
    }

    /// Fetches every source of the domain as the crawler does, and ingests what it finds.
    async fn really_fetch(&self, site: &Site) {
        self.stage.advance(Duration::minutes(2));
        let recrawl = Recrawl { full: true };
        let admin = &self.stage.admin;
        domain_recrawl(&self.stage.app, admin, DOMAIN, &recrawl)
            .await
            .unwrap();
        let fetcher = self.fetcher(site);
        let leased = visits_lease(&self.stage.app, 10, LEASE).await.unwrap();
        assert_eq!(leased.len(), 1);
        let mut group = Vec::new();
        for (domain, sources) in leased {
            let mut outcomes = Vec::new();
            for source in sources {
                outcomes.push(fetcher.fetch_source(&task(&source)).await);
            }
            group.push(VisitOutcome {
                domain_key: domain.id,
                lease: domain.lease.unwrap(),
                sources: outcomes,
            });
        }
        ingest(&self.stage.app, &group).await.unwrap();
    }

    fn fetcher(&self, site: &Site) -> Fetcher {
        let guard = Guard::new(GuardConfig {
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..GuardConfig::default()
        });
        let config = FetcherConfig {
            guard,
            limits: FetchLimits::default(),
            contact: None,
            extra_ca: vec![site.root()],
            key_hosts: Vec::new(),
        };
        let clock = Arc::new(At(self.stage.now()));
        Fetcher::new(config, self.names.clone(), clock).unwrap()
    }

    async fn sources(&self) -> Vec<source::Model> {
        let agents = self.stage.agents().await;
        let id = agents.first().map_or(1, |agent| agent.domain_id);
        sources_of(&self.stage.store, &[id]).await.unwrap()
    }
}

/// The requests for a source.
fn task(row: &source::Model) -> SourceTask {
    let url = row.url.parse().unwrap();
    SourceTask {
        source_key: row.id,
        slot: match row.kind.known().unwrap() {
            SourceKind::WellKnown => Slot::WellKnown { origin: url },
            SourceKind::Ard | SourceKind::AiCatalog => Slot::Catalog {
                url,
                registries: true,
            },
            _ if url.fragment().is_some() => Slot::Inline {
                url,
                identifier: row.identifier.clone().unwrap(),
            },
            _ => Slot::Url { url },
        },
        validators: None,
    }
}

fn catalog(entries: &[Value]) -> OriginReply {
    OriginReply::json(json!({"specVersion": "1.0", "entries": entries}).to_string()).etag("\"1\"")
}

both_databases!(
    a_card_inside_an_entry_becomes_an_agent,
    a_card_with_another_digest_is_not_taken
);

/// Byte for byte as it stands in the catalog, and with the catalog's URL.
async fn a_card_inside_an_entry_becomes_an_agent(url: &str) {
    let Some(site) = Site::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::proved_at(url, &site).await;
    let text = String::from_utf8(card("Inline", "Lives in a catalog")).unwrap();
    let text = text.replacen('{', "{ \n  ", 1);
    let identifier = format!("urn:air:{DOMAIN}:agents:inline-one");
    let document = format!(
        r#"{{"entries":[{{"identifier":"{identifier}","type":"application/a2a-agent-card+json","data":{text}}}]}}"#
    );
    site.origin.answer(ARD, OriginReply::json(document.clone()));
    setup.really_fetch(&site).await;
    setup.really_fetch(&site).await;
    let agent = setup.stage.agent(DOMAIN).await;
    assert_eq!(agent.urn.as_deref(), Some(identifier.as_str()));
    let place = format!("https://{DOMAIN}{ARD}#{identifier}");
    let sources = setup.sources().await;
    assert!(
        sources
            .iter()
            .any(|row| row.url == place && row.agent_id == Some(agent.id))
    );
    setup.stage.settle().await;
    assert_eq!(
        setup.stage.served(agent.id).await,
        Some(text.clone().into_bytes())
    );
    // Another card in the same entry is another version of the same agent.
    let changed = document.replace("Lives in", "Moved within");
    site.origin.answer(ARD, OriginReply::json(changed));
    setup.really_fetch(&site).await;
    assert_eq!(setup.stage.versions(agent.id).await.len(), 2);
    assert_eq!(setup.stage.agents().await.len(), 1);
}

async fn a_card_with_another_digest_is_not_taken(url: &str) {
    let Some(site) = Site::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::proved_at(url, &site).await;
    let (promised, other) = (
        card("Promised", "As the catalog says"),
        card("Other", "As nobody says"),
    );
    let named = |bytes: &[u8]| {
        json!({
            "identifier": "a", "type": "application/a2a-agent-card+json", "url": "/a.json", "digest": digest(bytes),
        })
    };
    site.origin.answer(ARD, catalog(&[named(&promised)]));
    site.origin
        .answer("/a.json", OriginReply::json(other.clone()));
    setup.really_fetch(&site).await;
    setup.really_fetch(&site).await;
    assert_eq!(setup.stage.agents().await, []);
    site.origin
        .answer("/a.json", OriginReply::json(promised.clone()));
    setup.really_fetch(&site).await;
    let agent = setup.stage.agent(DOMAIN).await;
    assert_eq!(setup.stage.versions(agent.id).await.len(), 1);
    // The card changes before the catalog does, and counts when the catalog has followed.
    site.origin
        .answer("/a.json", OriginReply::json(other.clone()));
    setup.really_fetch(&site).await;
    assert_eq!(setup.stage.versions(agent.id).await.len(), 1);
    site.origin.answer(ARD, catalog(&[named(&other)]));
    setup.really_fetch(&site).await;
    setup.really_fetch(&site).await;
    assert_eq!(setup.stage.versions(agent.id).await.len(), 2);
}
