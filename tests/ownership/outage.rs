//! While the circuit breaker is open because many fetches are failing, no proof ends for being missed.

use a2a_crawler::AttemptOutcome::Timeout;
use a2a_crawler::dns::TxtAnswer;
use a2a_registry_core::domains::acts::domain_show;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::visits::outage::breaker_open_since;
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use time::Duration;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, card};

const PARENT: &str = "_a2a-registry.agents-test.com";
/// Other domains, whose failing fetches show that the fault is ours.
const OTHERS: usize = 30;

impl OwnershipSetup {
    /// Registers many domains, and lets every card come in.
    async fn crowd(&self) {
        for number in 0..OTHERS {
            self.stage
                .register(&format!("d{number}-agents-test.com"))
                .await;
        }
        let made = self
            .stage
            .visit(|source| OriginAnswer::Card(card(&source.url, "Is there")))
            .await;
        assert_eq!(made, OTHERS);
        assert_eq!(breaker_open_since(&self.stage.app), None);
    }

    /// Fails every request to the outside from now on.
    async fn cut_off(&self, answer: TxtAnswer) {
        for name in [STANDING, PARENT] {
            self.names.set_texts(name, answer.clone());
        }
        self.stage.advance(Duration::days(2));
        self.stage.visit(|_| OriginAnswer::Fails(Timeout)).await;
        assert!(breaker_open_since(&self.stage.app).is_some());
    }

    /// Restores the network.
    async fn reconnect(&self) {
        self.stage.advance(Duration::days(1));
        self.stage.visit(|_| OriginAnswer::NotModified).await;
        assert_eq!(breaker_open_since(&self.stage.app), None);
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
    setup.cut_off(TxtAnswer::Failed("timed out".into())).await;
    for day in 1..=14 {
        assert_eq!(setup.next_day().await, "verified", "day {day}");
        setup.stage.visit(|_| OriginAnswer::Fails(Timeout)).await;
    }
    let view = setup.domain_view(&owner).await;
    assert_eq!(view.proofs, [proved], "the proof is unchanged");
    let now: Timestamp = setup.stage.now().into();
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
    assert!(setup.stage.holds(agent).await.is_empty());
    assert!(setup.stage.served(agent).await.is_some());

    // The response to a requested check is the stored result.
    let asked = domain_verify(&setup.stage.app, &owner, DOMAIN)
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
        setup.stage.now().into()
    );
    setup.stage.index_equals_database().await;
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
    setup.stage.register(quiet).await;
    assert_eq!(setup.stage.visit(|_| OriginAnswer::NotModified).await, 0);
    setup.cut_off(TxtAnswer::Absent).await;
    setup.remove(quiets);
    for day in 1..=5 {
        assert_eq!(setup.next_day().await, "verified", "day {day}");
    }
    setup
        .names
        .set_texts(STANDING, TxtAnswer::Bogus("no signature fits".into()));
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].missing_since,
        None
    );
    let shown = domain_show(&setup.stage.app, &setup.stage.admin, quiet)
        .await
        .unwrap();
    assert_eq!(shown.state.as_str(), "opted_out");
    // A proof by its owner still counts meanwhile: a record that was found exists.
    setup.place_standing_record(&setup.domain_view(&owner).await);
    setup.verify(&owner).await.unwrap();
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].seen,
        setup.stage.now().into()
    );

    // The network is back and the record is gone: from here on the days without it count.
    setup.remove(STANDING);
    setup.reconnect().await;
    for _ in 0..3 {
        assert_eq!(setup.next_day().await, "verified");
    }
    assert_eq!(setup.next_day().await, "lapsed");
}
