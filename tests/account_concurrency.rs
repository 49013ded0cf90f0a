//! Concurrent changes of accounts, groups, tokens and sign-in attempts in the database: counts and comparisons under a
//! lock, on both engines, and concurrent responses of two replicas.

use std::collections::BTreeSet;

use a2a_registry_api::limits::{
    MAX_GROUP_MEMBERS, MAX_SESSIONS_PER_ACCOUNT, MAX_TOKENS_PER_ACCOUNT,
};
use a2a_registry_api::{AccountPatch, GroupMembers, NewAccount, NewToken};
use a2a_registry_core::accounts::account_operations::{
    account_create, account_list, account_patch, me,
};
use a2a_registry_core::accounts::authentication::{authenticate_session, authenticate_token};
use a2a_registry_core::accounts::groups::{group_list, group_put, group_show};
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::{token_create, token_revoke};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::{EventListQuery, event_list, load_events_after};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::providers::{AccountGrant, TokenSubject};
use a2a_registry_core::visibility::caller::{Caller, Credential};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_http::sessions::sign_in_attempts::CompletedSignIn;
use a2a_registry_http::sessions::{
    SessionClient, begin_session_with_provider, begin_session_with_token, session_list,
    session_revoke,
};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::{account, account_group, group_member};
use a2a_registry_store::groups::groups_by_account;
use a2a_registry_store::identities::is_sign_in_attempt_used;
use futures::future::join_all;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::InProcessRegistry;
use crate::support::setup::ADMIN_TOKEN;

both_databases!(
    one_admin_is_left_by_whoever_is_faster,
    one_way_in_is_left_by_whoever_is_faster,
    tokens_made_at_once_keep_to_the_bound,
    sessions_begun_at_once_keep_to_the_bound_and_end_with_their_token,
    groups_keep_what_was_set_last,
    many_accounts_in_many_groups_are_read_and_set,
    events_about_people_tell_what_the_reader_may_read,
    somebody_of_an_issuer_is_one_account,
    the_last_enabled_admin_stays_one_whatever_its_provider_says,
    an_attempt_to_sign_in_begins_one_session
);

fn roles(roles: &[Role]) -> AccountPatch {
    AccountPatch {
        roles: Some(roles.to_vec()),
        ..AccountPatch::default()
    }
}

async fn create_account(registry: &InProcessRegistry, name: &str, roles: &[Role]) {
    let new = NewAccount {
        name: name.into(),
        roles: roles.to_vec(),
        groups: Vec::new(),
    };
    account_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
}

async fn create_token(registry: &InProcessRegistry, account: &str) -> Result<String, ErrorKind> {
    let new = NewToken {
        account: account.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new).await;
    made.map(|made| made.secret).map_err(|error| error.kind)
}

/// The last two tokens of admins, revoked at the same time in two processes: one stays, and it works.
async fn one_way_in_is_left_by_whoever_is_faster(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "other", &[Role::Admin]).await;
    let secret = create_token(&registry, "other").await.unwrap();
    let other = authenticate_token(&registry.app, &secret).await.unwrap();
    let id = |caller: &Caller| match caller.require_account().unwrap().credential {
        Credential::Token(id) => id,
        _ => panic!("{caller:?}"),
    };
    let (first, second) = (id(&registry.admin), id(&other));
    // A replica of SQLite is another process, which it does not serve; there the two race in one.
    let beside = match url.starts_with("postgres") {
        true => Some(registry.second_process().await),
        false => None,
    };
    let replica = beside.as_ref().unwrap_or(&registry);
    let (one, two) = tokio::join!(
        token_revoke(&registry.app, &registry.admin, first),
        token_revoke(&replica.app, &other, second)
    );
    let refused = match (one, two) {
        (Ok(()), Err(refused)) | (Err(refused), Ok(())) => refused,
        both => panic!("{both:?}"),
    };
    assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
    assert!(refused.public.contains("last admin access"), "{refused:?}");
    let first = authenticate_token(&registry.app, ADMIN_TOKEN).await.is_ok();
    let second = authenticate_token(&registry.app, &secret).await.is_ok();
    assert!(first != second, "one of the tokens works");
}

/// Two admins who demote each other at the same time: one stays.
async fn one_admin_is_left_by_whoever_is_faster(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "other", &[Role::Admin]).await;
    let demoted = roles(&[Role::Reader]);
    let seen = IfMatch::default();
    let demote = |name| account_patch(&registry.app, &registry.admin, name, &demoted, &seen);
    let (one, two) = tokio::join!(demote("admin"), demote("other"));
    assert_ne!(one.is_ok(), two.is_ok(), "{one:?} {two:?}");
    let refused = one.err().or(two.err()).unwrap();
    assert_eq!(refused.kind, ErrorKind::Conflict);
}

async fn tokens_made_at_once_keep_to_the_bound(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "busy", &[Role::Publisher]).await;
    let asked =
        join_all((0..MAX_TOKENS_PER_ACCOUNT + 8).map(|_| create_token(&registry, "busy"))).await;
    let made = asked.iter().filter(|made| made.is_ok()).count() as u64;
    assert_eq!(made, MAX_TOKENS_PER_ACCOUNT);
    let limited = |made: &&Result<String, ErrorKind>| **made == Err(ErrorKind::LimitReached);
    assert_eq!(asked.iter().filter(limited).count(), 8);
}

async fn sessions_begun_at_once_keep_to_the_bound_and_end_with_their_token(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "busy", &[Role::Publisher]).await;
    let secret = create_token(&registry, "busy").await.unwrap();
    let busy = authenticate_token(&registry.app, &secret).await.unwrap();
    let client = SessionClient::default();
    let begun = join_all(
        (0..MAX_SESSIONS_PER_ACCOUNT + 4)
            .map(|_| begin_session_with_token(&registry.app, &busy, &client)),
    )
    .await;
    let mut live = 0;
    let mut last = String::new();
    for secret in begun.into_iter().map(Result::unwrap) {
        let known = authenticate_session(&registry.app, &secret, true)
            .await
            .unwrap();
        if let Some(known) = known {
            assert!(known.new_secret.is_none());
            live += 1;
            last = secret;
        }
    }
    assert_eq!(live, MAX_SESSIONS_PER_ACCOUNT);
    let page = PageRequest {
        page_size: Some(100),
        page_token: None,
    };
    let list = session_list(&registry.app, &busy, &page).await.unwrap();
    assert_eq!(list.sessions.len(), MAX_SESSIONS_PER_ACCOUNT);
    let id = list.sessions[0].id;
    session_revoke(&registry.app, &busy, id).await.unwrap();
    let gone = session_revoke(&registry.app, &busy, id).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::NotFound);
    let Credential::Token(token) = busy.require_account().unwrap().credential else {
        panic!("{busy:?}");
    };
    token_revoke(&registry.app, &registry.admin, token)
        .await
        .unwrap();
    let after = authenticate_session(&registry.app, &last, true)
        .await
        .unwrap();
    assert!(after.is_none());
    let list = session_list(&registry.app, &registry.admin, &page)
        .await
        .unwrap();
    assert!(list.sessions.is_empty());
}

async fn groups_keep_what_was_set_last(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin, seen) = (&registry.app, &registry.admin, IfMatch::default());
    for name in ["ann", "bob", "eve"] {
        create_account(&registry, name, &[Role::Reader]).await;
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
    let eve = authenticate_token(app, &create_token(&registry, "eve").await.unwrap())
        .await
        .unwrap();
    assert_eq!(me(app, &eve).await.unwrap().account.groups.len(), 1);
    let list = account_list(app, admin, &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(list.accounts.len(), 4);
}

/// More memberships than one statement of either engine has values for.
async fn many_accounts_in_many_groups_are_read_and_set(url: &str) {
    const ACCOUNTS: usize = MAX_GROUP_MEMBERS + 1;
    const GROUPS: usize = 66;
    let registry = InProcessRegistry::new(url).await;
    let id = |at: usize| Uuid::from_u128(0x0195_0000_0000_7000_8000_0000_0000_0000 + at as u128);
    let write = registry.store.begin_write().await.unwrap();
    let template = account_by_name(&write, &registry.admin.account.as_ref().unwrap().name).await;
    let template = template.unwrap().unwrap();
    for at in 0..ACCOUNTS {
        let row = account::Model {
            id: id(at),
            name: format!("account-{at}"),
            ..template.clone()
        };
        write.insert_account(row).await.unwrap();
    }
    for group in 0..GROUPS {
        let row = account_group::Model {
            id: id(ACCOUNTS + group),
            origin: "https://idp.example".into(),
            name: format!("group-{group}"),
            created_at: 0,
        };
        write.insert_group(row).await.unwrap();
    }
    let all = (0..ACCOUNTS).flat_map(|account| {
        (0..GROUPS).map(move |group| group_member::Model {
            group_id: id(ACCOUNTS + group),
            account_id: id(account),
        })
    });
    write.insert_group_members(all.collect()).await.unwrap();
    write.commit().await.unwrap();
    let accounts: Vec<Uuid> = (0..ACCOUNTS).map(id).collect();
    let found = groups_by_account(&registry.store, &accounts).await.unwrap();
    assert_eq!(found.len(), ACCOUNTS * GROUPS);
    assert!(found.is_sorted_by(|one, other| one.1.name <= other.1.name));
    let wanted = GroupMembers {
        members: (0..MAX_GROUP_MEMBERS)
            .map(|at| format!("account-{at}"))
            .collect(),
    };
    let any = IfMatch::default();
    let set = group_put(&registry.app, &registry.admin, "whole", &wanted, &any).await;
    assert_eq!(set.unwrap().members.len(), MAX_GROUP_MEMBERS);
    // A list names a part of a large group, and says how large it is.
    let list = group_list(&registry.app, &registry.admin, &PageRequest::default()).await;
    let groups = list.unwrap().groups;
    let large = groups.iter().find(|group| group.origin != "admin").unwrap();
    let told = (large.members.len(), large.member_count);
    assert_eq!(told, (MAX_GROUP_MEMBERS, ACCOUNTS as u64));
}

/// Curators read the log, but not who is in which group and from where an account comes.
async fn events_about_people_tell_what_the_reader_may_read(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "ann", &[Role::Curator]).await;
    create_account(&registry, "olga", &[Role::Auditor]).await;
    let wanted = GroupMembers {
        members: vec!["ann".into()],
    };
    let any = IfMatch::default();
    group_put(&registry.app, &registry.admin, "secret", &wanted, &any)
        .await
        .unwrap();
    for (name, is_told) in [("ann", false), ("olga", true)] {
        let secret = create_token(&registry, name).await.unwrap();
        let reader = authenticate_token(&registry.app, &secret).await.unwrap();
        let listed = event_list(
            &registry.app,
            &reader,
            &EventListQuery::default(),
            &PageRequest::default(),
        )
        .await
        .unwrap();
        let streamed =
            load_events_after(&registry.app, &reader, &EventFilter::default(), &mut 0, 100)
                .await
                .unwrap();
        for events in [&listed.events, &streamed] {
            let changed = events.iter().find(|event| event.subject == "secret");
            let told = &changed.unwrap().data;
            assert_eq!(told["members"].is_array(), is_told, "{name}: {told}");
        }
    }
}

/// A session is good in every replica, gets its other secret from whichever is asked first, and ends in all.
#[tokio::test]
async fn a_session_is_the_same_in_every_replica() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    let second = InProcessRegistry::new(database.url()).await;
    create_account(&first, "ann", &[Role::Curator]).await;
    let secret = create_token(&first, "ann").await.unwrap();
    let ann = authenticate_token(&first.app, &secret).await.unwrap();
    let secret = begin_session_with_token(&first.app, &ann, &SessionClient::default())
        .await
        .unwrap();
    let seen = IfMatch::default();
    let reader = roles(&[Role::Reader]);
    account_patch(&first.app, &first.admin, "ann", &reader, &seen)
        .await
        .unwrap();
    let asked = async |registry: &InProcessRegistry, secret: &str| {
        let known = authenticate_session(&registry.app, secret, true).await;
        known.unwrap()
    };
    let (one, two) = tokio::join!(asked(&first, &secret), asked(&second, &secret));
    let mut rotated: Vec<String> = [one, two]
        .into_iter()
        .flatten()
        .filter_map(|known| known.new_secret)
        .collect();
    assert_eq!(rotated.len(), 1);
    let rotated = rotated.remove(0);
    assert!(asked(&second, &secret).await.is_none());
    let known = asked(&second, &rotated).await.unwrap();
    assert!(!known.caller.has_permission(Permission::SeeAll));
    let disabled = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(&first.app, &first.admin, "ann", &disabled, &seen)
        .await
        .unwrap();
    assert!(asked(&second, &rotated).await.is_none());
}

/// What one replica changes, the other one knows at the next request.
#[tokio::test]
async fn a_change_acts_at_once_in_every_replica() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    let second = InProcessRegistry::new(database.url()).await;
    create_account(&first, "ann", &[Role::Curator]).await;
    let secret = create_token(&first, "ann").await.unwrap();
    let there = async || authenticate_token(&second.app, &secret).await;
    assert!(there().await.unwrap().has_permission(Permission::Approve));
    let seen = IfMatch::default();
    let reader = roles(&[Role::Reader]);
    account_patch(&first.app, &first.admin, "ann", &reader, &seen)
        .await
        .unwrap();
    let now = there().await.unwrap();
    assert!(now.has_permission(Permission::Read) && !now.has_permission(Permission::SeeAll));
    let disabled = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(&first.app, &first.admin, "ann", &disabled, &seen)
        .await
        .unwrap();
    assert_eq!(there().await.unwrap_err().kind, ErrorKind::Unauthenticated);
}

/// When the first claims of these tests are issued: the time at which stages begin.
pub const BEGIN: i64 = 1_795_000_000;

/// Somebody of an issuer whom the claims let in, by claims that were issued so many seconds after the first ones.
pub fn holder(subject: &str, groups: &[&str], after: i64) -> TokenSubject {
    let lead = groups.contains(&"leads").then_some(Role::Curator);
    TokenSubject {
        issuer: "https://login.example".into(),
        subject: subject.into(),
        issued_at: BEGIN + after,
        grant: Ok(AccountGrant {
            account_name: "ann@corp".into(),
            groups: Some(groups.iter().map(ToString::to_string).collect()),
            roles: [Role::Reader].into_iter().chain(lead).collect(),
        }),
    }
}

/// The same with another entry.
fn holder_with(holder: TokenSubject, change: impl FnOnce(&mut AccountGrant)) -> TokenSubject {
    let mut entry = holder.grant.unwrap();
    change(&mut entry);
    TokenSubject {
        grant: Ok(entry),
        ..holder
    }
}

/// Made once by whoever is first, brought up to date by newer tokens only, and never taken for somebody else of that name.
async fn somebody_of_an_issuer_is_one_account(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = holder("1", &["staff"], 10);
    let made = join_all((0..8).map(|_| resolve_subject_account(&registry.app, &first))).await;
    let ids: BTreeSet<_> = made.into_iter().map(|made| made.unwrap().id).collect();
    assert_eq!(ids.len(), 1);
    let other = resolve_subject_account(&registry.app, &holder("2", &[], 10))
        .await
        .unwrap();
    assert!(!ids.contains(&other.id));
    assert!(other.name.starts_with("ann-") && other.name.ends_with("@corp"));
    let shown = async || {
        let page = PageRequest::default();
        let list = account_list(&registry.app, &registry.admin, &page)
            .await
            .unwrap();
        let found = list.accounts.into_iter().find(|one| one.name == "ann@corp");
        let found = found.unwrap();
        let groups = found.groups.into_iter().map(|group| group.name);
        (found.roles.len(), groups.collect::<Vec<_>>())
    };
    assert_eq!(shown().await, (1, vec!["staff".to_owned()]));
    for (groups, issued_at, roles) in [
        (&["leads", "staff"][..], 20, 2),
        // A token of before the last one changes nothing.
        (&["robots"], 15, 2),
        (&[], 20, 1),
        (&["leads"], 30, 2),
    ] {
        let next = holder("1", groups, issued_at);
        resolve_subject_account(&registry.app, &next).await.unwrap();
        let wanted = if issued_at == 15 {
            &["leads", "staff"][..]
        } else {
            groups
        };
        let (count, names) = shown().await;
        assert_eq!(
            (count, names),
            (roles, wanted.iter().map(ToString::to_string).collect())
        );
    }
    // An access token that does not speak of groups changes nothing either.
    let silent = holder_with(holder("1", &[], 40), |entry| entry.groups = None);
    resolve_subject_account(&registry.app, &silent)
        .await
        .unwrap();
    assert_eq!(shown().await, (2, vec!["leads".to_owned()]));
    // The roles that an admin has set hold, until they are again what the map gave.
    let seen = IfMatch::default();
    let set = async |to: &[Role]| {
        let patch = roles(to);
        account_patch(&registry.app, &registry.admin, "ann@corp", &patch, &seen)
            .await
            .unwrap();
    };
    set(&[Role::Publisher]).await;
    resolve_subject_account(&registry.app, &holder("1", &[], 50))
        .await
        .unwrap();
    assert_eq!(shown().await, (1, Vec::new()));
    let me = resolve_subject_account(&registry.app, &holder("1", &[], 50))
        .await
        .unwrap();
    assert_eq!(me.roles.as_deref(), Some("publisher"));
    set(&[Role::Reader, Role::Curator]).await;
    let me = resolve_subject_account(&registry.app, &holder("1", &[], 60))
        .await
        .unwrap();
    assert_eq!(me.roles.as_deref(), Some("reader"));
}

async fn the_last_enabled_admin_stays_one_whatever_its_provider_says(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let come = async |role: Role, issued_at: i64| {
        let holder = holder_with(holder("1", &[], issued_at), |entry| {
            entry.roles = [role].into_iter().collect();
        });
        let account = resolve_subject_account(&registry.app, &holder)
            .await
            .unwrap();
        account.roles.unwrap()
    };
    assert_eq!(come(Role::Admin, 10).await, "admin");
    let ann = create_token(&registry, "ann@corp").await.unwrap();
    let set = async |disabled: bool| {
        let by = authenticate_token(&registry.app, &ann).await.unwrap();
        let patch = AccountPatch {
            disabled: Some(disabled),
            ..AccountPatch::default()
        };
        let seen = IfMatch::default();
        account_patch(&registry.app, &by, "admin", &patch, &seen)
            .await
            .unwrap();
    };
    set(true).await;
    assert_eq!(come(Role::Reader, 20).await, "admin", "nobody else is one");
    set(false).await;
    assert_eq!(come(Role::Reader, 30).await, "reader");
}

/// The answers come to several processes at the same time, each of which has looked whether the attempt was used.
async fn an_attempt_to_sign_in_begins_one_session(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let replica = match registry.store.is_postgres() {
        true => Some(InProcessRegistry::new(url).await),
        false => None,
    };
    create_account(&registry, "ann", &[Role::Reader]).await;
    let ann = account_by_name(&registry.store, "ann")
        .await
        .unwrap()
        .unwrap();
    let begin = async |on: &InProcessRegistry, state: &str| {
        let attempt = CompletedSignIn {
            state_hash: state.into(),
            issuer: "https://login.example".into(),
        };
        let client = SessionClient::default();
        begin_session_with_provider(&on.app, ann.id, &attempt, &client).await
    };
    let other = replica.as_ref().unwrap_or(&registry);
    let begun = join_all((0..4).flat_map(|_| [begin(&registry, "s"), begin(other, "s")])).await;
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), 1);
    for refused in begun.into_iter().filter_map(Result::err) {
        assert_eq!(refused.kind, ErrorKind::Unauthenticated);
    }
    assert!(is_sign_in_attempt_used(&registry.store, "s").await.unwrap());
    assert!(!is_sign_in_attempt_used(&registry.store, "t").await.unwrap());
    let page = PageRequest::default();
    let list = session_list(&registry.app, &registry.admin, &page)
        .await
        .unwrap();
    assert_eq!(list.sessions.len(), 1);
    // Where no session is begun, the attempt is not used up.
    let patch = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    let seen = IfMatch::default();
    account_patch(&registry.app, &registry.admin, "ann", &patch, &seen)
        .await
        .unwrap();
    begin(&registry, "t").await.unwrap_err();
    assert!(!is_sign_in_attempt_used(&registry.store, "t").await.unwrap());
}
