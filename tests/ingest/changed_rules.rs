//! Changed admission rules: forbidden agents are hidden before any agent is decided by the new rules, and the
//! decisions survive kills, failures, other processes and further changes
//! (docs/govern/policies.md#admit-cards-without-a-review).

use std::collections::BTreeSet;

use a2a_registry_api::Act;
use a2a_registry_api::search_query::LookupQuery;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::config::Config;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::health::readiness::check_readiness;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::{DomainPattern, Rule};
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_server::jobs::{RulesRunEnd, redecide_by_changed_rules};
use a2a_registry_store::decisions::decisions_by_agent;
use a2a_registry_store::entity::source;
use a2a_registry_store::reviews::{ReviewFilter, review_page};
use a2a_registry_store::settings::setting_value;
use serde_json::Value;
use time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::policies::put_policies;
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::cards::minimal_card_json;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::setup::RegistrySetup;

const DENIED: &str = "denied.agents-test.com";
/// Agents of an interrupted pass: more than three transactions decide on.
const MANY: usize = 160;

fn patterns(text: &str) -> Vec<DomainPattern> {
    vec![DomainPattern(text.into())]
}

fn approve_all(config: &mut Config) {
    config.governance.approve_all = true;
}

/// What `/readyz` says about the rules.
async fn rules_readiness_detail(stage: &InProcessRegistry) -> String {
    let checks = check_readiness(&stage.app).await.checks;
    let check = checks.into_iter().find(|check| check.name == "rules");
    let check = check.unwrap();
    assert!(check.ok);
    check.detail
}

/// The decisions as they stand in the database.
async fn stored_rules_run(stage: &InProcessRegistry) -> Value {
    let kept = setting_value(&stage.store, "rules_pass").await.unwrap();
    serde_json::from_str(&kept.unwrap()).unwrap()
}

/// Nobody but those who see everything sees this agent at any door, whether or not the index has applied events.
async fn assert_hidden(stage: &InProcessRegistry, agent: Uuid, domain: &str) {
    let anyone = Caller::default();
    assert_eq!(stage.public_card_bytes(agent).await, None, "{domain}");
    let shown = agent_show_checked(&stage.app, &anyone, &agent.to_string()).await;
    assert_eq!(shown.unwrap_err().kind, ErrorKind::NotFound, "{domain}");
    assert!(
        !stage.publicly_found_ids().await.contains(&agent),
        "{domain}"
    );
    let query = LookupQuery {
        url: Some(format!("https://{domain}")),
        ..LookupQuery::default()
    };
    let found = lookup_agents(&stage.app, &anyone, &query).await;
    assert_eq!(found.unwrap_err().kind, ErrorKind::NotFound, "{domain}");
}

/// Publishes agents of as many domains, enough for several transactions of a pass.
async fn publish_many(stage: &InProcessRegistry) {
    for number in 0..MANY {
        stage
            .register_domain(&format!("d{number}.agents-test.com"))
            .await;
    }
    let answer = |source: &source::Model| OriginResponse::Card(card_bytes(&source.url, "Waits"));
    assert_eq!(stage.run_due_visits(answer).await, MANY);
    stage.catch_up().await;
}

/// Decides by the rules of the process, and ends it with the first decisions.
async fn interrupt_pass(stage: &InProcessRegistry) {
    let cancel = CancellationToken::new();
    let mut events = stage.app.event_signal();
    let first_decided = async {
        events.changed().await.unwrap();
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(
        redecide_by_changed_rules(&stage.app, &cancel),
        first_decided
    );
    assert_eq!(ended.unwrap(), RulesRunEnd::Cancelled);
}

/// The number of approved agents.
async fn approved(stage: &InProcessRegistry) -> usize {
    let all = stage.agents().await.into_iter();
    all.filter(|row| row.lifecycle == Lifecycle::Approved)
        .count()
}

both_databases!(
    what_rules_forbid_is_hidden_before_anything_is_decided,
    what_was_hidden_before_a_kill_is_hidden_by_the_next_start,
    rules_that_are_taken_back_undecided_show_everything_again,
    rules_that_are_taken_back_half_decided_decide_on_everything_again,
    an_allow_list_that_is_taken_back_half_decided_shows_nothing_more,
    one_that_cannot_be_decided_stays_hidden_and_stops_no_other,
    a_review_that_cannot_be_decided_is_not_passed_over_by_the_next_process,
    policies_about_allowed_domains_follow_the_rules,
    an_interrupted_pass_goes_on_where_it_stopped
);

/// A process that begins to serve hides what its rules forbid, however often it is killed before it decides. What other rules
/// are certain to approve stays served.
async fn what_rules_forbid_is_hidden_before_anything_is_decided(url: &str) {
    let stage = InProcessRegistry::with_config(url, approve_all).await;
    let flag = stage
        .register_with_card("flag-test.com", &card_bytes("Flag", "Goes"))
        .await;
    let denied = stage
        .register_with_card(DENIED, &card_bytes("Denied", "Goes"))
        .await;
    let text = card_bytes("Allowed", "Stays");
    let allowed = stage.register_with_card("allowed-test.com", &text).await;
    stage.assert_index_matches_database().await;
    assert_eq!(stage.publicly_found_ids().await.len(), 3);

    let mut stage = stage
        .restart_undecided(|config| {
            config.governance.approve_all = false;
            config.governance.deny_domains = patterns("*.agents-test.com");
            config.governance.allow_domains = patterns("allowed-test.com");
        })
        .await;
    for _ in 0..3 {
        for (agent, domain) in [(flag.id, "flag-test.com"), (denied.id, DENIED)] {
            assert_eq!(stage.holds(agent).await, ["rules_changed"]);
            assert_hidden(&stage, agent, domain).await;
        }
        assert_eq!(
            stage.publicly_found_ids().await,
            BTreeSet::from([allowed.id])
        );
        assert_eq!(
            stage.public_card_bytes(allowed.id).await.as_ref(),
            Some(&text)
        );
        let progress = rules_readiness_detail(&stage).await;
        assert!(progress.contains("is hidden meanwhile"), "{progress}");
        stage = stage.restart_undecided(|_| ()).await;
    }

    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(stage.holds(denied.id).await, ["denied"]);
    assert!(stage.holds(flag.id).await.is_empty());
    let row = stage.agent("flag-test.com").await;
    assert_eq!(row.lifecycle, Lifecycle::Pending);
    assert!(stage.find_open_review(flag.id).await.is_some());
    let made = decisions_by_agent(&stage.store, &[allowed.id])
        .await
        .unwrap();
    assert_eq!(made.last().unwrap().rule, Rule::AllowDomains);
    stage.assert_index_matches_database().await;
    assert_eq!(
        stage.publicly_found_ids().await,
        BTreeSet::from([allowed.id])
    );
    assert!(
        rules_readiness_detail(&stage)
            .await
            .contains("everything is decided")
    );
    // The same rules leave nothing to decide at the next start.
    let stage = stage.restart_undecided(|_| ()).await;
    assert_eq!(stage.holds(denied.id).await, ["denied"]);
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(stored_rules_run(&stage).await["decided"], 0);
}

/// A process that is killed has hidden agents in the database that its index still shows.
async fn what_was_hidden_before_a_kill_is_hidden_by_the_next_start(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    let domain = "suspended-test.com";
    let agent = stage
        .register_approved_card(domain, &card_bytes("Suspended", "Goes"))
        .await;
    stage.catch_up().await;
    let act = Act {
        reason: "a test".into(),
        hold: None,
    };
    agent_suspend(&stage.app, &stage.admin, &agent.id.to_string(), &act)
        .await
        .unwrap();
    let stage = stage.restart_undecided(|_| ()).await;
    assert_hidden(&stage, agent.id, domain).await;
    stage.assert_index_matches_database().await;
}

/// Whoever takes rules back before anything was decided by them has what was shown before.
async fn rules_that_are_taken_back_undecided_show_everything_again(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    let text = card_bytes("Denied", "For a moment");
    let agent = stage.register_approved_card(DENIED, &text).await;
    stage.catch_up().await;
    let stage = stage
        .restart_undecided(|config| config.governance.deny_domains = patterns(DENIED))
        .await;
    assert_hidden(&stage, agent.id, DENIED).await;
    let stage = stage
        .restart_undecided(|config| config.governance.deny_domains.clear())
        .await;
    assert_hidden(&stage, agent.id, DENIED).await;
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert!(stage.holds(agent.id).await.is_empty());
    assert_eq!(stage.public_card_bytes(agent.id).await, Some(text));
    stage.assert_index_matches_database().await;
    assert_eq!(stage.publicly_found_ids().await, BTreeSet::from([agent.id]));
}

/// Whoever takes rules back when some agents are decided by them already has those decided again.
async fn rules_that_are_taken_back_half_decided_decide_on_everything_again(url: &str) {
    let stage = InProcessRegistry::with_config(url, approve_all).await;
    publish_many(&stage).await;
    assert_eq!(approved(&stage).await, MANY);
    let stage = stage
        .restart_undecided(|config| config.governance.approve_all = false)
        .await;
    interrupt_pass(&stage).await;
    let some = approved(&stage).await;
    assert!((1..MANY).contains(&some), "{some}");

    let stage = stage.restart_undecided(approve_all).await;
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(approved(&stage).await, MANY);
    for row in stage.agents().await {
        assert!(stage.holds(row.id).await.is_empty(), "{}", row.domain);
    }
}

/// What policies show because of an allow list is hidden before the first answer where the list is taken back, also if not
/// everything was decided by it.
async fn an_allow_list_that_is_taken_back_half_decided_shows_nothing_more(url: &str) {
    let stage = InProcessRegistry::with_config(url, approve_all).await;
    publish_many(&stage).await;
    let policy = "permit (principal, action, resource) when { resource.allow_listed };";
    put_policies(&stage, &[("allowed", policy)]).await;
    stage.catch_up().await;
    assert!(stage.publicly_found_ids().await.is_empty());
    let allow =
        |config: &mut Config| config.governance.allow_domains = patterns("*.agents-test.com");
    let stage = stage.restart_undecided(allow).await;
    interrupt_pass(&stage).await;
    stage.catch_up().await;
    assert!(!stage.publicly_found_ids().await.is_empty());

    let stage = stage
        .restart_undecided(|config| config.governance.allow_domains.clear())
        .await;
    assert!(stage.publicly_found_ids().await.is_empty());
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    stage.catch_up().await;
    assert!(stage.publicly_found_ids().await.is_empty());
}

/// An agent whose rows cannot be written stays hidden; the others are decided, and it is when it can be.
async fn one_that_cannot_be_decided_stays_hidden_and_stops_no_other(url: &str) {
    let stage = InProcessRegistry::with_config(url, approve_all).await;
    let broken = stage
        .register_with_card("broken-test.com", &card_bytes("One", "Goes"))
        .await;
    let other = stage
        .register_with_card("other-test.com", &card_bytes("Two", "Goes"))
        .await;
    stage.catch_up().await;
    let stage = stage
        .restart_undecided(|config| config.governance.approve_all = false)
        .await;
    stage
        .reject_row_updates("agents", "domain", "broken-test.com")
        .await;
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Failed);
    assert!(
        rules_readiness_detail(&stage)
            .await
            .starts_with("1 could not be decided")
    );
    assert_eq!(stage.holds(broken.id).await, ["rules_changed"]);
    assert_hidden(&stage, broken.id, "broken-test.com").await;
    assert!(stage.holds(other.id).await.is_empty());
    assert!(stage.find_open_review(other.id).await.is_some());

    stage.allow_row_updates("agents").await;
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert!(stage.find_open_review(broken.id).await.is_some());
    stage.assert_index_matches_database().await;
}

/// A pass that is ended after a review which could not be decided leaves that one to the next process as well.
async fn a_review_that_cannot_be_decided_is_not_passed_over_by_the_next_process(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    publish_many(&stage).await;
    let open = ReviewFilter {
        state: Some(ReviewState::Open),
        kind: Some(ReviewKind::Admission),
        ..ReviewFilter::default()
    };
    let first = review_page(&stage.store, &open, None, 1).await.unwrap();
    let mut agents = stage.agents().await.into_iter();
    let broken = agents.find(|row| row.id == first[0].agent_id).unwrap();
    let stage = stage.restart_undecided(approve_all).await;
    stage
        .reject_row_updates("agents", "domain", &broken.domain)
        .await;
    interrupt_pass(&stage).await;
    assert_eq!(stored_rules_run(&stage).await["review_failed"], true);

    stage.allow_row_updates("agents").await;
    let stage = stage.restart_undecided(|_| ()).await;
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(approved(&stage).await, MANY);
}

/// A policy that asks whether a domain is allowed hides at once what is not allowed any more, and shows what is allowed now when
/// it is decided.
async fn policies_about_allowed_domains_follow_the_rules(url: &str) {
    let before = |config: &mut Config| config.governance.allow_domains = patterns(DENIED);
    let stage = InProcessRegistry::with_config(url, before).await;
    let leaves = stage
        .register_with_card(DENIED, &card_bytes("Leaves", "Goes"))
        .await;
    let comes = card_bytes("Comes", "Stays");
    let comes = stage.register_approved_card("other-test.com", &comes).await;
    let policy = "permit (principal, action, resource) when { resource.allow_listed };";
    put_policies(&stage, &[("allowed", policy)]).await;
    stage.catch_up().await;
    assert_eq!(
        stage.publicly_found_ids().await,
        BTreeSet::from([leaves.id])
    );

    let after = |config: &mut Config| config.governance.allow_domains = patterns("other-test.com");
    let stage = stage.restart_undecided(after).await;
    for (agent, domain) in [(leaves.id, DENIED), (comes.id, "other-test.com")] {
        assert_eq!(stage.holds(agent).await, ["rules_changed"]);
        assert_hidden(&stage, agent, domain).await;
    }
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    stage.catch_up().await;
    assert_eq!(stage.publicly_found_ids().await, BTreeSet::from([comes.id]));
    for agent in [leaves.id, comes.id] {
        assert!(stage.holds(agent).await.is_empty());
    }
}

/// A pass that is cancelled has decided on some; the next process goes on with the others, and a change of the rules begins
/// anew.
async fn an_interrupted_pass_goes_on_where_it_stopped(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    publish_many(&stage).await;
    let stage = stage.restart_undecided(approve_all).await;
    interrupt_pass(&stage).await;
    let some = approved(&stage).await;
    assert!((1..MANY).contains(&some), "{some}");
    let stopped = stored_rules_run(&stage).await;
    assert_eq!(stopped["decided"], some);
    assert_eq!(stopped["total"], MANY);
    assert_eq!(stopped["holder"], Value::Null);

    let stage = stage.restart_undecided(|_| ()).await;
    assert_eq!(stored_rules_run(&stage).await["after"], stopped["after"]);
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(approved(&stage).await, MANY);
    let stage = stage
        .restart_undecided(|config| config.governance.approve_all = false)
        .await;
    assert_eq!(stored_rules_run(&stage).await["after"], Value::Null);
    assert!(stage.publicly_found_ids().await.is_empty());
    assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    assert_eq!(approved(&stage).await, 0);
    stage.catch_up().await;
    assert!(stage.publicly_found_ids().await.is_empty());
}

/// Of several processes that start with the same rules each one hides what these forbid, one decides, and another one takes
/// over where that one is gone. A process with other rules that starts later ends the decisions by the earlier ones.
#[tokio::test]
async fn one_of_many_processes_decides_and_all_hide_what_is_forbidden() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::with_config(database.url(), approve_all).await;
    let agent = first
        .register_with_card("flag-test.com", &card_bytes("Flag", "Goes"))
        .await;
    first.catch_up().await;
    let second = first.second_process().await;
    let without = |config: &mut Config| config.governance.approve_all = false;
    let first = first.restart_undecided(without).await;
    let second = second.restart_undecided(without).await;
    for stage in [&first, &second] {
        assert_hidden(stage, agent.id, "flag-test.com").await;
    }

    // A process that has just begun to decide, and is gone.
    let mut other = stored_rules_run(&first).await;
    other["holder"] = Uuid::from_u128(1).to_string().into();
    let until = first.now() + Duration::seconds(50);
    other["until"] = i64::try_from(until.unix_timestamp_nanos() / 1_000)
        .unwrap()
        .into();
    let write = first.store.begin_write().await.unwrap();
    let text = other.to_string();
    write.set_setting("rules_pass", &text).await.unwrap();
    write.commit().await.unwrap();
    for stage in [&first, &second] {
        assert_eq!(stage.decide_by_rules().await, RulesRunEnd::OtherProcess);
        let progress = rules_readiness_detail(stage).await;
        assert!(progress.starts_with("another process"), "{progress}");
        assert_hidden(stage, agent.id, "flag-test.com").await;
    }
    first.advance(Duration::minutes(1));
    for stage in [&second, &first] {
        assert_eq!(stage.decide_by_rules().await, RulesRunEnd::Decided);
    }
    assert!(first.find_open_review(agent.id).await.is_some());
    for stage in [&first, &second] {
        stage.assert_index_matches_database().await;
    }

    let third = first.second_process_with(approve_all).await;
    assert_eq!(first.decide_by_rules().await, RulesRunEnd::Superseded);
    let progress = rules_readiness_detail(&first).await;
    assert!(progress.contains("other rules"), "{progress}");
    assert_eq!(third.decide_by_rules().await, RulesRunEnd::Decided);
    for stage in [&first, &second, &third] {
        stage.catch_up().await;
        assert_eq!(stage.publicly_found_ids().await, BTreeSet::from([agent.id]));
    }
}

/// The first answer of a process shows nothing that its rules forbid; it decides while it serves, and ends in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_hides_first_and_decides_while_it_serves() {
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(minimal_card_json("Echo")));
    let setup = RegistrySetup::new();
    let registry = setup.clone().approve_all().start().await;
    registry.publish(&origin.url("/card.json")).await;
    assert_eq!(registry.search("").await["total"], 1);
    registry.stop().await;

    let registry = setup.start().await;
    assert_eq!(registry.search("").await["total"], 0);
    let mut feed = registry.api.open_event_stream(0).await;
    feed.wait_for("agent.returned").await;
    eventually("readiness says that everything is decided", async || {
        let ready = registry.get_as_admin("/readyz").await.text();
        ready.contains("everything is decided").then_some(())
    })
    .await;
    assert_eq!(registry.search("").await["total"], 0);
    registry.stop().await;
}
