//! Rate limits of proof checks: a host gets no more requests than from visits.

use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::visits::leases::record_domain_networks;
use a2a_registry_store::domains;
use a2a_registry_store::entity::domain;
use time::Duration;

use super::tls_site::{ProofFile, TlsSite};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{OriginResponse, card_bytes};
use crate::support::origin::OriginReply;

impl OwnershipSetup {
    async fn row(&self) -> domain::Model {
        let row = domains::domain_by_name(&self.registry.store, DOMAIN).await;
        row.unwrap().unwrap()
    }

    /// Lets the registry learn the address block of the site.
    async fn network_is_known(&self) {
        let network = [(self.row().await.id, "192.0.2.0/24".into())];
        record_domain_networks(&self.registry.app, &network)
            .await
            .unwrap();
    }
}

both_databases!(
    a_host_rests_between_a_visit_and_a_check,
    a_host_that_sends_retry_after_is_left_alone
);

/// The proof file of a domain is fetched once the first visit is over and the host has rested; its name server is
/// queried at once. The visit after that check waits likewise.
async fn a_host_rests_between_a_visit_and_a_check(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::at_site(url, &site).await;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let file = ProofFile::from_view(&view);
    let path = file.path.as_str();
    site.origin.set_reply(
        path,
        OriginReply::json(file.body).with_header("content-type", "text/plain"),
    );

    assert_eq!(setup.run_due_checks().await, 1);
    let checks = setup.domain_view(&acme).await.checks;
    assert!(
        !checks.is_empty()
            && checks
                .iter()
                .all(|check| check.method.as_str().starts_with("dns")),
        "{checks:?}"
    );
    assert_eq!(site.origin.requests_to(path).len(), 0);
    setup
        .registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    setup.network_is_known().await;
    setup.registry.advance(Duration::seconds(59));
    assert_eq!(setup.run_due_checks().await, 0);
    setup.registry.advance(Duration::seconds(2));
    assert_eq!(setup.run_due_checks().await, 1);
    assert_eq!(site.origin.requests_to(path).len(), 1);
    assert_eq!(setup.state().await, "verified");

    let request = a2a_registry_api::Recrawl::default();
    let accepted = domain_recrawl(&setup.registry.app, &acme, DOMAIN, &request)
        .await
        .unwrap();
    assert_eq!(accepted.next_due.0, setup.row().await.not_before);
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        0
    );
    setup.registry.advance(Duration::seconds(60));
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        1
    );
}

/// A server that answers a proof fetch with `Retry-After` gets no more requests in that check, and neither visits nor
/// checks until it has rested.
async fn a_host_that_sends_retry_after_is_left_alone(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::at_site(url, &site).await;
    let (acme, other) = (
        setup.create_publisher("acme").await,
        setup.create_publisher("other").await,
    );
    let mut paths = Vec::new();
    for account in [&acme, &other] {
        let view = setup.register(account, DOMAIN).await;
        let path = ProofFile::from_view(&view).path;
        site.origin.set_reply(
            &path,
            OriginReply::status(429).with_header("retry-after", "600"),
        );
        paths.push(path);
    }
    let asked = || {
        paths
            .iter()
            .map(|path| site.origin.requests_to(path).len())
            .sum::<usize>()
    };

    assert_eq!(setup.run_due_checks().await, 1);
    setup
        .registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    setup.registry.advance(Duration::seconds(61));
    assert_eq!(setup.run_due_checks().await, 1);
    assert_eq!(asked(), 1);
    setup.network_is_known().await;
    let request = a2a_registry_api::Recrawl::default();
    domain_recrawl(&setup.registry.app, &acme, DOMAIN, &request)
        .await
        .unwrap();
    setup.registry.advance(Duration::seconds(598));
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        0
    );
    assert_eq!(asked(), 1);
    setup.registry.advance(Duration::seconds(3));
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        1
    );
}
