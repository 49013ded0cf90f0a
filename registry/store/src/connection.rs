//! Opens a database, and begins its reads and writes.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::sqlite::SqliteConnectOptions;
use sea_orm::sqlx::{self, Connection as _, Executor as _, PgConnection};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend,
    IsolationLevel, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
};

use super::damaged_bodies::DamagedBodies;
use super::row_changes::{PendingRowChanges, RowChangeCounters};
use super::schema_state::{
    SchemaState, has_migrations_table, read_schema_state, run_pending_migrations,
};
use super::statements::enable_statement_recording;
use super::{StoreError, sqlite_file};

/// The PostgreSQL advisory lock under which migrations run.
pub(super) const MIGRATION_LOCK: i64 = 0x6132_6172_0001;

/// Runs statements: the store itself for single reads, a read transaction for several, or a write transaction.
pub trait Executor: Sync {
    type Connection: ConnectionTrait;

    fn connection(&self) -> &Self::Connection;

    /// Whether rows that are read to be changed must be locked: inside a write, if other processes write too.
    fn locks_rows(&self) -> bool {
        false
    }

    /// The record of bodies that were read and do not match their digest.
    fn damaged_bodies(&self) -> &DamagedBodies;
}

impl Executor for Store {
    type Connection = DatabaseConnection;

    fn connection(&self) -> &DatabaseConnection {
        &self.reader
    }

    fn damaged_bodies(&self) -> &DamagedBodies {
        &self.damaged_bodies
    }
}

impl Executor for ReadTransaction {
    type Connection = DatabaseTransaction;

    fn connection(&self) -> &DatabaseTransaction {
        &self.transaction
    }

    fn damaged_bodies(&self) -> &DamagedBodies {
        &self.damaged_bodies
    }
}

impl Executor for WriteTransaction {
    type Connection = DatabaseTransaction;

    fn connection(&self) -> &DatabaseTransaction {
        &self.transaction
    }

    fn locks_rows(&self) -> bool {
        self.transaction.get_database_backend() == DbBackend::Postgres
    }

    fn damaged_bodies(&self) -> &DamagedBodies {
        &self.damaged_bodies
    }
}

/// Maximum number of concurrent read connections on SQLite; PostgreSQL's pool holds up to twice as many connections.
const MAX_READERS: u32 = 8;
/// Statements that each SQLite reader keeps prepared.
const PREPARED_READS: usize = 128;
/// Statements that the SQLite writer keeps prepared. The batches of a crawl insert in a dozen sizes into each of a
/// dozen tables, and preparing an insert of 64 rows takes longer than running it.
const PREPARED_WRITES: usize = 512;
/// Timeout for getting a connection.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time after which a PostgreSQL connection is tested before it is reused. It was tested when it was returned to
/// the pool, and a test before every statement would double the round trips of all reads.
const TEST_AFTER_IDLE: Duration = Duration::from_secs(1);
/// The pause before a refused connection is tried again.
const CONNECT_RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Ends the write of a process that hangs, for example on a paused machine, because other processes wait for its
/// locks.
const SET_IDLE_TIMEOUT: &str = "SET idle_in_transaction_session_timeout = '30s'";
/// For a session that stays idle while others work under its lock or in its snapshot.
pub(super) const DISABLE_IDLE_TIMEOUT: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";

/// `PRAGMA synchronous` on SQLite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SqliteSynchronous {
    /// Survives a crash of the process; a power failure may cost the last transactions.
    #[default]
    Normal,
    /// Survives a power failure too.
    Full,
}

#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// `sqlite:/path/to/file?mode=rwc` or `postgres://…`.
    pub url: String,
    /// Only for SQLite.
    pub synchronous: SqliteSynchronous,
    /// Megabytes of the database that SQLite keeps in memory, all connections together.
    pub cache_megabytes: u64,
}

impl StoreOptions {
    /// The database file, if the database is SQLite.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        let memory = self.url.contains(":memory:") || self.url.contains("mode=memory");
        if memory || !self.url.starts_with("sqlite:") {
            return None;
        }
        let options = SqliteConnectOptions::from_str(&self.url).ok()?;
        Some(options.get_filename().to_owned())
    }

    /// Marks the first start of the database as complete. From then on a file without a registry is rejected.
    pub fn mark_first_start_finished(&self) -> Result<(), StoreError> {
        sqlite_file::mark_start_finished(self)
    }
}

#[derive(Debug, Clone)]
pub struct Store {
    reader: DatabaseConnection,
    writer: DatabaseConnection,
    /// SQLite writers queue here, in order, instead of in its busy handler.
    write_lock: Option<Arc<tokio::sync::Mutex<()>>>,
    row_changes: Arc<RowChangeCounters>,
    damaged_bodies: Arc<DamagedBodies>,
}

/// Several reads on one connection. Each read on the store itself takes a connection from the pool and returns it,
/// which costs one more round trip. On SQLite all of them see the database as it was at the first one.
#[derive(Debug)]
pub struct ReadTransaction {
    transaction: DatabaseTransaction,
    damaged_bodies: Arc<DamagedBodies>,
}

/// A write transaction. Nothing is stored until [`WriteTransaction::commit`].
#[derive(Debug)]
pub struct WriteTransaction {
    transaction: DatabaseTransaction,
    /// The changes so far: every method that writes rows of agents or domains records them here.
    pub(super) pending_changes: PendingRowChanges,
    row_changes: Arc<RowChangeCounters>,
    damaged_bodies: Arc<DamagedBodies>,
    write_guard: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl WriteTransaction {
    /// Commits the write and counts its changes, even if the caller is cancelled meanwhile.
    ///
    /// # Errors
    /// If the database rejects the commit; the transaction is rolled back.
    pub async fn commit(self) -> Result<(), StoreError> {
        let Self {
            transaction,
            pending_changes: changed,
            row_changes: changes,
            write_guard: turn,
            ..
        } = self;
        let committing = tokio::spawn(async move {
            let outcome = transaction.commit().await;
            // Also after a failure: the commit may have succeeded and only its response been lost.
            changes.record(changed);
            drop(turn);
            outcome
        });
        let outcome = committing.await;
        Ok(outcome.map_err(|error| StoreError::other(error.to_string()))??)
    }
}

impl Store {
    /// Opens the database and brings its schema up to date. Creates a missing SQLite file.
    ///
    /// # Errors
    /// If the database cannot be reached, opened or migrated, or if its file holds no registry.
    pub async fn open(options: &StoreOptions) -> Result<Self, StoreError> {
        sqlite_file::reject_foreign_file(options).await?;
        sqlite_file::mark_start_unfinished(options)?;
        let store = Self::connect(options).await?;
        store.migrate().await?;
        Ok(store)
    }

    /// Opens a database that holds a registry, and brings its schema up to date.
    ///
    /// # Errors
    /// Those of [`Store::open`]; also if the database is missing or empty.
    pub async fn open_existing(options: &StoreOptions) -> Result<Self, StoreError> {
        let store = Self::connect(options).await?;
        if !has_migrations_table(&store.writer).await? {
            return Err(StoreError::other(
                "it holds no registry yet; start `a2a-registry serve` once to create one",
            ));
        }
        store.migrate().await?;
        Ok(store)
    }

    /// Opens the database without migrating it.
    ///
    /// # Errors
    /// If the database cannot be reached or opened, or if its file holds no registry.
    pub async fn connect(options: &StoreOptions) -> Result<Self, StoreError> {
        sqlite_file::reject_foreign_file(options).await?;
        if options.url.starts_with("sqlite:") {
            let writer = Database::connect(sqlite_options(options, 1, PREPARED_WRITES)).await?;
            let mut reader =
                Database::connect(sqlite_options(options, MAX_READERS, PREPARED_READS)).await?;
            enable_statement_recording(&mut reader);
            let write_lock = Some(Arc::new(tokio::sync::Mutex::new(())));
            return Ok(Self {
                reader,
                writer,
                write_lock,
                row_changes: Arc::default(),
                damaged_bodies: Arc::default(),
            });
        }
        wait_for_postgres(&options.url).await?;
        let mut pool_options = ConnectOptions::new(&options.url);
        pool_options
            .max_connections(MAX_READERS * 2)
            .acquire_timeout(DATABASE_TIMEOUT)
            .connect_timeout(DATABASE_TIMEOUT)
            .test_before_acquire_if_idle_for(TEST_AFTER_IDLE)
            .map_sqlx_postgres_pool_opts(|pool| {
                // By a statement, because connection poolers in between reject settings in the startup message.
                pool.after_connect(|connection, _| {
                    Box::pin(async move { connection.execute(SET_IDLE_TIMEOUT).await.map(|_| ()) })
                })
            })
            .sqlx_logging(false);
        let mut pool = Database::connect(pool_options).await?;
        enable_statement_recording(&mut pool);
        Ok(Self {
            reader: pool.clone(),
            writer: pool,
            write_lock: None,
            row_changes: Arc::default(),
            damaged_bodies: Arc::default(),
        })
    }

    /// Runs every migration that has not run yet; running it again has no effect, and neither has running it on the
    /// schema of a newer version that this one can run beside. On PostgreSQL an advisory lock makes processes that start
    /// together run each migration once.
    ///
    /// # Errors
    /// If this version cannot run on the schema, or if a step fails; the schema then stays at the previous step.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        if !self.is_postgres() {
            return run_pending_migrations(&self.writer).await;
        }
        let guard = self.writer.begin().await?;
        guard.execute_unprepared(DISABLE_IDLE_TIMEOUT).await?;
        take_advisory_lock(&guard, MIGRATION_LOCK).await?;
        let outcome = run_pending_migrations(&self.writer).await;
        guard.rollback().await?;
        outcome
    }

    /// The state of the schema, read without changing anything.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        read_schema_state(&self.reader).await
    }

    /// The names of the migrations that have not run yet, oldest first.
    ///
    /// # Errors
    /// If the database does not respond, or if this version cannot run on its schema.
    pub async fn pending_migrations(&self) -> Result<Vec<String>, StoreError> {
        match self.schema_state().await? {
            SchemaState::Known { pending } => Ok(pending),
            SchemaState::Newer { .. } => Ok(Vec::new()),
            SchemaState::Incompatible { reason } => Err(StoreError::other(reason)),
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.writer.get_database_backend() == DbBackend::Postgres
    }

    /// The changes that writes of this process have made to the rows of agents and domains.
    pub fn row_changes(&self) -> &RowChangeCounters {
        &self.row_changes
    }

    /// The pool behind a PostgreSQL store.
    pub(super) fn postgres_pool(&self) -> &sea_orm::sqlx::PgPool {
        self.reader.get_postgres_connection_pool()
    }

    /// Begins a read of several statements, which ends when it is dropped. Drop it soon: it holds one of a few
    /// connections.
    pub async fn begin_read(&self) -> Result<ReadTransaction, StoreError> {
        Ok(ReadTransaction {
            transaction: self.reader.begin().await?,
            damaged_bodies: Arc::clone(&self.damaged_bodies),
        })
    }

    /// Begins a read of several statements that see the database as it is now, on PostgreSQL too.
    pub async fn begin_snapshot(&self) -> Result<ReadTransaction, StoreError> {
        let options = TransactionOptions {
            isolation_level: self.is_postgres().then_some(IsolationLevel::RepeatableRead),
            ..TransactionOptions::default()
        };
        Ok(ReadTransaction {
            transaction: self.reader.begin_with_options(options).await?,
            damaged_bodies: Arc::clone(&self.damaged_bodies),
        })
    }

    /// Begins a write. On SQLite it waits for its turn and begins IMMEDIATE, so that no other transaction can write
    /// between its reads and its writes.
    pub async fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        let write_guard = match &self.write_lock {
            Some(turn) => Some(Arc::clone(turn).lock_owned().await),
            None => None,
        };
        let options = TransactionOptions {
            sqlite_transaction_mode: write_guard
                .is_some()
                .then_some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let transaction = self.writer.begin_with_options(options).await?;
        Ok(WriteTransaction {
            transaction,
            pending_changes: PendingRowChanges::default(),
            row_changes: Arc::clone(&self.row_changes),
            damaged_bodies: Arc::clone(&self.damaged_bodies),
            write_guard,
        })
    }

    /// Whether a write of this process holds or waits for the turn to write. Never on PostgreSQL, which has no turns.
    pub(super) fn is_write_in_progress(&self) -> bool {
        let turn = self.write_lock.as_ref();
        turn.is_some_and(|turn| turn.try_lock().is_err())
    }

    /// Copies SQLite's write-ahead log into the database file and empties it, so that deleted bytes are in neither.
    ///
    /// # Errors
    /// Also if a reader that is still under way, such as a backup, keeps the log.
    pub async fn empty_write_ahead_log(&self) -> Result<(), StoreError> {
        let Some(turn) = &self.write_lock else {
            return Ok(());
        };
        let _turn = turn.lock().await;
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let statement = Statement::from_string(DbBackend::Sqlite, checkpoint);
        // SQLite waits for readers for as long as `busy_timeout` says, and then reports them in a row.
        let row = self.writer.query_one_raw(statement).await?;
        let busy: Option<i64> = row.map(|row| row.try_get("", "busy")).transpose()?;
        match busy {
            Some(0) => Ok(()),
            _ => Err(StoreError::other("a reader is still under way")),
        }
    }

    /// The clock of a PostgreSQL server, in microseconds since 1970 UTC; `None` for SQLite, which has none of its own.
    pub async fn server_clock(&self) -> Result<Option<i64>, StoreError> {
        if !self.is_postgres() {
            return Ok(None);
        }
        let query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock";
        let statement = Statement::from_string(DbBackend::Postgres, query);
        let row = self.reader.query_one_raw(statement).await?;
        Ok(row.map(|row| row.try_get("", "clock")).transpose()?)
    }

    pub async fn ping(&self) -> Result<(), StoreError> {
        Ok(self.reader.ping().await?)
    }

    /// Closes every connection, the writer last.
    pub async fn close(&self) -> Result<(), StoreError> {
        if !self.is_postgres() {
            self.reader.clone().close().await?;
        }
        Ok(self.writer.clone().close().await?)
    }
}

/// Opens and closes one connection to PostgreSQL to learn why connecting fails: the pool reports only a timeout. Waits
/// for a server that is about to start.
async fn wait_for_postgres(url: &str) -> Result<(), StoreError> {
    let mut last_error = StoreError::unavailable("it does not respond");
    let connected = tokio::time::timeout(DATABASE_TIMEOUT, async {
        loop {
            match PgConnection::connect(url).await {
                Ok(connection) => return Ok(connection),
                Err(sqlx::Error::Io(error)) => {
                    last_error = StoreError::unavailable(error.to_string())
                }
                Err(error) => return Err(StoreError::from(error)),
            }
            tokio::time::sleep(CONNECT_RETRY_PAUSE).await;
        }
    })
    .await;
    let connection = connected.unwrap_or(Err(last_error))?;
    // The server responds; a failure to close does not matter.
    let _ = connection.close().await;
    Ok(())
}

/// Takes a PostgreSQL advisory lock until the transaction ends.
pub(super) async fn take_advisory_lock(
    transaction: &impl ConnectionTrait,
    key: i64,
) -> Result<(), StoreError> {
    let statement = Statement::from_sql_and_values(
        DbBackend::Postgres,
        "SELECT pg_advisory_xact_lock($1)",
        [key.into()],
    );
    transaction.execute_raw(statement).await?;
    Ok(())
}

/// Options of SQLite connections, each of which keeps up to `prepared_statements` prepared.
fn sqlite_options(
    options: &StoreOptions,
    connections: u32,
    prepared_statements: usize,
) -> ConnectOptions {
    let synchronous = match options.synchronous {
        SqliteSynchronous::Normal => "NORMAL",
        SqliteSynchronous::Full => "FULL",
    };
    // Plus one connection for writes.
    let cache_kibibytes = options.cache_megabytes * 1024 / u64::from(MAX_READERS + 1);
    let mut connect_options = ConnectOptions::new(&options.url);
    connect_options
        .max_connections(connections)
        // There is no server to lose, and the test would send a message to the connection's thread and back for each
        // statement.
        .test_before_acquire(false)
        .sqlx_logging(false)
        .map_sqlx_sqlite_opts(move |sqlite| {
            sqlite
                .pragma("journal_mode", "WAL")
                .pragma("synchronous", synchronous)
                .pragma("foreign_keys", "ON")
                // Deleted rows are overwritten, or an erased card could still be read from the file.
                .pragma("secure_delete", "ON")
                .pragma("busy_timeout", "5000")
                .pragma("cache_size", format!("-{cache_kibibytes}"))
                .statement_cache_capacity(prepared_statements)
        })
        .map_sqlx_sqlite_before_acquire(|connection, _| {
            // SQLite rolls back by itself when a commit fails (a full disk), and the driver, which counts
            // transactions, does not notice. The next write would then run in a savepoint of a transaction that is
            // never committed: acknowledged, but lost. Such a connection is closed.
            let idle = !connection.is_in_transaction();
            Box::pin(std::future::ready(Ok(idle)))
        });
    connect_options
}
