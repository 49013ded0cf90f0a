//! Opt-out: the crawler looks up `policy=none` before its first request to a host, and obeys it for every account.

use a2a_crawler::dns::TxtLookup;
use a2a_registry_core::config;
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::visits::leases::next_visit_due;
use a2a_registry_server::jobs::database_frontier;
use time::Duration;

use super::tls_site::{ProofFile, TlsSite};
use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const OPT_OUT: &str = "127.0.0.1:8080; policy=none";

/// A setup that allows plain HTTP, any port, and this machine.
async fn permissive_setup(url: &str) -> OwnershipSetup {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.crawler.allow_http = true;
        config.crawler.allow_ports = config::AllowPorts::Word("any".into());
        config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    OwnershipSetup::with_registry(registry)
}

impl OwnershipSetup {
    /// Makes every due visit; returns their number.
    async fn run_due_visits(&self) -> usize {
        self.registry
            .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
            .await
    }

    async fn state_of(&self, domain: &str) -> String {
        let admin = &self.registry.admin;
        domain_show(&self.registry.app, admin, domain)
            .await
            .unwrap()
            .state
            .to_string()
    }
}

both_databases!(
    an_opted_out_domain_is_never_visited,
    every_host_name_can_opt_out_later,
    a_silent_name_server_delays_the_first_visit,
    each_visit_waits_for_its_own_name_server,
    a_name_server_that_never_answers_does_not_exclude_its_domain,
    an_opt_out_after_silence_counts,
    an_ip_address_is_visited_at_once,
    checks_of_proofs_leave_opted_out_hosts_alone
);

/// A domain that opted out before it was registered is never visited, with any port and scheme. Once the record is
/// removed it is visited.
async fn an_opted_out_domain_is_never_visited(url: &str) {
    let setup = permissive_setup(url).await;
    setup.place_record(STANDING, OPT_OUT);
    setup.place_record("_a2a-registry.plain.agents-test.com", OPT_OUT);
    let domains = [
        DOMAIN,
        "travel.agents-test.com:8443",
        "plain.agents-test.com",
    ];
    setup.registry.register_domain(domains[0]).await;
    setup
        .registry
        .register_card_url("https://travel.agents-test.com:8443/card.json")
        .await;
    setup
        .registry
        .register_card_url("http://plain.agents-test.com/card.json")
        .await;
    assert_eq!(setup.run_due_visits().await, 0);
    for domain in domains {
        assert_eq!(setup.state_of(domain).await, "opted_out", "{domain}");
    }
    assert_eq!(next_visit_due(&setup.registry.app).await.unwrap(), None);
    setup.next_day().await;
    assert_eq!(setup.run_due_visits().await, 0);

    setup.remove(STANDING);
    setup.remove("_a2a-registry.plain.agents-test.com");
    setup.next_day().await;
    for domain in domains {
        assert_eq!(setup.state_of(domain).await, "unverified", "{domain}");
    }
    assert_eq!(setup.run_due_visits().await, domains.len());
}

/// A domain that opts out later is checked every day, with any port and scheme.
async fn every_host_name_can_opt_out_later(url: &str) {
    let setup = permissive_setup(url).await;
    setup
        .registry
        .register_card_url("https://travel.agents-test.com:8443/card.json")
        .await;
    setup
        .registry
        .register_card_url("http://plain.agents-test.com/card.json")
        .await;
    assert_eq!(
        setup.run_due_visits().await,
        2,
        "no record forbids the first visit"
    );
    setup.place_record(STANDING, OPT_OUT);
    setup.place_record("_a2a-registry.plain.agents-test.com", OPT_OUT);
    setup.registry.advance(Duration::hours(27));
    setup.run_due_checks().await;
    for domain in ["travel.agents-test.com:8443", "plain.agents-test.com"] {
        assert_eq!(setup.state_of(domain).await, "opted_out", "{domain}");
    }
    assert_eq!(setup.run_due_visits().await, 0);
}

/// A name server that does not answer gives no permission: the first visit waits until it does.
async fn a_silent_name_server_delays_the_first_visit(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup
        .names
        .set_texts(STANDING, TxtLookup::Failed("SERVFAIL".into()));
    setup.registry.register_domain(DOMAIN).await;
    for _ in 0..3 {
        assert_eq!(setup.run_due_visits().await, 0);
        setup.registry.advance(Duration::minutes(1));
    }
    assert_eq!(
        setup.state_of(DOMAIN).await,
        "unverified",
        "no opt-out was found"
    );
    // A requested visit waits for the response as well.
    let recrawl = a2a_registry_api::Recrawl::default();
    domain_recrawl(&setup.registry.app, &setup.registry.admin, DOMAIN, &recrawl)
        .await
        .unwrap();
    assert_eq!(setup.run_due_visits().await, 0);
    setup.registry.advance(Duration::minutes(1));
    setup.remove(STANDING);
    assert_eq!(
        setup.run_due_visits().await,
        1,
        "the visit is made once the name server has answered"
    );
}

/// The crawler leases visits without waiting for name servers. Each visit waits for its own, and begins only if nothing
/// forbids it.
async fn each_visit_waits_for_its_own_name_server(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let failed = TxtLookup::Failed("SERVFAIL".into());
    setup
        .names
        .set_texts("_a2a-registry.silent.agents-test.com", failed);
    setup.place_record("_a2a-registry.gone.agents-test.com", OPT_OUT);
    let [silent, gone, open] =
        ["silent", "gone", "open"].map(|one| format!("{one}.agents-test.com"));
    for name in [&silent, &gone, &open] {
        setup.registry.register_domain(name).await;
    }
    let crawler = database_frontier(&setup.registry.app, std::time::Duration::from_secs(600));
    let leased = crawler.lease_visits(64).await.unwrap();
    assert_eq!(leased.len(), 3);
    for visit in &leased {
        let may_begin = crawler.can_start_visit(visit).await.unwrap();
        assert_eq!(may_begin, visit.domain == open, "{}", visit.domain);
    }
    assert_eq!(setup.state_of(&gone).await, "opted_out");
    assert!(crawler.lease_visits(64).await.unwrap().is_empty());
    setup.registry.advance(Duration::minutes(1));
    let again = crawler.lease_visits(64).await.unwrap();
    let names: Vec<&str> = again.iter().map(|visit| visit.domain.as_str()).collect();
    assert_eq!(names, [silent]);
}

/// A name server that never answers does not exclude a domain for good.
async fn a_name_server_that_never_answers_does_not_exclude_its_domain(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup
        .names
        .set_texts(STANDING, TxtLookup::Failed("SERVFAIL".into()));
    setup.registry.register_domain(DOMAIN).await;
    let mut minutes = 0;
    while setup.run_due_visits().await == 0 {
        setup.registry.advance(Duration::minutes(1));
        minutes += 1;
        assert!(minutes < 60, "the first visit is never made");
    }
    assert_eq!(minutes, 15);
}

/// An opt-out found after some silence is honoured like one found at once.
async fn an_opt_out_after_silence_counts(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup
        .names
        .set_texts(STANDING, TxtLookup::Bogus("the signature is wrong".into()));
    setup.registry.register_domain(DOMAIN).await;
    assert_eq!(setup.run_due_visits().await, 0);
    setup.place_record(STANDING, OPT_OUT);
    setup.registry.advance(Duration::minutes(1));
    assert_eq!(setup.run_due_visits().await, 0);
    assert_eq!(setup.state_of(DOMAIN).await, "opted_out");
}

/// An IP address has no records: none are queried, and no visit waits.
async fn an_ip_address_is_visited_at_once(url: &str) {
    let setup = permissive_setup(url).await;
    setup.names.set_texts(
        "_a2a-registry.127.0.0.1",
        TxtLookup::Failed("asked for an address".into()),
    );
    let view = setup
        .registry
        .register_card_url("https://127.0.0.1:8443/card.json")
        .await;
    assert_eq!(view.next_check, None);
    assert_eq!(setup.run_due_checks().await, 0);
    assert_eq!(setup.run_due_visits().await, 1);
}

/// Checks of proofs query the name server of a host that has opted out, and never the host.
async fn checks_of_proofs_leave_opted_out_hosts_alone(url: &str) {
    let Some(site) = TlsSite::on_443().await else {
        return;
    };
    let setup = OwnershipSetup::at_site(url, &site).await;
    setup
        .names
        .set_texts(STANDING, TxtLookup::Failed("SERVFAIL".into()));
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let ProofFile { path, .. } = ProofFile::from_view(&view);
    let path = path.as_str();
    setup.verify(&acme).await.unwrap();
    assert!(
        site.origin.requests_to(path).is_empty(),
        "the host must not be fetched before the opt-out query is answered"
    );
    setup.place_record(STANDING, OPT_OUT);
    setup.registry.advance(Duration::seconds(1));
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.iter().all(|(outcome, _)| outcome != "held"),
        "{results:?}"
    );
    assert_eq!(setup.state().await, "opted_out");
    assert_eq!(setup.next_day().await, "opted_out");
    assert!(site.origin.requests_to(path).is_empty());
    setup.remove(STANDING);
    setup.verify(&acme).await.unwrap();
    assert_eq!(site.origin.requests_to(path).len(), 1);
}
