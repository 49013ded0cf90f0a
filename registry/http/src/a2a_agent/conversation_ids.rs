//! Identifiers of conversations and tasks.
//!
//! A client may name a conversation itself. Clients without an account have nothing in common but the name, so "more"
//! in a conversation is theirs only if the registry has made its identifier, which nobody can guess: it proves itself.

use a2a_registry_core::context::AppContext;
use a2a_registry_domain::identifiers::{Entropy, random_u64};
use uuid::Uuid;

const CONTEXT_PREFIX: &str = "conversation-";
const SIGNATURE_PURPOSE: &str = "a2a conversation";

pub(super) fn new_context_id(context: &AppContext) -> String {
    let entropy = context.entropy.as_ref();
    let random = format!("{:016x}{:016x}", random_u64(entropy), random_u64(entropy));
    format!(
        "{CONTEXT_PREFIX}{random}-{}",
        context_signature(context, &random)
    )
}

/// Whether a conversation has an identifier that this registry has made.
pub(super) fn is_registry_context(context: &AppContext, id: &str) -> bool {
    let parts = id
        .strip_prefix(CONTEXT_PREFIX)
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(random, tag)| tag == context_signature(context, random))
}

fn context_signature(context: &AppContext, random: &str) -> String {
    format!(
        "{:016x}",
        context
            .page_token_signer
            .hash_texts(&[SIGNATURE_PURPOSE, random])
    )
}

/// A new identifier for a task: random as a whole, since whoever knows that of an anonymous task may read it.
pub(super) fn new_task_id(entropy: &dyn Entropy) -> Uuid {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    uuid::Builder::from_random_bytes(random).into_uuid()
}
