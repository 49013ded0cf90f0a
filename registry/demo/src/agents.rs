//! Starting and stopping the sample agents.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use a2a_crawler::Clock;
use a2a_crawler::fetch::{AGENT_CARD_PATH, AGENT_PATH};
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::card::ServedCard;
use super::cors::allow_pages;
use super::tasks::Tasks;
use super::trip::{self, Planner};
use super::{ledger_converter, recipe, v0};

/// The longest request body an agent reads, in bytes.
const REQUEST_LIMIT: usize = 64 * 1024;

/// A running sample agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleAgent {
    /// Its name, as on its card.
    pub name: &'static str,
    /// What it speaks, such as `0.2 over JSON-RPC`.
    pub speaks: &'static str,
    /// `http://127.0.0.1:PORT`, without a slash at its end.
    pub base_url: String,
    /// Where its card lies.
    pub card_url: String,
    /// A text worth sending it.
    pub example: &'static str,
}

/// The running agents. They stop with [`SampleAgents::stop`], or with the runtime they were started in.
#[derive(Debug)]
pub struct SampleAgents {
    /// The agents: 0.2, 0.3, 1.0.
    pub agents: [SampleAgent; 3],
    running: Vec<(ServerHandle, JoinHandle<io::Result<()>>)>,
}

impl SampleAgents {
    /// Stops all agents and waits until their ports are free. Requests under way are cut off.
    pub async fn stop(self) {
        for (handle, _) in &self.running {
            handle.stop(false).await;
        }
        for (_, server) in self.running {
            // A server that failed or was cancelled is stopped as well.
            let _ = server.await;
        }
    }
}

/// Starts the three agents, each on a free loopback port. `clock` dates their tasks.
///
/// Must be called inside a tokio runtime, which the agents then live in.
///
/// # Errors
///
/// When no port can be opened.
pub async fn start_agents(clock: Arc<dyn Clock>) -> io::Result<SampleAgents> {
    let (ledger, ledger_base) = listen()?;
    let (recipe, recipe_base) = listen()?;
    let (trip, trip_base) = listen()?;
    let servers = [
        serve_ledger(ledger, &ledger_base)?,
        serve_recipe(recipe, &recipe_base, Arc::clone(&clock))?,
        serve_trip(trip, &trip_base, clock)?,
    ];
    let agent = |name, speaks, base: String, path, example| SampleAgent {
        name,
        speaks,
        card_url: format!("{base}{path}"),
        base_url: base,
        example,
    };
    Ok(SampleAgents {
        agents: [
            agent(
                "Ledger Converter",
                "0.2 over JSON-RPC",
                ledger_base,
                AGENT_PATH,
                ledger_converter::EXAMPLE,
            ),
            agent(
                "Recipe Scaler",
                "0.3 over JSON-RPC",
                recipe_base,
                AGENT_CARD_PATH,
                recipe::EXAMPLE,
            ),
            agent(
                "Trip Planner",
                "1.0 over JSON-RPC and HTTP+JSON",
                trip_base,
                AGENT_CARD_PATH,
                trip::EXAMPLE,
            ),
        ],
        running: servers
            .into_iter()
            .map(|server| (server.handle(), tokio::spawn(server)))
            .collect(),
    })
}

fn listen() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let base = format!("http://{}", listener.local_addr()?);
    Ok((listener, base))
}

fn serve_ledger(listener: TcpListener, base: &str) -> io::Result<Server> {
    let tasks = web::Data::new(Tasks::default());
    let setup = agent(ledger_converter::card(base), AGENT_PATH);
    serve(listener, move |config| {
        config
            .app_data(tasks.clone())
            .configure(&setup)
            .service(web::resource("/").route(web::post().to(answer_ledger)));
    })
}

async fn answer_ledger(tasks: web::Data<Tasks>, body: web::Bytes) -> HttpResponse {
    v0::dispatch(&body, &tasks, |incoming| {
        ledger_converter::send(incoming, &tasks)
    })
}

fn serve_recipe(listener: TcpListener, base: &str, clock: Arc<dyn Clock>) -> io::Result<Server> {
    let tasks = web::Data::new(Tasks::default());
    let clock = web::Data::from(clock);
    let setup = agent(recipe::card(base), AGENT_CARD_PATH);
    serve(listener, move |config| {
        config
            .app_data(tasks.clone())
            .app_data(clock.clone())
            .configure(&setup)
            .service(web::resource("/a2a").route(web::post().to(answer_recipe)));
    })
}

async fn answer_recipe(
    tasks: web::Data<Tasks>,
    clock: web::Data<dyn Clock>,
    body: web::Bytes,
) -> HttpResponse {
    v0::dispatch(&body, &tasks, |incoming| {
        recipe::send(incoming, &tasks, clock.now())
    })
}

fn serve_trip(listener: TcpListener, base: &str, clock: Arc<dyn Clock>) -> io::Result<Server> {
    let planner = web::Data::new(Planner::new(clock));
    let setup = agent(trip::card(base), AGENT_CARD_PATH);
    serve(listener, move |config| {
        config
            .app_data(planner.clone())
            .configure(&setup)
            // Some clients add a slash to the interface's address.
            .service(web::resource(["/rpc", "/rpc/"]).route(web::post().to(answer_trip)))
            .configure(trip::rest_routes);
    })
}

async fn answer_trip(
    planner: web::Data<Planner>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    trip::answer_rpc(&planner, &request, &body)
}

/// What every agent has: its card at one path, and a bound on what it reads.
fn agent(
    card: Value,
    path: &'static str,
) -> impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static {
    let card = ServedCard::new(&card);
    move |config| {
        let card = card.clone();
        let serve_card = move |request: HttpRequest| {
            let response = card.respond(&request);
            async move { response }
        };
        config
            .app_data(web::PayloadConfig::new(REQUEST_LIMIT))
            .service(web::resource(path).route(web::get().to(serve_card)));
    }
}

fn serve(
    listener: TcpListener,
    setup: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Server> {
    let server = HttpServer::new(move || App::new().wrap(from_fn(allow_pages)).configure(&setup))
        .workers(1)
        .disable_signals()
        .listen(listener)?;
    Ok(server.run())
}
