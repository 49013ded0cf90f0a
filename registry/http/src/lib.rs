//! HTTP interfaces: the API, pages, ARD, MCP and the registry as an A2A agent.
//!
//! A handler parses the request, authorizes by the type of its caller, calls one operation of `a2a-registry-core` and
//! renders the result. One middleware wraps all handlers: request ids, problem documents, headers, metrics.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![cfg_attr(test, recursion_limit = "256")]

pub mod a2a_agent;
pub mod answers;
pub mod api;
pub mod ard;
pub mod limits;
pub mod mcp;
pub mod middleware;
pub mod pages;
pub mod problems;
pub mod requests;
pub mod review_feed;
pub mod routes;
pub mod saved_searches;
pub mod sessions;
