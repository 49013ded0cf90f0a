//! Hooks on both databases: what receivers are told, what they are not, and what happens when they do not answer. The
//! receivers on third-party libraries are in `hooks/receivers.rs`, and processes that are killed in `hooks/kills.rs`.

mod bounds;
mod kills;
mod mails;
mod receivers;
mod twins;

use std::collections::BTreeSet;
use std::io::Write as _;

use a2a_registry_api::limits::MAX_HOOKS_PER_ACCOUNT;
use a2a_registry_api::{
    AccountPatch, Act, AgentPatch, HookConfirmation, HookFilter, NewHook, NewSavedSearch,
};
use a2a_registry_core::accounts::account_operations::account_patch;
use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::hooks::actions::{
    hook_confirm, hook_create, hook_delete, hook_replay, hook_rotate, hook_test,
};
use a2a_registry_core::hooks::delivery::{deliver_to_hook, end_hook_lease, lease_due_hook};
use a2a_registry_core::hooks::notices::queue_next_notices;
use a2a_registry_core::hooks::views::{hook_deliveries, hook_show};
use a2a_registry_core::hooks::watches::{unwatch_agent, watch_agent, watch_list};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::hook::{DeliveryState, HookFormat, HookState, NoticeKind};
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_http::saved_searches::{saved_search_delete, saved_search_put};
use serde_json::Value;
use tempfile::NamedTempFile;
use time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::policies::{caller, put_policies};
use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};
use crate::support::origin::{Origin, OriginReply, ReceivedRequest};

both_databases!(
    a_receiver_is_told_what_appears_changes_and_disappears,
    retired_hidden_and_no_longer_matching_look_alike,
    what_an_account_may_not_see_changes_nothing_that_it_gets,
    a_policy_hides_an_agent_before_the_notice_is_sent,
    a_saved_search_tells_of_agents_that_fit_it,
    owners_and_curators_are_told_what_waits_for_them,
    watched_agents_are_told_of,
    a_receiver_that_is_down_is_tried_for_three_days,
    an_answer_of_410_ends_a_hook,
    a_refused_message_delays_no_other_agent,
    the_account_is_judged_again_at_delivery,
    of_two_processes_one_sends_and_the_other_takes_over,
    a_process_that_is_behind_drops_nothing,
    a_hook_of_watched_agents_tells_of_these_alone,
    keys_are_rotated_without_a_gap,
    only_public_targets_that_confirm_are_sent_to,
    a_slack_message_escapes_what_cards_say,
    hooks_have_bounds
);

const PATH: &str = "/hook";

struct Stage {
    registry: InProcessRegistry,
    receiver: Origin,
    _key: NamedTempFile,
}

/// A key file, which PostgreSQL needs.
fn key_file() -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let key = data_encoding::BASE64.encode(&[7; 32]);
    writeln!(file, "{key}").unwrap();
    file
}

fn permit_loopback(config: &mut Config) {
    config.webhooks.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.webhooks.allow_http = true;
    config.webhooks.allow_ports = AllowPorts::Word("any".into());
    config.webhooks.per_target_per_second = 1_000;
}

impl Stage {
    async fn new(url: &str) -> Self {
        let key = key_file();
        let registry = InProcessRegistry::with_config(url, |config| {
            permit_loopback(config);
            config.secrets.key_file = Some(key.path().to_owned());
        });
        let receiver = Origin::start();
        receiver.set_reply(PATH, OriginReply::json("{}"));
        Self {
            registry: registry.await,
            receiver,
            _key: key,
        }
    }

    fn new_hook(&self, name: &str, filter: HookFilter) -> NewHook {
        NewHook {
            name: name.into(),
            url: self.receiver.url(PATH).into(),
            format: None,
            filter,
        }
    }

    /// A confirmed hook. The receiver returns nothing, so it is confirmed by the text that it got.
    async fn hook(&self, caller: &Caller, new: &NewHook) -> Uuid {
        let app = &self.registry.app;
        self.registry.catch_up().await;
        let before = self.bodies().len();
        let made = hook_create(app, caller, new).await.unwrap();
        assert_eq!(made.hook.state, HookState::Unconfirmed);
        let challenge = self.bodies()[before].clone();
        let challenge = challenge["data"]["challenge"].as_str();
        let challenge = challenge.map_or_else(
            || {
                let text = self.bodies()[before]["text"].as_str().unwrap().to_owned();
                text.rsplit(' ').next().unwrap().to_owned()
            },
            str::to_owned,
        );
        let confirmation = HookConfirmation { challenge };
        let id = made.hook.id;
        let confirmed = hook_confirm(app, caller, id, &confirmation).await.unwrap();
        assert_eq!(confirmed.state, HookState::Active);
        id
    }

    /// The JSON bodies of all messages to the receiver.
    fn bodies(&self) -> Vec<Value> {
        let requests = self.receiver.requests_to(PATH);
        let bodies = requests.iter();
        bodies
            .map(|request| serde_json::from_slice(&request.body).unwrap())
            .collect()
    }

    /// Queues what has happened, sends what is due, and returns the new messages.
    async fn deliver(&self) -> Vec<Value> {
        let before = self.bodies().len();
        deliver_from(&self.registry).await;
        self.bodies().split_off(before)
    }

    /// Kind and agent of each new message.
    async fn told(&self) -> Vec<(String, String)> {
        let told = self.deliver().await.into_iter().map(|body| {
            let text = |member: &str| body["data"][member].as_str().unwrap().to_owned();
            assert_eq!(body["type"], format!("a2a-registry.{}", text("kind")));
            (text("kind"), text("agent"))
        });
        told.collect()
    }

    async fn publish(&self, domain: &str, about: &str) -> Uuid {
        let card = card_bytes(domain, about);
        self.registry.register_approved_card(domain, &card).await.id
    }

    async fn change(&self, domain: &str, about: &str) {
        change_card(&self.registry, domain, about).await;
    }

    async fn restrict(&self, agent: Uuid) {
        let patch = AgentPatch {
            visibility: Some(Visibility::Restricted),
            ..AgentPatch::default()
        };
        let (app, admin) = (&self.registry.app, &self.registry.admin);
        agent_patch(app, admin, &agent.to_string(), &patch)
            .await
            .unwrap();
    }
}

/// Changes the card of a domain, and approves the change if it waits for a review.
async fn change_card(registry: &InProcessRegistry, domain: &str, about: &str) {
    let card = OriginResponse::Card(card_bytes(domain, about));
    registry.crawl_domain(domain, card).await;
    let agent = registry.agent(domain).await.id;
    if registry.find_open_review(agent).await.is_some() {
        registry.approve_open_review(agent).await;
    }
}

async fn queue_from(registry: &InProcessRegistry) {
    registry.catch_up().await;
    while queue_next_notices(&registry.app).await.unwrap() {}
}

async fn deliver_from(registry: &InProcessRegistry) {
    queue_from(registry).await;
    let cancel = CancellationToken::new();
    while let Some(leased) = lease_due_hook(&registry.app).await.unwrap() {
        deliver_to_hook(&registry.app, &leased, &cancel)
            .await
            .unwrap();
        end_hook_lease(&registry.app, &leased).await.unwrap();
    }
}

fn act() -> Act {
    Act {
        reason: "a test".into(),
        hold: None,
    }
}

fn kinds(kinds: &[NoticeKind]) -> HookFilter {
    HookFilter {
        kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
        ..HookFilter::default()
    }
}

const SIGHT: [NoticeKind; 3] = [
    NoticeKind::AgentAppeared,
    NoticeKind::AgentChanged,
    NoticeKind::AgentDisappeared,
];

fn one(kind: &str, agent: Uuid) -> Vec<(String, String)> {
    vec![(kind.to_owned(), agent.to_string())]
}

async fn a_receiver_is_told_what_appears_changes_and_disappears(url: &str) {
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let known = stage.publish("known.agents-test.com", "Is known.").await;
    stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    assert!(
        stage.told().await.is_empty(),
        "what matches already is no news"
    );
    let new = stage.publish("new.agents-test.com", "Is new.").await;
    assert_eq!(stage.told().await, one("agent.appeared", new));
    assert!(stage.told().await.is_empty());
    stage.change("known.agents-test.com", "Says more.").await;
    assert_eq!(stage.told().await, one("agent.changed", known));
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    agent_retire(app, admin, &known.to_string(), &act())
        .await
        .unwrap();
    assert_eq!(stage.told().await, one("agent.disappeared", known));
    assert!(stage.told().await.is_empty());
}

async fn retired_hidden_and_no_longer_matching_look_alike(url: &str) {
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let mut agents = Vec::new();
    for name in ["retired", "hidden", "held"] {
        let domain = format!("{name}.agents-test.com");
        agents.push(stage.publish(&domain, "Goes.").await);
    }
    stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    agent_retire(app, admin, &agents[0].to_string(), &act())
        .await
        .unwrap();
    stage.restrict(agents[1]).await;
    agent_suspend(app, admin, &agents[2].to_string(), &act())
        .await
        .unwrap();
    let bodies = stage.deliver().await;
    let shapes: BTreeSet<String> = bodies
        .iter()
        .map(|body| {
            let mut body = body.clone();
            for member in ["id", "time", "subject"] {
                body[member] = Value::Null;
            }
            body["data"]["agent"] = Value::Null;
            body.to_string()
        })
        .collect();
    assert_eq!((bodies.len(), shapes.len()), (3, 1), "{shapes:?}");
    let said: BTreeSet<String> = bodies
        .iter()
        .map(|body| body["data"]["agent"].as_str().unwrap().to_owned())
        .collect();
    let expected: BTreeSet<String> = agents.iter().map(Uuid::to_string).collect();
    assert_eq!(said, expected);
    let data = bodies[0]["data"].as_object().unwrap();
    let members: BTreeSet<&str> = data.keys().map(String::as_str).collect();
    assert_eq!(members, BTreeSet::from(["agent", "kind"]));
}

/// The same story with and without an agent that the reader may not see: the messages are equal but for what is
/// random.
async fn what_an_account_may_not_see_changes_nothing_that_it_gets(url: &str) {
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let seen = stage.publish("seen.agents-test.com", "Is seen.").await;
    let hidden = stage.publish("hidden.agents-test.com", "Is hidden.").await;
    stage.restrict(hidden).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", HookFilter::default()))
        .await;
    stage.deliver().await;
    stage.change("seen.agents-test.com", "Is changed.").await;
    stage.change("hidden.agents-test.com", "Is changed.").await;
    assert_eq!(stage.told().await, one("agent.changed", seen));
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    agent_retire(app, admin, &hidden.to_string(), &act())
        .await
        .unwrap();
    assert!(stage.told().await.is_empty());
    let page = PageRequest::default();
    let deliveries = hook_deliveries(app, &reader, id, None, &page)
        .await
        .unwrap();
    assert_eq!(deliveries.deliveries.len(), 1);
    assert_eq!(
        hook_show(app, &reader, id).await.unwrap().waiting,
        0,
        "nothing of a hidden agent waits"
    );
}

async fn a_policy_hides_an_agent_before_the_notice_is_sent(url: &str) {
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    let first = stage.publish("first.agents-test.com", "Stays.").await;
    assert_eq!(stage.told().await, one("agent.appeared", first));
    let second = stage.publish("second.agents-test.com", "Is hidden.").await;
    queue_from(&stage.registry).await;
    let open = "permit (principal, action, resource);";
    let forbid = "forbid (principal, action, resource) when { resource.tags.contains(\"tests\") };";
    put_policies(&stage.registry, &[("open", open), ("hide", forbid)]).await;
    // The receiver was told of the first agent alone.
    let told = stage.told().await;
    assert_eq!(
        told,
        one("agent.disappeared", first),
        "{second} was not told"
    );
}

async fn a_saved_search_tells_of_agents_that_fit_it(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let saved = NewSavedSearch {
        name: "trains".into(),
        query: "q=night+trains&tag=tests".into(),
    };
    let saved = saved_search_put(app, &reader, &saved).await.unwrap();
    let filter = HookFilter {
        search: Some(saved.id),
        ..kinds(&SIGHT)
    };
    stage.hook(&reader, &stage.new_hook("trains", filter)).await;
    let refused = saved_search_delete(app, &reader, saved.id).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict);
    let fits = stage
        .publish("fits.agents-test.com", "Books seats on night trains.")
        .await;
    stage
        .publish("other.agents-test.com", "Waters plants.")
        .await;
    assert_eq!(stage.told().await, one("agent.appeared", fits));
    stage.change("fits.agents-test.com", "Waters plants.").await;
    assert_eq!(stage.told().await, one("agent.disappeared", fits));
    let other = NewSavedSearch {
        name: "trains".into(),
        query: "q=plants".into(),
    };
    saved_search_put(app, &reader, &other).await.unwrap();
    let told: BTreeSet<(String, String)> = stage.told().await.into_iter().collect();
    assert_eq!(told.len(), 2, "the other search finds both: {told:?}");
}

async fn owners_and_curators_are_told_what_waits_for_them(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let curator = caller(&stage.registry, "curator", Role::Curator).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let waits = kinds(&[NoticeKind::ReviewWaits, NoticeKind::AgentHeld]);
    stage
        .hook(&curator, &stage.new_hook("curator", waits.clone()))
        .await;
    stage
        .hook(&reader, &stage.new_hook("reader", waits.clone()))
        .await;
    stage.hook(admin, &stage.new_hook("owner", waits)).await;
    stage.deliver().await;
    let card = card_bytes("Own", "Waits.");
    let agent = stage
        .registry
        .register_with_card("own.agents-test.com", &card);
    let agent = agent.await.id;
    let told = stage.told().await;
    // The curator and the admin, who may curate too.
    assert_eq!(
        told,
        [one("review.waits", agent), one("review.waits", agent)].concat()
    );
    stage.registry.approve_open_review(agent).await;
    assert!(stage.told().await.is_empty());
    agent_suspend(app, &curator, &agent.to_string(), &act())
        .await
        .unwrap();
    // The admin has registered the agent.
    assert_eq!(stage.told().await, one("agent.held", agent));
}

async fn watched_agents_are_told_of(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let first = stage.publish("first.agents-test.com", "Is watched.").await;
    let second = stage.publish("second.agents-test.com", "Is not.").await;
    let hidden = stage.publish("hidden.agents-test.com", "Is hidden.").await;
    stage.restrict(hidden).await;
    stage.registry.catch_up().await;
    let filter = HookFilter {
        watched: true,
        ..kinds(&SIGHT)
    };
    stage
        .hook(&reader, &stage.new_hook("watched", filter))
        .await;
    let refused = watch_agent(app, &reader, &hidden.to_string()).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    let list = watch_agent(app, &reader, &first.to_string()).await.unwrap();
    assert_eq!((list.agents, list.has_hook), (vec![first], true));
    assert!(stage.told().await.is_empty(), "watching is no news");
    stage.change("first.agents-test.com", "Is changed.").await;
    stage.change("second.agents-test.com", "Is changed.").await;
    assert_eq!(stage.told().await, one("agent.changed", first));
    unwatch_agent(app, &reader, first).await.unwrap();
    assert!(watch_list(app, &reader).await.unwrap().agents.is_empty());
    stage
        .change("first.agents-test.com", "Is changed again.")
        .await;
    assert!(stage.told().await.is_empty());
    assert_ne!(second, first);
}

async fn a_receiver_that_is_down_is_tried_for_three_days(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    let agent = stage.publish("new.agents-test.com", "Is new.").await;
    stage.receiver.set_reply(PATH, OriginReply::status(503));
    let first = stage.deliver().await;
    assert_eq!(first.len(), 1);
    let mut attempts = 1;
    for _ in 0..400 {
        stage.registry.advance(Duration::minutes(15));
        let again = stage.deliver().await;
        attempts += again.len();
        assert!(again.iter().all(|body| body["id"] == first[0]["id"]));
    }
    assert!((10..=20).contains(&attempts), "{attempts}");
    let shown = hook_show(app, &reader, id).await.unwrap();
    assert_eq!((shown.waiting, shown.dead), (0, 1));
    assert!(shown.failing_since.is_some());
    // Up again, it gets what was given up, when somebody says so.
    stage.receiver.set_reply(PATH, OriginReply::json("{}"));
    assert!(stage.told().await.is_empty());
    assert_eq!(hook_replay(app, &reader, id, None).await.unwrap(), 1);
    assert_eq!(stage.told().await, one("agent.appeared", agent));
    let shown = hook_show(app, &reader, id).await.unwrap();
    assert_eq!((shown.dead, shown.failing_since), (0, None));
    // What was delivered is said again on request, too.
    let message = Uuid::parse_str(first[0]["id"].as_str().unwrap()).unwrap();
    let replayed = hook_replay(app, &reader, id, Some(message)).await;
    assert_eq!(replayed.unwrap(), 1);
    assert_eq!(stage.told().await, one("agent.appeared", agent));
}

async fn an_answer_of_410_ends_a_hook(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.publish("new.agents-test.com", "Is new.").await;
    stage.receiver.set_reply(PATH, OriginReply::status(410));
    assert_eq!(stage.deliver().await.len(), 1);
    let shown = hook_show(app, &reader, id).await.unwrap();
    assert_eq!(shown.state, HookState::Ended);
    assert_eq!((shown.waiting, shown.dead), (0, 1));
    stage.receiver.set_reply(PATH, OriginReply::json("{}"));
    stage.publish("other.agents-test.com", "Is new.").await;
    stage.registry.advance(Duration::days(1));
    assert!(stage.deliver().await.is_empty());
    let refused = hook_test(app, &reader, id).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict);
}

/// One agent's notice is refused while those of others arrive; its next ones wait for it.
async fn a_refused_message_delays_no_other_agent(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let curator = caller(&stage.registry, "curator", Role::Curator).await;
    let id = stage
        .hook(
            &curator,
            &stage.new_hook("all", kinds(&[NoticeKind::ReviewWaits])),
        )
        .await;
    stage.deliver().await;
    stage.receiver.set_reply(PATH, OriginReply::status(500));
    let card = card_bytes("First", "Waits.");
    let first = stage
        .registry
        .register_with_card("first.agents-test.com", &card);
    let first = first.await.id;
    assert_eq!(stage.told().await, one("review.waits", first));
    // A second review of the same agent waits for the first notice.
    stage
        .registry
        .crawl_domain(
            "first.agents-test.com",
            OriginResponse::Card(card_bytes("First", "Waits again.")),
        )
        .await;
    stage.receiver.set_reply(PATH, OriginReply::json("{}"));
    stage.registry.advance(Duration::hours(1));
    let told = stage.told().await;
    assert!(!told.is_empty() && told.iter().all(|(_, agent)| *agent == first.to_string()));
    let page = PageRequest::default();
    let made = hook_deliveries(app, &curator, id, Some(DeliveryState::Delivered), &page)
        .await
        .unwrap();
    assert_eq!(made.deliveries.len(), told.len());
    // The newest comes first, and the oldest was tried twice.
    assert_eq!(made.deliveries.last().unwrap().attempts, 2);
}

async fn the_account_is_judged_again_at_delivery(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.publish("new.agents-test.com", "Is new.").await;
    queue_from(&stage.registry).await;
    let patch = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    let admin = &stage.registry.admin;
    account_patch(app, admin, "reader", &patch, &IfMatch::default())
        .await
        .unwrap();
    assert!(stage.deliver().await.is_empty());
    let shown = hook_show(app, admin, id).await.unwrap();
    assert_eq!((shown.waiting, shown.dead), (0, 1));
}

async fn of_two_processes_one_sends_and_the_other_takes_over(url: &str) {
    // SQLite serves one process.
    if !url.starts_with("postgres") {
        return;
    }
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    let other = stage.registry.second_process().await;
    let agent = stage.publish("new.agents-test.com", "Is new.").await;
    queue_from(&stage.registry).await;
    queue_from(&other).await;
    let leased = lease_due_hook(&stage.registry.app).await.unwrap().unwrap();
    assert!(lease_due_hook(&other.app).await.unwrap().is_none());
    // The first process is killed: it neither sends nor gives its lease back.
    stage.registry.advance(Duration::minutes(3));
    let before = stage.bodies().len();
    deliver_from(&other).await;
    let told = stage.bodies().split_off(before);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["agent"], agent.to_string());
    // What the first one would record is not recorded.
    end_hook_lease(&stage.registry.app, &leased).await.unwrap();
    assert!(stage.deliver().await.is_empty());
}

/// A process whose index has not seen the agent yet would find nothing to tell.
async fn a_process_that_is_behind_drops_nothing(url: &str) {
    // SQLite serves one process.
    if !url.starts_with("postgres") {
        return;
    }
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    stage.deliver().await;
    let behind = stage.registry.second_process().await;
    let agent = stage.publish("new.agents-test.com", "Is new.").await;
    queue_from(&stage.registry).await;
    let leased = lease_due_hook(&behind.app).await.unwrap().unwrap();
    let cancel = CancellationToken::new();
    let before = stage.bodies().len();
    let refused = deliver_to_hook(&behind.app, &leased, &cancel).await;
    assert!(refused.is_err());
    assert_eq!(stage.bodies().len(), before);
    behind.catch_up().await;
    deliver_to_hook(&behind.app, &leased, &cancel)
        .await
        .unwrap();
    let told = stage.bodies().split_off(before);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["agent"], agent.to_string());
}

async fn a_hook_of_watched_agents_tells_of_these_alone(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let watched = stage.publish("watched.agents-test.com", "Is watched.");
    let watched = watched.await;
    let other = stage.publish("other.agents-test.com", "Is not.").await;
    stage.registry.catch_up().await;
    watch_agent(app, admin, &watched.to_string()).await.unwrap();
    let filter = HookFilter {
        watched: true,
        ..kinds(&[NoticeKind::AgentHeld])
    };
    stage.hook(admin, &stage.new_hook("watched", filter)).await;
    stage.deliver().await;
    for agent in [other, watched] {
        let agent = agent.to_string();
        agent_suspend(app, admin, &agent, &act()).await.unwrap();
    }
    assert_eq!(stage.told().await, one("agent.held", watched));
}

async fn keys_are_rotated_without_a_gap(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let id = stage
        .hook(&reader, &stage.new_hook("all", kinds(&SIGHT)))
        .await;
    let signatures = |request: &ReceivedRequest| {
        let header = request.header("webhook-signature").unwrap();
        header.split(' ').count()
    };
    hook_rotate(app, &reader, id).await.unwrap();
    hook_test(app, &reader, id).await.unwrap();
    let last = stage.receiver.requests_to(PATH).pop().unwrap();
    assert_eq!(signatures(&last), 4);
    stage.registry.advance(Duration::days(1));
    hook_test(app, &reader, id).await.unwrap();
    let last = stage.receiver.requests_to(PATH).pop().unwrap();
    assert_eq!(signatures(&last), 2);
}

async fn only_public_targets_that_confirm_are_sent_to(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    for private in [
        "http://10.0.0.1/x",
        "https://169.254.169.254/",
        "file:///x",
        "x",
    ] {
        let new = NewHook {
            url: private.to_owned().into(),
            ..stage.new_hook("private", HookFilter::default())
        };
        let refused = hook_create(app, &reader, &new).await.unwrap_err();
        assert_eq!(refused.members[0].0, "/url", "{private}: {refused:?}");
    }
    let new = stage.new_hook("moved", kinds(&SIGHT));
    stage
        .receiver
        .set_reply(PATH, OriginReply::redirect("/elsewhere"));
    let made = hook_create(app, &reader, &new).await.unwrap();
    assert_eq!(made.hook.state, HookState::Unconfirmed);
    assert!(made.hook.last_error.unwrap().contains("redirect"));
    assert!(stage.receiver.requests_to("/elsewhere").is_empty());
    let wrong = HookConfirmation {
        challenge: "guessed".into(),
    };
    let refused = hook_confirm(app, &reader, made.hook.id, &wrong).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid);
    // A huge answer is not read, and counts as received.
    let id = {
        stage.receiver.set_reply(PATH, OriginReply::json("{}"));
        stage
            .hook(&reader, &stage.new_hook("endless", kinds(&SIGHT)))
            .await
    };
    stage.receiver.set_reply(PATH, OriginReply::endless());
    let tested = hook_test(app, &reader, id).await.unwrap();
    assert!(tested.delivered, "{tested:?}");
    stage.publish("new.agents-test.com", "Is new.").await;
    assert_eq!(
        stage.deliver().await.len(),
        1,
        "the unconfirmed one gets nothing"
    );
}

async fn a_slack_message_escapes_what_cards_say(url: &str) {
    let stage = Stage::new(url).await;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let new = NewHook {
        format: Some(HookFormat::Slack),
        ..stage.new_hook("slack", kinds(&SIGHT))
    };
    stage.hook(&reader, &new).await;
    stage.deliver().await;
    let card = card_bytes("<!channel> & <https://evil.example|here>", "Is loud.");
    let domain = "loud.agents-test.com";
    stage.registry.register_approved_card(domain, &card).await;
    let bodies = stage.deliver().await;
    let text = bodies[0]["text"].as_str().unwrap();
    assert!(text.contains("&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt;"));
    assert!(!text.contains(['<', '>']), "{text}");
}

async fn hooks_have_bounds(url: &str) {
    let stage = Stage::new(url).await;
    let app = &stage.registry.app;
    let reader = caller(&stage.registry, "reader", Role::Reader).await;
    let mut ids = Vec::new();
    for number in 0..MAX_HOOKS_PER_ACCOUNT {
        let new = stage.new_hook(&format!("h{number}"), kinds(&[NoticeKind::AgentHeld]));
        ids.push(hook_create(app, &reader, &new).await.unwrap().hook.id);
    }
    let more = stage.new_hook("more", HookFilter::default());
    let refused = hook_create(app, &reader, &more).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    let same = stage.new_hook("h0", HookFilter::default());
    let refused = hook_create(app, &reader, &same).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    // Of another account.
    let other = caller(&stage.registry, "other", Role::Reader).await;
    let refused = hook_delete(app, &other, ids[0]).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotFound);
    hook_delete(app, &reader, ids[0]).await.unwrap();
    hook_create(app, &reader, &more).await.unwrap();
    // Ended deliveries beyond a number are deleted, the oldest first.
    let write = stage.registry.store.begin_write().await.unwrap();
    write.trim_hook_deliveries(ids[1], 0).await.unwrap();
    write.commit().await.unwrap();
}
