//! Effects of crawl outcomes: agents, versions, decisions, liveness (docs/develop/model.md).

mod base_urls;
mod batches;
mod catalogs;
mod change_classes;
mod changed_rules;
mod changes;
mod circuit_breaker;
mod enrolled_keys;
mod first_card;
mod liveness;
mod nonstandard_cards;
mod random_sequences;
mod rederivation;
mod rules;
mod signature_verdicts;
mod signatures;
mod source_history;
mod sources;
