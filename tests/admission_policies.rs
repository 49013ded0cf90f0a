//! Policies on registration and admission, waivers, dry runs and previews, on both databases.

use a2a_registry_api::{
    AccountPatch, AgentPatch, GroupMembers, NewAccount, NewWaiver, Registration,
};
use a2a_registry_core::accounts::account_operations::{account_create, account_patch};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::policy_job::run_policy_job_once;
use a2a_registry_core::policies::waivers::{
    WaiverQuery, end_active_waiver, waiver_grant, waiver_list,
};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::policy_rollout::roll_out_newest_policies;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use time::Duration;
use uuid::Uuid;

pub(crate) use crate::policies::policies;
use crate::policies::{authenticate_account, caller as account};
use crate::support::both_databases;
use crate::support::in_process_registry::{self, InProcessRegistry, OriginResponse, agent_patch};

both_databases!(
    a_forbid_holds_what_is_there_and_what_comes,
    a_written_permit_approves_for_the_group_of_the_registrant,
    who_is_in_a_group_counts_for_what_is_admitted,
    a_waiver_lifts_one_policy_for_one_content_until_it_ends,
    one_waiver_that_cannot_end_stops_no_other,
    one_agent_that_cannot_be_settled_stops_no_other,
    under_four_eyes_a_party_grants_no_waiver,
    a_waiver_of_finding_shows_the_agent,
    who_may_register_which_domain_is_a_policy,
    replicas_hold_an_agent_once
);

pub(crate) const OPEN: (&str, &str) = ("all", "permit (principal, action, resource);");
pub(crate) const NO_PAYMENTS: (&str, &str) = (
    "no-payments",
    "forbid (principal, action == Action::\"admit\", resource) when { resource.skills.contains(\"pay\") };",
);

/// A card with one skill.
pub(crate) fn card(name: &str, skill: &str) -> Vec<u8> {
    let card = in_process_registry::card_bytes(name, "about something");
    let mut card: serde_json::Value = serde_json::from_slice(&card).unwrap();
    card["skills"][0]["id"] = skill.into();
    card["skills"][0]["tags"] = serde_json::json!([skill]);
    card.to_string().into_bytes()
}

/// Makes a set, and has it decide and act on what is there.
pub(crate) async fn apply_policies(registry: &InProcessRegistry, texts: &[(&str, &str)]) {
    crate::policies::put_policies(registry, texts).await;
    follow(registry).await;
}

async fn follow(registry: &InProcessRegistry) {
    assert!(
        roll_out_newest_policies(&registry.app, || false)
            .await
            .unwrap()
    );
    run_policy_job_once(&registry.app, || false).await.unwrap();
    registry.catch_up().await;
}

pub(crate) async fn is_listed(registry: &InProcessRegistry, agent: Uuid) -> bool {
    registry.catch_up().await;
    registry.publicly_found_ids().await.contains(&agent)
}

async fn register_as(
    registry: &InProcessRegistry,
    caller: &Caller,
    domain: &str,
) -> Result<(), ErrorKind> {
    let wanted = Registration {
        domain: Some(domain.into()),
        ..Registration::default()
    };
    let done = register_domain(&registry.app, caller, &wanted).await;
    done.map(|_| ()).map_err(|error| error.kind)
}

pub(crate) fn waiver(agent: Uuid, policy: &str, digest: &str) -> NewWaiver {
    NewWaiver {
        policy: policy.into(),
        agent: agent.to_string(),
        digest: digest.into(),
        reason: "until the audit".into(),
        expires_in_days: 30,
    }
}

pub(crate) async fn digest_shown(registry: &InProcessRegistry, agent: Uuid) -> String {
    let shown = load_cached_agent_view(&registry.app, &registry.admin, &agent.to_string()).await;
    shown.unwrap().hit.summary.card_digest
}

async fn a_forbid_holds_what_is_there_and_what_comes(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let there = registry
        .register_approved_card("there.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let other = registry
        .register_approved_card("other.agents-test.com", &card("Other", "else"))
        .await
        .id;
    apply_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    assert_eq!(registry.holds(there).await, ["policy"]);
    assert!(registry.holds(other).await.is_empty());
    assert!(!is_listed(&registry, there).await && is_listed(&registry, other).await);

    // What comes later is held at once, in the transaction that stores it, also where a person approves it.
    let later = registry
        .register_with_card("later.agents-test.com", &card("Later", "pay"))
        .await
        .id;
    assert_eq!(registry.holds(later).await, ["policy"]);
    registry.approve_open_review(later).await;
    assert_eq!(registry.holds(later).await, ["policy"]);
    registry.catch_up().await;
    assert!(!is_listed(&registry, later).await);

    // A card that is replaced by one that is not forbidden is released, once it is approved.
    registry
        .crawl_domain(
            "later.agents-test.com",
            OriginResponse::Card(card("Later", "else")),
        )
        .await;
    registry.approve_open_review(later).await;
    assert!(
        registry
            .holds(later)
            .await
            .iter()
            .all(|hold| hold != "policy")
    );

    // An act on a label is an act on the hold, in one transaction.
    let labelled = "forbid (principal, action == Action::\"admit\", resource) when { resource.labels.contains(\"stage=draft\") };";
    apply_policies(&registry, &[OPEN, ("no-drafts", labelled)]).await;
    assert!(registry.holds(there).await.is_empty(), "its policy is gone");
    assert!(is_listed(&registry, there).await);
    let label = |value: Option<&str>| AgentPatch {
        labels: Some(
            value
                .map(|value| ("stage".to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
        ),
        ..AgentPatch::default()
    };
    for (value, holds) in [(Some("draft"), vec!["policy"]), (None, vec![])] {
        agent_patch(
            &registry.app,
            &registry.admin,
            &other.to_string(),
            &label(value),
        )
        .await
        .unwrap();
        assert_eq!(registry.holds(other).await, holds);
    }
    apply_policies(&registry, &[OPEN]).await;
    registry.assert_index_matches_database().await;
}

async fn a_written_permit_approves_for_the_group_of_the_registrant(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ann = account(&registry, "ann", Role::Publisher).await;
    let bob = account(&registry, "bob", Role::Publisher).await;
    let members = GroupMembers {
        members: vec!["ann".into()],
    };
    group_put(
        &registry.app,
        &registry.admin,
        "trusted",
        &members,
        &IfMatch::default(),
    )
    .await
    .unwrap();
    let trusted = "permit (principal in Group::\"trusted\", action == Action::\"admit\", resource) when { resource.tags.contains(\"demo\") || resource.skills.contains(\"echo\") };";
    apply_policies(&registry, &[OPEN, ("trusted", trusted)]).await;
    register_as(&registry, &ann, "ann.agents-test.com")
        .await
        .unwrap();
    register_as(&registry, &bob, "bob.agents-test.com")
        .await
        .unwrap();
    let echo = || OriginResponse::Card(card("Echo", "echo"));
    registry.crawl_domain("ann.agents-test.com", echo()).await;
    registry.crawl_domain("bob.agents-test.com", echo()).await;
    registry.catch_up().await;
    let (of_ann, of_bob) = (
        registry.agent("ann.agents-test.com").await.id,
        registry.agent("bob.agents-test.com").await.id,
    );
    assert!(is_listed(&registry, of_ann).await && !is_listed(&registry, of_bob).await);
    let shown = load_cached_agent_view(&registry.app, &registry.admin, &of_ann.to_string())
        .await
        .unwrap();
    let decision = shown.decision;
    assert!(decision.reason.unwrap().contains("`trusted`"));
    // Policies that approve what waits do so when they come.
    assert!(registry.find_open_review(of_bob).await.is_some());
    let everybody = trusted.replace("principal in Group::\"trusted\"", "principal");
    apply_policies(&registry, &[OPEN, ("trusted", &everybody)]).await;
    assert!(registry.find_open_review(of_bob).await.is_none());
    assert!(is_listed(&registry, of_bob).await);
}

/// Agents are held and approved when their registrant comes into a group or leaves it, in whichever way that happens.
async fn who_is_in_a_group_counts_for_what_is_admitted(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin, any) = (&registry.app, &registry.admin, IfMatch::default());
    let ann = account(&registry, "ann", Role::Publisher).await;
    let members = async |names: &[&str]| {
        let wanted = GroupMembers {
            members: names.iter().map(ToString::to_string).collect(),
        };
        group_put(app, admin, "contractors", &wanted, &any)
            .await
            .unwrap();
        registry.catch_up().await;
        run_policy_job_once(app, || false).await.unwrap();
    };
    members(&[]).await;
    let forbid =
        "forbid (principal in Group::\"contractors\", action == Action::\"admit\", resource);";
    apply_policies(&registry, &[OPEN, ("contractors", forbid)]).await;
    register_as(&registry, &ann, "ann.agents-test.com")
        .await
        .unwrap();
    registry
        .crawl_domain(
            "ann.agents-test.com",
            OriginResponse::Card(card("Echo", "echo")),
        )
        .await;
    let agent = registry.agent("ann.agents-test.com").await.id;
    registry.approve_open_review(agent).await;
    assert!(is_listed(&registry, agent).await);
    members(&["ann"]).await;
    assert!(!is_listed(&registry, agent).await);
    // Twice the same name is one group.
    let groups = |names: &[&str]| AccountPatch {
        groups: Some(names.iter().map(ToString::to_string).collect()),
        ..AccountPatch::default()
    };
    for (names, listed) in [(&[][..], true), (&["contractors", "contractors"], false)] {
        let patched = account_patch(app, admin, "ann", &groups(names), &any).await;
        assert_eq!(patched.unwrap().groups.len(), usize::from(!listed));
        registry.catch_up().await;
        run_policy_job_once(app, || false).await.unwrap();
        assert_eq!(is_listed(&registry, agent).await, listed, "{names:?}");
    }
}

async fn a_waiver_lifts_one_policy_for_one_content_until_it_ends(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let curator = account(&registry, "cora", Role::Curator).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    apply_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    let digest = digest_shown(&registry, payer).await;
    let good = waiver(payer, "no-payments", &digest);

    // What is refused changes nothing.
    let refusals = [
        (
            NewWaiver {
                policy: "all".into(),
                ..good.clone()
            },
            ErrorKind::Invalid,
        ),
        (
            NewWaiver {
                policy: "none".into(),
                ..good.clone()
            },
            ErrorKind::Invalid,
        ),
        (
            NewWaiver {
                expires_in_days: 0,
                ..good.clone()
            },
            ErrorKind::Invalid,
        ),
        (
            NewWaiver {
                expires_in_days: 181,
                ..good.clone()
            },
            ErrorKind::Invalid,
        ),
        (
            NewWaiver {
                reason: " ".into(),
                ..good.clone()
            },
            ErrorKind::Invalid,
        ),
        (
            NewWaiver {
                digest: format!("sha256:{}", "0".repeat(64)),
                ..good.clone()
            },
            ErrorKind::Conflict,
        ),
        (
            NewWaiver {
                agent: Uuid::nil().to_string(),
                ..good.clone()
            },
            ErrorKind::NotFound,
        ),
    ];
    for (new, kind) in refusals {
        let refused = waiver_grant(&registry.app, &curator, &new)
            .await
            .unwrap_err();
        assert_eq!(refused.kind, kind, "{new:?}");
    }
    let reader = account(&registry, "rita", Role::Reader).await;
    let refused = waiver_grant(&registry.app, &reader, &good)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert_eq!(registry.holds(payer).await, ["policy"]);

    let granted = waiver_grant(&registry.app, &curator, &good).await.unwrap();
    assert!(granted.is_shown && registry.holds(payer).await.is_empty());
    assert!(is_listed(&registry, payer).await);
    let again = waiver_grant(&registry.app, &curator, &good)
        .await
        .unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict);

    // It holds for this content only.
    registry
        .crawl_domain(
            "pay.agents-test.com",
            OriginResponse::Card(card("Payer", "pay more")),
        )
        .await;
    let changed = card("Payer", "pay");
    let mut changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
    changed["description"] = "another text".into();
    registry
        .crawl_domain(
            "pay.agents-test.com",
            OriginResponse::Card(changed.to_string().into_bytes()),
        )
        .await;
    registry.approve_open_review(payer).await;
    assert!(registry.holds(payer).await.contains(&"policy".to_owned()));
    registry
        .crawl_domain(
            "pay.agents-test.com",
            OriginResponse::Card(card("Payer", "pay")),
        )
        .await;
    if registry.find_open_review(payer).await.is_some() {
        registry.approve_open_review(payer).await;
    }
    assert!(
        registry.holds(payer).await.is_empty(),
        "{:?}",
        registry.holds(payer).await
    );

    // It ends by itself, and the policy counts again.
    registry.advance(Duration::days(31));
    run_policy_job_once(&registry.app, || false).await.unwrap();
    assert_eq!(registry.holds(payer).await, ["policy"]);
    let query = WaiverQuery {
        ended: true,
        ..WaiverQuery::default()
    };
    let ended = waiver_list(&registry.app, &registry.admin, &query)
        .await
        .unwrap()
        .waivers;
    assert_eq!(ended[0].ended_reason.as_deref(), Some("expired"));
    assert!(
        waiver_list(&registry.app, &registry.admin, &WaiverQuery::default())
            .await
            .unwrap()
            .waivers
            .is_empty()
    );

    // It does not outlive its approver.
    let digest = digest_shown(&registry, payer).await;
    waiver_grant(
        &registry.app,
        &authenticate_account(&registry, "cora").await,
        &waiver(payer, "no-payments", &digest),
    )
    .await
    .unwrap();
    assert!(registry.holds(payer).await.is_empty());
    let disable = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(
        &registry.app,
        &registry.admin,
        "cora",
        &disable,
        &IfMatch::default(),
    )
    .await
    .unwrap();
    run_policy_job_once(&registry.app, || false).await.unwrap();
    assert_eq!(registry.holds(payer).await, ["policy"]);

    // It is taken back once.
    let back = waiver_grant(
        &registry.app,
        &registry.admin,
        &waiver(payer, "no-payments", &digest),
    )
    .await
    .unwrap();
    end_active_waiver(&registry.app, &registry.admin, back.id)
        .await
        .unwrap();
    assert_eq!(registry.holds(payer).await, ["policy"]);
    let twice = end_active_waiver(&registry.app, &registry.admin, back.id)
        .await
        .unwrap_err();
    assert_eq!(twice.kind, ErrorKind::NotFound);
}

async fn one_waiver_that_cannot_end_stops_no_other(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let cora = account(&registry, "cora", Role::Curator).await;
    let mut agents = Vec::new();
    for (domain, reason) in [
        ("a.agents-test.com", "stuck"),
        ("b.agents-test.com", "fine"),
    ] {
        let agent = registry
            .register_approved_card(domain, &card("Payer", "pay"))
            .await;
        agents.push((agent.id, reason));
    }
    apply_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    for (agent, reason) in &agents {
        let new = NewWaiver {
            reason: (*reason).to_owned(),
            ..waiver(
                *agent,
                "no-payments",
                &digest_shown(&registry, *agent).await,
            )
        };
        waiver_grant(&registry.app, &cora, &new).await.unwrap();
        assert!(registry.holds(*agent).await.is_empty());
        // Waivers are ended in the order in which they were granted.
        registry.advance(Duration::seconds(1));
    }
    registry.advance(Duration::days(31));
    registry
        .reject_row_updates("waivers", "reason", "stuck")
        .await;
    let in_force = async || {
        let query = WaiverQuery::default();
        let list = waiver_list(&registry.app, &registry.admin, &query)
            .await
            .unwrap();
        let reasons = list.waivers.into_iter().map(|one| one.reason);
        reasons.collect::<Vec<_>>()
    };
    assert!(run_policy_job_once(&registry.app, || false).await.is_err());
    assert_eq!(in_force().await, ["stuck"]);
    // What is expired does not count, whether that is written down or not.
    for (agent, _) in &agents {
        assert_eq!(registry.holds(*agent).await, ["policy"]);
    }
    registry.allow_row_updates("waivers").await;
    run_policy_job_once(&registry.app, || false).await.unwrap();
    assert!(in_force().await.is_empty());
}

async fn one_agent_that_cannot_be_settled_stops_no_other(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let mut agents = Vec::new();
    for domain in ["a.agents-test.com", "b.agents-test.com"] {
        let agent = registry
            .register_approved_card(domain, &card("Payer", "pay"))
            .await;
        agents.push(agent.id);
    }
    registry
        .reject_row_updates("agents", "domain", "a.agents-test.com")
        .await;
    crate::policies::put_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    assert!(
        roll_out_newest_policies(&registry.app, || false)
            .await
            .unwrap()
    );
    assert!(run_policy_job_once(&registry.app, || false).await.is_err());
    assert!(registry.holds(agents[0]).await.is_empty());
    assert_eq!(registry.holds(agents[1]).await, ["policy"]);
    // It is looked at until it is settled.
    assert!(run_policy_job_once(&registry.app, || false).await.is_err());
    registry.allow_row_updates("agents").await;
    run_policy_job_once(&registry.app, || false).await.unwrap();
    assert_eq!(registry.holds(agents[0]).await, ["policy"]);
}

async fn under_four_eyes_a_party_grants_no_waiver(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.four_eyes = true).await;
    let both = NewAccount {
        name: "pia".into(),
        roles: vec![Role::Publisher, Role::Curator],
        groups: Vec::new(),
    };
    account_create(&registry.app, &registry.admin, &both)
        .await
        .unwrap();
    let pia = authenticate_account(&registry, "pia").await;
    register_as(&registry, &pia, "pia.agents-test.com")
        .await
        .unwrap();
    registry
        .crawl_domain(
            "pia.agents-test.com",
            OriginResponse::Card(card("Payer", "pay")),
        )
        .await;
    let agent = registry.agent("pia.agents-test.com").await.id;
    registry.approve_open_review(agent).await;
    apply_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    let good = waiver(agent, "no-payments", &digest_shown(&registry, agent).await);
    let refused = waiver_grant(&registry.app, &pia, &good).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert_eq!(registry.holds(agent).await, ["policy"]);
    waiver_grant(&registry.app, &registry.admin, &good)
        .await
        .unwrap();
    assert!(registry.holds(agent).await.is_empty());
}

async fn a_waiver_of_finding_shows_the_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let hide = "forbid (principal, action, resource) when { resource.skills.contains(\"pay\") };";
    apply_policies(&registry, &[OPEN, ("hide", hide)]).await;
    assert!(!is_listed(&registry, payer).await && registry.holds(payer).await.is_empty());
    let granted = waiver_grant(
        &registry.app,
        &registry.admin,
        &waiver(payer, "hide", &digest_shown(&registry, payer).await),
    )
    .await
    .unwrap();
    registry.catch_up().await;
    assert!(is_listed(&registry, payer).await);
    end_active_waiver(&registry.app, &registry.admin, granted.id)
        .await
        .unwrap();
    registry.catch_up().await;
    assert!(!is_listed(&registry, payer).await);
}

async fn who_may_register_which_domain_is_a_policy(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ann = account(&registry, "ann", Role::Publisher).await;
    let own = "permit (principal == Account::\"ann\", action == Action::\"register\", resource) when { resource.name like \"*.ann-test.com\" };";
    let bad = "forbid (principal, action == Action::\"register\", resource) when { resource.name like \"bad.*\" };";
    apply_policies(&registry, &[OPEN, ("registration", own), ("bad", bad)]).await;
    register_as(&registry, &ann, "a.ann-test.com")
        .await
        .unwrap();
    for domain in ["b.other-test.com", "bad.ann-test.com"] {
        assert_eq!(
            register_as(&registry, &ann, domain).await,
            Err(ErrorKind::PolicyDenied)
        );
    }
    assert_eq!(
        register_as(&registry, &registry.admin, "bad.ann-test.com").await,
        Err(ErrorKind::PolicyDenied)
    );
    apply_policies(&registry, &[OPEN]).await;
    register_as(&registry, &ann, "b.other-test.com")
        .await
        .unwrap();
}

async fn replicas_hold_an_agent_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    if !url.starts_with("postgres") {
        return;
    }
    let payer = registry
        .register_approved_card("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let other = registry.second_process().await;
    crate::policies::put_policies(&registry, &[OPEN, NO_PAYMENTS]).await;
    // A replica that has not heard of the set yet admits nothing that it forbids.
    let late = other
        .register_with_card("late.agents-test.com", &card("Late", "pay"))
        .await
        .id;
    assert_eq!(other.holds(late).await, ["policy"]);
    let (one, two) = tokio::join!(
        roll_out_newest_policies(&registry.app, || false),
        roll_out_newest_policies(&other.app, || false)
    );
    assert!(one.unwrap() && two.unwrap());
    let (one, two) = tokio::join!(
        run_policy_job_once(&registry.app, || false),
        run_policy_job_once(&other.app, || false)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(registry.holds(payer).await, ["policy"]);
}
