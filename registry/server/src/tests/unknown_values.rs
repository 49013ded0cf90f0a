//! Tests of rows with a value that only a later version knows.

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::records::{new_account_row, new_token_row};
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::actions::{domain_list, domain_show};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::sources::new_domain_row;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_store::StoredEnum;
use a2a_registry_store::entity::{account, domain};

use crate::startup::start_registry;

const ADMIN: &str = "a-bootstrap-token-of-forty-characters-0001";
const THEIRS: &str = "a-token-of-somebody-whose-role-is-a-later-one";

#[tokio::test]
async fn a_role_that_is_not_known_may_nothing() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let entropy = Arc::new(SystemEntropy::default());
    let network = NetworkAccess::offline(&config, Arc::new(SystemClock)).unwrap();
    let clock = Arc::new(SystemClock);
    let build = start_registry(config, clock, entropy.clone(), network, Some(ADMIN));
    let context = build.await.unwrap().context;
    let now = context.now();
    let account = account::Model {
        roles: Some("admin,warden".into()),
        ..new_account_row(
            "later",
            &Roles::from_legacy_role(Role::Admin),
            now,
            entropy.as_ref(),
        )
    };
    let token = new_token_row(THEIRS, account.id, "test", false, now, entropy.as_ref());
    let write = context.store.begin_write().await.unwrap();
    write.insert_account(account.clone()).await.unwrap();
    write.insert_token(token).await.unwrap();
    write.commit().await.unwrap();
    let error = authenticate_token(&context, THEIRS).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    let told = format!("accounts.roles of {} holds \"admin,warden\"", account.id);
    assert_eq!(error.internal, Some(told));
    assert!(authenticate_token(&context, ADMIN).await.is_ok());
}

#[tokio::test]
async fn a_domain_in_an_unknown_state_is_left_out_alone() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy::default()));
    let network = NetworkAccess::offline(&config, Arc::new(SystemClock)).unwrap();
    let started = start_registry(config, clock, entropy, network, Some(ADMIN)).await;
    let context = started.unwrap().context;
    let caller = authenticate_token(&context, ADMIN).await.unwrap();
    let row = |name| new_domain_row(name, "https", context.now());
    let write = context.store.begin_write().await.unwrap();
    write.insert_domain(row("known.example")).await.unwrap();
    let later = domain::Model {
        state: StoredEnum::from_text("moonlit".into()),
        ..row("later.example")
    };
    let later = write.insert_domain(later).await.unwrap();
    write.commit().await.unwrap();

    let error = domain_show(&context, &caller, &later.name)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    let expected = format!("domains.state of {} holds \"moonlit\"", later.id);
    assert_eq!(error.internal, Some(expected));
    let page = PageRequest::default();
    let listed = domain_list(&context, &caller, &page).await.unwrap();
    let names = listed.domains.into_iter().map(|view| view.domain);
    assert_eq!(names.collect::<Vec<_>>(), ["known.example"]);
}
