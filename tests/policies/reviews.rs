//! The policies in a review.

use a2a_registry_core::reviews::list::review_show;

use super::{OPEN, put_policies};
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

/// Who decides a review is told which policies match, those that only try included; the sponsor is a fact for them.
#[tokio::test]
async fn a_review_names_the_policies_that_match() {
    let database = Database::sqlite();
    let registry = InProcessRegistry::new(database.url()).await;
    let unsponsored = "@mode(\"dry_run\") forbid (principal, action == Action::\"discover\", resource) when { !resource.sponsor_present };";
    let other = "forbid (principal, action == Action::\"invoke\", resource) when { resource.tags.contains(\"nothing\") };";
    put_policies(
        &registry,
        &[
            ("open", OPEN),
            ("unsponsored", unsponsored),
            ("other", other),
        ],
    )
    .await;
    registry.catch_up().await;
    let agent = registry
        .register_with_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    let review = registry.find_open_review(agent.id).await.unwrap();
    let shown = review_show(&registry.app, &registry.admin, review.id)
        .await
        .unwrap();
    let named: Vec<(&str, &str, &str)> = shown
        .policies
        .iter()
        .map(|policy| {
            (
                policy.id.as_str(),
                policy.mode.as_str(),
                policy.effect.as_str(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [
            ("open", "enforce", "permit"),
            ("unsponsored", "dry_run", "forbid")
        ]
    );
}
