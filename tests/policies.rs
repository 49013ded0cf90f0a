//! Policies on finding agents, on both databases: on every surface that shows agents, for every caller, across
//! restarts, in every replica, and while one set replaces another.

mod instructing_texts;
mod reviews;

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::search_query::{LookupQuery, SearchQuery, SuggestQuery};
use a2a_registry_api::{
    AgentList, AgentPatch, CollectionContent, DecisionRequest, GroupMembers, NewAccount,
    NewPolicies, NewPolicy, NewToken, PolicyCase, PolicyCases, Registration,
};
use a2a_registry_core::accounts::account_operations::account_create;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::similar::{SimilarAgentsQuery, agent_similar};
use a2a_registry_core::collections::actions::{collection_delete, collection_put};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::access_decision::decide_access;
use a2a_registry_core::policies::policy_cases::policies_test;
use a2a_registry_core::policies::sets::{
    PolicySetQuery, policies_put, policies_show, policy_history,
};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::indexing::apply_next_events;
use a2a_registry_core::search::policy_rollout::roll_out_newest_policies;
use a2a_registry_core::search::{
    count_public_agents, lookup_agents, search_agents, suggest_completions,
};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::Database;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};
use crate::support::policy_previews::policies_preview;
use crate::support::seeded_rng::SeededRng;

both_databases!(
    a_forbidden_agent_shows_nowhere,
    groups_find_what_a_scan_finds,
    no_answer_mixes_two_sets,
    an_agent_that_changes_is_decided_anew,
    a_collection_is_a_fact,
    sets_are_numbered_and_never_lost
);

pub(crate) const OPEN: &str = "permit (principal, action, resource);";

pub(crate) fn policies(texts: &[(&str, &str)]) -> NewPolicies {
    let one = |(id, text): &(&str, &str)| NewPolicy {
        id: (*id).to_owned(),
        text: (*text).to_owned(),
    };
    NewPolicies {
        policies: texts.iter().map(one).collect(),
        reason: "a test".into(),
        ..NewPolicies::default()
    }
}

/// Makes a set as somebody does who has seen its preview, whatever it hides.
pub(crate) async fn put_policies(registry: &InProcessRegistry, texts: &[(&str, &str)]) -> u64 {
    let mut new = policies(texts);
    new.allow_no_permit = true;
    let preview = policies_preview(&registry.app, &registry.admin, &new).await;
    new.preview = Some(preview.unwrap().token);
    let accepted = policies_put(&registry.app, &registry.admin, &new, &IfMatch::default()).await;
    accepted.unwrap().number
}

pub(crate) async fn caller(registry: &InProcessRegistry, name: &str, role: Role) -> Caller {
    let new = NewAccount {
        name: name.into(),
        roles: vec![role],
        groups: Vec::new(),
    };
    account_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    authenticate_account(registry, name).await
}

pub(crate) async fn authenticate_account(registry: &InProcessRegistry, name: &str) -> Caller {
    let new = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    authenticate_token(&registry.app, &token.secret)
        .await
        .unwrap()
}

async fn search_ids(
    registry: &InProcessRegistry,
    caller: &Caller,
    query: &SearchQuery,
) -> BTreeSet<Uuid> {
    let list = registry.search_all(caller, query).await;
    list.agents.into_iter().map(|hit| hit.summary.id).collect()
}

async fn all_found(registry: &InProcessRegistry, caller: &Caller) -> BTreeSet<Uuid> {
    search_ids(registry, caller, &SearchQuery::default()).await
}

/// A publisher, and an approved agent of its own that the policies of these tests hide.
async fn register_as(registry: &InProcessRegistry, name: &str) -> (Caller, Uuid) {
    let publisher = caller(registry, name, Role::Publisher).await;
    let domain = "secret.own-test.com";
    let wanted = Registration {
        domain: Some(domain.into()),
        ..Registration::default()
    };
    register_domain(&registry.app, &publisher, &wanted)
        .await
        .unwrap();
    registry
        .crawl_domain(domain, OriginResponse::Card(card_bytes("Own", "own")))
        .await;
    let agent = registry.agent(domain).await;
    registry.approve_open_review(agent.id).await;
    registry.catch_up().await;
    (publisher, agent.id)
}

/// Everything by which an agent could show itself.
async fn exposures(
    registry: &InProcessRegistry,
    caller: &Caller,
    agent: Uuid,
    other: Uuid,
) -> BTreeMap<&'static str, bool> {
    let app = &registry.app;
    let id = agent.to_string();
    let words = SearchQuery {
        q: Some("quorum".into()),
        facets: vec!["tag".into(), "domain".into()],
        ..SearchQuery::default()
    };
    let bytes = search_agents(app, caller, &words).await.unwrap();
    let list: AgentList = serde_json::from_slice(&bytes).unwrap();
    let facets = serde_json::to_string(&list.facets).unwrap();
    let url = LookupQuery {
        url: Some("secret.agents-test.com".into()),
        ..LookupQuery::default()
    };
    let looked_up = lookup_agents(app, caller, &url).await;
    let beginning = SuggestQuery { q: "quoru".into() };
    let completed = suggest_completions(app, caller, &beginning).await.unwrap();
    let similar = agent_similar(
        app,
        caller,
        &other.to_string(),
        &SimilarAgentsQuery::default(),
    )
    .await;
    let similar = similar.unwrap().agents;
    let decision = DecisionRequest {
        action: "discover".into(),
        agent: Some(id.clone()),
        ..DecisionRequest::default()
    };
    BTreeMap::from([
        ("hit", !list.agents.is_empty()),
        ("total", list.total > 0),
        ("facets", facets.contains("secret.agents-test.com")),
        ("lookup", looked_up.is_ok()),
        ("completion", !completed.suggestions.is_empty()),
        ("similar", similar.iter().any(|hit| hit.summary.id == agent)),
        ("show", agent_show_checked(app, caller, &id).await.is_ok()),
        (
            "card",
            load_agent_card(app, caller, &id, None).await.is_ok(),
        ),
        (
            "decide",
            decide_access(app, caller, &decision).await.is_ok(),
        ),
    ])
}

/// A forbidden agent is as one that does not exist, for those whom the policy is about and nobody else.
async fn a_forbidden_agent_shows_nowhere(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let hidden = registry
        .register_approved_card(
            "secret.agents-test.com",
            &card_bytes("Quorum keeper", "quorum votes counted in assemblies"),
        )
        .await;
    let shown = registry
        .register_approved_card(
            "plain.agents-test.com",
            &card_bytes("Plain keeper", "votes counted in assemblies"),
        )
        .await;
    // Words that few agents have tell more.
    for number in 0..3 {
        let other = card_bytes(&format!("Other {number}"), "weather");
        registry
            .register_approved_card(&format!("other{number}.agents-test.com"), &other)
            .await;
    }
    let reader = caller(&registry, "reader", Role::Reader).await;
    let curator = caller(&registry, "curator", Role::Curator).await;
    registry.catch_up().await;
    let nobody = Caller::default();
    let seen = async |caller: &Caller| {
        let shows = exposures(&registry, caller, hidden.id, shown.id).await;
        let all = shows.values().all(|shows| *shows);
        assert!(all || !shows.values().any(|shows| *shows), "{shows:?}");
        all
    };
    for caller in [&nobody, &reader, &curator] {
        assert!(seen(caller).await);
    }
    assert_eq!(count_public_agents(&registry.app).await, 5);
    let secret = (
        "secret",
        "forbid (principal, action == Action::\"discover\", resource) when { resource.domain like \"secret.*\" };",
    );
    put_policies(&registry, &[("open", OPEN), secret]).await;
    registry.catch_up().await;
    for (caller, expected) in [(&nobody, false), (&reader, false), (&curator, true)] {
        assert_eq!(seen(caller).await, expected);
    }
    assert_eq!(count_public_agents(&registry.app).await, 4);
    // Whoever registered it sees it whatever policies say.
    let keeper = register_as(&registry, "keeper").await;
    assert!(
        agent_show_checked(&registry.app, &keeper.0, &keeper.1.to_string())
            .await
            .is_ok()
    );
    assert!(
        load_agent_card(&registry.app, &keeper.0, &keeper.1.to_string(), None)
            .await
            .is_ok()
    );
    assert_eq!(all_found(&registry, &keeper.0).await.len(), 5);
    assert_eq!(all_found(&registry, &nobody).await.len(), 4);
    // For members of one group only.
    let team = (
        "team",
        "forbid (principal in Group::\"team\", action == Action::\"discover\", resource) when { resource.domain like \"secret.*\" };",
    );
    let members = GroupMembers {
        members: vec!["reader".into()],
    };
    let any = IfMatch::default();
    group_put(&registry.app, &registry.admin, "team", &members, &any)
        .await
        .unwrap();
    let reader = authenticate_account(&registry, "reader").await;
    put_policies(&registry, &[("open", OPEN), team]).await;
    registry.catch_up().await;
    for (caller, expected) in [(&nobody, true), (&reader, false), (&curator, true)] {
        assert_eq!(seen(caller).await, expected);
    }
    // Quiet policies decide nothing, and without a permit nobody finds anything.
    for mode in ["off", "dry_run"] {
        let quiet = format!("@mode(\"{mode}\") {}", secret.1);
        put_policies(&registry, &[("open", OPEN), ("secret", &quiet)]).await;
        registry.catch_up().await;
        assert!(seen(&nobody).await, "{mode}");
    }
    put_policies(&registry, &[]).await;
    registry.catch_up().await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    assert!(all_found(&registry, &reader).await.is_empty());
    assert_eq!(
        all_found(&registry, &keeper.0).await,
        BTreeSet::from([keeper.1])
    );
    assert!(
        load_agent_card(&registry.app, &keeper.0, &keeper.1.to_string(), None)
            .await
            .is_ok()
    );
    assert_eq!(all_found(&registry, &curator).await.len(), 6);
    // It outlives the process.
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    put_policies(&registry, &[("open", OPEN)]).await;
    registry.catch_up().await;
    assert_eq!(all_found(&registry, &nobody).await.len(), 6);
}

/// Hits, totals, facets and pages of twenty groups are those of a scan over all agents.
async fn groups_find_what_a_scan_finds(url: &str) {
    const GROUPS: usize = 20;
    const AGENTS: usize = 40;
    const TAGS: [&str; 5] = ["finance", "travel", "music", "maps", "weather"];
    let registry = InProcessRegistry::new(url).await;
    let mut rng = SeededRng(0x19_d0);
    let mut agents: Vec<(Uuid, BTreeSet<&str>)> = Vec::new();
    for number in 0..AGENTS {
        let tags: BTreeSet<&str> = TAGS
            .into_iter()
            .filter(|_| rng.next_below(2) == 0)
            .collect();
        let card = serde_json::json!({
            "name": format!("Agent {number}"), "description": "common", "url": "https://a.example.com/a2a",
            "version": "1.0", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC", "capabilities": {},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "S", "description": "common", "tags": tags}],
        });
        let domain = format!("d{number}.agents-test.com");
        let card = serde_json::to_vec(&card).unwrap();
        let agent = registry.register_approved_card(&domain, &card).await;
        agents.push((agent.id, tags));
    }
    let mut callers = Vec::new();
    for number in 0..GROUPS {
        let name = format!("member{number}");
        caller(&registry, &name, Role::Reader).await;
        let members = GroupMembers {
            members: vec![name.clone()],
        };
        let (group, any) = (format!("g{number}"), IfMatch::default());
        group_put(&registry.app, &registry.admin, &group, &members, &any)
            .await
            .unwrap();
        callers.push(authenticate_account(&registry, &name).await);
    }
    // Each group may find agents of some tags, and may not find those of some others.
    let mut rules: Vec<(&str, &str)> = Vec::new();
    let mut texts = Vec::new();
    for group in 0..GROUPS {
        let (may, not) = (
            TAGS[rng.next_below(TAGS.len())],
            TAGS[rng.next_below(TAGS.len())],
        );
        rules.push((may, not));
        for (effect, tag) in [("permit", may), ("forbid", not)] {
            let text = format!(
                "{effect} (principal in Group::\"g{group}\", action, resource) when {{ resource.tags.contains(\"{tag}\") }};"
            );
            texts.push((format!("g{group}-{effect}"), text));
        }
    }
    let texts: Vec<(&str, &str)> = texts
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    put_policies(&registry, &texts).await;
    registry.catch_up().await;
    assert!(all_found(&registry, &Caller::default()).await.is_empty());
    let mut shown = 0;
    for (caller, (may, not)) in callers.iter().zip(&rules) {
        let scan = |tag: Option<&str>| -> BTreeSet<Uuid> {
            let found = agents
                .iter()
                .filter(|(_, tags)| tags.contains(may) && !tags.contains(not));
            let found = found.filter(|(_, tags)| tag.is_none_or(|tag| tags.contains(tag)));
            found.map(|(id, _)| *id).collect()
        };
        assert_eq!(
            all_found(&registry, caller).await,
            scan(None),
            "{may} {not}"
        );
        for tag in TAGS {
            let query = SearchQuery {
                tag: vec![tag.into()],
                ..SearchQuery::default()
            };
            assert_eq!(search_ids(&registry, caller, &query).await, scan(Some(tag)));
        }
        shown += scan(None).len();
        let (mut paged, mut token) = (BTreeSet::new(), None);
        loop {
            let query = SearchQuery {
                q: Some("common".into()),
                facets: vec!["tag".into()],
                page_size: Some(3),
                page_token: token,
                ..SearchQuery::default()
            };
            let bytes = search_agents(&registry.app, caller, &query).await.unwrap();
            let list: AgentList = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(list.total, scan(None).len() as u64);
            for value in &list.facets["tag"].values {
                assert_eq!(value.count, scan(Some(&value.value)).len() as u64);
            }
            paged.extend(list.agents.iter().map(|hit| hit.summary.id));
            token = list.next_page_token;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(paged, scan(None));
    }
    assert!(shown > GROUPS, "{shown}");
}

/// While one set follows another every answer is that of one of them.
async fn no_answer_mixes_two_sets(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let mut ids = Vec::new();
    for number in 0..30 {
        let domain = format!("d{number}.agents-test.com");
        let agent = registry
            .register_approved_card(&domain, &card_bytes(&format!("Agent {number}"), "x"))
            .await;
        ids.push(agent.id);
    }
    registry.catch_up().await;
    // Each set shows the agents of some domains, and both hide d0.
    let set = |digits: &str| {
        let permits = digits
            .chars()
            .map(|digit| format!("resource.domain like \"d*{digit}.agents-test.com\""));
        let any = permits.collect::<Vec<_>>().join(" || ");
        format!("permit (principal, action, resource) when {{ {any} }};")
    };
    let of = |digits: &str| -> BTreeSet<Uuid> {
        let shown = (0..30).filter(|number| digits.contains(&(number % 10).to_string()));
        shown.map(|number| ids[number]).collect()
    };
    let sets = ["1357", "2468"];
    put_policies(&registry, &[("shown", &set(sets[0]))]).await;
    registry.catch_up().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let mut searching = Vec::new();
    for _ in 0..8 {
        let (app, stop) = (registry.app.clone(), stop.clone());
        let allowed = [of(sets[0]), of(sets[1])];
        searching.push(tokio::spawn(async move {
            let mut met = [0_u32; 2];
            while !stop.is_cancelled() {
                let query = SearchQuery {
                    page_size: Some(100),
                    facets: vec!["domain".into()],
                    ..SearchQuery::default()
                };
                let bytes = search_agents(&app, &Caller::default(), &query)
                    .await
                    .unwrap();
                let list: AgentList = serde_json::from_slice(&bytes).unwrap();
                let hits: BTreeSet<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
                assert_eq!(list.total, hits.len() as u64);
                assert_eq!(list.facets["domain"].values.len(), hits.len());
                let which = allowed.iter().position(|set| *set == hits);
                met[which.unwrap_or_else(|| panic!("{hits:?}"))] += 1;
                tokio::task::yield_now().await;
            }
            met
        }));
    }
    for turn in 1..=6 {
        put_policies(&registry, &[("shown", &set(sets[turn % 2]))]).await;
        registry.catch_up().await;
        assert_eq!(
            all_found(&registry, &Caller::default()).await,
            of(sets[turn % 2])
        );
    }
    stop.cancel();
    let mut met = [0, 0];
    for task in searching {
        let one = task.await.unwrap();
        met = [met[0] + one[0], met[1] + one[1]];
    }
    assert!(met.iter().all(|count| *count > 0), "{met:?}");
}

/// A label decides, from the act that sets it, and also while a new set is prepared.
async fn an_agent_that_changes_is_decided_anew(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    let nobody = Caller::default();
    let production =
        "permit (principal, action, resource) when { resource.labels.contains(\"env=prod\") };";
    put_policies(&registry, &[("production", production)]).await;
    registry.catch_up().await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    let id = agent.id.to_string();
    let label = async |value: &str| {
        let labels = BTreeMap::from([("env".to_owned(), value.to_owned())]);
        let patch = AgentPatch {
            labels: Some(labels),
            ..AgentPatch::default()
        };
        agent_patch(&registry.app, &registry.admin, &id, &patch)
            .await
            .unwrap();
    };
    label("prod").await;
    registry.catch_up().await;
    assert_eq!(all_found(&registry, &nobody).await.len(), 1);
    assert!(
        load_agent_card(&registry.app, &nobody, &id, None)
            .await
            .is_ok()
    );
    // It is hidden from the act on, before the index has applied anything.
    label("test").await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    assert!(
        load_agent_card(&registry.app, &nobody, &id, None)
            .await
            .is_err()
    );
    assert!(
        agent_show_checked(&registry.app, &nobody, &id)
            .await
            .is_err()
    );
    registry.catch_up().await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    // The set is made while the agent changes: whichever comes first, both count in the end.
    for (turn, to) in ["stage", "prod", "stage", "prod"].into_iter().enumerate() {
        let text = format!(
            "permit (principal, action, resource) when {{ resource.labels.contains(\"env={to}\") }};"
        );
        let (id, set) = (format!("turn-{turn}"), text.as_str());
        let set = [(id.as_str(), set)];
        futures::join!(put_policies(&registry, &set), label(to));
        registry.catch_up().await;
        assert_eq!(all_found(&registry, &nobody).await.len(), 1, "{to}");
    }
}

/// A policy asks which collections hold an agent; a collection that changes makes another set, which every replica evaluates
/// in the same way.
async fn a_collection_is_a_fact(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin, nobody) = (&registry.app, &registry.admin, Caller::default());
    let mut agents = Vec::new();
    for name in ["one", "two"] {
        let domain = format!("{name}.agents-test.com");
        agents.push(
            registry
                .register_approved_card(&domain, &card_bytes(name, "x"))
                .await
                .id,
        );
    }
    let holds = async |filter: &str| {
        let content = CollectionContent {
            filter: filter.into(),
            ..CollectionContent::default()
        };
        let unseen = IfMatch::default();
        let put = collection_put(app, admin, "open", &content, &unseen);
        put.await.unwrap();
    };
    let newest = async || {
        let shown = policies_show(app, admin, &PolicySetQuery::default()).await;
        shown.unwrap().number
    };
    holds("domain:one.agents-test.com").await;
    assert_eq!(newest().await, 0, "no policy asks");
    let asking =
        "permit (principal, action, resource) when { resource.collections.contains(\"open\") };";
    put_policies(&registry, &[("open", asking)]).await;
    registry.catch_up().await;
    let only = |place: usize| BTreeSet::from([agents[place]]);
    assert_eq!(all_found(&registry, &nobody).await, only(0));
    let asked = PolicyCases {
        cases: vec![PolicyCase {
            action: "invoke".into(),
            resource: agents[0].to_string(),
            expect: "allow".into(),
            ..PolicyCase::default()
        }],
        policies: Some(policies(&[("another", asking)]).policies),
    };
    assert!(policies_test(app, admin, &asked).await.unwrap().passed);
    // The description alone changes nothing that policies know.
    let described = CollectionContent {
        filter: "domain:one.agents-test.com".into(),
        description: "what everybody finds".into(),
        ..CollectionContent::default()
    };
    collection_put(app, admin, "open", &described, &IfMatch::default())
        .await
        .unwrap();
    assert_eq!(newest().await, 1);
    // One process serves a SQLite database.
    let replica = match url.starts_with("postgres") {
        true => Some(registry.second_process().await),
        false => None,
    };
    holds("domain:two.agents-test.com").await;
    assert_eq!(newest().await, 2);
    registry.catch_up().await;
    assert_eq!(all_found(&registry, &nobody).await, only(1));
    assert!(
        load_agent_card(app, &nobody, &agents[0].to_string(), None)
            .await
            .is_err()
    );
    // The replica decides by the set, and so by the collection, of before, until it has the next one.
    if let Some(replica) = replica {
        assert_eq!(all_found(&replica, &nobody).await, only(0));
        replica.catch_up().await;
        assert_eq!(all_found(&replica, &nobody).await, only(1));
    }
    let history = policy_history(app, admin, &PageRequest::default()).await;
    assert_eq!(
        history.unwrap().sets[0].reason,
        "the collection open was changed"
    );
    collection_delete(app, admin, "open", &IfMatch::default())
        .await
        .unwrap();
    assert_eq!(newest().await, 3);
    registry.catch_up().await;
    assert!(all_found(&registry, &nobody).await.is_empty());
    // An agent that is labelled comes into a collection at once, and leaves it at once.
    holds("label:shown=yes").await;
    registry.catch_up().await;
    for (value, shown) in [
        ("yes", BTreeSet::from([agents[1]])),
        ("no", BTreeSet::new()),
    ] {
        let patch = AgentPatch {
            labels: Some(BTreeMap::from([("shown".to_owned(), value.to_owned())])),
            ..AgentPatch::default()
        };
        agent_patch(app, admin, &agents[1].to_string(), &patch)
            .await
            .unwrap();
        if !shown.is_empty() {
            registry.catch_up().await;
        }
        assert_eq!(all_found(&registry, &nobody).await, shown);
    }
}

/// Sets are numbered, kept, and made from what was seen only; nothing broken is kept.
async fn sets_are_numbered_and_never_lost(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let shown =
        async |number: Option<u64>| policies_show(app, admin, &PolicySetQuery { number }).await;
    let shipped = shown(None).await.unwrap();
    assert_eq!((shipped.number, shipped.in_force), (0, 0));
    let written = shipped.policies.iter().filter(|policy| !policy.shipped);
    assert_eq!(written.count(), 1);
    let make = async |texts: &[(&str, &str)], seen: Option<u64>| {
        let seen = IfMatch(seen.map(|seen| format!("\"{seen}\"")));
        let made = policies_put(app, admin, &policies(texts), &seen).await;
        made.map(|made| made.number)
    };
    assert_eq!(make(&[("a", OPEN)], Some(0)).await.unwrap(), 1);
    let late = make(&[("b", OPEN)], Some(0)).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::Changed);
    // Two at once: one is told that it is late.
    let two = tokio::join!(make(&[("b", OPEN)], Some(1)), make(&[("c", OPEN)], Some(1)));
    assert_ne!(two.0.is_ok(), two.1.is_ok(), "{two:?}");
    let broken = "permit (principal, action, resource) when { principal == Account::\"x\" || resource.trust > 1 };";
    let refused = make(&[("a", OPEN), ("broken", broken)], None)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    let [(pointer, detail)] = refused.members.as_slice() else {
        panic!("{refused:?}");
    };
    assert_eq!(pointer, "/policies/1/text");
    assert!(
        detail.starts_with("broken:1:1") && detail.contains("permit (principal"),
        "{detail}"
    );
    assert_eq!(shown(None).await.unwrap().number, 2);
    assert_eq!(shown(Some(1)).await.unwrap().policies[0].id, "a");
    assert_eq!(shown(Some(9)).await.unwrap_err().kind, ErrorKind::NotFound);
    let history = policy_history(app, admin, &PageRequest::default())
        .await
        .unwrap();
    let numbers: Vec<u64> = history.sets.iter().map(|set| set.number).collect();
    assert_eq!(numbers, [2, 1]);
    registry.catch_up().await;
    assert_eq!(shown(None).await.unwrap().in_force, 2);
    let publisher = caller(&registry, "publisher", Role::Publisher).await;
    let none = policies_show(app, &publisher, &PolicySetQuery::default()).await;
    assert_eq!(none.unwrap_err().kind, ErrorKind::Forbidden);
    let none = policies_put(
        app,
        &publisher,
        &policies(&[("a", OPEN)]),
        &IfMatch::default(),
    )
    .await;
    assert_eq!(none.unwrap_err().kind, ErrorKind::Forbidden);
}

/// What may be called is a question of its own.
#[tokio::test]
async fn a_decision_tells_whether_an_agent_may_be_called() {
    let database = Database::sqlite();
    let registry = InProcessRegistry::new(database.url()).await;
    let agent = registry
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    let asked = async |caller: &Caller| {
        let request = DecisionRequest {
            action: "invoke".into(),
            agent: Some(agent.id.to_string()),
            ..DecisionRequest::default()
        };
        decide_access(&registry.app, caller, &request)
            .await
            .unwrap()
    };
    let nobody = Caller::default();
    assert!(asked(&nobody).await.allowed);
    let forbid = "forbid (principal, action == Action::\"invoke\", resource) when { resource.has_error == false };";
    put_policies(&registry, &[("open", OPEN), ("calls", forbid)]).await;
    registry.catch_up().await;
    assert_eq!(all_found(&registry, &nobody).await.len(), 1);
    let denied = asked(&nobody).await;
    assert!(!denied.allowed && denied.reason.is_some());
    assert!(
        denied.policies.is_empty(),
        "names of policies are not for everybody"
    );
    assert_eq!(asked(&registry.admin).await.policies, ["calls"]);
    put_policies(&registry, &[("open", OPEN)]).await;
    registry.catch_up().await;
    assert!(asked(&nobody).await.allowed);
}

/// A replica serves the set that it has evaluated, and says which; a new one begins with the newest.
#[tokio::test]
async fn each_replica_switches_by_itself() {
    let database = Database::postgres().await;
    let first = InProcessRegistry::new(database.url()).await;
    first
        .register_approved_card("one.agents-test.com", &card_bytes("One", "x"))
        .await;
    first.catch_up().await;
    let second = first.second_process().await;
    second.catch_up().await;
    let nobody = Caller::default();
    let none = "permit (principal, action, resource) when { resource.trust > 4 };";
    let number = put_policies(&first, &[("none", none)]).await;
    first.catch_up().await;
    let in_force = async |registry: &InProcessRegistry| {
        let shown = policies_show(&registry.app, &registry.admin, &PolicySetQuery::default()).await;
        shown.unwrap().in_force
    };
    assert_eq!(in_force(&first).await, number);
    assert!(all_found(&first, &nobody).await.is_empty());
    assert_eq!(in_force(&second).await, 0);
    assert_eq!(all_found(&second, &nobody).await.len(), 1);
    while apply_next_events(&second.app).await.unwrap() {}
    assert!(
        roll_out_newest_policies(&second.app, || false)
            .await
            .unwrap()
    );
    assert_eq!(in_force(&second).await, number);
    assert!(all_found(&second, &nobody).await.is_empty());
    let third = first.second_process().await;
    assert_eq!(in_force(&third).await, number);
    assert!(all_found(&third, &nobody).await.is_empty());
}
