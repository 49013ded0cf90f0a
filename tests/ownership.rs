//! Ownership of domains: proofs and their expiry, disputes, opt-out, and actions of owners (docs/publish/prove.md).
//!
//! The registry's own fetcher checks the proofs; only the name server and the clock are scripted.

mod approval;
mod authority_urns;
mod bulk;
mod coverage;
mod credential_fetches;
mod dispute;
mod dns_records;
mod followers;
mod inline_cards;
mod lasting_names;
mod opt_out;
mod other_accounts;
mod outage;
mod over_tls;
mod owner;
mod owner_changes;
mod owner_vouch;
mod peer_candidates;
mod rate_limits;
mod recorded_sources;
mod source_credentials;
mod tls_site;
mod url_catalogs;
mod ways;
mod withdrawal;

use std::sync::Arc;

use a2a_crawler::dns::{TxtLookup, TxtRecords};
use a2a_registry_api::{Deprecate, DomainView, NewToken, Registration};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::register;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::error::AppError;
use a2a_registry_core::ownership::verify::{lease_due_domain_check, run_leased_domain_check};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use time::Duration;
use uuid::Uuid;

use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::static_resolver::StaticResolver;

const DOMAIN: &str = "travel.agents-test.com";
const STANDING: &str = "_a2a-registry.travel.agents-test.com";

fn moved() -> Deprecate {
    Deprecate {
        reason: "moved".into(),
        ..Deprecate::default()
    }
}

/// A registry with a scripted name server.
pub(crate) struct OwnershipSetup {
    pub(crate) registry: InProcessRegistry,
    names: Arc<StaticResolver>,
}

impl OwnershipSetup {
    async fn new(url: &str) -> Self {
        Self::with_registry(InProcessRegistry::new(url).await)
    }

    /// A setup of that registry, whose DNS names a test can change.
    pub(crate) fn with_registry(registry: InProcessRegistry) -> Self {
        let names = registry.resolver.clone();
        Self { registry, names }
    }

    /// A publisher account with that name.
    pub(crate) async fn create_publisher(&self, name: &str) -> Caller {
        let new = NewToken {
            account: name.into(),
            role: Some(Role::Publisher),
            name: "a test".into(),
            ..NewToken::default()
        };
        let made = token_create(&self.registry.app, &self.registry.admin, &new)
            .await
            .unwrap();
        authenticate_token(&self.registry.app, &made.secret)
            .await
            .unwrap()
    }

    pub(crate) async fn register(&self, caller: &Caller, domain: &str) -> DomainView {
        let what = Registration {
            domain: Some(domain.into()),
            ..Registration::default()
        };
        register::register_domain(&self.registry.app, caller, &what)
            .await
            .unwrap()
    }

    /// Places a TXT record at a name, replacing the records there.
    pub(crate) fn place_record(&self, name: &str, text: &str) {
        let mut records = TxtRecords::default();
        records.push([text]);
        self.names.set_texts(name, TxtLookup::Records(records));
    }

    /// Places several TXT records at a name, replacing the records there.
    fn place_records<'a>(&self, name: &str, texts: impl IntoIterator<Item = &'a str>) {
        let mut records = TxtRecords::default();
        for text in texts {
            records.push([text]);
        }
        self.names.set_texts(name, TxtLookup::Records(records));
    }

    fn remove(&self, name: &str) {
        self.names.set_texts(name, TxtLookup::Absent);
    }

    /// Places the standing record from an account's view: the first record in it.
    pub(crate) fn place_standing_record(&self, view: &DomainView) {
        let challenge = &view.challenges[0];
        self.place_record(
            challenge.name.as_ref().unwrap(),
            challenge.value.as_ref().unwrap(),
        );
    }

    /// Makes all due checks a day and a bit later; returns the domain's state.
    async fn next_day(&self) -> String {
        self.registry.advance(Duration::hours(27));
        self.run_due_checks().await;
        self.state().await
    }

    /// Makes all due and permitted checks; returns their number.
    async fn run_due_checks(&self) -> usize {
        let app = &self.registry.app;
        let mut count = 0;
        while let Some(check) = lease_due_domain_check(app).await.unwrap() {
            run_leased_domain_check(app, &check).await.unwrap();
            count += 1;
        }
        count
    }

    async fn domain_view(&self, caller: &Caller) -> DomainView {
        domain_show(&self.registry.app, caller, DOMAIN)
            .await
            .unwrap()
    }

    async fn state(&self) -> String {
        self.domain_view(&self.registry.admin)
            .await
            .state
            .to_string()
    }

    /// An account that has proved the domain, with an agent that a curator approved.
    async fn prove_with_agent(&self) -> (Caller, Uuid) {
        let owner = self.create_publisher("acme").await;
        let view = self.register(&owner, DOMAIN).await;
        self.registry
            .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
            .await;
        self.place_standing_record(&view);
        let found = domain_verify(&self.registry.app, &owner, DOMAIN)
            .await
            .unwrap();
        assert_eq!(
            found.domain.state.as_str(),
            "verified",
            "{:#?}",
            found.checks
        );
        (owner, self.registry.agent(DOMAIN).await.id)
    }

    async fn verify(&self, caller: &Caller) -> Result<Vec<(String, String)>, AppError> {
        let found = domain_verify(&self.registry.app, caller, DOMAIN).await?;
        Ok(found
            .checks
            .into_iter()
            .map(|check| (check.outcome.to_string(), check.place))
            .collect())
    }
}
