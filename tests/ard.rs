//! ARD: the registry's operations and catalog as clients see them, over real sockets, with agents of proved domains.

mod api;
mod authority;
mod client;
mod federation;
mod surfaces;
mod well_known_catalogs;

use std::net::TcpListener;
use std::sync::Arc;

use a2a_registry_api::{Act, AgentPatch};
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::collections::{content, create_account, patch_agent, put_collection, put_group};
use crate::ownership::OwnershipSetup;
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::exchange::ValidatingProxy;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse};

/// Who may see an agent of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Everybody,
    Accounts,
    Group,
    Nobody,
}

/// The agents: the name of each, who sees it, its tags, and how well it fits "parcel tracking".
const AGENTS: [(&str, Audience, &[&str], usize); 14] = [
    (
        "Alpha Parcels",
        Audience::Everybody,
        &["logistics", "Parcels"],
        5,
    ),
    ("Beta Parcels", Audience::Everybody, &["logistics"], 4),
    ("Gamma Parcels", Audience::Accounts, &["logistics"], 4),
    ("Delta Parcels", Audience::Everybody, &["parcels"], 3),
    (
        "Epsilon Parcels",
        Audience::Group,
        &["logistics", "secret"],
        3,
    ),
    ("Zeta Parcels", Audience::Everybody, &["logistics"], 2),
    (
        "Eta Parcels",
        Audience::Nobody,
        &["logistics", "suspended"],
        5,
    ),
    ("Theta Parcels", Audience::Accounts, &["internal"], 2),
    ("Iota Parcels", Audience::Everybody, &["logistics"], 1),
    ("Kappa Parcels", Audience::Everybody, &[], 1),
    ("Lambda Weather", Audience::Everybody, &["weather"], 0),
    ("Mu Weather", Audience::Group, &["weather", "secret"], 0),
    ("Nu Parcels", Audience::Everybody, &["logistics"], 1),
    ("Xi Parcels", Audience::Everybody, &["logistics"], 1),
];

/// A caller: its name, and the header of its token.
#[derive(Debug, Clone)]
struct TestCaller {
    name: &'static str,
    token: Option<String>,
}

/// A registry that serves, with those agents and four callers.
struct ArdRegistry {
    inner: InProcessRegistry,
    api: RegistryClient,
    identities: [TestCaller; 4],
    shutdown: CancellationToken,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
}

/// The domain of an agent of the registry that most tests have.
fn domain(number: usize) -> String {
    domain_of("d", number)
}

/// The domain of an agent of the registry whose domains begin so.
fn domain_of(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:02}.agents-test.com")
}

/// The identifier of an agent, by its place in [`AGENTS`].
fn urn(number: usize) -> String {
    urn_of("d", number)
}

fn urn_of(prefix: &str, number: usize) -> String {
    let name = AGENTS[number].0.to_lowercase().replace(' ', "-");
    format!("urn:air:{}:agents:{name}", domain_of(prefix, number))
}

fn card(prefix: &str, number: usize) -> Vec<u8> {
    let (name, _, tags, fit) = AGENTS[number];
    let skills: Vec<Value> = (0..fit.max(1))
        .map(|skill| {
            let subject = if fit == 0 {
                "weather forecast"
            } else {
                "parcel tracking"
            };
            json!({
                "id": format!("skill-{skill}"),
                "name": format!("{subject} {skill}"),
                "description": format!("Does {subject} in way {skill}."),
                "tags": if skill == 0 { tags } else { &[] },
                "examples": [format!("Example {skill} of {name}?")],
            })
        })
        .collect();
    json!({
        "protocolVersion": "0.3.0",
        "name": name,
        "description": format!("{name} answers questions."),
        "url": format!("https://{}/a2a", domain_of(prefix, number)),
        "preferredTransport": "JSONRPC",
        "version": format!("1.{number}.0"),
        "provider": {"organization": "Orchard", "url": "https://orchard.example/"},
        "capabilities": {"streaming": number.is_multiple_of(2)},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    })
    .to_string()
    .into_bytes()
}

impl ArdRegistry {
    async fn new(url: &str) -> Self {
        Self::with(url, ValidatingProxy::new().await, "d", |_| ()).await
    }

    /// A registry behind that proxy, whose domain names begin with the prefix.
    async fn with(
        url: &str,
        proxy: ValidatingProxy,
        prefix: &str,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, public) = (listener.local_addr().unwrap(), proxy.url());
        let registry = InProcessRegistry::with_config(url, |config| {
            config.server.listen = address;
            config.server.public_url = public;
            configure(config);
        })
        .await;
        let setup = OwnershipSetup::with_registry(registry);
        let owner = setup.create_publisher("orchard").await;
        for number in 0..AGENTS.len() {
            let domain = domain_of(prefix, number);
            let view = setup.register(&owner, &domain).await;
            setup
                .registry
                .crawl_domain(&domain, OriginResponse::Card(card(prefix, number)))
                .await;
            setup.place_standing_record(&view);
            domain_verify(&setup.registry.app, &owner, &domain)
                .await
                .unwrap();
            let agent = setup.registry.agent(&domain).await;
            if setup.registry.find_open_review(agent.id).await.is_some() {
                setup.registry.approve_open_review(agent.id).await;
            }
            // Every agent changed at another time.
            setup.registry.advance(time::Duration::minutes(1));
        }
        let registry = setup.registry;
        let unproved =
            crate::support::in_process_registry::card_bytes("Omikron", "Measures noise.");
        let domain = "unproved.agents-test.com";
        registry.register_domain(domain).await;
        registry
            .crawl_domain(domain, OriginResponse::Card(unproved))
            .await;
        registry
            .approve_open_review(registry.agent(domain).await.id)
            .await;
        let identities = identities(&registry).await;
        restrict(&registry, prefix).await;
        registry.catch_up().await;
        let shutdown = CancellationToken::new();
        let serving = a2a_registry_server::serve::run_server(
            Arc::clone(&registry.app),
            listener,
            shutdown.clone(),
            Arc::new(Metrics::new()),
        );
        Self {
            api: RegistryClient::new(&format!("http://{address}")).with_proxy(proxy),
            inner: registry,
            identities,
            shutdown,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// A request of that caller.
    async fn ask(
        &self,
        who: &TestCaller,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> ApiResponse {
        let mut request = self.api.request(method, path);
        if let Some(token) = &who.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        ApiResponse::send(request).await
    }

    async fn post(&self, who: &TestCaller, path: &str, body: &Value) -> Value {
        self.ask(who, Method::POST, path, Some(body))
            .await
            .expect_status(200)
    }

    async fn get(&self, who: &TestCaller, path: &str) -> Value {
        self.ask(who, Method::GET, path, None)
            .await
            .expect_status(200)
    }

    /// The identifiers of the agents that a caller sees, by the table of the tests.
    fn visible(&self, who: &TestCaller) -> Vec<String> {
        let sees = |audience: Audience| match audience {
            Audience::Everybody => true,
            Audience::Accounts => who.token.is_some(),
            Audience::Group => matches!(who.name, "member" | "curator"),
            Audience::Nobody => false,
        };
        let numbers = (0..AGENTS.len()).filter(|number| sees(AGENTS[*number].1));
        let mut urns: Vec<String> = numbers.map(urn).collect();
        urns.sort_unstable();
        urns
    }

    fn anonymous(&self) -> &TestCaller {
        &self.identities[0]
    }

    fn curator(&self) -> &TestCaller {
        &self.identities[3]
    }

    async fn stop(self) {
        self.shutdown.cancel();
    }
}

/// Anonymous, a reader, a member of the group, and a curator.
async fn identities(registry: &InProcessRegistry) -> [TestCaller; 4] {
    let named = async |name: &'static str, role: Role| {
        create_account(registry, name, role).await;
        let new = a2a_registry_api::NewToken {
            account: name.into(),
            name: "a test".into(),
            ..a2a_registry_api::NewToken::default()
        };
        let made = token_create(&registry.app, &registry.admin, &new)
            .await
            .unwrap();
        TestCaller {
            name,
            token: Some(made.secret),
        }
    };
    let all = [
        TestCaller {
            name: "anonymous",
            token: None,
        },
        named("reader", Role::Reader).await,
        named("member", Role::Reader).await,
        named("curator", Role::Curator).await,
    ];
    put_group(registry, "inner", &["member"]).await;
    all
}

/// Gives each agent its audience.
async fn restrict(registry: &InProcessRegistry, prefix: &str) {
    let whole = content("tag:logistics", None);
    let inner = content("tag:secret", Some(&["inner"]));
    for (name, content) in [("freight", whole), ("inside", inner)] {
        put_collection(registry, &registry.admin, name, &content)
            .await
            .unwrap();
    }
    for (number, (_, audience, _, _)) in AGENTS.iter().enumerate() {
        let id = registry.agent(&domain_of(prefix, number)).await.id;
        let visibility = match audience {
            Audience::Everybody => continue,
            Audience::Nobody => {
                let act = Act {
                    reason: "a test".into(),
                    hold: None,
                };
                agent_suspend(&registry.app, &registry.admin, &id.to_string(), &act)
                    .await
                    .unwrap();
                continue;
            }
            Audience::Accounts => Visibility::Internal,
            Audience::Group => Visibility::Restricted,
        };
        let groups = (*audience == Audience::Group).then(|| vec!["inner".to_owned()]);
        let change = AgentPatch {
            visibility: Some(visibility),
            groups,
            ..AgentPatch::default()
        };
        patch_agent(registry, &registry.admin, id, &change)
            .await
            .unwrap();
    }
}

/// The identifiers of results or items.
fn identifiers(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["identifier"].as_str().unwrap().to_owned())
        .collect()
}
