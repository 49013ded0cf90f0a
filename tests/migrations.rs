//! Database schema: the same by every path of migrations, and equal to the entities in the code.

use std::collections::{BTreeMap, BTreeSet};

use a2a_migrations::Migrator;
use a2a_registry_store::entity::{
    a2a_task, access_decision, account, account_group, agent, agent_report, agent_vectors,
    agent_watch, break_glass, card_body, challenge, collection, decision, domain, dry_run_change,
    embedding_model, endpoint_check, endpoint_day, endpoint_host, endpoint_permission,
    enrolled_key, event, feed, fetch_attempt, group_member, hidden_agent, hold, hook, hook_agent,
    hook_delivery, identity, owner_fingerprint, pace, peer_candidate, policy_preview,
    policy_replica, policy_set, proof, proof_check, review, review_approval, review_comment,
    saved_search, schema_compatibility, session, setting, source, source_credential, source_day,
    source_registrant, token, used_sign_in_attempt, version, version_source, waiver,
};
use a2a_registry_store::{Executor as _, Store};
use futures::future::join_all;
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait, IdenStatic as _,
    Iterable as _, Statement,
};
use sea_orm_migration::MigratorTrait as _;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::database::{Database, store_options};

/// The migrator's own table.
const BOOKS: &str = "seaql_migrations";

const ACCOUNT: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0001);

/// An identifier as the text of a statement has it.
fn key(on: &DatabaseConnection, id: Uuid) -> String {
    match on.get_database_backend() {
        DbBackend::Postgres => format!("'{id}'"),
        _ => format!("X'{}'", id.simple()),
    }
}

async fn connect(url: &str) -> DatabaseConnection {
    sea_orm::Database::connect(url).await.unwrap()
}

async fn texts(on: &impl sea_orm::ConnectionTrait, query: &str) -> BTreeSet<String> {
    let statement = Statement::from_string(on.get_database_backend(), query);
    let rows = on.query_all_raw(statement).await.unwrap();
    rows.iter()
        .map(|row| row.try_get_by_index::<String>(0).unwrap())
        .collect()
}

/// Tables, columns, types, defaults, indexes and references, as the engine reports them.
async fn facts(on: &DatabaseConnection) -> BTreeSet<String> {
    let queries: &[&str] = if on.get_database_backend() == DbBackend::Postgres {
        &[
            "SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default) \
             FROM information_schema.columns WHERE table_schema = 'public'",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
            "SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) \
             FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
        ]
    } else {
        &[
            "SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || c.pk || ' ' || \
             coalesce(c.dflt_value, '') FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'",
            "SELECT coalesce(sql, tbl_name || ' ' || name) FROM sqlite_schema WHERE type <> 'table'",
            "SELECT m.name || ' ' || f.\"from\" || ' ' || f.\"table\" || ' ' || f.on_delete \
             FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
        ]
    };
    let mut all = BTreeSet::new();
    for query in queries {
        all.extend(texts(on, query).await);
    }
    all.retain(|fact| !fact.contains(BOOKS) && !fact.contains("sqlite_sequence"));
    all
}

/// The columns of every table, each with whether it may be null.
async fn columns(on: &DatabaseConnection) -> BTreeMap<String, BTreeSet<(String, bool)>> {
    let query = if on.get_database_backend() == DbBackend::Postgres {
        "SELECT format('%s %s %s', table_name, column_name, is_nullable = 'YES') \
         FROM information_schema.columns WHERE table_schema = 'public'"
    } else {
        "SELECT m.name || ' ' || c.name || ' ' || iif(c.\"notnull\" OR c.pk, 'f', 't') \
         FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    };
    let mut tables: BTreeMap<String, BTreeSet<(String, bool)>> = BTreeMap::new();
    for line in texts(on, query).await {
        let parts: Vec<&str> = line.split(' ').collect();
        if parts[0] != BOOKS && parts[0] != "sqlite_sequence" {
            let column = (parts[1].to_owned(), parts[2] == "t");
            tables.entry(parts[0].into()).or_default().insert(column);
        }
    }
    tables
}

/// Compares an entity with its table, and reads the table through it.
async fn entity<E: EntityTrait>(
    on: &DatabaseConnection,
    tables: &mut BTreeMap<String, BTreeSet<(String, bool)>>,
) where
    E::Column: sea_orm::ColumnTrait + sea_orm::Iterable,
{
    let name = E::default().table_name().to_owned();
    let known: BTreeSet<(String, bool)> = E::Column::iter()
        .map(|column| {
            let nullable = sea_orm::ColumnTrait::def(&column).is_null();
            (column.as_str().to_owned(), nullable)
        })
        .collect();
    assert_eq!(tables.remove(&name), Some(known), "the columns of {name}");
    E::find().all(on).await.unwrap();
}

both_databases!(
    every_migration_path_gives_the_same_schema,
    old_rows_survive_every_migration,
    a_database_of_before_the_first_release_is_refused,
    entities_equal_their_tables,
    dangling_references_are_refused,
    a_name_is_free_once_its_domain_has_ended
);

/// Migrating step by step, all at once, and after going all the way down and up again gives the same schema, and a
/// second run changes nothing.
async fn every_migration_path_gives_the_same_schema(url: &str) {
    let connection = connect(url).await;
    let steps = Migrator::migrations().len() as u32;
    assert!(facts(&connection).await.is_empty());
    Migrator::up(&connection, None).await.unwrap();
    let fresh = facts(&connection).await;
    assert!(fresh.len() > 100, "{fresh:#?}");
    Migrator::up(&connection, None).await.unwrap();
    assert_eq!(facts(&connection).await, fresh);

    for _ in 0..steps {
        let before = facts(&connection).await;
        Migrator::down(&connection, Some(1)).await.unwrap();
        let below = facts(&connection).await;
        Migrator::up(&connection, Some(1)).await.unwrap();
        assert_eq!(facts(&connection).await, before);
        Migrator::down(&connection, Some(1)).await.unwrap();
        assert_eq!(facts(&connection).await, below);
    }
    assert!(facts(&connection).await.is_empty());
    for _ in 0..steps {
        Migrator::up(&connection, Some(1)).await.unwrap();
    }
    assert_eq!(facts(&connection).await, fresh);
    assert_eq!(
        Migrator::get_pending_migrations(&connection)
            .await
            .unwrap()
            .len(),
        0
    );
    // A file without an account is refused: it is no registry.
    let key = key(&connection, ACCOUNT);
    let account = format!(
        "INSERT INTO accounts (id, name, role, created_at) VALUES ({key}, 'old', 'admin', 1)"
    );
    connection.execute_unprepared(&account).await.unwrap();
    connection.close().await.unwrap();
    let store = Store::open(&store_options(url)).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await.unwrap();
}

/// Rows from before a step are unchanged after it. Written as SQL text, because the entities only have the newest
/// columns.
async fn old_rows_survive_every_migration(url: &str) {
    let connection = connect(url).await;
    let id = ACCOUNT;
    let key = key(&connection, id);
    Migrator::up(&connection, Some(1)).await.unwrap();
    for statement in [
        format!(
            "INSERT INTO accounts (id, name, role, created_at) VALUES ({key}, 'old', 'admin', 1)"
        ),
        format!(
            "INSERT INTO tokens (id, account_id, name, prefix, hash, bootstrap, created_at) \
             VALUES ({key}, {key}, 'old token', '', 'abc', TRUE, 2)"
        ),
        "INSERT INTO settings (key, value) VALUES ('page_token_key', 'kept')".into(),
    ] {
        connection.execute_unprepared(&statement).await.unwrap();
    }
    Migrator::up(&connection, Some(1)).await.unwrap();
    for statement in [
        format!(
            "INSERT INTO domains (name, scheme, state, generation, account_id, created_at, not_before) \
             VALUES ('old.example.com', 'https', 'unverified', 1, {key}, 3, 4)"
        ),
        "INSERT INTO sources (domain_id, kind, url, next_due_at, interval_us, full_wanted, failures, \
         cause_looks, liveness, created_at) \
         SELECT id, 'well_known', 'https://old.example.com/', 5, 0, FALSE, 0, 0, 'new', 6 FROM domains".into(),
        "INSERT INTO attempts (source_id, place, number, at, url, outcome, detail, elapsed_ms) \
         SELECT id, 0, 0, 7, url, 'timeout', 'none', 8 FROM sources".into(),
    ] {
        connection.execute_unprepared(&statement).await.unwrap();
    }
    connection.close().await.unwrap();

    let store = Store::open(&store_options(url)).await.unwrap();
    let on = store.connection();
    let account = account::Entity::find().one(on).await.unwrap().unwrap();
    assert_eq!((account.id, account.name.as_str()), (id, "old"));
    let token = token::Entity::find().one(on).await.unwrap().unwrap();
    assert_eq!(
        (token.account_id, token.bootstrap, token.expires_at),
        (id, true, None)
    );
    let setting = setting::Entity::find().one(on).await.unwrap().unwrap();
    assert_eq!(setting.value, "kept");
    let domain = domain::Entity::find().one(on).await.unwrap().unwrap();
    assert_eq!(
        (domain.account_id, domain.created_at, domain.deleted_at),
        (Some(id), 3, None)
    );
    let source = source::Entity::find().one(on).await.unwrap().unwrap();
    assert_eq!(
        (source.domain_id, source.next_due_at, source.full_wanted),
        (domain.id, 5, false)
    );
    let attempt = fetch_attempt::Entity::find()
        .one(on)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (attempt.source_id, attempt.at, attempt.elapsed_ms),
        (source.id, 7, 8)
    );
    assert!(event::Entity::find().one(on).await.unwrap().is_none());
}

/// A database of a program before the first release is refused, whatever it is opened for, and nothing of it is changed.
async fn a_database_of_before_the_first_release_is_refused(url: &str) {
    let connection = connect(url).await;
    let key = key(&connection, ACCOUNT);
    let accounts = "CREATE TABLE accounts (id uuid PRIMARY KEY, name text, role text)";
    let account = format!("INSERT INTO accounts VALUES ({key}, 'old', 'admin')");
    Migrator::install(&connection).await.unwrap();
    for statement in [
        accounts,
        account.as_str(),
        "INSERT INTO seaql_migrations VALUES ('m0001_accounts', 1)",
        "INSERT INTO seaql_migrations VALUES ('m0002_domains', 1)",
    ] {
        connection.execute_unprepared(statement).await.unwrap();
    }
    let before = facts(&connection).await;
    connection.close().await.unwrap();
    let options = store_options(url);
    let connected = Store::connect(&options).await.unwrap();
    for refused in [
        Store::open(&options).await.err(),
        Store::open_existing(&options).await.err(),
        connected.migrate().await.err(),
        connected.pending_migrations().await.err(),
    ] {
        let refused = refused.unwrap().to_string();
        assert!(
            refused.contains("before the first release")
                && refused.contains("start with an empty data folder and database"),
            "{refused}"
        );
    }
    connected.close().await.unwrap();
    assert_eq!(facts(&connect(url).await).await, before);
}

/// Every table has an entity with exactly its columns, nullable where they are nullable, and the entity can read it.
async fn entities_equal_their_tables(url: &str) {
    let connection = connect(url).await;
    Migrator::up(&connection, None).await.unwrap();
    let mut tables = columns(&connection).await;
    entity::<a2a_task::Entity>(&connection, &mut tables).await;
    entity::<account::Entity>(&connection, &mut tables).await;
    entity::<account_group::Entity>(&connection, &mut tables).await;
    entity::<group_member::Entity>(&connection, &mut tables).await;
    entity::<token::Entity>(&connection, &mut tables).await;
    entity::<session::Entity>(&connection, &mut tables).await;
    entity::<identity::Entity>(&connection, &mut tables).await;
    entity::<used_sign_in_attempt::Entity>(&connection, &mut tables).await;
    entity::<setting::Entity>(&connection, &mut tables).await;
    entity::<domain::Entity>(&connection, &mut tables).await;
    entity::<proof::Entity>(&connection, &mut tables).await;
    entity::<challenge::Entity>(&connection, &mut tables).await;
    entity::<proof_check::Entity>(&connection, &mut tables).await;
    entity::<enrolled_key::Entity>(&connection, &mut tables).await;
    entity::<owner_fingerprint::Entity>(&connection, &mut tables).await;
    entity::<source::Entity>(&connection, &mut tables).await;
    entity::<source_registrant::Entity>(&connection, &mut tables).await;
    entity::<source_credential::Entity>(&connection, &mut tables).await;
    entity::<version_source::Entity>(&connection, &mut tables).await;
    entity::<source_day::Entity>(&connection, &mut tables).await;
    entity::<pace::Entity>(&connection, &mut tables).await;
    entity::<fetch_attempt::Entity>(&connection, &mut tables).await;
    entity::<agent::Entity>(&connection, &mut tables).await;
    entity::<collection::Entity>(&connection, &mut tables).await;
    entity::<saved_search::Entity>(&connection, &mut tables).await;
    entity::<feed::Entity>(&connection, &mut tables).await;
    entity::<hold::Entity>(&connection, &mut tables).await;
    entity::<card_body::Entity>(&connection, &mut tables).await;
    entity::<version::Entity>(&connection, &mut tables).await;
    entity::<decision::Entity>(&connection, &mut tables).await;
    entity::<review::Entity>(&connection, &mut tables).await;
    entity::<review_approval::Entity>(&connection, &mut tables).await;
    entity::<review_comment::Entity>(&connection, &mut tables).await;
    entity::<break_glass::Entity>(&connection, &mut tables).await;
    entity::<agent_report::Entity>(&connection, &mut tables).await;
    entity::<policy_set::Entity>(&connection, &mut tables).await;
    entity::<policy_replica::Entity>(&connection, &mut tables).await;
    entity::<policy_preview::Entity>(&connection, &mut tables).await;
    entity::<waiver::Entity>(&connection, &mut tables).await;
    entity::<peer_candidate::Entity>(&connection, &mut tables).await;
    entity::<dry_run_change::Entity>(&connection, &mut tables).await;
    entity::<access_decision::Entity>(&connection, &mut tables).await;
    entity::<hidden_agent::Entity>(&connection, &mut tables).await;
    entity::<hook::Entity>(&connection, &mut tables).await;
    entity::<hook_agent::Entity>(&connection, &mut tables).await;
    entity::<hook_delivery::Entity>(&connection, &mut tables).await;
    entity::<agent_watch::Entity>(&connection, &mut tables).await;
    entity::<event::Entity>(&connection, &mut tables).await;
    entity::<embedding_model::Entity>(&connection, &mut tables).await;
    entity::<agent_vectors::Entity>(&connection, &mut tables).await;
    entity::<schema_compatibility::Entity>(&connection, &mut tables).await;
    entity::<endpoint_host::Entity>(&connection, &mut tables).await;
    entity::<endpoint_check::Entity>(&connection, &mut tables).await;
    entity::<endpoint_day::Entity>(&connection, &mut tables).await;
    entity::<endpoint_permission::Entity>(&connection, &mut tables).await;
    assert!(tables.is_empty(), "tables without an entity: {tables:?}");
}

/// A row with a dangling reference is refused, and so is deleting a referenced row; through the connections that the
/// registry itself uses.
async fn dangling_references_are_refused(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let on = store.connection();
    let id = Uuid::from_u128(7);
    let key = if store.is_postgres() {
        format!("'{id}'")
    } else {
        format!("X'{}'", id.simple())
    };
    let orphans = [
        format!("INSERT INTO tokens (id, account_id, name, prefix, hash, bootstrap, created_at) VALUES ({key}, {key}, '', '', '', TRUE, 0)"),
        "INSERT INTO proofs (domain_id, method, actor, proved_at, held_at, absent_looks) VALUES (77, '', '', 0, 0, 0)".into(),
        "INSERT INTO attempts (source_id, place, number, at, url, outcome, detail, elapsed_ms) VALUES (77, 0, 0, 0, '', '', '', 0)".into(),
        format!("INSERT INTO holds VALUES ({key}, '', '', '', 0)"),
        format!(
            "INSERT INTO decisions (agent_id, version_id, content_digest, signing, approved, rule, actor, \
             self_approved, at) VALUES ({key}, {key}, '', '', TRUE, '', '', FALSE, 0)"
        ),
        format!("INSERT INTO reviews (id, agent_id, version_id, state, created_at) VALUES ({key}, {key}, {key}, '', 0)"),
        format!(
            "INSERT INTO domains (name, scheme, state, generation, account_id, created_at, not_before) \
             VALUES ('a', '', '', 1, {key}, 0, 0)"
        ),
    ];
    for orphan in &orphans {
        let refused = on.execute_unprepared(orphan).await.unwrap_err().to_string();
        assert!(
            refused.to_lowercase().contains("foreign key"),
            "{orphan}: {refused}"
        );
    }
    on.execute_unprepared(&format!(
        "INSERT INTO accounts (id, name, role, created_at) VALUES ({key}, 'a', 'admin', 0)"
    ))
    .await
    .unwrap();
    for allowed in [&orphans[0], &orphans[6]] {
        on.execute_unprepared(allowed).await.unwrap();
    }
    let refused = on
        .execute_unprepared("DELETE FROM accounts")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.to_lowercase().contains("foreign key"), "{refused}");
}

/// A name is taken while its domain exists, and free once it has ended.
async fn a_name_is_free_once_its_domain_has_ended(url: &str) {
    let store = Store::open(&store_options(url)).await.unwrap();
    let on = store.connection();
    let insert = "INSERT INTO domains (name, scheme, state, generation, created_at, not_before) \
                  VALUES ('a', '', '', 1, 0, 0)";
    on.execute_unprepared(insert).await.unwrap();
    on.execute_unprepared(insert).await.unwrap_err();
    on.execute_unprepared("UPDATE domains SET deleted_at = 1")
        .await
        .unwrap();
    on.execute_unprepared(insert).await.unwrap();
}

/// Processes that start together on one PostgreSQL database all find it migrated, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_migrate_at_once_on_postgres() {
    let database = Database::postgres().await;
    let options = store_options(database.url());
    let starts = (0..6).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { Store::open(&options).await })
    });
    for store in join_all(starts).await {
        store.unwrap().unwrap().close().await.unwrap();
    }
    let connection = connect(database.url()).await;
    let steps = texts(&connection, "SELECT version FROM seaql_migrations").await;
    assert_eq!(steps.len(), Migrator::migrations().len());
    let other = Database::postgres().await;
    let alone = connect(other.url()).await;
    Migrator::up(&alone, None).await.unwrap();
    assert_eq!(facts(&connection).await, facts(&alone).await);
    alone.close().await.unwrap();
    connection.close().await.unwrap();
}
