//! Every end-to-end test of the registry, in one binary: the modules are the areas.
//!
//! `tests/run` builds and prepares what these tests need (the program, a PostgreSQL server, third-party SDKs, a
//! browser) and runs them; without it each test that needs one of these fails with a message that says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

mod a2a_agent;
mod admission_policies;
mod ard;
mod bad_input;
mod break_glass;
mod card_memory;
mod checks;
mod cli;
mod clock_jumps;
mod collections;
mod console;
mod contract;
mod crash;
mod crawl_targets;
mod crawlers;
mod damaged_cards;
mod data_folder;
mod demo;
mod deprecation;
mod descriptors;
mod duplicates;
mod events;
mod fixtures;
mod governance_story;
mod held_requests;
mod hidden;
mod hit_fields;
mod identity;
mod index;
mod ingest;
mod interop;
mod journey;
mod kept_answers;
mod large_cards;
mod leases;
mod leavers;
mod long;
mod lookups;
mod mcp;
mod meaning;
mod migrations;
mod ownership;
mod page_forms;
mod page_journeys;
mod page_quality;
mod pages;
mod paging;
mod people;
mod policies;
mod policy_apply;
mod policy_pages;
mod policy_trials;
mod pressure;
mod recertification;
mod relevance;
mod relevance_targets;
mod replicas;
mod reserved_names;
mod review_pages;
mod reviews;
mod service;
mod shown_collections;
mod skill_names;
#[path = "benches/stock.rs"]
#[allow(dead_code, reason = "the benches use more of it")]
mod stock;
mod store;
mod talking;
mod tidy;
mod unmanaged;
mod virtual_crawl;
mod vouch_pages;
