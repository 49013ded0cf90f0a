//! The registry's core by subject: actions, views, rows and jobs, and the configuration. This crate contains no HTTP
//! code.
//!
//! An action is a function over the [`AppContext`](context::AppContext). All actions write and publish their changes
//! through [`commit`].
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod accounts;
pub mod admission;
pub mod agents;
pub mod collection_filters;
pub mod collections;
pub mod commit;
pub mod config;
pub mod context;
pub mod crawl;
pub mod data_dir;
pub mod database_health;
pub mod decision_log;
pub mod domains;
pub mod embeddings;
pub mod endpoints;
pub mod entity_tag;
pub mod error;
pub mod events;
pub mod federation;
pub mod file_descriptors;
pub mod health;
pub mod hooks;
pub mod lint;
pub mod mailer;
pub mod metrics;
pub mod name_rules;
pub mod network;
pub mod ownership;
pub mod paging;
pub mod policies;
pub mod policy_sets;
pub mod precondition;
pub mod process_state;
pub mod protocol_versions;
pub mod providers;
pub mod reviews;
pub mod sealing;
pub mod search;
pub mod search_pool;
pub mod secrets;
pub mod signatures;
pub mod sources;
pub mod text;
pub mod visibility;
pub mod visits;
