//! Agents: their views, cards and versions, and the acts on them.

pub mod acts;
pub(crate) mod agent_names;
pub mod card_routes;
pub mod cards;
pub(crate) mod description;
pub mod diff;
pub mod documents;
pub mod duplicates;
pub(crate) mod hit_bounds;
pub(crate) mod hit_members;
pub mod memberships;
pub mod owner;
pub(crate) mod policy_facts;
pub mod records;
pub mod rendered;
pub(crate) mod replacements;
pub mod routes;
pub(crate) mod shown_collections;
pub mod similar;
pub mod snippet;
pub mod views;
