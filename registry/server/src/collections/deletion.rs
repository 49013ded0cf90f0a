//! What is lost with a collection, for the page that asks before it is deleted.

use a2a_registry_store::agents::agents_naming_collection;
use a2a_registry_store::collections::collections_by_names;
use a2a_registry_store::policies::policy_set_newest;

use crate::context::Context;
use crate::error::AppError;
use crate::policy_sets::written;

/// Agents that are counted as shown to the audience of a collection.
const MOST: u64 = 1_000;
/// Policies that are named.
const POLICIES: usize = 20;

/// What asks about a collection by its name, and loses it: a sentence each.
///
/// # Errors
/// Where the database fails.
pub(super) async fn uses_lost(context: &Context, name: &str) -> Result<Vec<String>, AppError> {
    let mut lost = Vec::new();
    let policies = policies_naming(context, name).await?;
    if let [first, further @ ..] = policies.as_slice() {
        let named = further.iter().take(POLICIES - 1);
        let named = named.fold(first.clone(), |named, id| format!("{named}, {id}"));
        lost.push(match policies.len() {
            1 => format!(
                "The policy {named} asks about it: no agent is in it for the policy any more."
            ),
            count => format!(
                "{count} policies ask about it ({named}): no agent is in it for them any more."
            ),
        });
    }
    let rows = collections_by_names(&context.store, &[name.to_owned()]).await?;
    if let Some(row) = rows.first() {
        let shown = agents_naming_collection(&context.store, row.id, MOST).await?;
        lost.extend(match shown.len() {
            0 => None,
            1 => Some(
                "1 restricted agent is shown to its audience, and will not be shown to it any more."
                    .to_owned(),
            ),
            count => Some(format!(
                "{count} restricted agents are shown to its audience, and will not be shown to it any more."
            )),
        });
    }
    Ok(lost)
}

/// The policies of the newest set whose text asks about collections and names this one.
async fn policies_naming(context: &Context, name: &str) -> Result<Vec<String>, AppError> {
    let Some(newest) = policy_set_newest(&context.store).await? else {
        return Ok(Vec::new());
    };
    let quoted = format!("\"{name}\"");
    let policies = written(&newest)?.into_iter();
    let naming = policies
        .filter(|policy| policy.text.contains("collections") && policy.text.contains(&quoted));
    Ok(naming.map(|policy| policy.id).collect())
}
