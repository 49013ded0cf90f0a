//! People whom their identity provider no longer admits, or has not confirmed for a long time: their tokens and
//! sessions end or are suspended, on both databases and in every replica.

use a2a_registry_api::{AccountPatch, NewToken, Token};
use a2a_registry_core::accounts::account_operations::{account_patch, account_show};
use a2a_registry_core::accounts::authentication::{authenticate_session, authenticate_token};
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::{token_create, token_list};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::providers::{GrantRejection, TokenSubject};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_http::sessions::{SessionClient, begin_session_with_token};
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::feed;
use a2a_registry_store::feeds::feed_by_account;
use a2a_registry_store::groups::groups_by_account;
use futures::future::join_all;
use time::Duration;

use crate::account_concurrency::holder;
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::InProcessRegistry;
use crate::support::setup::ADMIN_TOKEN;

both_databases!(
    newer_claims_that_do_not_let_somebody_in_end_everything,
    claims_that_say_too_little_or_are_older_end_nothing,
    roles_that_an_admin_has_set_rest_until_the_next_sign_in,
    the_last_admin_keeps_the_role_alone,
    whoever_is_not_confirmed_for_long_is_suspended_until_the_next_sign_in,
    of_claims_that_come_at_once_the_newest_count
);

const NAME: &str = "ann@corp";

/// Somebody whom the claims do not let in.
fn refused(after: i64, ends_access: bool) -> TokenSubject {
    TokenSubject {
        grant: Err(GrantRejection {
            text: "not let in".into(),
            ends_access,
        }),
        ..holder("1", &[], after)
    }
}

/// What somebody has to be authenticated by.
struct IssuedCredentials {
    token: String,
    session: String,
}

impl IssuedCredentials {
    /// A token, a session and a feed of the account that has come.
    async fn create(registry: &InProcessRegistry) -> Self {
        let account = account_by_name(&registry.store, NAME)
            .await
            .unwrap()
            .unwrap();
        let new = NewToken {
            account: NAME.into(),
            name: "a test".into(),
            ..NewToken::default()
        };
        let made = token_create(&registry.app, &registry.admin, &new)
            .await
            .unwrap();
        let by_token = authenticate_token(&registry.app, &made.secret)
            .await
            .unwrap();
        let session =
            begin_session_with_token(&registry.app, &by_token, &SessionClient::default()).await;
        let write = registry.store.begin_write().await.unwrap();
        let feed = feed::Model {
            account_id: account.id,
            hash: format!("{}", account.id),
            created_at: 0,
            scopes: Some("read".into()),
        };
        write.upsert_feed(feed).await.unwrap();
        write.commit().await.unwrap();
        Self {
            token: made.secret,
            session: session.unwrap(),
        }
    }

    /// Whether the token and the session open anything.
    async fn open(&self, registry: &InProcessRegistry) -> (bool, bool) {
        let by_token = authenticate_token(&registry.app, &self.token).await;
        if let Err(error) = &by_token {
            assert_eq!(error.kind, ErrorKind::Unauthenticated);
        }
        let by_session = authenticate_session(&registry.app, &self.session, false).await;
        (by_token.is_ok(), by_session.unwrap().is_some())
    }
}

/// The kinds of the events about accounts, oldest first.
async fn account_event_kinds(registry: &InProcessRegistry) -> Vec<String> {
    let events = load_events_after(
        &registry.app,
        &registry.admin,
        &EventFilter::default(),
        &mut 0,
        1_000,
    )
    .await
    .unwrap();
    let kinds = events.iter().map(|event| event.kind.to_string());
    kinds.filter(|kind| kind.starts_with("account.")).collect()
}

async fn sign_in_holder(
    registry: &InProcessRegistry,
    holder: &TokenSubject,
) -> Result<String, ErrorKind> {
    let account = resolve_subject_account(&registry.app, holder).await;
    account
        .map(|account| account.roles.unwrap())
        .map_err(|error| error.kind)
}

async fn newer_claims_that_do_not_let_somebody_in_end_everything(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let come = async |holder: TokenSubject| sign_in_holder(&registry, &holder).await;
    assert_eq!(
        come(holder("1", &["leads"], 0)).await.unwrap(),
        "reader,curator"
    );
    let before = IssuedCredentials::create(&registry).await;
    assert_eq!(before.open(&registry).await, (true, true));
    assert_eq!(come(refused(10, true)).await, Err(ErrorKind::Forbidden));
    assert_eq!(before.open(&registry).await, (false, false));
    let row = account_by_name(&registry.store, NAME)
        .await
        .unwrap()
        .unwrap();
    assert!(!row.is_account_active() && row.account_roles().unwrap().is_empty());
    assert!(
        feed_by_account(&registry.store, row.id)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        groups_by_account(&registry.store, &[row.id])
            .await
            .unwrap()
            .is_empty()
    );
    let shown = account_show(&registry.app, &registry.admin, NAME)
        .await
        .unwrap();
    assert!(shown.access_ended_at.is_some() && shown.roles.is_empty());
    assert_eq!(
        account_event_kinds(&registry).await,
        ["account.created", "account.access_ended"]
    );
    // No admin makes it a token by mistake.
    let new = NewToken {
        account: NAME.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new).await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Conflict);
    // What was issued before it, or at the same time, lets nobody in again, and the same said again is no news.
    for issued in [0, 5, 10] {
        let again = come(holder("1", &["leads"], issued)).await;
        assert_eq!(again, Err(ErrorKind::Forbidden), "{issued}");
    }
    for issued in [10, 20] {
        assert_eq!(come(refused(issued, true)).await, Err(ErrorKind::Forbidden));
    }
    assert_eq!(
        come(holder("1", &["leads"], 15)).await,
        Err(ErrorKind::Forbidden)
    );
    assert_eq!(account_event_kinds(&registry).await.len(), 2);
    // Newer claims do, with the roles that they give; what has ended stays ended.
    assert_eq!(come(holder("1", &[], 30)).await.unwrap(), "reader");
    assert_eq!(before.open(&registry).await, (false, false));
    let after = IssuedCredentials::create(&registry).await;
    assert_eq!(after.open(&registry).await, (true, true));
    assert_eq!(
        account_event_kinds(&registry).await[2..],
        ["account.changed"]
    );
}

async fn claims_that_say_too_little_or_are_older_end_nothing(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    // Whoever has no account gets none.
    for ends_access in [true, false] {
        let none = sign_in_holder(&registry, &refused(0, ends_access)).await;
        assert_eq!(none, Err(ErrorKind::Forbidden));
    }
    assert!(
        account_by_name(&registry.store, NAME)
            .await
            .unwrap()
            .is_none()
    );
    sign_in_holder(&registry, &holder("1", &["leads"], 10))
        .await
        .unwrap();
    let own = IssuedCredentials::create(&registry).await;
    for (issued, ends_access) in [(0, true), (9, true), (10, true), (11, false), (50, false)] {
        let none = sign_in_holder(&registry, &refused(issued, ends_access)).await;
        assert_eq!(none, Err(ErrorKind::Forbidden));
        assert_eq!(own.open(&registry).await, (true, true), "{issued}");
    }
    // Nor has any of them moved the time of what was applied last.
    assert_eq!(
        sign_in_holder(&registry, &holder("1", &[], 20))
            .await
            .unwrap(),
        "reader"
    );
    assert_eq!(
        account_event_kinds(&registry).await,
        ["account.created", "account.changed"]
    );
}

async fn roles_that_an_admin_has_set_rest_until_the_next_sign_in(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    sign_in_holder(&registry, &holder("1", &[], 0))
        .await
        .unwrap();
    let patch = AccountPatch {
        roles: Some(vec![Role::Publisher, Role::Curator]),
        ..AccountPatch::default()
    };
    let any = IfMatch::default();
    account_patch(&registry.app, &registry.admin, NAME, &patch, &any)
        .await
        .unwrap();
    let own = IssuedCredentials::create(&registry).await;
    sign_in_holder(&registry, &refused(10, true))
        .await
        .unwrap_err();
    assert_eq!(own.open(&registry).await, (false, false));
    let row = account_by_name(&registry.store, NAME)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.roles.as_deref(), Some("publisher,curator"));
    assert!(!row.is_account_active());
    let back = sign_in_holder(&registry, &holder("1", &["leads"], 20))
        .await
        .unwrap();
    assert_eq!(back, "publisher,curator");
    let after = IssuedCredentials::create(&registry).await;
    let caller = authenticate_token(&registry.app, &after.token)
        .await
        .unwrap();
    assert!(caller.has_permission(Permission::Approve));
}

async fn the_last_admin_keeps_the_role_alone(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let admin = |after: i64| {
        let mut holder = holder("1", &[], after);
        if let Ok(entry) = &mut holder.grant {
            entry.roles = [Role::Admin, Role::Curator].into_iter().collect();
        }
        holder
    };
    sign_in_holder(&registry, &admin(0)).await.unwrap();
    let own = IssuedCredentials::create(&registry).await;
    let disable = async |disabled: bool| {
        let by = authenticate_token(&registry.app, &own.token).await.unwrap();
        let patch = AccountPatch {
            disabled: Some(disabled),
            ..AccountPatch::default()
        };
        let any = IfMatch::default();
        account_patch(&registry.app, &by, "admin", &patch, &any)
            .await
            .unwrap();
    };
    disable(true).await;
    sign_in_holder(&registry, &refused(10, true))
        .await
        .unwrap_err();
    assert_eq!(own.open(&registry).await, (false, false));
    let row = account_by_name(&registry.store, NAME)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.roles.as_deref(), Some("admin"));
    // It follows the provider still.
    let back = sign_in_holder(&registry, &holder("1", &[], 20))
        .await
        .unwrap();
    assert_eq!(back, "admin", "nobody else is one");
    assert_eq!(
        sign_in_holder(&registry, &admin(30)).await.unwrap(),
        "curator,admin"
    );
}

/// The tokens of the account, as an admin sees them.
async fn list_tokens(registry: &InProcessRegistry) -> Vec<Token> {
    let page = PageRequest::default();
    let list = token_list(&registry.app, &registry.admin, &page)
        .await
        .unwrap();
    let own = list
        .tokens
        .into_iter()
        .filter(|token| token.account == NAME);
    own.collect()
}

async fn whoever_is_not_confirmed_for_long_is_suspended_until_the_next_sign_in(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.identity.max_absence = 1).await;
    sign_in_holder(&registry, &holder("1", &[], 0))
        .await
        .unwrap();
    let mut own = IssuedCredentials::create(&registry).await;
    registry.advance(Duration::hours(20));
    let by_token = authenticate_token(&registry.app, &own.token).await.unwrap();
    own.session = begin_session_with_token(&registry.app, &by_token, &SessionClient::default())
        .await
        .unwrap();
    registry.advance(Duration::hours(4) - Duration::seconds(1));
    assert_eq!(own.open(&registry).await, (true, true));
    assert_eq!(list_tokens(&registry).await[0].suspended_at, None);
    registry.advance(Duration::seconds(1));
    assert_eq!(own.open(&registry).await, (false, false));
    let error = authenticate_token(&registry.app, &own.token)
        .await
        .unwrap_err();
    assert!(error.public.contains("suspended"), "{error:?}");
    assert_eq!(
        list_tokens(&registry).await[0].suspended_at,
        Some(registry.now().into())
    );
    // The registry's own accounts have nobody who confirms them.
    assert!(authenticate_token(&registry.app, ADMIN_TOKEN).await.is_ok());
    // An older token confirms nothing, and nothing has ended.
    sign_in_holder(&registry, &holder("1", &[], 0))
        .await
        .unwrap();
    assert_eq!(own.open(&registry).await, (false, false));
    sign_in_holder(&registry, &holder("1", &[], 24 * 3600))
        .await
        .unwrap();
    assert_eq!(own.open(&registry).await, (true, true));
    assert_eq!(list_tokens(&registry).await[0].suspended_at, None);
    assert_eq!(account_event_kinds(&registry).await, ["account.created"]);
    // Switched off, nobody is suspended.
    let registry = registry
        .restart(|config| config.identity.max_absence = 0)
        .await;
    registry.advance(Duration::days(60));
    assert!(own.open(&registry).await.0);
}

/// Whatever comes first and however many, the newest claims decide.
async fn of_claims_that_come_at_once_the_newest_count(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    sign_in_holder(&registry, &holder("1", &["leads"], 0))
        .await
        .unwrap();
    let mut begin = 10;
    for last_ends in [true, false, true] {
        let claims = (0..8).map(|at| match (at % 2 == 1) == last_ends {
            true => refused(begin + at, true),
            false => holder("1", &["leads"], begin + at),
        });
        let claims: Vec<TokenSubject> = claims.collect();
        join_all(
            claims
                .iter()
                .map(|holder| sign_in_holder(&registry, holder)),
        )
        .await;
        let row = account_by_name(&registry.store, NAME)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.is_account_active(), !last_ends);
        begin += 10;
    }
}

/// What one replica ends is worth nothing at the next request to another.
#[tokio::test]
async fn access_ends_at_once_in_every_replica() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    let second = InProcessRegistry::new(database.url()).await;
    sign_in_holder(&first, &holder("1", &["leads"], 0))
        .await
        .unwrap();
    let own = IssuedCredentials::create(&first).await;
    assert_eq!(own.open(&second).await, (true, true));
    sign_in_holder(&first, &refused(10, true))
        .await
        .unwrap_err();
    assert_eq!(own.open(&second).await, (false, false));
    let older = sign_in_holder(&second, &holder("1", &["leads"], 10)).await;
    assert_eq!(older, Err(ErrorKind::Forbidden));
}
