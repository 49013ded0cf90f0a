//! Domains: registration, views, changes by owners and admins, and withdrawal.

pub mod acts;
pub mod adding;
pub mod domain_access;
pub mod generation;
pub mod keys;
pub mod not_listed;
pub mod owner;
pub mod owner_vouch;
pub mod register;
pub mod register_approval;
pub mod register_batch;
pub mod register_bulk;
pub mod registered;
pub mod registration_counts;
pub mod row_views;
pub mod rows;
pub mod shown;
pub mod target;
pub mod verify;
pub mod view;
pub mod visible_part;
pub mod withdrawal;
