//! The registry as an agent: clients of A2A ask it for agents, about one agent, and whether one is allowed.
//!
//! It speaks 1.0 over JSON-RPC and HTTP+JSON, and 0.3 over JSON-RPC. Tasks are kept in 1.0's form and converted where a
//! response is written, so that both versions are one implementation. What a task has found is checked again whenever
//! it is read: an agent that its caller may not see any more is not in the answer.

pub mod card;
pub mod card_routes;
pub mod contexts;
pub mod fault;
pub mod incoming;
pub mod inserting;
pub mod intent;
pub mod keys;
pub mod listing;
pub mod operations;
pub mod outcome;
pub mod rest_routes;
pub mod rpc;
pub mod rpc_routes;
pub mod sending;
pub mod stream;
pub mod tasks;
pub mod v0_3;
pub mod version;
pub mod wire;
pub mod words;
pub mod work;

pub(crate) const RPC: &str = "/a2a";
pub(crate) const REST: &str = "/a2a/v1";
pub(crate) const KEY_SET: &str = "/.well-known/jwks.json";
