//! `mcp`: tools of the registry for a client of the Model Context Protocol on standard input and output, and one tool
//! that calls agents from this machine.
//!
//! The registry's tools are those of its server: each call is forwarded to `/mcp` of the registry with the user's
//! token. Standard output carries only the protocol.

mod batch_splitter;
mod talk_tool;

use std::sync::Arc;

use a2a_registry_core::protocol_versions;
use a2a_registry_http::mcp::{ToolServer, ToolSource, registry_tools, unknown_tool_error};
use batch_splitter::McpBatchSplitter;
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
use talk_tool::TalkCall;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::client_error::ClientError;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::signals::{HangupAction, ShutdownSignals};
use super::terminal;

/// Size limit of a message from the client, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Number of concurrent calls of agents; further ones wait.
const MAX_CONCURRENT_CALLS: usize = 8;
/// Maximum length of an error message, in columns.
const MAX_ERROR_COLUMNS: usize = 500;

/// Arguments of `mcp`.
#[derive(Args, Clone)]
pub struct McpArgs {
    /// Let `talk_to_agent` call a gRPC interface that the card names as a bare HOST:PORT without TLS
    #[arg(long)]
    plaintext: bool,
}

/// MCP server with the registry's tools and the one of this machine.
struct StdioMcpServer {
    client: Arc<Client>,
    /// Calls of `talk_to_agent`, which run on the thread where the process started, because they cannot change
    /// threads.
    call_queue: mpsc::Sender<TalkCall>,
}

/// Response of the registry to a call.
#[derive(Deserialize)]
struct RegistryToolReply {
    result: Option<CallToolResult>,
    error: Option<ErrorData>,
}

/// Serves the client on standard input and output until it closes its side, or the process is stopped.
pub async fn run_mcp(arguments: &McpArgs, client: Client) -> CommandResult {
    let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new(McpBatchSplitter::new(input), output);
    let transport = transport.with_max_line_length(MAX_MESSAGE_BYTES);
    let client = Arc::new(client);
    let (call_queue, mut queued_calls) = mpsc::channel(MAX_CONCURRENT_CALLS);
    let server = StdioMcpServer {
        client: Arc::clone(&client),
        call_queue,
    };
    let cancellation = CancellationToken::new();
    let mut serving = std::pin::pin!(serve_mcp_client(server, transport, cancellation.clone()));
    let mut active_calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            served = &mut serving => return served,
            () = signals.wait_for_signal(), if !cancellation.is_cancelled() => cancellation.cancel(),
            Some(call) = queued_calls.recv(), if active_calls.len() < MAX_CONCURRENT_CALLS => {
                active_calls.push(talk_tool::run_talk_call(&client, call, arguments.plaintext));
            }
            Some(()) = active_calls.next() => {}
        }
    }
}

async fn serve_mcp_client<T>(
    server: StdioMcpServer,
    transport: T,
    cancellation: CancellationToken,
) -> CommandResult
where
    T: rmcp::transport::Transport<RoleServer> + 'static,
{
    match ToolServer(server)
        .serve_with_ct(transport, cancellation)
        .await
    {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(CommandOutcome::Done),
            Err(error) => Err(CommandError::new(format!(
                "the connection to the client failed: {error}"
            ))),
        },
        // A client that leaves before its first message needs no error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(CommandOutcome::Done)
        }
        Err(error) => Err(CommandError::new(format!(
            "the client's first messages do not follow the Model Context Protocol: {error}"
        ))),
    }
}

/// Error as the result of a tool.
fn tool_error_result(message: &str) -> CallToolResult {
    let sentence = terminal::escape_and_truncate(message.trim_end_matches('.'), MAX_ERROR_COLUMNS);
    let mut characters = sentence.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(characters).chain(['.']).collect();
    CallToolResult::error(vec![ContentBlock::text(sentence)])
}

impl StdioMcpServer {
    /// Calls a tool of the registry.
    async fn call_registry_tool(
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
        // The newest revision without metadata in each request.
        let [_, revision, ..] = protocol_versions::MCP_VERSIONS;
        let reply: RegistryToolReply = match self.client.send_mcp_message(revision, &call).await {
            Ok(answer) => answer.value,
            Err(error) => return Ok(tool_error_result(&self.describe_error(&error))),
        };
        match reply {
            RegistryToolReply {
                error: Some(error), ..
            } => Err(error),
            RegistryToolReply {
                result: Some(result),
                ..
            } => Ok(result),
            _ => Ok(tool_error_result(
                "the registry's response to this call has neither result nor error",
            )),
        }
    }

    /// Sends a message to an agent.
    async fn call_agent(&self, arguments: Option<JsonObject>) -> CallToolResult {
        let (reply, result_receiver) = oneshot::channel();
        let result = match self
            .call_queue
            .send(TalkCall {
                arguments,
                result_sender: reply,
            })
            .await
        {
            Ok(()) => result_receiver.await.ok(),
            Err(_) => None,
        };
        let talked = result.unwrap_or_else(|| Err("this program is shutting down".to_owned()));
        talked.unwrap_or_else(|sentence| tool_error_result(&sentence))
    }

    fn describe_error(&self, error: &ClientError) -> String {
        match error.status() {
            Some(404 | 405) => format!(
                "the registry at {} does not serve the Model Context Protocol: `mcp.enabled` is off, or \
                 its version does not support it",
                self.client.base_url()
            ),
            _ => error.message_without_commands(),
        }
    }
}

impl ToolSource for StdioMcpServer {
    fn tools(&self) -> Vec<Tool> {
        registry_tools()
            .iter()
            .cloned()
            .chain([talk_tool::talk_tool_definition()])
            .collect()
    }

    /// Scope in which results can be cached: private with a token, public without one.
    fn cache_scope(&self, _: &RequestContext<RoleServer>) -> CacheScope {
        match self.client.has_token() {
            true => CacheScope::Private,
            false => CacheScope::Public,
        }
    }

    async fn run_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let CallToolRequestParams {
            name, arguments, ..
        } = request;
        let tool_call = async {
            if name == talk_tool::TOOL_NAME {
                return Ok(self.call_agent(arguments).await);
            }
            match registry_tools().iter().any(|tool| tool.name == name) {
                true => self.call_registry_tool(&name, arguments).await,
                false => Err(unknown_tool_error(&name)),
            }
        };
        let mut result = tokio::select! {
            result = tool_call => result?,
            () = context.ct.cancelled() => tool_error_result("the call was cancelled"),
        };
        result.result_type = Some(ResultType::COMPLETE);
        Ok(result)
    }
}
