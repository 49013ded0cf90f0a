//! Credentials of sources: who may set them, and what ends them.

use std::time::Duration as StdDuration;

use a2a_registry_api::{
    DomainView, NewGeneration, NewOwnerVouch, NewSourceCredential, NewToken, Recrawl, Registration,
    SourceCredentialView, Transfer,
};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::crawl::job::database_frontier;
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::domains::owner_actions::domain_transfer;
use a2a_registry_core::domains::owner_vouch::{vouch_for_domain_owner, withdraw_owner_vouch};
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::source_credential::{
    remove_source_credential, set_source_credential,
};
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::{domain_delete, source_withdraw};
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::health::housekeeping::delete_expired_rows;
use a2a_registry_core::ownership::owner_vouches::end_owner_vouches;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::source::CredentialKind;
use a2a_registry_store::events::events_after;
use a2a_registry_store::source_credentials::source_credentials_after;
use tempfile::NamedTempFile;
use time::Duration;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

/// A port that cannot be proved, and the card there.
const HOST: &str = "travel.agents-test.com:8443";
const CARD: &str = "https://travel.agents-test.com:8443/card.json";
const WELL_KNOWN: &str = "https://travel.agents-test.com/";
pub(super) const SECRET: &str = "hush-0123456789";

both_databases!(
    an_owner_and_an_admin_set_credentials_and_nobody_else,
    what_is_malformed_or_not_over_https_is_refused,
    it_ends_with_the_owner_of_a_proved_domain,
    it_ends_with_the_vouch_for_an_owner,
    it_ends_with_its_source,
    without_a_key_none_is_set,
    no_event_and_no_view_has_a_secret
);

/// A file with a key of secrets.
pub(super) fn key_file() -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    let key = format!("{}Bwc=\n", "BwcH".repeat(10));
    std::fs::write(file.path(), key).unwrap();
    file
}

pub(super) fn bearer() -> NewSourceCredential {
    NewSourceCredential {
        kind: CredentialKind::Bearer,
        name: None,
        secret: SECRET.to_owned().into(),
        token_url: None,
        scope: None,
    }
}

/// A registry with a key, which reaches every port.
struct CredentialSetup {
    ownership: OwnershipSetup,
    _key: NamedTempFile,
}

impl CredentialSetup {
    async fn new(url: &str) -> Self {
        let key = key_file();
        let configure = |config: &mut Config| {
            config.secrets.key_file = Some(key.path().to_owned());
            config.crawler.allow_ports = AllowPorts::Word("any".into());
            config.crawler.allow_http = true;
        };
        let registry = InProcessRegistry::with_config(url, configure).await;
        Self {
            ownership: OwnershipSetup::with_registry(registry),
            _key: key,
        }
    }

    fn registry(&self) -> &InProcessRegistry {
        &self.ownership.registry
    }

    async fn account(&self, name: &str, role: Role) -> Caller {
        let new = NewToken {
            account: name.into(),
            role: Some(role),
            name: "a test".into(),
            ..NewToken::default()
        };
        let (app, admin) = (&self.registry().app, &self.registry().admin);
        let made = token_create(app, admin, &new).await.unwrap();
        authenticate_token(app, &made.secret).await.unwrap()
    }

    async fn register_card(&self, caller: &Caller, url: &str) {
        let registration = Registration {
            card_url: Some(url.into()),
            ..Registration::default()
        };
        register_domain(&self.registry().app, caller, &registration)
            .await
            .unwrap();
    }

    async fn vouch_for(&self, account: &str) {
        let vouch = NewOwnerVouch {
            account: account.into(),
            reason: "ticket 7".into(),
            expires_in_days: None,
        };
        let (app, admin) = (&self.registry().app, &self.registry().admin);
        vouch_for_domain_owner(app, admin, HOST, &vouch)
            .await
            .unwrap();
    }

    async fn view(&self, caller: &Caller, domain: &str) -> DomainView {
        domain_show(&self.registry().app, caller, domain)
            .await
            .unwrap()
    }

    /// The id of the source with that URL.
    async fn source(&self, domain: &str, url: &str) -> String {
        let view = self.view(&self.registry().admin, domain).await;
        let mut sources = view.sources.into_iter();
        sources.find(|source| source.url == url).unwrap().id
    }

    async fn set(
        &self,
        caller: &Caller,
        (domain, url): (&str, &str),
        credential: &NewSourceCredential,
    ) -> Result<SourceCredentialView, AppError> {
        let source = self.source(domain, url).await;
        let app = &self.registry().app;
        set_source_credential(app, caller, domain, &source, credential).await
    }

    async fn count(&self) -> usize {
        let all = source_credentials_after(&self.registry().store, 0, 100).await;
        all.unwrap().len()
    }

    /// The number of sources that the crawler fetches with a credential on its next visit of the domain.
    async fn sent(&self, domain: &str) -> usize {
        let registry = self.registry();
        registry.advance(Duration::minutes(2));
        let recrawl = Recrawl { full: false };
        domain_recrawl(&registry.app, &registry.admin, domain, &recrawl)
            .await
            .unwrap();
        let frontier = database_frontier(&registry.app, StdDuration::from_secs(60));
        let visits = frontier.lease_visits(100).await.unwrap();
        let tasks = visits.iter().filter(|visit| visit.domain == domain);
        let tasks = tasks.flat_map(|visit| &visit.sources);
        let sent = tasks.filter(|task| task.credential.is_some()).count();
        frontier
            .release_visits(visits, StdDuration::ZERO)
            .await
            .unwrap();
        sent
    }

    /// The reasons for which credentials were removed.
    async fn ends(&self) -> Vec<String> {
        let page = events_after(&self.registry().store, 0, 1000).await.unwrap();
        let removed = page
            .into_iter()
            .filter(|event| event.kind == EventKind::DomainCredentialRemoved);
        removed
            .map(|event| {
                let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
                data["reason"].as_str().unwrap().to_owned()
            })
            .collect()
    }
}

async fn an_owner_and_an_admin_set_credentials_and_nobody_else(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let acme = setup.account("acme", Role::Publisher).await;
    let curator = setup.account("curator", Role::Curator).await;
    let stranger = setup.account("stranger", Role::Publisher).await;
    setup.register_card(&acme, CARD).await;
    let at = (HOST, CARD);
    for (caller, expected) in [
        (&acme, ErrorKind::Forbidden),
        (&curator, ErrorKind::Forbidden),
        (&stranger, ErrorKind::NotFound),
        (&Caller::default(), ErrorKind::NotFound),
    ] {
        let refused = setup.set(caller, at, &bearer()).await.unwrap_err();
        assert_eq!(refused.kind, expected, "{refused:?}");
    }
    assert_eq!(setup.count().await, 0);
    assert_eq!(setup.sent(HOST).await, 0);

    setup.vouch_for("acme").await;
    let view = setup.set(&acme, at, &bearer()).await.unwrap();
    assert_eq!(view.kind, CredentialKind::Bearer);
    assert_eq!(view.origin, "https://travel.agents-test.com:8443");
    assert_eq!(view.set_by.as_deref(), Some("acme"));
    assert_eq!(setup.sent(HOST).await, 1);
    let admin = &setup.registry().admin;
    setup.set(admin, at, &bearer()).await.unwrap();
    assert_eq!(setup.count().await, 1, "the second one replaces the first");

    let source = setup.source(HOST, CARD).await;
    let app = &setup.registry().app;
    for caller in [&curator, &stranger] {
        let refused = remove_source_credential(app, caller, HOST, &source).await;
        assert!(refused.is_err());
    }
    remove_source_credential(app, &acme, HOST, &source)
        .await
        .unwrap();
    let again = remove_source_credential(app, &acme, HOST, &source).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(setup.sent(HOST).await, 0);
    assert_eq!(setup.ends().await, ["removed"]);
}

async fn what_is_malformed_or_not_over_https_is_refused(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let admin = &setup.registry().admin;
    let plain = "http://travel.agents-test.com:8080/card.json";
    setup.register_card(admin, CARD).await;
    setup.register_card(admin, plain).await;
    let refused = setup
        .set(admin, ("travel.agents-test.com:8080", plain), &bearer())
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");

    let with = |kind, name: Option<&str>, secret: &str| NewSourceCredential {
        kind,
        name: name.map(str::to_owned),
        secret: secret.to_owned().into(),
        token_url: None,
        scope: None,
    };
    let client = |token_url: &str| NewSourceCredential {
        token_url: Some(token_url.into()),
        ..with(CredentialKind::ClientCredentials, Some("id"), SECRET)
    };
    for malformed in [
        with(CredentialKind::Bearer, None, "a\r\nHost: b"),
        with(CredentialKind::Bearer, Some("name"), SECRET),
        with(CredentialKind::Basic, Some("a:b"), SECRET),
        with(CredentialKind::Basic, None, SECRET),
        with(CredentialKind::Header, Some("Host"), SECRET),
        with(CredentialKind::Header, Some("Cookie"), SECRET),
        with(CredentialKind::Header, Some("X-Forwarded-For"), SECRET),
        with(CredentialKind::Header, Some("X-Api-Key"), "hush\n"),
        with(CredentialKind::ClientCredentials, Some("id"), SECRET),
        client("http://login.agents-test.com/token"),
        client("https://login.example.org/token"),
        client("https://user:hush@login.agents-test.com/token"),
        client("https://169.254.169.254/token"),
        NewSourceCredential {
            scope: Some("cards".into()),
            ..bearer()
        },
    ] {
        let refused = setup.set(admin, (HOST, CARD), &malformed).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{malformed:?}: {error:?}");
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
    let permitted = client("https://login.agents-test.com/token");
    setup.set(admin, (HOST, CARD), &permitted).await.unwrap();
    assert_eq!(setup.count().await, 1);
}

async fn it_ends_with_the_owner_of_a_proved_domain(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let ownership = &setup.ownership;
    let (owner, _) = ownership.prove_with_agent().await;
    let other = setup.account("other", Role::Publisher).await;
    let (app, admin) = (&setup.registry().app, &setup.registry().admin);
    let at = (DOMAIN, WELL_KNOWN);

    setup.set(&owner, at, &bearer()).await.unwrap();
    assert_eq!(setup.sent(DOMAIN).await, 1);
    let transfer = Transfer {
        account: "other".into(),
    };
    domain_transfer(app, &owner, DOMAIN, &transfer)
        .await
        .unwrap();
    assert_eq!((setup.count().await, setup.sent(DOMAIN).await), (0, 0));

    // What an admin sets while nobody owns the domain ends when somebody proves it.
    setup.set(admin, at, &bearer()).await.unwrap();
    let view = setup.view(&other, DOMAIN).await;
    ownership.place_standing_record(&view);
    domain_verify(app, &other, DOMAIN).await.unwrap();
    assert_eq!(ownership.state().await, "verified");
    assert_eq!(setup.count().await, 0);

    setup.set(&other, at, &bearer()).await.unwrap();
    ownership.remove(STANDING);
    let mut days = 0;
    while ownership.next_day().await != "lapsed" {
        days += 1;
        assert!(days < 30, "it does not lapse");
    }
    assert_eq!((setup.count().await, setup.sent(DOMAIN).await), (0, 0));

    setup.set(admin, at, &bearer()).await.unwrap();
    let why = NewGeneration {
        reason: "sold".into(),
    };
    domain_new_generation(app, admin, DOMAIN, &why)
        .await
        .unwrap();
    assert_eq!(setup.count().await, 0);

    setup.set(admin, at, &bearer()).await.unwrap();
    domain_delete(app, admin, DOMAIN).await.unwrap();
    assert_eq!(setup.count().await, 0);
    let changed = "the owner of the domain has changed";
    let expected = [
        "transferred",
        changed,
        changed,
        changed,
        "the domain was deleted",
    ];
    assert_eq!(setup.ends().await, expected);
}

async fn it_ends_with_the_vouch_for_an_owner(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let acme = setup.account("acme", Role::Publisher).await;
    setup.register_card(&acme, CARD).await;
    let (app, admin) = (&setup.registry().app, &setup.registry().admin);
    let at = (HOST, CARD);

    setup.vouch_for("acme").await;
    setup.set(&acme, at, &bearer()).await.unwrap();
    // A longer vouch for the same account changes nothing.
    setup.vouch_for("acme").await;
    assert_eq!(setup.sent(HOST).await, 1);
    withdraw_owner_vouch(app, admin, HOST).await.unwrap();
    assert_eq!((setup.count().await, setup.sent(HOST).await), (0, 0));

    setup.vouch_for("acme").await;
    setup.set(&acme, at, &bearer()).await.unwrap();
    setup.registry().advance(Duration::days(181));
    assert_eq!(setup.sent(HOST).await, 0, "an expired vouch sends nothing");
    let view = setup.view(admin, HOST).await;
    assert!(
        view.sources
            .iter()
            .all(|source| source.credential.is_none())
    );
    end_owner_vouches(app).await.unwrap();
    assert_eq!(setup.count().await, 0);
    assert_eq!(setup.ends().await.len(), 2);
}

async fn it_ends_with_its_source(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let admin = &setup.registry().admin;
    setup.register_card(admin, CARD).await;
    setup.set(admin, (HOST, CARD), &bearer()).await.unwrap();
    let source = setup.source(HOST, CARD).await;
    let app = &setup.registry().app;
    source_withdraw(app, admin, HOST, &source).await.unwrap();
    setup.register_card(admin, CARD).await;
    assert_eq!(setup.sent(HOST).await, 0, "it is another source");
    delete_expired_rows(app).await.unwrap();
    assert_eq!(setup.count().await, 0);
}

/// SQLite makes a key at the first start; the processes on a PostgreSQL must be given the same one.
async fn without_a_key_none_is_set(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.crawler.allow_ports = AllowPorts::Word("any".into());
    })
    .await;
    let key = registry.app.config().secrets_key_file();
    registry.register_card_url(CARD).await;
    let view = domain_show(&registry.app, &registry.admin, HOST)
        .await
        .unwrap();
    let mut sources = view.sources.into_iter();
    let source = sources.find(|source| source.url == CARD).unwrap().id;
    let set = set_source_credential(&registry.app, &registry.admin, HOST, &source, &bearer()).await;
    let Some(key) = key else {
        let refused = set.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert!(refused.public.contains("secrets.key_file"), "{refused:?}");
        return;
    };
    set.unwrap();
    assert!(key.ends_with("secrets.key"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // While something is sealed with the lost key, no other one takes its place.
    let lost = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let registry = registry.restart(|_| ()).await;
    assert!(registry.app.secrets.is_none() && !key.exists());
    let set = set_source_credential(&registry.app, &registry.admin, HOST, &source, &bearer()).await;
    assert_eq!(set.unwrap_err().kind, ErrorKind::Conflict);
    std::fs::write(&key, lost).unwrap();
    let registry = registry.restart(|_| ()).await;
    assert!(registry.app.secrets.is_some());
}

async fn no_event_and_no_view_has_a_secret(url: &str) {
    let setup = CredentialSetup::new(url).await;
    let (owner, _) = setup.ownership.prove_with_agent().await;
    let at = (DOMAIN, WELL_KNOWN);
    setup.set(&owner, at, &bearer()).await.unwrap();
    setup
        .registry()
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Travel", "Books flights")),
        )
        .await;
    let store = &setup.registry().store;
    let rows = source_credentials_after(store, 0, 10).await.unwrap();
    let events = events_after(store, 0, 1000).await.unwrap();
    let mut set_events = events
        .iter()
        .filter(|event| event.kind == EventKind::DomainCredentialSet);
    let data = &set_events.next().unwrap().data;
    assert!(
        data.contains("bearer") && data.contains(WELL_KNOWN),
        "{data}"
    );
    let views = [
        serde_json::to_string(&setup.view(&owner, DOMAIN).await).unwrap(),
        serde_json::to_string(&setup.view(&setup.registry().admin, DOMAIN).await).unwrap(),
    ];
    assert!(
        views[0].contains("\"credential\":{\"kind\":\"bearer\""),
        "{}",
        views[0]
    );
    for shown in [format!("{rows:?}"), format!("{events:?}"), views.concat()] {
        assert!(!shown.contains("hush"), "{shown}");
    }
}
