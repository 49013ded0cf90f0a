//! The registry itself: its configuration, what it does, its routes, pages and jobs, laid out by subject.
//!
//! Each subject has its acts, views, routes, pages and job together. An act is a function over the
//! [`Context`](context::Context); it is written and shown in one way, by [`commit`].
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod a2a_agent;
mod about;
pub mod accounts;
mod admission;
mod agent_facts;
mod agent_page;
pub mod agents;
mod application;
mod ard;
mod audience;
pub mod authentication;
pub mod caller;
mod catalog_entry;
mod collection_filters;
mod collection_rows;
pub mod collections;
pub mod commit;
pub mod config;
pub mod context;
pub mod crawl;
pub mod data_dir;
mod database;
pub mod descriptors;
pub mod dialects;
pub mod domains;
pub mod error;
pub mod events;
mod federation;
mod filters;
mod group_selection;
pub mod health;
pub mod http;
pub mod identity;
pub(crate) mod index_pool;
pub mod jobs;
pub mod lint;
pub mod mcp;
pub mod meaning;
mod memory;
pub mod metrics;
mod names;
pub mod network;
pub mod offline;
pub mod openapi;
pub mod ownership;
mod pages;
pub mod paging;
mod plain_routes;
pub mod policies;
mod policy_labels;
mod policy_sets;
pub mod precondition;
pub mod providers;
pub mod reviews;
mod routes;
mod sealing;
pub mod search;
pub mod serve;
mod signatures;
mod sources;
pub mod start;
#[cfg(test)]
mod tests;
mod visibility;
pub mod visits;
