//! A fresh database for each test, on SQLite and on PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};

use a2a_crawler::{Clock as _, SystemClock};
use sea_orm::{ConnectOptions, ConnectionTrait};
use tempfile::TempDir;

use super::prepared;

/// An empty database of its own for one test, gone when this is dropped.
pub struct Database {
    url: String,
    place: Place,
}

enum Place {
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
            place: Place::Sqlite { _folder: folder },
        }
    }

    /// A new database on the server that `A2A_REGISTRY_TEST_POSTGRES` names.
    ///
    /// # Panics
    ///
    /// When that variable is missing, with the command to run.
    pub async fn postgres() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The name is unlike any earlier one on the same server, also of a run that was killed
        // and whose process id came round again.
        let name = format!(
            "test_{}_{}_{}",
            SystemClock.now().unix_timestamp_nanos() / 1_000,
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        administrate(&format!("CREATE DATABASE {name}"))
            .await
            .unwrap();
        let server = prepared(SERVER);
        let (server, _) = server.rsplit_once('/').unwrap();
        Self {
            url: format!("{server}/{name}"),
            place: Place::Postgres { name },
        }
    }

    /// The address to hand to whatever is under test.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Place::Postgres { name } = &self.place else {
            return;
        };
        let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        // A thread of its own: the test's runtime cannot be waited for from inside itself.
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(administrate(&statement))
        })
        .join();
        if !matches!(dropped, Ok(Ok(()))) {
            eprintln!("the test database {name} could not be dropped: {dropped:?}");
        }
    }
}

const SERVER: &str = "A2A_REGISTRY_TEST_POSTGRES";

/// Runs one statement on the server's own database.
async fn administrate(statement: &str) -> Result<(), sea_orm::DbErr> {
    let mut options = ConnectOptions::new(prepared(SERVER));
    options.max_connections(1).sqlx_logging(false);
    let connection = sea_orm::Database::connect(options).await?;
    connection.execute_unprepared(statement).await?;
    connection.close().await
}

/// Turns one test body, which is given the address of an empty database, into two tests: `sqlite`
/// and `postgres`, in a module named after the body.
///
/// ```ignore
/// both_databases! {
///     /// What the test shows.
///     async fn a_card_survives_a_restart(url: &str) {
///         …
///     }
/// }
/// ```
macro_rules! both_databases {
    ($($(#[$attribute:meta])* async fn $name:ident($url:ident: &str) $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "some bodies need nothing from around them")]
            use super::*;

            async fn body($url: &str) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let database = $crate::support::database::Database::sqlite();
                body(database.url()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let database = $crate::support::database::Database::postgres().await;
                body(database.url()).await;
            }
        }
    )+};
}

pub(crate) use both_databases;
