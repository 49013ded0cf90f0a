//! Consequences of deleting a collection, for the confirmation page.

use a2a_registry_store::agents::agents_shown_to_collection;
use a2a_registry_store::collections::collections_by_names;
use a2a_registry_store::policies::newest_policy_set;

use crate::context::AppContext;
use crate::error::Result;
use crate::policy_sets::parse_stored_policies;

/// Maximum number of agents that are counted as shown to the audience of a collection.
const MAX_COUNTED_AGENTS: u64 = 1_000;
/// Maximum number of policies that are named.
const MAX_NAMED_POLICIES: usize = 20;

/// One sentence for each kind of reference to a collection that is lost with it.
pub async fn collection_deletion_losses(context: &AppContext, name: &str) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    let policies = policies_naming_collection(context, name).await?;
    if let [first, further @ ..] = policies.as_slice() {
        let named_policies = further.iter().take(MAX_NAMED_POLICIES - 1);
        let named_policies =
            named_policies.fold(first.clone(), |named, id| format!("{named}, {id}"));
        lost.push(match policies.len() {
            1 => format!(
                "The policy {named_policies} refers to it: for the policy, no agent will be in it any more."
            ),
            count => format!(
                "{count} policies refer to it ({named_policies}): for them, no agent will be in it any more."
            ),
        });
    }
    let rows = collections_by_names(&context.store, &[name.to_owned()]).await?;
    if let Some(row) = rows.first() {
        let shown = agents_shown_to_collection(&context.store, row.id, MAX_COUNTED_AGENTS).await?;
        lost.extend(agents_to_hide_sentence(shown.len() as u64));
    }
    Ok(lost)
}

/// A sentence about the agents that are shown to the audience of a collection.
fn agents_to_hide_sentence(count: u64) -> Option<String> {
    let agents = match count {
        0 => return None,
        1 => "1 restricted agent is".to_owned(),
        MAX_COUNTED_AGENTS.. => format!("{MAX_COUNTED_AGENTS} or more restricted agents are"),
        count => format!("{count} restricted agents are"),
    };
    Some(format!(
        "{agents} shown to its audience and will be hidden from it."
    ))
}

/// The policies of the newest set that refer to collections and name this one.
async fn policies_naming_collection(context: &AppContext, name: &str) -> Result<Vec<String>> {
    let Some(newest) = newest_policy_set(&context.store).await? else {
        return Ok(Vec::new());
    };
    let quoted = format!("\"{name}\"");
    let policies = parse_stored_policies(&newest)?.into_iter();
    let matching = policies
        .filter(|policy| policy.text.contains("collections") && policy.text.contains(&quoted));
    Ok(matching.map(|policy| policy.id).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_counted_up_to_a_bound() {
        assert_eq!(agents_to_hide_sentence(0), None);
        for (count, begins) in [
            (1, "1 restricted agent is shown"),
            (2, "2 restricted agents are shown"),
            (
                MAX_COUNTED_AGENTS,
                "1000 or more restricted agents are shown",
            ),
        ] {
            let told = agents_to_hide_sentence(count).unwrap();
            assert!(told.starts_with(begins), "{told}");
        }
    }
}
