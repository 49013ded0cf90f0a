//! A curated registry of A2A agent cards.

pub mod api;
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod domain;
pub mod embed;
pub mod http;
pub mod index;
pub mod jobs;
pub mod metrics;
mod processor;
pub mod store;
pub mod talk;
pub mod vectors;
