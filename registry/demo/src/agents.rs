//! Starting and stopping the sample agents.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use a2a_crawler::Clock;
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::agent_handler::AgentHandler;
use super::card::CardResponder;
use super::cors::allow_cross_origin;
use super::http::configure_routes;
use super::samples::{NAMED_SAMPLES, SAMPLES, SampleDefinition};

/// Largest request body that an agent reads, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleAgent {
    pub name: &'static str,
    /// Protocol version and bindings, such as `0.2 over JSON-RPC`.
    pub protocol: &'static str,
    /// `http://127.0.0.1:PORT`, without a trailing slash.
    pub base_url: String,
    pub card_url: String,
    pub card: Value,
    pub example: &'static str,
}

/// Running sample agents. They stop with [`SampleAgents::stop`], or with the runtime they were started in.
#[derive(Debug)]
pub struct SampleAgents {
    /// In the order 0.2, 0.3, 1.0; behind them those of [`start_all_sample_agents`].
    pub agents: Vec<SampleAgent>,
    servers: Vec<(ServerHandle, JoinHandle<io::Result<()>>)>,
}

impl SampleAgents {
    /// Stops all agents and waits until their ports are free. Requests in progress are aborted.
    pub async fn stop(self) {
        for (handle, _) in &self.servers {
            handle.stop(false).await;
        }
        for (_, server) in self.servers {
            // A server that failed or was cancelled has stopped as well.
            let _ = server.await;
        }
    }
}

/// Starts the three agents, each on a free loopback port, in the current tokio runtime. `clock` dates their tasks.
pub async fn start_sample_agents(clock: Arc<dyn Clock>) -> io::Result<SampleAgents> {
    let prepared = SAMPLES
        .iter()
        .map(|sample| prepare_server(sample, Arc::clone(&clock)))
        .collect::<io::Result<Vec<_>>>()?;
    let (agents, servers): (Vec<SampleAgent>, Vec<Server>) = prepared.into_iter().unzip();
    let running = servers
        .into_iter()
        .map(|server| (server.handle(), tokio::spawn(server)))
        .collect();
    Ok(SampleAgents {
        agents,
        servers: running,
    })
}

/// Starts these agents and three more on one free loopback port, each below a path of its own: so one vouch for the
/// host covers their interfaces.
pub async fn start_all_sample_agents(clock: Arc<dyn Clock>) -> io::Result<SampleAgents> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let host = format!("http://{}", listener.local_addr()?);
    let samples = SAMPLES.iter().chain(&NAMED_SAMPLES);
    let hosted = samples
        .map(|sample| {
            HostedSample::new(
                sample,
                host.clone() + &sample.path_prefix(),
                Arc::clone(&clock),
            )
        })
        .collect::<io::Result<Vec<_>>>()?;
    let agents = hosted.iter().map(HostedSample::to_sample_agent).collect();
    let server = HttpServer::new(move || {
        let app = App::new()
            .wrap(from_fn(allow_cross_origin))
            .app_data(web::PayloadConfig::new(MAX_BODY_BYTES));
        hosted.iter().fold(app, |app, hosted| {
            app.service(
                web::scope(&hosted.sample.path_prefix())
                    .app_data(hosted.handler.clone())
                    .configure(|config| configure_routes(config, hosted.sample, &hosted.responder)),
            )
        })
    })
    .workers(1)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(SampleAgents {
        agents,
        servers: vec![(server.handle(), tokio::spawn(server))],
    })
}

/// A sample with what its server needs.
#[derive(Clone)]
struct HostedSample {
    sample: &'static SampleDefinition,
    base_url: String,
    card: Value,
    responder: CardResponder,
    handler: web::Data<AgentHandler>,
}

impl HostedSample {
    fn new(
        sample: &'static SampleDefinition,
        base_url: String,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let script = sample.parse_script(&base_url)?;
        Ok(Self {
            sample,
            base_url,
            card: script.card.clone(),
            responder: CardResponder::new(&script.card),
            handler: web::Data::new(AgentHandler::new(sample.generation, script, clock)),
        })
    }

    fn to_sample_agent(&self) -> SampleAgent {
        SampleAgent {
            name: self.sample.name,
            protocol: self.sample.protocol,
            card_url: format!("{}{}", self.base_url, self.sample.card_path),
            card: self.card.clone(),
            base_url: self.base_url.clone(),
            example: self.sample.example,
        }
    }
}

/// Binds the port of an agent, and builds its server, which responds once it is polled.
fn prepare_server(
    sample: &'static SampleDefinition,
    clock: Arc<dyn Clock>,
) -> io::Result<(SampleAgent, Server)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let hosted = HostedSample::new(sample, base_url, clock)?;
    let sample_agent = hosted.to_sample_agent();
    let server = HttpServer::new(move || {
        App::new()
            .wrap(from_fn(allow_cross_origin))
            .app_data(hosted.handler.clone())
            .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
            .configure(|config| configure_routes(config, hosted.sample, &hosted.responder))
    })
    .workers(1)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok((sample_agent, server))
}
