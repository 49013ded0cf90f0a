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
mod access_decisions;
mod account_concurrency;
mod account_departures;
mod admission_policies;
mod agent_cache;
mod ard;
mod backup;
mod bad_input;
#[path = "benches/bench_registry.rs"]
#[allow(dead_code, reason = "the benches use more of it")]
mod bench_registry;
mod break_glass;
mod card_lifecycle;
mod card_memory;
mod cli;
mod clock_jumps;
mod collections;
mod config_reload;
mod console;
mod contract;
mod crash;
mod crawl_targets;
mod crawlers;
mod credential_pages;
mod damaged_cards;
mod data_folder;
mod decidable_urls;
mod delayed_bodies;
mod demo;
mod deprecation;
mod descriptors;
mod duplicates;
mod endpoint_agents;
mod endpoint_checks;
mod erasure;
mod event_filters;
mod events;
mod export_import;
mod first_minutes;
mod gateways;
mod governance_story;
mod hidden;
mod hit_fields;
mod hooks;
mod identity;
mod index;
mod ingest;
mod interop;
mod journeys;
mod large_cards;
mod leases;
mod long;
mod lookups;
mod manual;
mod mcp;
mod meaning;
mod migrations;
mod operations_metrics;
mod ownership;
mod page_forms;
mod page_journeys;
mod page_quality;
mod pages;
mod paging;
mod policies;
mod policy_apply;
mod policy_language;
mod policy_pages;
mod policy_rollouts;
mod policy_switches;
mod policy_trials;
mod pressure;
mod proof_check_leases;
mod proxy;
mod recertification;
mod reference;
mod relevance;
mod relevance_targets;
mod replicas;
mod reserved_names;
mod restricted_agents;
mod review_pages;
mod reviews;
mod service;
mod service_manager;
mod several;
mod skill_names;
mod store;
mod support_tests;
mod talking;
mod tidy;
mod traces;
mod unmanaged;
mod upgrade;
mod virtual_crawl;
mod vouch_pages;
mod work_pages;
