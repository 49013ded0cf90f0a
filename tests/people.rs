//! Accounts, groups and tokens in the database: what is counted and compared under a lock, on both engines, and what two
//! replicas say at the same time.

use a2a_registry_api::limits::MAX_TOKENS;
use a2a_registry_api::{AccountPatch, GroupMembers, NewAccount, NewToken};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_server::accounts::groups::{group_put, group_show};
use a2a_registry_server::accounts::people::{account_create, account_list, account_patch, me};
use a2a_registry_server::accounts::tokens::token_create;
use a2a_registry_server::authentication::authenticate;
use a2a_registry_server::error::ErrorKind;
use a2a_registry_server::paging::PageRequest;
use a2a_registry_server::precondition::Precondition;
use futures::future::join_all;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::stage::Stage;

both_databases!(
    one_admin_is_left_by_whoever_is_faster,
    tokens_made_at_once_keep_to_the_bound,
    groups_keep_what_was_set_last
);

fn roles(roles: &[Role]) -> AccountPatch {
    AccountPatch {
        roles: Some(roles.to_vec()),
        ..AccountPatch::default()
    }
}

async fn account(stage: &Stage, name: &str, roles: &[Role]) {
    let new = NewAccount {
        name: name.into(),
        roles: roles.to_vec(),
        groups: Vec::new(),
    };
    account_create(&stage.app, &stage.admin, &new)
        .await
        .unwrap();
}

async fn token(stage: &Stage, account: &str) -> Result<String, ErrorKind> {
    let new = NewToken {
        account: account.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&stage.app, &stage.admin, &new).await;
    made.map(|made| made.secret).map_err(|error| error.kind)
}

/// Two admins who demote each other at the same time: one stays.
async fn one_admin_is_left_by_whoever_is_faster(url: &str) {
    let stage = Stage::new(url).await;
    account(&stage, "other", &[Role::Admin]).await;
    let demoted = roles(&[Role::Reader]);
    let seen = Precondition::default();
    let demote = |name| account_patch(&stage.app, &stage.admin, name, &demoted, &seen);
    let (one, two) = tokio::join!(demote("admin"), demote("other"));
    assert_ne!(one.is_ok(), two.is_ok(), "{one:?} {two:?}");
    let refused = one.err().or(two.err()).unwrap();
    assert_eq!(refused.kind, ErrorKind::Conflict);
}

async fn tokens_made_at_once_keep_to_the_bound(url: &str) {
    let stage = Stage::new(url).await;
    account(&stage, "busy", &[Role::Publisher]).await;
    let asked = join_all((0..MAX_TOKENS + 8).map(|_| token(&stage, "busy"))).await;
    let made = asked.iter().filter(|made| made.is_ok()).count() as u64;
    assert_eq!(made, MAX_TOKENS);
    let limited = |made: &&Result<String, ErrorKind>| **made == Err(ErrorKind::LimitReached);
    assert_eq!(asked.iter().filter(limited).count(), 8);
}

async fn groups_keep_what_was_set_last(url: &str) {
    let stage = Stage::new(url).await;
    let (app, admin, seen) = (&stage.app, &stage.admin, Precondition::default());
    for name in ["ann", "bob", "eve"] {
        account(&stage, name, &[Role::Reader]).await;
    }
    for members in [&["ann", "bob"][..], &["bob", "eve", "eve"], &[], &["eve"]] {
        let wanted = GroupMembers {
            members: members.iter().map(ToString::to_string).collect(),
        };
        let group = group_put(app, admin, "travel", &wanted, &seen)
            .await
            .unwrap();
        let mut expected = wanted.members;
        expected.dedup();
        assert_eq!(group.members, expected);
        assert_eq!(group_show(app, admin, "travel").await.unwrap(), group);
    }
    let eve = authenticate(app, &token(&stage, "eve").await.unwrap())
        .await
        .unwrap();
    assert_eq!(me(app, &eve).await.unwrap().account.groups.len(), 1);
    let list = account_list(app, admin, &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(list.accounts.len(), 4);
}

/// What one replica changes, the other one knows at the next request.
#[tokio::test]
async fn a_change_acts_at_once_in_every_replica() {
    let database = Database::postgres().await;
    let first = Stage::new(database.url()).await;
    let second = Stage::new(database.url()).await;
    account(&first, "ann", &[Role::Curator]).await;
    let secret = token(&first, "ann").await.unwrap();
    let there = async || authenticate(&second.app, &secret).await;
    assert!(there().await.unwrap().may(Permission::Approve));
    let seen = Precondition::default();
    let reader = roles(&[Role::Reader]);
    account_patch(&first.app, &first.admin, "ann", &reader, &seen)
        .await
        .unwrap();
    let now = there().await.unwrap();
    assert!(now.may(Permission::Read) && !now.may(Permission::SeeAll));
    let disabled = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(&first.app, &first.admin, "ann", &disabled, &seen)
        .await
        .unwrap();
    assert_eq!(there().await.unwrap_err().kind, ErrorKind::Unauthenticated);
}
