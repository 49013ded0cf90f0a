//! Policies tried before they decide: dry runs, previews and test cases, on both databases.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentPatch, GroupMembers, PolicyCase, PolicyCases};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::dry_run::load_policy_dry_run;
use a2a_registry_core::policies::policy_cases::policies_test;
use a2a_registry_core::policies::policy_job::run_policy_job_once;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_store::dry_runs::dry_run_changes_by_policy;
use a2a_registry_store::entity::dry_run_change;
use time::Duration;

use crate::admission_policies::{NO_PAYMENTS, OPEN, apply_policies, card, is_listed, policies};
use crate::policies::caller as account;
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch};
use crate::support::policy_previews::policies_preview;

both_databases!(
    a_dry_run_tells_what_it_would_have_changed,
    counts_of_a_dry_run_have_a_bound,
    a_preview_tells_who_gains_and_loses_what,
    cases_are_decided_as_the_policies_say,
    a_preview_compares_everybody_whom_policies_name
);

async fn a_preview_compares_everybody_whom_policies_name(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    // A restricted agent is compared for the group that sees it, and an account with the groups that it is in.
    account(&registry, "cora", Role::Reader).await;
    let cora = GroupMembers {
        members: vec!["cora".into()],
    };
    for group in ["auditors", "guests"] {
        group_put(
            &registry.app,
            &registry.admin,
            group,
            &cora,
            &IfMatch::default(),
        )
        .await
        .unwrap();
    }
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        groups: Some(vec!["auditors".into()]),
        ..AgentPatch::default()
    };
    agent_patch(
        &registry.app,
        &registry.admin,
        &payer.to_string(),
        &restricted,
    )
    .await
    .unwrap();
    let named: Vec<(String, String)> = ["Group::\"auditors\"", "Group::\"guests\""]
        .into_iter()
        .map(|group| (group.to_owned(), "principal in"))
        .chain([("Account::\"cora\"".to_owned(), "principal ==")])
        .enumerate()
        .map(|(at, (who, scope))| {
            let text = format!("forbid ({scope} {who}, action == Action::\"discover\", resource) when {{ resource.skills.contains(\"pay\") }};");
            (format!("hide-{at}"), text)
        })
        .collect();
    let mut texts: Vec<(&str, &str)> = vec![OPEN];
    texts.extend(named.iter().map(|(id, text)| (id.as_str(), text.as_str())));
    let told = policies_preview(&registry.app, &registry.admin, &policies(&texts))
        .await
        .unwrap();
    let lost: Vec<(&str, u64)> = told
        .changes
        .iter()
        .filter(|change| change.action == "discover")
        .map(|change| (change.caller.as_str(), change.lost))
        .collect();
    let both = ("groups auditors, guests", 1);
    assert_eq!(lost, [("account cora", 1), ("group auditors", 1), both]);
    registry
        .register_approved_card("open.agents-test.com", &card("Open", "open"))
        .await;
    let many: Vec<(String, String)> = (0..300)
        .map(|at| {
            let text = format!("forbid (principal in Group::\"g{at}\", action, resource);");
            (format!("p{at}"), text)
        })
        .collect();
    let mut texts: Vec<(&str, &str)> = vec![OPEN];
    texts.extend(many.iter().map(|(id, text)| (id.as_str(), text.as_str())));
    let told = policies_preview(&registry.app, &registry.admin, &policies(&texts))
        .await
        .unwrap();
    let hit = told.changes.iter().filter(|change| change.lost > 0);
    assert_eq!(hit.count(), 2 * many.len());
}

async fn a_dry_run_tells_what_it_would_have_changed(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    registry
        .register_approved_card("other.agents-test.com", &card("Other", "else"))
        .await;
    let reader = account(&registry, "rita", Role::Reader).await;
    let hide = "@mode(\"dry_run\") forbid (principal, action == Action::\"discover\", resource) when { resource.skills.contains(\"pay\") };";
    let admit = "@mode(\"dry_run\") permit (principal, action == Action::\"admit\", resource);";
    apply_policies(&registry, &[OPEN, ("hide", hide), ("admit-all", admit)]).await;
    let told = async |policy: &str| {
        run_policy_job_once(&registry.app, || false).await.unwrap();
        load_policy_dry_run(&registry.app, &registry.admin, policy)
            .await
            .unwrap()
    };
    assert_eq!(told("hide").await.answers, 0);

    // Everybody but those whom policies do not bind counts, and nothing is hidden.
    assert!(is_listed(&registry, payer).await);
    registry.search_all(&reader, &SearchQuery::default()).await;
    registry
        .search_all(&registry.admin, &SearchQuery::default())
        .await;
    load_cached_agent_view(&registry.app, &reader, &payer.to_string())
        .await
        .unwrap();
    let hidden = told("hide").await;
    assert_eq!(
        (hidden.answers, hidden.days.len(), hidden.running),
        (3, 1, true)
    );
    assert_eq!(
        (
            hidden.days[0].denied,
            hidden.days[0].resources,
            hidden.days[0].callers
        ),
        (3, 1, 2)
    );
    assert_eq!(hidden.resources[0].name, payer.to_string());
    assert_eq!(hidden.callers[0].name, "rita");

    // A card that waits would have been admitted.
    let waits = registry
        .register_with_card("new.agents-test.com", &card("New", "new"))
        .await
        .id;
    assert!(registry.find_open_review(waits).await.is_some());
    assert_eq!(told("admit-all").await.days[0].allowed, 1);

    // Counts of another day stand by themselves, and another text begins anew.
    registry.advance(Duration::days(1));
    registry.search_all(&reader, &SearchQuery::default()).await;
    assert_eq!(told("hide").await.days.len(), 2);
    apply_policies(&registry, &[OPEN, ("hide", &format!("// again\n{hide}"))]).await;
    assert_eq!(told("hide").await.answers, 0);
    let unknown = load_policy_dry_run(&registry.app, &registry.admin, "nothing")
        .await
        .unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound);
    let reader = load_policy_dry_run(&registry.app, &reader, "hide")
        .await
        .unwrap_err();
    assert_eq!(reader.kind, ErrorKind::Forbidden);
}

/// A day has a bounded number of rows; what is written adds up, in whichever order.
async fn counts_of_a_dry_run_have_a_bound(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let row = |day: i32, resource: &str| dry_run_change::Model {
        policy: "hide".into(),
        fingerprint: "0011223344556677".into(),
        day,
        action: "discover".into(),
        resource: resource.into(),
        caller: String::new(),
        allows: false,
        count: 2,
    };
    let add = async |day: i32, resources: &[&str]| {
        let rows: Vec<_> = resources.iter().map(|one| row(day, one)).collect();
        let write = registry.store.begin_write().await.unwrap();
        let added = write
            .add_policy_dry_run_counts(&rows, day, 2)
            .await
            .unwrap();
        write.commit().await.unwrap();
        added
    };
    assert!(add(1, &["a"]).await && add(1, &["a", "b"]).await);
    assert!(!add(1, &["a"]).await, "the day is full");
    assert!(add(2, &["a"]).await, "another day is not");
    let kept = dry_run_changes_by_policy(&registry.store, "hide", "0011223344556677", 10).await;
    let kept: Vec<_> = kept
        .unwrap()
        .into_iter()
        .map(|row| (row.day, row.resource, row.count))
        .collect();
    let expected = [(2, "a", 2), (1, "a", 4), (1, "b", 2)];
    assert_eq!(
        kept,
        expected.map(|(day, resource, count)| (day, resource.to_owned(), count))
    );
}

async fn a_preview_tells_who_gains_and_loses_what(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    registry
        .register_approved_card("other.agents-test.com", &card("Other", "else"))
        .await;
    let hide = "forbid (principal in Group::\"contractors\", action == Action::\"discover\", resource) when { resource.skills.contains(\"pay\") };";
    let next = policies(&[OPEN, ("hide", hide), NO_PAYMENTS]);
    let told = policies_preview(&registry.app, &registry.admin, &next)
        .await
        .unwrap();
    assert_eq!(told.agents, 2);
    let change = |action: &str, caller: &str| {
        let mut changes = told.changes.iter();
        changes
            .find(|change| change.action == action && change.caller == caller)
            .cloned()
    };
    let lost = change("discover", "group contractors").unwrap();
    assert_eq!((lost.lost, lost.gained), (1, 0));
    assert_eq!(lost.lost_sample[0].id, payer);
    assert_eq!(lost.lost_sample[0].policies, ["hide"]);
    assert_eq!(change("admit", "registrant").unwrap().lost, 1);
    assert_eq!(told.changes.len(), 2, "{:?}", told.changes);
    assert!(
        told.warnings
            .iter()
            .any(|warning| warning.contains("group contractors"))
    );
    let what: Vec<_> = told
        .policies
        .iter()
        .map(|one| format!("{} {}", one.what, one.id))
        .collect();
    assert_eq!(
        what,
        ["add all", "remove everybody", "add hide", "add no-payments"]
    );

    // Nothing was changed, and what is told is what happens.
    assert!(is_listed(&registry, payer).await);
    apply_policies(&registry, &[OPEN, ("hide", hide), NO_PAYMENTS]).await;
    let same = policies_preview(&registry.app, &registry.admin, &next)
        .await
        .unwrap();
    assert!(
        same.changes.is_empty() && same.policies.is_empty(),
        "{same:?}"
    );
    let back = policies_preview(&registry.app, &registry.admin, &policies(&[]))
        .await
        .unwrap();
    assert!(
        back.warnings
            .iter()
            .any(|warning| warning.contains("`discover`"))
    );
    let broken = policies(&[(
        "a",
        "permit (principal, action, resource) when { resource.colour == 1 };",
    )]);
    let refused = policies_preview(&registry.app, &registry.admin, &broken)
        .await
        .unwrap_err();
    assert_eq!(
        (refused.kind, refused.members.len()),
        (ErrorKind::Invalid, 1)
    );
}

async fn cases_are_decided_as_the_policies_say(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    apply_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    let case = |action: &str, expect: &str, because: Option<&str>| PolicyCase {
        action: action.into(),
        resource: payer.to_string(),
        expect: expect.into(),
        because: because.map(str::to_owned),
        ..PolicyCase::default()
    };
    let register = PolicyCase {
        resource: "example.com".into(),
        ..case("register", "allow", Some("registration"))
    };
    let asked = PolicyCases {
        policies: None,
        cases: vec![
            case("discover", "allow", Some("all")),
            case("admit", "deny", Some("no-payments")),
            register,
            case("invoke", "deny", None),
        ],
    };
    let told = policies_test(&registry.app, &registry.admin, &asked)
        .await
        .unwrap();
    let passed: Vec<bool> = told.results.iter().map(|result| result.passed).collect();
    assert_eq!(
        (told.passed, passed),
        (false, vec![true, true, true, false])
    );
    let by_others = PolicyCases {
        policies: Some(Vec::new()),
        cases: vec![case("discover", "deny", None)],
    };
    assert!(
        policies_test(&registry.app, &registry.admin, &by_others)
            .await
            .unwrap()
            .passed
    );
    for (broken, pointer) in [
        (case("fly", "allow", None), "/cases/0/action"),
        (case("admit", "perhaps", None), "/cases/0/expect"),
        (
            PolicyCase {
                resource: "nobody".into(),
                ..case("admit", "deny", None)
            },
            "/cases/0/resource",
        ),
    ] {
        let asked = PolicyCases {
            policies: None,
            cases: vec![broken],
        };
        let refused = policies_test(&registry.app, &registry.admin, &asked)
            .await
            .unwrap_err();
        assert_eq!(refused.members[0].0, pointer);
    }
}
