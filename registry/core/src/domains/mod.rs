//! Domains: registration, views, changes by owners and admins, and withdrawal.

pub mod actions;
pub mod domain_access;
pub mod domain_rows;
pub mod endpoint_permission;
pub mod enrolled_keys;
pub mod erasure;
pub mod owner_actions;
pub mod owner_vouch;
pub mod ownership_generation;
pub mod presenter;
pub mod register;
pub mod register_approval;
pub mod register_batch;
pub mod register_bulk;
pub mod registered_sources;
pub mod registration_limits;
pub mod registration_target;
pub mod row_views;
pub mod source_credential;
pub mod source_registration;
pub mod unlisted_reasons;
pub mod verify;
pub mod view;
pub mod visible_contents;
pub mod withdrawal;
