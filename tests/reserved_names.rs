//! Reserved names: no new account gets one, and an account that already has one does not get its special meaning.

use a2a_registry_api::{
    GroupMembers, NewAccount, NewPolicies, NewPolicy, NewToken, PolicyCase, PolicyCases,
};
use a2a_registry_core::accounts::account_operations::account_create;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::policy_cases::policies_test;
use a2a_registry_core::policies::sets::policies_put;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_domain::role::Role;
use a2a_registry_server::maintenance::find_reserved_names;
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::{account, account_group};
use a2a_registry_store::groups::ADMIN_ORIGIN;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, card_bytes};

both_databases!(
    no_account_and_no_group_gets_a_reserved_name,
    an_account_with_a_reserved_name_is_not_what_the_name_means
);

async fn no_account_and_no_group_gets_a_reserved_name(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let any = IfMatch::default();
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
        let made = account_create(&registry.app, &registry.admin, &new).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
        let new = NewToken {
            account: name.into(),
            role: Some(Role::Reader),
            name: "a test".into(),
            ..NewToken::default()
        };
        let made = token_create(&registry.app, &registry.admin, &new).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
        let members = GroupMembers::default();
        let made = group_put(&registry.app, &registry.admin, name, &members, &any).await;
        assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict, "{name}");
    }
    // The account of the bootstrap token gets further tokens, as before.
    let new = NewToken {
        account: "admin".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    assert!(
        token_create(&registry.app, &registry.admin, &new)
            .await
            .is_ok()
    );
}

/// Accounts and groups that an earlier version has made go on, are named by `doctor`, and are nothing that their name means.
async fn an_account_with_a_reserved_name_is_not_what_the_name_means(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let config = (*registry.app.config()).clone();
    assert_eq!(find_reserved_names(&config).await.unwrap(), [""; 0]);
    let id = |number: u128| Uuid::from_u128(0x0193_f00d_0000_7000_8000_0000_0000_0000 + number);
    let admin = account_by_name(&registry.store, "admin").await.unwrap();
    let write = registry.store.begin_write().await.unwrap();
    let row = account::Model {
        id: id(1),
        name: "anonymous".into(),
        role: Role::Reader.into(),
        roles: Some("reader".into()),
        ..admin.unwrap()
    };
    write.insert_account(row).await.unwrap();
    let group = account_group::Model {
        id: id(2),
        origin: ADMIN_ORIGIN.into(),
        name: "System".into(),
        created_at: 0,
    };
    write.insert_group(group).await.unwrap();
    write.commit().await.unwrap();
    let told = find_reserved_names(&config).await.unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("the account anonymous") && told[1].contains("the group System"));
    // The group can still be changed.
    let any = IfMatch::default();
    let members = GroupMembers {
        members: vec!["anonymous".into()],
    };
    let kept = group_put(&registry.app, &registry.admin, "System", &members, &any).await;
    assert_eq!(kept.unwrap().members, ["anonymous"]);
    let new = NewToken {
        account: "anonymous".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    let named = authenticate_token(&registry.app, &made.secret)
        .await
        .unwrap();
    let agent = registry
        .register_approved_card("one.example.com", &card_bytes("One", "one"))
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
    policies_put(&registry.app, &registry.admin, &policies, &any)
        .await
        .unwrap();
    registry.catch_up().await;
    assert!(registry.publicly_found_ids().await.is_empty());
    let found = registry.search_all(&named, &Default::default()).await;
    assert_eq!(found.agents.len(), 1);
    // A case about `anonymous` is about clients without a token.
    let case = PolicyCase {
        account: Some("anonymous".into()),
        groups: Vec::new(),
        action: "discover".into(),
        resource: agent.id.to_string(),
        expect: "deny".into(),
        because: None,
        at: None,
    };
    let cases = PolicyCases {
        cases: vec![case],
        policies: None,
    };
    let results = policies_test(&registry.app, &registry.admin, &cases)
        .await
        .unwrap();
    assert!(results.passed, "{results:?}");
}
