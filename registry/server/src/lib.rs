//! The registry itself: its configuration, what it does, its routes, pages and jobs.

pub mod app;
pub mod config;
pub mod http;
pub mod jobs;
pub mod metrics;
