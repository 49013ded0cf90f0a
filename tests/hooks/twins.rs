//! Twins: the same story in a registry with and in one without an agent that the reader may not see. Whatever the
//! reader and its receiver get is equal, byte for byte and in number, but for ids and times.

use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::hooks::views::{hook_deliveries, hook_show};
use a2a_registry_core::hooks::watches::{watch_agent, watch_list};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{HookFilter, PATH, Stage, act};
use crate::policies::caller;
use crate::support::both_databases;
use crate::support::database::Database;

both_databases!(a_hidden_agent_changes_nothing_that_receiver_and_caller_get);

const HIDDEN: &str = "hidden.agents-test.com";

/// A text without the members that differ between any two registries and receivers.
fn comparable(value: &impl Serialize, seen: Uuid) -> String {
    fn clear(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match name.as_str() {
                        "id" | "target" | "time" | "at" | "created_at" | "last_success_at" => {
                            *member = Value::Null;
                        }
                        _ => clear(member),
                    }
                }
            }
            Value::Array(entries) => entries.iter_mut().for_each(clear),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(value).unwrap();
    clear(&mut value);
    value.to_string().replace(&seen.to_string(), "SEEN")
}

/// What the caller reads about its hook and what it watches.
async fn read_everything(stage: &Stage, reader: &Caller, hook: Uuid, seen: Uuid) -> Vec<String> {
    let app = &stage.registry.app;
    let page = PageRequest::default();
    let deliveries = hook_deliveries(app, reader, hook, None, &page).await;
    vec![
        comparable(&hook_show(app, reader, hook).await.unwrap(), seen),
        comparable(&deliveries.unwrap(), seen),
        comparable(&watch_list(app, reader).await.unwrap(), seen),
    ]
}

/// Tells the story, and returns all that the reader and its receiver get.
async fn tell_story(url: &str, has_hidden_agent: bool) -> Vec<String> {
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let seen = stage.publish("seen.agents-test.com", "Is seen.").await;
    let mut hidden = None;
    if has_hidden_agent {
        let agent = stage.publish(HIDDEN, "Is hidden.").await;
        stage.restrict(agent).await;
        hidden = Some(agent.to_string());
    }
    let new = stage.new_hook("all", HookFilter::default());
    let hook = stage.hook(&reader, &new).await;
    let missing = Uuid::nil().to_string();
    let unseen = hidden.as_deref().unwrap_or(&missing);
    let refused = watch_agent(app, &reader, unseen).await.unwrap_err();
    let mut got = vec![refused.public.replace(unseen, "UNSEEN")];
    watch_agent(app, &reader, &seen.to_string()).await.unwrap();
    stage.deliver().await;
    for about in ["Is changed.", "Is changed again."] {
        stage.change("seen.agents-test.com", about).await;
        if hidden.is_some() {
            stage.change(HIDDEN, about).await;
        }
        stage.deliver().await;
        got.extend(read_everything(&stage, &reader, hook, seen).await);
    }
    if let Some(hidden) = &hidden {
        agent_suspend(app, admin, hidden, &act()).await.unwrap();
        stage.deliver().await;
        agent_retire(app, admin, hidden, &act()).await.unwrap();
    }
    stage.deliver().await;
    got.extend(read_everything(&stage, &reader, hook, seen).await);
    // The first message is the challenge, which is random.
    for request in stage.receiver.requests_to(PATH).iter().skip(1) {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        got.push(comparable(&body, seen));
        let mut names: Vec<_> = request
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        got.push(names.join(" "));
        got.push(request.body.len().to_string());
    }
    got
}

async fn a_hidden_agent_changes_nothing_that_receiver_and_caller_get(url: &str) {
    let twin = match url.starts_with("postgres") {
        true => Database::postgres().await,
        false => Database::sqlite(),
    };
    let without = tell_story(twin.url(), false).await;
    assert_eq!(tell_story(url, true).await, without);
}
