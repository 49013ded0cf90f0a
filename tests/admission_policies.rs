//! Policies of registering and admitting, waivers, dry runs and previews, on both databases.

use a2a_registry_api::{
    AccountPatch, AgentPatch, GroupMembers, NewAccount, NewWaiver, Registration,
};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::accounts::people::{account_create, account_patch};
use a2a_registry_core::agents::owner::agent_patch;
use a2a_registry_core::agents::rendered::agent_answered;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::job::round;
use a2a_registry_core::policies::waivers::{WaiverQuery, waiver_end, waiver_grant, waiver_list};
use a2a_registry_core::precondition::Precondition;
use a2a_registry_core::search::policy_switch::follow_newest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use time::Duration;
use uuid::Uuid;

pub(crate) use crate::policies::policies;
use crate::policies::{caller as account, signed_in};
use crate::support::both_databases;
use crate::support::stage::{self, OriginAnswer, Stage};

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
    let card = stage::card(name, "about something");
    let mut card: serde_json::Value = serde_json::from_slice(&card).unwrap();
    card["skills"][0]["id"] = skill.into();
    card["skills"][0]["tags"] = serde_json::json!([skill]);
    card.to_string().into_bytes()
}

/// Makes a set, and has it decide and act on what is there.
pub(crate) async fn put(stage: &Stage, texts: &[(&str, &str)]) {
    crate::policies::put(stage, texts).await;
    follow(stage).await;
}

async fn follow(stage: &Stage) {
    assert!(follow_newest(&stage.app, || false).await.unwrap());
    round(&stage.app, || false).await.unwrap();
    stage.settle().await;
}

pub(crate) async fn is_listed(stage: &Stage, agent: Uuid) -> bool {
    stage.settle().await;
    stage.found_by_anyone().await.contains(&agent)
}

async fn register_as(stage: &Stage, caller: &Caller, domain: &str) -> Result<(), ErrorKind> {
    let wanted = Registration {
        domain: Some(domain.into()),
        ..Registration::default()
    };
    let done = register(&stage.app, caller, &wanted).await;
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

pub(crate) async fn digest_shown(stage: &Stage, agent: Uuid) -> String {
    let shown = agent_answered(&stage.app, &stage.admin, &agent.to_string()).await;
    shown.unwrap().hit.summary.card_digest
}

async fn a_forbid_holds_what_is_there_and_what_comes(url: &str) {
    let stage = Stage::new(url).await;
    let there = stage
        .publish_approved("there.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let other = stage
        .publish_approved("other.agents-test.com", &card("Other", "else"))
        .await
        .id;
    put(&stage, &[OPEN, NO_PAYMENTS]).await;
    assert_eq!(stage.holds(there).await, ["policy"]);
    assert!(stage.holds(other).await.is_empty());
    assert!(!is_listed(&stage, there).await && is_listed(&stage, other).await);

    // What comes later is held at once, in the transaction that stores it, also where a person approves it.
    let later = stage
        .publish("later.agents-test.com", &card("Later", "pay"))
        .await
        .id;
    assert_eq!(stage.holds(later).await, ["policy"]);
    stage.approve(later).await;
    assert_eq!(stage.holds(later).await, ["policy"]);
    stage.settle().await;
    assert!(!is_listed(&stage, later).await);

    // A card that is replaced by one that is not forbidden is released, once it is approved.
    stage
        .crawl(
            "later.agents-test.com",
            OriginAnswer::Card(card("Later", "else")),
        )
        .await;
    stage.approve(later).await;
    assert!(stage.holds(later).await.iter().all(|hold| hold != "policy"));

    // An act on a label is an act on the hold, in one transaction.
    let labelled = "forbid (principal, action == Action::\"admit\", resource) when { resource.labels.contains(\"stage=draft\") };";
    put(&stage, &[OPEN, ("no-drafts", labelled)]).await;
    assert!(stage.holds(there).await.is_empty(), "its policy is gone");
    assert!(is_listed(&stage, there).await);
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
        agent_patch(&stage.app, &stage.admin, &other.to_string(), &label(value))
            .await
            .unwrap();
        assert_eq!(stage.holds(other).await, holds);
    }
    put(&stage, &[OPEN]).await;
    stage.index_equals_database().await;
}

async fn a_written_permit_approves_for_the_group_of_the_registrant(url: &str) {
    let stage = Stage::new(url).await;
    let ann = account(&stage, "ann", Role::Publisher).await;
    let bob = account(&stage, "bob", Role::Publisher).await;
    let members = GroupMembers {
        members: vec!["ann".into()],
    };
    group_put(
        &stage.app,
        &stage.admin,
        "trusted",
        &members,
        &Precondition::default(),
    )
    .await
    .unwrap();
    let trusted = "permit (principal in Group::\"trusted\", action == Action::\"admit\", resource) when { resource.tags.contains(\"demo\") || resource.skills.contains(\"echo\") };";
    put(&stage, &[OPEN, ("trusted", trusted)]).await;
    register_as(&stage, &ann, "ann.agents-test.com")
        .await
        .unwrap();
    register_as(&stage, &bob, "bob.agents-test.com")
        .await
        .unwrap();
    let echo = || OriginAnswer::Card(card("Echo", "echo"));
    stage.crawl("ann.agents-test.com", echo()).await;
    stage.crawl("bob.agents-test.com", echo()).await;
    stage.settle().await;
    let (of_ann, of_bob) = (
        stage.agent("ann.agents-test.com").await.id,
        stage.agent("bob.agents-test.com").await.id,
    );
    assert!(is_listed(&stage, of_ann).await && !is_listed(&stage, of_bob).await);
    let shown = agent_answered(&stage.app, &stage.admin, &of_ann.to_string())
        .await
        .unwrap();
    let decision = shown.decision;
    assert!(decision.reason.unwrap().contains("`trusted`"));
    // Policies that approve what waits do so when they come.
    assert!(stage.open_review(of_bob).await.is_some());
    let everybody = trusted.replace("principal in Group::\"trusted\"", "principal");
    put(&stage, &[OPEN, ("trusted", &everybody)]).await;
    assert!(stage.open_review(of_bob).await.is_none());
    assert!(is_listed(&stage, of_bob).await);
}

/// Agents are held and approved when their registrant comes into a group or leaves it, in whichever way that happens.
async fn who_is_in_a_group_counts_for_what_is_admitted(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin, any) = (&stage.app, &stage.admin, Precondition::default());
    let ann = account(&stage, "ann", Role::Publisher).await;
    let members = async |names: &[&str]| {
        let wanted = GroupMembers {
            members: names.iter().map(ToString::to_string).collect(),
        };
        group_put(app, admin, "contractors", &wanted, &any)
            .await
            .unwrap();
        stage.settle().await;
        round(app, || false).await.unwrap();
    };
    members(&[]).await;
    let forbid =
        "forbid (principal in Group::\"contractors\", action == Action::\"admit\", resource);";
    put(&stage, &[OPEN, ("contractors", forbid)]).await;
    register_as(&stage, &ann, "ann.agents-test.com")
        .await
        .unwrap();
    stage
        .crawl(
            "ann.agents-test.com",
            OriginAnswer::Card(card("Echo", "echo")),
        )
        .await;
    let agent = stage.agent("ann.agents-test.com").await.id;
    stage.approve(agent).await;
    assert!(is_listed(&stage, agent).await);
    members(&["ann"]).await;
    assert!(!is_listed(&stage, agent).await);
    // Twice the same name is one group.
    let groups = |names: &[&str]| AccountPatch {
        groups: Some(names.iter().map(ToString::to_string).collect()),
        ..AccountPatch::default()
    };
    for (names, listed) in [(&[][..], true), (&["contractors", "contractors"], false)] {
        let patched = account_patch(app, admin, "ann", &groups(names), &any).await;
        assert_eq!(patched.unwrap().groups.len(), usize::from(!listed));
        stage.settle().await;
        round(app, || false).await.unwrap();
        assert_eq!(is_listed(&stage, agent).await, listed, "{names:?}");
    }
}

async fn a_waiver_lifts_one_policy_for_one_content_until_it_ends(url: &str) {
    let stage = Stage::new(url).await;
    let curator = account(&stage, "cora", Role::Curator).await;
    let payer = stage
        .publish_approved("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    put(&stage, &[OPEN, NO_PAYMENTS]).await;
    let digest = digest_shown(&stage, payer).await;
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
        let refused = waiver_grant(&stage.app, &curator, &new).await.unwrap_err();
        assert_eq!(refused.kind, kind, "{new:?}");
    }
    let reader = account(&stage, "rita", Role::Reader).await;
    let refused = waiver_grant(&stage.app, &reader, &good).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert_eq!(stage.holds(payer).await, ["policy"]);

    let granted = waiver_grant(&stage.app, &curator, &good).await.unwrap();
    assert!(granted.is_shown && stage.holds(payer).await.is_empty());
    assert!(is_listed(&stage, payer).await);
    let again = waiver_grant(&stage.app, &curator, &good).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict);

    // It holds for this content only.
    stage
        .crawl(
            "pay.agents-test.com",
            OriginAnswer::Card(card("Payer", "pay more")),
        )
        .await;
    let changed = card("Payer", "pay");
    let mut changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
    changed["description"] = "another text".into();
    stage
        .crawl(
            "pay.agents-test.com",
            OriginAnswer::Card(changed.to_string().into_bytes()),
        )
        .await;
    stage.approve(payer).await;
    assert!(stage.holds(payer).await.contains(&"policy".to_owned()));
    stage
        .crawl(
            "pay.agents-test.com",
            OriginAnswer::Card(card("Payer", "pay")),
        )
        .await;
    if stage.open_review(payer).await.is_some() {
        stage.approve(payer).await;
    }
    assert!(
        stage.holds(payer).await.is_empty(),
        "{:?}",
        stage.holds(payer).await
    );

    // It ends by itself, and the policy counts again.
    stage.advance(Duration::days(31));
    round(&stage.app, || false).await.unwrap();
    assert_eq!(stage.holds(payer).await, ["policy"]);
    let query = WaiverQuery {
        ended: true,
        ..WaiverQuery::default()
    };
    let ended = waiver_list(&stage.app, &stage.admin, &query)
        .await
        .unwrap()
        .waivers;
    assert_eq!(ended[0].ended_reason.as_deref(), Some("expired"));
    assert!(
        waiver_list(&stage.app, &stage.admin, &WaiverQuery::default())
            .await
            .unwrap()
            .waivers
            .is_empty()
    );

    // It does not outlive its approver.
    let digest = digest_shown(&stage, payer).await;
    waiver_grant(
        &stage.app,
        &signed_in(&stage, "cora").await,
        &waiver(payer, "no-payments", &digest),
    )
    .await
    .unwrap();
    assert!(stage.holds(payer).await.is_empty());
    let disable = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(
        &stage.app,
        &stage.admin,
        "cora",
        &disable,
        &Precondition::default(),
    )
    .await
    .unwrap();
    round(&stage.app, || false).await.unwrap();
    assert_eq!(stage.holds(payer).await, ["policy"]);

    // It is taken back once.
    let back = waiver_grant(
        &stage.app,
        &stage.admin,
        &waiver(payer, "no-payments", &digest),
    )
    .await
    .unwrap();
    waiver_end(&stage.app, &stage.admin, back.id).await.unwrap();
    assert_eq!(stage.holds(payer).await, ["policy"]);
    let twice = waiver_end(&stage.app, &stage.admin, back.id)
        .await
        .unwrap_err();
    assert_eq!(twice.kind, ErrorKind::NotFound);
}

async fn one_waiver_that_cannot_end_stops_no_other(url: &str) {
    let stage = Stage::new(url).await;
    let cora = account(&stage, "cora", Role::Curator).await;
    let mut agents = Vec::new();
    for (domain, reason) in [
        ("a.agents-test.com", "stuck"),
        ("b.agents-test.com", "fine"),
    ] {
        let agent = stage.publish_approved(domain, &card("Payer", "pay")).await;
        agents.push((agent.id, reason));
    }
    put(&stage, &[OPEN, NO_PAYMENTS]).await;
    for (agent, reason) in &agents {
        let new = NewWaiver {
            reason: (*reason).to_owned(),
            ..waiver(*agent, "no-payments", &digest_shown(&stage, *agent).await)
        };
        waiver_grant(&stage.app, &cora, &new).await.unwrap();
        assert!(stage.holds(*agent).await.is_empty());
        // Waivers are ended in the order in which they were granted.
        stage.advance(Duration::seconds(1));
    }
    stage.advance(Duration::days(31));
    stage.refuse_changes("waivers", "reason", "stuck").await;
    let in_force = async || {
        let query = WaiverQuery::default();
        let list = waiver_list(&stage.app, &stage.admin, &query).await.unwrap();
        let reasons = list.waivers.into_iter().map(|one| one.reason);
        reasons.collect::<Vec<_>>()
    };
    assert!(round(&stage.app, || false).await.is_err());
    assert_eq!(in_force().await, ["stuck"]);
    // What is expired does not count, whether that is written down or not.
    for (agent, _) in &agents {
        assert_eq!(stage.holds(*agent).await, ["policy"]);
    }
    stage.allow_changes("waivers").await;
    round(&stage.app, || false).await.unwrap();
    assert!(in_force().await.is_empty());
}

async fn one_agent_that_cannot_be_settled_stops_no_other(url: &str) {
    let stage = Stage::new(url).await;
    let mut agents = Vec::new();
    for domain in ["a.agents-test.com", "b.agents-test.com"] {
        let agent = stage.publish_approved(domain, &card("Payer", "pay")).await;
        agents.push(agent.id);
    }
    stage
        .refuse_changes("agents", "domain", "a.agents-test.com")
        .await;
    crate::policies::put(&stage, &[OPEN, NO_PAYMENTS]).await;
    assert!(follow_newest(&stage.app, || false).await.unwrap());
    assert!(round(&stage.app, || false).await.is_err());
    assert!(stage.holds(agents[0]).await.is_empty());
    assert_eq!(stage.holds(agents[1]).await, ["policy"]);
    // It is looked at until it is settled.
    assert!(round(&stage.app, || false).await.is_err());
    stage.allow_changes("agents").await;
    round(&stage.app, || false).await.unwrap();
    assert_eq!(stage.holds(agents[0]).await, ["policy"]);
}

async fn under_four_eyes_a_party_grants_no_waiver(url: &str) {
    let stage = Stage::with(url, |config| config.governance.four_eyes = true).await;
    let both = NewAccount {
        name: "pia".into(),
        roles: vec![Role::Publisher, Role::Curator],
        groups: Vec::new(),
    };
    account_create(&stage.app, &stage.admin, &both)
        .await
        .unwrap();
    let pia = signed_in(&stage, "pia").await;
    register_as(&stage, &pia, "pia.agents-test.com")
        .await
        .unwrap();
    stage
        .crawl(
            "pia.agents-test.com",
            OriginAnswer::Card(card("Payer", "pay")),
        )
        .await;
    let agent = stage.agent("pia.agents-test.com").await.id;
    stage.approve(agent).await;
    put(&stage, &[OPEN, NO_PAYMENTS]).await;
    let good = waiver(agent, "no-payments", &digest_shown(&stage, agent).await);
    let refused = waiver_grant(&stage.app, &pia, &good).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert_eq!(stage.holds(agent).await, ["policy"]);
    waiver_grant(&stage.app, &stage.admin, &good).await.unwrap();
    assert!(stage.holds(agent).await.is_empty());
}

async fn a_waiver_of_finding_shows_the_agent(url: &str) {
    let stage = Stage::new(url).await;
    let payer = stage
        .publish_approved("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let hide = "forbid (principal, action, resource) when { resource.skills.contains(\"pay\") };";
    put(&stage, &[OPEN, ("hide", hide)]).await;
    assert!(!is_listed(&stage, payer).await && stage.holds(payer).await.is_empty());
    let granted = waiver_grant(
        &stage.app,
        &stage.admin,
        &waiver(payer, "hide", &digest_shown(&stage, payer).await),
    )
    .await
    .unwrap();
    stage.settle().await;
    assert!(is_listed(&stage, payer).await);
    waiver_end(&stage.app, &stage.admin, granted.id)
        .await
        .unwrap();
    stage.settle().await;
    assert!(!is_listed(&stage, payer).await);
}

async fn who_may_register_which_domain_is_a_policy(url: &str) {
    let stage = Stage::new(url).await;
    let ann = account(&stage, "ann", Role::Publisher).await;
    let own = "permit (principal == Account::\"ann\", action == Action::\"register\", resource) when { resource.name like \"*.ann-test.com\" };";
    let bad = "forbid (principal, action == Action::\"register\", resource) when { resource.name like \"bad.*\" };";
    put(&stage, &[OPEN, ("registration", own), ("bad", bad)]).await;
    register_as(&stage, &ann, "a.ann-test.com").await.unwrap();
    for domain in ["b.other-test.com", "bad.ann-test.com"] {
        assert_eq!(
            register_as(&stage, &ann, domain).await,
            Err(ErrorKind::PolicyDenied)
        );
    }
    assert_eq!(
        register_as(&stage, &stage.admin, "bad.ann-test.com").await,
        Err(ErrorKind::PolicyDenied)
    );
    put(&stage, &[OPEN]).await;
    register_as(&stage, &ann, "b.other-test.com").await.unwrap();
}

async fn replicas_hold_an_agent_once(url: &str) {
    let stage = Stage::new(url).await;
    if !url.starts_with("postgres") {
        return;
    }
    let payer = stage
        .publish_approved("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    let other = stage.beside().await;
    crate::policies::put(&stage, &[OPEN, NO_PAYMENTS]).await;
    // A replica that has not heard of the set yet admits nothing that it forbids.
    let late = other
        .publish("late.agents-test.com", &card("Late", "pay"))
        .await
        .id;
    assert_eq!(other.holds(late).await, ["policy"]);
    let (one, two) = tokio::join!(
        follow_newest(&stage.app, || false),
        follow_newest(&other.app, || false)
    );
    assert!(one.unwrap() && two.unwrap());
    let (one, two) = tokio::join!(round(&stage.app, || false), round(&other.app, || false));
    one.unwrap();
    two.unwrap();
    assert_eq!(stage.holds(payer).await, ["policy"]);
}
