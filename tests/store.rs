//! The store by itself: concurrent writes, tokens, bytes, a read-only database.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_api::{Act, NewToken, ReviewDecision};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::{token_create, token_revoke};
use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::config::Config;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::health::readiness::check_readiness;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::reviews::decisions::{review_approve, review_reject};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_server::startup::start_registry;
use a2a_registry_store::domains::domains_by_ids;
use a2a_registry_store::entity::{agent, card_body, token, version};
use a2a_registry_store::settings::setting_value;
use a2a_registry_store::statements::record_statements;
use a2a_registry_store::versions::{MAX_VERSIONS_PER_AGENT, body_digests_after};
use a2a_registry_store::{Executor as _, Store};
use futures::future::join_all;
use sea_orm::{ConnectionTrait as _, DbBackend, EntityTrait as _, Statement};
use tempfile::TempDir;
use tokio::sync::Barrier;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::database::{Database, store_options};
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::polling::eventually;
use crate::support::setup::ADMIN_TOKEN;

async fn a_domain(store: &Store) -> i64 {
    let write = store.begin_write().await.unwrap();
    let row = crate::leases::domain(0, 0);
    let id = write.insert_domain(row).await.unwrap().id;
    write.commit().await.unwrap();
    id
}

fn agent_row(id: u128, domain_id: i64) -> agent::Model {
    let name = "bytes.agents-test.com".to_owned();
    agent::Model {
        tls: true,
        last_seen_at: None,
        ..agent::Model::new_agent(
            Uuid::from_u128(id),
            domain_id,
            name,
            format!("slot {id}"),
            0,
        )
    }
}

fn version_row(id: u128, agent: u128, digest: &str) -> version::Model {
    version::Model {
        id: Uuid::from_u128(id),
        agent_id: Uuid::from_u128(agent),
        digest: digest.into(),
        content_digest: digest.into(),
        signing: String::new(),
        signature: SignatureState::Unsigned.into(),
        key_sets: "[]".into(),
        thumbprints: String::new(),
        verdicts: "[]".into(),
        wire_family: "v0_3".into(),
        model: "{}".into(),
        findings: "[]".into(),
        has_error: false,
        derivation: 1,
        observed_at: 0,
        change_class: None,
        state: VersionState::Pending.into(),
        ever_approved: false,
        repeats: 0,
        standing: CoverageLevel::Nomination.into(),
    }
}

/// Whether there are bytes under that digest, which is a word here and no digest of them.
async fn is_stored(store: &Store, digest: &str) -> bool {
    let all = body_digests_after(store, "", 1_000).await.unwrap();
    all.iter().any(|stored| stored == digest)
}

fn bytes(digest: &str) -> card_body::Model {
    card_body::Model {
        digest: digest.into(),
        bytes: digest.as_bytes().to_vec(),
    }
}

both_databases!(
    writers_queue_instead_of_failing,
    reads_by_any_number_of_keys_are_a_few_statements,
    a_rolled_back_write_leaves_nothing,
    shared_bytes_outlive_one_version,
    a_read_only_database_is_reported,
    tokens_end_when_revoked_or_expired
);

/// Otherwise every group of visits would have its reads prepared anew, and displace prepared statements of others.
async fn reads_by_any_number_of_keys_are_a_few_statements(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    let mut ids = Vec::new();
    for number in 0..128 {
        let row = crate::leases::domain(number, 0);
        ids.push(write.insert_domain(row).await.unwrap().id);
    }
    write.commit().await.unwrap();
    let mut sent = BTreeSet::new();
    for count in 1..=ids.len() {
        let wanted = &ids[..count];
        let (rows, statements) = record_statements(domains_by_ids(&store, wanted)).await;
        let mut found: Vec<i64> = rows.unwrap().iter().map(|row| row.id).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "each once");
        sent.extend(statements);
    }
    // One for each power of two up to 128.
    assert_eq!(sent.len(), 8, "{sent:?}");
}

/// Many concurrent transactions that read before they write: all of them succeed, and on SQLite, which runs them one at
/// a time, none is lost.
async fn writers_queue_instead_of_failing(url: &str) {
    const WRITERS: usize = 16;
    const EACH: usize = 20;
    let store = Store::open(&store_options(url)).await.unwrap();
    let start = Arc::new(Barrier::new(WRITERS));
    let writers = (0..WRITERS).map(|writer| {
        let (store, start) = (store.clone(), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            for _ in 0..EACH {
                let write = store.begin_write().await?;
                let count = setting_value(&write, "count").await?;
                let count: usize = count.map_or(0, |text| text.parse().unwrap());
                write.set_setting("count", &(count + 1).to_string()).await?;
                write.set_setting(&format!("of {writer}"), "x").await?;
                write.commit().await?;
                setting_value(&store, "count").await?;
            }
            Ok::<(), a2a_registry_store::StoreError>(())
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap().unwrap();
    }
    let count: usize = setting_value(&store, "count")
        .await
        .unwrap()
        .unwrap()
        .parse()
        .unwrap();
    if !store.is_postgres() {
        assert_eq!(count, WRITERS * EACH);
    }
    for writer in 0..WRITERS {
        assert!(
            setting_value(&store, &format!("of {writer}"))
                .await
                .unwrap()
                .is_some()
        );
    }
}

/// A rolled-back write leaves no data and blocks no other.
async fn a_rolled_back_write_leaves_nothing(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    for round in 0..50 {
        let write = store.begin_write().await.unwrap();
        write
            .set_setting("given up", &round.to_string())
            .await
            .unwrap();
        drop(write);
    }
    assert_eq!(setting_value(&store, "given up").await.unwrap(), None);
    let kept = join_all((0..10).map(|number| {
        let store = store.clone();
        async move {
            store
                .get_or_insert_setting("kept", &number.to_string())
                .await
                .unwrap()
        }
    }))
    .await;
    assert!(
        kept.iter().all(|value| *value == kept[0]),
        "the values differ: {kept:?}"
    );
}

/// Bytes shared by several versions are stored once, and kept until the last of these versions is deleted.
async fn shared_bytes_outlive_one_version(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let domain = a_domain(&store).await;
    let write = store.begin_write().await.unwrap();
    write
        .upsert_agents(vec![agent_row(1, domain), agent_row(2, domain)])
        .await
        .unwrap();
    write
        .upsert_bodies(vec![bytes("shared"), bytes("own"), bytes("shared")])
        .await
        .unwrap();
    write.upsert_bodies(vec![bytes("shared")]).await.unwrap();
    let many = MAX_VERSIONS_PER_AGENT as u128;
    let mut rows = vec![
        version_row(1, 1, "shared"),
        version_row(2, 1, "own"),
        version_row(3, 2, "shared"),
    ];
    rows.extend((0..many).map(|number| version_row(100 + number, 1, "later")));
    write.insert_versions(rows).await.unwrap();
    write.upsert_bodies(vec![bytes("later")]).await.unwrap();
    write
        .trim_versions(Uuid::from_u128(1), &[Uuid::from_u128(1)])
        .await
        .unwrap();
    write.commit().await.unwrap();
    let there = async |digest: &str| is_stored(&store, digest).await;
    assert!(there("shared").await && !there("own").await && there("later").await);

    for (agent, expected) in [(1, true), (2, false)] {
        let write = store.begin_write().await.unwrap();
        let rows = (0..=many)
            .map(|number| version_row(agent * 1000 + number, agent, "later"))
            .collect();
        write.insert_versions(rows).await.unwrap();
        for _ in 0..2 {
            write
                .trim_versions(Uuid::from_u128(agent), &[])
                .await
                .unwrap();
        }
        write.commit().await.unwrap();
        assert_eq!(there("shared").await, expected, "after agent {agent}");
    }
}

/// A read-only database is reported as such, serves reads, and an act on it changes nothing.
async fn a_read_only_database_is_reported(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_with_card("written.agents-test.com", &card_bytes("Written", "Before"))
        .await;
    for now in [1, 2] {
        registry.store.check_writable(now).await.unwrap();
    }
    let postgres = registry.store.is_postgres();
    let read_only = if postgres {
        let name = url.rsplit('/').next().unwrap();
        registry
            .store
            .connection()
            .execute_unprepared(&format!(
                "ALTER DATABASE {name} SET default_transaction_read_only = on"
            ))
            .await
            .unwrap();
        url.to_owned()
    } else {
        url.replace("mode=rwc", "mode=ro")
    };
    let store = Store::connect(&store_options(&read_only)).await.unwrap();
    let error = match store.begin_write().await {
        Err(error) => error,
        Ok(write) => write.set_setting("a", "b").await.unwrap_err(),
    };
    assert_eq!(
        error.kind(),
        &a2a_registry_store::StoreErrorKind::ReadOnly,
        "{error}"
    );
    assert_eq!(setting_value(&store, "a").await.unwrap(), None);
    store.ping().await.unwrap();
    assert!(registry.public_card_bytes(agent.id).await.is_none());
    let refused = store.check_writable(3).await.unwrap_err();
    assert_eq!(
        refused.kind(),
        &a2a_registry_store::StoreErrorKind::ReadOnly
    );

    // Readiness says so, and that reads are served.
    let InProcessRegistry { app, .. } = registry;
    let mut context = Arc::into_inner(app).unwrap();
    context.store = store;
    let readiness = check_readiness(&context).await;
    assert!(!readiness.ready);
    let check = |name: &str| {
        let mut checks = readiness.checks.iter();
        checks.find(|check| check.name == name).unwrap()
    };
    assert!(check("database").ok, "{readiness:?}");
    assert!(!check("writes").ok, "{readiness:?}");
    let detail = &check("writes").detail;
    assert!(detail.contains("read-only"), "{detail}");
}

/// Tokens are found by their hash, belong to one account, and end when revoked or expired.
async fn tokens_end_when_revoked_or_expired(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let new = |account: &str, role: Option<Role>, days: Option<u32>| NewToken {
        account: account.into(),
        role,
        name: "for a test".into(),
        expires_in_days: days,
        ..NewToken::default()
    };
    let (app, admin) = (&registry.app, &registry.admin);
    let made = token_create(app, admin, &new("curator", Some(Role::Curator), Some(1)))
        .await
        .unwrap();
    let curator = authenticate_token(app, &made.secret).await.unwrap();
    assert!(
        curator
            .account
            .as_ref()
            .unwrap()
            .roles
            .contains(Role::Curator)
    );
    let again = token_create(app, admin, &new("curator", None, None))
        .await
        .unwrap();
    let conflict = token_create(app, admin, &new("curator", Some(Role::Admin), None))
        .await
        .unwrap_err();
    assert_eq!(conflict.kind, ErrorKind::Conflict);
    let nobody = token_create(app, admin, &new("unheard", None, None))
        .await
        .unwrap_err();
    assert_eq!(nobody.kind, ErrorKind::Invalid);
    let forbidden = token_create(app, &curator, &new("admin", None, None))
        .await
        .unwrap_err();
    assert_eq!(forbidden.kind, ErrorKind::Forbidden);

    registry.advance(time::Duration::days(1));
    let over = authenticate_token(app, &made.secret).await.unwrap_err();
    assert_eq!(over.kind, ErrorKind::Unauthenticated);
    authenticate_token(app, &again.secret).await.unwrap();
    token_revoke(app, admin, again.token.id).await.unwrap();
    assert!(authenticate_token(app, &again.secret).await.is_err());
    assert_eq!(
        token_revoke(app, admin, again.token.id)
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
    let write = registry.store.begin_write().await.unwrap();
    let rows = format!(
        "{:?}",
        token::Entity::find().all(write.connection()).await.unwrap()
    );
    assert!(
        !rows.contains(&made.secret) && !rows.contains(ADMIN_TOKEN),
        "a secret is stored"
    );
}

/// Processes that start together on one PostgreSQL database: exactly one makes the admin token, the shown token is the
/// valid one, and no start fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_one_process_makes_the_admin_token_on_postgres() {
    let database = Database::postgres().await;
    let folders: Vec<TempDir> = (0..4).map(|_| TempDir::new().unwrap()).collect();
    let starts = folders.iter().map(|folder| {
        let mut config = Config::default();
        config.store.data_dir = folder.path().to_owned();
        config.store.database = database.url().into();
        config.search.writer_megabytes = 15;
        let clock = Arc::new(a2a_crawler::SystemClock);
        let network = NetworkAccess::offline(&config, clock.clone()).unwrap();
        tokio::spawn(start_registry(
            config,
            clock,
            Arc::new(SystemEntropy::default()),
            network,
            None,
        ))
    });
    let started: Vec<_> = join_all(starts)
        .await
        .into_iter()
        .map(|one| one.unwrap().unwrap())
        .collect();
    let shown: Vec<&String> = started
        .iter()
        .filter_map(|one| one.admin_token.as_ref())
        .collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for one in &started {
        authenticate_token(&one.context, shown[0]).await.unwrap();
        assert!(authenticate_token(&one.context, ADMIN_TOKEN).await.is_err());
    }
}

/// A process that is stopped in the middle of a write does not block the others for as long: the database ends the
/// write.
#[tokio::test]
async fn a_stopped_write_is_ended_on_postgres() {
    let database = Database::postgres().await;
    let store = Store::open(&store_options(database.url())).await.unwrap();
    let write = store.begin_write().await.unwrap();
    let ask =
        |what: &str| Statement::from_string(DbBackend::Postgres, format!("SELECT {what} AS value"));
    let limit = "current_setting('idle_in_transaction_session_timeout')";
    let row = write
        .connection()
        .query_one_raw(ask(limit))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.try_get::<String>("", "value").unwrap(), "30s");
    let row = write
        .connection()
        .query_one_raw(ask("pg_backend_pid()"))
        .await
        .unwrap()
        .unwrap();
    let process: i32 = row.try_get("", "value").unwrap();
    write
        .connection()
        .execute_unprepared("SET LOCAL idle_in_transaction_session_timeout = 1")
        .await
        .unwrap();
    let alive = format!("EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = {process})");
    eventually("the write has ended", || async {
        let row = store
            .connection()
            .query_one_raw(ask(&alive))
            .await
            .unwrap()
            .unwrap();
        (!row.try_get::<bool>("", "value").unwrap()).then_some(())
    })
    .await;
    write.commit().await.unwrap_err();
}

/// Bytes that one write has just found and refers to are not deleted by another that trims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_in_use_are_not_deleted_on_postgres() {
    let database = Database::postgres().await;
    let store = Store::open(&store_options(database.url())).await.unwrap();
    let domain = a_domain(&store).await;
    let write = store.begin_write().await.unwrap();
    write
        .upsert_agents(vec![agent_row(1, domain), agent_row(2, domain)])
        .await
        .unwrap();
    write
        .upsert_bodies(vec![bytes("shared"), bytes("later")])
        .await
        .unwrap();
    let mut rows = vec![version_row(1, 1, "shared")];
    rows.extend(
        (0..u128::from(MAX_VERSIONS_PER_AGENT)).map(|number| version_row(100 + number, 1, "later")),
    );
    write.insert_versions(rows).await.unwrap();
    write.commit().await.unwrap();

    let using = store.begin_write().await.unwrap();
    using.upsert_bodies(vec![bytes("shared")]).await.unwrap();
    using
        .insert_versions(vec![version_row(2, 2, "shared")])
        .await
        .unwrap();
    let trimming = store.begin_write().await.unwrap();
    trimming
        .trim_versions(Uuid::from_u128(1), &[])
        .await
        .unwrap();
    trimming.commit().await.unwrap();
    using.commit().await.unwrap();
    assert!(is_stored(&store, "shared").await);
}

both_databases!(concurrent_acts_do_not_undo_each_other);

/// Concurrent acts of several people and the crawler on one agent: each sees the effects of the others. One decision is
/// made, a retired agent stays retired, an approved one stays approved.
async fn concurrent_acts_do_not_undo_each_other(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for round in 0..8 {
        let domain = format!("r{round}.agents-test.com");
        let agent = registry
            .register_with_card(&domain, &card_bytes("Busy", "First"))
            .await;
        let id = agent.id.to_string();
        let review = registry.find_open_review(agent.id).await.unwrap();
        let decision = ReviewDecision {
            digest: review.digest.clone(),
            reason: "at once".into(),
        };
        registry.advance(time::Duration::days(2));
        let visits = registry
            .lease_due_outcomes(|_| OriginResponse::Card(card_bytes("Busy", "Second")))
            .await;
        let (app, admin) = (&registry.app, &registry.admin);
        let act = Act {
            reason: "at once".into(),
            hold: None,
        };
        let (approved, rejected, ingested, suspended) = tokio::join!(
            review_approve(app, admin, review.id, &decision),
            review_reject(app, admin, review.id, &decision),
            ingest_outcomes(app, &visits),
            agent_suspend(app, admin, &id, &act),
        );
        ingested.unwrap();
        suspended.unwrap();
        let ways = usize::from(approved.is_ok()) + usize::from(rejected.is_ok());
        for refused in [approved.as_ref().err(), rejected.as_ref().err()]
            .into_iter()
            .flatten()
        {
            assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
        }
        assert!(
            ways <= 1,
            "decided once at most: the new card may have come first"
        );
        let row = registry.agent(&domain).await;
        assert_eq!(row.approved_version.is_some(), approved.is_ok(), "{row:?}");
        assert_eq!(registry.holds(agent.id).await, ["operator"]);
        assert_eq!(registry.versions(agent.id).await.len(), 2);
        registry.assert_index_matches_database().await;

        registry.advance(time::Duration::days(2));
        let visits = registry
            .lease_due_outcomes(|_| OriginResponse::Card(card_bytes("Busy", "Third")))
            .await;
        let (retired, ingested) = tokio::join!(
            agent_retire(app, admin, &id, &act),
            ingest_outcomes(app, &visits)
        );
        retired.unwrap();
        ingested.unwrap();
        let row = registry
            .agents()
            .await
            .into_iter()
            .find(|row| row.id == agent.id)
            .unwrap();
        assert_eq!(row.lifecycle, Lifecycle::Retired);
        assert!(row.retired_at.is_some());
        let living = registry
            .agents()
            .await
            .into_iter()
            .filter(|row| row.domain == domain && row.retired_at.is_none());
        assert_eq!(living.count(), 0, "no other agent took its slot");
        registry.assert_index_matches_database().await;
        assert!(
            registry
                .search_all(&Caller::default(), &Default::default())
                .await
                .agents
                .is_empty()
        );
        domain_delete(&registry.app, &registry.admin, &domain)
            .await
            .unwrap();
    }
}
