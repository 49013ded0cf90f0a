//! Decisions by policies, on both databases: what those whom they forbid something are told, decisions about others,
//! and the records by which a decision is looked up.

use a2a_registry_api::{
    Act, AgentPatch, DecisionBatch, DecisionRequest, DecisionSubject, GroupMembers, HiddenFrom,
    NewToken, PolicyDecision, Registration,
};
use a2a_registry_core::accounts::authentication::{authenticate_cached_token, authenticate_token};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::hidden_agents::update_hidden_agents;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::decision_log::job::write_pending_decisions;
use a2a_registry_core::decision_log::lookup::load_decision;
use a2a_registry_core::decision_log::{DECISION_RETENTION, MAX_DECISIONS_OF_ACCOUNT};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::events::list::{EventListQuery, event_list};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::access_decision::decide_access;
use a2a_registry_core::policies::subject_decisions::{MAX_QUESTIONS, decide_batch};
use a2a_registry_core::policies::waivers::{WaiverQuery, waiver_grant, waiver_list};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_store::access_decisions::access_decision_by_id;
use a2a_registry_store::entity::access_decision;
use a2a_registry_store::hidden_agents::hidden_agents_by_ids;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use crate::admission_policies::{digest_shown, waiver};
use crate::ownership::OwnershipSetup;
use crate::policies::{OPEN, caller, put_policies};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};

both_databases!(
    a_refusal_says_what_the_policy_says,
    a_decision_is_looked_up_in_every_process,
    decisions_are_bounded_and_end,
    others_are_asked_about,
    a_url_is_decided_by_its_strictest_agent,
    a_cached_caller_follows_every_change,
    an_owner_learns_from_whom_its_agent_is_hidden,
    a_killed_process_still_notices_hidden_agents,
    owners_list_the_waivers_on_their_agents
);

const DOMAIN: &str = "travel.agents-test.com";

async fn decide(
    registry: &InProcessRegistry,
    caller: &Caller,
    request: &DecisionRequest,
) -> PolicyDecision {
    decide_access(&registry.app, caller, request).await.unwrap()
}

fn about_agent(action: &str, agent: Uuid) -> DecisionRequest {
    DecisionRequest {
        action: action.into(),
        agent: Some(agent.to_string()),
        ..DecisionRequest::default()
    }
}

fn for_account(request: DecisionRequest, name: &str) -> DecisionRequest {
    DecisionRequest {
        subject: Some(DecisionSubject {
            account: Some(name.into()),
            groups: Vec::new(),
        }),
        ..request
    }
}

fn for_groups(request: DecisionRequest, groups: &[&str]) -> DecisionRequest {
    DecisionRequest {
        subject: Some(DecisionSubject {
            account: None,
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }),
        ..request
    }
}

async fn set_group(registry: &InProcessRegistry, name: &str, members: &[&str]) {
    let members = GroupMembers {
        members: members.iter().map(|member| (*member).to_owned()).collect(),
    };
    let none = IfMatch::default();
    group_put(&registry.app, &registry.admin, name, &members, &none)
        .await
        .unwrap();
    registry.catch_up().await;
}

async fn register(
    registry: &InProcessRegistry,
    caller: &Caller,
    domain: &str,
) -> Result<(), AppError> {
    let wanted = Registration {
        domain: Some(domain.into()),
        ..Registration::default()
    };
    register_domain(&registry.app, caller, &wanted)
        .await
        .map(drop)
}

/// A publisher with an approved agent of its own.
async fn publish(registry: &InProcessRegistry, name: &str, domain: &str) -> (Caller, Uuid) {
    let publisher = caller(registry, name, Role::Publisher).await;
    register(registry, &publisher, domain).await.unwrap();
    registry
        .crawl_domain(domain, OriginResponse::Card(card_bytes("Own", "own")))
        .await;
    let agent = registry.agent(domain).await;
    registry.approve_open_review(agent.id).await;
    registry.catch_up().await;
    (publisher, agent.id)
}

/// A forbidden registration, card or call comes with the message and the contact of the policy, with its name unless it
/// is quiet, and with a decision that is on record.
async fn a_refusal_says_what_the_policy_says(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let told = "@message(\"Ask risk@corp.example\") @contact(\"https://corp.example/risk\")";
    let domains = format!(
        "{told} forbid (principal, action == Action::\"register\", resource) when {{ resource.name like \"bad.*\" }};"
    );
    let cards = format!(
        "{told} @quiet forbid (principal, action == Action::\"admit\", resource) when {{ resource.domain like \"held.*\" }};"
    );
    let calls = format!("{told} forbid (principal, action == Action::\"invoke\", resource);");
    let (publisher, agent) = publish(&registry, "ann", "one.agents-test.com").await;
    let set = [
        ("open", OPEN),
        ("no-bad", domains.as_str()),
        ("no-held", cards.as_str()),
        ("no-calls", calls.as_str()),
    ];
    put_policies(&registry, &set).await;
    registry.catch_up().await;

    let refused = register(&registry, &publisher, "bad.agents-test.com")
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::PolicyDenied);
    let sentences =
        "`no-bad`: Ask risk@corp.example. Contact: https://corp.example/risk. This is decision ";
    assert!(refused.public.contains(sentences), "{}", refused.public);
    let denial = refused.denial.unwrap();
    assert_eq!(denial.notices[0].policy.as_deref(), Some("no-bad"));
    let record = load_decision(&registry.app, &publisher, denial.decision)
        .await
        .unwrap();
    assert_eq!(
        (record.action.as_str(), record.resource.as_str()),
        ("register", "bad.agents-test.com")
    );
    assert!(
        record.decision.policies.is_empty(),
        "names are for those who see everything"
    );
    let audited = load_decision(&registry.app, &registry.admin, denial.decision)
        .await
        .unwrap();
    assert_eq!(audited.decision.policies, ["no-bad"]);
    assert_eq!(audited.asked_by, "ann");

    let denied = decide(&registry, &publisher, &about_agent("invoke", agent)).await;
    let reason = "A policy forbids it. `no-calls`: Ask risk@corp.example. Contact: https://corp.example/risk.";
    assert_eq!(denied.reason.as_deref(), Some(reason));
    assert_eq!(
        denied.notices[0].contact.as_deref(),
        Some("https://corp.example/risk")
    );

    register(&registry, &publisher, "held.agents-test.com")
        .await
        .unwrap();
    let card = OriginResponse::Card(card_bytes("Held", "held"));
    registry.crawl_domain("held.agents-test.com", card).await;
    let held = registry.agent("held.agents-test.com").await.id;
    registry.catch_up().await;
    let shown = agent_show_checked(&registry.app, &publisher, &held.to_string())
        .await
        .unwrap();
    let reason = &shown.holds[0].reason;
    assert!(
        reason.starts_with("forbidden by a policy. Ask risk@corp.example. Contact: https://corp.example/risk. This is decision "),
        "{reason}"
    );
    assert!(!reason.contains("no-held"), "the policy is quiet: {reason}");
    let id: Uuid = reason.rsplit(' ').next().unwrap().parse().unwrap();
    let record = load_decision(&registry.app, &publisher, id).await.unwrap();
    assert_eq!(record.decision.agent, Some(held));

    // Who may not find the agent is told nothing.
    let hide = "@message(\"secret\") forbid (principal, action, resource);";
    put_policies(&registry, &[("open", OPEN), ("hide", hide)]).await;
    registry.catch_up().await;
    let reader = caller(&registry, "reader", Role::Reader).await;
    let hidden = decide_access(&registry.app, &reader, &about_agent("invoke", agent)).await;
    let missing = decide_access(&registry.app, &reader, &about_agent("invoke", Uuid::nil())).await;
    let (hidden, missing) = (hidden.unwrap_err(), missing.unwrap_err());
    let unnamed = |error: &AppError, id: Uuid| error.public.replace(&id.to_string(), "");
    assert_eq!(hidden.kind, ErrorKind::NotFound);
    assert_eq!(unnamed(&hidden, agent), unnamed(&missing, Uuid::nil()));
}

/// A decision is found by its asker and by auditors: before it is written, afterwards, and in other processes. One that
/// was lost says so to its asker, and to nobody else.
async fn a_decision_is_looked_up_in_every_process(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await
        .id;
    registry.catch_up().await;
    let ann = caller(&registry, "ann", Role::Reader).await;
    let bob = caller(&registry, "bob", Role::Reader).await;
    let auditor = caller(&registry, "auditor", Role::Auditor).await;
    let made = decide(&registry, &ann, &about_agent("invoke", agent)).await;
    let find = async |registry: &InProcessRegistry, caller: &Caller, id: Uuid| {
        load_decision(&registry.app, caller, id)
            .await
            .map(|record| record.decision.id)
            .map_err(|error| error.public)
    };
    assert_eq!(find(&registry, &ann, made.id).await, Ok(made.id));
    write_pending_decisions(&registry.app).await.unwrap();
    let elsewhere = match url.starts_with("postgres") {
        true => registry.second_process().await,
        // No second process uses the file, so the next start reads it.
        false => registry.restart(|_| ()).await,
    };
    for caller in [&ann, &auditor] {
        assert_eq!(find(&elsewhere, caller, made.id).await, Ok(made.id));
    }
    let unknown = format!("Decision {} does not exist.", made.id);
    for stranger in [&bob, &Caller::default()] {
        assert_eq!(
            find(&elsewhere, stranger, made.id).await,
            Err(unknown.clone())
        );
    }
    // A process that ends before it has written a decision loses it.
    let lost = decide(&elsewhere, &ann, &about_agent("invoke", agent)).await;
    let after = elsewhere.restart(|_| ()).await;
    let said = find(&after, &ann, lost.id).await.unwrap_err();
    assert!(said.contains("its record was lost"), "{said}");
    let said = find(&after, &auditor, lost.id).await.unwrap_err();
    assert!(said.contains("is not recorded"), "{said}");
    let said = find(&after, &bob, lost.id).await.unwrap_err();
    assert!(said.ends_with("does not exist."), "{said}");
    let never = Uuid::from_u128(lost.id.as_u128() ^ 1);
    let said = find(&after, &ann, never).await.unwrap_err();
    assert!(said.ends_with("does not exist."), "{said}");
}

/// The newest decisions of each asker are kept, for a week.
async fn decisions_are_bounded_and_end(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let row = |number: u128, asker: &str| access_decision::Model {
        id: Uuid::from_u128(number),
        asker: asker.into(),
        at: registry.app.now().0,
        record: String::new(),
    };
    let count = u128::from(MAX_DECISIONS_OF_ACCOUNT) + 1;
    let mut rows: Vec<_> = (1..=count).map(|number| row(number, "account:a")).collect();
    rows.push(row(count + 1, "account:b"));
    rows.extend([row(count + 2, "network:x"), row(count + 3, "network:y")]);
    let write = registry.app.store.begin_write().await.unwrap();
    write.insert_access_decisions(rows).await.unwrap();
    write
        .trim_access_decisions("account:a", MAX_DECISIONS_OF_ACCOUNT)
        .await
        .unwrap();
    write.commit().await.unwrap();
    let is_kept = async |number: u128| {
        let row = access_decision_by_id(&registry.store, Uuid::from_u128(number)).await;
        row.unwrap().is_some()
    };
    assert!(!is_kept(1).await && is_kept(2).await && is_kept(count).await);
    assert!(is_kept(count + 1).await, "others keep theirs");
    let write = registry.app.store.begin_write().await.unwrap();
    let kept_rows = u64::try_from(count).unwrap();
    write
        .delete_old_access_decisions(registry.app.now().0, kept_rows, ("network:", 1))
        .await
        .unwrap();
    write.commit().await.unwrap();
    assert!(
        !is_kept(2).await && is_kept(3).await,
        "all together have a bound"
    );
    assert!(
        !is_kept(count + 2).await && is_kept(count + 3).await,
        "strangers have a share"
    );

    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await
        .id;
    let ann = caller(&registry, "ann", Role::Reader).await;
    registry.catch_up().await;
    let made = decide(&registry, &ann, &about_agent("invoke", agent)).await;
    write_pending_decisions(&registry.app).await.unwrap();
    registry.advance(Duration::microseconds(DECISION_RETENTION));
    assert!(load_decision(&registry.app, &ann, made.id).await.is_ok());
    registry.advance(Duration::milliseconds(2));
    let ended = load_decision(&registry.app, &ann, made.id).await;
    let said = ended.unwrap_err().public;
    assert!(said.contains("is older than 7 days"), "{said}");
}

/// Accounts, groups and clients without a token are asked about by those who see everything, with the right scope.
async fn others_are_asked_about(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await
        .id;
    let internal = registry
        .register_approved_card("two.agents-test.com", &card_bytes("Two", "x"))
        .await
        .id;
    let patch = AgentPatch {
        visibility: Some(Visibility::Internal),
        ..AgentPatch::default()
    };
    agent_patch(
        &registry.app,
        &registry.admin,
        &internal.to_string(),
        &patch,
    )
    .await
    .unwrap();
    let ann = caller(&registry, "ann", Role::Reader).await;
    caller(&registry, "bob", Role::Reader).await;
    set_group(&registry, "team", &["bob"]).await;
    let calls = "forbid (principal in Group::\"team\", action == Action::\"invoke\", resource) when { resource.domain like \"one.*\" };";
    let finds = "forbid (principal in Group::\"contractors\", action, resource);";
    put_policies(
        &registry,
        &[("open", OPEN), ("calls", calls), ("finds", finds)],
    )
    .await;
    registry.catch_up().await;
    let scoped = NewToken {
        account: "gateway".into(),
        role: Some(Role::Auditor),
        name: "a test".into(),
        scopes: Some(vec![Scope::Decide]),
        ..NewToken::default()
    };
    let secret = token_create(&registry.app, &registry.admin, &scoped)
        .await
        .unwrap()
        .secret;
    let gateway = authenticate_token(&registry.app, &secret).await.unwrap();

    let call = about_agent("invoke", agent);
    for (request, allowed, policies) in [
        (for_account(call.clone(), "ann"), true, vec!["open"]),
        (for_account(call.clone(), "bob"), false, vec!["calls"]),
        (for_account(call.clone(), "anonymous"), true, vec!["open"]),
        (for_account(call.clone(), "nobody-at-all"), false, vec![]),
        (for_groups(call.clone(), &["team"]), false, vec!["calls"]),
        (for_groups(call.clone(), &["others"]), true, vec!["open"]),
        (
            for_groups(call.clone(), &["others", "contractors"]),
            false,
            vec!["finds"],
        ),
        (
            for_groups(about_agent("discover", agent), &["contractors"]),
            false,
            vec!["finds"],
        ),
        (
            for_account(about_agent("discover", internal), "anonymous"),
            false,
            vec![],
        ),
        (
            for_account(about_agent("discover", internal), "ann"),
            true,
            vec![],
        ),
        (
            for_account(about_agent("invoke", Uuid::nil()), "ann"),
            false,
            vec![],
        ),
    ] {
        let decision = decide(&registry, &gateway, &request).await;
        assert_eq!(decision.allowed, allowed, "{request:?}: {decision:?}");
        assert_eq!(decision.policies, policies, "{request:?}");
        assert_eq!(decision.reason.is_none(), allowed, "{request:?}");
        let record = load_decision(&registry.app, &gateway, decision.id).await;
        assert_eq!(record.unwrap().asked_by, "gateway");
    }
    // Others may not, whoever the subject is; and an account that is disabled may do nothing.
    for stranger in [&ann, &Caller::default()] {
        let asked = decide_access(&registry.app, stranger, &for_account(call.clone(), "ann")).await;
        let kind = asked.unwrap_err().kind;
        assert!(matches!(
            kind,
            ErrorKind::Forbidden | ErrorKind::Unauthenticated
        ));
    }
    let both = DecisionRequest {
        url: Some("https://one.agents-test.com/".into()),
        ..call.clone()
    };
    let invalid = decide_access(&registry.app, &gateway, &both).await;
    assert_eq!(invalid.unwrap_err().kind, ErrorKind::Invalid);

    let questions = vec![for_account(call.clone(), "bob"); MAX_QUESTIONS];
    let batch = DecisionBatch { questions };
    let answers = decide_batch(&registry.app, &gateway, &batch, None).await;
    let answers = answers.unwrap().decisions;
    assert_eq!(answers.len(), MAX_QUESTIONS);
    assert!(answers.iter().all(|answer| !answer.allowed));
    let mut questions = batch.questions;
    questions.push(call);
    let beyond = DecisionBatch { questions };
    let refused = decide_batch(&registry.app, &gateway, &beyond, None).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid);

    // A process that has not heard from its database for more than 5 s denies.
    registry.advance(Duration::seconds(5));
    let ann_calls = for_account(about_agent("invoke", agent), "ann");
    assert!(decide(&registry, &gateway, &ann_calls).await.allowed);
    registry.advance(Duration::milliseconds(1));
    let denied = decide(&registry, &gateway, &ann_calls).await;
    assert!(
        denied
            .reason
            .is_some_and(|reason| reason.contains("database"))
            && !denied.allowed
    );
    // Whoever asks about itself is denied alike, whether the agent exists or not.
    for about in [agent, Uuid::nil()] {
        let own = decide(&registry, &ann, &about_agent("discover", about)).await;
        assert!(!own.allowed && own.agent.is_none(), "{own:?}");
    }
    registry.catch_up().await;
    assert!(decide(&registry, &gateway, &ann_calls).await.allowed);
}

fn card_at(name: &str, url: &str) -> Vec<u8> {
    let mut card: Value = serde_json::from_slice(&card_bytes(name, "x")).unwrap();
    card["url"] = json!(url);
    card.to_string().into_bytes()
}

/// A URL is known once its host is proved and the card approved; a foreign card that names it says nothing about it, and
/// of several agents of its own the one that is denied decides.
async fn a_url_is_decided_by_its_strictest_agent(database: &str) {
    let setup = OwnershipSetup::with_registry(InProcessRegistry::new(database).await);
    let registry = &setup.registry;
    let url = format!("https://{DOMAIN}/a2a");
    let request = DecisionRequest {
        action: "invoke".into(),
        url: Some(url.clone()),
        ..DecisionRequest::default()
    };
    let request = for_account(request, "anonymous");
    let decided = async |request: &DecisionRequest| {
        registry.catch_up().await;
        decide(registry, &registry.admin, request).await
    };
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    let first_card = card_at("Travel", &url);
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(first_card.clone()))
        .await;
    let first = registry.agent(DOMAIN).await.id;
    registry.approve_open_review(first).await;
    let foreign = registry
        .register_approved_card("foreign.agents-test.com", &card_at("Foreign", &url))
        .await
        .id;
    let unproved = decided(&request).await;
    assert_eq!((unproved.allowed, unproved.agent), (false, None));
    setup.place_standing_record(&view);
    domain_verify(&registry.app, &owner, DOMAIN).await.unwrap();
    let proved = decided(&request).await;
    assert_eq!(
        (proved.allowed, proved.agent),
        (true, Some(first)),
        "{proved:?}"
    );
    let other = DecisionRequest {
        url: Some(format!("{url}/")),
        ..request.clone()
    };
    assert!(!decided(&other).await.allowed, "the URL is exact");
    let suspension = Act {
        reason: "a test".into(),
        hold: None,
    };
    let suspend = async |agent: Uuid| {
        let agent = agent.to_string();
        agent_suspend(&registry.app, &registry.admin, &agent, &suspension)
            .await
            .unwrap();
    };
    suspend(foreign).await;
    assert!(decided(&request).await.allowed);

    let second_url = format!("https://{DOMAIN}/second.json");
    let wanted = Registration {
        card_url: Some(second_url.clone()),
        ..Registration::default()
    };
    register_domain(&registry.app, &owner, &wanted)
        .await
        .unwrap();
    let second_card = card_at("Second", &url);
    registry
        .crawl_domain_with(DOMAIN, |source| match source.url == second_url {
            true => OriginResponse::Card(second_card.clone()),
            false => OriginResponse::Card(first_card.clone()),
        })
        .await;
    let agents = registry.agents().await;
    let second = agents
        .iter()
        .find(|row| row.domain == DOMAIN && row.id != first)
        .unwrap()
        .id;
    assert!(decided(&request).await.allowed);
    suspend(second).await;
    let denied = decided(&request).await;
    assert_eq!((denied.allowed, denied.agent), (false, Some(second)));
    assert_eq!(denied.reason.as_deref(), Some("The agent is suspended."));
}

/// A gateway's token and its subjects are in memory, and a change acts at the next request all the same.
async fn a_cached_caller_follows_every_change(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await
        .id;
    caller(&registry, "ann", Role::Reader).await;
    let calls = "forbid (principal in Group::\"team\", action == Action::\"invoke\", resource);";
    put_policies(&registry, &[("open", OPEN), ("calls", calls)]).await;
    registry.catch_up().await;
    let request = for_account(about_agent("invoke", agent), "ann");
    for _ in 0..2 {
        assert!(decide(&registry, &registry.admin, &request).await.allowed);
    }
    let members = GroupMembers {
        members: vec!["ann".into()],
    };
    let none = IfMatch::default();
    group_put(&registry.app, &registry.admin, "team", &members, &none)
        .await
        .unwrap();
    assert!(!decide(&registry, &registry.admin, &request).await.allowed);

    let new = NewToken {
        account: "gateway".into(),
        role: Some(Role::Auditor),
        name: "a test".into(),
        expires_in_days: Some(1),
        ..NewToken::default()
    };
    let token = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    let is_known = async || {
        authenticate_cached_token(&registry.app, &token.secret)
            .await
            .is_ok()
    };
    assert!(is_known().await && is_known().await);
    registry.advance(Duration::days(1));
    assert!(!is_known().await, "a token ends while it is in memory");
}

/// The owner sees on the agent and in its inbox that policies hide it, from how many and from which of its own groups;
/// those who see everything also see the policies; and an event tells when it began and ended.
async fn an_owner_learns_from_whom_its_agent_is_hidden(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let domain = "own.agents-test.com";
    let (owner, agent) = publish(&registry, "owner", domain).await;
    let ann = caller(&registry, "ann", Role::Reader).await;
    caller(&registry, "bob", Role::Reader).await;
    let curator = caller(&registry, "curator", Role::Curator).await;
    set_group(&registry, "contractors", &["bob", "owner"]).await;
    set_group(&registry, "staff", &["ann", "owner"]).await;
    let id = agent.to_string();
    let hidden_from = async |caller: &Caller| {
        let shown = agent_show_checked(&registry.app, caller, &id).await;
        shown.unwrap().hidden_from
    };
    let assert_events = async |kinds: &[&str]| {
        for _ in 0..2 {
            update_hidden_agents(&registry.app, || false).await.unwrap();
        }
        let page = PageRequest {
            page_size: Some(100),
            page_token: None,
        };
        let list = event_list(
            &registry.app,
            &registry.admin,
            &EventListQuery::default(),
            &page,
        )
        .await;
        let list = list.unwrap().events.into_iter();
        let found = list.filter(|event| event.subject == id);
        let found = found.map(|event| event.kind.to_string());
        let found = found.filter(|kind| kind.ends_with("hidden"));
        assert_eq!(found.collect::<Vec<_>>(), kinds);
    };
    assert_events(&[]).await;
    assert_eq!(hidden_from(&owner).await, None);
    let inbox = load_inbox(&registry.app, &owner).await;
    assert!(inbox.unwrap().hidden.is_empty());

    let forbid = format!(
        "forbid (principal in Group::\"contractors\", action == Action::\"discover\", resource) when {{ resource.domain == \"{domain}\" }};"
    );
    put_policies(&registry, &[("open", OPEN), ("no-contractors", &forbid)]).await;
    registry.catch_up().await;
    assert_events(&["agent.hidden"]).await;
    let expected = HiddenFrom {
        callers: 1,
        of_callers: 2,
        truncated: false,
        anonymous: false,
        groups: vec!["contractors".into()],
        policies: Vec::new(),
    };
    assert_eq!(hidden_from(&owner).await, Some(expected.clone()));
    assert_eq!(hidden_from(&ann).await, None);
    let seen = hidden_from(&curator).await.unwrap();
    assert_eq!(seen.policies, ["no-contractors"]);
    let inbox = load_inbox(&registry.app, &owner).await.unwrap();
    let news = inbox.news.iter().filter(|news| news.kind == "hidden");
    assert_eq!(news.map(|news| news.agent).collect::<Vec<_>>(), [agent]);
    let inbox = inbox.hidden;
    assert_eq!(inbox.len(), 1);
    assert_eq!((inbox[0].agent, &inbox[0].hidden_from), (agent, &expected));
    let inbox = load_inbox(&registry.app, &ann).await;
    assert!(inbox.unwrap().hidden.is_empty());

    // From everybody, also without a policy that forbids.
    let others = "permit (principal, action == Action::\"discover\", resource) when { resource.domain == \"elsewhere.example\" };";
    put_policies(&registry, &[("others", others)]).await;
    registry.catch_up().await;
    assert_events(&["agent.hidden"]).await;
    let everybody = hidden_from(&owner).await.unwrap();
    assert_eq!((everybody.callers, everybody.anonymous), (2, true));
    assert!(hidden_from(&curator).await.unwrap().policies.is_empty());

    put_policies(&registry, &[("open", OPEN)]).await;
    registry.catch_up().await;
    assert_events(&["agent.hidden", "agent.unhidden"]).await;
    assert_eq!(hidden_from(&owner).await, None);
    let inbox = load_inbox(&registry.app, &owner).await;
    assert!(inbox.unwrap().hidden.is_empty());
}

/// What a process was about to check when it was killed is checked by the next one, by the events.
async fn a_killed_process_still_notices_hidden_agents(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (_, agent) = publish(&registry, "owner", "own.agents-test.com").await;
    let labelled =
        "permit (principal, action, resource) when { resource.labels.contains(\"env=prod\") };";
    put_policies(&registry, &[("labelled", labelled)]).await;
    let label = async |registry: &InProcessRegistry, value: &str| {
        let labels = [("env".to_owned(), value.to_owned())];
        let patch = AgentPatch {
            labels: Some(labels.into()),
            ..AgentPatch::default()
        };
        agent_patch(&registry.app, &registry.admin, &agent.to_string(), &patch)
            .await
            .unwrap();
        registry.catch_up().await;
    };
    let is_hidden = async |registry: &InProcessRegistry| {
        update_hidden_agents(&registry.app, || false).await.unwrap();
        let rows = hidden_agents_by_ids(&registry.store, &[agent], 1).await;
        !rows.unwrap().is_empty()
    };
    label(&registry, "prod").await;
    assert!(!is_hidden(&registry).await);
    label(&registry, "test").await;
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    assert!(is_hidden(&registry).await);
    label(&registry, "prod").await;
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    assert!(!is_hidden(&registry).await);
}

/// A publisher sees the waivers on its own agents and on no others.
async fn owners_list_the_waivers_on_their_agents(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (owner, own) = publish(&registry, "owner", "own.agents-test.com").await;
    let (_, other) = publish(&registry, "other", "other.agents-test.com").await;
    let calls = "forbid (principal, action == Action::\"invoke\", resource);";
    put_policies(&registry, &[("open", OPEN), ("calls", calls)]).await;
    registry.catch_up().await;
    for agent in [own, other] {
        let new = waiver(agent, "calls", &digest_shown(&registry, agent).await);
        waiver_grant(&registry.app, &registry.admin, &new)
            .await
            .unwrap();
    }
    let listed = async |caller: &Caller, agent: Option<Uuid>| {
        let query = WaiverQuery {
            agent: agent.map(|agent| agent.to_string()),
            ..WaiverQuery::default()
        };
        let list = waiver_list(&registry.app, caller, &query).await.unwrap();
        let agents = list.waivers.into_iter().map(|waiver| waiver.agent);
        agents.collect::<Vec<_>>()
    };
    assert_eq!(listed(&owner, None).await, [own]);
    assert_eq!(listed(&owner, Some(own)).await, [own]);
    assert!(listed(&owner, Some(other)).await.is_empty());
    assert_eq!(listed(&registry.admin, None).await.len(), 2);
    let none = waiver_list(&registry.app, &Caller::default(), &WaiverQuery::default()).await;
    assert_eq!(none.unwrap_err().kind, ErrorKind::Unauthenticated);
}
