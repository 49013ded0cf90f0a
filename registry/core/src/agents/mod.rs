//! Agents: their views, cards and versions, and the actions on them.

pub mod agent_names;
pub mod audience_collections;
pub mod cards;
pub mod catalog_entry;
pub mod collection_memberships;
pub mod decidable_urls;
pub mod diff;
pub mod documents;
pub mod duplicates;
pub mod hidden_agents;
pub mod hit_limits;
pub mod hit_members;
pub mod lifecycle_actions;
pub mod owner_updates;
pub mod policy_attributes;
pub mod policy_hiding;
pub mod records;
pub mod rendering;
pub mod replacements;
pub mod similar;
pub mod snippet;
pub mod text_description;
pub mod views;
