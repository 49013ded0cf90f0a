//! A registry in this process without a network: the test plays the crawler and advances the clock.
//!
//! The test leases visits and delivers outcomes as the crawler does, and reads the results through the application and
//! directly from the rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_crawler::{Clock, MAX_SOURCES_PER_VISIT, VisitOutcome};
use a2a_registry_api::search_query::{LookupQuery, SearchQuery};
use a2a_registry_api::{
    Agent, AgentList, AgentPatch, DomainView, HitFields, Recrawl, Registration, Review,
    ReviewDecision,
};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::owner_updates;
use a2a_registry_core::agents::rendering::parse_rendered_agent;
use a2a_registry_core::config::Config;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::data_dir::DataDir;
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::domains::register;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::decisions::{review_approve, review_reject};
use a2a_registry_core::reviews::list::{ReviewListFilter, review_list};
use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use a2a_registry_core::search::policy_rollout::roll_out_newest_policies;
use a2a_registry_core::search::{lookup_agents, search_agents};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_core::visits::leases::release_visits;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::review::ReviewState;
use a2a_registry_server::jobs::{RulesRunEnd, redecide_by_changed_rules};
use a2a_registry_server::startup::StartupResult;
use a2a_registry_store::entity::{agent, domain, hold, source, version};
use a2a_registry_store::{Executor as _, Store, agents, domains, versions};
use sea_orm::{ConnectionTrait as _, DbBackend, EntityTrait as _};
use time::{Duration, OffsetDateTime};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::cached_agent_check::agent_show_checked;
use super::clock::ManualClock;
use super::database::store_options;
use super::polling::eventually;
use super::setup::{ADMIN_TOKEN, RegistrySetup, build_registry, try_build_registry};
use super::static_resolver::StaticResolver;

pub use super::simulated_visits::{
    CatalogExtent, OriginResponse, card_bytes, fetch_outcome, reorder_members, signed_card_bytes,
    source_card_url,
};

/// The duration of the registry's leases, in microseconds.
pub const LEASE_MICROSECONDS: i64 = 60_000_000;

/// Changes an agent, whatever its state is.
///
/// # Errors
/// Those of the registry.
pub async fn agent_patch(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    patch: &AgentPatch,
) -> Result<Agent, AppError> {
    let any = IfMatch::default();
    let changed = owner_updates::agent_patch(context, caller, agent, patch, &any).await?;
    parse_rendered_agent(&changed)
}

/// A registry under test.
pub struct InProcessRegistry {
    pub app: Arc<AppContext>,
    /// The admin, who holds [`ADMIN_TOKEN`].
    pub admin: Caller,
    /// A connection of its own, to read the rows directly.
    pub store: Store,
    /// The resolver with the names that exist.
    pub resolver: Arc<StaticResolver>,
    clock: Arc<ManualClock>,
    config: Config,
    setup: RegistrySetup,
}

impl InProcessRegistry {
    /// A registry on that database, with the default configuration.
    pub async fn new(url: &str) -> Self {
        Self::with_config(url, |_| ()).await
    }

    /// A registry on that database.
    pub async fn with_config(url: &str, configure: impl FnOnce(&mut Config)) -> Self {
        let setup = RegistrySetup::with_default_config().with_database(url);
        let mut config = setup.config();
        config.search.writer_megabytes = 15;
        // The clock jumps without a poll in between, which must not count as a lost database.
        config.store.stale_limit = 1 << 40;
        // The crawl rate must not slow the test down.
        config.crawler.least_rate = 1_000_000.0;
        configure(&mut config);
        let start = OffsetDateTime::from_unix_timestamp(1_795_000_000).unwrap();
        let names = Arc::new(StaticResolver::new());
        let registry = Self::build(config, ManualClock::new(start), names, setup).await;
        assert_eq!(registry.decide_by_rules().await, RulesRunEnd::Decided);
        registry
    }

    async fn build(
        config: Config,
        clock: Arc<ManualClock>,
        names: Arc<StaticResolver>,
        setup: RegistrySetup,
    ) -> Self {
        let StartupResult {
            context: app,
            rebuild_reason: rebuild,
            ..
        } = build_registry(&config, clock.clone(), names.clone()).await;
        assert_eq!(rebuild, None);
        let admin = authenticate_token(&app, ADMIN_TOKEN).await.unwrap();
        let store = Store::connect(&store_options(config.store.database.reveal()))
            .await
            .unwrap();
        Self {
            app,
            admin,
            store,
            resolver: names,
            clock,
            config,
            setup,
        }
    }

    /// A second process on the same database, with a folder of its own.
    pub async fn second_process(&self) -> Self {
        self.second_process_with(|_| ()).await
    }

    /// A second process on the same database, with a configuration of its own.
    pub async fn second_process_with(&self, configure: impl FnOnce(&mut Config)) -> Self {
        let setup = RegistrySetup::with_default_config();
        let mut config = self.config.clone();
        config.store.data_dir = setup.data_folder();
        configure(&mut config);
        let StartupResult { context: app, .. } =
            build_registry(&config, self.clock.clone(), self.resolver.clone()).await;
        rebuild_index(&app, || false).await.unwrap();
        Self {
            admin: authenticate_token(&app, ADMIN_TOKEN).await.unwrap(),
            app,
            store: self.store.clone(),
            resolver: self.resolver.clone(),
            clock: self.clock.clone(),
            config,
            setup,
        }
    }

    /// Ends the process without a proper shutdown, starts another one on its data, and decides by the new process's
    /// rules.
    pub async fn restart(self, configure: impl FnOnce(&mut Config)) -> Self {
        let registry = self.restart_undecided(configure).await;
        assert_eq!(registry.decide_by_rules().await, RulesRunEnd::Decided);
        registry
    }

    /// Decides all agents by the rules, as the job of the process does.
    pub async fn decide_by_rules(&self) -> RulesRunEnd {
        let cancel = CancellationToken::new();
        redecide_by_changed_rules(&self.app, &cancel).await.unwrap()
    }

    /// Restarts like [`InProcessRegistry::restart`], but stops before the new process decides anything by its rules.
    pub async fn restart_undecided(self, configure: impl FnOnce(&mut Config)) -> Self {
        let Self {
            app,
            clock,
            resolver: names,
            mut config,
            setup,
            ..
        } = self;
        await_process_end(app, &config).await;
        configure(&mut config);
        Self::build(config, clock, names, setup).await
    }

    /// Ends the process, and returns why another one with that configuration does not start on its data.
    pub async fn start_refusal(self, configure: impl FnOnce(&mut Config)) -> String {
        let Self {
            app,
            clock,
            resolver: names,
            mut config,
            setup: _setup,
            ..
        } = self;
        await_process_end(app, &config).await;
        configure(&mut config);
        let refused = try_build_registry(&config, clock, names).await;
        refused.unwrap_err().to_string()
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The time on the clock.
    pub fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Registers a domain's well-known paths as the admin.
    pub async fn register_domain(&self, domain: &str) -> DomainView {
        let what = Registration {
            domain: Some(domain.into()),
            ..Registration::default()
        };
        register::register_domain(&self.app, &self.admin, &what)
            .await
            .unwrap()
    }

    /// Registers one card URL as the admin.
    pub async fn register_card_url(&self, url: &str) -> DomainView {
        let what = Registration {
            card_url: Some(url.into()),
            ..Registration::default()
        };
        register::register_domain(&self.app, &self.admin, &what)
            .await
            .unwrap()
    }

    /// Leases every due visit and makes the outcomes, without delivering them.
    pub async fn lease_due_outcomes(
        &self,
        answer: impl Fn(&source::Model) -> OriginResponse,
    ) -> Vec<VisitOutcome> {
        let leased = lease_visits(&self.app, 1000, LEASE_MICROSECONDS)
            .await
            .unwrap();
        leased
            .into_iter()
            .map(|(domain, sources)| self.visit_outcome(&domain, &sources, &answer))
            .collect()
    }

    /// The outcome of one visit.
    pub fn visit_outcome(
        &self,
        domain: &domain::Model,
        sources: &[source::Model],
        answer: impl Fn(&source::Model) -> OriginResponse,
    ) -> VisitOutcome {
        let asked = sources.iter().take(MAX_SOURCES_PER_VISIT);
        VisitOutcome {
            domain_key: domain.id,
            lease_token: domain.lease.unwrap(),
            sources: asked
                .map(|source| fetch_outcome(source, answer(source), self.now()))
                .collect(),
        }
    }

    /// Makes every due visit and delivers the outcomes in one batch. Returns the number of visits.
    pub async fn run_due_visits(&self, answer: impl Fn(&source::Model) -> OriginResponse) -> usize {
        let group = self.lease_due_outcomes(answer).await;
        ingest_outcomes(&self.app, &group).await.unwrap();
        group.len()
    }

    /// Fetches every source of one domain now; each gets this response.
    pub async fn crawl_domain(&self, domain: &str, answer: OriginResponse) {
        self.crawl_domain_with(domain, |_| answer.clone()).await;
    }

    /// Fetches every source of one domain now, unconditionally.
    pub async fn crawl_domain_with(
        &self,
        domain: &str,
        answer: impl Fn(&source::Model) -> OriginResponse,
    ) {
        self.recrawl_domain(domain, true, answer).await;
    }

    /// Fetches every source of one domain now, conditionally.
    pub async fn crawl_conditionally(
        &self,
        domain: &str,
        answer: impl Fn(&source::Model) -> OriginResponse,
    ) {
        self.recrawl_domain(domain, false, answer).await;
    }

    async fn recrawl_domain(
        &self,
        domain: &str,
        full: bool,
        answer: impl Fn(&source::Model) -> OriginResponse,
    ) {
        self.advance(Duration::minutes(2));
        let recrawl = Recrawl { full };
        domain_recrawl(&self.app, &self.admin, domain, &recrawl)
            .await
            .unwrap();
        let mut group = Vec::new();
        let mut others = Vec::new();
        for (row, sources) in lease_visits(&self.app, 1000, LEASE_MICROSECONDS)
            .await
            .unwrap()
        {
            if row.name == domain {
                group.push(self.visit_outcome(&row, &sources, &answer));
            } else {
                others.push((row.id, row.lease.unwrap()));
            }
        }
        release_visits(&self.app, &others, std::time::Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(group.len(), 1, "{domain} was due");
        ingest_outcomes(&self.app, &group).await.unwrap();
    }

    /// Registers a domain and delivers its first card.
    pub async fn register_with_card(&self, domain: &str, card: &[u8]) -> agent::Model {
        self.register_domain(domain).await;
        assert_eq!(
            self.run_due_visits(|_| OriginResponse::Card(card.to_vec()))
                .await,
            1
        );
        self.agent(domain).await
    }

    /// Like [`InProcessRegistry::register_with_card`], with an approval by the admin.
    pub async fn register_approved_card(&self, domain: &str, card: &[u8]) -> agent::Model {
        let agent = self.register_with_card(domain, card).await;
        self.approve_open_review(agent.id).await;
        self.agent(domain).await
    }

    /// Makes the database reject updates of the rows of a table with this text in a column.
    pub async fn reject_row_updates(&self, table: &str, column: &str, text: &str) {
        let name = format!("refused_{table}");
        let on = self.store.connection();
        let when = format!("WHEN (OLD.{column} = '{text}')");
        let trigger = format!("CREATE TRIGGER {name} BEFORE UPDATE ON {table}");
        let statements = if on.get_database_backend() == DbBackend::Postgres {
            format!(
                "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'refused by a test'; END $$; \
                 {trigger} FOR EACH ROW {when} EXECUTE FUNCTION {name}()"
            )
        } else {
            format!("{trigger} {when} BEGIN SELECT RAISE(ABORT, 'refused by a test'); END")
        };
        on.execute_unprepared(&statements).await.unwrap();
    }

    /// Makes the database accept updates of these rows again.
    pub async fn allow_row_updates(&self, table: &str) {
        let on = self.store.connection();
        let of = match on.get_database_backend() {
            DbBackend::Postgres => format!("ON {table}"),
            _ => String::new(),
        };
        let drop = format!("DROP TRIGGER refused_{table} {of}");
        on.execute_unprepared(&drop).await.unwrap();
    }

    /// All agents, oldest first.
    pub async fn agents(&self) -> Vec<agent::Model> {
        agents::agents_page_by_id(&self.store, None, 100_000)
            .await
            .unwrap()
    }

    /// The only agent of a domain that is not retired.
    pub async fn agent(&self, domain: &str) -> agent::Model {
        let mut all = self.agents().await;
        all.retain(|row| row.domain == domain && row.retired_at.is_none());
        assert_eq!(all.len(), 1, "{domain} has one agent: {all:?}");
        all.remove(0)
    }

    /// Every version of an agent, oldest first.
    pub async fn versions(&self, agent: Uuid) -> Vec<version::Model> {
        let mut all = versions::version_page(&self.store, agent, true, None, 100_000)
            .await
            .unwrap();
        all.reverse();
        all
    }

    /// The holds on an agent.
    pub async fn holds(&self, agent: Uuid) -> Vec<String> {
        let rows: Vec<hold::Model> = agents::holds_of_agents(&self.store, &[agent])
            .await
            .unwrap();
        rows.into_iter()
            .map(|row| row.hold.as_str().to_owned())
            .collect()
    }

    /// Every review about an agent, oldest first, as (digest, state).
    pub async fn review_states(&self, agent: Uuid) -> Vec<(String, ReviewState)> {
        let all = self.list_reviews(None).await;
        all.into_iter()
            .filter(|review| review.agent == agent)
            .map(|review| (review.digest, review.state.known_value().unwrap()))
            .collect()
    }

    /// The open review about an agent.
    pub async fn find_open_review(&self, agent: Uuid) -> Option<Review> {
        let mut open = self.list_reviews(Some(ReviewState::Open)).await;
        open.retain(|review| review.agent == agent);
        assert!(
            open.len() <= 1,
            "an agent has several open reviews: {open:?}"
        );
        open.pop()
    }

    async fn list_reviews(&self, state: Option<ReviewState>) -> Vec<Review> {
        let wanted = ReviewListFilter {
            state,
            ..ReviewListFilter::default()
        };
        let mut page = PageRequest {
            page_size: Some(100),
            ..PageRequest::default()
        };
        let mut reviews = Vec::new();
        loop {
            let list = review_list(&self.app, &self.admin, &wanted, &page).await;
            let list = list.unwrap();
            reviews.extend(list.reviews);
            page.page_token = list.next_page_token;
            if page.page_token.is_none() {
                return reviews;
            }
        }
    }

    /// Approves the open review about an agent.
    pub async fn approve_open_review(&self, agent: Uuid) -> Review {
        let (id, decision) = self.prepare_decision(agent).await;
        review_approve(&self.app, &self.admin, id, &decision)
            .await
            .unwrap()
    }

    /// Rejects the open review about an agent.
    pub async fn reject_open_review(&self, agent: Uuid) -> Review {
        let (id, decision) = self.prepare_decision(agent).await;
        review_reject(&self.app, &self.admin, id, &decision)
            .await
            .unwrap()
    }

    async fn prepare_decision(&self, agent: Uuid) -> (Uuid, ReviewDecision) {
        let review = self
            .find_open_review(agent)
            .await
            .expect("the agent has no open review");
        let decision = ReviewDecision {
            digest: review.digest,
            reason: "looked at it".into(),
        };
        (review.id, decision)
    }

    /// The card bytes served to an anonymous caller; `None` if that caller may not see the agent.
    pub async fn public_card_bytes(&self, agent: Uuid) -> Option<Vec<u8>> {
        let answer = load_agent_card(&self.app, &Caller::default(), &agent.to_string(), None).await;
        match answer {
            Ok(card) => Some(card.bytes.to_vec()),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}");
                None
            }
        }
    }

    /// All agents that a caller finds with these filters.
    pub async fn search_all(&self, caller: &Caller, query: &SearchQuery) -> AgentList {
        let query = SearchQuery {
            page_size: Some(100),
            ..query.clone()
        };
        let bytes = search_agents(&self.app, caller, &query).await.unwrap();
        let list: AgentList = serde_json::from_slice(&bytes).unwrap();
        let listed = match list.has_only_fitting() {
            true => list.total_fitting,
            false => list.total,
        };
        assert_eq!(listed, list.agents.len() as u64);
        list
    }

    /// The ids of the agents that an anonymous caller finds.
    pub async fn publicly_found_ids(&self) -> BTreeSet<Uuid> {
        let list = self
            .search_all(&Caller::default(), &SearchQuery::default())
            .await;
        list.agents.into_iter().map(|hit| hit.summary.id).collect()
    }

    /// Applies all events to the index, and lets newer policy sets decide.
    pub async fn catch_up(&self) {
        while apply_next_events(&self.app).await.unwrap() {}
        assert!(roll_out_newest_policies(&self.app, || false).await.unwrap());
    }

    /// Lets the index catch up and compares it with the rows: the agents, their data and their URLs.
    pub async fn assert_index_matches_database(&self) {
        self.catch_up().await;
        let rows = self.agents().await;
        let living: Vec<&agent::Model> = rows
            .iter()
            .filter(|row| row.retired_at.is_none() && row.newest_version.is_some())
            .collect();
        let mut listed = BTreeSet::new();
        let mut found_by_anyone = BTreeSet::new();
        for row in &living {
            let free = self.holds(row.id).await.is_empty();
            let lasting =
                row.lifecycle == Lifecycle::Approved || row.lifecycle == Lifecycle::Deprecated;
            if free && lasting {
                let is_public = row.visibility == Visibility::Public;
                assert_eq!(
                    self.public_card_bytes(row.id).await.is_some(),
                    is_public,
                    "{row:?} is served if it is public"
                );
                listed.insert(row.id);
                if is_public && row.liveness != LivenessState::Gone {
                    found_by_anyone.insert(row.id);
                }
            } else {
                assert_eq!(
                    self.public_card_bytes(row.id).await,
                    None,
                    "{row:?} is not served"
                );
            }
        }
        assert_eq!(self.publicly_found_ids().await, found_by_anyone);

        let everything = SearchQuery {
            lifecycle: names_except_retired(ShownLifecycle::ALL.iter().map(|state| state.as_str())),
            liveness: names_except_retired(LivenessState::ALL.iter().map(|state| state.as_str())),
            fields: names_except_retired(HitFields::all_names()),
            ..SearchQuery::default()
        };
        let found = self.search_all(&self.admin, &everything).await;
        let ids: BTreeSet<Uuid> = found.agents.iter().map(|hit| hit.summary.id).collect();
        assert_eq!(ids, living.iter().map(|row| row.id).collect());
        for hit in found.agents {
            let id = hit.summary.id;
            let row = living.iter().find(|row| row.id == id).unwrap();
            let shown = row.approved_version.or(row.newest_version).unwrap();
            let shown = version::Entity::find_by_id(shown)
                .one(self.store.connection())
                .await
                .unwrap()
                .unwrap();
            assert_eq!(hit.summary.card_digest, shown.digest);
            let agent = agent_show_checked(&self.app, &self.admin, &id.to_string())
                .await
                .unwrap();
            let mut from_rows = agent.hit.summary;
            // Values that change without an event are not in an entry.
            from_rows.liveness.last_seen = None;
            from_rows.liveness.next_due = None;
            let checked_on = &hit.summary.endpoint.checked_on;
            from_rows.endpoint.checked_on.clone_from(checked_on);
            // The same holds for the URL from which the card was last fetched.
            from_rows.links.origin.clone_from(&hit.summary.links.origin);
            assert_eq!(hit.summary, from_rows);
        }
        self.assert_lookup_by_url(&living, &listed).await;
    }

    async fn assert_lookup_by_url(&self, living: &[&agent::Model], listed: &BTreeSet<Uuid>) {
        let mut domain_ids: Vec<i64> = living.iter().map(|row| row.domain_id).collect();
        domain_ids.dedup();
        for source in domains::live_sources_by_domain(&self.store, &domain_ids)
            .await
            .unwrap()
        {
            let Some(fed) = source.agent_id else { continue };
            let query = LookupQuery {
                url: Some(source_card_url(&source)),
                ..LookupQuery::default()
            };
            let found = async |caller: &Caller| match lookup_agents(&self.app, caller, &query).await
            {
                Ok(found) => {
                    let ids = found.agents.iter().map(|hit| hit.summary.id);
                    ids.collect::<Vec<Uuid>>()
                }
                Err(nobody) => {
                    assert_eq!(
                        nobody.kind,
                        ErrorKind::NotFound,
                        "{}",
                        source_card_url(&source)
                    );
                    Vec::new()
                }
            };
            // The admin also sees agents that are not listed, but no retired ones.
            let is_living = living.iter().any(|row| row.id == fed);
            let expected: Vec<Uuid> = is_living.then_some(fed).into_iter().collect();
            assert_eq!(
                found(&self.admin).await,
                expected,
                "{}",
                source_card_url(&source)
            );
            if !listed.contains(&fed) {
                let by_anyone = found(&Caller::default()).await;
                assert!(by_anyone.is_empty(), "{}", source_card_url(&source));
            }
        }
    }
}

/// Drops the application of a process, and waits until its locks are released.
async fn await_process_end(app: Arc<AppContext>, config: &Config) {
    assert_eq!(
        Arc::strong_count(&app),
        1,
        "the registry is still referenced"
    );
    drop(app);
    // A child process that another test is just starting holds a copy of the locks until its own program begins.
    let file = store_options(config.store.database.reveal()).sqlite_file();
    let folder = &config.store.data_dir;
    eventually("the locks are released", async || {
        DataDir::open(folder, file.as_deref()).ok()
    })
    .await;
}

fn names_except_retired<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names
        .filter(|name| *name != "retired")
        .map(str::to_owned)
        .collect()
}
