//! Stored cards whose bytes are not those of their digest any more (docs/develop/model.md#storage).

use a2a_registry_core::agents::cards::{convert_agent_card, load_agent_card};
use a2a_registry_core::agents::diff::{VersionDiffQuery, agent_diff};
use a2a_registry_core::crawl::derivation::rederive_version_page;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::health::damaged_cards::report_damaged_cards;
use a2a_registry_core::health::readiness::check_readiness;
use a2a_registry_core::reviews::list::review_show;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::VersionState;
use a2a_registry_store::entity::{card_body, version};
use a2a_registry_store::{Executor as _, Store};
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _};
use serde_json::Value;
use uuid::Uuid;

use crate::support::database::store_options;
use crate::support::event_stream::event_seq;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{assert_exit, join_lines};
use crate::support::setup::RegistrySetup;
use crate::support::{both_databases, cards};

/// What somebody has written into the database in the place of an approved card.
const EVIL: &[u8] = br#"{"name":"Evil","url":"https://evil.agents-test.com/"}"#;

/// Replaces the bytes under a digest.
async fn write_bytes(store: &Store, digest: &str, bytes: &[u8]) {
    let write = store.begin_write().await.unwrap();
    let written = card_body::Entity::update_many()
        .set(card_body::ActiveModel {
            bytes: Set(bytes.to_vec()),
            ..Default::default()
        })
        .filter(card_body::Column::Digest.eq(digest))
        .exec(write.connection())
        .await
        .unwrap();
    assert_eq!(written.rows_affected, 1);
    write.commit().await.unwrap();
}

/// Makes every version one of an older build, which found an error in it.
async fn derive_all_again(store: &Store) {
    let write = store.begin_write().await.unwrap();
    version::Entity::update_many()
        .set(version::ActiveModel {
            derivation: Set(-1),
            has_error: Set(true),
            ..Default::default()
        })
        .filter(version::Column::Derivation.gte(0))
        .exec(write.connection())
        .await
        .unwrap();
    write.commit().await.unwrap();
}

/// The kind of failure of every way to the bytes of an agent's card. No message may say what is wrong.
async fn failures(stage: &InProcessRegistry, agent: Uuid, digest: &str) -> Vec<Option<ErrorKind>> {
    let (app, anyone, id) = (&stage.app, Caller::default(), agent.to_string());
    let query = VersionDiffQuery::default();
    let outcomes = [
        load_agent_card(app, &anyone, &id, None).await.map(drop),
        load_agent_card(app, &anyone, &id, Some(digest))
            .await
            .map(drop),
        convert_agent_card(app, &anyone, &id, None, a2a_card::ConversionTarget::V1_0)
            .await
            .map(drop),
        agent_diff(app, &anyone, &id, &query).await.map(drop),
    ];
    let kind = |error: a2a_registry_core::error::AppError| {
        assert!(!error.public.contains("sha256"), "{}", error.public);
        assert!(!error.public.contains(&id), "{}", error.public);
        error.kind
    };
    outcomes.map(|outcome| outcome.err().map(kind)).to_vec()
}

/// The versions that events report as damaged.
async fn reported_versions(stage: &InProcessRegistry) -> Vec<String> {
    let events = load_events_after(
        &stage.app,
        &stage.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    events
        .into_iter()
        .filter(|event| event.kind == EventKind::AgentDamagedCard)
        .map(|event| event.data["version"].as_str().unwrap().to_owned())
        .collect()
}

/// The detail about cards in the checks of readiness, which they never fail.
async fn cards_readiness_detail(stage: &InProcessRegistry) -> String {
    let readiness = check_readiness(&stage.app).await;
    let check = readiness.checks.iter().find(|check| check.name == "cards");
    let check = check.unwrap();
    assert!(check.ok);
    check.detail.clone()
}

both_databases!(
    changed_bytes_are_never_served,
    a_damaged_card_costs_only_its_agent,
    bytes_that_come_in_again_mend_a_card,
);

/// Changed bytes are neither served nor converted nor compared, at any door and in any process, until they are mended.
/// Each version is reported once, whoever finds it.
async fn changed_bytes_are_never_served(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Genuine", "First");
    let agent = stage
        .register_approved_card("genuine.agents-test.com", &bytes)
        .await;
    let other = stage
        .register_approved_card("other.agents-test.com", &card_bytes("Other", "Fine"))
        .await;
    let version = stage.versions(agent.id).await.remove(0);
    assert_eq!(failures(&stage, agent.id, &version.digest).await, [None; 4]);

    // The caches hold what was verified; a new process has none.
    write_bytes(&stage.store, &version.digest, EVIL).await;
    assert_eq!(
        stage.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );
    let mut stage = stage.restart(|_| ()).await;
    for _ in 0..2 {
        let internal = [Some(ErrorKind::Internal); 4];
        assert_eq!(failures(&stage, agent.id, &version.digest).await, internal);
        assert!(stage.public_card_bytes(other.id).await.is_some());
        report_damaged_cards(&stage.app).await.unwrap();
        assert_eq!(reported_versions(&stage).await, [version.id.to_string()]);
        assert!(
            cards_readiness_detail(&stage)
                .await
                .starts_with("1 stored cards")
        );
        // Another process finds the same, and reports nothing that was reported.
        stage = stage.restart(|_| ()).await;
        assert!(
            cards_readiness_detail(&stage)
                .await
                .starts_with("no stored card")
        );
    }
    failures(&stage, agent.id, &version.digest).await;
    write_bytes(&stage.store, &version.digest, &bytes).await;
    assert_eq!(failures(&stage, agent.id, &version.digest).await, [None; 4]);
    assert_eq!(
        stage.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );
    assert!(
        cards_readiness_detail(&stage)
            .await
            .starts_with("no stored card")
    );
    stage.assert_index_matches_database().await;
}

/// Derivation goes on with the other cards, and the agent itself can be mended by its next card: a person decides on it.
async fn a_damaged_card_costs_only_its_agent(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    let domain = "genuine.agents-test.com";
    let agent = stage
        .register_approved_card(domain, &card_bytes("Genuine", "First"))
        .await;
    let other = stage
        .register_approved_card("other.agents-test.com", &card_bytes("Other", "Fine"))
        .await;
    let first = stage.versions(agent.id).await.remove(0);
    let fine = stage.versions(other.id).await.remove(0);
    write_bytes(&stage.store, &first.digest, EVIL).await;
    let stage = stage.restart(|_| ()).await;

    derive_all_again(&stage.store).await;
    assert_eq!(rederive_version_page(&stage.app).await.unwrap(), 2);
    assert_eq!(rederive_version_page(&stage.app).await.unwrap(), 0);
    assert_eq!(stage.versions(other.id).await, [fine]);
    let kept = stage.versions(agent.id).await.remove(0);
    assert_eq!(
        kept.model, first.model,
        "nothing is derived from other bytes"
    );

    let next = card_bytes("Genuine", "Second");
    stage
        .crawl_domain(domain, OriginResponse::Card(next.clone()))
        .await;
    let review = stage.find_open_review(agent.id).await.unwrap();
    let shown = review_show(&stage.app, &stage.admin, review.id)
        .await
        .unwrap();
    assert!(shown.card_text.is_some());
    assert!(shown.diff.is_none(), "there is nothing to compare with");
    stage.approve_open_review(agent.id).await;
    assert_eq!(stage.public_card_bytes(agent.id).await, Some(next));

    // A review of a damaged card can be read, and decided.
    stage
        .crawl_domain(domain, OriginResponse::Card(card_bytes("Genuine", "Third")))
        .await;
    let newest = stage.versions(agent.id).await.pop().unwrap();
    write_bytes(&stage.store, &newest.digest, EVIL).await;
    let review = stage.find_open_review(agent.id).await.unwrap();
    let shown = review_show(&stage.app, &stage.admin, review.id)
        .await
        .unwrap();
    assert_eq!(shown.card_text, None);
    stage.reject_open_review(agent.id).await;
    let newest = stage.versions(agent.id).await.pop().unwrap();
    assert_eq!(newest.state, VersionState::Rejected);
}

/// Another agent that publishes the same bytes is served them, and so is the first one again.
async fn bytes_that_come_in_again_mend_a_card(url: &str) {
    let stage = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Genuine", "First");
    let agent = stage
        .register_approved_card("one.agents-test.com", &bytes)
        .await;
    let version = stage.versions(agent.id).await.remove(0);
    write_bytes(&stage.store, &version.digest, EVIL).await;
    let stage = stage.restart(|_| ()).await;
    let same = stage
        .register_approved_card("two.agents-test.com", &bytes)
        .await;
    assert_eq!(
        stage.public_card_bytes(same.id).await.as_ref(),
        Some(&bytes)
    );
    assert_eq!(
        stage.public_card_bytes(agent.id).await.as_ref(),
        Some(&bytes)
    );
}

both_databases!(only_operators_learn_which_card_is_damaged);

/// Over HTTP a damaged card is a 500 that names nothing, while the process stays ready. Log, metric, event and `doctor`
/// have the rest.
async fn only_operators_learn_which_card_is_damaged(url: &str) {
    let origin = Origin::start();
    origin.set_reply(
        "/card.json",
        OriginReply::json(cards::card_json("Echo", "repeat")),
    );
    let setup = RegistrySetup::new()
        .approve_all()
        .with_database(url)
        .with_config_lines("[log]\nformat = \"json\"");
    let registry = setup.start().await;
    let agent = registry.publish(&origin.url("/card.json")).await;
    let path = format!("/v1/agents/{agent}/card");
    let bytes = registry.get(&path).await.body;
    let digest = a2a_card::bytes_digest(&bytes);
    registry.stop().await;
    let store = Store::connect(&store_options(url)).await.unwrap();
    write_bytes(&store, &digest, EVIL).await;

    let registry = setup.start().await;
    for door in [
        path.clone(),
        format!("{path}?as=1.0"),
        format!("{path}?version={digest}"),
        format!("/agents/{agent}/.well-known/agent-card.json"),
        format!("/v1/agents/{agent}/diff"),
    ] {
        let answer = registry.get(&door).await;
        answer.expect_problem(500, "internal");
        let text = answer.text();
        assert!(!text.contains("sha256") && !text.contains("Evil"), "{text}");
        assert!(!text.contains("stored bytes"), "{text}");
    }
    let ready = registry.get_as_admin("/readyz").await.expect_status(200);
    assert!(
        ready.to_string().contains("1 stored cards are damaged"),
        "{ready}"
    );
    assert!(!ready.to_string().contains("sha256"), "{ready}");
    assert_eq!(registry.metric_value("damaged_cards").await, 1);
    let event = registry
        .open_event_stream(0)
        .await
        .wait_for("agent.damaged_card")
        .await;
    assert!(event_seq(&event) > 0);
    assert_eq!(event["subject"], agent.as_str());
    assert_eq!(event["data"]["digest"], digest.as_str());
    let version = event["data"]["version"].as_str().unwrap().to_owned();

    let data = setup.data_folder().to_str().unwrap().to_owned();
    let doctor = ["doctor", "--verify", "--data-dir", &data, "--database", url];
    let ill = registry.run_admin_command(&doctor).await;
    assert_exit(&ill, 1, "");
    for word in ["fail cards: 1 of 1", &digest, &version, &agent] {
        assert!(join_lines(&ill.stdout).contains(word), "{word}: {ill:?}");
    }
    let ill = registry
        .run_admin_command(&[&doctor[..], &["--json"]].concat())
        .await;
    let checks: Value = serde_json::from_str(&join_lines(&ill.stdout)).unwrap();
    let named = checks.as_array().unwrap().iter();
    let named: Vec<_> = named
        .filter(|check| check["name"] == "damaged card")
        .collect();
    assert_eq!(named.len(), 1, "{checks}");
    assert_eq!(named[0]["verdict"], "fail");

    write_bytes(&store, &digest, &bytes).await;
    assert_eq!(registry.get(&path).await.body, bytes);
    assert_eq!(registry.metric_value("damaged_cards").await, 0);
    let well = registry.run_admin_command(&doctor).await;
    assert_exit(&well, 0, "");
    assert!(
        join_lines(&well.stdout).contains("ok   cards: all 1 stored cards"),
        "{well:?}"
    );
    store.close().await.unwrap();
    let ended = registry.stop().await;
    let lines = ended.stderr.iter();
    let lines: Vec<&String> = lines.filter(|line| line.contains(&version)).collect();
    let errors: Vec<_> = lines.iter().filter(|line| line.contains("ERROR")).collect();
    assert_eq!(errors.len(), 1, "{lines:?}");
    assert!(errors[0].contains(&digest), "{errors:?}");
}
