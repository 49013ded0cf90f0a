//! Rollouts of policy sets: only what differs is evaluated, and a restart evaluates what has changed since. Previews as
//! jobs. On both databases.

use a2a_registry_api::{AgentPatch, NewPolicies};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::preview_jobs::{
    make_next_preview, policy_preview_cancel, policy_preview_show, policy_preview_start,
};
use a2a_registry_core::policies::sets::policies_put;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::policy_replicas::{load_policy_replicas, report_policy_set};
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::preview_state::PreviewState;
use a2a_registry_store::Executor as _;
use sea_orm::ConnectionTrait as _;
use uuid::Uuid;

use crate::admission_policies::{OPEN, card};
use crate::policies::{policies, put_policies};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch};

both_databases!(
    only_what_differs_is_evaluated,
    facts_are_the_same_without_cards,
    a_restart_evaluates_what_has_changed_since,
    a_preview_is_a_job,
    a_set_needs_its_preview_where_the_configuration_says_so
);

const HIDE_PAY: (&str, &str) = (
    "hide-pay",
    "forbid (principal, action, resource) when { resource.skills.contains(\"pay\") };",
);
const HIDE_ERRORS: (&str, &str) = (
    "hide-errors",
    "forbid (principal, action, resource) when { resource.has_error };",
);

/// A registry with two agents that pay and one that travels.
async fn registry_with_agents(url: &str) -> (InProcessRegistry, Uuid) {
    let registry = InProcessRegistry::new(url).await;
    let mut travel = Uuid::nil();
    for (domain, skill) in [
        ("one.agents-test.com", "pay"),
        ("two.agents-test.com", "pay"),
        ("three.agents-test.com", "travel"),
    ] {
        let card = card(domain, skill);
        travel = registry.register_approved_card(domain, &card).await.id;
    }
    registry.catch_up().await;
    (registry, travel)
}

/// Makes a set and puts it in force; returns how many agents were evaluated for that.
async fn apply(registry: &InProcessRegistry, texts: &[(&str, &str)]) -> u64 {
    let number = put_policies(registry, texts).await;
    registry.catch_up().await;
    let sets = &registry.app.policy_sets;
    assert_eq!(sets.enforced_set().number(), number);
    let (evaluated, agents) = sets.evaluation_progress();
    assert_eq!(evaluated, agents);
    agents
}

async fn only_what_differs_is_evaluated(url: &str) {
    let (registry, travel) = registry_with_agents(url).await;
    let found = async || registry.publicly_found_ids().await;
    assert_eq!(apply(&registry, &[OPEN, HIDE_PAY, HIDE_ERRORS]).await, 3);
    assert_eq!(found().await, [travel].into());
    // What falls away or stands elsewhere needs no evaluation, and decides.
    assert_eq!(apply(&registry, &[HIDE_ERRORS, OPEN]).await, 0);
    assert_eq!(found().await.len(), 3);
    assert_eq!(apply(&registry, &[HIDE_PAY, OPEN, HIDE_ERRORS]).await, 3);
    assert_eq!(found().await, [travel].into());
    let other = (HIDE_PAY.0, HIDE_ERRORS.1);
    assert_eq!(apply(&registry, &[other, OPEN, HIDE_ERRORS]).await, 3);
    assert_eq!(found().await.len(), 3);
}

/// A policy that reads nothing from cards is evaluated without them, and decides as one that also reads a card.
async fn facts_are_the_same_without_cards(url: &str) {
    let (registry, _) = registry_with_agents(url).await;
    apply(&registry, &[OPEN, HIDE_ERRORS]).await;
    let conditions = [
        "resource.verified",
        "resource.covered",
        "resource.proof_methods.isEmpty()",
        "resource.labels.isEmpty()",
        "resource.domain == \"one.agents-test.com\"",
        "resource.trust >= 1",
        "resource.signature == \"unsigned\"",
        "resource.lifecycle == \"approved\"",
        "resource.liveness == \"fresh\"",
        "resource.endpoint == \"not_checked\"",
        "resource.days_since_changed >= 0",
        "resource.owner_present",
        "resource.sponsor_present",
        "resource.visibility == \"public\"",
        "resource.allow_listed",
        "resource.change == \"none\"",
    ];
    let mut hidden = 0;
    for condition in conditions {
        let forbid = |also: &str| {
            format!("forbid (principal, action, resource) when {{ {condition}{also} }};")
        };
        let mut found = Vec::new();
        for also in ["", " && resource.skills != [\"none\"]"] {
            let text = forbid(also);
            apply(&registry, &[OPEN, HIDE_ERRORS, ("tried", text.as_str())]).await;
            found.push(registry.publicly_found_ids().await);
        }
        assert_eq!(found[0], found[1], "{condition}");
        hidden += usize::from(found[0].len() < 3);
    }
    assert!(hidden > 5, "{hidden}");
}

async fn a_restart_evaluates_what_has_changed_since(url: &str) {
    let (registry, travel) = registry_with_agents(url).await;
    apply(&registry, &[OPEN, HIDE_PAY]).await;
    let evaluated = |registry: &InProcessRegistry| registry.app.policy_sets.evaluation_progress();
    let registry = registry.restart(|_| ()).await;
    assert_eq!(registry.publicly_found_ids().await, [travel].into());
    registry.catch_up().await;
    assert_eq!(evaluated(&registry), (0, 0));
    // An agent that has changed after the labels were written is hidden until its policies are evaluated again.
    for visibility in [Visibility::Internal, Visibility::Public] {
        let patch = AgentPatch {
            visibility: Some(visibility),
            ..AgentPatch::default()
        };
        agent_patch(&registry.app, &registry.admin, &travel.to_string(), &patch)
            .await
            .unwrap();
        registry.catch_up().await;
    }
    assert_eq!(registry.publicly_found_ids().await, [travel].into());
    let registry = registry.restart(|_| ()).await;
    assert!(registry.publicly_found_ids().await.is_empty());
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, [travel].into());
    assert_eq!(evaluated(&registry), (1, 1));
}

async fn a_preview_is_a_job(url: &str) {
    let (registry, travel) = registry_with_agents(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let new = policies(&[OPEN, HIDE_PAY]);
    let job = policy_preview_start(app, admin, &new).await.unwrap();
    assert!(job.state == PreviewState::Waiting && job.preview.is_none());
    assert_eq!(job.agents, 3);
    let same = policy_preview_start(app, admin, &new).await.unwrap();
    assert_eq!(same.id, job.id);
    assert!(make_next_preview(app).await.unwrap());
    let done = policy_preview_show(app, admin, job.id).await.unwrap();
    assert!(done.state == PreviewState::Done, "{done:?}");
    let lost: Vec<u64> = done
        .preview
        .iter()
        .flat_map(|preview| &preview.changes)
        .map(|change| change.lost)
        .collect();
    assert!(
        !lost.is_empty() && lost.iter().all(|lost| *lost == 2),
        "{lost:?}"
    );
    // The same preview twice is free, until something happens.
    let free = policy_preview_start(app, admin, &new).await.unwrap();
    assert!(free.id == job.id && free.preview.is_some());
    assert!(!make_next_preview(app).await.unwrap());
    let patch = AgentPatch {
        visibility: Some(Visibility::Internal),
        ..AgentPatch::default()
    };
    agent_patch(app, admin, &travel.to_string(), &patch)
        .await
        .unwrap();
    let fresh = policy_preview_start(app, admin, &new).await.unwrap();
    assert_ne!(fresh.id, job.id);
    policy_preview_cancel(app, admin, fresh.id).await.unwrap();
    assert!(make_next_preview(app).await.unwrap());
    let cancelled = policy_preview_show(app, admin, fresh.id).await.unwrap();
    assert!(cancelled.state == PreviewState::Cancelled && cancelled.preview.is_none());
    // Eight wait, and no more.
    for number in 0..9 {
        let id = format!("policy{number}");
        let other = policies(&[(&id, OPEN.1)]);
        let started = policy_preview_start(app, admin, &other).await;
        let refused = started.err().map(|error| error.kind);
        assert_eq!(refused, (number == 8).then_some(ErrorKind::Unavailable));
    }
}

async fn a_set_needs_its_preview_where_the_configuration_says_so(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.preview_policies = true)
            .await;
    let (app, admin, any) = (&registry.app, &registry.admin, IfMatch::default());
    let new = policies(&[OPEN, HIDE_PAY]);
    let refused = policies_put(app, admin, &new, &any).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::PreviewNeeded);
    let job = policy_preview_start(app, admin, &new).await.unwrap();
    assert!(make_next_preview(app).await.unwrap());
    let done = policy_preview_show(app, admin, job.id).await.unwrap();
    let seen = NewPolicies {
        preview: done.preview.map(|preview| preview.token),
        ..new
    };
    let made = policies_put(app, admin, &seen, &any).await.unwrap();
    assert_eq!(made.number, 1);
}

/// Each process lists all that run, with the set that each has in force.
#[tokio::test]
async fn processes_list_one_another_until_they_are_silent() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    let second = first.second_process().await;
    put_policies(&first, &[OPEN, HIDE_PAY]).await;
    first.catch_up().await;
    for registry in [&first, &second] {
        report_policy_set(&registry.app).await.unwrap();
    }
    let in_force = async |registry: &InProcessRegistry| {
        let replicas = load_policy_replicas(&registry.app).await.unwrap();
        let numbers = replicas.iter().map(|replica| replica.in_force);
        numbers.collect::<Vec<u64>>()
    };
    assert_eq!(in_force(&first).await, [1, 0]);
    assert_eq!(in_force(&second).await, [0, 1]);
    // The clock of a process does not count, because the others have clocks of their own.
    first.advance(time::Duration::hours(1));
    report_policy_set(&first.app).await.unwrap();
    assert_eq!(in_force(&first).await, [1, 0]);
    assert_eq!(in_force(&second).await, [0, 1]);
    let earlier = "UPDATE policy_replicas SET seen_at = seen_at - 31000000";
    let connection = first.app.store.connection();
    connection.execute_unprepared(earlier).await.unwrap();
    report_policy_set(&first.app).await.unwrap();
    assert_eq!(in_force(&first).await, [1]);
}
