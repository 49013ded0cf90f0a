//! What speaks HTTP: the API, pages, ARD, MCP and the registry as an A2A agent.
//!
//! A handler parses, authorizes by the type of its caller, calls one act of `a2a-registry-core` and renders its result. One
//! envelope wraps all of them: request ids, problem documents, headers, metrics.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

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
