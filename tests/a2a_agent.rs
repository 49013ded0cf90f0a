//! The registry as an agent: its card, its interfaces, its tasks, and clients of other people that talk to it.

mod card;
mod conformance_kits;
mod conversation;
mod limits;
mod listening_registry;
mod sdks;
mod streams;
mod tasks;
mod v0_3;
