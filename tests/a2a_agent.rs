//! The registry as an agent: its card, its interfaces, its tasks, and clients of other people that talk to it.

mod bounds;
mod card;
mod conversation;
mod kits;
mod older;
mod sdks;
mod served;
mod streams;
mod tasks;
