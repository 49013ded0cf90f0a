//! Erasing a domain: what its agents' cards said is gone from the database, the index and the caches, and the events
//! keep the digests (docs/operate/hardening.md#erase-what-a-domain-published).

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use a2a_card::bytes_digest;
use a2a_crawler::AttemptOutcome;
use a2a_registry_api::{Act, Erasure, NewReport, NewToken};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::domains::erasure::domain_erase;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::reviews::reports::report_agent;
use a2a_registry_core::search::indexing::rebuild_index;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_store::domains::fetch_attempts_of_sources;
use a2a_registry_store::entity::{agent_vectors, domain, embedding_model, event, source};
use a2a_registry_store::events::events_after;
use a2a_registry_store::{Executor as _, vectors, versions};
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::setup::RegistrySetup;

const DOMAIN: &str = "travel.agents-test.com";
const OTHER: &str = "other.agents-test.com";

fn erasure() -> Erasure {
    Erasure {
        reason: "its publisher asks for it".into(),
    }
}

impl InProcessRegistry {
    /// A caller with a token of that role, with these scopes.
    async fn caller_with_role(&self, name: &str, role: Role, scopes: Option<Vec<Scope>>) -> Caller {
        let new = NewToken {
            account: name.into(),
            role: Some(role),
            name: "a test".into(),
            scopes,
            ..NewToken::default()
        };
        let made = token_create(&self.app, &self.admin, &new).await.unwrap();
        authenticate_token(&self.app, &made.secret).await.unwrap()
    }

    async fn has_body(&self, card: &[u8]) -> bool {
        let body = versions::body_by_digest(&self.store, &bytes_digest(card)).await;
        body.unwrap().is_some()
    }

    /// The details of the stored fetches of every domain that has or had this name.
    async fn fetch_details(&self, name: &str) -> Vec<String> {
        let on = self.store.connection();
        let domains = domain::Entity::find().filter(domain::Column::Name.eq(name));
        let domains = domains.all(on).await.unwrap();
        let domains = domains.iter().map(|row| row.id);
        let sources = source::Entity::find().filter(source::Column::DomainId.is_in(domains));
        let sources = sources.all(on).await.unwrap();
        let sources: Vec<i64> = sources.iter().map(|row| row.id).collect();
        let attempts = fetch_attempts_of_sources(&self.store, &sources).await;
        let attempts = attempts.unwrap().into_iter();
        attempts.map(|row| row.detail).collect()
    }

    /// Registers the domain, which has no card, and removes it again.
    async fn register_and_remove_without_card(&self) {
        self.register_domain(DOMAIN).await;
        let missing = |_: &source::Model| OriginResponse::Failure(AttemptOutcome::NotFound);
        assert_eq!(self.run_due_visits(missing).await, 1);
        domain_delete(&self.app, &self.admin, DOMAIN).await.unwrap();
        self.advance(time::Duration::hours(2));
    }

    async fn all_events(&self) -> Vec<event::Model> {
        events_after(&self.store, 0, 10_000).await.unwrap()
    }

    /// Stores one vector of each agent by a model.
    async fn store_vectors(&self, agents: &[Uuid]) {
        let model = embedding_model::Model {
            id: "model".into(),
            name: "a model".into(),
            dimensions: 1,
            created_at: 0,
            applied_seq: 0,
            walked_to: None,
            completed_at: None,
            cutoff: None,
            used_at: 0,
        };
        self.store.get_or_insert_model(model).await.unwrap();
        let row = |agent: &Uuid| agent_vectors::Model {
            model_id: "model".into(),
            agent_id: *agent,
            text_digest: "text".into(),
            vectors: vec![0, 0, 128, 63, 1],
        };
        let write = self.store.begin_write().await.unwrap();
        let rows = agents.iter().map(row).collect();
        write.upsert_vectors(rows).await.unwrap();
        write.commit().await.unwrap();
    }
}

both_databases!(
    an_erased_domain_leaves_digests_in_events_only,
    only_admins_erase,
    erased_domains_keep_no_fetch_details,
    a_removed_domain_without_agents_is_erased,
    nothing_is_erased_while_a_case_is_open,
    approved_cards_stay_until_they_are_erased
);

/// Erases a domain with a live agent and an earlier, retired one. Another domain has one of its cards.
async fn an_erased_domain_leaves_digests_in_events_only(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let app = &registry.app;
    let [earlier, own, common] =
        ["Earlier", "Own", "Common"].map(|about| card_bytes("Echo", about));
    let retired = registry.register_approved_card(DOMAIN, &earlier).await.id;
    domain_delete(app, &registry.admin, DOMAIN).await.unwrap();
    registry.advance(time::Duration::hours(2));
    let live = registry.register_approved_card(DOMAIN, &own).await.id;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(common.clone()))
        .await;
    if registry.find_open_review(live).await.is_some() {
        registry.approve_open_review(live).await;
    }
    let other = registry.register_approved_card(OTHER, &common).await.id;
    registry.store_vectors(&[retired, live, other]).await;
    registry.catch_up().await;
    let digest = bytes_digest(&own);
    load_agent_card(app, &registry.admin, &live.to_string(), Some(&digest))
        .await
        .unwrap();
    assert!(app.card_cache.by_digest.get(&digest).is_some());

    domain_erase(app, &registry.admin, DOMAIN, &erasure())
        .await
        .unwrap();

    assert_eq!(registry.public_card_bytes(live).await, None);
    for agent in [retired, live] {
        assert!(registry.versions(agent).await.is_empty());
    }
    assert!(!registry.has_body(&earlier).await && !registry.has_body(&own).await);
    assert!(registry.has_body(&common).await, "{OTHER} has it too");
    assert_eq!(
        registry.public_card_bytes(other).await.as_ref(),
        Some(&common)
    );
    // Another process has computed these before the erasure, and stores them after it.
    registry.store_vectors(&[retired, live]).await;
    let left = vectors::vectors_by_agent(&registry.store, "model", &[retired, live, other]).await;
    let left: Vec<Uuid> = left.unwrap().iter().map(|row| row.agent_id).collect();
    assert_eq!(left, [other]);
    for row in registry.agents().await {
        let is_erased = row.domain == DOMAIN;
        assert_eq!(row.newest_version.is_none(), is_erased, "{row:?}");
        assert_eq!(row.approved_version.is_none(), is_erased, "{row:?}");
        assert_eq!(row.retired_at.is_some(), is_erased, "{row:?}");
    }

    let events = registry.all_events().await;
    assert!(events.iter().any(|event| event.data.contains(&digest)));
    assert!(events.iter().all(|event| !event.data.contains("Own")));
    let erased: Vec<&event::Model> = events
        .iter()
        .filter(|event| event.kind == EventKind::DomainErased)
        .collect();
    assert_eq!(erased.len(), 1);
    let data: Value = serde_json::from_str(&erased[0].data).unwrap();
    assert_eq!(
        (erased[0].subject.as_str(), &data),
        (
            DOMAIN,
            &json!({"reason": "its publisher asks for it", "agents": 2, "versions": 3, "cards": 2})
        )
    );

    // Whoever reads the event frees its caches and rebuilds its index.
    registry.catch_up().await;
    assert!(app.card_cache.by_digest.get(&digest).is_none());
    let requested = app.signals.reindex.notified();
    tokio::time::timeout(Duration::from_secs(10), requested)
        .await
        .expect("a rebuild is requested");
    let marker = app.config().erased_cards_marker();
    assert!(marker.exists());
    assert_eq!(rebuild_index(app, || false).await.unwrap(), Some(1));
    assert!(!marker.exists());
    assert_eq!(registry.publicly_found_ids().await, BTreeSet::from([other]));
    registry.assert_index_matches_database().await;

    // Nothing is left to erase.
    let again = domain_erase(app, &registry.admin, DOMAIN, &erasure()).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(
        registry.all_events().await.len(),
        events.len(),
        "a refusal writes no event"
    );
}

/// The details of fetches quote cards and catalogs: they go with the domain, and with its earlier registrations,
/// whether these had agents or not.
async fn erased_domains_keep_no_fetch_details(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let card = card_bytes("Echo", "Own");
    registry.register_approved_card(DOMAIN, &card).await;
    domain_delete(app, admin, DOMAIN).await.unwrap();
    registry.advance(time::Duration::hours(2));
    registry.register_and_remove_without_card().await;
    registry.register_approved_card(DOMAIN, &card).await;
    registry.register_approved_card(OTHER, &card).await;
    let kept = registry.fetch_details(OTHER).await;
    assert!(registry.fetch_details(DOMAIN).await.len() >= 3 && !kept.is_empty());
    domain_erase(app, admin, DOMAIN, &erasure()).await.unwrap();
    assert_eq!(registry.fetch_details(DOMAIN).await, [""; 0]);
    assert_eq!(registry.fetch_details(OTHER).await, kept);
}

async fn a_removed_domain_without_agents_is_erased(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    registry.register_and_remove_without_card().await;
    assert!(!registry.fetch_details(DOMAIN).await.is_empty());
    domain_erase(app, admin, DOMAIN, &erasure()).await.unwrap();
    assert_eq!(registry.fetch_details(DOMAIN).await, [""; 0]);
    let events = registry.all_events().await;
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind().unwrap(), last.subject.as_str()),
        (EventKind::DomainErased, DOMAIN)
    );
    // Nothing is left to erase.
    let again = domain_erase(app, admin, DOMAIN, &erasure()).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::NotFound);
}

/// The owner, a curator, and an admin whose token is for reading cannot erase, and an admin only with a reason.
async fn only_admins_erase(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let card = card_bytes("Echo", "Own");
    registry.register_approved_card(DOMAIN, &card).await;
    let before = registry.all_events().await.len();
    let reading = Some(vec![Scope::Read]);
    let mut attackers = vec![Caller::default()];
    for (name, role, scopes) in [
        ("reader", Role::Reader, None),
        ("publisher", Role::Publisher, None),
        ("curator", Role::Curator, None),
        ("auditor", Role::Auditor, None),
        ("boss", Role::Admin, reading),
    ] {
        attackers.push(registry.caller_with_role(name, role, scopes).await);
    }
    let tokens = registry.all_events().await.len();
    assert!(tokens > before);
    for attacker in &attackers {
        for domain in [DOMAIN, "missing.agents-test.com"] {
            let refused = domain_erase(&registry.app, attacker, domain, &erasure()).await;
            let kind = refused.unwrap_err().kind;
            assert!(
                [ErrorKind::Forbidden, ErrorKind::Unauthenticated].contains(&kind),
                "{kind:?}: {attacker:?}"
            );
        }
    }
    for reason in ["", " ", "\0"] {
        let unreasoned = Erasure {
            reason: reason.into(),
        };
        let refused = domain_erase(&registry.app, &registry.admin, DOMAIN, &unreasoned).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid);
    }
    assert!(registry.has_body(&card).await);
    assert_eq!(registry.all_events().await.len(), tokens);
}

/// A card that waits for a decision, a report and a hold each keep a domain from being erased, until they end.
async fn nothing_is_erased_while_a_case_is_open(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let card = card_bytes("Echo", "Own");
    let agent = registry.register_with_card(DOMAIN, &card).await.id;
    let refused_for = async |words: &str| {
        let refused = domain_erase(app, admin, DOMAIN, &erasure())
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
        assert!(refused.public.contains(words), "{refused:?}");
        assert!(registry.has_body(&card).await);
    };
    refused_for("admission").await;
    registry.approve_open_review(agent).await;
    let report = NewReport {
        reason: "It lies.".into(),
        contact: String::new(),
    };
    report_agent(app, &Caller::default(), &agent.to_string(), &report)
        .await
        .unwrap();
    refused_for("report").await;
    registry.approve_open_review(agent).await;
    let act = Act {
        reason: "wait".into(),
        hold: None,
    };
    agent_suspend(app, admin, &agent.to_string(), &act)
        .await
        .unwrap();
    refused_for("operator").await;
    // With the agent its hold ends, and a domain that was deleted can be erased still.
    domain_delete(app, admin, DOMAIN).await.unwrap();
    assert!(registry.has_body(&card).await);
    domain_erase(app, admin, DOMAIN, &erasure()).await.unwrap();
    assert!(!registry.has_body(&card).await);
    registry.assert_index_matches_database().await;
}

/// The approved card of a retired agent stays however long, until its domain is erased. Afterwards the same card can
/// be registered again.
async fn approved_cards_stay_until_they_are_erased(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let card = card_bytes("Echo", "Own");
    registry.register_approved_card(DOMAIN, &card).await;
    domain_delete(app, admin, DOMAIN).await.unwrap();
    registry.advance(time::Duration::days(200));
    let expired = a2a_registry_core::health::housekeeping::delete_expired_rows(app).await;
    assert!(!expired.unwrap());
    assert!(registry.has_body(&card).await, "an event names its digest");
    domain_erase(app, admin, DOMAIN, &erasure()).await.unwrap();
    assert!(!registry.has_body(&card).await);
    let agent = registry.register_approved_card(DOMAIN, &card).await.id;
    assert_eq!(
        registry.public_card_bytes(agent).await.as_ref(),
        Some(&card)
    );
    registry.assert_index_matches_database().await;
}

/// Whether a file of the database contains this text.
fn database_contains(data_folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(data_folder).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("registry.sqlite")
    });
    files.any(|path| {
        // The write-ahead log goes with the last connection.
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

/// The command: attackers get one line and exit code 2, and afterwards not even the file of the database has the text.
#[tokio::test]
async fn the_command_erases_to_the_last_byte() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let secret = "wolpertinger";
    origin.set_reply("/a.json", OriginReply::json(card_json(secret, "repeat")));
    registry.register_approved(&origin.url("/a.json")).await;
    let id = registry.wait_for_hit("skill=repeat").await.summary.id;
    let domain = origin.address().to_string();
    // The folder stays as long as this.
    let setup = registry.setup.clone();
    let data_folder = setup.data_folder();
    assert!(database_contains(&data_folder, secret));
    let erase = ["domain", "rm", &domain, "--erase", "--reason", "asked for"];

    let unreasoned = ["domain", "rm", &domain, "--erase", "--yes"];
    let unreasoned = registry.run_admin_command(&unreasoned).await;
    assert_eq!(unreasoned.status.code(), Some(2), "{unreasoned:#?}");
    assert_exit(&registry.run_admin_command(&erase).await, 2, "--yes");
    let erase: Vec<&str> = erase.into_iter().chain(["--yes"]).collect();
    for role in ["publisher", "curator"] {
        let token = registry.create_token(role, role).await;
        let mut command = registry.anonymous_command(&erase);
        command.args(["--token", &token]);
        let refused = Program::run(command).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:#?}");
    }
    assert!(database_contains(&data_folder, secret));

    let erased = registry.run_admin_command(&erase).await;
    assert_exit(&erased, 0, "");
    assert!(join_lines(&erased.stdout).contains("are erased"));
    registry
        .program
        .wait_for_line("the search index was rebuilt")
        .await;
    let gone = registry.get(&format!("/v1/agents/{id}")).await;
    assert_eq!(gone.status, 404);
    assert!(!database_contains(&data_folder, secret));
    assert_exit(&registry.run_admin_command(&erase).await, 1, "");
    registry.stop().await;
    assert!(!database_contains(&data_folder, secret));
}

/// A process that ended between an erasure and the rebuild of its index rebuilds it after its next start.
#[tokio::test]
async fn a_rebuild_that_an_erasure_left_undone_follows_the_next_start() {
    let registry = RegistrySetup::new().start().await;
    let setup = registry.setup.clone();
    registry.stop().await;
    let marker = setup.data_folder().join("index-has-erased-cards");
    assert!(!marker.exists());
    std::fs::write(&marker, "").unwrap();
    let registry = setup.start().await;
    registry
        .program
        .wait_for_line("the search index was rebuilt")
        .await;
    assert!(!marker.exists());
    registry.stop().await;
}
