//! How an agent is to be called, read from its card alone: at which interface, in which shapes, and with
//! which credentials in which places.
//!
//! Nothing here reaches the network or holds a secret, so whatever calls agents or explains how to call
//! them decides alike: [`send_text`](crate::send_text) and the snippets on an agent's page. They differ in
//! the [`Means`] they name.

mod credential;
mod interface;

pub use credential::{Credential, Entry, Given, Means, Obstacle, credential, entry, key_place};
pub use interface::{Dialect, NoRoute, Route, routes};
