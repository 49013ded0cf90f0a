//! Upgrades and the way back: a version starts on the schema of a newer one that permits it, and on no other.
//!
//! As far as the newer version differs, it is this test: it has two more migrations, and writes a column that they
//! add. Its process is the program under test, started on that schema.

use std::path::Path;
use std::sync::Arc;

use a2a_migrations::{CompatibleMigration, Migrator};
use async_trait::async_trait;
use sea_orm::{ConnectionTrait as _, DatabaseConnection, Statement};
use sea_orm_migration::{DbErr, MigrationName, MigrationTrait, MigratorTraitSelf, SchemaManager};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::database::{Database, store_options};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::setup::RegistrySetup;

const CARD: &str = "/card.json";

/// The migration of a version that is too new, or whose record is missing.
const REMOVAL: &str = "m9003_removal";

/// A migration of the newer version.
struct NewerMigration {
    name: &'static str,
    statements: &'static [&'static str],
    /// Set if it stops after its statements, and notified then.
    stopped: Option<Arc<Notify>>,
}

impl MigrationName for NewerMigration {
    fn name(&self) -> &str {
        self.name
    }
}

#[async_trait]
impl MigrationTrait for NewerMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in self.statements {
            manager
                .get_connection()
                .execute_unprepared(statement)
                .await?;
        }
        if let Some(stopped) = &self.stopped {
            stopped.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// The newer version: all migrations of this one, and two after which this one can run.
#[derive(Default)]
struct NewerVersion {
    /// Set if the last migration stops before its end.
    stopped: Option<Arc<Notify>>,
}

impl MigratorTraitSelf for NewerVersion {
    fn migrations(&self) -> Vec<Box<dyn MigrationTrait>> {
        let notes = NewerMigration {
            name: "m9001_agent_notes",
            statements: &[
                "ALTER TABLE agents ADD COLUMN note TEXT NOT NULL DEFAULT ''",
                "CREATE TABLE agent_notes (id BIGINT PRIMARY KEY, note TEXT NOT NULL)",
            ],
            stopped: None,
        };
        let tags = NewerMigration {
            name: "m9002_agent_tags",
            statements: &[
                "CREATE TABLE agent_tags (id BIGINT PRIMARY KEY, tag TEXT NOT NULL)",
                "CREATE INDEX ix_agent_tags_tag ON agent_tags (tag)",
                "INSERT INTO agent_tags VALUES (1, 'one')",
            ],
            stopped: self.stopped.clone(),
        };
        let mut all = Migrator.migrations();
        for step in [notes, tags] {
            all.push(Box::new(CompatibleMigration {
                migration: Box::new(step),
                min_version: "0.1.0",
            }));
        }
        all
    }
}

async fn connect(url: &str) -> DatabaseConnection {
    sea_orm::Database::connect(url).await.unwrap()
}

async fn execute(on: &DatabaseConnection, statement: &str) {
    on.execute_unprepared(statement).await.unwrap();
}

/// The first column of every row.
async fn texts(on: &DatabaseConnection, query: &str) -> Vec<String> {
    let statement = Statement::from_string(on.get_database_backend(), query);
    let rows = on.query_all_raw(statement).await.unwrap();
    rows.iter()
        .map(|row| row.try_get_by_index(0).unwrap())
        .collect()
}

/// An origin that serves an agent with this skill.
fn origin_with_agent(skill: &str) -> Origin {
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json("Agent", skill)));
    origin
}

/// What `/readyz` says about the database.
fn database_check(ready: &Value) -> &str {
    let mut checks = ready["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["name"] == "database");
    check.unwrap()["detail"].as_str().unwrap()
}

/// Copies an SQLite database with its log.
fn copy_database(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
    let (from, to) = (
        from.with_extension("sqlite-wal"),
        to.with_extension("sqlite-wal"),
    );
    if from.exists() {
        std::fs::copy(from, to).unwrap();
    }
}

/// Begins the migrations of the newer version, and ends it in the middle of the last one as a kill does: on PostgreSQL
/// its connection is lost, and on SQLite the files stay as they are at that moment.
async fn crash_while_migrating(url: &str) {
    let file = store_options(url).sqlite_file();
    let name = match file {
        Some(_) => "",
        None => "?application_name=newer",
    };
    let connection = connect(&format!("{url}{name}")).await;
    let stopped = Arc::new(Notify::new());
    let newer = NewerVersion {
        stopped: Some(Arc::clone(&stopped)),
    };
    let migrated = connection.clone();
    let mut migrating = tokio::spawn(async move { newer.up(&migrated, None).await });
    tokio::select! {
        () = stopped.notified() => {}
        ended = &mut migrating => panic!("the migrations ended: {ended:?}"),
    }
    let folder = TempDir::new().unwrap();
    let left = folder.path().join("registry.sqlite");
    if let Some(file) = &file {
        copy_database(file, &left);
    } else {
        let operator = connect(url).await;
        let its_connections = "FROM pg_stat_activity WHERE application_name = 'newer' \
                               AND datname = current_database()";
        let end = format!("SELECT pg_terminate_backend(pid) {its_connections}");
        execute(&operator, &end).await;
        eventually("the server has ended the connections", async || {
            let open = texts(&operator, &format!("SELECT pid::text {its_connections}")).await;
            open.is_empty().then_some(())
        })
        .await;
        operator.close().await.unwrap();
    }
    migrating.abort();
    assert!(migrating.await.unwrap_err().is_cancelled());
    let closed = connection.close().await;
    if let Some(file) = &file {
        closed.unwrap();
        for suffix in ["sqlite-wal", "sqlite-shm"] {
            let _ = std::fs::remove_file(file.with_extension(suffix));
        }
        copy_database(&left, file);
    }
}

both_databases!(
    a_newer_version_that_is_killed_while_it_migrates_costs_nothing,
    a_version_that_the_schema_excludes_is_refused
);

/// A newer version is killed in the middle of its second migration. The older one starts on what is left, and so does
/// the newer one again.
async fn a_newer_version_that_is_killed_while_it_migrates_costs_nothing(url: &str) {
    let (first, second) = (origin_with_agent("repeat"), origin_with_agent("translate"));
    let setup = RegistrySetup::new().approve_all().with_database(url);
    let older = setup.start().await;
    older.publish(&first.url(CARD)).await;
    older.stop().await;

    crash_while_migrating(url).await;
    let older = setup.start().await;
    let line = older.program.wait_for_line("m9001_agent_notes").await;
    assert!(!line.contains("m9002"), "{line}");
    older.wait_for_hit("skill=repeat").await;
    older.publish(&second.url(CARD)).await;
    older.stop().await;

    // Of the second migration nothing is left, or its tables would be in the way.
    let connection = connect(url).await;
    NewerVersion::default().up(&connection, None).await.unwrap();
    connection.close().await.unwrap();
    let older = setup.start().await;
    older.program.wait_for_line("m9002_agent_tags").await;
    for skill in ["repeat", "translate"] {
        older.wait_for_hit(&format!("skill={skill}")).await;
    }
    older.stop().await;
}

/// Once the schema requires a newer version, a running process is not ready any more, and none starts.
async fn a_version_that_the_schema_excludes_is_refused(url: &str) {
    let setup = RegistrySetup::new().with_database(url);
    let older = setup.start().await;
    let operator = connect(url).await;
    execute(
        &operator,
        &format!("INSERT INTO seaql_migrations VALUES ('{REMOVAL}', 1)"),
    )
    .await;
    let permit = |version: &str| {
        format!("INSERT INTO schema_compatibility VALUES ('{REMOVAL}', '{version}')")
    };
    let forget = format!("DELETE FROM schema_compatibility WHERE migration = '{REMOVAL}'");
    execute(&operator, &permit("0.1.0")).await;
    let ready = older.get_as_admin("/readyz").await.expect_status(200);
    assert!(database_check(&ready).contains(REMOVAL), "{ready}");
    execute(&operator, &forget).await;
    execute(&operator, &permit("99.0.0")).await;
    let unready = older.get_as_admin("/readyz").await;
    let unready = unready.expect_problem(503, "not-ready");
    assert!(database_check(&unready).contains("99.0.0"), "{unready}");
    older.stop().await;

    let line = setup.start_expecting_failure().await;
    for part in [REMOVAL, "start version 99.0.0 or newer", "restore a backup"] {
        assert!(line.contains(part), "{line}");
    }
    let data = setup.data_folder();
    let doctor = ["doctor", "--database", url, "--data-dir"];
    let mut doctor = registry_command(doctor);
    doctor.arg(&data);
    let ill = Program::run(doctor).await;
    assert_exit(&ill, 1, "");
    assert!(join_lines(&ill.stdout).contains("99.0.0"), "{ill:?}");

    execute(&operator, &forget).await;
    let line = setup.start_expecting_failure().await;
    assert!(line.contains(REMOVAL), "{line}");
    assert!(line.contains("does not say which older"), "{line}");

    execute(&operator, &permit("0.1.0")).await;
    let own = "DELETE FROM seaql_migrations WHERE version = 'm0010_peer_candidates'";
    execute(&operator, own).await;
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("m0010_peer_candidates"), "{line}");

    let own = "INSERT INTO seaql_migrations VALUES ('m0010_peer_candidates', 1)";
    execute(&operator, own).await;
    operator.close().await.unwrap();
    let older = setup.start().await;
    older.program.wait_for_line(REMOVAL).await;
    older.stop().await;
}

/// A rolling upgrade and the way back: the newer version is killed while it migrates and again while it serves beside
/// the older one, which is killed too, starts again, and goes on alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_version_runs_beside_a_newer_one_and_goes_on_alone() {
    let database = Database::postgres().await;
    let url = database.url();
    let origins = ["repeat", "translate", "summarize", "rank"].map(origin_with_agent);
    let setup = RegistrySetup::new().approve_all().with_database(url);
    let older = setup.start().await;
    older.publish(&origins[0].url(CARD)).await;

    crash_while_migrating(url).await;
    older.publish(&origins[1].url(CARD)).await;
    let operator = connect(url).await;
    NewerVersion::default().up(&operator, None).await.unwrap();
    // It leaves the crawling to the older one, so that the kill costs no lease.
    let newer = RegistrySetup::new()
        .approve_all()
        .with_database(url)
        .with_argument("--roles")
        .with_argument("api");
    let newer = newer.start().await;
    newer.publish(&origins[2].url(CARD)).await;
    older.wait_for_hit("skill=summarize").await;

    // The older one writes a row without touching what it does not know.
    execute(&operator, "UPDATE agents SET note = 'kept'").await;
    let changed = card_json("Agent", "recite");
    origins[0].set_reply(CARD, OriginReply::json(changed));
    let domain = origins[0].address().to_string();
    older.recrawl_and_wait(&domain).await;
    newer.wait_for_hit("skill=recite").await;
    let notes = texts(&operator, "SELECT note FROM agents").await;
    assert_eq!(notes, ["kept", "kept", "kept"]);

    newer.register(&origins[3].url(CARD)).await;
    newer.program.kill().await;
    older.wait_for_hit("skill=rank").await;
    older.program.kill().await;
    let older = setup.start().await;
    older.program.wait_for_line("m9002_agent_tags").await;
    for skill in ["recite", "translate", "summarize", "rank"] {
        older.wait_for_hit(&format!("skill={skill}")).await;
    }
    let ready = older.get_as_admin("/readyz").await.expect_status(200);
    assert!(database_check(&ready).contains("m9002"), "{ready}");
    let mut notes = texts(&operator, "SELECT note FROM agents").await;
    notes.sort();
    assert_eq!(notes, ["", "kept", "kept", "kept"]);
    operator.close().await.unwrap();
    older.stop().await;
}

/// Every migration since the first release says which versions can run after it, and each runs as a whole or not at
/// all.
#[tokio::test]
async fn every_migration_says_which_versions_can_run_after_it() {
    for step in Migrator.migrations() {
        assert_eq!(step.use_transaction(), Some(true), "{}", step.name());
    }
    let database = Database::sqlite();
    let connection = connect(database.url()).await;
    Migrator.up(&connection, None).await.unwrap();
    let silent = "SELECT version FROM seaql_migrations WHERE version > 'm0011' \
                  AND version NOT IN (SELECT migration FROM schema_compatibility)";
    assert_eq!(texts(&connection, silent).await, Vec::<String>::new());
    connection.close().await.unwrap();
}
