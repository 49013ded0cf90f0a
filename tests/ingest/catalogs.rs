//! Domains that publish several agents through catalogs (docs/develop/model.md#slots).

use std::collections::BTreeMap;

use a2a_crawler::AttemptOutcome::{NotACatalog, NotFound, Timeout};
use a2a_registry_api::{Act, DomainView, Registration, SourceView};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::lifecycle_actions::agent_retire;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visits::leases::next_visit_due;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState};
use a2a_registry_store::entity::source;
use time::Duration;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    CatalogExtent, InProcessRegistry, OriginResponse, card_bytes,
};

const DOMAIN: &str = "site.agents-test.com";

fn site_url(path: &str) -> String {
    format!("https://{DOMAIN}{path}")
}

/// A site with catalogs and cards at paths that the test chooses; the card at a path is named after it.
#[derive(Clone, Default)]
struct CatalogSite {
    ard: Option<OriginResponse>,
    ai_catalog: Option<OriginResponse>,
    cards: BTreeMap<String, Vec<u8>>,
}

impl CatalogSite {
    fn with_cards(paths: &[&str]) -> Self {
        let cards = paths
            .iter()
            .map(|path| (site_url(path), card_bytes(path, "Lives here")))
            .collect();
        Self {
            cards,
            ..Self::default()
        }
    }

    fn with_catalog(mut self, entries: &[(&str, &str)]) -> Self {
        self.ard = Some(catalog(entries, CatalogExtent::Complete));
        self
    }

    fn respond(&self, source: &source::Model) -> OriginResponse {
        let catalog = match source.kind.as_str() {
            "ard" => &self.ard,
            "ai_catalog" => &self.ai_catalog,
            _ => {
                let url = crate::support::in_process_registry::source_card_url(source);
                let card = self.cards.get(&url).cloned();
                return card.map_or(OriginResponse::Failure(NotFound), OriginResponse::Card);
            }
        };
        catalog.clone().unwrap_or(OriginResponse::Failure(NotFound))
    }
}

fn catalog(entries: &[(&str, &str)], read: CatalogExtent) -> OriginResponse {
    let entries = entries
        .iter()
        .map(|(identifier, path)| ((*identifier).to_owned(), site_url(path)));
    OriginResponse::Catalog(entries.collect(), read)
}

/// Makes visits as they come due, for this long.
async fn make_due_visits(registry: &InProcessRegistry, site: &CatalogSite, long: Duration) {
    let end = registry.now() + long;
    loop {
        while registry.run_due_visits(|source| site.respond(source)).await > 0 {}
        let due = next_visit_due(&registry.app).await.unwrap();
        let Some(due) = due
            .map(time::OffsetDateTime::from)
            .filter(|due| *due <= end)
        else {
            registry.advance(end - registry.now());
            return;
        };
        registry.advance((due - registry.now()).max(Duration::SECOND));
    }
}

/// Names of the living agents, each with its liveness.
async fn agents(registry: &InProcessRegistry) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for row in registry.agents().await {
        if row.domain == DOMAIN && row.retired_at.is_none() {
            let view = agent_show_checked(&registry.app, &registry.admin, &row.id.to_string())
                .await
                .unwrap();
            all.push((view.hit.summary.name, row.liveness.as_str().to_owned()));
        }
    }
    all.sort();
    all
}

fn all_fresh(names: &[&str]) -> Vec<(String, String)> {
    let one = |name: &&str| ((*name).to_owned(), "fresh".to_owned());
    names.iter().map(one).collect()
}

async fn domain_view(registry: &InProcessRegistry) -> DomainView {
    domain_show(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap()
}

fn sources_of_kind(view: &DomainView, kind: &str) -> Vec<SourceView> {
    let sources = view.sources.iter();
    sources
        .filter(|one| one.kind.as_str() == kind)
        .cloned()
        .collect()
}

both_databases!(
    a_catalog_brings_several_agents,
    registering_a_card_url_fetches_no_catalog,
    one_agent_at_two_paths_is_one_agent,
    an_entry_that_moves_keeps_its_agent,
    entries_that_exchange_urls_keep_their_agents,
    an_unreadable_catalog_is_reported,
    a_dropped_entry_ends_after_a_grace_period,
    either_catalog_keeps_an_agent,
    endpoints_elsewhere_are_flagged,
    agents_from_a_catalog_are_limited,
    registering_a_url_that_a_catalog_names_uses_no_slot,
    a_missing_catalog_is_refetched_after_a_week,
    approving_a_domain_covers_only_its_first_catalog,
    a_retired_agent_stays_retired,
    deleting_a_domain_ends_its_catalogs_agents
);

/// Each card that a catalog names is an agent, found by its URL; a second catalog with the same entries adds nothing.
async fn a_catalog_brings_several_agents(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let names = [
        ("urn:air:site.agents-test.com:a", "/a.json"),
        ("b", "/b.json"),
        ("c", "/c.json"),
    ];
    let mut site = CatalogSite::with_cards(&["/a.json", "/b.json", "/c.json"]).with_catalog(&names);
    site.ai_catalog = site.ard.clone();
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::minutes(10)).await;
    assert_eq!(
        agents(&registry).await,
        all_fresh(&["/a.json", "/b.json", "/c.json"])
    );
    let view = domain_view(&registry).await;
    assert_eq!(sources_of_kind(&view, "entry").len(), 3);
    assert_eq!(sources_of_kind(&view, "ard")[0].state.as_str(), "fresh");
    assert_eq!(
        sources_of_kind(&view, "ard")[0]
            .last_attempt
            .as_ref()
            .unwrap()
            .outcome,
        "catalog"
    );
    for row in registry.agents().await {
        assert_eq!(
            row.lifecycle,
            Lifecycle::Pending,
            "a catalog entry approves nothing"
        );
        registry.approve_open_review(row.id).await;
    }
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 3);

    // The same for days: nothing is added.
    make_due_visits(&registry, &site, Duration::days(3)).await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        3
    );
    assert_eq!(registry.agents().await.len(), 3);
    registry.assert_index_matches_database().await;
}

/// Registering one card fetches only that card; registering its domain adds the rest, once.
async fn registering_a_card_url_fetches_no_catalog(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_card_url(&site_url("/a.json")).await;
    assert_eq!(domain_view(&registry).await.sources.len(), 1);
    for _ in 0..2 {
        registry.register_domain(DOMAIN).await;
        let kinds: Vec<String> = domain_view(&registry)
            .await
            .sources
            .into_iter()
            .map(|one| one.kind.to_string())
            .collect();
        assert_eq!(kinds, ["url", "well_known", "ard", "ai_catalog"]);
    }
}

/// One agent at two paths is one agent: by content, by the well-known URL, by another entry's URL, and by a registered
/// URL.
async fn one_agent_at_two_paths_is_one_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let well_known = "/.well-known/agent-card.json";
    let mut site = CatalogSite::with_cards(&[well_known, "/own.json"]).with_catalog(&[
        ("copy", "/copy.json"),
        ("known", well_known),
        ("own", "/own.json"),
        ("alias", "/own.json"),
    ]);
    site.cards.insert(
        site_url("/copy.json"),
        site.cards[&site_url(well_known)].clone(),
    );
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::minutes(10)).await;
    assert_eq!(
        agents(&registry).await,
        all_fresh(&[well_known, "/own.json"])
    );
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        2,
        "no URL is fetched twice"
    );
    registry.register_card_url(&site_url("/own.json")).await;
    make_due_visits(&registry, &site, Duration::minutes(10)).await;
    assert_eq!(registry.agents().await.len(), 2);
    // Both change at once, and stay one agent.
    site.cards.insert(
        site_url("/own.json"),
        card_bytes("/own.json", "Has changed"),
    );
    make_due_visits(&registry, &site, Duration::days(3)).await;
    assert_eq!(registry.agents().await.len(), 2);
    registry.assert_index_matches_database().await;

    // Once the copy's content differs it is an agent of its own, and the older slot keeps its agent.
    site.cards.insert(
        site_url("/copy.json"),
        card_bytes("/copy.json", "Has its own"),
    );
    make_due_visits(&registry, &site, Duration::days(3)).await;
    assert_eq!(agents(&registry).await.len(), 3);
    registry.assert_index_matches_database().await;
}

/// An identifier keeps its agent wherever its card moves; a new identifier for the same URL is another agent.
async fn an_entry_that_moves_keeps_its_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json", "/b.json"]).with_catalog(&[("a", "/a.json")]);
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    make_due_visits(
        &registry,
        &site.clone().with_catalog(&[("a", "/b.json")]),
        Duration::days(2),
    )
    .await;
    let moved = registry.agent(DOMAIN).await;
    assert_eq!(moved.id, agent.id);
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry")[0].url,
        site_url("/b.json")
    );
    registry.assert_index_matches_database().await;
    make_due_visits(
        &registry,
        &site.with_catalog(&[("renamed", "/b.json")]),
        Duration::days(5),
    )
    .await;
    assert_eq!(registry.agent(DOMAIN).await.id, agent.id);
    assert_eq!(registry.agent(DOMAIN).await.liveness, LivenessState::Fresh);
    registry.assert_index_matches_database().await;
}

/// Two entries that exchange their URLs do not collide.
async fn entries_that_exchange_urls_keep_their_agents(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json", "/b.json"]);
    registry.register_domain(DOMAIN).await;
    make_due_visits(
        &registry,
        &site
            .clone()
            .with_catalog(&[("a", "/a.json"), ("b", "/b.json")]),
        Duration::hours(1),
    )
    .await;
    make_due_visits(
        &registry,
        &site.with_catalog(&[("a", "/b.json"), ("b", "/a.json")]),
        Duration::days(5),
    )
    .await;
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json", "/b.json"]));
    let said = sources_of_kind(&domain_view(&registry).await, "ard");
    let attempts = said[0].attempts.iter().chain(&said[0].last_attempt);
    assert!(
        attempts
            .map(|attempt| &attempt.detail)
            .any(|detail| detail.contains("2 with another URL"))
    );
}

/// A catalog that cannot be read any more is reported, and an empty one is no fault.
async fn an_unreadable_catalog_is_reported(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json"]).with_catalog(&[("a", "/a.json")]);
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    let problem = async || {
        let view = domain_view(&registry).await;
        view.not_listed
            .into_iter()
            .find(|reason| reason.contains("ard.json"))
    };
    assert_eq!(problem().await, None);
    let away = CatalogSite {
        ard: Some(OriginResponse::Failure(Timeout)),
        ..site.clone()
    };
    make_due_visits(&registry, &away, Duration::days(1)).await;
    assert!(
        problem()
            .await
            .is_some_and(|reason| reason.contains("cannot be read"))
    );
    make_due_visits(&registry, &site.with_catalog(&[]), Duration::days(1)).await;
    assert_eq!(problem().await, None);
}

/// An entry that leaves the catalog is treated like a card that answers 404, even if its card still answers: after a
/// grace period it is gone, and thirty days later retired. A catalog that cannot be read whole, or is missing, is no
/// evidence.
async fn a_dropped_entry_ends_after_a_grace_period(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json", "/b.json"]);
    let both = site
        .clone()
        .with_catalog(&[("a", "/a.json"), ("b", "/b.json")]);
    let one = site.clone().with_catalog(&[("a", "/a.json")]);
    let part = CatalogSite {
        ard: Some(catalog(&[("a", "/a.json")], CatalogExtent::Partial)),
        ..site.clone()
    };
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &both, Duration::hours(1)).await;
    for row in registry.agents().await {
        registry.approve_open_review(row.id).await;
    }
    for silent in [&part, &site] {
        make_due_visits(&registry, silent, Duration::days(10)).await;
        assert_eq!(agents(&registry).await, all_fresh(&["/a.json", "/b.json"]));
    }
    // The entry is back before the grace period ends.
    make_due_visits(&registry, &both, Duration::days(8)).await;
    make_due_visits(&registry, &one, Duration::hours(20)).await;
    make_due_visits(&registry, &both, Duration::days(2)).await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        2
    );

    registry
        .crawl_domain_with(DOMAIN, |source| one.respond(source))
        .await;
    registry
        .crawl_domain_with(DOMAIN, |source| one.respond(source))
        .await;
    registry
        .crawl_domain_with(DOMAIN, |source| one.respond(source))
        .await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        2,
        "three fetches within a day are not enough"
    );
    make_due_visits(&registry, &one, Duration::days(3)).await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        1
    );
    let expected = [("/a.json", "fresh"), ("/b.json", "gone")];
    assert_eq!(
        agents(&registry).await,
        expected.map(|(name, state)| (name.to_owned(), state.to_owned()))
    );
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await.len(), 1);

    // The entry may come back as the same agent.
    make_due_visits(&registry, &both, Duration::days(3)).await;
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json", "/b.json"]));
    assert_eq!(registry.agents().await.len(), 2);
    registry.assert_index_matches_database().await;

    make_due_visits(&registry, &one, Duration::days(36)).await;
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json"]));
    registry.assert_index_matches_database().await;
    // A retired agent does not come back by itself.
    make_due_visits(&registry, &both, Duration::days(3)).await;
    assert_eq!(registry.agents().await.len(), 2);
    let said = sources_of_kind(&domain_view(&registry).await, "ard");
    let attempts = said[0].attempts.iter().chain(&said[0].last_attempt);
    assert!(
        attempts
            .map(|attempt| &attempt.detail)
            .any(|detail| detail.contains("1 of retired agents"))
    );
}

/// An agent that one catalog drops and the other still names stays.
async fn either_catalog_keeps_an_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let both = [("a", "/a.json"), ("b", "/b.json")];
    let mut site = CatalogSite::with_cards(&["/a.json", "/b.json"]).with_catalog(&both);
    site.ai_catalog = Some(catalog(&both, CatalogExtent::Complete));
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    let site = site.with_catalog(&both[..1]);
    // The other catalog answers 304 to conditional fetches.
    let answer = |source: &source::Model| match source.kind.as_str() {
        "ai_catalog" if !source.full_wanted => OriginResponse::NotModified,
        _ => site.respond(source),
    };
    for _ in 0..10 {
        registry.crawl_conditionally(DOMAIN, answer).await;
        registry.advance(Duration::hours(12));
    }
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json", "/b.json"]));
}

/// A card with endpoints on another registrable domain is flagged, whichever catalog names it.
async fn endpoints_elsewhere_are_flagged(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let mut site = CatalogSite::with_cards(&["/own.json", "/far.json"])
        .with_catalog(&[("own", "/own.json"), ("far", "/far.json")]);
    let serving = |path: &str, host: &str| {
        let text = String::from_utf8(card_bytes(path, "Serves")).unwrap();
        text.replace("endpoint.example.net", host).into_bytes()
    };
    site.cards.insert(
        site_url("/own.json"),
        serving("/own.json", "api.agents-test.com"),
    );
    site.cards.insert(
        site_url("/far.json"),
        serving("/far.json", "api.agents-elsewhere.com"),
    );
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    assert_eq!(registry.agents().await.len(), 2);
    for row in registry.agents().await {
        let findings = &registry.versions(row.id).await[0].findings;
        assert_eq!(
            findings.contains("endpoint.other-domain"),
            row.slot == "entry far",
            "{findings}"
        );
    }
}

/// A domain is at its limit of agents, and its catalog reports that it names more.
async fn agents_from_a_catalog_are_limited(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.limits.agents_per_domain = 4).await;
    let paths: Vec<String> = (0..9).map(|number| format!("/{number}.json")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let entries: Vec<(&str, &str)> = paths.iter().map(|path| (*path, *path)).collect();
    let site = CatalogSite::with_cards(&paths).with_catalog(&entries);
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::minutes(1)).await;
    let view = domain_view(&registry).await;
    assert_eq!(
        sources_of_kind(&view, "entry").len(),
        3,
        "besides the well-known one"
    );
    let last = sources_of_kind(&view, "ard")
        .remove(0)
        .last_attempt
        .unwrap();
    assert!(last.detail.contains("6 beyond the limit of 4"), "{last:?}");
    make_due_visits(&registry, &site, Duration::days(2)).await;
    assert_eq!(registry.agents().await.len(), 3);
    registry.assert_index_matches_database().await;
}

/// Registering a URL that a catalog names uses no slot of the submitter, so the owner's slots stay free for further
/// agents.
async fn registering_a_url_that_a_catalog_names_uses_no_slot(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.limits.agents_per_domain = 4).await;
    let paths = ["/0.json", "/1.json", "/2.json", "/3.json", "/4.json"];
    let named = |count: usize| {
        let entries: Vec<(&str, &str)> = paths[..count].iter().map(|path| (*path, *path)).collect();
        CatalogSite::with_cards(&paths).with_catalog(&entries)
    };
    let card_at = |path: &str| Registration {
        card_url: Some(site_url(path)),
        ..Registration::default()
    };
    let publisher = async |name: &str| {
        let token = a2a_registry_api::NewToken {
            account: name.into(),
            role: Some(a2a_registry_domain::role::Role::Publisher),
            name: "a test".into(),
            ..a2a_registry_api::NewToken::default()
        };
        let token = token_create(&registry.app, &registry.admin, &token).await;
        let token = token.unwrap();
        authenticate_token(&registry.app, &token.secret)
            .await
            .unwrap()
    };
    let add = async |caller: &a2a_registry_core::visibility::caller::Caller,
                     what: &Registration| {
        let added = register_domain(&registry.app, caller, what).await;
        added.map(|_| ()).map_err(|error| error.kind)
    };
    let (first, stranger) = (publisher("first").await, publisher("stranger").await);
    let domain = Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    };
    for what in [&card_at("/0.json"), &domain] {
        assert_eq!(add(&first, what).await, Ok(()));
    }
    make_due_visits(&registry, &named(3), Duration::minutes(1)).await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        2,
        "the third was registered before"
    );
    for path in ["/1.json", "/2.json"] {
        assert_eq!(add(&first, &card_at(path)).await, Ok(()));
    }
    assert_eq!(
        add(&first, &card_at("/3.json")).await,
        Err(ErrorKind::LimitReached),
        "three cards and the well-known paths are four"
    );
    // Whether a catalog names a URL does not show to others.
    for path in ["/1.json", "/3.json"] {
        let added = add(&stranger, &card_at(path)).await;
        assert_eq!(added, Err(ErrorKind::LimitReached), "{path}");
    }
    make_due_visits(&registry, &named(3), Duration::days(2)).await;
    assert_eq!(
        registry.agents().await.len(),
        3,
        "each URL has brought one agent"
    );
    let registry = registry
        .restart(|config| config.limits.agents_per_domain = 5)
        .await;
    make_due_visits(&registry, &named(4), Duration::days(2)).await;
    assert_eq!(
        sources_of_kind(&domain_view(&registry).await, "entry").len(),
        3,
        "{:#?}",
        domain_view(&registry).await
    );
    assert_eq!(registry.agents().await.len(), 4);
    let ard = sources_of_kind(&domain_view(&registry).await, "ard")
        .remove(0)
        .last_attempt
        .unwrap();
    assert!(!ard.detail.contains("exceeds"), "{ard:?}");
    registry.assert_index_matches_database().await;
}

/// A missing catalog is refetched after seven days, is not reported, and causes no visit. Neither does one with other
/// failures, as long as it was never read.
async fn a_missing_catalog_is_refetched_after_a_week(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for outcome in [NotFound, NotACatalog, Timeout] {
        let well_known = "/.well-known/agent-card.json";
        let mut site = CatalogSite::with_cards(&[well_known]);
        site.ard = Some(OriginResponse::Failure(outcome));
        site.ai_catalog = site.ard.clone();
        registry.register_domain(DOMAIN).await;
        assert_eq!(
            registry.run_due_visits(|source| site.respond(source)).await,
            1
        );
        let began = registry.now();
        let view = domain_view(&registry).await;
        for kind in ["ard", "ai_catalog"] {
            let one = &sources_of_kind(&view, kind)[0];
            assert_eq!((one.state.as_str(), one.days.len()), ("absent", 0));
            assert!(
                !view
                    .not_listed
                    .iter()
                    .any(|reason| reason.contains(&one.url)),
                "{:?}",
                view.not_listed
            );
            if outcome != Timeout {
                let due = time::OffsetDateTime::from(one.next_due.unwrap());
                assert_eq!(due - began, Duration::days(7));
            }
        }
        assert_eq!(agents(&registry).await, all_fresh(&[well_known]));
        let next =
            time::OffsetDateTime::from(next_visit_due(&registry.app).await.unwrap().unwrap());
        let card =
            time::OffsetDateTime::from(sources_of_kind(&view, "well_known")[0].next_due.unwrap());
        assert_eq!(next, card, "the card's visit is the next one");

        make_due_visits(&registry, &site, Duration::days(7) - Duration::MINUTE).await;
        let asked = |view: &DomainView| sources_of_kind(view, "ard")[0].attempts.len();
        if outcome != Timeout {
            assert_eq!(
                asked(&domain_view(&registry).await),
                0,
                "the catalog is fetched once only"
            );
        }
        make_due_visits(&registry, &site, Duration::days(2)).await;
        assert_eq!(agents(&registry).await, all_fresh(&[well_known]));
        if outcome != Timeout {
            assert_eq!(asked(&domain_view(&registry).await), 1);
        }
        domain_delete(&registry.app, &registry.admin, DOMAIN)
            .await
            .unwrap();
        // A domain that is registered again keeps the spacing of its last visit, which may have been a moment ago.
        registry.advance(Duration::MINUTE);
    }
}

/// `--approve` covers the cards that the catalog names at its first fetch, and no later ones.
async fn approving_a_domain_covers_only_its_first_catalog(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let what = Registration {
        domain: Some(DOMAIN.into()),
        approve: true,
        ..Registration::default()
    };
    register_domain(&registry.app, &registry.admin, &what)
        .await
        .unwrap();
    let site = CatalogSite::with_cards(&["/a.json", "/b.json"]);
    make_due_visits(
        &registry,
        &site.clone().with_catalog(&[("a", "/a.json")]),
        Duration::hours(1),
    )
    .await;
    assert_eq!(registry.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
    make_due_visits(
        &registry,
        &site.with_catalog(&[("a", "/a.json"), ("b", "/b.json")]),
        Duration::days(3),
    )
    .await;
    let lifecycles: Vec<_> = registry
        .agents()
        .await
        .into_iter()
        .map(|row| row.lifecycle)
        .collect();
    assert_eq!(lifecycles, [Lifecycle::Approved, Lifecycle::Pending]);
}

/// A retired agent stays retired although a catalog still names it.
async fn a_retired_agent_stays_retired(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json"]).with_catalog(&[("a", "/a.json")]);
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    let agent = registry.agent(DOMAIN).await.id.to_string();
    let over = Act {
        reason: "over".into(),
        hold: None,
    };
    agent_retire(&registry.app, &registry.admin, &agent, &over)
        .await
        .unwrap();
    make_due_visits(
        &registry,
        &site
            .clone()
            .with_catalog(&[("a", "/a.json"), ("other", "/a.json")]),
        Duration::days(3),
    )
    .await;
    assert_eq!(agents(&registry).await, []);
    registry.register_card_url(&site_url("/a.json")).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json"]));
    registry.assert_index_matches_database().await;
}

/// Deleting a domain ends all agents from its catalogs; the same name starts anew.
async fn deleting_a_domain_ends_its_catalogs_agents(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let site = CatalogSite::with_cards(&["/a.json", "/b.json"])
        .with_catalog(&[("a", "/a.json"), ("b", "/b.json")]);
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    domain_delete(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
    assert_eq!(agents(&registry).await, []);
    registry.assert_index_matches_database().await;
    registry.advance(Duration::days(8));
    assert_eq!(
        registry
            .run_due_visits(|_| panic!("no source is fetched"))
            .await,
        0
    );
    registry.register_domain(DOMAIN).await;
    make_due_visits(&registry, &site, Duration::hours(1)).await;
    assert_eq!(agents(&registry).await, all_fresh(&["/a.json", "/b.json"]));
    registry.assert_index_matches_database().await;
}
