//! Changes by other processes that the index cannot follow: agents put on hold since then are not found.

use std::collections::BTreeSet;
use std::fs;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Act, AgentPatch};
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::agents::views::agent_versions;
use a2a_registry_core::domains::actions::{domain_list, domain_show};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, ShownLifecycle};
use a2a_registry_store::entity::hold;
use a2a_registry_store::events::NewEvent;
use a2a_registry_store::statements::record_statements;
use a2a_registry_store::{Executor as _, StoredEnum, domains};
use sea_orm::ConnectionTrait as _;
use time::Duration;
use tokio::runtime::Builder;
use uuid::Uuid;

use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};
use crate::support::polling::eventually;
use crate::support::{DEADLINE, both_databases};

/// A kind of hold that no build knows yet.
const LATER: &str = "quarantined";

/// Adds that many agents that anyone may find.
async fn agents(registry: &InProcessRegistry, count: usize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for number in 0..count {
        let domain = format!("d{number}.agents-test.com");
        let card = card_bytes(&format!("Agent {number}"), "flights");
        ids.push(registry.register_approved_card(&domain, &card).await.id);
    }
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&ids));
    ids
}

fn set(ids: &[Uuid]) -> BTreeSet<Uuid> {
    ids.iter().copied().collect()
}

fn event(registry: &InProcessRegistry, agent: Option<Uuid>) -> NewEvent {
    NewEvent {
        at: registry.app.now(),
        kind: EventKind::AgentUpdated,
        subject: "a test".into(),
        agent_id: agent,
        actor: "another process".into(),
        data: serde_json::json!({}),
    }
}

/// Appends these events as another process, after the ones it has written.
async fn append(registry: &InProcessRegistry, events: Vec<NewEvent>) -> i64 {
    let write = registry.store.begin_write().await.unwrap();
    let seq = write.append_events(events).await.unwrap().unwrap();
    write.commit().await.unwrap();
    seq
}

/// Puts an agent on hold as another process.
async fn put_on_hold(registry: &InProcessRegistry, agent: Uuid, kind: StoredEnum<Hold>) -> i64 {
    let write = registry.store.begin_write().await.unwrap();
    let row = hold::Model {
        agent_id: agent,
        hold: kind,
        reason: "a test".into(),
        actor: "another process".into(),
        since: registry.app.now().0,
    };
    write.insert_holds(vec![row]).await.unwrap();
    let events = vec![event(registry, Some(agent))];
    let seq = write.append_events(events).await.unwrap().unwrap();
    write.commit().await.unwrap();
    seq
}

async fn sql(registry: &InProcessRegistry, statement: &str) {
    let on = registry.store.connection();
    on.execute_unprepared(statement).await.unwrap();
}

/// Whether the index itself finds an agent for anyone; unlike a search this does not wait.
fn is_in_index(registry: &InProcessRegistry, number: usize) -> bool {
    let key = format!("host:d{number}.agents-test.com");
    let found = registry
        .app
        .index()
        .lookup_agents_by_key(&key, &["public".into()], 5);
    !found.unwrap().is_empty()
}

/// The error that anyone gets for the card of an agent; `None` if the card is served.
async fn refusal(registry: &InProcessRegistry, agent: Uuid) -> Option<ErrorKind> {
    let id = agent.to_string();
    let card = load_agent_card(&registry.app, &Caller::default(), &id, None).await;
    card.err().map(|error| error.kind)
}

both_databases!(
    what_events_are_about_is_read_once,
    an_unreadable_agent_hides_only_itself,
    an_unspecified_change_counts_as_silence,
    an_index_that_cannot_apply_events_still_reads_them,
    a_hold_of_an_unknown_kind_hides_its_agent,
    an_unknown_state_hides_only_its_own_agent
);

/// The index reads the events, and of the agents that they are about each kind of rows once.
async fn what_events_are_about_is_read_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ids = agents(&registry, 2).await;
    let events = ids.iter().map(|id| event(&registry, Some(*id))).collect();
    let seq = append(&registry, events).await;
    let (applied, statements) = record_statements(apply_next_events(&registry.app)).await;
    assert!(applied.unwrap());
    assert_eq!(registry.app.index().applied_seq(), seq);
    let table = |statement: &String| {
        let from = statement.split(" FROM ").nth(1).unwrap();
        from.split_whitespace().next().unwrap().replace('"', "")
    };
    let tables: Vec<String> = statements.iter().map(table).collect();
    let expected = [
        "events",
        "agents",
        "domains",
        "holds",
        "versions",
        "enrolled_keys",
        "proofs",
        "sources",
        "source_registrants",
        "waivers",
    ];
    assert_eq!(tables, expected, "{statements:#?}");
}

/// An agent that this build cannot read is not found, and does not affect other agents.
async fn an_unreadable_agent_hides_only_itself(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ids = agents(&registry, 3).await;
    let change = |value: &str| format!("UPDATE versions SET model = {value} WHERE agent_id = ");
    // Both databases take a UUID from a subselect, in whichever form they store it.
    let first = "(SELECT id FROM agents WHERE domain = 'd0.agents-test.com')";
    sql(&registry, &format!("{}{first}", change("'[' || model"))).await;
    append(&registry, vec![event(&registry, Some(ids[0]))]).await;
    put_on_hold(&registry, ids[1], Hold::Operator.into()).await;
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&ids[2..]));
    // The agent does not stop a rebuild either.
    assert_eq!(
        rebuild_index(&registry.app, || false).await.unwrap(),
        Some(2)
    );
    assert_eq!(registry.publicly_found_ids().await, set(&ids[2..]));
    sql(&registry, &format!("{}{first}", change("substr(model, 2)"))).await;
    append(&registry, vec![event(&registry, Some(ids[0]))]).await;
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&[ids[0], ids[2]]));
    registry.assert_index_matches_database().await;
}

/// If the database reports that agents have changed but not how, it counts as silent, and no agent is shown that may be
/// on hold.
async fn an_unspecified_change_counts_as_silence(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.store.stale_limit = 60).await;
    let ids = agents(&registry, 3).await;
    for id in &ids {
        let kept = load_cached_agent_view(&registry.app, &Caller::default(), &id.to_string()).await;
        assert!(kept.is_ok());
    }
    put_on_hold(&registry, ids[0], Hold::Operator.into()).await;
    sql(
        &registry,
        "ALTER TABLE versions RENAME TO versions_elsewhere",
    )
    .await;
    apply_next_events(&registry.app).await.unwrap_err();
    assert_eq!(registry.publicly_found_ids().await, set(&ids[1..]));
    sql(&registry, "ALTER TABLE holds RENAME TO holds_elsewhere").await;
    append(&registry, vec![event(&registry, Some(ids[1]))]).await;
    apply_next_events(&registry.app).await.unwrap_err();
    assert_eq!(registry.publicly_found_ids().await, set(&ids[2..]));
    registry.advance(Duration::minutes(2));
    apply_next_events(&registry.app).await.unwrap_err();
    assert_eq!(
        refusal(&registry, ids[2]).await,
        Some(ErrorKind::Unavailable)
    );
    let kept = load_cached_agent_view(&registry.app, &Caller::default(), &ids[2].to_string()).await;
    assert_eq!(kept.unwrap_err().kind, ErrorKind::Unavailable);
    sql(&registry, "ALTER TABLE holds_elsewhere RENAME TO holds").await;
    sql(
        &registry,
        "ALTER TABLE versions_elsewhere RENAME TO versions",
    )
    .await;
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&ids[1..]));
    registry.assert_index_matches_database().await;
}

/// An index that cannot apply events still reads all of them, however many there are.
async fn an_index_that_cannot_apply_events_still_reads_them(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ids = agents(&registry, 2).await;
    assert_eq!(refusal(&registry, ids[0]).await, None);
    for entry in fs::read_dir(registry.app.config().index_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    append(
        &registry,
        (0..2_500).map(|_| event(&registry, None)).collect(),
    )
    .await;
    put_on_hold(&registry, ids[0], Hold::Operator.into()).await;
    apply_next_events(&registry.app).await.unwrap_err();
    assert!(!is_in_index(&registry, 0) && is_in_index(&registry, 1));
    assert_eq!(refusal(&registry, ids[0]).await, Some(ErrorKind::NotFound));
}

/// A hold of a kind that only a later build knows hides its agent everywhere, and no act of this build lifts it.
async fn a_hold_of_an_unknown_kind_hides_its_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ids = agents(&registry, 2).await;
    let [held, other] = [ids[0], ids[1]];
    let name = held.to_string();
    let withheld = async || {
        let by_domain = SearchQuery {
            facets: vec!["domain".into()],
            ..SearchQuery::default()
        };
        // `found` compares the total with the agents, too.
        let found = registry.search_all(&Caller::default(), &by_domain).await;
        let ids: Vec<Uuid> = found.agents.iter().map(|hit| hit.summary.id).collect();
        assert_eq!(ids, [other]);
        let domains = &found.facets["domain"].values;
        assert_eq!((domains.len(), domains[0].count), (1, 1));
        assert_eq!(domains[0].value, "d1.agents-test.com");
        assert_eq!(registry.public_card_bytes(held).await, None);
        let shown = agent_show_checked(&registry.app, &Caller::default(), &name).await;
        assert_eq!(shown.unwrap_err().kind, ErrorKind::NotFound);
    };
    put_on_hold(&registry, held, StoredEnum::from_text(LATER.into())).await;
    // An act of this process meanwhile updates in its index who may see the agent.
    let labels = [("round".to_owned(), "one".to_owned())];
    let patch = AgentPatch {
        labels: Some(labels.into()),
        ..AgentPatch::default()
    };
    agent_patch(&registry.app, &registry.admin, &name, &patch)
        .await
        .unwrap();
    withheld().await;
    registry.assert_index_matches_database().await;
    withheld().await;
    let act = Act {
        reason: "a test".into(),
        hold: None,
    };
    let resumed = agent_resume(&registry.app, &registry.admin, &name, &act).await;
    assert_eq!(resumed.unwrap_err().kind, ErrorKind::Conflict);
    let suspended = agent_suspend(&registry.app, &registry.admin, &name, &act)
        .await
        .unwrap();
    assert_eq!(suspended.holds.len(), 2);
    let resumed = agent_resume(&registry.app, &registry.admin, &name, &act)
        .await
        .unwrap();
    assert_eq!(resumed.hit.summary.lifecycle, ShownLifecycle::Suspended);
    withheld().await;
    registry.assert_index_matches_database().await;
    assert_eq!(registry.holds(held).await, [LATER]);
    sql(
        &registry,
        &format!("DELETE FROM holds WHERE hold = '{LATER}'"),
    )
    .await;
    append(&registry, vec![event(&registry, Some(held))]).await;
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&ids));
}

/// An agent, domain or visibility in a state that only a later build knows hides that agent, and no other.
async fn an_unknown_state_hides_only_its_own_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ids = agents(&registry, 4).await;
    for (number, change) in [
        "UPDATE agents SET lifecycle = 'moonlit' WHERE domain = 'd0.agents-test.com'",
        "UPDATE agents SET visibility = 'moonlit' WHERE domain = 'd1.agents-test.com'",
        "UPDATE domains SET state = 'moonlit' WHERE name = 'd2.agents-test.com'",
    ]
    .into_iter()
    .enumerate()
    {
        sql(&registry, change).await;
        append(&registry, vec![event(&registry, Some(ids[number]))]).await;
    }
    registry.catch_up().await;
    let check_views = async || {
        for caller in [&Caller::default(), &registry.admin] {
            let found = registry.search_all(caller, &SearchQuery::default()).await;
            assert_eq!(found.total, 1);
            assert_eq!(
                found
                    .agents
                    .iter()
                    .map(|hit| hit.summary.id)
                    .collect::<Vec<_>>(),
                ids[3..]
            );
            for id in &ids {
                let name = id.to_string();
                let is_shown = *id == ids[3];
                let app = &registry.app;
                let shown = agent_show_checked(app, caller, &name).await.map(|_| ());
                let versions = agent_versions(app, caller, &name, &PageRequest::default())
                    .await
                    .map(|_| ());
                let card = load_agent_card(app, caller, &name, None).await.map(|_| ());
                for answer in [shown, versions, card] {
                    let refused = answer.err().map(|error| error.kind);
                    assert_eq!(
                        refused,
                        (!is_shown).then_some(ErrorKind::NotFound),
                        "{name}"
                    );
                }
            }
        }
    };
    check_views().await;
    // A rebuild of the index works as well.
    assert_eq!(
        rebuild_index(&registry.app, || false).await.unwrap(),
        Some(1)
    );
    check_views().await;

    let domains = domain_list(&registry.app, &registry.admin, &PageRequest::default())
        .await
        .unwrap();
    let named: Vec<&str> = domains
        .domains
        .iter()
        .map(|domain| domain.domain.as_str())
        .collect();
    assert_eq!(
        named,
        [
            "d0.agents-test.com",
            "d1.agents-test.com",
            "d3.agents-test.com"
        ]
    );
    let broken = domain_show(&registry.app, &registry.admin, "d2.agents-test.com")
        .await
        .unwrap_err();
    assert_eq!(broken.kind, ErrorKind::Internal);
    let row = domains::domain_by_name(&registry.store, "d2.agents-test.com")
        .await
        .unwrap()
        .unwrap();
    let cause = format!("domains.state of {} holds \"moonlit\"", row.id);
    assert_eq!(broken.internal, Some(cause));

    // Nothing was lost: once this build knows the state again, the agent is shown.
    sql(
        &registry,
        "UPDATE agents SET lifecycle = 'approved', visibility = 'public'",
    )
    .await;
    sql(&registry, "UPDATE domains SET state = 'unverified'").await;
    append(
        &registry,
        ids.iter().map(|id| event(&registry, Some(*id))).collect(),
    )
    .await;
    registry.catch_up().await;
    assert_eq!(registry.publicly_found_ids().await, set(&ids));
    registry.assert_index_matches_database().await;
}

/// Acts of other processes during a rebuild take effect at once, and the database does not count as silent.
async fn a_rebuild_delays_no_act(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.store.stale_limit = 60).await;
    let ids = agents(&registry, 2).await;
    assert_eq!(refusal(&registry, ids[0]).await, None);
    // The rebuild cannot continue before the only thread for blocking work is free.
    let (free, freed) = std::sync::mpsc::channel::<()>();
    let occupied = tokio::task::spawn_blocking(move || freed.recv());
    let app = registry.app.clone();
    let rebuild = tokio::spawn(async move { rebuild_index(&app, || false).await });
    eventually("the rebuild has begun", async || {
        let entries = fs::read_dir(registry.app.config().index_dir()).unwrap();
        let folders = entries.filter(|entry| entry.as_ref().unwrap().path().is_dir());
        (folders.count() == 2).then_some(())
    })
    .await;
    registry.advance(Duration::minutes(2));
    let mut heard = registry.app.event_signal();
    let seq = put_on_hold(&registry, ids[0], Hold::Operator.into()).await;
    let heard = tokio::time::timeout(DEADLINE, heard.wait_for(|known| *known >= seq)).await;
    heard.expect("the process learns of the event").unwrap();
    assert!(!is_in_index(&registry, 0) && is_in_index(&registry, 1));
    eventually("the hold takes effect", async || {
        let refused = refusal(&registry, ids[0]).await;
        (refused == Some(ErrorKind::NotFound)).then_some(())
    })
    .await;
    drop(free);
    occupied.await.unwrap().unwrap_err();
    assert!(rebuild.await.unwrap().unwrap().is_some());
    assert_eq!(registry.publicly_found_ids().await, set(&ids[1..]));
    registry.assert_index_matches_database().await;
}

fn with_one_thread_that_blocks(test: impl Future<Output = ()>) {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(1);
    runtime.enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_rebuild_delays_no_act_on_sqlite() {
    with_one_thread_that_blocks(async {
        let database = Database::sqlite();
        a_rebuild_delays_no_act(database.url()).await;
    });
}

#[test]
fn a_rebuild_delays_no_act_on_postgres() {
    with_one_thread_that_blocks(async {
        let database = Database::postgres().await;
        a_rebuild_delays_no_act(database.url()).await;
    });
}
