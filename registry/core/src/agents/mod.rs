//! Agents: their views, cards and versions, and the acts on them.

pub mod acts;
pub mod agent_names;
pub mod cards;
pub mod catalog_entry;
pub mod description;
pub mod diff;
pub mod documents;
pub mod duplicates;
pub mod hit_bounds;
pub mod hit_members;
pub mod memberships;
pub mod owner;
pub mod policy_facts;
pub mod records;
pub mod rendered;
pub mod replacements;
pub mod shown_collections;
pub mod similar;
pub mod snippet;
pub mod views;
