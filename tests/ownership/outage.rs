//! An open circuit breaker: while many fetches are failing, a missed proof does not end.

use a2a_crawler::AttemptOutcome::Timeout;
use a2a_crawler::dns::TxtLookup;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::visits::outage::breaker_open_since;
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use time::Duration;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::in_process_registry::{OriginResponse, card_bytes};

const PARENT: &str = "_a2a-registry.agents-test.com";
/// Other domains, whose failing fetches show that the fault is ours.
const OTHERS: usize = 30;

impl OwnershipSetup {
    /// Registers many domains, and lets every card come in.
    async fn crowd(&self) {
        for number in 0..OTHERS {
            self.registry
                .register_domain(&format!("d{number}-agents-test.com"))
                .await;
        }
        let made = self
            .registry
            .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Is there")))
            .await;
        assert_eq!(made, OTHERS);
        assert_eq!(breaker_open_since(&self.registry.app), None);
    }

    /// Fails every request to the outside from now on.
    async fn cut_off(&self, answer: TxtLookup) {
        for name in [STANDING, PARENT] {
            self.names.set_texts(name, answer.clone());
        }
        self.registry.advance(Duration::days(2));
        self.registry
            .run_due_visits(|_| OriginResponse::Failure(Timeout))
            .await;
        assert!(breaker_open_since(&self.registry.app).is_some());
    }

    /// Restores the network.
    async fn reconnect(&self) {
        self.registry.advance(Duration::days(1));
        self.registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await;
        assert_eq!(breaker_open_since(&self.registry.app), None);
    }
}

both_databases!(
    our_own_outage_lapses_no_domain,
    records_denied_by_our_own_network_are_not_missing
);

/// Weeks without our own network lapse no domain. Every check is recorded and soon repeated, and the first one that
/// finds the record again continues the proof.
async fn our_own_outage_lapses_no_domain(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let proved = setup.domain_view(&owner).await.proofs[0].clone();
    setup.crowd().await;
    setup.cut_off(TxtLookup::Failed("timed out".into())).await;
    for day in 1..=14 {
        assert_eq!(setup.next_day().await, "verified", "day {day}");
        setup
            .registry
            .run_due_visits(|_| OriginResponse::Failure(Timeout))
            .await;
    }
    let view = setup.domain_view(&owner).await;
    assert_eq!(view.proofs, [proved], "the proof is unchanged");
    let now: Timestamp = setup.registry.now().into();
    let last = &view.checks[0];
    assert_eq!((last.at, last.outcome.as_str()), (now, "unknown"));
    assert!(
        last.detail
            .contains("probably because of the registry's own network"),
        "{}",
        last.detail
    );
    assert_eq!(
        view.next_check.unwrap().0 - now.0,
        HOUR,
        "the check is soon repeated"
    );
    assert!(setup.registry.holds(agent).await.is_empty());
    assert!(setup.registry.public_card_bytes(agent).await.is_some());

    // The response to a requested check is the stored result.
    let asked = domain_verify(&setup.registry.app, &owner, DOMAIN)
        .await
        .unwrap();
    assert!(!asked.checks.is_empty());
    for check in &asked.checks {
        assert!(asked.domain.checks.contains(check), "{check:?}");
        assert!(
            check.detail.contains("registry's own network"),
            "{}",
            check.detail
        );
    }

    setup.place_standing_record(&view);
    setup.remove(PARENT);
    setup.reconnect().await;
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].seen,
        setup.registry.now().into()
    );
    setup.registry.assert_index_matches_database().await;
}

/// If our resolver denies every record, or lies about it, no proof and no opt-out ends; these days do not count as days
/// without the record.
async fn records_denied_by_our_own_network_are_not_missing(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, _) = setup.prove_with_agent().await;
    setup.crowd().await;
    let quiet = "quiet.agents-test.com";
    let quiets = "_a2a-registry.quiet.agents-test.com";
    setup.place_record(quiets, "127.0.0.1:8080; policy=none");
    setup.registry.register_domain(quiet).await;
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        0
    );
    setup.cut_off(TxtLookup::Absent).await;
    setup.remove(quiets);
    for day in 1..=5 {
        assert_eq!(setup.next_day().await, "verified", "day {day}");
    }
    setup
        .names
        .set_texts(STANDING, TxtLookup::Bogus("no signature fits".into()));
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].missing_since,
        None
    );
    let shown = domain_show(&setup.registry.app, &setup.registry.admin, quiet)
        .await
        .unwrap();
    assert_eq!(shown.state.as_str(), "opted_out");
    // A proof by its owner still counts meanwhile: a record that was found exists.
    setup.place_standing_record(&setup.domain_view(&owner).await);
    setup.verify(&owner).await.unwrap();
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].seen,
        setup.registry.now().into()
    );

    // The network is back and the record is gone: from here on the days without it count.
    setup.remove(STANDING);
    setup.reconnect().await;
    for _ in 0..3 {
        assert_eq!(setup.next_day().await, "verified");
    }
    assert_eq!(setup.next_day().await, "lapsed");
}
