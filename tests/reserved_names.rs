//! Names with a meaning of their own: nobody gets one, and those who have one are not taken for what it means.

use a2a_registry_api::{
    GroupMembers, NewAccount, NewPolicies, NewPolicy, NewToken, PolicyCase, PolicyCases,
};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::accounts::people::account_create;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::sets::policies_put;
use a2a_registry_core::policies::testing::policies_test;
use a2a_registry_core::precondition::Precondition;
use a2a_registry_domain::role::Role;
use a2a_registry_server::offline::reserved_names;
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::{account, account_group};
use a2a_registry_store::groups::ADMIN_ORIGIN;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::stage::{Stage, card};

both_databases!(
    no_account_and_no_group_gets_a_reserved_name,
    an_account_with_a_reserved_name_is_not_what_the_name_means
);

async fn no_account_and_no_group_gets_a_reserved_name(url: &str) {
    let stage = Stage::new(url).await;
    let any = Precondition::default();
    for name in [
        "anonymous",
        "ANONYMOUS",
        "System",
        "policy",
        "me",
        "Admin",
        " anonymous",
    ] {
        let new = NewAccount {
            name: name.into(),
            roles: vec![Role::Reader],
            groups: Vec::new(),
        };
        let made = account_create(&stage.app, &stage.admin, &new).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
        let new = NewToken {
            account: name.into(),
            role: Some(Role::Reader),
            name: "a test".into(),
            ..NewToken::default()
        };
        let made = token_create(&stage.app, &stage.admin, &new).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
        let members = GroupMembers::default();
        let made = group_put(&stage.app, &stage.admin, name, &members, &any).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
    }
    // The account of the bootstrap token gets further tokens, as before.
    let new = NewToken {
        account: "admin".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    assert!(token_create(&stage.app, &stage.admin, &new).await.is_ok());
}

/// Accounts and groups that an earlier version has made go on, are named by `doctor`, and are nothing that their name means.
async fn an_account_with_a_reserved_name_is_not_what_the_name_means(url: &str) {
    let stage = Stage::new(url).await;
    let config = stage.app.config().clone();
    assert_eq!(reserved_names(&config).await.unwrap(), [""; 0]);
    let id = |number: u128| Uuid::from_u128(0x0193_f00d_0000_7000_8000_0000_0000_0000 + number);
    let admin = account_by_name(&stage.store, "admin").await.unwrap();
    let write = stage.store.write().await.unwrap();
    let row = account::Model {
        id: id(1),
        name: "anonymous".into(),
        role: Role::Reader.into(),
        roles: Some("reader".into()),
        ..admin.unwrap()
    };
    write.account_insert(row).await.unwrap();
    let group = account_group::Model {
        id: id(2),
        origin: ADMIN_ORIGIN.into(),
        name: "System".into(),
        created_at: 0,
    };
    write.group_insert(group).await.unwrap();
    write.commit().await.unwrap();
    let told = reserved_names(&config).await.unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("the account anonymous") && told[1].contains("the group System"));
    // The group can still be changed.
    let any = Precondition::default();
    let members = GroupMembers {
        members: vec!["anonymous".into()],
    };
    let kept = group_put(&stage.app, &stage.admin, "System", &members, &any).await;
    assert_eq!(kept.unwrap().members, ["anonymous"]);
    let new = NewToken {
        account: "anonymous".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&stage.app, &stage.admin, &new).await.unwrap();
    let named = authenticate(&stage.app, &made.secret).await.unwrap();
    let agent = stage
        .publish_approved("one.example.com", &card("One", "one"))
        .await;
    let policy = |id: &str, text: &str| NewPolicy {
        id: id.into(),
        text: text.into(),
    };
    let policies = NewPolicies {
        policies: vec![
            policy("open", "permit (principal, action, resource);"),
            policy(
                "no-strangers",
                "forbid (principal == Account::\"anonymous\", action == Action::\"discover\", resource);",
            ),
        ],
        reason: "a test".into(),
        ..NewPolicies::default()
    };
    policies_put(&stage.app, &stage.admin, &policies, &any)
        .await
        .unwrap();
    stage.settle().await;
    assert!(stage.found_by_anyone().await.is_empty());
    let found = stage.found(&named, &Default::default()).await;
    assert_eq!(found.agents.len(), 1);
    // A case about `anonymous` is about clients without a token.
    let case = PolicyCase {
        account: Some("anonymous".into()),
        groups: Vec::new(),
        action: "discover".into(),
        resource: agent.id.to_string(),
        expect: "deny".into(),
        because: None,
    };
    let cases = PolicyCases {
        cases: vec![case],
        policies: None,
    };
    let results = policies_test(&stage.app, &stage.admin, &cases)
        .await
        .unwrap();
    assert!(results.passed, "{results:?}");
}
