//! Identifiers of conversations and tasks.
//!
//! A client may name a conversation itself. Clients without an account have nothing in common but the name, so "more"
//! in a conversation is theirs only if the registry has made its identifier, which nobody can guess: it proves itself.

use a2a_registry_core::context::Context;
use a2a_registry_domain::ids::{Entropy, random_number};
use uuid::Uuid;

const OURS: &str = "conversation-";
const PURPOSE: &str = "a2a conversation";

pub(super) fn new_context(context: &Context) -> String {
    let entropy = context.entropy.as_ref();
    let random = format!(
        "{:016x}{:016x}",
        random_number(entropy),
        random_number(entropy)
    );
    format!("{OURS}{random}-{}", proof(context, &random))
}

/// Whether a conversation has an identifier that this registry has made.
pub(super) fn is_ours(context: &Context, id: &str) -> bool {
    let parts = id.strip_prefix(OURS).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(random, tag)| tag == proof(context, random))
}

fn proof(context: &Context, random: &str) -> String {
    format!("{:016x}", context.signer.number(&[PURPOSE, random]))
}

/// A new identifier for a task: random as a whole, since whoever knows that of an anonymous task may read it.
pub(super) fn new_task(entropy: &dyn Entropy) -> Uuid {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    uuid::Builder::from_random_bytes(random).into_uuid()
}
