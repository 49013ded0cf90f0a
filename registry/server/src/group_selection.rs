//! Prevents the start if a group that the configuration leaves out (`select_groups`) is still named by a policy of the
//! newest set, or by the audience of a collection or agent: the group would have no members.

use std::collections::HashMap;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::StartError;
use a2a_registry_core::policy_sets::deselected_group_policies;
use a2a_registry_core::visibility::audience::decode_audience;
use a2a_registry_store::{StoreError, agents, collections, groups};
use uuid::Uuid;

/// Number of agent audiences read at once.
const AUDIENCE_PAGE_SIZE: u64 = 1_000;

pub(crate) async fn check_no_deselected_groups(context: &AppContext) -> Result<(), StartError> {
    let identity = &context.config().identity;
    let set = context.policy_sets.enforced_set();
    if let Some((policy, text)) = deselected_group_policies(&set, identity).next() {
        return Err(StartError(format!(
            "{text}: the policy {} of policy set {} names it",
            policy.id,
            set.number()
        )));
    }
    let deselected = deselected_groups(context).await?;
    match find_deselected_audience_group(context, &deselected).await? {
        None => Ok(()),
        Some((text, named_by)) => Err(StartError(format!("{text}: {named_by} names it"))),
    }
}

/// Existing groups that the configuration leaves out, each with an explanation.
async fn deselected_groups(context: &AppContext) -> Result<HashMap<Uuid, String>, StoreError> {
    let identity = &context.config().identity;
    let mut deselected = HashMap::new();
    for provider in identity.providers.values() {
        if provider.select_groups.is_empty() {
            continue;
        }
        for group in groups::groups_by_origin(&context.store, &provider.issuer).await? {
            let text =
                identity.group_deselection_error(&format!("{}#{}", group.origin, group.name));
            deselected.extend(text.map(|text| (group.id, text)));
        }
    }
    Ok(deselected)
}

/// Finds the first of these groups that an audience names. Returns its explanation and a description of the audience.
async fn find_deselected_audience_group(
    context: &AppContext,
    deselected: &HashMap<Uuid, String>,
) -> Result<Option<(String, String)>, StoreError> {
    if deselected.is_empty() {
        return Ok(None);
    }
    let deselection_in = |audience: Option<&str>| {
        let groups = decode_audience(audience);
        groups
            .iter()
            .find_map(|group| deselected.get(group))
            .cloned()
    };
    for collection in collections::all_collections(&context.store).await? {
        if let Some(text) = deselection_in(collection.audience.as_deref()) {
            let by = format!("the audience of the collection {}", collection.name);
            return Ok(Some((text, by)));
        }
    }
    let mut after = None;
    loop {
        let audiences = agents::agent_audiences(&context.store, after, AUDIENCE_PAGE_SIZE).await?;
        let Some((last, _)) = audiences.last() else {
            return Ok(None);
        };
        after = Some(*last);
        for (agent, audience) in &audiences {
            if let Some(text) = deselection_in(Some(audience)) {
                return Ok(Some((text, format!("the audience of the agent {agent}"))));
            }
        }
    }
}
