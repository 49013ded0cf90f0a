//! Restricted agents that name collections: whoever is in their audience sees them, on both databases.

use a2a_registry_api::AgentPatch;
use a2a_registry_api::limits::MAX_COLLECTIONS_PER_AGENT;
use a2a_registry_core::agents::views::agent_show;
use a2a_registry_core::collections::actions::collection_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;

use crate::collections::{
    authenticate_account, content, create_account, exposures, give, patch_agent, put_collection,
    put_group,
};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

both_databases!(a_restricted_agent_is_shown_to_the_audience_of_its_collections);

/// Whoever is in the audience sees the agent, from the change of the audience on, whether it is in the collection or not.
async fn a_restricted_agent_is_shown_to_the_audience_of_its_collections(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for name in ["ann", "ben", "owner"] {
        create_account(&registry, name, Role::Publisher).await;
    }
    put_group(&registry, "tax", &["ann"]).await;
    put_group(&registry, "law", &["ben"]).await;
    let agent = registry
        .register_approved_card("secret.dev", &card_bytes("Zebra", "1.0"))
        .await;
    give(&registry, agent.domain_id, "owner").await;
    let owner = authenticate_account(&registry, "owner").await;
    let (ann, ben) = (
        authenticate_account(&registry, "ann").await,
        authenticate_account(&registry, "ben").await,
    );
    let audience = async |name: &str, groups: Option<&[&str]>| {
        put_collection(
            &registry,
            &registry.admin,
            name,
            &content("tag:elsewhere", groups),
        )
        .await
        .unwrap();
    };
    audience("books", Some(&["tax"])).await;
    audience("everybodys", None).await;
    let restricted = |collections: &[&str]| AgentPatch {
        visibility: Some(Visibility::Restricted),
        collections: Some(collections.iter().map(ToString::to_string).collect()),
        ..AgentPatch::default()
    };
    let seen_by = async |expected: [bool; 2], what: &str| {
        for (caller, sees) in [(&ann, expected[0]), (&ben, expected[1])] {
            let shown = exposures(&registry, caller, agent.id).await;
            assert!(shown.values().all(|one| *one == sees), "{what}: {shown:?}");
        }
    };
    // A collection that the owner does not see is for it as one that does not exist.
    for (who, names) in [
        (&owner, &["books"][..]),
        (&owner, &["nosuch"]),
        (&registry.admin, &["everybodys"]),
    ] {
        let refused = patch_agent(&registry, who, agent.id, &restricted(names)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict, "{names:?}");
    }
    patch_agent(
        &registry,
        &registry.admin,
        agent.id,
        &restricted(&["books"]),
    )
    .await
    .unwrap();
    seen_by([true, false], "its audience").await;
    let told = agent_show(&registry.app, &registry.admin, &agent.id.to_string()).await;
    assert_eq!(told.unwrap().collections, ["books"]);
    let told = agent_show(&registry.app, &ann, &agent.id.to_string()).await;
    assert!(told.unwrap().collections.is_empty());
    audience("books", Some(&["law"])).await;
    // Hidden from the act on, before the index has applied anything.
    let shown = exposures(&registry, &ann, agent.id).await;
    assert!(shown.values().all(|one| !one), "{shown:?}");
    registry.catch_up().await;
    seen_by([false, true], "another audience").await;
    audience("books", None).await;
    seen_by([false, false], "everybody is no audience").await;
    audience("books", Some(&["tax", "law"])).await;
    registry.catch_up().await;
    seen_by([true, true], "both").await;
    // An owner leaves some out, and names no other.
    put_group(&registry, "own", &["owner"]).await;
    audience("mine", Some(&["own"])).await;
    let owner = authenticate_account(&registry, "owner").await;
    for names in [&["books", "mine"][..], &["mine"]] {
        let wider = patch_agent(&registry, &owner, agent.id, &restricted(names)).await;
        assert_eq!(wider.unwrap_err().kind, ErrorKind::Forbidden);
    }
    patch_agent(&registry, &owner, agent.id, &restricted(&["books"]))
        .await
        .unwrap();
    collection_delete(&registry.app, &registry.admin, "books", &IfMatch::default())
        .await
        .unwrap();
    seen_by([false, false], "deleted").await;
    audience("books", Some(&["tax"])).await;
    seen_by([false, false], "a new one of the same name").await;
    let many: Vec<&str> = std::iter::repeat_n("books", MAX_COLLECTIONS_PER_AGENT + 1).collect();
    for bad in [
        restricted(&many),
        AgentPatch {
            visibility: Some(Visibility::Internal),
            ..restricted(&["books"])
        },
    ] {
        let refused = patch_agent(&registry, &registry.admin, agent.id, &bad).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid);
    }
}
