//! Crawler processes on one PostgreSQL database, killed or stopped one at a time, with an audit of which process
//! leased, fetched and stored each card.
//!
//! Each crawler has a name, which it sends to the origins as its user agent and to the database as the application
//! name of its connections; triggers record that name with each lease and each stored attempt. The registry itself
//! uses neither name.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_store::entity::domain;
use a2a_registry_store::{Executor as _, Store};
use futures::future::select_all;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, EntityTrait as _, FromQueryResult, QueryFilter as _,
    Statement,
};
use tokio::time::timeout;

use super::DEADLINE;
use super::database::{Database, store_options};
use super::origin::{Origin, OriginReply, ResponseGate};
use super::polling::eventually;
use super::program::Program;
use super::serving_registry::start_serving;
use super::setup::RegistrySetup;

/// Triggers that record the application name of the connection for each lease and each attempt.
const AUDIT_TRIGGERS: &str = "
    CREATE TABLE crew_leases (
        number BIGSERIAL PRIMARY KEY, crawler TEXT NOT NULL, domain BIGINT NOT NULL, lease BIGINT NOT NULL
    );
    CREATE TABLE crew_kept (number BIGSERIAL PRIMARY KEY, crawler TEXT NOT NULL, url TEXT NOT NULL);
    CREATE FUNCTION crew_note_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO crew_leases (crawler, domain, lease)
            VALUES (current_setting('application_name'), NEW.id, NEW.lease);
        RETURN NULL;
    END $$;
    CREATE FUNCTION crew_note_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO crew_kept (crawler, url) VALUES (current_setting('application_name'), NEW.url);
        RETURN NULL;
    END $$;
    CREATE TRIGGER crew_lease AFTER UPDATE ON domains FOR EACH ROW
        WHEN (NEW.lease IS NOT NULL AND NEW.lease IS DISTINCT FROM OLD.lease)
        EXECUTE FUNCTION crew_note_lease();
    CREATE TRIGGER crew_kept AFTER INSERT OR UPDATE ON attempts FOR EACH ROW
        EXECUTE FUNCTION crew_note_kept();
";

/// A domain whose origin holds its responses until the test releases them.
pub struct GatedSite {
    /// The key of the domain.
    pub domain: i64,
    origin: Origin,
    gates: Vec<ResponseGate>,
}

impl GatedSite {
    /// A site with the domain of that key and these cards on that origin.
    pub fn new(domain: i64, origin: Origin, cards: &[String]) -> Self {
        let answer = |(at, card): (usize, &String)| {
            let gate = ResponseGate::default();
            origin.set_reply(
                &card_path(at),
                OriginReply::json(card.as_str()).gated_by(&gate),
            );
            gate
        };
        let gates = cards.iter().enumerate().map(answer).collect();
        Self {
            domain,
            origin,
            gates,
        }
    }
}

/// The path of a site's card by its number.
pub fn card_path(card: usize) -> String {
    format!("/{card}.json")
}

/// A request of a running crawler whose response is still held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRequest {
    /// The number of the site.
    pub site: usize,
    /// The number of the card.
    pub card: usize,
    /// The name of the crawler.
    pub crawler: String,
}

/// A row of the audit.
#[derive(Debug, FromQueryResult)]
struct AuditRow {
    crawler: String,
    what: String,
}

/// A running crawler, with its process and folder.
struct Crawler {
    program: Program,
    _setup: RegistrySetup,
}

/// Crawlers on one database, and the sites they crawl. Dropping it kills them.
pub struct CrawlerFleet {
    running: BTreeMap<String, Crawler>,
    killed: BTreeSet<String>,
    /// Maximum number of concurrent visits per crawler.
    concurrency: usize,
    sites: Vec<GatedSite>,
    released_cards: BTreeSet<(usize, usize)>,
    /// The test's own connection to the database.
    pub store: Store,
    database: Database,
}

impl CrawlerFleet {
    /// A fleet without crawlers, on an empty database. Each crawler started later makes this many visits at once.
    pub async fn new(concurrency: usize) -> Self {
        let database = Database::postgres().await;
        let store = Store::open(&store_options(database.url())).await.unwrap();
        let account = store.connection().execute_unprepared(AUDIT_TRIGGERS);
        account.await.unwrap();
        Self {
            running: BTreeMap::new(),
            killed: BTreeSet::new(),
            concurrency,
            sites: Vec::new(),
            released_cards: BTreeSet::new(),
            store,
            database,
        }
    }

    /// Adds a site; returns its number.
    pub fn add_site(&mut self, site: GatedSite) -> usize {
        self.sites.push(site);
        self.sites.len() - 1
    }

    /// Every card of every site, as numbers.
    pub fn card_indexes(&self) -> Vec<(usize, usize)> {
        let cards =
            |(site, at): (usize, &GatedSite)| (0..at.gates.len()).map(move |card| (site, card));
        self.sites.iter().enumerate().flat_map(cards).collect()
    }

    /// The key of a site's domain.
    pub fn domain_key(&self, site: usize) -> i64 {
        self.sites[site].domain
    }

    /// The URL of a card.
    pub fn card_url(&self, site: usize, card: usize) -> String {
        self.sites[site].origin.url(&card_path(card))
    }

    /// Starts another crawler; returns its name once it crawls.
    pub async fn start_crawler(&mut self) -> String {
        let name = format!("crawler-{}", self.running.len() + self.killed.len());
        let setup = RegistrySetup::new()
            .with_database(&format!("{}?application_name={name}", self.database.url()))
            .with_argument("--roles")
            .with_argument("crawler")
            .with_config_lines(&format!(
                "concurrency = {}
contact = \"https://{name}/\"",
                self.concurrency
            ));
        let (program, _) = start_serving(setup.serve_command()).await;
        self.running.insert(
            name.clone(),
            Crawler {
                program,
                _setup: setup,
            },
        );
        name
    }

    /// Kills a crawler, and waits until the database has finished its statements: each one has taken effect or never
    /// will.
    pub async fn kill_crawler(&mut self, name: &str) {
        let ended = self.running.remove(name).unwrap().program.kill().await;
        assert_eq!(
            ended.status.code(),
            None,
            "the process did not end by the kill: {ended:?}"
        );
        self.killed.insert(name.to_owned());
        eventually(
            "the connections of the killed crawler are closed",
            || async { self.connection_states(name).await.is_empty().then_some(()) },
        )
        .await;
    }

    /// Stops a crawler with SIGSTOP, but not in the middle of a transaction, whose locks would block all others.
    pub async fn suspend(&self, name: &str) {
        let program = &self.running[name].program;
        eventually("the crawler is stopped and holds no lock", || async {
            program.suspend();
            let idle = |state: &String| state == "idle";
            if self.connection_states(name).await.iter().all(idle) {
                return Some(());
            }
            program.resume();
            None
        })
        .await;
    }

    /// Continues a stopped crawler.
    pub fn resume(&self, name: &str) {
        self.running[name].program.resume();
    }

    /// Whether that crawler was killed.
    pub fn is_killed(&self, name: &str) -> bool {
        self.killed.contains(name)
    }

    /// The current state of each database connection of a crawler.
    async fn connection_states(&self, name: &str) -> Vec<String> {
        let query = format!(
            "SELECT application_name AS crawler, COALESCE(state, '') AS what FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = '{name}'"
        );
        let lines = self.query_rows(&query).await;
        lines.into_iter().map(|line| line.what).collect()
    }

    async fn query_rows(&self, query: &str) -> Vec<AuditRow> {
        let connection = self.store.connection();
        let statement = Statement::from_string(connection.get_database_backend(), query);
        AuditRow::find_by_statement(statement)
            .all(connection)
            .await
            .unwrap()
    }

    /// The crawlers that leased a site's visit, in order of time.
    pub async fn lease_holders(&self, site: usize) -> Vec<String> {
        let query = format!(
            "SELECT crawler, '' AS what FROM crew_leases WHERE domain = {} ORDER BY number",
            self.domain_key(site)
        );
        let lines = self.query_rows(&query).await;
        lines.into_iter().map(|line| line.crawler).collect()
    }

    /// The crawlers that stored an attempt, by URL and in order of time.
    pub async fn attempt_crawlers_by_url(&self) -> BTreeMap<String, Vec<String>> {
        let query = "SELECT crawler, url AS what FROM crew_kept ORDER BY number";
        let mut stored_by: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.query_rows(query).await {
            stored_by.entry(line.what).or_default().push(line.crawler);
        }
        stored_by
    }

    /// Waits until attempts for that many URLs are stored.
    pub async fn wait_for_stored_attempts(&self, count: usize) {
        eventually("the attempts are stored", || async {
            (self.attempt_crawlers_by_url().await.len() >= count).then_some(())
        })
        .await;
    }

    /// The sites whose visits are leased to that crawler.
    pub async fn leased_sites(&self, name: &str) -> Vec<usize> {
        let query = format!(
            "SELECT crawler, CAST(domain AS TEXT) AS what FROM crew_leases \
             JOIN domains ON domains.id = domain AND domains.lease = crew_leases.lease WHERE crawler = '{name}'"
        );
        let lines = self.query_rows(&query).await;
        let leased: BTreeSet<i64> = lines
            .iter()
            .map(|line| line.what.parse().unwrap())
            .collect();
        (0..self.sites.len())
            .filter(|site| leased.contains(&self.domain_key(*site)))
            .collect()
    }

    /// Expires the leases of these sites' visits, and no others.
    pub async fn expire_leases(&self, sites: &[usize]) {
        let domains = sites.iter().map(|site| self.domain_key(*site));
        domain::Entity::update_many()
            .col_expr(domain::Column::LeasedUntil, Expr::value(1_i64))
            .filter(domain::Column::Id.is_in(domains))
            .filter(domain::Column::Lease.is_not_null())
            .exec(self.store.connection())
            .await
            .unwrap();
    }

    /// The crawlers that requested a card, in order of time.
    pub fn requesting_crawlers(&self, site: usize, card: usize) -> Vec<String> {
        let requests = self.sites[site].origin.requests_to(&card_path(card));
        let name = |agent: &str| {
            let contact = agent.split_once("https://")?.1;
            Some(contact.split_once('/')?.0.to_owned())
        };
        let requesters = requests.iter().map(|request| {
            let agent = request.header("user-agent").unwrap_or_default();
            name(agent).unwrap_or_else(|| panic!("nobody's: {request:?}"))
        });
        requesters.collect()
    }

    /// The requests of running crawlers whose responses are held.
    pub fn pending_requests(&self) -> Vec<PendingRequest> {
        let unanswered = self.card_indexes().into_iter();
        let unanswered = unanswered.filter(|card| !self.released_cards.contains(card));
        let held = unanswered.filter_map(|(site, card)| {
            let by = self.requesting_crawlers(site, card).pop()?;
            (self.running.contains_key(&by)).then_some(PendingRequest {
                site,
                card,
                crawler: by,
            })
        });
        held.collect()
    }

    /// Waits until `find` finds something in the origins' requests, and returns it.
    ///
    /// # Panics
    ///
    /// If it finds nothing before [`DEADLINE`]; the message lists all requests.
    pub async fn wait_for_requests<T>(&self, find: impl Fn(&Self) -> Option<T>) -> T {
        let origins = self.sites.iter().map(|site| &site.origin);
        let mut arrivals: Vec<_> = origins.map(Origin::subscribe_requests).collect();
        let waited = timeout(DEADLINE, async {
            loop {
                if let Some(found) = find(self) {
                    return found;
                }
                let changes = arrivals
                    .iter_mut()
                    .map(|arrival| Box::pin(arrival.changed()));
                select_all(changes).await.0.unwrap();
            }
        });
        waited.await.unwrap_or_else(|_| {
            let cards = self.card_indexes().into_iter();
            let asked: BTreeMap<_, _> = cards
                .map(|at| (at, self.requesting_crawlers(at.0, at.1)))
                .collect();
            panic!(
                "the expected request never arrived; released: {:?}, requests: {asked:?}",
                self.released_cards
            )
        })
    }

    /// Releases all held and future responses for a card.
    pub fn release_responses(&mut self, site: usize, card: usize) {
        self.sites[site].gates[card].open();
        self.released_cards.insert((site, card));
    }

    /// Releases the responses for all cards but those of some sites.
    pub fn release_all_except(&mut self, sites: &[usize]) {
        for (site, card) in self.card_indexes() {
            if !sites.contains(&site) {
                self.release_responses(site, card);
            }
        }
    }
}
