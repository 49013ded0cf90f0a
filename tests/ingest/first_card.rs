//! The first card of an agent: its approvers, and the effect of a rejection.

use std::collections::BTreeSet;

use a2a_registry_api::{Act, Deprecate, Registration, ReviewDecision, Vouch};
use a2a_registry_core::agents::lifecycle_actions::{
    agent_deprecate, agent_retire, agent_suspend, agent_undeprecate,
};
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::reviews::decisions::{review_approve, review_reject};
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::ReviewState::{Approved, Open, Rejected, Superseded};
use a2a_registry_domain::timestamp::{DAY, Timestamp};

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, card_bytes, reorder_members, signed_card_bytes,
};

const DOMAIN: &str = "one.agents-test.com";

fn conflict(error: a2a_registry_core::error::AppError) {
    assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
}

fn deprecate(reason: &str) -> Deprecate {
    Deprecate {
        reason: reason.into(),
        ..Deprecate::default()
    }
}

fn action_body(reason: &str) -> Act {
    Act {
        reason: reason.into(),
        hold: None,
    }
}

both_databases!(
    a_first_card_waits_for_a_person,
    a_rejected_first_card_opens_no_second_review,
    another_key_opens_a_new_review,
    allowed_domains_are_approved,
    approve_all_approves,
    a_vouched_domain_is_approved,
    registering_with_approval_approves_the_first_card,
    a_deprecation_keeps_its_message_until_it_is_revoked,
    acts_are_allowed_only_in_certain_states
);

/// Without a rule a first card waits, hidden from everyone, until a person approves its content.
async fn a_first_card_waits_for_a_person(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Waiter", "Waits");
    let agent = registry.register_with_card(DOMAIN, &bytes).await;
    assert_eq!(agent.lifecycle, Lifecycle::Pending);
    assert_eq!(agent.approved_version, None);
    let review = registry.find_open_review(agent.id).await.unwrap();
    assert_eq!(review.digest, a2a_card::bytes_digest(&bytes));
    assert_eq!(review.previous, None);
    registry.assert_index_matches_database().await;
    assert!(registry.publicly_found_ids().await.is_empty());

    let other = ReviewDecision {
        digest: a2a_card::bytes_digest(b"other"),
        reason: "no".into(),
    };
    let refused = review_approve(&registry.app, &registry.admin, review.id, &other)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    let nul = ReviewDecision {
        digest: review.digest.clone(),
        reason: "a\0b".into(),
    };
    let refused = review_approve(&registry.app, &registry.admin, review.id, &nul)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);

    registry.approve_open_review(agent.id).await;
    assert_eq!(
        registry.public_card_bytes(agent.id).await,
        Some(bytes.clone())
    );
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([agent.id])
    );

    let again = ReviewDecision {
        digest: review.digest,
        reason: "again".into(),
    };
    let refused = review_reject(&registry.app, &registry.admin, review.id, &again)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.id.to_string())
        .await
        .unwrap();
    assert_eq!(shown.decision.rules, ["person"]);
    assert_eq!(shown.decision.by, "admin");
    assert!(
        shown.decision.self_approved,
        "the admin registered the agent as well"
    );
}

/// A rejected first card stays rejected as long as the content is the same, in any bytes; other content opens a new
/// review, and going back to the rejected content needs no approver.
async fn a_rejected_first_card_opens_no_second_review(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = signed_card_bytes("Refused", "Sells snake oil", "key-1", "aaaaaaaa");
    let agent = registry.register_with_card(DOMAIN, &first).await;
    registry.reject_open_review(agent.id).await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Rejected);
    registry.assert_index_matches_database().await;

    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(first.clone()))
        .await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(reorder_members(&first)))
        .await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(signed_card_bytes(
                "Refused",
                "Sells snake oil",
                "key-1",
                "bbbbbbbb",
            )),
        )
        .await;
    let versions = registry.versions(agent.id).await;
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0].repeats, 2);
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Rejected);
    assert_eq!(registry.review_states(agent.id).await.len(), 1);

    let second = card_bytes("Refused", "Sells apples");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(second.clone()))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
    assert_eq!(
        registry.find_open_review(agent.id).await.unwrap().digest,
        a2a_card::bytes_digest(&second)
    );

    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(first.clone()))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Rejected);
    let states: Vec<_> = registry
        .review_states(agent.id)
        .await
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, [Rejected, Superseded]);
    registry.assert_index_matches_database().await;

    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(second))
        .await;
    registry.approve_open_review(agent.id).await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
    registry.assert_index_matches_database().await;
}

/// Another key counts as other content: a rejection under one key does not cover the other.
async fn another_key_opens_a_new_review(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_with_card(
            DOMAIN,
            &signed_card_bytes("Signed", "Signs", "key-1", "aaaa"),
        )
        .await;
    registry.reject_open_review(agent.id).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(signed_card_bytes("Signed", "Signs", "key-2", "aaaa")),
        )
        .await;
    let states: Vec<_> = registry
        .review_states(agent.id)
        .await
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, [Rejected, Open]);
    assert_eq!(registry.versions(agent.id).await.len(), 2);
}

/// `allow_domains` approves a card without errors, and no other domain's.
async fn allowed_domains_are_approved(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())];
    })
    .await;
    let agent = registry
        .register_with_card(DOMAIN, &card_bytes("Allowed", "May"))
        .await;
    assert_eq!(agent.lifecycle, Lifecycle::Approved);
    let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.id.to_string())
        .await
        .unwrap();
    assert_eq!(shown.decision.rules, ["allow_domains"]);

    let broken = registry
        .register_with_card(
            "two.agents-test.com",
            br#"{"name": "Broken", "skills": []}"#,
        )
        .await;
    assert!(registry.versions(broken.id).await[0].has_error);
    assert_eq!(broken.lifecycle, Lifecycle::Pending);
    let foreign = registry
        .register_with_card("other-test.com", &card_bytes("Foreign", "May not"))
        .await;
    assert_eq!(foreign.lifecycle, Lifecycle::Pending);
    registry.assert_index_matches_database().await;
}

/// `--approve-all` approves everything that is not denied, even with errors.
async fn approve_all_approves(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.approve_all = true).await;
    let agent = registry
        .register_with_card(DOMAIN, br#"{"name": "Broken", "skills": []}"#)
        .await;
    assert_eq!(agent.lifecycle, Lifecycle::Approved);
    assert!(registry.find_open_review(agent.id).await.is_none());
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([agent.id])
    );
}

/// An admin's voucher for a domain approves the waiting first card and later first cards, and is shown with every agent
/// of the domain.
async fn a_vouched_domain_is_approved(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let waiting = registry
        .register_with_card(DOMAIN, &card_bytes("Waiting", "Waits"))
        .await;
    let before = registry
        .register_approved_card("two.agents-test.com", &card_bytes("Before", "Was there"))
        .await;
    let broken = registry
        .register_with_card(
            "three.agents-test.com",
            br#"{"name": "Broken", "skills": []}"#,
        )
        .await;
    let vouch = Vouch {
        reason: "I know them".into(),
        ..Vouch::default()
    };
    for domain in [
        DOMAIN,
        "two.agents-test.com",
        "three.agents-test.com",
        DOMAIN,
    ] {
        let view = vouch_for_domain(&registry.app, &registry.admin, domain, &vouch)
            .await
            .unwrap();
        assert_eq!(view.state.as_str(), "verified");
        assert_eq!(view.proofs.len(), 1);
    }
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
    assert_eq!(
        registry.agent("three.agents-test.com").await.lifecycle,
        Lifecycle::Pending
    );
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([waiting.id, before.id])
    );
    assert!(registry.find_open_review(broken.id).await.is_some());

    registry.register_domain("four.agents-test.com").await;
    vouch_for_domain(
        &registry.app,
        &registry.admin,
        "four.agents-test.com",
        &vouch,
    )
    .await
    .unwrap();
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Later", "Comes later")))
        .await;
    assert_eq!(
        registry.agent("four.agents-test.com").await.lifecycle,
        Lifecycle::Approved
    );
}

/// `register` with `approve` approves the first card, be it waiting or yet to come, and nothing after it.
async fn registering_with_approval_approves_the_first_card(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let what = |domain: &str| Registration {
        domain: Some(domain.into()),
        approve: true,
        ..Registration::default()
    };
    register_domain(&registry.app, &registry.admin, &what(DOMAIN))
        .await
        .unwrap();
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Trusted", "At once")))
        .await;
    let agent = registry.agent(DOMAIN).await;
    assert_eq!(agent.lifecycle, Lifecycle::Approved);
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Trusted", "Not this")),
        )
        .await;
    assert!(registry.find_open_review(agent.id).await.is_some());
    assert_eq!(
        registry.public_card_bytes(agent.id).await,
        Some(card_bytes("Trusted", "At once"))
    );

    let waiting = registry
        .register_with_card("two.agents-test.com", &card_bytes("Waiting", "Waits"))
        .await;
    register_domain(&registry.app, &registry.admin, &what("two.agents-test.com"))
        .await
        .unwrap();
    assert_eq!(registry.review_states(waiting.id).await[0].1, Approved);
    assert_eq!(
        registry.agent("two.agents-test.com").await.lifecycle,
        Lifecycle::Approved
    );
    registry.assert_index_matches_database().await;
}

/// A deprecation keeps its message wherever the agent is shown, until it is revoked or the agent ends.
async fn a_deprecation_keeps_its_message_until_it_is_revoked(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let old = registry
        .register_approved_card(DOMAIN, &card_bytes("Old", "Is replaced"))
        .await;
    let new = registry
        .register_approved_card("new.agents-test.com", &card_bytes("New", "Replaces it"))
        .await;
    let (app, admin, id) = (&registry.app, &registry.admin, old.id.to_string());
    let invalid = |error: a2a_registry_core::error::AppError, pointer: &str| {
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert_eq!(error.members[0].0, pointer);
    };
    for wrong in ["nobody", &uuid::Uuid::nil().to_string(), &id] {
        let itself = Deprecate {
            replacement: Some(wrong.to_owned()),
            ..deprecate("moved")
        };
        invalid(
            agent_deprecate(app, admin, &id, &itself).await.unwrap_err(),
            "/replacement",
        );
    }
    let passed = Deprecate {
        sunset: Some(Timestamp(1)),
        ..deprecate("moved")
    };
    invalid(
        agent_deprecate(app, admin, &id, &passed).await.unwrap_err(),
        "/sunset",
    );
    conflict(
        agent_undeprecate(app, admin, &id, &action_body("never was"))
            .await
            .unwrap_err(),
    );

    let sunset = app.now().plus_micros(DAY);
    let said = Deprecate {
        replacement: Some(new.id.to_string()),
        sunset: Some(sunset),
        ..deprecate("the new one is faster")
    };
    let view = agent_deprecate(app, admin, &id, &said).await.unwrap();
    let kept = view.hit.summary.deprecation.unwrap();
    assert_eq!(kept.message, "the new one is faster");
    assert_eq!(
        (kept.replacement, kept.sunset),
        (Some(new.id), Some(sunset))
    );
    // The index has the message too, and a hold does not remove it.
    registry.catch_up().await;
    registry.assert_index_matches_database().await;
    let query = a2a_registry_api::search_query::SearchQuery {
        q: Some("old".into()),
        ..Default::default()
    };
    let list = search_agents(app, &Caller::default(), &query)
        .await
        .unwrap();
    let list: a2a_registry_api::AgentList = serde_json::from_slice(&list).unwrap();
    assert_eq!(list.agents[0].summary.deprecation.as_ref(), Some(&kept));
    agent_suspend(app, admin, &id, &action_body("odd"))
        .await
        .unwrap();
    let held = agent_show_checked(app, admin, &id).await.unwrap();
    assert_eq!(held.hit.summary.deprecation, Some(kept));
    agent_resume(app, admin, &id, &action_body("fine"))
        .await
        .unwrap();

    let back = agent_undeprecate(app, admin, &id, &action_body("a mistake"))
        .await
        .unwrap();
    assert_eq!(back.hit.summary.lifecycle.as_str(), "approved");
    assert_eq!(back.hit.summary.deprecation, None);
    conflict(
        agent_undeprecate(app, admin, &id, &action_body("again"))
            .await
            .unwrap_err(),
    );
    agent_deprecate(app, admin, &id, &deprecate("now really"))
        .await
        .unwrap();
    agent_retire(app, admin, &id, &action_body("over"))
        .await
        .unwrap();
    conflict(
        agent_undeprecate(app, admin, &id, &action_body("too late"))
            .await
            .unwrap_err(),
    );
    registry.assert_index_matches_database().await;
}

/// Each act on an agent is allowed in certain states, and a conflict in the others.
async fn acts_are_allowed_only_in_certain_states(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_with_card(DOMAIN, &card_bytes("Acted", "Is acted upon"))
        .await;
    let id = agent.id.to_string();
    let (app, admin) = (&registry.app, &registry.admin);
    conflict(
        agent_deprecate(app, admin, &id, &deprecate("early"))
            .await
            .unwrap_err(),
    );
    conflict(
        agent_resume(app, admin, &id, &action_body("no hold to lift"))
            .await
            .unwrap_err(),
    );
    registry.approve_open_review(agent.id).await;

    agent_suspend(app, admin, &id, &action_body("odd"))
        .await
        .unwrap();
    agent_suspend(app, admin, &id, &action_body("odd again"))
        .await
        .unwrap();
    assert_eq!(registry.holds(agent.id).await, ["operator"]);
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
    assert!(
        registry.publicly_found_ids().await.is_empty(),
        "before the index has applied the event"
    );
    registry.assert_index_matches_database().await;
    for hold in [
        Hold::Denied,
        Hold::Disputed,
        Hold::DomainLapsed,
        Hold::CriticalChange,
    ] {
        let wrong = Act {
            reason: "try".into(),
            hold: Some(hold),
        };
        conflict(agent_resume(app, admin, &id, &wrong).await.unwrap_err());
    }
    agent_resume(app, admin, &id, &action_body("fine"))
        .await
        .unwrap();
    agent_deprecate(app, admin, &id, &deprecate("old"))
        .await
        .unwrap();
    conflict(
        agent_deprecate(app, admin, &id, &deprecate("old again"))
            .await
            .unwrap_err(),
    );
    registry.assert_index_matches_database().await;
    assert_eq!(
        registry.publicly_found_ids().await,
        BTreeSet::from([agent.id])
    );

    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Acted", "Asks something")),
        )
        .await;
    agent_retire(app, admin, &id, &action_body("over"))
        .await
        .unwrap();
    assert_eq!(
        registry.review_states(agent.id).await.last().unwrap().1,
        a2a_registry_domain::review::ReviewState::Withdrawn
    );
    registry.assert_index_matches_database().await;
    for refused in [
        agent_suspend(app, admin, &id, &action_body("late")).await,
        agent_deprecate(app, admin, &id, &deprecate("late")).await,
        agent_retire(app, admin, &id, &action_body("late")).await,
    ] {
        assert!(refused.is_err());
    }
    assert_eq!(
        registry
            .run_due_visits(|_| panic!("a retired agent is not fetched"))
            .await,
        0
    );
}
