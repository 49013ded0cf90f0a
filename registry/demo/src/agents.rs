//! Starting and stopping the sample agents.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use a2a_crawler::Clock;
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use tokio::task::JoinHandle;

use super::agent_handler::AgentHandler;
use super::card::CardResponder;
use super::cors::allow_cross_origin;
use super::http::configure_routes;
use super::samples::{SAMPLES, SampleDefinition};

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
    pub example: &'static str,
}

/// Running sample agents. They stop with [`SampleAgents::stop`], or with the runtime they were started in.
#[derive(Debug)]
pub struct SampleAgents {
    /// In the order 0.2, 0.3, 1.0.
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

/// Binds the port of an agent, and builds its server, which responds once it is polled.
fn prepare_server(
    sample: &'static SampleDefinition,
    clock: Arc<dyn Clock>,
) -> io::Result<(SampleAgent, Server)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let script = sample.parse_script(&base_url)?;
    let card = CardResponder::new(&script.card);
    let agent = web::Data::new(AgentHandler::new(sample.generation, script, clock));
    let server = HttpServer::new(move || {
        App::new()
            .wrap(from_fn(allow_cross_origin))
            .app_data(agent.clone())
            .app_data(web::PayloadConfig::new(MAX_BODY_BYTES))
            .configure(|config| configure_routes(config, sample, &card))
    })
    .workers(1)
    .disable_signals()
    .listen(listener)?
    .run();
    let sample_agent = SampleAgent {
        name: sample.name,
        protocol: sample.protocol,
        card_url: format!("{base_url}{}", sample.card_path),
        base_url,
        example: sample.example,
    };
    Ok((sample_agent, server))
}
