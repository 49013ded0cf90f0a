//! Domains: registration, views, changes by owners and admins, and withdrawal.

pub mod acts;
pub mod adding;
pub(crate) mod domain_access;
pub mod generation;
pub mod keys;
pub mod lint_form;
pub mod not_listed;
pub mod owner;
pub mod owner_vouch;
pub mod page;
pub mod register;
pub(crate) mod register_approval;
pub(crate) mod register_batch;
pub mod register_bulk;
pub mod register_page;
pub mod registered;
pub(crate) mod registration_counts;
pub mod routes;
pub(crate) mod row_views;
pub mod rows;
pub mod shown;
pub mod target;
pub mod verify;
pub mod view;
pub mod visible_part;
pub mod withdrawal;
