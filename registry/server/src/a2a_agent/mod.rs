//! The registry as an agent: clients of A2A ask it for agents, about one agent, and whether one is allowed.
//!
//! It speaks 1.0 over JSON-RPC and HTTP+JSON, and 0.3 over JSON-RPC. Tasks are kept in 1.0's form and converted where a
//! response is written, so that both versions are one implementation. What a task has found is checked again whenever
//! it is read: an agent that its caller may not see any more is not in the answer.

pub(crate) mod card;
pub mod card_routes;
mod contexts;
pub(crate) mod fault;
mod incoming;
mod inserting;
mod intent;
pub(crate) mod keys;
mod listing;
mod operations;
mod outcome;
pub mod rest_routes;
mod rpc;
pub mod rpc_routes;
mod sending;
mod stream;
mod tasks;
mod v0_3;
mod version;
mod wire;
mod words;
mod work;

pub(crate) const RPC: &str = "/a2a";
pub(crate) const REST: &str = "/a2a/v1";
pub(crate) const KEY_SET: &str = "/.well-known/jwks.json";
