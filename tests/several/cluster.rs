//! Three processes on one PostgreSQL, each behind a proxy of its own, and the faults that are injected.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use a2a_registry_store::{Executor as _, Store};
use reqwest::Method;
use sea_orm::ConnectionTrait as _;
use serde_json::Value;

use crate::support::api::RegistryClient;
use crate::support::database::{Database, store_options};
use crate::support::database_proxy::{DatabaseProxy, ProxyState};
use crate::support::nginx::{Nginx, NginxSite, SERVED_BY};
use crate::support::polling::sleep_between_samples;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};
use crate::support::{DEADLINE, free_port};

/// Number of processes.
pub const REPLICAS: usize = 3;

/// What happens to a process or to its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and a new start.
    Kill,
    /// SIGTERM, and a new start.
    Restart,
    /// SIGSTOP, and SIGCONT a while later.
    Pause,
    /// No bytes between the process and its database for a while.
    Cut,
    /// The database ends every session of all processes, and takes no connections for a while.
    DatabaseRestart,
}

/// Every fault, in turn.
pub const FAULTS: [Fault; 5] = [
    Fault::Kill,
    Fault::Cut,
    Fault::Pause,
    Fault::DatabaseRestart,
    Fault::Restart,
];

/// One process.
struct Replica {
    setup: RegistrySetup,
    proxy: DatabaseProxy,
    /// `None` while it is away.
    running: Option<ServingRegistry>,
}

/// What clients use of a cluster, whichever of its processes run.
pub struct Clients {
    /// Each process, without a proxy in between.
    pub replicas: Vec<RegistryClient>,
    /// Whether a process is disturbed by a fault now.
    pub disturbed: [AtomicBool; REPLICAS],
    /// The test's own connection to the database, which no fault affects.
    pub store: Store,
    /// nginx with its URL; without it, requests go to the processes in turn.
    nginx: Option<(reqwest::Client, String)>,
    turn: AtomicUsize,
}

/// An answer that came through the proxy in front.
#[derive(Debug)]
pub struct FrontAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// The replica that has answered.
    pub served_by: Option<usize>,
}

impl Clients {
    /// Sends a request of the admin to any of the processes. `None` if nobody knows whether it had an effect: the
    /// connection ended, or a process or the proxy has given up.
    pub async fn send_to_any(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<FrontAnswer> {
        let at = self.turn.fetch_add(1, Ordering::Relaxed) % REPLICAS;
        let request = match &self.nginx {
            Some((client, url)) => {
                let request = client.request(method, format!("{url}{path}"));
                request.bearer_auth(ADMIN_TOKEN).timeout(DEADLINE)
            }
            None => self.replicas[at].admin_request(method, path),
        };
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.ok()?;
        let served_by = match &self.nginx {
            Some(_) => {
                let address = response.headers().get(SERVED_BY);
                self.replica_at(address.and_then(|value| value.to_str().ok()))
            }
            None => Some(at),
        };
        let status = response.status().as_u16();
        let body = response.bytes().await.ok()?.to_vec();
        let is_unknown = matches!(status, 408 | 502 | 503 | 504);
        (!is_unknown).then_some(FrontAnswer {
            status,
            body,
            served_by,
        })
    }

    /// The replica at the last of these addresses, which nginx lists in the order in which it has tried them.
    fn replica_at(&self, addresses: Option<&str>) -> Option<usize> {
        let address = addresses?.rsplit(", ").next()?;
        let mut replicas = self.replicas.iter();
        replicas.position(|replica| replica.url.ends_with(address))
    }
}

/// The processes.
pub struct Cluster {
    replicas: Vec<Replica>,
    _nginx: Option<Nginx>,
    /// Dropped last, because it removes the database.
    _database: Database,
}

impl Cluster {
    /// Starts every process, and nginx if it is installed. Each domain may have that many agents.
    pub async fn start(agents_per_domain: usize) -> (Self, Clients) {
        let database = Database::postgres().await;
        let site = NginxSite::find();
        let ports: Vec<u16> = (0..REPLICAS).map(|_| free_port()).collect();
        let public_url = match &site {
            Some(site) => site.url(),
            None => format!("http://127.0.0.1:{}", ports[0]),
        };
        let mut replicas = Vec::new();
        for port in &ports {
            let url = format!("{}?application_name=replica", database.url());
            let proxy = DatabaseProxy::start(&url).await;
            let setup = RegistrySetup::new()
                .with_database(proxy.url())
                .with_argument("--listen")
                .with_argument(&format!("127.0.0.1:{port}"))
                .with_config_lines(&format!(
                    "least_rate = 1000.0\n[limits]\nagents_per_domain = {agents_per_domain}\n\
                     [server]\npublic_url = \"{public_url}\"\ntrusted_proxies = [\"127.0.0.1\"]"
                ));
            let running = Some(setup.start_without_proxy().await);
            replicas.push(Replica {
                setup,
                proxy,
                running,
            });
        }
        let nginx = match &site {
            Some(site) => {
                let folder = replicas[0].setup.scratch_folder();
                Some(site.start(folder, &ports).await)
            }
            None => None,
        };
        let apis = replicas.iter().flat_map(|replica| &replica.running);
        let clients = Clients {
            replicas: apis.map(|running| running.api.clone()).collect(),
            disturbed: Default::default(),
            store: Store::connect(&store_options(database.url()))
                .await
                .unwrap(),
            nginx: nginx
                .as_ref()
                .map(|nginx| (nginx.client.clone(), public_url)),
            turn: AtomicUsize::new(0),
        };
        let cluster = Self {
            replicas,
            _nginx: nginx,
            _database: database,
        };
        (cluster, clients)
    }

    /// Lets a fault happen to one replica, or to all if it is the database's, for a while. When this returns, each
    /// process runs again, but may not yet know what it has missed.
    pub async fn inject(&mut self, fault: Fault, at: usize, pause: Duration, clients: &Clients) {
        let replica = &mut self.replicas[at];
        match fault {
            Fault::Kill => {
                let ended = replica.running.take().unwrap().program.kill().await;
                assert_eq!(ended.status.code(), None, "it was not killed: {ended:?}");
                sleep_between_samples(pause).await;
                replica.running = Some(replica.setup.start_without_proxy().await);
            }
            Fault::Restart => {
                replica.running.take().unwrap().stop().await;
                replica.running = Some(replica.setup.start_without_proxy().await);
            }
            Fault::Pause => {
                let program = &replica.running.as_ref().unwrap().program;
                program.suspend();
                sleep_between_samples(pause).await;
                program.resume();
            }
            Fault::Cut => {
                replica.proxy.set_state(ProxyState::Silent);
                sleep_between_samples(pause).await;
                replica.proxy.set_state(ProxyState::Forwarding);
            }
            Fault::DatabaseRestart => {
                self.set_proxies(ProxyState::Refusing);
                let sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                                WHERE datname = current_database() AND application_name = 'replica'";
                let database = clients.store.connection();
                database.execute_unprepared(sessions).await.unwrap();
                sleep_between_samples(pause).await;
                self.set_proxies(ProxyState::Forwarding);
            }
        }
    }

    fn set_proxies(&self, state: ProxyState) {
        for replica in &self.replicas {
            replica.proxy.set_state(state);
        }
    }

    /// Ends every process, and checks that each ended properly.
    pub async fn stop(self) {
        for replica in self.replicas {
            replica.running.unwrap().stop().await;
        }
    }
}
