//! A registry in a folder of its own, which can be filled as fast as the registry allows.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a2a_crawler::dns::{EmptyResolver, Resolver};
use a2a_crawler::{
    AttemptOutcome, Clock as _, FetchAttempt, FetchedCard, Freshness, SourceOutcome, SourceResult,
    SystemClock, VisitOutcome,
};
use a2a_registry_core::config::{AllowPorts, Config, PeerConfig};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::health::readiness::check_readiness;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_server::serve as server;
use a2a_registry_server::startup::{self, StartupResult, start_registry};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Suffix of the benches' domains; it is never resolved outside this process.
pub const SUFFIX: &str = "agents.test";

/// Visits ingested in one group, as the crawler delivers them.
const GROUP: usize = 200;

/// An hour, in microseconds: longer than any bench.
const LEASE: i64 = 3_600_000_000;

/// The token of the first admin.
pub const ADMIN: &str = "a-bootstrap-token-of-forty-characters-0001";

/// A registry and its folder.
#[derive(Debug)]
pub struct BenchRegistry {
    /// The registry.
    pub app: Arc<AppContext>,
    /// Removed with it; `None` where the folder belongs to the caller.
    folder: Option<TempDir>,
    /// The servers that were started; they hold the registry until they have ended.
    servers: Mutex<Vec<JoinHandle<io::Result<()>>>>,
}

/// Duration of filling a registry.
#[derive(Debug, Clone, Copy)]
pub struct FillDurations {
    /// Time spent in the registry's own ingest.
    pub ingest: Duration,
    /// Time spent leasing the visits.
    pub lease: Duration,
}

impl BenchRegistry {
    /// An empty registry that approves everything and crawls the names of [`SUFFIX`] over plain HTTP.
    pub async fn new() -> Self {
        // Every query for an opt-out record finds none at once, so that no name server is measured.
        Self::resolving(Arc::new(EmptyResolver)).await
    }

    /// A registry like [`BenchRegistry::new`]'s; with `BENCH_DATABASE=postgres` in a database of its own on the server
    /// that `A2A_REGISTRY_TEST_POSTGRES` names.
    pub async fn on_chosen_database() -> Self {
        if std::env::var("BENCH_DATABASE").as_deref() != Ok("postgres") {
            return Self::new().await;
        }
        let name = format!("bench_{}", SystemClock.now().unix_timestamp_nanos());
        run_on_postgres(&format!("CREATE DATABASE {name}")).await;
        let own = postgres_server();
        let (server, _) = own.rsplit_once('/').unwrap();
        Self::configured(Arc::new(EmptyResolver), |config| {
            config.store.database = format!("{server}/{name}").into();
        })
        .await
    }

    /// A registry like [`BenchRegistry::new`]'s, with this resolver.
    pub async fn resolving(resolver: Arc<dyn Resolver>) -> Self {
        Self::configured(resolver, |_| ()).await
    }

    /// A registry like [`BenchRegistry::new`]'s, with a peer at this URL.
    pub async fn with_peer(url: &str) -> Self {
        Self::configured(Arc::new(EmptyResolver), |config| {
            config.federation.allow_networks = config.crawler.allow_networks.clone();
            config.federation.allow_http = true;
            config.federation.allow_ports = AllowPorts::Word("any".into());
            let peer = PeerConfig {
                url: url.to_owned(),
                share_private: true,
            };
            config.federation.peers.insert("peer".to_owned(), peer);
        })
        .await
    }

    async fn configured(resolver: Arc<dyn Resolver>, configure: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut stock, _) = Self::open(folder.path(), resolver, configure).await;
        stock.folder = Some(folder);
        stock
    }

    /// A registry like [`BenchRegistry::new`]'s in a folder of the caller, which may hold one already; and the reason to rebuild
    /// its index, if any.
    pub async fn open(
        folder: &Path,
        resolver: Arc<dyn Resolver>,
        configure: impl FnOnce(&mut Config),
    ) -> (Self, Option<String>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::default();
        config.store.data_dir = folder.to_owned();
        config.governance.approve_all = true;
        config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.crawler.allow_names = vec![format!("*.{SUFFIX}")];
        config.crawler.allow_http = true;
        config.crawler.allow_ports = AllowPorts::Word("any".into());
        // The bench measures how fast the crawler can be, so the pace must not limit it.
        config.crawler.least_rate = 1_000_000.0;
        // Searches wait for the encoder, so that no result falls back to full text.
        config.search.embed_timeout = 60_000;
        // No job hears from the database here, while a slow encoder makes the vectors.
        config.store.stale_limit = 86_400;
        config.server.public_url = "http://registry.agents.test".into();
        configure(&mut config);
        let entropy = Arc::new(SystemEntropy::default());
        let network =
            NetworkAccess::with_resolver(&config, Arc::new(SystemClock), resolver).unwrap();
        let started = start_registry(config, Arc::new(SystemClock), entropy, network, Some(ADMIN));
        let StartupResult {
            context,
            rebuild_reason: rebuild,
            ..
        } = started.await.unwrap();
        let stock = Self {
            app: context,
            folder: None,
            servers: Mutex::default(),
        };
        (stock, rebuild)
    }

    /// A registry like [`BenchRegistry::new`]'s, in which an account registers as much as it wants.
    pub async fn without_quotas() -> Self {
        Self::configured(Arc::new(EmptyResolver), |config| {
            config.limits.domains_per_account = 1_000_000;
            config.limits.sources_per_account = 1_000_000;
        })
        .await
    }

    /// A second connection to the database, for changes that no caller may make. It is as the registry's own, which does not
    /// wait for the disk after each of them: the registry's process pays for it.
    pub async fn database(&self) -> DatabaseConnection {
        let mut options = ConnectOptions::new(self.app.config().database_url());
        options.map_sqlx_sqlite_opts(|sqlite| sqlite.pragma("synchronous", "NORMAL"));
        Database::connect(options).await.unwrap()
    }

    /// Gives every agent a URN, as the proof of its domain would.
    pub async fn name_agents(&self) {
        let database = self.database().await;
        let name = "UPDATE agents SET urn = 'urn:air:' || replace(domain, ':', '.') || ':agents:' || lower(hex(id))";
        execute(&database, name.into()).await;
        database.close().await.unwrap();
    }

    /// Adds this number of domains to the frontier, each with this number of card URLs, all due: card number `n` has the
    /// URL `http://d<n / urls>.agents.test:<port>/<n>`.
    pub async fn add_sources(&self, domains: usize, urls: usize, port: u16) {
        let database = self.database().await;
        let sources = NewSources {
            first: 0,
            domains,
            urls,
            port,
            account: "",
        };
        add_sources(&database, &sources).await;
        database.close().await.unwrap();
    }

    /// Makes the planned visit of every domain due, each for a conditional fetch of all its sources.
    pub async fn make_planned_due(&self) {
        let database = self.database().await;
        execute(&database, "UPDATE sources SET next_due_at = 1".into()).await;
        execute(&database, "UPDATE domains SET visit_due_at = 1".into()).await;
        database.close().await.unwrap();
    }

    /// Makes one card URL of a domain due, over a connection of [`BenchRegistry::database`].
    pub async fn make_card_due(&self, database: &DatabaseConnection, domain: &str, card: usize) {
        let domain =
            format!("(SELECT id FROM domains WHERE name = '{domain}' AND deleted_at IS NULL)");
        for statement in [
            // Live ones have an index.
            format!(
                "UPDATE sources SET next_due_at = 1 \
                 WHERE domain_id = {domain} AND ended_at IS NULL AND url LIKE '%/{card}'"
            ),
            format!(
                "UPDATE domains SET visit_due_at = 1, visit_interval_us = NULL WHERE id = {domain}"
            ),
        ] {
            execute(database, statement).await;
        }
    }

    /// Makes every source due again, for a conditional fetch.
    pub async fn make_due(&self) {
        let database = self.database().await;
        execute(&database, "UPDATE sources SET next_due_at = 1".into()).await;
        // Without an interval these count as requested visits, which the pace does not defer.
        let domains = "UPDATE domains SET visit_due_at = 1, visit_interval_us = NULL";
        execute(&database, domains.into()).await;
        database.close().await.unwrap();
    }

    /// Ingests a card for every due source, without any network; `card` generates the card of a number.
    pub async fn fill(&self, card: impl Fn(u64) -> Vec<u8>) -> FillDurations {
        let mut filled = FillDurations {
            ingest: Duration::ZERO,
            lease: Duration::ZERO,
        };
        loop {
            let began = Instant::now();
            let leased = lease_visits(&self.app, GROUP, LEASE).await.unwrap();
            filled.lease += began.elapsed();
            if leased.is_empty() {
                return filled;
            }
            let mut group = Vec::with_capacity(leased.len());
            for (domain, sources) in leased {
                group.push(VisitOutcome {
                    domain_key: domain.id,
                    lease_token: domain.lease.unwrap(),
                    sources: sources
                        .into_iter()
                        .map(|source| fetched(source.id, source.url, &card))
                        .collect(),
                });
            }
            let began = Instant::now();
            ingest_outcomes(&self.app, &group).await.unwrap();
            filled.ingest += began.elapsed();
        }
    }

    /// Serves the registry on a port of its own, with as many workers as `serve` has.
    pub fn serve(&self) -> io::Result<(SocketAddr, CancellationToken)> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shutdown = CancellationToken::new();
        let server = server::run_server(
            Arc::clone(&self.app),
            listener,
            shutdown.clone(),
            Arc::new(Metrics::new()),
        );
        self.servers.lock().unwrap().push(tokio::spawn(server));
        Ok((address, shutdown))
    }

    /// Total size of the index files in bytes.
    pub fn index_bytes(&self) -> u64 {
        fn size(folder: &std::path::Path) -> u64 {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries
                .filter_map(|entry| {
                    let meta = entry.metadata().ok()?;
                    Some(if meta.is_dir() {
                        size(&entry.path())
                    } else {
                        meta.len()
                    })
                })
                .sum()
        }
        size(&self.app.config().index_dir())
    }

    /// Ends the registry and starts it again on the same folder; returns the time until it is ready. The caller has
    /// cancelled the servers and stopped the jobs before.
    pub async fn restart(self) -> (Self, Duration) {
        self.restart_with(|_| ()).await
    }

    /// The same with another configuration.
    pub async fn restart_with(self, configure: impl FnOnce(&mut Config)) -> (Self, Duration) {
        let Self {
            app,
            folder,
            servers,
        } = self;
        for server in servers.into_inner().unwrap() {
            server.await.unwrap().unwrap();
        }
        let mut config = (*app.config()).clone();
        configure(&mut config);
        startup::close_store(&app.store).await;
        drop(app);
        let began = Instant::now();
        let entropy = Arc::new(SystemEntropy::default());
        let network = NetworkAccess::offline(&config, Arc::new(SystemClock)).unwrap();
        let StartupResult { context: app, .. } =
            start_registry(config, Arc::new(SystemClock), entropy, network, None)
                .await
                .unwrap();
        let readiness = check_readiness(&app).await;
        assert!(readiness.ready, "{readiness:?}");
        let ready = began.elapsed();
        let servers = Mutex::default();
        let stock = Self {
            app,
            folder,
            servers,
        };
        (stock, ready)
    }

    /// Closes the registry and removes its folder and its database.
    pub async fn close(self) {
        startup::close_store(&self.app.store).await;
        let url = self.app.config().database_url();
        drop(self.app);
        drop(self.folder);
        if url.starts_with("postgres") {
            let (_, name) = url.rsplit_once('/').unwrap();
            run_on_postgres(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

/// The URL of the server's own database.
fn postgres_server() -> String {
    std::env::var("A2A_REGISTRY_TEST_POSTGRES")
        .expect("set A2A_REGISTRY_TEST_POSTGRES, as `tests/run --shell` does")
}

async fn run_on_postgres(statement: &str) {
    let database = Database::connect(postgres_server()).await.unwrap();
    database.execute_unprepared(statement).await.unwrap();
    database.close().await.unwrap();
}

/// Sources to add to the frontier, all due.
#[derive(Debug)]
pub struct NewSources<'a> {
    /// The number of the first card and of the first domain; the next ones count on.
    pub first: usize,
    /// The number of domains.
    pub domains: usize,
    /// The number of card URLs of each.
    pub urls: usize,
    /// The port of the origin.
    pub port: u16,
    /// The account that registered them; empty for none.
    pub account: &'a str,
}

/// Adds sources over a connection of [`BenchRegistry::database`].
pub async fn add_sources(database: &DatabaseConnection, sources: &NewSources<'_>) {
    let NewSources {
        first,
        domains,
        urls,
        port,
        account,
    } = sources;
    let account = format!("(SELECT id FROM accounts WHERE name = '{account}')");
    let last_domain = last_id(database, "domains").await;
    let last_source = last_id(database, "sources").await;
    // The number of a domain, counted from the first: their ids follow one another.
    let number = format!("(d.id - (SELECT min(id) FROM domains WHERE id > {last_domain}))");
    // Together: a crawler that leases a domain before it has sources ends its visits for ever.
    let write = sea_orm::TransactionTrait::begin(database).await.unwrap();
    for statement in [
        format!(
            "INSERT INTO domains (name, scheme, state, generation, account_id, created_at, visit_due_at, not_before) \
             WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {first} + {domains}) \
             SELECT 'd' || i || '.{SUFFIX}:{port}', 'http', 'unverified', 1, {account}, 1, 1, 0 FROM n"
        ),
        format!(
            "INSERT INTO sources (domain_id, kind, url, next_due_at, interval_us, full_wanted, failures, \
             cause_looks, liveness, created_at) \
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {urls}) \
             SELECT d.id, 'url', 'http://' || d.name || '/' || ({first} + {number} * {urls} + n.i), 1, 0, FALSE, 0, 0, \
             'new', 1 FROM domains AS d, n WHERE d.id > {last_domain}"
        ),
        // Every source that is registered has a registrant.
        format!(
            "INSERT INTO source_registrants (source_id, account_id, registered_at) \
             SELECT id, {account}, 1 FROM sources WHERE id > {last_source}"
        ),
    ] {
        execute(&write, statement).await;
    }
    write.commit().await.unwrap();
}

/// The highest id in a table; 0 in an empty one.
async fn last_id(database: &DatabaseConnection, table: &str) -> i64 {
    let backend = database.get_database_backend();
    let query = format!("SELECT coalesce(max(id), 0) AS highest FROM {table}");
    let rows = database.query_all_raw(Statement::from_string(backend, query));
    rows.await.unwrap()[0].try_get("", "highest").unwrap()
}

async fn execute(database: &impl ConnectionTrait, statement: String) {
    let backend = database.get_database_backend();
    database
        .execute_raw(Statement::from_string(backend, statement))
        .await
        .unwrap();
}

/// The outcome that the crawler would deliver for that URL.
fn fetched(source_key: i64, url: String, card: impl Fn(u64) -> Vec<u8>) -> SourceOutcome {
    let index = url.rsplit('/').next().and_then(|index| index.parse().ok());
    let bytes = card(index.unwrap_or_default());
    let parsed = a2a_card::parse_card(&bytes).unwrap();
    SourceOutcome {
        source_key,
        attempts: vec![FetchAttempt {
            started_at: SystemClock.now(),
            url: url.clone(),
            outcome: AttemptOutcome::Card,
            status: Some(200),
            address: Some([127, 0, 0, 1].into()),
            detail: format!("the card of {:?}", parsed.card.name),
            is_conditional: false,
            elapsed_ms: 1,
        }],
        result: SourceResult::Fetched(Box::new(FetchedCard {
            url,
            bytes,
            parsed,
            key_sets: Vec::new(),
            over_tls: true,
            with_credential: false,
            freshness: Freshness::default(),
        })),
    }
}
