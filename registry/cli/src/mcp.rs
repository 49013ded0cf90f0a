//! `mcp`: the registry's tools for a client of the Model Context Protocol, on standard input and output, and one to talk
//! to agents from this machine.
//!
//! The tools are the server's own: each call is passed on to `/mcp` of the registry, with the user's token. Standard output
//! carries the protocol alone.

mod batches;
mod talk;

use std::sync::Arc;

use a2a_registry_core::dialects;
use a2a_registry_http::mcp::{ToolServer, ToolSource, tools, unknown_tool};
use batches::Batches;
use clap::Args;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ResultType, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServiceExt as _};
use serde::Deserialize;
use serde_json::json;
use talk::TalkCall;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::refusal::ClientError;
use super::signals::{EndSignals, Hangup};
use super::terminal;

/// Most bytes of a message from the client.
const LINE_LIMIT: usize = 1024 * 1024;
/// Messages that are sent to agents at once; further ones wait.
const TALKS: usize = 8;
/// How much of a failure is told, in columns.
const FAILURE_COLUMNS: usize = 500;

/// What `mcp` takes.
#[derive(Args, Clone)]
pub struct McpArgs {
    /// Let `talk_to_agent` call a gRPC interface that the card names as a bare HOST:PORT without TLS
    #[arg(long)]
    plaintext: bool,
}

/// The tools of the registry, and the one of this machine.
struct StdioServer {
    client: Arc<Client>,
    /// Calls of the tool that talks, which are made where the process began: they may not change their thread.
    talks: mpsc::Sender<TalkCall>,
}

/// An answer of the registry to a call.
#[derive(Deserialize)]
struct Answer {
    result: Option<CallToolResult>,
    error: Option<ErrorData>,
}

/// Serves the client on standard input and output until it closes its side, or the process is asked to end.
pub async fn run(arguments: &McpArgs, client: Client) -> CommandResult {
    let mut signals = EndSignals::listen(Hangup::Ends)?;
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new(Batches::new(input), output);
    let transport = transport.with_max_line_length(LINE_LIMIT);
    let client = Arc::new(client);
    let (talks, mut asked) = mpsc::channel(TALKS);
    let server = StdioServer {
        client: Arc::clone(&client),
        talks,
    };
    let ended = CancellationToken::new();
    let mut serving = std::pin::pin!(serve(server, transport, ended.clone()));
    let mut talking = FuturesUnordered::new();
    loop {
        tokio::select! {
            served = &mut serving => return served,
            () = signals.next(), if !ended.is_cancelled() => ended.cancel(),
            Some(call) = asked.recv(), if talking.len() < TALKS => {
                talking.push(talk::answer(&client, call, arguments.plaintext));
            }
            Some(()) = talking.next() => {}
        }
    }
}

async fn serve<T>(server: StdioServer, transport: T, ended: CancellationToken) -> CommandResult
where
    T: rmcp::transport::Transport<RoleServer> + 'static,
{
    match ToolServer(server).serve_with_ct(transport, ended).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(CommandOutcome::Done),
            Err(error) => Err(Failure::new(format!("the protocol broke off: {error}"))),
        },
        // A client that goes before it has said anything has nothing to be told.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(CommandOutcome::Done)
        }
        Err(error) => Err(Failure::new(format!(
            "the client does not begin as the Model Context Protocol asks: {error}"
        ))),
    }
}

/// A failure as the result of a tool.
fn failed(sentence: &str) -> CallToolResult {
    let sentence = terminal::short(sentence.trim_end_matches('.'), FAILURE_COLUMNS);
    let mut characters = sentence.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(characters).chain(['.']).collect();
    CallToolResult::error(vec![ContentBlock::text(sentence)])
}

impl StdioServer {
    /// Calls a tool of the registry.
    async fn forward(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
    ) -> Result<CallToolResult, ErrorData> {
        let call = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": { "name": name, "arguments": arguments.unwrap_or_default() },
        });
        // The newest one that has no metadata in each request.
        let [_, revision, ..] = dialects::MCP;
        let answer: Answer = match self.client.mcp(revision, &call).await {
            Ok(answer) => answer.value,
            Err(error) => return Ok(failed(&self.reason(&error))),
        };
        match answer {
            Answer {
                error: Some(error), ..
            } => Err(error),
            Answer {
                result: Some(result),
                ..
            } => Ok(result),
            _ => Ok(failed(
                "the registry's answer to this call has neither result nor error",
            )),
        }
    }

    /// Sends a message to an agent.
    async fn talk(&self, arguments: Option<JsonObject>) -> CallToolResult {
        let (reply, answered) = oneshot::channel();
        let talked = match self.talks.send(TalkCall { arguments, reply }).await {
            Ok(()) => answered.await.ok(),
            Err(_) => None,
        };
        let talked = talked.unwrap_or_else(|| Err("this program is ending".to_owned()));
        talked.unwrap_or_else(|sentence| failed(&sentence))
    }

    fn reason(&self, error: &ClientError) -> String {
        match error.status() {
            Some(404 | 405) => format!(
                "the registry at {} does not serve the Model Context Protocol: its operator has turned `mcp.enabled` off, or \
                 its version has none",
                self.client.base()
            ),
            _ => error.without_commands(),
        }
    }
}

impl ToolSource for StdioServer {
    fn tools(&self) -> Vec<Tool> {
        tools().iter().cloned().chain([talk::tool()]).collect()
    }

    /// The answers are a user's with a token, anybody's without one.
    fn scope(&self, _: &RequestContext<RoleServer>) -> CacheScope {
        match self.client.has_token() {
            true => CacheScope::Private,
            false => CacheScope::Public,
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let CallToolRequestParams {
            name, arguments, ..
        } = request;
        let called = async {
            if name == talk::NAME {
                return Ok(self.talk(arguments).await);
            }
            match tools().iter().any(|tool| tool.name == name) {
                true => self.forward(&name, arguments).await,
                false => Err(unknown_tool(&name)),
            }
        };
        let mut result = tokio::select! {
            result = called => result?,
            () = context.ct.cancelled() => failed("the call was cancelled"),
        };
        result.result_type = Some(ResultType::COMPLETE);
        Ok(result)
    }
}
