//! The collection and the policies of a demonstration, and the searches that give its dry run results.

use std::time::Duration;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{CollectionContent, NewPolicies, NewPolicy};
use a2a_registry_domain::role::Role;
use serde_json::Value;

use super::content::{DemoContent, poll};
use crate::client::Client;
use crate::command_error::CommandError;

/// The policy on a dry run.
pub(super) const DRY_RUN_POLICY: &str = "proved-domains-only";

/// Makes a collection, and a policy on a dry run beside the policies in force.
pub(super) async fn set_collection_and_policies(
    url: &str,
    admin_token: &str,
) -> Result<(), CommandError> {
    let admin = Client::new(url, Some(admin_token), None)?;
    let collection = CollectionContent {
        description: "Agents for people on the road".to_owned(),
        filter: "tag:travel tag:food".to_owned(),
        audience: None,
        owners: vec![Role::Curator.as_str().to_owned()],
    };
    admin.put_collection("travel", &collection, None).await?;
    let current = admin.fetch_policy_set(None).await?.value;
    let own = current
        .policies
        .into_iter()
        .filter(|policy| !policy.shipped);
    let mut policies: Vec<NewPolicy> = own
        .map(|policy| NewPolicy {
            id: policy.id,
            text: policy.text,
        })
        .collect();
    policies.push(NewPolicy {
        id: DRY_RUN_POLICY.to_owned(),
        text: "// Would hide agents whose domain is not proved.\n@mode(\"dry_run\")\n\
               forbid (principal, action == Action::\"discover\", resource)\nunless { resource.verified };\n"
            .to_owned(),
    });
    let new = NewPolicies {
        policies,
        reason: "Try what would happen if only proved domains were shown".to_owned(),
        ..NewPolicies::default()
    };
    let accepted = admin.put_policy_set(&new, current.number).await?.value;
    poll(
        "the policies are not in force",
        async || -> Result<Option<()>, CommandError> {
            let current = admin.fetch_policy_set(None).await?.value;
            Ok((current.in_force >= accepted.number).then_some(()))
        },
    )
    .await
}

/// Searches as several callers until the dry run has results, which are counted every few seconds.
pub(super) async fn fill_dry_run(content: &DemoContent, url: &str) -> Result<(), CommandError> {
    let tokens = content
        .accounts
        .iter()
        .map(|account| account.token.as_str());
    let clients = tokens
        .map(|token| Client::new(url, Some(token), None))
        .collect::<Result<Vec<_>, _>>()?;
    let query = SearchQuery::default();
    poll(
        "the dry run has no results",
        async || -> Result<Option<()>, CommandError> {
            for client in &clients {
                client.search::<Value>(&query).await?;
            }
            let Some(admin) = clients.first() else {
                return Ok(Some(()));
            };
            let run = admin.policy_dry_run(DRY_RUN_POLICY).await?.value;
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok((run.answers > 0).then_some(()))
        },
    )
    .await
}
