//! Crawler processes on one PostgreSQL, killed or stopped one at a time, and a record of who leased, fetched and stored
//! each card.
//!
//! Each crawler identifies itself on both sides: to the origins in its user agent, and to the database in the name of
//! its connections, which triggers record beside each lease and each stored attempt. No rule of the registry uses
//! either.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_store::entity::domain;
use a2a_registry_store::{Handle as _, Store};
use futures::future::select_all;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, EntityTrait as _, FromQueryResult, QueryFilter as _,
    Statement,
};
use tokio::time::timeout;

use super::DEADLINE;
use super::database::{Database, options};
use super::origin::{Gate, Origin, OriginReply};
use super::program::Program;
use super::serving::started;
use super::setup::Setup;
use super::waiting::eventually;

/// Triggers that record, for each lease and each attempt, the connection it came over.
const ACCOUNT: &str = "
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
pub struct Site {
    /// The key of the domain.
    pub domain: i64,
    origin: Origin,
    gates: Vec<Gate>,
}

impl Site {
    /// The domain with that key, with these cards on that origin.
    pub fn new(domain: i64, origin: Origin, cards: &[String]) -> Self {
        let answer = |(at, card): (usize, &String)| {
            let gate = Gate::default();
            origin.answer(&path(at), OriginReply::json(card.as_str()).held_by(&gate));
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

/// Path of a site's card with that number.
pub fn path(card: usize) -> String {
    format!("/{card}.json")
}

/// A request of a living crawler whose response is still held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRequest {
    /// The number of the site.
    pub site: usize,
    /// The number of the card.
    pub card: usize,
    /// The name of the crawler.
    pub by: String,
}

/// A row of the record.
#[derive(Debug, FromQueryResult)]
struct AccountLine {
    crawler: String,
    what: String,
}

/// A living crawler, with its process and folder.
struct Crawler {
    program: Program,
    _setup: Setup,
}

/// Crawlers on one database, and the sites they crawl. Dropping it kills them.
pub struct Crew {
    living: BTreeMap<String, Crawler>,
    dead: BTreeSet<String>,
    /// Maximum number of concurrent visits per crawler.
    concurrency: usize,
    sites: Vec<Site>,
    released: BTreeSet<(usize, usize)>,
    /// The test's own connection to the database.
    pub store: Store,
    database: Database,
}

impl Crew {
    /// A crew without crawlers, on an empty database. Each later crawler makes this many visits at once.
    pub async fn new(concurrency: usize) -> Self {
        let database = Database::postgres().await;
        let store = Store::open(&options(database.url())).await.unwrap();
        let account = store.connection().execute_unprepared(ACCOUNT);
        account.await.unwrap();
        Self {
            living: BTreeMap::new(),
            dead: BTreeSet::new(),
            concurrency,
            sites: Vec::new(),
            released: BTreeSet::new(),
            store,
            database,
        }
    }

    /// Adds a site; returns its number.
    pub fn add(&mut self, site: Site) -> usize {
        self.sites.push(site);
        self.sites.len() - 1
    }

    /// Every card of every site, as numbers.
    pub fn cards(&self) -> Vec<(usize, usize)> {
        let cards = |(site, at): (usize, &Site)| (0..at.gates.len()).map(move |card| (site, card));
        self.sites.iter().enumerate().flat_map(cards).collect()
    }

    /// The key of a site's domain.
    pub fn domain(&self, site: usize) -> i64 {
        self.sites[site].domain
    }

    /// The URL of a card.
    pub fn url(&self, site: usize, card: usize) -> String {
        self.sites[site].origin.url(&path(card))
    }

    /// Starts another crawler; returns its name once it crawls.
    pub async fn start(&mut self) -> String {
        let name = format!("crawler-{}", self.living.len() + self.dead.len());
        let setup = Setup::new()
            .database(&format!("{}?application_name={name}", self.database.url()))
            .argument("--roles")
            .argument("crawler")
            .configure(&format!(
                "concurrency = {}
contact = \"https://{name}/\"",
                self.concurrency
            ));
        let (program, _) = started(setup.command()).await;
        self.living.insert(
            name.clone(),
            Crawler {
                program,
                _setup: setup,
            },
        );
        name
    }

    /// Kills a crawler. When this returns the database has finished its work for it too: every statement it had sent
    /// has taken effect or never will.
    pub async fn kill(&mut self, name: &str) {
        let ended = self.living.remove(name).unwrap().program.kill().await;
        assert_eq!(
            ended.status.code(),
            None,
            "the process did not end by the kill: {ended:?}"
        );
        self.dead.insert(name.to_owned());
        eventually(
            "the connections of the killed crawler are closed",
            || async { self.connections(name).await.is_empty().then_some(()) },
        )
        .await;
    }

    /// Stops a crawler with SIGSTOP, but not in the middle of a transaction, whose locks would block all others.
    pub async fn freeze(&self, name: &str) {
        let program = &self.living[name].program;
        eventually("the crawler is stopped and holds no lock", || async {
            program.freeze();
            let idle = |state: &String| state == "idle";
            if self.connections(name).await.iter().all(idle) {
                return Some(());
            }
            program.thaw();
            None
        })
        .await;
    }

    /// Continues a stopped crawler.
    pub fn thaw(&self, name: &str) {
        self.living[name].program.thaw();
    }

    /// Whether that crawler was killed.
    pub fn is_dead(&self, name: &str) -> bool {
        self.dead.contains(name)
    }

    /// The current activity of the database for each connection of a crawler.
    async fn connections(&self, name: &str) -> Vec<String> {
        let query = format!(
            "SELECT application_name AS crawler, COALESCE(state, '') AS what FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = '{name}'"
        );
        let lines = self.lines(&query).await;
        lines.into_iter().map(|line| line.what).collect()
    }

    async fn lines(&self, query: &str) -> Vec<AccountLine> {
        let connection = self.store.connection();
        let statement = Statement::from_string(connection.get_database_backend(), query);
        AccountLine::find_by_statement(statement)
            .all(connection)
            .await
            .unwrap()
    }

    /// The crawlers that leased a site's visit, in that order.
    pub async fn holders(&self, site: usize) -> Vec<String> {
        let query = format!(
            "SELECT crawler, '' AS what FROM crew_leases WHERE domain = {} ORDER BY number",
            self.domain(site)
        );
        let lines = self.lines(&query).await;
        lines.into_iter().map(|line| line.crawler).collect()
    }

    /// For each URL, the crawlers that stored an attempt, in that order.
    pub async fn stored_by(&self) -> BTreeMap<String, Vec<String>> {
        let query = "SELECT crawler, url AS what FROM crew_kept ORDER BY number";
        let mut stored_by: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.lines(query).await {
            stored_by.entry(line.what).or_default().push(line.crawler);
        }
        stored_by
    }

    /// Waits until attempts for that many URLs are stored.
    pub async fn attempts_stored(&self, count: usize) {
        eventually("the attempts are stored", || async {
            (self.stored_by().await.len() >= count).then_some(())
        })
        .await;
    }

    /// The sites whose visits are leased to that crawler.
    pub async fn leased_to(&self, name: &str) -> Vec<usize> {
        let query = format!(
            "SELECT crawler, CAST(domain AS TEXT) AS what FROM crew_leases \
             JOIN domains ON domains.id = domain AND domains.lease = crew_leases.lease WHERE crawler = '{name}'"
        );
        let lines = self.lines(&query).await;
        let leased: BTreeSet<i64> = lines
            .iter()
            .map(|line| line.what.parse().unwrap())
            .collect();
        (0..self.sites.len())
            .filter(|site| leased.contains(&self.domain(*site)))
            .collect()
    }

    /// Lets the leases of these sites' visits expire, and no others.
    pub async fn expire_leases(&self, sites: &[usize]) {
        let domains = sites.iter().map(|site| self.domain(*site));
        domain::Entity::update_many()
            .col_expr(domain::Column::LeasedUntil, Expr::value(1_i64))
            .filter(domain::Column::Id.is_in(domains))
            .filter(domain::Column::Lease.is_not_null())
            .exec(self.store.connection())
            .await
            .unwrap();
    }

    /// The crawlers that requested a card, in that order.
    pub fn requesters(&self, site: usize, card: usize) -> Vec<String> {
        let requests = self.sites[site].origin.requests(&path(card));
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

    /// The requests of living crawlers whose responses are held.
    pub fn held_requests(&self) -> Vec<HeldRequest> {
        let unanswered = self.cards().into_iter();
        let unanswered = unanswered.filter(|card| !self.released.contains(card));
        let held = unanswered.filter_map(|(site, card)| {
            let by = self.requesters(site, card).pop()?;
            (self.living.contains_key(&by)).then_some(HeldRequest { site, card, by })
        });
        held.collect()
    }

    /// Waits until `find` finds something in the origins' requests, and returns it.
    ///
    /// # Panics
    ///
    /// If it finds nothing before [`DEADLINE`]; the message lists all requests.
    pub async fn requested<T>(&self, find: impl Fn(&Self) -> Option<T>) -> T {
        let origins = self.sites.iter().map(|site| &site.origin);
        let mut arrivals: Vec<_> = origins.map(Origin::arrivals).collect();
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
            let cards = self.cards().into_iter();
            let asked: BTreeMap<_, _> = cards.map(|at| (at, self.requesters(at.0, at.1))).collect();
            panic!(
                "the expected request never arrived; released: {:?}, requests: {asked:?}",
                self.released
            )
        })
    }

    /// Releases the responses for a card, from now on.
    pub fn release(&mut self, site: usize, card: usize) {
        self.sites[site].gates[card].open();
        self.released.insert((site, card));
    }

    /// Releases the responses for all cards but those of some sites.
    pub fn release_all_but(&mut self, sites: &[usize]) {
        for (site, card) in self.cards() {
            if !sites.contains(&site) {
                self.release(site, card);
            }
        }
    }
}
