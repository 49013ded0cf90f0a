//! A fresh database for each test, on SQLite and on PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};

use a2a_crawler::{Clock as _, SystemClock};
use a2a_registry_store::entity::event;
use a2a_registry_store::{Executor as _, SqliteSynchronous, Store, StoreOptions};
use sea_orm::{
    ConnectOptions, ConnectionTrait, DbBackend, EntityTrait as _, PaginatorTrait as _, Statement,
};
use tempfile::TempDir;

use super::polling::eventually;
use super::required_variable;

/// An empty database for one test, removed when this is dropped.
pub struct Database {
    url: String,
    location: DatabaseLocation,
}

enum DatabaseLocation {
    Sqlite { _folder: TempDir },
    Postgres { name: String },
}

impl Database {
    /// An SQLite file in a temporary folder; it does not exist before the first connection.
    pub fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("registry.sqlite");
        Self {
            url: format!("sqlite://{}?mode=rwc", file.display()),
            location: DatabaseLocation::Sqlite { _folder: folder },
        }
    }

    /// A new database on the server that `A2A_REGISTRY_TEST_POSTGRES` names.
    ///
    /// # Panics
    ///
    /// When that variable is missing, with the command to run.
    pub async fn postgres() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The name differs from all earlier ones on the same server, also from those of a killed run with the same
        // process id.
        let name = format!(
            "test_{}_{}_{}",
            SystemClock.now().unix_timestamp_nanos() / 1_000,
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        run_admin_statement(&format!("CREATE DATABASE {name}"))
            .await
            .unwrap();
        let server = required_variable(SERVER_VARIABLE);
        let (server, _) = server.rsplit_once('/').unwrap();
        Self {
            url: format!("{server}/{name}"),
            location: DatabaseLocation::Postgres { name },
        }
    }

    /// The URL of the database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let DatabaseLocation::Postgres { name } = &self.location else {
            return;
        };
        let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        // A thread of its own, because the test's runtime cannot be blocked from inside itself.
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run_admin_statement(&statement))
        })
        .join();
        if !matches!(dropped, Ok(Ok(()))) {
            eprintln!("the test database {name} could not be dropped: {dropped:?}");
        }
    }
}

/// Options of the tests for opening a database.
pub fn store_options(url: &str) -> StoreOptions {
    StoreOptions {
        url: url.into(),
        cache_megabytes: 9,
        synchronous: SqliteSynchronous::Normal,
    }
}

/// The number of stored events.
pub async fn count_events(store: &Store) -> u64 {
    let events = event::Entity::find();
    events.count(store.connection()).await.unwrap()
}

/// Waits until a transaction waits for a lock of another one. PostgreSQL sends no event for that.
pub async fn wait_for_lock_waiter(store: &Store) {
    let waiting = "SELECT 1 FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("a transaction waits for a lock", async || {
        let waiting = Statement::from_string(DbBackend::Postgres, waiting);
        store.connection().query_one_raw(waiting).await.unwrap()
    })
    .await;
}

const SERVER_VARIABLE: &str = "A2A_REGISTRY_TEST_POSTGRES";

/// Runs one statement on the server's own database.
async fn run_admin_statement(statement: &str) -> Result<(), sea_orm::DbErr> {
    let mut options = ConnectOptions::new(required_variable(SERVER_VARIABLE));
    options.max_connections(1).sqlx_logging(false);
    let connection = sea_orm::Database::connect(options).await?;
    connection.execute_unprepared(statement).await?;
    connection.close().await
}

/// Makes two tests of each of these functions, `sqlite` and `postgres`, in a module with the name of the function. The
/// function gets the URL of an empty database. Its body stands outside the macro, so that rustfmt formats it.
///
/// ```ignore
/// both_databases!(a_card_survives_a_restart);
///
/// /// The behaviour that the test checks.
/// async fn a_card_survives_a_restart(url: &str) {
///     …
/// }
/// ```
macro_rules! both_databases {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let database = $crate::support::database::Database::sqlite();
                super::$name(database.url()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let database = $crate::support::database::Database::postgres().await;
                super::$name(database.url()).await;
            }
        }
    )+};
}

pub(crate) use both_databases;
