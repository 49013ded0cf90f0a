//! Attribution of data from an older release: submitters and decisions are determined anew at the next start.

use a2a_registry_api::Registration;
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_server::domains::register::register;
use a2a_registry_store::entity::{
    agent, decision, event, setting, source, source_registrant, version, version_source,
};
use a2a_registry_store::{Handle as _, events};
use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, EntityTrait as _, IntoActiveModel as _,
    QueryFilter as _,
};
use serde_json::Value;
use time::Duration;
use uuid::Uuid;

use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

/// Puts an agent into the older release's state: approved by that rule, with that name.
async fn restore_older_state(stage: &Stage, agent: Uuid, rule: &str, urn: &str) {
    let on = stage.store.connection();
    let row = agent::Entity::find_by_id(agent)
        .one(on)
        .await
        .unwrap()
        .unwrap();
    let newest = row.newest_version.unwrap();
    agent::Entity::update_many()
        .col_expr(agent::Column::Lifecycle, Expr::value("approved"))
        .col_expr(agent::Column::ApprovedVersion, Expr::value(newest))
        .col_expr(agent::Column::Urn, Expr::value(urn))
        .filter(agent::Column::Id.eq(agent))
        .exec(on)
        .await
        .unwrap();
    let shown = version::Entity::find_by_id(newest)
        .one(on)
        .await
        .unwrap()
        .unwrap();
    let made = decision::Model {
        id: 0,
        agent_id: agent,
        version_id: newest,
        content_digest: shown.content_digest,
        signing: shown.signing,
        approved: true,
        rule: rule.parse::<Rule>().unwrap().into(),
        actor: "policy".into(),
        reason: None,
        self_approved: false,
        at: row.created_at,
    };
    let mut made = made.into_active_model();
    made.id = NotSet;
    made.insert(on).await.unwrap();
}

/// Removes the data that the older release did not have.
async fn forget(stage: &Stage) {
    let on = stage.store.connection();
    version_source::Entity::delete_many()
        .exec(on)
        .await
        .unwrap();
    source_registrant::Entity::delete_many()
        .exec(on)
        .await
        .unwrap();
    version::Entity::update_many()
        .col_expr(version::Column::Standing, Expr::value("nomination"))
        .exec(on)
        .await
        .unwrap();
    setting::Entity::delete_many()
        .filter(setting::Column::Key.eq("sources_attributed"))
        .exec(on)
        .await
        .unwrap();
}

/// The number of the last event.
async fn seq(stage: &Stage) -> i64 {
    events::highest_seq(&stage.store).await.unwrap()
}

/// Bodies of the events of that kind about an agent after `since`.
async fn event_bodies(stage: &Stage, since: i64, agent: Uuid, kind: &str) -> Vec<Value> {
    let all = events::events_after(&stage.store, since, 10_000)
        .await
        .unwrap();
    all.into_iter()
        .filter(|event| event.kind.as_str() == kind && event.subject == agent.to_string())
        .map(|event| serde_json::from_str(&event.data).unwrap())
        .collect()
}

async fn row(stage: &Stage, agent: Uuid) -> agent::Model {
    let on = stage.store.connection();
    agent::Entity::find_by_id(agent)
        .one(on)
        .await
        .unwrap()
        .unwrap()
}

both_databases!(
    agents_of_an_older_release_are_decided_again,
    an_agent_without_a_source_keeps_its_name
);

/// Submitters come from the events. A nomination approved by a rule waits again, one approved by a person stays
/// approved; both fall to L0, and their names are never given out again. The owner's own agents are unchanged.
async fn agents_of_an_older_release_are_decided_again(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, own) = setup.prove_with_agent().await;
    let stranger = setup.account("stranger").await;
    let at = |path: &str| Registration {
        card_url: Some(format!("https://{DOMAIN}{path}")),
        ..Registration::default()
    };
    let app = &setup.stage.app;
    for (caller, path) in [
        (&stranger, "/rule.json"),
        (&stranger, "/person.json"),
        (&stranger, "/untold.json"),
        (&owner, "/own.json"),
    ] {
        register(app, caller, &at(path)).await.unwrap();
    }
    setup.stage.advance(Duration::minutes(2));
    setup
        .stage
        .visit(|source| OriginAnswer::Card(card("Travel", &source.url)))
        .await;
    let all = setup.stage.agents().await;
    let of = |path: &str| all.iter().find(|row| row.slot.ends_with(path)).unwrap().id;
    let (rule, person, mine) = (of("/rule.json"), of("/person.json"), of("/own.json"));
    let untold = of("/untold.json");
    let urn = |name: &str| format!("urn:air:{DOMAIN}:agents:{name}");
    restore_older_state(&setup.stage, rule, "verified_domain", &urn("stolen")).await;
    restore_older_state(&setup.stage, person, "person", &urn("given")).await;
    let [own_before, mine_before] = [row(&setup.stage, own).await, row(&setup.stage, mine).await];
    assert!(own_before.urn.is_some() && mine_before.urn.is_some());
    forget(&setup.stage).await;
    // No event names the submitter of this one.
    let events = event::Entity::delete_many()
        .filter(event::Column::Kind.eq("domain.registered"))
        .filter(event::Column::Data.contains("/untold.json"))
        .exec(setup.stage.store.connection())
        .await
        .unwrap();
    assert_eq!(events.rows_affected, 1);
    // As if another account had submitted everything.
    let submitter = setup.stage.admin.account.as_ref().unwrap().id;
    agent::Entity::update_many()
        .col_expr(agent::Column::Submitter, Expr::value(submitter))
        .exec(setup.stage.store.connection())
        .await
        .unwrap();

    let OwnershipSetup { stage, names } = setup;
    let before = seq(&stage).await;
    let stage = stage.restart(|_| ()).await;
    let strangers = Some(stranger.account.as_ref().unwrap().id);
    let now = row(&stage, rule).await;
    assert_eq!(
        (now.lifecycle.as_str(), now.approved_version, &now.urn),
        ("pending", None, &None)
    );
    assert_eq!(now.submitter, strangers);
    let now = row(&stage, person).await;
    assert_eq!(
        (now.lifecycle.as_str(), &now.urn, now.submitter),
        ("approved", &None, strangers)
    );
    // A source whose event is missing is attributed to the domain's own account, whose proof then covers it.
    let now = row(&stage, untold).await;
    assert_eq!(
        now.submitter,
        owner.account.as_ref().map(|account| account.id)
    );
    assert_eq!(now.lifecycle, Lifecycle::Approved);
    let bodies = async |id: Uuid, kind: &str| event_bodies(&stage, before, id, kind).await;
    for (id, name) in [(rule, "stolen"), (person, "given")] {
        let withdrawn = bodies(id, "agent.updated").await;
        let withdrawn = withdrawn
            .iter()
            .filter(|data| data["withdrawn"] == urn(name).as_str());
        assert_eq!(withdrawn.count(), 1, "{name}");
    }
    // Each change of a submitter is in the log, and no other events claim one.
    for (id, changes) in [(rule, 1), (person, 1), (own, 1), (mine, 1), (untold, 1)] {
        let updated = bodies(id, "agent.updated").await;
        let changed: Vec<&Value> = updated
            .iter()
            .filter(|data| data.get("submitter").is_some())
            .collect();
        assert_eq!(changed.len(), changes);
        for data in changed {
            assert_eq!(data["before"], serde_json::json!(submitter));
            assert_eq!(
                data["submitter"],
                serde_json::json!(row(&stage, id).await.submitter)
            );
        }
    }
    for (id, returns) in [(rule, 1), (person, 0), (own, 0), (mine, 0), (untold, 0)] {
        assert_eq!(bodies(id, "agent.returned").await.len(), returns);
        let taken = bodies(id, "agent.updated").await;
        let taken = taken.iter().filter(|data| data.get("withdrawn").is_some());
        assert_eq!(taken.count(), usize::from(id == rule || id == person));
    }
    let level = async |id: Uuid| {
        let shown = agent_show(&stage.app, &stage.admin, &id.to_string())
            .await
            .unwrap();
        let level = shown.hit.summary.trust.level;
        level.map(|level| level.to_string()).unwrap_or_default()
    };
    assert_eq!(
        (level(rule).await, level(person).await),
        ("L0".into(), "L0".into())
    );
    for (id, before) in [(own, &own_before), (mine, &mine_before)] {
        let now = row(&stage, id).await;
        assert_eq!(
            (&now.lifecycle, &now.urn),
            (&before.lifecycle, &before.urn),
            "{}",
            before.slot
        );
        assert_eq!(level(id).await, "L1", "{}", before.slot);
    }
    assert_eq!(stage.served(rule).await, None);
    stage.index_equals_database().await;
    // A second restart changes nothing.
    let stage = stage.restart(|_| ()).await;
    let again = row(&stage, person).await;
    assert_eq!((again.lifecycle.as_str(), again.urn), ("approved", None));

    // The owner takes over one agent; its revoked name is not given out again.
    let setup = OwnershipSetup { stage, names };
    register(&setup.stage.app, &owner, &at("/rule.json"))
        .await
        .unwrap();
    let named = row(&setup.stage, rule).await;
    assert_eq!(named.lifecycle, Lifecycle::Approved);
    assert!(named.urn.is_some_and(|given| given != urn("stolen")));
    let missing = agent_show(&setup.stage.app, &setup.stage.admin, &urn("stolen")).await;
    assert!(missing.is_err());
    setup.stage.index_equals_database().await;
}
/// An agent whose source has ended keeps its name: no data shows any more that the source was not the domain's own.
async fn an_agent_without_a_source_keeps_its_name(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (_, own) = setup.prove_with_agent().await;
    let before = row(&setup.stage, own).await;
    assert!(before.urn.is_some());
    forget(&setup.stage).await;
    source::Entity::update_many()
        .col_expr(source::Column::EndedAt, Expr::value(before.created_at))
        .filter(source::Column::AgentId.eq(own))
        .exec(setup.stage.store.connection())
        .await
        .unwrap();
    let stage = setup.stage.restart(|_| ()).await;
    assert_eq!(row(&stage, own).await.urn, before.urn);
}
