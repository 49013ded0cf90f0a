//! The crawler over real sockets: its requests, the responses it accepts, and the addresses it never connects to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod body;
mod catalog;
mod challenge;
mod connections;
mod credentials;
mod endpoint;
mod get;
mod hostile;
mod http2;
mod keys;
mod name_server;
mod names;
mod owner;
mod post;
mod redirects;
mod source;
mod support;
mod tls;
mod webhook;
mod worker;
