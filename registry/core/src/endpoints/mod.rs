//! Endpoint checks: whether agents answer at their own addresses (docs/publish/endpoint-check.md).

pub mod assignment;
pub mod check;
pub mod job;
pub mod selection;
pub mod views;
