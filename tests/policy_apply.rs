//! Policy sets that would hide every agent are applied only after a confirmation, on both databases.

use a2a_registry_api::{AgentPatch, GroupMembers, NewPolicies};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::sets::policies_put;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;

use crate::policies::{OPEN, caller, policies};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};
use crate::support::policy_previews::policies_preview;

both_databases!(
    a_set_that_hides_every_agent_is_made_after_its_preview,
    members_of_two_groups_are_compared_as_such
);

/// A set without a permit, or one that hides every agent from every caller, is not made by accident.
async fn a_set_that_hides_every_agent_is_made_after_its_preview(url: &str) {
    const HIDE: (&str, &str) = (
        "hide",
        "forbid (principal, action, resource) when { resource.trust < 5 };",
    );
    const MEMBERS: (&str, &str) = (
        "members",
        "permit (principal in Group::\"team\", action, resource);",
    );
    let registry = InProcessRegistry::new(url).await;
    let app = &registry.app;
    let any = IfMatch::default();
    let make = async |new: &NewPolicies| {
        let made = policies_put(app, &registry.admin, new, &any).await;
        made.map(|made| made.number).map_err(|error| error.kind)
    };
    let unpermitted = [
        policies(&[]),
        policies(&[("deny", HIDE.1)]),
        policies(&[("tried", &format!("@mode(\"dry_run\") {OPEN}"))]),
        policies(&[(
            "calls",
            "permit (principal, action == Action::\"invoke\", resource);",
        )]),
        policies(&[(
            "noone",
            "permit (principal == Group::\"team\", action, resource);",
        )]),
    ];
    for new in &unpermitted {
        assert_eq!(make(new).await, Err(ErrorKind::NoPermit), "{new:?}");
    }
    // Nothing is hidden where nothing is listed.
    let dark = policies(&[("open", OPEN), HIDE]);
    assert_eq!(make(&dark).await, Ok(1));
    assert_eq!(make(&policies(&[("open", OPEN)])).await, Ok(2));
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    let ghosts = policies(&[
        (
            "ghosts",
            "permit (principal in Group::\"ghosts\", action, resource);",
        ),
        (
            "nobody",
            "permit (principal == Account::\"nobody\", action, resource);",
        ),
    ]);
    for new in unpermitted.iter().chain([&dark, &ghosts]) {
        let mut new = new.clone();
        new.allow_no_permit = true;
        assert_eq!(make(&new).await, Err(ErrorKind::PreviewNeeded), "{new:?}");
    }
    // Members of the team find it, and nobody else need: it is not hidden from everybody.
    let another = caller(&registry, "another", Role::Admin).await;
    caller(&registry, "rita", Role::Reader).await;
    let members = GroupMembers {
        members: vec!["another".into(), "rita".into()],
    };
    for group in ["team", "closed"] {
        group_put(app, &registry.admin, group, &members, &any)
            .await
            .unwrap();
    }
    let preview = policies_preview(app, &registry.admin, &dark).await.unwrap();
    assert!(preview.hides_every_agent && !preview.permits_nothing);
    assert_eq!(make(&policies(&[MEMBERS])).await, Ok(3));
    let late = NewPolicies {
        preview: Some(preview.token),
        ..dark.clone()
    };
    assert_eq!(make(&late).await, Err(ErrorKind::Changed));

    let preview = policies_preview(app, &registry.admin, &dark).await.unwrap();
    let shown = |token: &str, new: &NewPolicies| NewPolicies {
        preview: Some(token.to_owned()),
        ..new.clone()
    };
    // The token is that of exactly these policies, of this account, and of nothing that anybody makes up.
    let other = policies(&[("open", OPEN), ("hidden", HIDE.1)]);
    for new in [shown(&preview.token, &other), shown("made.up", &dark)] {
        assert_eq!(make(&new).await, Err(ErrorKind::PreviewNeeded));
    }
    let foreign = policies_put(app, &another, &shown(&preview.token, &dark), &any).await;
    assert_eq!(foreign.unwrap_err().kind, ErrorKind::PreviewNeeded);
    registry.advance(time::Duration::seconds(60 * 60 + 1));
    assert_eq!(
        make(&shown(&preview.token, &dark)).await,
        Err(ErrorKind::PreviewNeeded)
    );
    let preview = policies_preview(app, &registry.admin, &dark).await.unwrap();
    assert_eq!(make(&shown(&preview.token, &dark)).await, Ok(4));
    // An agent that only members of a group see is left to them, though no policy names the group.
    let restrict = AgentPatch {
        visibility: Some(Visibility::Restricted),
        groups: Some(vec!["closed".into()]),
        ..AgentPatch::default()
    };
    agent_patch(app, &registry.admin, &agent.id.to_string(), &restrict)
        .await
        .unwrap();
    let signed_in = "forbid (principal == Account::\"anonymous\", action, resource);";
    let signed_in = policies(&[("open", OPEN), ("signed-in", signed_in)]);
    assert_eq!(make(&signed_in).await, Ok(5));
}

/// A group whose members are all in another group too is compared as these members are, and not as somebody who is in
/// one of the two alone.
async fn members_of_two_groups_are_compared_as_such(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin, any) = (&registry.app, &registry.admin, IfMatch::default());
    registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    for name in ["rita", "tom"] {
        caller(&registry, name, Role::Reader).await;
    }
    let set_group = async |group: &str, names: &[&str]| {
        let members = GroupMembers {
            members: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        group_put(app, admin, group, &members, &any).await.unwrap();
    };
    set_group("team", &["rita"]).await;
    set_group("blocked", &["rita"]).await;
    let new = policies(&[
        (
            "team",
            "permit (principal in Group::\"team\", action, resource);",
        ),
        (
            "blocked",
            "forbid (principal in Group::\"blocked\", action, resource);",
        ),
    ]);
    let refused = policies_put(app, admin, &new, &any).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::PreviewNeeded);
    let preview = policies_preview(app, admin, &new).await.unwrap();
    assert!(preview.hides_every_agent);
    let mut changes = preview.changes.iter();
    let both = changes.find(|change| change.caller == "groups blocked, team");
    assert_eq!(both.map(|change| change.lost), Some(1));
    // Whoever is only in the team finds it.
    set_group("team", &["rita", "tom"]).await;
    policies_put(app, admin, &new, &any).await.unwrap();
}
