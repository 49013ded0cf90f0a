//! What bounds hooks beyond their number: challenges, the scopes of a token, locks; and who is told that one fails.

use a2a_registry_api::{AccountPatch, HookConfirmation, NewSavedSearch, NewToken};
use a2a_registry_core::accounts::account_operations::account_patch;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::hooks::actions::{hook_confirm, hook_create, hook_delete};
use a2a_registry_core::hooks::notices::queue_next_notices;
use a2a_registry_core::hooks::watches::{unwatch_agent, watch_agent};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::hook::NoticeKind;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_http::saved_searches::saved_search_put;
use a2a_registry_store::operating_counts::{HookCounts, count_hooks};
use futures::future::join_all;
use time::Duration;

use super::{HookFilter, SIGHT, Stage, kinds};
use crate::policies::caller;
use crate::support::both_databases;
use crate::support::in_process_registry::InProcessRegistry;
use crate::support::origin::OriginReply;

both_databases!(
    challenges_are_bounded_by_account_and_host,
    a_narrow_token_makes_no_wider_hook,
    watches_and_notices_do_not_deadlock,
    owners_and_admins_are_told_which_hooks_fail
);

/// Creates and deletes a hook until that is refused; returns how often it was not.
async fn create_in_a_loop(stage: &Stage, caller: &Caller) -> usize {
    let app = &stage.registry.app;
    let new = stage.new_hook("again", kinds(&[NoticeKind::AgentHeld]));
    for count in 0.. {
        match hook_create(app, caller, &new).await {
            Ok(made) => hook_delete(app, caller, made.hook.id).await.unwrap(),
            Err(refused) => {
                assert_eq!(refused.kind, ErrorKind::LimitReached, "{refused:?}");
                return count;
            }
        }
    }
    unreachable!("the loop ends with a refusal")
}

async fn challenges_are_bounded_by_account_and_host(url: &str) {
    let stage = Stage::new(url).await;
    let mut readers = Vec::new();
    for name in ["first", "second", "third"] {
        readers.push(caller(&stage.registry, name, Role::Reader).await);
    }
    // An account gets 30, and a host 60, whoever asks for them.
    for (reader, challenges) in readers.iter().zip([30, 30, 0]) {
        assert_eq!(create_in_a_loop(&stage, reader).await, challenges);
    }
    assert_eq!(stage.bodies().len(), 60);
    stage.registry.advance(Duration::minutes(2));
    assert_eq!(create_in_a_loop(&stage, &readers[0]).await, 1);
    assert_eq!(create_in_a_loop(&stage, &readers[2]).await, 0);
    assert_eq!(stage.bodies().len(), 61);
}

/// A hook is told what its account may see, so a token that sees less cannot make one.
async fn a_narrow_token_makes_no_wider_hook(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let curator = caller(&stage.registry, "curator", Role::Curator).await;
    let new = NewToken {
        account: "curator".into(),
        name: "narrow".into(),
        scopes: Some(vec![Scope::Read]),
        ..NewToken::default()
    };
    let token = token_create(app, admin, &new).await.unwrap();
    let narrow = authenticate_token(app, &token.secret).await.unwrap();
    let new = stage.new_hook("all", HookFilter::default());
    let refused = hook_create(app, &narrow, &new).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert!(stage.bodies().is_empty(), "nobody gets a challenge");
    hook_create(app, &curator, &new).await.unwrap();
    // Of a reader, a token that reads sees all that the account does.
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    hook_create(app, &reader, &new).await.unwrap();
}

/// Creates a hook, confirms it by the last message to its receiver, and deletes it.
async fn confirm_and_delete(stage: &Stage, caller: &Caller) {
    let app = &stage.registry.app;
    let new = stage.new_hook("confirmed", kinds(&SIGHT));
    let id = hook_create(app, caller, &new).await.unwrap().hook.id;
    let body = stage.bodies().pop().unwrap();
    let challenge = body["data"]["challenge"].as_str().unwrap().to_owned();
    let confirmation = HookConfirmation { challenge };
    hook_confirm(app, caller, id, &confirmation).await.unwrap();
    hook_delete(app, caller, id).await.unwrap();
}

/// Watches, saved searches, confirmations and queues of notices all write several hooks. If they locked them in
/// different orders, PostgreSQL would end one of them.
async fn watches_and_notices_do_not_deadlock(url: &str) {
    const ROUNDS: usize = 10;
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let agent = stage.publish("a.agents-test.com", "Is watched.").await;
    for name in ["h1", "h2", "h3"] {
        let filter = HookFilter {
            watched: true,
            ..kinds(&SIGHT)
        };
        stage.hook(&reader, &stage.new_hook(name, filter)).await;
    }
    // Only PostgreSQL serves two processes.
    let second = match url.starts_with("postgres") {
        true => Some(stage.registry.second_process().await),
        false => None,
    };
    let processes: Vec<&InProcessRegistry> = [Some(&stage.registry), second.as_ref()]
        .into_iter()
        .flatten()
        .collect();
    for round in 0..ROUNDS {
        stage
            .change("a.agents-test.com", &format!("Round {round}."))
            .await;
        for process in &processes {
            process.catch_up().await;
        }
        // Has the hooks of the account compared, beside those that the event is for.
        let roles = [Role::Reader, Role::Publisher];
        let patch = AccountPatch {
            roles: Some(roles[..1 + round % 2].to_vec()),
            ..AccountPatch::default()
        };
        let saved = NewSavedSearch {
            name: "all".into(),
            query: format!("q=round{round}"),
        };
        let watching = async {
            watch_agent(app, &reader, &agent.to_string()).await.unwrap();
            unwatch_agent(app, &reader, agent).await.unwrap();
            watch_agent(app, &reader, &agent.to_string()).await.unwrap();
        };
        let saving = async {
            saved_search_put(app, &reader, &saved).await.unwrap();
            let match_any = IfMatch::default();
            account_patch(app, admin, "reader", &patch, &match_any)
                .await
                .unwrap();
        };
        let confirming = confirm_and_delete(&stage, &reader);
        let queueing = processes
            .iter()
            .map(|process| async move { while queue_next_notices(&process.app).await.unwrap() {} });
        tokio::join!(watching, saving, confirming, join_all(queueing));
    }
}

async fn owners_and_admins_are_told_which_hooks_fail(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let other = caller(&stage.registry, "other", Role::Reader).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    stage
        .receiver
        .set_reply(super::PATH, OriginReply::status(503));
    stage.publish("new.agents-test.com", "Is new.").await;
    stage.deliver().await;
    for (who, told) in [(&reader, vec![id]), (admin, vec![id]), (&other, Vec::new())] {
        let inbox = load_inbox(app, who).await.unwrap();
        let failing: Vec<_> = inbox.failing_hooks.iter().map(|hook| hook.id).collect();
        assert_eq!(failing, told);
    }
    let counts = count_hooks(&stage.registry.store, 9).await.unwrap();
    let expected = HookCounts {
        failing: 1,
        waiting: 1,
        dead: 0,
    };
    assert_eq!(counts, expected);
    assert_eq!(
        app.delivery_counts.by_result(),
        [("delivered", 0), ("failed", 1), ("dead", 0)]
    );
    stage
        .receiver
        .set_reply(super::PATH, OriginReply::json("{}"));
    stage.registry.advance(Duration::minutes(1));
    assert_eq!(stage.deliver().await.len(), 1);
    assert!(
        load_inbox(app, admin)
            .await
            .unwrap()
            .failing_hooks
            .is_empty()
    );
    let counts = count_hooks(&stage.registry.store, 9).await.unwrap();
    assert_eq!(counts, HookCounts::default());
    assert_eq!(app.delivery_counts.by_result()[0], ("delivered", 1));
}
