//! Fetches with credentials, over TLS: what an origin gets, and what an attacker with the database does not.

use std::path::PathBuf;

use a2a_crawler::VisitOutcome;
use a2a_registry_api::{NewOwnerVouch, Recrawl, Registration};
use a2a_registry_core::config::AllowPorts;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::database_frontier;
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::domains::owner_vouch::vouch_for_domain_owner;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::source_credential::set_source_credential;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_store::Executor as _;
use a2a_registry_store::source_credentials::source_credentials_after;
use sea_orm::ConnectionTrait as _;
use serde_json::json;
use tempfile::{NamedTempFile, TempDir};
use time::Duration;

use super::source_credentials::{SECRET, bearer, key_file};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};
use crate::support::origin::{Origin, OriginReply, ReceivedRequest};
use crate::support::tls::{Authority, TlsFront};

const ONE: &str = "/one.json";
const TWO: &str = "/two.json";
const CATALOG: &str = "/.well-known/ard.json";

both_databases!(
    agents_read_with_a_credential_start_as_internal,
    the_cards_of_a_catalog_are_read_with_its_credential,
    a_hostile_redirect_gets_no_credential,
    a_stolen_database_opens_nothing,
    no_process_starts_with_a_key_that_opens_nothing,
    swapped_rows_and_changed_origins_send_nothing
);

/// A registry, and a site with TLS on a port of its own, whose vouched owner is `acme`.
struct SiteSetup {
    ownership: OwnershipSetup,
    acme: Caller,
    authority: Authority,
    origin: Origin,
    /// `host:port` of the site.
    host: String,
    _front: TlsFront,
    _root: NamedTempFile,
    _key: NamedTempFile,
}

impl SiteSetup {
    async fn new(url: &str) -> Self {
        let (authority, root, key) = (
            Authority::new("a site's"),
            NamedTempFile::new().unwrap(),
            key_file(),
        );
        std::fs::write(root.path(), authority.pem()).unwrap();
        let origin = Origin::start();
        let front = TlsFront::bind(
            ([127, 0, 0, 1], 0).into(),
            authority.identity(DOMAIN),
            &origin,
        )
        .await
        .unwrap();
        let registry = InProcessRegistry::with_config(url, |config| {
            config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
            config.crawler.allow_ports = AllowPorts::Word("any".into());
            config.crawler.allow_http = true;
            config.crawler.extra_ca = vec![root.path().to_owned()];
            config.secrets.key_file = Some(key.path().to_owned());
        })
        .await;
        let ownership = OwnershipSetup::with_registry(registry);
        ownership.names.set(DOMAIN, [[127, 0, 0, 1].into()]);
        let acme = ownership.create_publisher("acme").await;
        let port = front.url("").rsplit_once(':').unwrap().1.to_owned();
        Self {
            ownership,
            acme,
            authority,
            origin,
            host: format!("{DOMAIN}:{port}"),
            _front: front,
            _root: root,
            _key: key,
        }
    }

    fn registry(&self) -> &InProcessRegistry {
        &self.ownership.registry
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.host)
    }

    async fn register(&self, url: &str) {
        let registration = Registration {
            card_url: Some(url.into()),
            ..Registration::default()
        };
        let app = &self.registry().app;
        register_domain(app, &self.acme, &registration)
            .await
            .unwrap();
    }

    async fn vouch(&self) {
        let vouch = NewOwnerVouch {
            account: "acme".into(),
            reason: "ticket 7".into(),
            expires_in_days: None,
        };
        let (app, admin) = (&self.registry().app, &self.registry().admin);
        vouch_for_domain_owner(app, admin, &self.host, &vouch)
            .await
            .unwrap();
    }

    async fn set_bearer(&self, url: &str) {
        let app = &self.registry().app;
        let view = domain_show(app, &self.acme, &self.host).await.unwrap();
        let mut sources = view.sources.into_iter();
        let id = sources.find(|source| source.url == url).unwrap().id;
        set_source_credential(app, &self.acme, &self.host, &id, &bearer())
            .await
            .unwrap();
    }

    /// Fetches every source of the site with the crawler's own requests, and ingests what it finds.
    async fn visit(&self) {
        let registry = self.registry();
        registry.advance(Duration::minutes(2));
        let recrawl = Recrawl { full: true };
        domain_recrawl(&registry.app, &registry.admin, &self.host, &recrawl)
            .await
            .unwrap();
        let frontier = database_frontier(&registry.app, std::time::Duration::from_secs(60));
        let visits = frontier.lease_visits(10).await.unwrap();
        assert_eq!(visits.len(), 1);
        let fetcher = &registry.app.network.fetcher;
        let mut group = Vec::new();
        for visit in visits {
            let mut sources = Vec::new();
            for task in &visit.sources {
                sources.push(fetcher.fetch_source(task).await);
            }
            group.push(VisitOutcome {
                domain_key: visit.domain_key,
                lease_token: visit.lease_token,
                sources,
            });
        }
        ingest_outcomes(&registry.app, &group).await.unwrap();
    }

    /// How many requests to this path came with the credential, and without.
    fn requests(&self, path: &str) -> (usize, usize) {
        let expected = format!("Bearer {SECRET}");
        let is_authorized =
            |request: &ReceivedRequest| request.header("authorization") == Some(&expected);
        let requests = self.origin.requests_to(path);
        let with = requests.iter().filter(|one| is_authorized(one)).count();
        (with, requests.len() - with)
    }

    async fn execute(&self, statement: &str) {
        let store = &self.registry().store;
        let done = store.connection().execute_unprepared(statement).await;
        assert!(done.unwrap().rows_affected() > 0, "{statement}");
    }

    /// Replaces the process by one with another key file.
    async fn restart_with_key(self, key: Option<PathBuf>) -> Self {
        let Self {
            ownership,
            acme,
            authority,
            origin,
            host,
            _front,
            _root,
            _key,
        } = self;
        let OwnershipSetup { registry, names } = ownership;
        drop(names);
        let configure = |config: &mut a2a_registry_core::config::Config| {
            config.secrets.key_file = key;
        };
        let registry = registry.restart(configure).await;
        Self {
            ownership: OwnershipSetup::with_registry(registry),
            acme,
            authority,
            origin,
            host,
            _front,
            _root,
            _key,
        }
    }
}

fn card(name: &str) -> OriginReply {
    OriginReply::json(card_bytes(name, "Books flights"))
}

async fn agents_read_with_a_credential_start_as_internal(url: &str) {
    let setup = SiteSetup::new(url).await;
    setup.origin.set_reply(ONE, card("Protected"));
    setup.register(&setup.url(ONE)).await;
    setup.vouch().await;
    setup.set_bearer(&setup.url(ONE)).await;
    setup.visit().await;
    assert_eq!(setup.requests(ONE), (1, 0));
    let registry = setup.registry();
    let agent = registry.agent(&setup.host).await;
    assert_eq!(agent.visibility, Visibility::Internal);
    registry.approve_open_review(agent.id).await;
    registry.catch_up().await;
    assert!(registry.publicly_found_ids().await.is_empty());

    // Another one, which everyone can read, is for everyone.
    setup.origin.set_reply(TWO, card("Open"));
    setup.register(&setup.url(TWO)).await;
    setup.visit().await;
    assert_eq!(setup.requests(TWO), (0, 1));
    let agents = registry.agents().await;
    let other = agents.iter().find(|row| row.id != agent.id).unwrap();
    assert_eq!(other.visibility, Visibility::Public);
    let view = domain_show(&registry.app, &setup.acme, &setup.host)
        .await
        .unwrap();
    for source in &view.sources {
        let is_protected = source.url == setup.url(ONE);
        assert_eq!(source.credential.is_some(), is_protected, "{source:?}");
    }
    registry.assert_index_matches_database().await;
}

/// With the credential of the catalog, on its own origin; the catalog's other places are public.
async fn the_cards_of_a_catalog_are_read_with_its_credential(url: &str) {
    let setup = SiteSetup::new(url).await;
    let entry = json!({"identifier": "one", "displayName": "One",
        "type": "application/a2a-agent-card+json", "url": setup.url(ONE)});
    let catalog = json!({"specVersion": "1.0", "entries": [entry]}).to_string();
    setup.origin.set_reply(CATALOG, OriginReply::json(catalog));
    setup.origin.set_reply(ONE, card("Listed"));
    setup.register(&setup.url(CATALOG)).await;
    setup.vouch().await;
    setup.set_bearer(&setup.url(CATALOG)).await;
    setup.visit().await;
    setup.visit().await;
    let (with, without) = setup.requests(ONE);
    assert!(with >= 1 && without == 0, "{with} {without}");
    assert_eq!(setup.requests(CATALOG).1, 0);
    let agent = setup.registry().agent(&setup.host).await;
    assert_eq!(agent.visibility, Visibility::Internal);
}

/// Neither another port of the same host, whose card is read without it, nor plain http, nor another site.
async fn a_hostile_redirect_gets_no_credential(url: &str) {
    let setup = SiteSetup::new(url).await;
    let (hostile, plain) = (Origin::start(), Origin::start());
    hostile.set_reply(TWO, card("Elsewhere"));
    plain.set_reply(TWO, card("Plain"));
    let front = TlsFront::bind(
        ([127, 0, 0, 1], 0).into(),
        setup.authority.identity(DOMAIN),
        &hostile,
    )
    .await
    .unwrap();
    let port = front.url("").rsplit_once(':').unwrap().1.to_owned();
    setup.register(&setup.url(ONE)).await;
    setup.vouch().await;
    setup.set_bearer(&setup.url(ONE)).await;
    let plain_port = plain.address().port();
    for target in [
        format!("https://{DOMAIN}:{port}{TWO}"),
        format!("http://{DOMAIN}:{plain_port}{TWO}"),
        plain.url(TWO),
        format!("https://elsewhere.example.org{TWO}"),
    ] {
        setup.origin.set_reply(ONE, OriginReply::redirect(&target));
        setup.visit().await;
    }
    assert_eq!(setup.requests(ONE), (4, 0));
    assert!(!hostile.requests_to(TWO).is_empty());
    for received in [hostile.requests_to(TWO), plain.requests_to(TWO)].concat() {
        assert!(!format!("{received:?}").contains("hush"), "{received:?}");
    }
}

async fn a_stolen_database_opens_nothing(url: &str) {
    let setup = SiteSetup::new(url).await;
    setup.origin.set_reply(ONE, card("Protected"));
    setup.register(&setup.url(ONE)).await;
    setup.vouch().await;
    setup.set_bearer(&setup.url(ONE)).await;
    let rows = source_credentials_after(&setup.registry().store, 0, 10).await;
    assert!(!format!("{rows:?}").contains("hush"), "{rows:?}");

    // The thief's registry without a key starts, and sends nothing.
    let own_key = setup._key.path().to_owned();
    let thief = setup.restart_with_key(None).await;
    thief.visit().await;
    assert_eq!(thief.requests(ONE), (0, 0), "nothing is fetched without it");
    let app = &thief.registry().app;
    let view = domain_show(app, &thief.acme, &thief.host).await.unwrap();
    let attempt = view.sources[0].last_attempt.as_ref().unwrap();
    assert_eq!(attempt.outcome, "forbidden");
    assert!(attempt.detail.contains("no key"), "{attempt:?}");

    let owner = thief.restart_with_key(Some(own_key)).await;
    owner.visit().await;
    assert_eq!(owner.requests(ONE), (1, 0));
}

/// Otherwise every source would fail until somebody reads why, and new secrets would be sealed with the wrong key.
async fn no_process_starts_with_a_key_that_opens_nothing(url: &str) {
    let setup = SiteSetup::new(url).await;
    setup.register(&setup.url(ONE)).await;
    setup.vouch().await;
    setup.set_bearer(&setup.url(ONE)).await;
    let folder = TempDir::new().unwrap();
    let other_key = folder.path().join("other.key");
    std::fs::write(&other_key, format!("{}CAg=\n", "CAgI".repeat(10))).unwrap();
    let registry = setup.ownership.registry;
    let refusal = registry
        .start_refusal(|config| config.secrets.key_file = Some(other_key))
        .await;
    for words in ["secrets.key_file", "other.key", "put the earlier file back"] {
        assert!(refusal.contains(words), "{refusal}");
    }
    assert_eq!(refusal.lines().count(), 1, "{refusal}");
}

async fn swapped_rows_and_changed_origins_send_nothing(url: &str) {
    let setup = SiteSetup::new(url).await;
    setup.origin.set_reply(ONE, card("One"));
    setup.origin.set_reply(TWO, card("Two"));
    for path in [ONE, TWO] {
        setup.register(&setup.url(path)).await;
    }
    setup.vouch().await;
    for path in [ONE, TWO] {
        setup.set_bearer(&setup.url(path)).await;
    }
    setup
        .execute(
            "UPDATE source_credentials SET sealed = (SELECT sealed FROM source_credentials \
             ORDER BY id LIMIT 1)",
        )
        .await;
    setup.visit().await;
    assert_eq!(setup.requests(ONE), (1, 0));
    assert_eq!(
        setup.requests(TWO),
        (0, 0),
        "it was sealed for another source"
    );

    // The source is moved to plain http, in one column and then in both.
    let moved = "replace(url, 'https:', 'http:')";
    setup
        .execute(&format!(
            "UPDATE sources SET url = {moved}, validator_url = NULL"
        ))
        .await;
    setup.visit().await;
    setup
        .execute("UPDATE source_credentials SET origin = replace(origin, 'https:', 'http:')")
        .await;
    setup.visit().await;
    assert_eq!((setup.requests(ONE), setup.requests(TWO)), ((1, 0), (0, 0)));
}
