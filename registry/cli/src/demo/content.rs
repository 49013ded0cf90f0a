//! What a demonstration shows: accounts of every role, and agents in the states that they can have, made by the
//! ordinary API as people would make them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_card::{ProtectedHeader, SigningKey, sign_card};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{
    Act, AgentList, CreatedToken, DomainView, NewEndpointVouch, NewToken, ProofCheck, Recrawl,
    Registration, Review, ReviewDecision,
};
use a2a_registry_core::context::AppContext;
use a2a_registry_demo::{NamedHosts, SampleAgent, SampleAgents};
use a2a_registry_domain::role::Role;
use a2a_registry_http::sessions::sign_in_links::issue_sign_in_link;
use futures::future::try_join_all;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::client::Client;
use crate::client_error::not_found_as_none;
use crate::command_error::CommandError;

/// File in the data folder while the content is being made.
const UNFINISHED_FILE: &str = "demo-unfinished";
/// Time limit for one agent to reach its state.
const STATE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Days after which the tokens of the accounts expire.
const TOKEN_DAYS: u32 = 7;
/// Paths on the hosts with names.
const CARD_PATH: &str = "/.well-known/agent-card.json";
const KEYS_PATH: &str = "/keys.json";
/// The host whose domain is proved.
const PROVED_HOST: &str = "trips.example.com";

/// The state that an agent is brought into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SampleState {
    Proved,
    Unproved,
    ChangedCard,
    Waiting,
    OnHold,
}

/// Each sample by its name, with the host that serves its card; `None` for the agent's own address.
const PLACEMENTS: [(&str, Option<&str>, SampleState); 6] = [
    ("Trip Planner", Some(PROVED_HOST), SampleState::Proved),
    ("Recipe Scaler", None, SampleState::Unproved),
    ("Ledger Converter", None, SampleState::Unproved),
    (
        "Menu Translator",
        Some("menus.example.net"),
        SampleState::ChangedCard,
    ),
    (
        "Invoice Reader",
        Some("invoices.example.org"),
        SampleState::Waiting,
    ),
    (
        "Parcel Tracker",
        Some("parcels.example.org"),
        SampleState::OnHold,
    ),
];

impl SampleState {
    fn description(self, approves_all: bool) -> &'static str {
        match self {
            Self::ChangedCard | Self::Waiting if approves_all => "listed, every card is approved",
            Self::Proved => "proved domain, signed card, URN",
            Self::Unproved => "listed, domain not proved",
            Self::ChangedCard => "listed, a changed card waits",
            Self::Waiting => "waits for a review",
            Self::OnHold => "suspended by a curator",
        }
    }
}

/// An account with its token and a link that signs in once.
pub(super) struct DemoAccount {
    pub name: String,
    pub token: String,
    pub sign_in: String,
}

/// An agent, and the state that it is in.
pub(super) struct DemoAgent {
    pub sample: SampleAgent,
    pub id: Uuid,
    pub state: &'static str,
}

/// Everything that was made.
pub(super) struct DemoContent {
    /// The admin, then the other roles.
    pub accounts: Vec<DemoAccount>,
    /// Empty if the data folder has an earlier demonstration.
    pub agents: Vec<DemoAgent>,
}

/// Names of the hosts.
pub(super) fn host_names() -> Vec<&'static str> {
    PLACEMENTS.iter().filter_map(|(_, host, _)| *host).collect()
}

/// Makes the content.
pub(super) struct ContentMaker<'a> {
    pub context: &'a AppContext,
    pub url: &'a str,
    pub hosts: &'a NamedHosts,
    pub samples: &'a SampleAgents,
    /// `--approve-all`: nothing waits.
    pub approves_all: bool,
}

/// The clients of those who act.
struct Clients {
    admin: Client,
    publisher: Client,
    curator: Client,
}

impl ContentMaker<'_> {
    /// Makes accounts and, in an empty registry, everything else. `report` is told what is being made.
    pub async fn make(
        &self,
        admin_token: &str,
        report: impl Fn(&str),
    ) -> Result<DemoContent, CommandError> {
        let unfinished = self.unfinished_path();
        if unfinished.exists() {
            let folder = unfinished.parent().unwrap_or(&unfinished).display();
            return Err(CommandError::new(format!(
                "the demonstration in the data folder {folder} ended before it was complete; remove that folder, or \
                 omit --data-dir"
            )));
        }
        report("creating accounts");
        let admin = Client::new(self.url, Some(admin_token), None)?;
        let accounts = self.create_accounts(&admin, admin_token).await?;
        let client_of = |role: Role| {
            let account = accounts.iter().find(|one| one.name == role.as_str());
            Client::new(self.url, account.map(|one| one.token.as_str()), None)
        };
        let clients = Clients {
            publisher: client_of(Role::Publisher)?,
            curator: client_of(Role::Curator)?,
            admin,
        };
        let mut agents = Vec::new();
        let earlier = not_found_as_none(clients.admin.domain(PROVED_HOST).await)?;
        if earlier.is_none() {
            std::fs::write(&unfinished, "").map_err(|error| file_error(&unfinished, &error))?;
            self.serve_cards()?;
            report("registering agents, and deciding about them");
            let placed = PLACEMENTS
                .iter()
                .map(|(name, host, state)| self.place_sample(&clients, name, *host, *state));
            agents = try_join_all(placed).await?;
        }
        Ok(DemoContent { accounts, agents })
    }

    /// Marks the content as complete: a later start in the same data folder does not make it again.
    pub fn finish(&self) -> Result<(), CommandError> {
        let unfinished = self.unfinished_path();
        std::fs::remove_file(&unfinished).map_err(|error| file_error(&unfinished, &error))
    }

    fn unfinished_path(&self) -> PathBuf {
        let config = self.context.config();
        config.store.data_dir.join(UNFINISHED_FILE)
    }

    async fn create_accounts(
        &self,
        admin: &Client,
        admin_token: &str,
    ) -> Result<Vec<DemoAccount>, CommandError> {
        let own = admin.me().await?.value.token;
        let own = own.ok_or_else(|| CommandError::new("the admin token is no token"))?;
        let mut accounts = vec![DemoAccount {
            name: Role::Admin.as_str().to_owned(),
            token: admin_token.to_owned(),
            sign_in: self.sign_in_url(own.id)?,
        }];
        for role in [Role::Reader, Role::Publisher, Role::Curator, Role::Auditor] {
            let new = NewToken {
                account: role.as_str().to_owned(),
                role: Some(role),
                name: "demo".to_owned(),
                scopes: None,
                expires_in_days: Some(TOKEN_DAYS),
            };
            let CreatedToken { token, secret } = admin.create_token(&new).await?.value;
            accounts.push(DemoAccount {
                name: token.account,
                token: secret,
                sign_in: self.sign_in_url(token.id)?,
            });
        }
        Ok(accounts)
    }

    fn sign_in_url(&self, token: Uuid) -> Result<String, CommandError> {
        let path = issue_sign_in_link(self.context, token);
        let path = path.map_err(|error| CommandError::new(error.to_string()))?;
        Ok(format!("{}{path}", self.url))
    }

    /// Serves the cards of the hosts with names, that of the proved one signed.
    fn serve_cards(&self) -> Result<(), CommandError> {
        for (name, host, state) in PLACEMENTS {
            let (Some(host), sample) = (host, self.find_sample(name)?) else {
                continue;
            };
            let card = format!("{:#}\n", sample.card).into_bytes();
            let card = match state {
                SampleState::Proved => self.sign_sample_card(host, &card)?,
                _ => card,
            };
            self.hosts.set_document(host, CARD_PATH, card);
        }
        Ok(())
    }

    /// Signs a card with a new key, which is dropped, and serves the key set.
    fn sign_sample_card(&self, host: &str, card: &[u8]) -> Result<Vec<u8>, CommandError> {
        let signing_error = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("the card of {host} cannot be signed: {error}"))
        };
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|error| signing_error(&error))?;
        let key = SigningKey::from_bytes(pkcs8.as_ref(), &random)
            .map_err(|error| signing_error(&error))?;
        let header = ProtectedHeader {
            kid: key.thumbprint(),
            jku: Some(format!("https://{host}{KEYS_PATH}")),
        };
        let keys = key.public_jwks(&header.kid).into_bytes();
        self.hosts.set_document(host, KEYS_PATH, keys);
        sign_card(card, &key, &header, &random).map_err(|error| signing_error(&error))
    }

    fn find_sample(&self, name: &str) -> Result<&SampleAgent, CommandError> {
        let mut samples = self.samples.agents.iter();
        samples
            .find(|sample| sample.name == name)
            .ok_or_else(|| CommandError::new(format!("there is no sample agent {name}")))
    }

    /// Registers a sample and brings it into its state.
    async fn place_sample(
        &self,
        clients: &Clients,
        name: &str,
        host: Option<&str>,
        state: SampleState,
    ) -> Result<DemoAgent, CommandError> {
        let sample = self.find_sample(name)?;
        let registration = Registration {
            domain: host.map(str::to_owned),
            card_url: host.is_none().then(|| sample.card_url.clone()),
            approve: false,
        };
        let domain = clients.publisher.register(&registration).await?.value;
        match state {
            SampleState::Proved => self.prove_domain(clients, &domain).await?,
            SampleState::Unproved => vouch_for_endpoints(clients, &domain.domain).await?,
            _ => {}
        }
        let source = match host {
            Some(host) => format!("https://{host}/"),
            None => sample.card_url.clone(),
        };
        let id = find_agent(clients, &domain.domain, &source).await?;
        if state == SampleState::Waiting && !self.approves_all {
            wait_for_review(clients, &domain.domain, id).await?;
        } else {
            wait_until_listed(clients, &domain.domain, id).await?;
        }
        match state {
            SampleState::ChangedCard => self.change_card(clients, sample, &domain, id).await?,
            SampleState::OnHold => {
                let act = Act {
                    reason: "Customers report wrong arrival times; the provider looks into it"
                        .to_owned(),
                    hold: None,
                };
                clients.curator.act(id, "suspend", &act).await?;
            }
            _ => {}
        }
        Ok(DemoAgent {
            sample: sample.clone(),
            id,
            state: state.description(self.approves_all),
        })
    }

    /// Publishes the record that the registry asked for, and has it checked.
    async fn prove_domain(
        &self,
        clients: &Clients,
        domain: &DomainView,
    ) -> Result<(), CommandError> {
        let mut challenges = domain.challenges.iter();
        let record = challenges
            .find_map(|one| Some((one.name.as_deref()?, one.value.as_deref()?)))
            .ok_or_else(|| {
                CommandError::new(format!("{} has no record to publish", domain.domain))
            })?;
        self.hosts.add_txt_record(record.0, record.1);
        let body = json!({});
        let verified = clients.publisher.verify(&domain.domain, &body);
        let verified = verified.await?.value;
        if verified.domain.proofs.is_empty() {
            let check = verified.checks.first().map(ProofCheck::sentence);
            return Err(CommandError::new(format!(
                "{} could not be proved: {}",
                domain.domain,
                check.unwrap_or_default()
            )));
        }
        Ok(())
    }

    /// Publishes a card with another description and a further skill.
    async fn change_card(
        &self,
        clients: &Clients,
        sample: &SampleAgent,
        domain: &DomainView,
        id: Uuid,
    ) -> Result<(), CommandError> {
        let mut card = sample.card.clone();
        card["version"] = "1.1.0".into();
        card["description"] = "Translates the dishes of a menu, and names their usual ingredients \
                               and allergens."
            .into();
        if let Some(skills) = card["skills"].as_array_mut() {
            skills.push(json!({
                "id": "name-allergens",
                "name": "Name allergens",
                "description": "Names the allergens that a dish usually contains.",
                "tags": ["food", "allergens"],
                "examples": ["Which allergens are in Bacalhau à Brás?"],
            }));
        }
        let card: Vec<u8> = format!("{card:#}\n").into_bytes();
        self.hosts.set_document(&domain.domain, CARD_PATH, card);
        let recrawl = Recrawl { full: true };
        clients.curator.recrawl(&domain.domain, &recrawl).await?;
        match self.approves_all {
            true => Ok(()),
            false => wait_for_review(clients, &domain.domain, id).await,
        }
    }
}

fn file_error(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(format!("{} is not writable: {error}", path.display()))
}

async fn vouch_for_endpoints(clients: &Clients, domain: &str) -> Result<(), CommandError> {
    let vouch = NewEndpointVouch {
        reason: "sample agents on this machine".to_owned(),
    };
    clients.admin.vouch_for_endpoints(domain, &vouch).await?;
    Ok(())
}

/// Polls until there is a value.
pub(super) async fn poll<T>(
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>, CommandError>,
) -> Result<T, CommandError> {
    let deadline = Instant::now() + STATE_TIMEOUT;
    loop {
        if let Some(value) = attempt().await? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            let limit = STATE_TIMEOUT.as_secs();
            return Err(CommandError::new(format!("{what} after {limit} s")));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until the card of a source was read, and returns its agent.
async fn find_agent(clients: &Clients, domain: &str, source: &str) -> Result<Uuid, CommandError> {
    let what = format!("the card of {domain} was not read");
    poll(&what, async || -> Result<Option<Uuid>, CommandError> {
        let view = clients.admin.domain(domain).await?.value;
        let mut sources = view.sources.iter();
        let found = sources.find(|one| one.url == source);
        Ok(found.and_then(|one| one.agent))
    })
    .await
}

async fn find_open_review(
    clients: &Clients,
    domain: &str,
    id: Uuid,
) -> Result<Option<Review>, CommandError> {
    let query = [
        ("domain", domain.to_owned()),
        ("state", "open".to_owned()),
        ("page_size", "100".to_owned()),
    ];
    let open = clients.curator.reviews(&query).await?.value;
    Ok(open.reviews.into_iter().find(|review| review.agent == id))
}

async fn wait_for_review(clients: &Clients, domain: &str, id: Uuid) -> Result<(), CommandError> {
    let what = format!("no review of an agent of {domain} is open");
    let review = poll(&what, async || find_open_review(clients, domain, id).await);
    review.await.map(drop)
}

/// Waits until searches find an agent; the curator approves it where no policy does.
async fn wait_until_listed(clients: &Clients, domain: &str, id: Uuid) -> Result<(), CommandError> {
    let query = SearchQuery {
        domain: vec![domain.to_owned()],
        ..SearchQuery::default()
    };
    let what = format!("an agent of {domain} is not listed");
    let mut is_decided = false;
    poll(&what, async || -> Result<Option<()>, CommandError> {
        let hits = clients.admin.search::<AgentList>(&query).await?.value;
        if hits.agents.iter().any(|hit| hit.summary.id == id) {
            return Ok(Some(()));
        }
        if !is_decided && let Some(review) = find_open_review(clients, domain, id).await? {
            let decision = ReviewDecision {
                digest: review.digest.clone(),
                reason: "Read the card and tried the agent".to_owned(),
            };
            let decided = clients
                .curator
                .decide(review.id, "approve", &decision)
                .await;
            // A policy may have been faster, or the card may have changed: the next review is decided then.
            is_decided = decided.is_ok();
        }
        Ok(None)
    })
    .await
}
