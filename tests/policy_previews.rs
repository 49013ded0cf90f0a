//! For whom a preview compares: everybody whom policies name sees what it would see.

use a2a_registry_api::{AgentPatch, GroupMembers};
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_server::accounts::groups::group_put;
use a2a_registry_server::agents::owner::agent_patch;
use a2a_registry_server::policies::preview::policies_preview;
use a2a_registry_server::precondition::Precondition;

use crate::admission_policies::{OPEN, card, policies};
use crate::policies::caller as account;
use crate::support::both_databases;
use crate::support::stage::Stage;

both_databases!(a_preview_compares_everybody_whom_policies_name);

async fn a_preview_compares_everybody_whom_policies_name(url: &str) {
    let stage = Stage::new(url).await;
    let payer = stage
        .publish_approved("pay.agents-test.com", &card("Payer", "pay"))
        .await
        .id;
    // A restricted agent is compared for the group that sees it, and an account with the groups that it is in.
    account(&stage, "cora", Role::Reader).await;
    let cora = GroupMembers {
        members: vec!["cora".into()],
    };
    for group in ["auditors", "guests"] {
        group_put(
            &stage.app,
            &stage.admin,
            group,
            &cora,
            &Precondition::default(),
        )
        .await
        .unwrap();
    }
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        groups: Some(vec!["auditors".into()]),
        ..AgentPatch::default()
    };
    agent_patch(&stage.app, &stage.admin, &payer.to_string(), &restricted)
        .await
        .unwrap();
    let named: Vec<(String, String)> = ["Group::\"auditors\"", "Group::\"guests\""]
        .into_iter()
        .map(|group| (group.to_owned(), "principal in"))
        .chain([("Account::\"cora\"".to_owned(), "principal ==")])
        .enumerate()
        .map(|(at, (who, scope))| {
            let text = format!("forbid ({scope} {who}, action == Action::\"discover\", resource) when {{ resource.skills.contains(\"pay\") }};");
            (format!("hide-{at}"), text)
        })
        .collect();
    let mut texts: Vec<(&str, &str)> = vec![OPEN];
    texts.extend(named.iter().map(|(id, text)| (id.as_str(), text.as_str())));
    let told = policies_preview(&stage.app, &stage.admin, &policies(&texts))
        .await
        .unwrap();
    let lost: Vec<(&str, u64)> = told
        .changes
        .iter()
        .filter(|change| change.action == "discover")
        .map(|change| (change.caller.as_str(), change.lost))
        .collect();
    assert_eq!(lost, [("account cora", 1), ("group auditors", 1)]);
    let many: Vec<(String, String)> = (0..101)
        .map(|at| {
            let text = format!("permit (principal in Group::\"g{at}\", action, resource);");
            (format!("p{at}"), text)
        })
        .collect();
    let many: Vec<(&str, &str)> = many
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    let told = policies_preview(&stage.app, &stage.admin, &policies(&many))
        .await
        .unwrap();
    let left_out = |warning: &String| warning.starts_with("3 further");
    assert!(told.warnings.iter().any(left_out), "{:?}", told.warnings);
}
