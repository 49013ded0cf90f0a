//! Clients of the processes: they write through the proxy in front, read from each process, and record what every
//! answer said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use a2a_registry_store::Executor as _;
use a2a_registry_store::entity::event;
use a2a_registry_store::events::highest_event_seq;
use reqwest::{Method, RequestBuilder};
use sea_orm::{ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _};
use serde_json::{Value, json};
use uuid::Uuid;

use super::cluster::{Clients, FrontAnswer, REPLICAS};
use super::truth::{Claim, Property, Reader, Truth};
use crate::support::api::RegistryClient;
use crate::support::polling::{eventually, sleep_between_samples};
use crate::support::seeded_rng::SeededRng;

/// Number of clients that write. Each has agents of its own, so that the order of its acts is theirs.
pub const WRITERS: usize = 2;
/// The pause of every client between its rounds: the processes are to be disturbed, not overloaded.
const PAUSE: Duration = Duration::from_millis(100);
/// Commits that are remembered to measure how far an index is behind.
const MAX_COMMITS: usize = 10_000;

/// Numbers of what has happened.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answers of reads, which all are judged.
    pub answers: AtomicU64,
    /// Reads without an answer.
    pub unanswered: AtomicU64,
    /// Writes that were acknowledged.
    pub acknowledged: AtomicU64,
    /// Writes of which nobody knows whether they had an effect.
    pub unknown: AtomicU64,
}

/// What all clients share.
pub struct Scene {
    /// The connections.
    pub clients: Clients,
    /// The cards to register.
    pub urls: Vec<String>,
    next_url: AtomicUsize,
    next_round: AtomicU64,
    /// Set to end all clients.
    pub ended: AtomicBool,
    /// The approved agents.
    pub agents: Mutex<Vec<Uuid>>,
    /// Acknowledged registrations.
    pub registered: Mutex<BTreeSet<String>>,
    claims: Mutex<Vec<Claim>>,
    /// The events that each replica has given, in that order.
    pub followed: [Mutex<Vec<i64>>; REPLICAS],
    /// When the commit of an agent's event was known, and its number.
    commits: Mutex<VecDeque<(Instant, i64)>>,
    /// The longest time for which an undisturbed replica did not show a commit that was known.
    pub max_lag: Mutex<Duration>,
    /// Numbers of answers and writes.
    pub counts: Counts,
}

/// Sends a read. `None` if there is no answer, or one that says to try again.
///
/// # Panics
///
/// If it is answered in another way.
async fn read(request: RequestBuilder) -> Option<(u16, Vec<u8>)> {
    let response = request.send().await.ok()?;
    let (status, url) = (response.status().as_u16(), response.url().clone());
    let body = response.bytes().await.ok()?.to_vec();
    match status {
        200 | 404 => Some((status, body)),
        408 | 502 | 503 | 504 => None,
        _ => panic!("{url}: {status}: {}", String::from_utf8_lossy(&body)),
    }
}

/// The number in the label `round` of an agent or hit.
fn round(agent: &Value) -> u64 {
    let label = agent["labels"]["round"].as_str();
    label.map_or(0, |label| label.parse().unwrap())
}

impl Scene {
    /// A scene with these connections and cards.
    pub fn new(clients: Clients, urls: Vec<String>) -> Self {
        Self {
            clients,
            urls,
            next_url: AtomicUsize::new(0),
            next_round: AtomicU64::new(1),
            ended: AtomicBool::new(false),
            agents: Mutex::default(),
            registered: Mutex::default(),
            claims: Mutex::default(),
            followed: Default::default(),
            commits: Mutex::default(),
            max_lag: Mutex::default(),
            counts: Counts::default(),
        }
    }

    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    /// The last event in the database.
    async fn last_event(&self) -> i64 {
        highest_event_seq(&self.clients.store).await.unwrap()
    }

    /// The last event about an agent in the database. Indexes may apply others later.
    async fn last_agent_event(&self) -> i64 {
        let events = event::Entity::find()
            .filter(event::Column::AgentId.is_not_null())
            .order_by_desc(event::Column::Seq);
        let last = events.one(self.clients.store.connection()).await.unwrap();
        last.map_or(0, |last| last.seq)
    }

    /// The last event that the index of a replica has applied.
    async fn applied_seq(&self, replica: usize) -> Option<i64> {
        let api = &self.clients.replicas[replica];
        let (_, body) = read(api.admin_request(Method::GET, "/metrics")).await?;
        let text = String::from_utf8(body).unwrap();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix("a2a_registry_index_applied_seq "));
        value.map(|value| value.parse().unwrap())
    }

    /// Notes the newest commit, and how far a replica is behind those that were known before it was asked.
    async fn measure_lag(&self, replica: usize) -> Option<i64> {
        let newest = self.last_agent_event().await;
        let is_disturbed = || self.clients.disturbed[replica].load(Ordering::Acquire);
        let was_disturbed = is_disturbed();
        let asked = Instant::now();
        {
            let mut commits = self.commits.lock().unwrap();
            if commits.back().is_none_or(|(_, last)| *last < newest) {
                commits.push_back((asked, newest));
            }
            if commits.len() > MAX_COMMITS {
                commits.pop_front();
            }
        }
        let applied = self.applied_seq(replica).await?;
        if !was_disturbed && !is_disturbed() {
            let commits = self.commits.lock().unwrap();
            let missing = commits.iter().find(|(_, seq)| *seq > applied);
            let lag = missing.map(|(known, _)| asked.saturating_duration_since(*known));
            let mut max_lag = self.max_lag.lock().unwrap();
            *max_lag = (*max_lag).max(lag.unwrap_or_default());
        }
        Some(applied)
    }

    /// Waits until a replica is ready and shows every agent as it is now.
    pub async fn wait_until_caught_up(&self, replica: usize) {
        let last = self.last_agent_event().await;
        eventually("the replica has caught up", || async {
            let api = &self.clients.replicas[replica];
            let (status, _) = read(api.request(Method::GET, "/readyz")).await?;
            (status == 200 && self.applied_seq(replica).await? >= last).then_some(())
        })
        .await;
    }

    /// The agents that anyone finds, with their rounds.
    pub async fn search_agent_rounds(&self, api: &RegistryClient) -> Option<BTreeMap<Uuid, u64>> {
        let path = "/v1/agents?sort=name&page_size=100&fields=labels";
        let (_, body) = read(api.request(Method::GET, path)).await?;
        Some(self.parse_hits(&body))
    }

    fn parse_hits(&self, body: &[u8]) -> BTreeMap<Uuid, u64> {
        self.counts.answers.fetch_add(1, Ordering::Relaxed);
        let answer: Value = serde_json::from_slice(body).unwrap();
        let hits = answer["agents"].as_array().unwrap();
        assert_eq!(answer["total"], hits.len(), "{answer}");
        let hit = |hit: &Value| {
            (
                hit["id"].as_str().unwrap().parse::<Uuid>().unwrap(),
                round(hit),
            )
        };
        hits.iter().map(hit).collect()
    }

    /// Records a claim for each agent: those that were found, and those known before the question that were not.
    fn claim_found(
        &self,
        known: &[Uuid],
        found: &BTreeMap<Uuid, u64>,
        bounds: (i64, i64),
        reader: Option<Reader>,
    ) {
        let all: BTreeSet<Uuid> = known.iter().chain(found.keys()).copied().collect();
        for agent in all {
            self.claim_agent(agent, found.get(&agent).copied(), bounds, reader, "search");
        }
    }

    /// Records that an agent was shown with this round, or not shown.
    fn claim_agent(
        &self,
        agent: Uuid,
        round: Option<u64>,
        (low, high): (i64, i64),
        reader: Option<Reader>,
        source: &'static str,
    ) {
        let shown = (Property::Shown, u64::from(round.is_some()));
        let round = round.map(|round| (Property::Round, round));
        let claims = [shown].into_iter().chain(round);
        let claims = claims.map(|(property, value)| Claim {
            agent,
            property,
            value,
            low,
            high,
            reader,
            source,
        });
        self.claims.lock().unwrap().extend(claims);
    }

    fn acknowledged_agents(&self) -> Vec<Uuid> {
        self.agents.lock().unwrap().clone()
    }

    /// Counts the answer or its absence.
    fn counted<T>(&self, answer: Option<T>) -> Option<T> {
        let counts = &self.counts;
        let counter = match answer {
            Some(_) => &counts.answers,
            None => &counts.unanswered,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Reads from one replica, over and over: searches, an agent, its card, and events.
    pub async fn read_from_replica(&self, replica: usize, mut rng: SeededRng) {
        let api = &self.clients.replicas[replica];
        while self.goes_on() {
            sleep_between_samples(PAUSE).await;
            // While the database is away, the process does not say how far it is, but what it shows is judged.
            let low = self.measure_lag(replica).await.unwrap_or_default();
            let reader = |view| Some(Reader { replica, view });
            let known = self.acknowledged_agents();
            if let Some(found) = self.search_agent_rounds(api).await {
                let bounds = (low, self.last_event().await);
                self.claim_found(&known, &found, bounds, reader("searches"));
            }
            if !known.is_empty() {
                let agent = known[rng.next_below(known.len())];
                let path = format!("/v1/agents/{agent}");
                if let Some((status, body)) =
                    self.counted(read(api.request(Method::GET, &path)).await)
                {
                    let shown: Option<Value> =
                        (status == 200).then(|| serde_json::from_slice(&body).unwrap());
                    let round = shown.map(|agent| round(&agent));
                    let bounds = (low, self.last_event().await);
                    self.claim_agent(agent, round, bounds, reader("agents"), "agent");
                }
                let request = api.request(Method::GET, &format!("{path}/card"));
                if let Some((status, _)) = self.counted(read(request).await) {
                    let claim = Claim {
                        agent,
                        property: Property::Shown,
                        value: u64::from(status == 200),
                        low,
                        high: self.last_event().await,
                        reader: reader("cards"),
                        source: "card",
                    };
                    self.claims.lock().unwrap().push(claim);
                }
            }
            self.follow_events(replica).await;
        }
    }

    /// Follows the events of a replica up to the last one in the database.
    pub async fn wait_until_followed(&self, replica: usize) {
        let last = self.last_event().await;
        eventually("the replica has given every event", || async {
            self.follow_events(replica).await;
            let followed = self.followed[replica].lock().unwrap();
            (followed.last() >= Some(&last)).then_some(())
        })
        .await;
    }

    /// Reads the next page of events from a replica.
    async fn follow_events(&self, replica: usize) {
        let after = self.followed[replica].lock().unwrap().last().copied();
        let after = after.unwrap_or_default();
        let path = format!("/v1/events?after={after}&page_size=100");
        let request = self.clients.replicas[replica].admin_request(Method::GET, &path);
        let Some((_, body)) = self.counted(read(request).await) else {
            return;
        };
        let page: Value = serde_json::from_slice(&body).unwrap();
        let events = page["events"].as_array().unwrap();
        let seqs = events.iter().map(|event| event["seq"].as_i64().unwrap());
        self.followed[replica].lock().unwrap().extend(seqs);
    }

    /// Searches through the proxy in front, over and over.
    pub async fn read_through_front(&self) {
        let path = "/v1/agents?sort=name&page_size=100&fields=labels";
        while self.goes_on() {
            sleep_between_samples(PAUSE).await;
            let known = self.acknowledged_agents();
            let answer = self.clients.send_to_any(Method::GET, path, None).await;
            let Some(FrontAnswer { status, body, .. }) = self.counted(answer) else {
                continue;
            };
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            let found = self.parse_hits(&body);
            // Any replica may have answered, each behind in its own way.
            self.claim_found(&known, &found, (0, self.last_event().await), None);
        }
    }

    /// Sends a write through the proxy in front, and counts it. The answer comes with the last events before and
    /// after.
    async fn write(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Option<(FrontAnswer, (i64, i64))> {
        let low = self.last_event().await;
        let answer = self.clients.send_to_any(method, path, Some(body)).await;
        let counter = match answer {
            Some(_) => &self.counts.acknowledged,
            None => &self.counts.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Some((answer?, (low, self.last_event().await)))
    }

    /// Registers, suspends, resumes and labels, at random.
    pub async fn write_at_random(&self, writer: usize, mut rng: SeededRng) {
        // Whether an agent is on hold; nothing for one of which this client does not know.
        let mut held: BTreeMap<Uuid, bool> = BTreeMap::new();
        while self.goes_on() {
            sleep_between_samples(PAUSE).await;
            let mut own = self.acknowledged_agents();
            own.retain(|agent| agent.as_u128() % WRITERS as u128 == writer as u128);
            if own.is_empty() || rng.next_below(5) == 0 {
                self.register_next().await;
                continue;
            }
            let agent = own[rng.next_below(own.len())];
            let before = held.remove(&agent);
            let after = match before {
                Some(before) if rng.next_below(2) == 0 => {
                    self.label(agent).await;
                    Some(before)
                }
                Some(false) => self.suspend(agent).await,
                Some(true) | None => self.resume(agent).await,
            };
            if let Some(after) = after {
                held.insert(agent, after);
            }
        }
    }

    async fn register_next(&self) {
        let at = self.next_url.fetch_add(1, Ordering::Relaxed);
        // Those without an acknowledgement are registered again.
        let url = &self.urls[at % self.urls.len()];
        if self.registered.lock().unwrap().contains(url) {
            return;
        }
        let body = json!({"card_url": url});
        if let Some((answer, _)) = self.write(Method::POST, "/v1/domains", &body).await {
            assert_eq!(
                answer.status,
                202,
                "{}",
                String::from_utf8_lossy(&answer.body)
            );
            self.registered.lock().unwrap().insert(url.clone());
        }
    }

    /// Puts an agent on hold; returns whether it is, if that is known. The process that has acknowledged it must not
    /// show the agent any more.
    async fn suspend(&self, agent: Uuid) -> Option<bool> {
        let path = format!("/v1/agents/{agent}:suspend");
        let body = json!({"reason": "a test"});
        let (answer, bounds) = self.write(Method::POST, &path, &body).await?;
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        self.claim_agent(agent, None, bounds, None, "an acknowledged hold");
        let Some(replica) = answer.served_by else {
            return Some(true);
        };
        let api = &self.clients.replicas[replica];
        let low = bounds.1;
        if let Some(found) = self.search_agent_rounds(api).await {
            let bounds = (low, self.last_event().await);
            let round = found.get(&agent).copied();
            self.claim_agent(agent, round, bounds, None, "search after the hold");
        }
        let path = format!("/v1/agents/{agent}/card");
        if let Some((status, _)) = self.counted(read(api.request(Method::GET, &path)).await) {
            let claim = Claim {
                agent,
                property: Property::Shown,
                value: u64::from(status == 200),
                low,
                high: self.last_event().await,
                reader: None,
                source: "card after the hold",
            };
            self.claims.lock().unwrap().push(claim);
        }
        Some(true)
    }

    /// Lifts the hold of an agent, if it has one; returns whether it is on hold, if that is known.
    async fn resume(&self, agent: Uuid) -> Option<bool> {
        let path = format!("/v1/agents/{agent}:resume");
        let body = json!({"reason": "a test"});
        let (answer, (low, high)) = self.write(Method::POST, &path, &body).await?;
        // A conflict says that it is not on hold.
        let text = String::from_utf8_lossy(&answer.body);
        assert!([200, 409].contains(&answer.status), "{text}");
        let claim = Claim {
            agent,
            property: Property::Shown,
            value: 1,
            low,
            high,
            reader: None,
            source: "an acknowledged resumption",
        };
        self.claims.lock().unwrap().push(claim);
        Some(false)
    }

    /// Gives an agent a label that none has had before.
    async fn label(&self, agent: Uuid) {
        let round = self.next_round.fetch_add(1, Ordering::Relaxed);
        let path = format!("/v1/agents/{agent}");
        let body = json!({"labels": {"round": round.to_string()}});
        let Some((answer, (low, high))) = self.write(Method::PATCH, &path, &body).await else {
            return;
        };
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let claim = Claim {
            agent,
            property: Property::Round,
            value: round,
            low,
            high,
            reader: None,
            source: "an acknowledged label",
        };
        self.claims.lock().unwrap().push(claim);
    }

    /// Approves whatever waits for a decision.
    pub async fn approve_all(&self) {
        let list = "/v1/reviews?state=open&page_size=100";
        while self.goes_on() {
            sleep_between_samples(PAUSE).await;
            let answer = self.clients.send_to_any(Method::GET, list, None).await;
            let Some(FrontAnswer { status, body, .. }) = self.counted(answer) else {
                continue;
            };
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            let list: Value = serde_json::from_slice(&body).unwrap();
            for review in list["reviews"].as_array().unwrap() {
                let path = format!("/v1/reviews/{}:approve", review["id"].as_str().unwrap());
                let body = json!({"digest": review["digest"], "reason": "a test"});
                let Some((answer, (low, high))) = self.write(Method::POST, &path, &body).await
                else {
                    continue;
                };
                // A conflict says that an approval without an answer has had its effect.
                let text = String::from_utf8_lossy(&answer.body);
                assert!([200, 409].contains(&answer.status), "{text}");
                if answer.status == 200 {
                    let claim = Claim {
                        agent: review["agent"].as_str().unwrap().parse().unwrap(),
                        property: Property::Shown,
                        value: 1,
                        low,
                        high,
                        reader: None,
                        source: "an acknowledged approval",
                    };
                    self.claims.lock().unwrap().push(claim);
                }
            }
        }
    }

    /// Judges every claim, until the other clients have ended and `ended` says that none will follow.
    pub async fn judge_claims(self: Arc<Self>, all_ended: Arc<AtomicBool>) -> Truth {
        let mut truth = Truth::default();
        loop {
            let is_last = all_ended.load(Ordering::Acquire);
            let claims = std::mem::take(&mut *self.claims.lock().unwrap());
            truth.read_events(&self.clients.store).await;
            *self.agents.lock().unwrap() = truth.approved_agents();
            let errors = claims.iter().filter_map(|claim| truth.judge(claim).err());
            let errors: Vec<String> = errors.take(20).collect();
            assert!(errors.is_empty(), "{}", errors.join("\n"));
            if is_last {
                return truth;
            }
            sleep_between_samples(PAUSE).await;
        }
    }
}
