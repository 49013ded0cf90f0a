//! What is lost with a collection, for the page that asks before it is deleted.

use a2a_registry_store::agents::agents_shown_to_collection;
use a2a_registry_store::collections::collections_by_names;
use a2a_registry_store::policies::newest_policy_set;

use crate::context::AppContext;
use crate::error::Result;
use crate::policy_sets::stored_policies;

/// Maximum number of agents that are counted as shown to the audience of a collection.
const MAX_COUNTED_AGENTS: u64 = 1_000;
/// Maximum number of policies that are named.
const MAX_NAMED_POLICIES: usize = 20;

/// What refers to a collection by its name and loses it: a sentence each.
pub async fn deletion_losses(context: &AppContext, name: &str) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    let policies = policies_naming_collection(context, name).await?;
    if let [first, further @ ..] = policies.as_slice() {
        let named_policies = further.iter().take(MAX_NAMED_POLICIES - 1);
        let named_policies =
            named_policies.fold(first.clone(), |named, id| format!("{named}, {id}"));
        lost.push(match policies.len() {
            1 => format!(
                "The policy {named_policies} asks about it: no agent is in it for the policy any more."
            ),
            count => format!(
                "{count} policies ask about it ({named_policies}): no agent is in it for them any more."
            ),
        });
    }
    let rows = collections_by_names(&context.store, &[name.to_owned()]).await?;
    if let Some(row) = rows.first() {
        let shown = agents_shown_to_collection(&context.store, row.id, MAX_COUNTED_AGENTS).await?;
        lost.extend(lost_agents_sentence(shown.len() as u64));
    }
    Ok(lost)
}

/// What happens to the agents that are shown to the audience of a collection.
fn lost_agents_sentence(count: u64) -> Option<String> {
    let agents = match count {
        0 => return None,
        1 => "1 restricted agent is".to_owned(),
        MAX_COUNTED_AGENTS.. => format!("{MAX_COUNTED_AGENTS} or more restricted agents are"),
        count => format!("{count} restricted agents are"),
    };
    Some(format!(
        "{agents} shown to its audience, and will not be shown to it any more."
    ))
}

/// The policies of the newest set whose text asks about collections and names this one.
async fn policies_naming_collection(context: &AppContext, name: &str) -> Result<Vec<String>> {
    let Some(newest) = newest_policy_set(&context.store).await? else {
        return Ok(Vec::new());
    };
    let quoted = format!("\"{name}\"");
    let policies = stored_policies(&newest)?.into_iter();
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
        assert_eq!(lost_agents_sentence(0), None);
        for (count, begins) in [
            (1, "1 restricted agent is shown"),
            (2, "2 restricted agents are shown"),
            (
                MAX_COUNTED_AGENTS,
                "1000 or more restricted agents are shown",
            ),
        ] {
            let told = lost_agents_sentence(count).unwrap();
            assert!(told.starts_with(begins), "{told}");
        }
    }
}
