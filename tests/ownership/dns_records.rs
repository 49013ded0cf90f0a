//! Records that prove a domain: placed, checked, removed, contradicted.

use a2a_crawler::dns::{TxtLookup, TxtRecords};
use a2a_registry_api::DomainPatch;
use a2a_registry_core::domains::actions::{domain_show, vouch_for_domain};
use a2a_registry_core::domains::owner_actions::domain_patch;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_store::agents::undisclosed_domains;
use time::Duration;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::admission_policies::apply_policies;
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

both_databases!(
    a_placed_record_proves_its_domain,
    a_one_off_record_proves_until_it_expires,
    a_challenge_proves_nothing_for_another_account,
    failed_checks_are_limited,
    failed_checks_of_the_future_do_not_count,
    claims_of_others_do_not_lock_the_owner_out,
    every_standing_proof_is_checked,
    a_proof_lapses_until_its_record_is_back,
    a_silent_name_server_is_no_evidence,
    an_admins_voucher_keeps_a_domain_verified,
    policies_know_by_which_methods_a_domain_is_proved,
    two_proofs_are_a_dispute,
    a_parents_record_covers_subdomains_if_it_declares_so,
    a_parents_record_proves_the_hosts_that_were_there_before,
    addresses_and_ports_cannot_be_proved
);

/// Registering returns the record to place; a check returns where it queried and what it found.
async fn a_placed_record_proves_its_domain(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let account = acme.account.as_ref().unwrap().id;
    let value = view.challenges[0].value.clone().unwrap();
    assert_eq!(view.challenges[0].name.as_deref(), Some(STANDING));
    assert_eq!(
        value,
        format!(
            "127.0.0.1:8080; accounturi=http://127.0.0.1:8080/accounts/{account}; policy=exact"
        )
    );
    let methods: Vec<_> = view
        .challenges
        .iter()
        .map(|one| one.method.as_str())
        .collect();
    assert_eq!(methods, ["dns", "dns", "http"]);
    // Registering again returns the same record.
    assert_eq!(
        setup.register(&acme, DOMAIN).await.challenges,
        view.challenges
    );

    setup
        .registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    let agent = setup.registry.agent(DOMAIN).await;
    assert_eq!(agent.lifecycle, Lifecycle::Pending);
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("absent".into(), STANDING.into())),
        "{results:?}"
    );
    assert_eq!(setup.state().await, "unverified");

    setup.place_record(STANDING, &value.replace("accounts/", "accounts/x"));
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("wrong".into(), STANDING.into())),
        "{results:?}"
    );

    setup.place_record(STANDING, &value);
    let results = setup.verify(&acme).await.unwrap();
    assert!(
        results.contains(&("held".into(), STANDING.into())),
        "{results:?}"
    );
    let view = setup.domain_view(&acme).await;
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("acme"))
    );
    assert_eq!(view.proofs[0].method.as_str(), "dns");
    assert!(view.next_check.is_some());
    // The default rules approve the waiting agent, and its level of trust rises by one.
    assert_eq!(
        setup.registry.agent(DOMAIN).await.lifecycle,
        Lifecycle::Approved
    );
    let hit = agent_show_checked(
        &setup.registry.app,
        &Caller::default(),
        &agent.id.to_string(),
    )
    .await
    .unwrap();
    assert_eq!(hit.hit.summary.trust.level, Some(TrustLevel::L1.into()));
    setup.registry.assert_index_matches_database().await;
    // Anyone may see the state and the method of the proof, but neither the account nor the challenge.
    let outside = setup.domain_view(&Caller::default()).await;
    assert_eq!(outside.proofs[0].method.as_str(), "dns");
    assert_eq!(
        (outside.owner, outside.contact, outside.checks.len()),
        (None, None, 0)
    );
    assert!(outside.challenges.is_empty());
}

/// The one-off record is a proof too, below its own name, until it expires.
async fn a_one_off_record_proves_until_it_expires(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let one_off = &view.challenges[1];
    setup.place_record(
        one_off.name.as_ref().unwrap(),
        one_off.value.as_ref().unwrap(),
    );
    setup.verify(&acme).await.unwrap();
    for _ in 0..6 {
        assert_eq!(setup.next_day().await, "verified");
    }
    let mut days = 6;
    while setup.next_day().await == "verified" {
        days += 1;
        assert!(days < 20, "an expired record proves nothing");
    }
    assert_eq!(setup.state().await, "lapsed");
}

/// Another account cannot prove a domain with the first account's challenge.
async fn a_challenge_proves_nothing_for_another_account(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let [acme, mallory] = [
        setup.create_publisher("acme").await,
        setup.create_publisher("mallory").await,
    ];
    let view = setup.register(&acme, DOMAIN).await;
    let missing = domain_verify(&setup.registry.app, &mallory, DOMAIN)
        .await
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    let theirs = setup.register(&mallory, DOMAIN).await;
    assert_ne!(view.challenges, theirs.challenges);
    for challenge in view
        .challenges
        .iter()
        .filter(|one| one.method.as_str() == "dns")
    {
        setup.place_record(
            challenge.name.as_ref().unwrap(),
            challenge.value.as_ref().unwrap(),
        );
    }
    let results = setup.verify(&mallory).await.unwrap();
    assert!(
        results.iter().all(|(outcome, _)| outcome != "held"),
        "{results:?}"
    );
    setup.verify(&acme).await.unwrap();
    assert_eq!(
        setup.domain_view(&acme).await.owner.as_deref(),
        Some("acme")
    );
}

/// Five checks may fail in an hour; the next response contains the time of the next possible check.
async fn failed_checks_are_limited(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    setup.register(&acme, DOMAIN).await;
    for _ in 0..5 {
        setup.registry.advance(Duration::seconds(1));
        setup.verify(&acme).await.unwrap();
    }
    let refused = setup.verify(&acme).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooManyRequests);
    let wait = refused.retry_after.unwrap();
    assert!((3_500..=3_601).contains(&wait), "{wait}");
    setup.registry.advance(Duration::seconds(i64::from(wait)));
    setup.verify(&acme).await.unwrap();
    assert_eq!(
        setup.domain_view(&acme).await.checks.len(),
        20,
        "older checks are not kept"
    );
}

/// Failed checks recorded while the clock was ahead do not count until that time.
async fn failed_checks_of_the_future_do_not_count(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    setup.register(&acme, DOMAIN).await;
    setup.registry.advance(Duration::days(365));
    for _ in 0..5 {
        setup.registry.advance(Duration::seconds(1));
        setup.verify(&acme).await.unwrap();
    }
    setup.verify(&acme).await.unwrap_err();
    setup.registry.advance(-Duration::days(365));
    setup.verify(&acme).await.unwrap();
    // The repair of stored times leaves no check in the future.
    let now = setup.registry.now();
    let future = async || {
        let checks = setup.domain_view(&acme).await.checks;
        checks.iter().filter(|check| check.at > now.into()).count()
    };
    assert!(future().await > 0);
    setup
        .registry
        .store
        .repair_future_times(setup.registry.app.now().0)
        .await
        .unwrap();
    assert_eq!(future().await, 0);
    setup.verify(&acme).await.unwrap();
}

/// Claims of other accounts, however many, do not keep the owner from proving its domain.
async fn claims_of_others_do_not_lock_the_owner_out(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    for number in 1..=5 {
        let claimant = setup.create_publisher(&format!("claimant{number}")).await;
        setup.register(&claimant, DOMAIN).await;
        setup.registry.advance(Duration::seconds(1));
    }
    let owner = setup.create_publisher("owner").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    let results = setup.verify(&owner).await.unwrap();
    assert!(
        results.contains(&("held".into(), STANDING.into())),
        "{results:?}"
    );
    let view = setup.domain_view(&owner).await;
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("owner"))
    );
    // From then on the record is checked every day, and ends like any other.
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(
        setup.domain_view(&owner).await.proofs[0].seen,
        setup.registry.now().into()
    );
    setup.remove(STANDING);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(setup.state().await, "lapsed");
}

/// Every standing proof is checked every day, however many there are: an unchecked one would never end.
async fn every_standing_proof_is_checked(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let mut accounts = Vec::new();
    let mut values = Vec::new();
    for number in 1..=7 {
        let account = setup.create_publisher(&format!("account{number}")).await;
        let view = setup.register(&account, DOMAIN).await;
        values.push(view.challenges[0].value.clone().unwrap());
        accounts.push(account);
    }
    setup.place_records(STANDING, values.iter().map(String::as_str));
    for account in &accounts {
        setup.verify(account).await.unwrap();
    }
    assert_eq!(
        setup.domain_view(&setup.registry.admin).await.proofs.len(),
        7
    );
    setup.place_record(STANDING, &values[6]);
    for _ in 0..4 {
        setup.next_day().await;
    }
    let view = setup.domain_view(&accounts[6]).await;
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("account7"))
    );
    setup.remove(STANDING);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(
        setup.state().await,
        "lapsed",
        "the seventh record is checked like the first"
    );
}

/// A removed record ends the proof after three days, and the agents are on hold until it is back.
async fn a_proof_lapses_until_its_record_is_back(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    setup.remove(STANDING);
    for _ in 0..3 {
        assert_eq!(setup.next_day().await, "verified");
    }
    assert!(
        setup.domain_view(&owner).await.proofs[0]
            .missing_since
            .is_some()
    );
    assert_eq!(setup.next_day().await, "lapsed");
    assert_eq!(setup.registry.holds(agent).await, ["domain_lapsed"]);
    assert_eq!(setup.registry.public_card_bytes(agent).await, None);
    setup.registry.assert_index_matches_database().await;
    let view = setup.domain_view(&owner).await;
    assert_eq!((view.proofs.len(), &view.owner), (0, &None));

    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    assert_eq!(setup.state().await, "verified");
    assert!(setup.registry.holds(agent).await.is_empty());
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    setup.registry.assert_index_matches_database().await;
}

/// A name server that does not answer is no evidence about the record, for ten days.
async fn a_silent_name_server_is_no_evidence(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (_, agent) = setup.prove_with_agent().await;
    let down = || TxtLookup::Failed("SERVFAIL".into());
    for name in [STANDING, "_a2a-registry.agents-test.com"] {
        setup.names.set_texts(name, down());
    }
    for day in 1..=8 {
        assert_eq!(setup.next_day().await, "verified", "day {day}");
    }
    assert_eq!(setup.next_day().await, "lapsed");
    assert_eq!(setup.registry.holds(agent).await, ["domain_lapsed"]);
}

/// An admin's voucher keeps a domain verified without its record, and is no level of trust.
async fn an_admins_voucher_keeps_a_domain_verified(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (_, agent) = setup.prove_with_agent().await;
    let vouch = a2a_registry_api::Vouch {
        reason: "a partner".into(),
        ..Default::default()
    };
    vouch_for_domain(&setup.registry.app, &setup.registry.admin, DOMAIN, &vouch)
        .await
        .unwrap();
    setup.remove(STANDING);
    for _ in 0..5 {
        assert_eq!(setup.next_day().await, "verified");
    }
    let view = setup.domain_view(&setup.registry.admin).await;
    assert_eq!(
        view.proofs
            .iter()
            .map(|proof| proof.method.as_str())
            .collect::<Vec<_>>(),
        ["operator"]
    );
    assert_eq!(view.owner, None);
    let hit = agent_show_checked(&setup.registry.app, &Caller::default(), &agent.to_string())
        .await
        .unwrap();
    assert_eq!(hit.hit.summary.trust.level, Some(TrustLevel::L0.into()));
}

/// A proof that comes or goes counts for policies, whether the domain is verified without it or not.
async fn policies_know_by_which_methods_a_domain_is_proved(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let registry = &setup.registry;
    let (_, agent) = setup.prove_with_agent().await;
    let both = "permit (principal, action, resource) when { resource.proof_methods.containsAll([\"dns\", \"operator\"]) };";
    apply_policies(registry, &[("both", both)]).await;
    let is_found = async || {
        registry.catch_up().await;
        registry.publicly_found_ids().await.contains(&agent)
    };
    assert!(!is_found().await, "by its record alone");
    let vouch = a2a_registry_api::Vouch {
        reason: "a partner".into(),
        ..Default::default()
    };
    vouch_for_domain(&registry.app, &registry.admin, DOMAIN, &vouch)
        .await
        .unwrap();
    assert!(is_found().await);
    setup.remove(STANDING);
    for _ in 0..5 {
        assert_eq!(setup.next_day().await, "verified");
    }
    assert!(!is_found().await, "by the voucher alone");
}

/// Two accounts with equally good proofs dispute a domain: its agents are on hold and neither account may change
/// anything, until one of the records is removed.
async fn two_proofs_are_a_dispute(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (acme, agent) = setup.prove_with_agent().await;
    let other = setup.create_publisher("other").await;
    let theirs = setup.register(&other, DOMAIN).await;
    let ours = setup.domain_view(&acme).await.challenges[0]
        .value
        .clone()
        .unwrap();
    let mut records = TxtRecords::default();
    records.push([ours.as_str()]);
    records.push([theirs.challenges[0].value.as_ref().unwrap().as_str()]);
    setup.names.set_texts(STANDING, TxtLookup::Records(records));
    setup.verify(&other).await.unwrap();
    assert_eq!(setup.state().await, "disputed");
    assert_eq!(setup.registry.holds(agent).await, ["disputed"]);
    let patch = DomainPatch {
        contact: Some("mailto:ops@acme.example".into()),
        opt_out: None,
        ..DomainPatch::default()
    };
    let frozen = domain_patch(&setup.registry.app, &acme, DOMAIN, &patch)
        .await
        .unwrap_err();
    assert_eq!(frozen.kind, ErrorKind::Conflict);
    let frozen = domain_patch(&setup.registry.app, &other, DOMAIN, &patch)
        .await
        .unwrap_err();
    assert_eq!(frozen.kind, ErrorKind::Conflict);
    // Both see the state, and both records are still checked.
    assert_eq!(setup.domain_view(&other).await.state.as_str(), "disputed");
    setup.place_record(STANDING, theirs.challenges[0].value.as_ref().unwrap());
    for _ in 0..3 {
        assert_eq!(setup.next_day().await, "disputed");
    }
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(
        setup.domain_view(&other).await.owner.as_deref(),
        Some("other")
    );
    assert!(setup.registry.holds(agent).await.is_empty());
    setup.registry.assert_index_matches_database().await;
}

/// A record of a parent domain covers subdomains if it declares so, and is worth less than a subdomain's own. No peer shows an
/// agent of a host that it covers, registered or not.
async fn a_parents_record_covers_subdomains_if_it_declares_so(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let exact = view.challenges[0].value.clone().unwrap();
    let parent = "_a2a-registry.agents-test.com";
    let withheld = async || {
        let names = [DOMAIN, "agents-test.com", "a.b.agents-test.com", "test.com"];
        let names = names.map(str::to_owned).into_iter().collect();
        let found = undisclosed_domains(&setup.registry.store, &names)
            .await
            .unwrap();
        let mut found: Vec<String> = found.into_iter().collect();
        found.sort_unstable();
        found
    };
    setup.place_record(parent, &exact);
    setup.verify(&acme).await.unwrap();
    assert_eq!(
        setup.state().await,
        "unverified",
        "policy=exact covers its own host only"
    );
    assert_eq!(withheld().await, [""; 0]);
    setup.place_record(parent, &exact.replace("policy=exact", "policy=subdomains"));
    setup.verify(&acme).await.unwrap();
    let view = setup.domain_view(&acme).await;
    assert_eq!(
        (view.state.as_str(), view.proofs[0].method.as_str()),
        ("verified", "dns-parent")
    );
    let below = ["a.b.agents-test.com", "agents-test.com", DOMAIN];
    assert_eq!(withheld().await, below);
    // A tenant with a record of its own has the better claim.
    let tenant = setup.create_publisher("tenant").await;
    let theirs = setup.register(&tenant, DOMAIN).await;
    setup.place_standing_record(&theirs);
    setup.verify(&tenant).await.unwrap();
    let view = setup.domain_view(&tenant).await;
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("tenant"))
    );
}

/// A host that its account registered before the parent's record was found is checked when it is, and not a day later. The
/// hosts of others are not.
async fn a_parents_record_proves_the_hosts_that_were_there_before(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let acme = setup.create_publisher("acme").await;
    let other = setup.create_publisher("other").await;
    setup.register(&acme, DOMAIN).await;
    setup.register(&other, "other.agents-test.com").await;
    setup.run_due_checks().await;
    assert_eq!(setup.state().await, "unverified");
    setup.registry.advance(Duration::hours(2));
    let apex = "agents-test.com";
    let view = setup.register(&acme, apex).await;
    let exact = view.challenges[0].value.clone().unwrap();
    let record = exact.replace("policy=exact", "policy=subdomains");
    setup.place_record("_a2a-registry.agents-test.com", &record);
    let found = domain_verify(&setup.registry.app, &acme, apex)
        .await
        .unwrap();
    assert_eq!(found.domain.state.as_str(), "verified");
    setup.run_due_checks().await;
    let view = setup.domain_view(&acme).await;
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("acme"))
    );
    let others = domain_show(
        &setup.registry.app,
        &setup.registry.admin,
        "other.agents-test.com",
    );
    let next = others.await.unwrap().next_check.unwrap();
    let soon = setup.registry.now() + Duration::hours(1);
    assert!(time::OffsetDateTime::from(next) > soon);
}

/// Only a host name on port 443 can be proved; for others an admin can vouch.
async fn addresses_and_ports_cannot_be_proved(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.crawler.allow_ports = a2a_registry_core::config::AllowPorts::Word("any".into());
    })
    .await;
    let view = registry
        .register_card_url("https://travel.agents-test.com:8443/card.json")
        .await;
    assert!(view.challenges.is_empty());
    let refused = domain_verify(&registry.app, &registry.admin, &view.domain)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
}
