//! The registry as an A2A agent: its card, its interfaces, its tasks, and third-party clients.

mod card;
mod conformance_kits;
mod conversation;
mod fitting;
mod limits;
mod listening_registry;
mod sdks;
mod streams;
mod tasks;
mod understanding;
mod v0_3;
