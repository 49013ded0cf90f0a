//! The registry as an A2A agent: A2A clients search for agents, request the description of one agent, or check whether
//! an agent is allowed.
//!
//! The agent serves 1.0 over JSON-RPC and HTTP+JSON, and 0.3 over JSON-RPC. Tasks are stored in the 1.0 format and
//! converted when a response is written, so that both versions share one implementation. The result of a task is
//! checked again whenever the task is read: the response excludes agents that the caller may no longer see.

pub mod card_document;
pub mod card_routes;
pub mod card_signing;
pub mod conversation_ids;
pub mod error;
pub mod execution;
pub mod incoming_message;
pub mod intent;
pub mod operations;
pub mod protocol_version;
pub mod rest_routes;
pub mod rpc;
pub mod rpc_routes;
pub mod send_message;
pub mod task_insert_queue;
pub mod task_list;
pub mod task_outcome;
pub mod task_stream;
pub mod tasks;
pub mod text_rendering;
pub mod v0_3;
pub mod wire_format;

pub(crate) const RPC_PATH: &str = "/a2a";
pub(crate) const REST_PATH: &str = "/a2a/v1";
pub(crate) const KEY_SET_PATH: &str = "/.well-known/jwks.json";
