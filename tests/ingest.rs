//! Effects of crawl outcomes: agents, versions, decisions, liveness (docs/model.md).

mod base_urls;
mod catalogs;
mod changed_rules;
mod changes;
mod circuit_breaker;
mod classes;
mod derivation;
mod descriptions;
mod enrolled;
mod first_card;
mod group;
mod history;
mod liveness;
mod random;
mod rules;
mod signatures;
mod sources;
mod verdicts;
