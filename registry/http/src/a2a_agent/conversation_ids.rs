//! Identifiers of conversations and tasks.
//!
//! A client may choose the identifier of a conversation. Anonymous clients share nothing but that identifier, so
//! "more" continues a conversation only if the registry created its identifier: such an identifier cannot be guessed.

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
        context_id_signature(context, &random)
    )
}

/// Whether this registry created the identifier of a conversation.
pub(super) fn is_registry_context_id(context: &AppContext, id: &str) -> bool {
    let parts = id
        .strip_prefix(CONTEXT_PREFIX)
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(random, tag)| tag == context_id_signature(context, random))
}

fn context_id_signature(context: &AppContext, random: &str) -> String {
    format!(
        "{:016x}",
        context
            .page_token_signer
            .hash_texts(&[SIGNATURE_PURPOSE, random])
    )
}

/// A new task identifier: fully random, because anyone who knows the identifier of an anonymous task may read the
/// task.
pub(super) fn new_task_id(entropy: &dyn Entropy) -> Uuid {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    uuid::Builder::from_random_bytes(random).into_uuid()
}
