//! Registration in bulk: each URL is answered, counted and reported as if it were registered alone, and accounts share
//! the crawler.

use std::collections::BTreeSet;

use a2a_registry_api::{AgentPatch, Recrawl, Registration, SourceView};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::crawl::job::lease_visits;
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::register_bulk::register_bulk;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_store::domains::{domain_by_name, domain_count_by_registrant};
use a2a_registry_store::entity::event;
use a2a_registry_store::{Executor as _, Store, ownership};
use sea_orm::{ColumnTrait as _, EntityTrait as _, PaginatorTrait as _, QueryFilter as _};
use time::Duration;

use super::other_accounts::card_registration;
use super::recorded_sources::assert_recorded;
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, LEASE_MICROSECONDS, OriginResponse, agent_patch, card_bytes,
};

both_databases!(
    a_bulk_has_the_results_of_single_registrations,
    a_row_that_cannot_be_written_costs_only_its_own_url,
    a_bulk_takes_up_to_a_thousand,
    two_bulks_at_once_stay_within_the_limits,
    a_bulk_delays_no_other_account,
    what_waits_in_a_bulk_is_made_next_where_it_is_requested_by_itself
);

fn domain(name: &str) -> Registration {
    Registration {
        domain: Some(name.into()),
        ..Registration::default()
    }
}

fn url(url: &str) -> Registration {
    Registration {
        card_url: Some(url.into()),
        ..Registration::default()
    }
}

/// What a registration told its caller: of each source that it names what does not differ from account to account, or the kind
/// of the refusal and its text.
#[derive(Debug, PartialEq, Eq)]
enum RegistrationResult {
    Sources(Vec<String>),
    Refused(ErrorKind, String),
}

fn registration_result(sources: &[SourceView], account: &str) -> RegistrationResult {
    let one = |source: &SourceView| {
        if source.url.contains(DOMAIN) {
            assert_recorded(source);
        }
        let told = SourceView {
            id: if source.url.contains(DOMAIN) {
                source.id.clone()
            } else {
                String::new()
            },
            ..source.clone()
        };
        format!("{told:?}").replace(account, "ACCOUNT")
    };
    RegistrationResult::Sources(sources.iter().map(one).collect())
}

/// Registrations of all kinds by an account: of another's domain with a hidden agent, of domains of its own up to its limits, and
/// some that are wrong.
fn all_kinds(account: &str) -> Vec<Registration> {
    let own = |number: usize| format!("{account}{number}.agents-test.com");
    vec![
        card_registration("/hidden.json"),
        card_registration("/fresh.json"),
        card_registration("/fresh.json"),
        domain(&own(1)),
        url(&format!("https://{}/a.json", own(1))),
        url("https://user@agents-test.com/a.json"),
        Registration::default(),
        domain(&own(2)),
        domain(&own(3)),
        domain(&own(4)),
        url(&format!("https://{}/b.json", own(1))),
        url(&format!("https://{}/.well-known/ai-catalog.json", own(1))),
        url(&format!("https://{}/b.json", own(4))),
        card_registration("/hidden.json"),
        Registration {
            approve: true,
            ..domain(&own(1))
        },
    ]
}

/// The same registrations, by one account one after the other and by another in bulk, have the same results, events, challenges
/// and limits, tell as little of a hidden agent, and can be repeated.
async fn a_bulk_has_the_results_of_single_registrations(url_of_database: &str) {
    let registry = InProcessRegistry::with_config(url_of_database, |config| {
        config.limits.sources_per_account = 6;
        config.limits.domains_per_account = 3;
    })
    .await;
    let setup = OwnershipSetup::with_registry(registry);
    let registry = &setup.registry;
    register_domain(
        &registry.app,
        &registry.admin,
        &card_registration("/hidden.json"),
    )
    .await
    .unwrap();
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Hidden", "Is somebody's")))
        .await;
    let agent = registry.agents().await.pop().unwrap().id;
    registry.approve_open_review(agent).await;
    let become_visible = async |visibility| {
        let patch = AgentPatch {
            visibility: Some(visibility),
            ..AgentPatch::default()
        };
        agent_patch(&registry.app, &registry.admin, &agent.to_string(), &patch)
            .await
            .unwrap();
    };
    become_visible(Visibility::Restricted).await;

    let single = setup.create_publisher("onebyone").await;
    let mut singly = Vec::new();
    for what in all_kinds("onebyone") {
        singly.push(match register_domain(&registry.app, &single, &what).await {
            Ok(view) => {
                let named = |source: &&SourceView| match &what.card_url {
                    Some(url) => source.url == *url,
                    None => !source.url.ends_with("/a.json"),
                };
                let sources: Vec<SourceView> = view.sources.iter().filter(named).cloned().collect();
                registration_result(&sources, "onebyone")
            }
            Err(refused) => RegistrationResult::Refused(
                refused.kind,
                refused.public.replace("onebyone", "ACCOUNT"),
            ),
        });
    }
    let refusals = singly
        .iter()
        .filter(|one| matches!(one, RegistrationResult::Refused(..)));
    assert_eq!(refusals.count(), 6, "{singly:#?}");

    let many = setup.create_publisher("inbulk").await;
    for repeated in 0..2 {
        let results = register_bulk(&registry.app, &many, &all_kinds("inbulk")).await;
        let results = results.unwrap().into_iter().map(|result| match result {
            Ok(one) => registration_result(&one.sources, "inbulk"),
            Err(refused) => RegistrationResult::Refused(
                refused.kind,
                refused.public.replace("inbulk", "ACCOUNT"),
            ),
        });
        assert_eq!(
            results.collect::<Vec<_>>(),
            singly,
            "repeated {repeated} times"
        );
        let events = [
            events_of(registry, "onebyone").await,
            events_of(registry, "inbulk").await,
        ];
        assert_eq!(events[0], events[1]);
        assert_eq!(
            challenges_of(registry, &single).await,
            challenges_of(registry, &many).await
        );
    }
    for account in ["onebyone", "inbulk"] {
        let left_out = format!("{account}4.agents-test.com");
        let row = domain_by_name(&registry.store, &left_out).await.unwrap();
        assert!(row.is_none(), "{left_out} was refused");
    }
    become_visible(Visibility::Public).await;
    registry.assert_index_matches_database().await;
}

/// How many events an account has caused.
async fn events_of(registry: &InProcessRegistry, account: &str) -> u64 {
    event::Entity::find()
        .filter(event::Column::Actor.eq(account))
        .count(registry.store.connection())
        .await
        .unwrap()
}

/// How many challenges an account has.
async fn challenges_of(registry: &InProcessRegistry, caller: &Caller) -> usize {
    let account = caller.account.as_ref().unwrap().id;
    let rows =
        ownership::challenges_by_domain(&registry.store, &(1..100).collect::<Vec<i64>>()).await;
    let rows = rows.unwrap().into_iter();
    rows.filter(|row| row.account_id == account).count()
}

/// The database fails for one of three. The two others are registered, and the third when all are sent again.
async fn a_row_that_cannot_be_written_costs_only_its_own_url(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let registry = &setup.registry;
    registry.register_domain("broken.agents-test.com").await;
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Broken", "Is somebody's")))
        .await;
    registry
        .reject_row_updates("domains", "name", "broken.agents-test.com")
        .await;
    let all = [
        domain("first.agents-test.com"),
        url("https://broken.agents-test.com/another.json"),
        domain("last.agents-test.com"),
    ];
    let account = setup.create_publisher("somebody").await;
    let kinds = async || {
        let results = register_bulk(&registry.app, &account, &all).await.unwrap();
        let kinds = results
            .into_iter()
            .map(|one| one.err().map(|error| error.kind));
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, [None, Some(ErrorKind::Internal), None]);
    for name in ["first.agents-test.com", "last.agents-test.com"] {
        domain_show(&registry.app, &account, name).await.unwrap();
    }
    registry.allow_row_updates("domains").await;
    assert_eq!(kinds().await, [None, None, None]);
}

/// A request has one registration at least and a thousand at most.
async fn a_bulk_takes_up_to_a_thousand(url_of_database: &str) {
    let registry = InProcessRegistry::new(url_of_database).await;
    let some = |count: usize| -> Vec<Registration> {
        let path = |number: usize| url(&format!("https://{DOMAIN}/{}.json", number % 300));
        (0..count).map(path).collect()
    };
    for wrong in [0, 1001] {
        let refused = register_bulk(&registry.app, &registry.admin, &some(wrong)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid, "{wrong}");
        let row = domain_by_name(&registry.store, DOMAIN).await.unwrap();
        assert!(row.is_none(), "{wrong}");
    }
    let results = register_bulk(&registry.app, &registry.admin, &some(1000)).await;
    let results = results.unwrap();
    assert_eq!(results.len(), 1000);
    for (number, result) in results.into_iter().enumerate() {
        let one = result.unwrap();
        assert_eq!(one.domain, DOMAIN);
        let urls: Vec<String> = one.sources.into_iter().map(|one| one.url).collect();
        assert_eq!(urls, [format!("https://{DOMAIN}/{}.json", number % 300)]);
    }
}

/// Two processes count for the same account at the same time.
async fn two_bulks_at_once_stay_within_the_limits(url_of_database: &str) {
    let registry = InProcessRegistry::with_config(url_of_database, |config| {
        config.limits.domains_per_account = 10;
    })
    .await;
    let setup = OwnershipSetup::with_registry(registry);
    let account = setup.create_publisher("somebody").await;
    let id = account.account.as_ref().unwrap().id;
    let other = match setup.registry.store.is_postgres() {
        true => Some(setup.registry.second_process().await),
        false => None,
    };
    let second: &AppContext = other
        .as_ref()
        .map_or(&setup.registry.app, |stage| &stage.app);
    let names = |prefix: &str| -> Vec<Registration> {
        let name = |number| domain(&format!("{prefix}{number}.agents-test.com"));
        (0..8).map(name).collect()
    };
    let (first_names, second_names) = (names("first"), names("second"));
    let both = tokio::join!(
        register_bulk(&setup.registry.app, &account, &first_names),
        register_bulk(second, &account, &second_names),
    );
    let results = both.0.unwrap().into_iter().chain(both.1.unwrap());
    let accepted = results.filter(Result::is_ok).count();
    let stored = domain_count_by_registrant(&setup.registry.store, id)
        .await
        .unwrap();
    assert_eq!((accepted, stored), (10, 10));
}

/// While the crawler works off a bulk, another account's bulk gets every second visit and a single registration the next one;
/// for two processes alike, and after a restart.
async fn a_bulk_delays_no_other_account(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let callers = [
        setup.create_publisher("large").await,
        setup.create_publisher("small").await,
        setup.create_publisher("single").await,
    ];
    let names = |account: &str, count: usize| -> Vec<Registration> {
        let name = |number| domain(&format!("{account}{number}.agents-test.com"));
        (0..count).map(name).collect()
    };
    let app = &setup.registry.app;
    register_bulk(app, &callers[0], &names("large", 60))
        .await
        .unwrap();
    let store = setup.registry.store.clone();
    let taken = lease_and_end_visits(app, &store, 5).await;
    assert!(taken.iter().all(|name| name.starts_with("large")));
    register_bulk(app, &callers[1], &names("small", 10))
        .await
        .unwrap();
    setup.registry.advance(Duration::seconds(1));
    register_domain(app, &callers[2], &domain("single.agents-test.com"))
        .await
        .unwrap();
    assert_eq!(
        lease_and_end_visits(app, &store, 1).await,
        ["single.agents-test.com"]
    );
    let OwnershipSetup {
        registry: stage, ..
    } = setup;
    let registry = stage.restart(|_| ()).await;
    let other = match registry.store.is_postgres() {
        true => Some(registry.second_process().await),
        false => None,
    };
    let second: &AppContext = other.as_ref().map_or(&registry.app, |stage| &stage.app);
    let mut of_small = 0;
    for round in 1..=8_usize {
        let process = if round % 2 == 0 {
            second
        } else {
            &registry.app
        };
        let two = lease_and_end_visits(process, &registry.store, 2).await;
        of_small += two.iter().filter(|name| name.starts_with("small")).count();
        assert!(
            of_small.abs_diff(round) <= 1,
            "{of_small} in {round} rounds"
        );
    }
}

/// A domain of somebody's bulk does not wait for the others where another account registers it too, or requests its visit.
async fn what_waits_in_a_bulk_is_made_next_where_it_is_requested_by_itself(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let large = setup.create_publisher("large").await;
    let single = setup.create_publisher("single").await;
    let name = |number: usize| format!("large{number}.agents-test.com");
    let all: Vec<Registration> = (0..20).map(|number| domain(&name(number))).collect();
    let (app, store) = (&setup.registry.app, &setup.registry.store);
    register_bulk(app, &large, &all).await.unwrap();
    register_domain(app, &single, &domain(&name(12)))
        .await
        .unwrap();
    assert_eq!(lease_and_end_visits(app, store, 1).await, [name(12)]);
    register_bulk(app, &single, &[domain(&name(17))])
        .await
        .unwrap();
    let recrawl = Recrawl::default();
    for _ in 0..2 {
        domain_recrawl(app, &setup.registry.admin, &name(15), &recrawl)
            .await
            .unwrap();
    }
    assert_eq!(lease_and_end_visits(app, store, 1).await, [name(15)]);
    let two: BTreeSet<String> = lease_and_end_visits(app, store, 2)
        .await
        .into_iter()
        .collect();
    assert_eq!(two, BTreeSet::from([name(0), name(17)]));
}

/// Leases so many visits and ends them; the names of the domains.
async fn lease_and_end_visits(app: &AppContext, store: &Store, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for (row, _) in lease_visits(app, count, LEASE_MICROSECONDS).await.unwrap() {
        store.stop_domain_visits(row.id).await.unwrap();
        names.push(row.name);
    }
    names
}
