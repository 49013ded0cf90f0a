//! Backups: what a backup records of a database beside the copy itself, and the rows that a restore adds.
//!
//! A copy has neither sessions nor settings. A restore ends all sessions, and new keys in the settings make page
//! tokens and indexes of the lost database invalid; the other settings are saved beside the copy.

use std::collections::{BTreeMap, HashMap};

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbBackend, EntityName as _,
    EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Statement, TransactionTrait,
};
use sea_orm_migration::seaql_migrations;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::connection::{DISABLE_IDLE_TIMEOUT, MIGRATION_LOCK};
use super::entity::{account, agent, event, hold, setting, token};
use super::events::highest_event_seq;
use super::schema_state::recorded_min_versions;
use super::{Executor, ReadTransaction, Store, StoreError};

/// Tables whose rows no copy has.
const OMITTED_TABLES: [&str; 3] = ["sessions", "used_sign_in_attempts", "settings"];

/// Maximum number of tokens, and of holds, that a backup lists.
pub const MAX_LISTED_RIGHTS: u64 = 1000;

/// The numbers that a restore leaves unused after the last event of the backup if the clock does not say how old the
/// backup is.
const EVENT_NUMBERS_SKIPPED: i64 = 1_000_000_000;

/// What a backup records of its database.
#[derive(Debug, Clone)]
pub struct BackupFacts {
    /// The names of the migrations that have run, oldest first.
    pub migrations: Vec<String>,
    /// The oldest version that can run after each of them, as far as it is recorded.
    pub min_versions: BTreeMap<String, String>,
    /// The highest `seq`.
    pub last_event: i64,
    /// All settings, keys included.
    pub settings: BTreeMap<String, String>,
    pub rights: BackupRights,
}

/// What comes into force with a restore, even if it has been ended since the backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRights {
    pub token_count: u64,
    /// The newest tokens that had not expired, at most [`MAX_LISTED_RIGHTS`].
    pub tokens: Vec<BackupToken>,
    pub hold_count: u64,
    /// The newest holds, at most [`MAX_LISTED_RIGHTS`].
    pub holds: Vec<BackupHold>,
    /// The number of agents with an approved version.
    pub approved_agents: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupToken {
    pub account: String,
    pub name: String,
    /// First characters of the secret.
    pub prefix: String,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHold {
    pub agent: Uuid,
    pub hold: String,
    pub reason: String,
    pub actor: String,
    pub since: Timestamp,
}

/// What a restore adds to a copy.
#[derive(Debug)]
pub struct RestoredRows<'a> {
    /// Migrations that have run; empty if the copy has them.
    pub migrations: &'a [String],
    pub settings: &'a BTreeMap<String, String>,
    /// The highest `seq` in the copy.
    pub last_event: i64,
    pub backup_at: Timestamp,
    pub restored_at: Timestamp,
    pub actor: &'a str,
}

/// Reads what a backup records. `db` must not change meanwhile.
pub async fn read_backup_facts(
    db: &impl Executor,
    now: Timestamp,
) -> Result<BackupFacts, StoreError> {
    let settings = setting::Entity::find().all(db.connection()).await?;
    let migrations = applied_migrations(db).await?;
    Ok(BackupFacts {
        min_versions: recorded_min_versions(db.connection(), &migrations).await?,
        migrations,
        last_event: highest_event_seq(db).await?,
        settings: settings
            .into_iter()
            .map(|row| (row.key, row.value))
            .collect(),
        rights: read_rights(db, now).await?,
    })
}

async fn applied_migrations(db: &impl Executor) -> Result<Vec<String>, StoreError> {
    let rows = seaql_migrations::Entity::find()
        .order_by_asc(seaql_migrations::Column::Version)
        .all(db.connection())
        .await?;
    Ok(rows.into_iter().map(|row| row.version).collect())
}

async fn read_rights(db: &impl Executor, now: Timestamp) -> Result<BackupRights, StoreError> {
    let connection = db.connection();
    let expiry = token::Column::ExpiresAt;
    let is_valid = Condition::any().add(expiry.is_null()).add(expiry.gt(now.0));
    let valid_tokens = || token::Entity::find().filter(is_valid.clone());
    let tokens = valid_tokens()
        .order_by_desc(token::Column::CreatedAt)
        .limit(MAX_LISTED_RIGHTS)
        .all(connection)
        .await?;
    let accounts: Vec<Uuid> = tokens.iter().map(|row| row.account_id).collect();
    let names: HashMap<Uuid, String> = account::Entity::find()
        .select_only()
        .column(account::Column::Id)
        .column(account::Column::Name)
        .filter(account::Column::Id.is_in(accounts))
        .into_tuple::<(Uuid, String)>()
        .all(connection)
        .await?
        .into_iter()
        .collect();
    let holds = hold::Entity::find()
        .order_by_desc(hold::Column::Since)
        .limit(MAX_LISTED_RIGHTS)
        .all(connection)
        .await?;
    let approved = agent::Entity::find().filter(agent::Column::ApprovedVersion.is_not_null());
    Ok(BackupRights {
        token_count: valid_tokens().count(connection).await?,
        tokens: tokens
            .into_iter()
            .map(|row| BackupToken {
                account: names.get(&row.account_id).cloned().unwrap_or_default(),
                name: row.name,
                prefix: row.prefix,
                expires_at: row.expires_at.map(Timestamp),
            })
            .collect(),
        hold_count: hold::Entity::find().count(connection).await?,
        holds: holds
            .into_iter()
            .map(|row| BackupHold {
                agent: row.agent_id,
                hold: row.hold.as_str().to_owned(),
                reason: row.reason,
                actor: row.actor,
                since: Timestamp(row.since),
            })
            .collect(),
        approved_agents: approved.count(connection).await?,
    })
}

/// The tables whose rows `pg_dump` must leave out. Those of the migrations are added last by a restore, so that no
/// registry starts on a database that was restored in part.
pub fn tables_without_dumped_rows() -> impl Iterator<Item = &'static str> {
    let migrations = seaql_migrations::Entity.table_name();
    OMITTED_TABLES.into_iter().chain([migrations])
}

/// A snapshot of a PostgreSQL database, which `pg_dump` can use until this is dropped.
#[derive(Debug)]
pub struct ExportedSnapshot {
    pub read: ReadTransaction,
    pub id: String,
    /// The quoted name of the schema with the tables of the registry.
    pub schema: String,
}

/// Keeps other processes from migrating an empty PostgreSQL database, so that a registry that starts meanwhile waits.
#[derive(Debug)]
pub struct DatabaseReservation(DatabaseTransaction);

impl DatabaseReservation {
    pub async fn release(self) -> Result<(), StoreError> {
        Ok(self.0.rollback().await?)
    }
}

impl Store {
    /// Copies an SQLite database as it is now to a file that is missing or empty, while other processes use it.
    pub async fn copy_sqlite_database(&self, file: &str) -> Result<(), StoreError> {
        let statement =
            Statement::from_sql_and_values(DbBackend::Sqlite, "VACUUM INTO ?", [file.into()]);
        self.connection().execute_raw(statement).await?;
        Ok(())
    }

    /// Removes the rows that no copy has from an SQLite copy, and overwrites them in the file.
    pub async fn remove_omitted_rows(&self) -> Result<(), StoreError> {
        let write = self.begin_write().await?;
        let connection = write.connection();
        for table in OMITTED_TABLES {
            let delete = format!("DELETE FROM {table}");
            connection.execute_unprepared(&delete).await?;
        }
        write.commit().await
    }

    pub async fn export_postgres_snapshot(&self) -> Result<ExportedSnapshot, StoreError> {
        let read = self.begin_snapshot().await?;
        let connection = read.connection();
        connection.execute_unprepared(DISABLE_IDLE_TIMEOUT).await?;
        let schema = "SELECT format('\"%s\"', replace(current_schema(), '\"', '\"\"')) AS value";
        let schema = self.postgres_value(connection, schema).await?;
        let id = "SELECT pg_export_snapshot() AS value";
        let id = self.postgres_value(connection, id).await?;
        Ok(ExportedSnapshot { read, id, schema })
    }

    /// The major version of the PostgreSQL server.
    pub async fn postgres_major_version(&self) -> Result<u32, StoreError> {
        let version = "SELECT current_setting('server_version_num') AS value";
        let version = self.postgres_value(self.connection(), version).await?;
        let number: u32 = version.parse().unwrap_or_default();
        Ok(number / 10_000)
    }

    async fn postgres_value(
        &self,
        connection: &impl ConnectionTrait,
        sql: &str,
    ) -> Result<String, StoreError> {
        let statement = Statement::from_string(DbBackend::Postgres, sql.to_owned());
        let row = connection.query_one_raw(statement).await?;
        let row = row.ok_or_else(|| StoreError::other("it gave no row"))?;
        Ok(row.try_get("", "value")?)
    }

    /// Reserves a PostgreSQL database for a restore.
    ///
    /// # Errors
    /// If another process uses it, or it has tables.
    pub async fn reserve_empty_database(&self) -> Result<DatabaseReservation, StoreError> {
        let in_use = || StoreError::other("another process uses it; stop that process first");
        let reserved = self.connection().begin().await?;
        reserved.execute_unprepared(DISABLE_IDLE_TIMEOUT).await?;
        let lock = format!("SELECT pg_try_advisory_xact_lock({MIGRATION_LOCK})::text AS value");
        if self.postgres_value(&reserved, &lock).await? != "true"
            || self.listener_count().await? > 0
        {
            return Err(in_use());
        }
        // Tables of extensions belong to the server's administrator.
        let tables = "SELECT count(*)::text AS value FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') \
             AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
             AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass \
             AND d.objid = c.oid AND d.deptype = 'e')";
        let tables = self.postgres_value(&reserved, tables).await?;
        if tables != "0" {
            return Err(StoreError::other(format!(
                "it is not empty: it has {tables} tables and sequences; create an empty database and restore into that"
            )));
        }
        Ok(DatabaseReservation(reserved))
    }

    /// Completes a restored copy: its settings, and an event after which no number is given twice. Returns the number
    /// of that event.
    pub async fn complete_restore(&self, rows: &RestoredRows<'_>) -> Result<i64, StoreError> {
        // One number for each microsecond since the backup. No registry writes more events, so this is above every
        // number that was given since, also by a registry that an earlier restore made of the same backup.
        let elapsed = rows.restored_at.0.saturating_sub(rows.backup_at.0);
        let skipped = match elapsed > 0 {
            true => elapsed,
            false => EVENT_NUMBERS_SKIPPED,
        };
        let seq = rows
            .last_event
            .checked_add(skipped)
            .ok_or_else(|| StoreError::other("it has no numbers left for events"))?;
        let write = self.begin_write().await?;
        for (key, value) in rows.settings {
            write.set_setting(key, value).await?;
        }
        let data = serde_json::json!({
            "backup_event": rows.last_event,
            "backup_at": rows.backup_at,
        });
        let restored = event::ActiveModel {
            seq: Set(seq),
            at: Set(rows.restored_at.0),
            kind: Set(EventKind::RegistryRestored.into()),
            subject: Set("registry".to_owned()),
            agent_id: Set(None),
            actor: Set(rows.actor.to_owned()),
            data: Set(data.to_string()),
        };
        write.insert_rows([restored], None).await?;
        if self.is_postgres() {
            // SQLite continues after the highest number by itself.
            let next = Statement::from_sql_and_values(
                DbBackend::Postgres,
                "SELECT setval(pg_get_serial_sequence('events', 'seq'), $1)",
                [seq.into()],
            );
            write.connection().execute_raw(next).await?;
        }
        let applied_at = rows.restored_at.to_millis() / 1000;
        let migrations = rows.migrations.iter();
        let migrations = migrations.map(|name| seaql_migrations::ActiveModel {
            version: Set(name.clone()),
            applied_at: Set(applied_at),
        });
        write.insert_rows(migrations, None).await?;
        write.commit().await?;
        Ok(seq)
    }
}
