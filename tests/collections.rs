//! Collections and restricted agents: who sees them, that index and rows agree on the content of a collection, and
//! that neither shows a caller an agent that the caller may not see, on both engines.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::limits::{MAX_AUDIENCE_GROUPS, MAX_COLLECTION_OWNERS, MAX_COLLECTIONS};
use a2a_registry_api::search_query::{LookupQuery, SearchQuery, SuggestQuery};
use a2a_registry_api::{
    AgentPatch, Collection, CollectionContent, GroupMembers, NewAccount, NewToken,
};
use a2a_registry_core::accounts::account_operations::account_create;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::groups::{group_delete, group_put};
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::collection_memberships::agent_collections;
use a2a_registry_core::agents::views::agent_show;
use a2a_registry_core::collections::actions::{
    collection_create, collection_delete, collection_list, collection_put, collection_show,
};
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::{lookup_agents, search_agents, suggest_completions};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::role::Role;
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::agents::live_agents_by_domain;
use a2a_registry_store::domains;
use a2a_registry_store::entity::{account_group, group_member};
use a2a_registry_store::groups::group_by_name;
use futures::future::join_all;
use uuid::Uuid;

use crate::account_concurrency::holder;
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};

both_databases!(
    a_collection_holds_what_its_filter_finds,
    a_collection_is_shown_to_its_audience,
    a_collection_never_shows_what_one_could_not_see,
    the_last_collection_is_made_once,
    a_restricted_agent_is_shown_to_its_groups,
    an_owner_only_narrows_who_sees_its_agent,
    a_collection_is_made_once_by_whoever_is_faster,
    an_audience_outlives_the_last_member_of_its_group
);

pub(crate) async fn create_account(registry: &InProcessRegistry, name: &str, role: Role) -> Caller {
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

/// The account as it is now, with its groups.
pub(crate) async fn authenticate_account(registry: &InProcessRegistry, name: &str) -> Caller {
    let token = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&registry.app, &registry.admin, &token)
        .await
        .unwrap();
    authenticate_token(&registry.app, &token.secret)
        .await
        .unwrap()
}

pub(crate) async fn put_group(registry: &InProcessRegistry, name: &str, members: &[&str]) {
    let members = GroupMembers {
        members: members.iter().map(|name| (*name).to_owned()).collect(),
    };
    let seen = IfMatch::default();
    group_put(&registry.app, &registry.admin, name, &members, &seen)
        .await
        .unwrap();
}

/// A group of another origin, as an identity provider's sign-in makes it.
async fn group_of(registry: &InProcessRegistry, origin: &str, name: &str, member: &Caller) {
    let write = registry.store.begin_write().await.unwrap();
    let id = Uuid::from_u128(0x0193_f00d_0000_7000_8000_0000_0000_0001);
    let row = account_group::Model {
        id,
        origin: origin.into(),
        name: name.into(),
        created_at: 0,
    };
    write.insert_group(row).await.unwrap();
    let member = group_member::Model {
        group_id: id,
        account_id: member.require_account().unwrap().id,
    };
    write.insert_group_members(vec![member]).await.unwrap();
    write.commit().await.unwrap();
}

/// Makes an account the owner of a domain and its agents, as a proof does.
pub(crate) async fn give(registry: &InProcessRegistry, domain: i64, name: &str) {
    let write = registry.store.begin_write().await.unwrap();
    let owner = account_by_name(&write, name).await.unwrap().unwrap().id;
    let mut rows = domains::domains_by_ids(&write, &[domain]).await.unwrap();
    rows[0].owner_id = Some(owner);
    rows[0].state = DomainState::Verified.into();
    write.set_domain_ownership(&rows[0]).await.unwrap();
    let mut owned = live_agents_by_domain(&write, &[domain]).await.unwrap();
    owned
        .iter_mut()
        .for_each(|agent| agent.owner_id = Some(owner));
    write.upsert_agents(owned).await.unwrap();
    write.commit().await.unwrap();
}

pub(crate) fn content(filter: &str, audience: Option<&[&str]>) -> CollectionContent {
    CollectionContent {
        filter: filter.into(),
        audience: audience.map(|groups| groups.iter().map(|name| (*name).to_owned()).collect()),
        ..CollectionContent::default()
    }
}

pub(crate) async fn put_collection(
    registry: &InProcessRegistry,
    by: &Caller,
    name: &str,
    content: &CollectionContent,
) -> Result<Collection, AppError> {
    collection_put(&registry.app, by, name, content, &IfMatch::default()).await
}

fn collection_query(name: &str) -> SearchQuery {
    SearchQuery {
        collection: vec![name.into()],
        ..SearchQuery::default()
    }
}

async fn search_ids(
    registry: &InProcessRegistry,
    caller: &Caller,
    query: &SearchQuery,
) -> BTreeSet<Uuid> {
    let list = registry.search_all(caller, query).await;
    let found: BTreeSet<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
    assert_eq!(list.total, found.len() as u64);
    found
}

async fn refused(registry: &InProcessRegistry, caller: &Caller, name: &str) -> String {
    let error = search_agents(&registry.app, caller, &collection_query(name))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    error.public
}

fn labels(pairs: &[(&str, &str)]) -> AgentPatch {
    let pairs = pairs.iter();
    AgentPatch {
        labels: Some(
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        ),
        ..AgentPatch::default()
    }
}

pub(crate) async fn patch_agent(
    registry: &InProcessRegistry,
    by: &Caller,
    agent: Uuid,
    patch: &AgentPatch,
) -> Result<(), AppError> {
    agent_patch(&registry.app, by, &agent.to_string(), patch).await?;
    registry.catch_up().await;
    Ok(())
}

/// Approved agents, each with what distinguishes it.
async fn agents(registry: &InProcessRegistry) -> Vec<Uuid> {
    let mut agents = Vec::new();
    let marks = [
        ("prod", "tax"),
        ("prod", "travel"),
        ("test", "tax"),
        ("", ""),
    ];
    for (number, (env, team)) in marks.into_iter().enumerate() {
        let name = format!("Agent {number} for {}", ["books", "trains"][number % 2]);
        let domain = format!("a{number}.dev");
        let agent = registry
            .register_approved_card(&domain, &card_bytes(&name, "1.0"))
            .await;
        if !env.is_empty() {
            let labels = labels(&[("env", env), ("team", team)]);
            patch_agent(registry, &registry.admin, agent.id, &labels)
                .await
                .unwrap();
        }
        agents.push(agent.id);
    }
    registry.catch_up().await;
    agents
}

/// The collections that hold an agent, judged from its rows.
async fn holding(registry: &InProcessRegistry, agent: Uuid) -> BTreeSet<String> {
    let names = agent_collections(&registry.app, &Caller::default(), &agent.to_string()).await;
    names.unwrap().into_iter().collect()
}

async fn a_collection_holds_what_its_filter_finds(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agents = agents(&registry).await;
    let filters = [
        ("prod", "label:env=prod"),
        ("either", "label:team=tax label:team=travel"),
        ("both", "label:env=prod label:team=tax"),
        ("tax-prod", "label:env=prod domain:a0.dev domain:a2.dev"),
        ("trains", "skill:trains"),
        ("mixed", "domain:A3.dev lifecycle:approved liveness:fresh"),
        ("unsigned", "signature:unsigned unmanaged:false"),
        ("trusted", "trust:L3"),
        ("http", "auth:none"),
    ];
    let mut held = 0;
    for (name, filter) in filters {
        put_collection(&registry, &registry.admin, name, &content(filter, None))
            .await
            .unwrap();
    }
    let mut by_agent: BTreeMap<Uuid, BTreeSet<String>> = BTreeMap::new();
    for agent in &agents {
        by_agent.insert(*agent, holding(&registry, *agent).await);
    }
    for (name, filter) in filters {
        let by_index = search_ids(&registry, &Caller::default(), &collection_query(name)).await;
        let by_rows: BTreeSet<Uuid> = agents
            .iter()
            .copied()
            .filter(|agent| by_agent[agent].contains(name))
            .collect();
        assert_eq!(by_index, by_rows, "{name}: {filter}");
        held += by_rows.len();
    }
    assert!(held > 8, "{by_agent:?}");
    let prod = search_ids(&registry, &Caller::default(), &collection_query("prod")).await;
    assert_eq!(prod, BTreeSet::from([agents[0], agents[1]]));
    let both = SearchQuery {
        collection: vec!["prod".into(), "mixed".into()],
        facets: vec!["label".into()],
        ..SearchQuery::default()
    };
    let several = search_ids(&registry, &Caller::default(), &both).await;
    assert_eq!(several, BTreeSet::from([agents[0], agents[1], agents[3]]));
    let narrowed = SearchQuery {
        label: vec!["team=tax".into()],
        ..collection_query("prod")
    };
    let narrowed = search_ids(&registry, &Caller::default(), &narrowed).await;
    assert_eq!(narrowed, BTreeSet::from([agents[0]]));
    // Another filter is in force with the next search, whatever was answered before.
    put_collection(
        &registry,
        &registry.admin,
        "prod",
        &content("domain:a3.dev", None),
    )
    .await
    .unwrap();
    let prod = search_ids(&registry, &Caller::default(), &collection_query("prod")).await;
    assert_eq!(prod, BTreeSet::from([agents[3]]));
}

async fn a_collection_is_shown_to_its_audience(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    agents(&registry).await;
    create_account(&registry, "ann", Role::Reader).await;
    create_account(&registry, "ben", Role::Reader).await;
    let twin = create_account(&registry, "twin", Role::Reader).await;
    let curator = create_account(&registry, "curator", Role::Curator).await;
    put_group(&registry, "tax", &["ann"]).await;
    put_group(&registry, "board", &[]).await;
    group_of(&registry, "https://idp.example", "tax", &twin).await;
    let (ann, ben, twin) = (
        authenticate_account(&registry, "ann").await,
        authenticate_account(&registry, "ben").await,
        authenticate_account(&registry, "twin").await,
    );
    let restricted = content("label:env=prod", Some(&["tax", "board"]));
    for (who, expected) in [
        (&ann, ErrorKind::Forbidden),
        (&Caller::default(), ErrorKind::Unauthenticated),
    ] {
        let refused = put_collection(&registry, who, "books", &restricted).await;
        assert_eq!(refused.unwrap_err().kind, expected);
    }
    let made = put_collection(&registry, &curator, "books", &restricted)
        .await
        .unwrap();
    assert_eq!(made.audience, Some(vec!["board".into(), "tax".into()]));
    let seen = collection_show(&registry.app, &ann, "books").await.unwrap();
    assert_eq!(seen.audience, Some(vec!["tax".into()]), "own groups only");
    assert_eq!(
        search_ids(&registry, &ann, &collection_query("books"))
            .await
            .len(),
        2
    );
    for outsider in [&ben, &twin, &Caller::default()] {
        let hidden = collection_show(&registry.app, outsider, "books").await;
        let missing = collection_show(&registry.app, outsider, "nobooks").await;
        let (hidden, missing) = (hidden.unwrap_err(), missing.unwrap_err());
        assert_eq!(hidden.kind, ErrorKind::NotFound);
        assert_eq!(hidden.public, missing.public.replace("nobooks", "books"));
        let hidden = refused(&registry, outsider, "books").await;
        let missing = refused(&registry, outsider, "nobooks").await;
        assert_eq!(hidden, missing.replace("nobooks", "books"));
        let list = collection_list(&registry.app, outsider).await.unwrap();
        assert!(list.collections.is_empty());
    }
    // An answer to a member is not kept for somebody else.
    assert_eq!(
        search_ids(&registry, &ann, &collection_query("books"))
            .await
            .len(),
        2
    );
    refused(&registry, &ben, "books").await;

    let owned = CollectionContent {
        owners: vec!["ben".into()],
        ..content("label:env=prod", Some(&["https://idp.example#tax"]))
    };
    put_collection(&registry, &curator, "books", &owned)
        .await
        .unwrap();
    for (who, sees) in [(&ann, false), (&ben, true), (&twin, true)] {
        let shown = collection_show(&registry.app, who, "books").await;
        assert_eq!(shown.is_ok(), sees, "{who:?}");
    }
    // A group that is made again under its old name is another one, and nobody is not everybody.
    put_collection(&registry, &curator, "books", &restricted)
        .await
        .unwrap();
    let any = IfMatch::default();
    for name in ["tax", "board"] {
        group_delete(&registry.app, &registry.admin, name, &any)
            .await
            .unwrap();
    }
    put_group(&registry, "tax", &["ann", "ben"]).await;
    for name in ["ann", "ben"] {
        let caller = authenticate_account(&registry, name).await;
        assert!(
            collection_show(&registry.app, &caller, "books")
                .await
                .is_err()
        );
    }
    let left = collection_show(&registry.app, &curator, "books")
        .await
        .unwrap();
    assert_eq!(left.audience, Some(Vec::new()));
    for (bad, expected) in [
        (content("collection:books", None), ErrorKind::Invalid),
        (content("words", None), ErrorKind::Invalid),
        (content("tag:x", Some(&["nosuch"])), ErrorKind::Conflict),
        (
            CollectionContent {
                owners: vec!["nosuch".into()],
                ..content("tag:x", None)
            },
            ErrorKind::Conflict,
        ),
        (
            CollectionContent {
                owners: vec!["ann".into(); MAX_COLLECTION_OWNERS + 1],
                ..content("tag:x", None)
            },
            ErrorKind::Invalid,
        ),
        (
            content("tag:x", Some(&["tax"; MAX_AUDIENCE_GROUPS + 1])),
            ErrorKind::Invalid,
        ),
    ] {
        let refused = put_collection(&registry, &curator, "books", &bad).await;
        assert_eq!(refused.unwrap_err().kind, expected, "{bad:?}");
    }
    for name in ["", "Books", "-x", "a b", "a/b", "\u{e9}", &"x".repeat(65)] {
        let refused = put_collection(&registry, &curator, name, &content("tag:x", None)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound, "{name}");
    }
    collection_delete(&registry.app, &curator, "books", &any)
        .await
        .unwrap();
    let gone = collection_delete(&registry.app, &curator, "books", &any).await;
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
}

async fn a_collection_never_shows_what_one_could_not_see(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agents = agents(&registry).await;
    let reader = create_account(&registry, "ann", Role::Reader).await;
    let internal = AgentPatch {
        visibility: Some(Visibility::Internal),
        ..AgentPatch::default()
    };
    patch_agent(&registry, &registry.admin, agents[0], &internal)
        .await
        .unwrap();
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        ..AgentPatch::default()
    };
    patch_agent(&registry, &registry.admin, agents[1], &restricted)
        .await
        .unwrap();
    registry
        .register_with_card("pending.dev", &card_bytes("Pending", "1.0"))
        .await;
    registry.catch_up().await;
    put_collection(
        &registry,
        &registry.admin,
        "all",
        &content("unmanaged:false", None),
    )
    .await
    .unwrap();
    let pending = SearchQuery {
        lifecycle: vec!["pending".into()],
        ..collection_query("all")
    };
    for caller in [&Caller::default(), &reader] {
        let everything = search_ids(&registry, caller, &SearchQuery::default()).await;
        assert_eq!(
            search_ids(&registry, caller, &collection_query("all")).await,
            everything
        );
        assert!(search_ids(&registry, caller, &pending).await.is_empty());
        assert!(!everything.contains(&agents[1]));
    }
    assert_eq!(
        search_ids(&registry, &registry.admin, &pending).await.len(),
        1
    );
    let hidden = SearchQuery {
        tag: vec!["nosuchtag".into()],
        ..collection_query("all")
    };
    let list = registry.search_all(&Caller::default(), &hidden).await;
    assert!(list.agents.is_empty() && list.total == 0, "{list:?}");
}

async fn the_last_collection_is_made_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for number in 1..MAX_COLLECTIONS {
        let name = format!("c{number}");
        put_collection(&registry, &registry.admin, &name, &content("tag:x", None))
            .await
            .unwrap();
    }
    let new = content("tag:x", None);
    let racing =
        ["last", "lost"].map(|name| put_collection(&registry, &registry.admin, name, &new));
    let made = join_all(racing).await;
    assert_eq!(made.iter().filter(|one| one.is_ok()).count(), 1, "{made:?}");
    let refused = made.into_iter().find_map(Result::err).unwrap();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    let list = collection_list(&registry.app, &Caller::default())
        .await
        .unwrap();
    assert_eq!(list.collections.len(), MAX_COLLECTIONS);
    // One that exists is changed all the same.
    put_collection(&registry, &registry.admin, "c1", &content("tag:y", None))
        .await
        .unwrap();
}

/// Everything by which an agent could show itself.
pub(crate) async fn exposures(
    registry: &InProcessRegistry,
    caller: &Caller,
    agent: Uuid,
) -> BTreeMap<&'static str, bool> {
    let app = &registry.app;
    let id = agent.to_string();
    let words = SearchQuery {
        q: Some("zebra".into()),
        facets: vec!["domain".into()],
        ..SearchQuery::default()
    };
    let list = registry.search_all(caller, &words).await;
    let url = LookupQuery {
        url: Some("secret.dev".into()),
        ..LookupQuery::default()
    };
    let beginning = SuggestQuery { q: "zebr".into() };
    let completed = suggest_completions(app, caller, &beginning).await.unwrap();
    BTreeMap::from([
        ("hit", !list.agents.is_empty()),
        ("total", list.total > 0),
        ("facets", !list.facets["domain"].values.is_empty()),
        ("lookup", lookup_agents(app, caller, &url).await.is_ok()),
        ("completion", !completed.suggestions.is_empty()),
        ("show", agent_show(app, caller, &id).await.is_ok()),
        (
            "card",
            load_agent_card(app, caller, &id, None).await.is_ok(),
        ),
    ])
}

async fn a_restricted_agent_is_shown_to_its_groups(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "ann", Role::Reader).await;
    create_account(&registry, "ben", Role::Reader).await;
    let twin = create_account(&registry, "twin", Role::Reader).await;
    put_group(&registry, "tax", &["ann"]).await;
    group_of(&registry, "https://idp.example", "tax", &twin).await;
    let names = ["ann", "ben", "twin"];
    let mut people = BTreeMap::new();
    for name in names {
        people.insert(name, authenticate_account(&registry, name).await);
    }
    let agent = registry
        .register_approved_card("secret.dev", &card_bytes("Zebra", "1.0"))
        .await;
    let restricted = |groups: &[&str]| AgentPatch {
        visibility: Some(Visibility::Restricted),
        groups: Some(groups.iter().map(|name| (*name).to_owned()).collect()),
        ..AgentPatch::default()
    };
    let nobody = Caller::default();
    let all_or_none = async |caller: &Caller, sees: bool, what: &str| {
        let shown = exposures(&registry, caller, agent.id).await;
        assert!(shown.values().all(|one| *one == sees), "{what}: {shown:?}");
    };
    patch_agent(&registry, &registry.admin, agent.id, &restricted(&["tax"]))
        .await
        .unwrap();
    all_or_none(&people["ann"], true, "a member").await;
    all_or_none(&people["ben"], false, "a stranger").await;
    all_or_none(&people["twin"], false, "a group of the same name").await;
    all_or_none(&nobody, false, "anybody").await;
    all_or_none(&registry.admin, true, "an admin").await;
    let told = agent_show(&registry.app, &registry.admin, &agent.id.to_string()).await;
    assert_eq!(told.unwrap().groups, ["tax"]);
    let told = agent_show(&registry.app, &people["ann"], &agent.id.to_string()).await;
    assert!(
        told.unwrap().groups.is_empty(),
        "a member is not told of groups"
    );
    put_group(&registry, "tax", &["ben"]).await;
    all_or_none(
        &authenticate_account(&registry, "ben").await,
        true,
        "a new member",
    )
    .await;
    all_or_none(
        &authenticate_account(&registry, "ann").await,
        false,
        "a former member",
    )
    .await;
    let other_origin = restricted(&["https://idp.example#tax"]);
    patch_agent(&registry, &registry.admin, agent.id, &other_origin)
        .await
        .unwrap();
    all_or_none(
        &authenticate_account(&registry, "twin").await,
        true,
        "the other origin",
    )
    .await;
    all_or_none(
        &authenticate_account(&registry, "ben").await,
        false,
        "the first origin",
    )
    .await;
    // Public again, it forgets its groups.
    let public = AgentPatch {
        visibility: Some(Visibility::Public),
        ..AgentPatch::default()
    };
    patch_agent(&registry, &registry.admin, agent.id, &public)
        .await
        .unwrap();
    all_or_none(&nobody, true, "public").await;
    patch_agent(
        &registry,
        &registry.admin,
        agent.id,
        &AgentPatch {
            visibility: Some(Visibility::Restricted),
            ..AgentPatch::default()
        },
    )
    .await
    .unwrap();
    all_or_none(
        &authenticate_account(&registry, "twin").await,
        false,
        "no groups",
    )
    .await;
    for (bad, expected) in [
        (restricted(&["nosuch"]), ErrorKind::Conflict),
        (restricted(&["elsewhere#tax"]), ErrorKind::Conflict),
        (
            restricted(&["tax"; MAX_AUDIENCE_GROUPS + 1]),
            ErrorKind::Invalid,
        ),
        (
            AgentPatch {
                visibility: Some(Visibility::Internal),
                ..restricted(&["tax"])
            },
            ErrorKind::Invalid,
        ),
    ] {
        let refused = patch_agent(&registry, &registry.admin, agent.id, &bad).await;
        assert_eq!(refused.unwrap_err().kind, expected, "{bad:?}");
    }
}

async fn an_owner_only_narrows_who_sees_its_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    create_account(&registry, "owner", Role::Publisher).await;
    let stranger = create_account(&registry, "stranger", Role::Publisher).await;
    put_group(&registry, "own", &["owner"]).await;
    put_group(&registry, "mine", &["owner"]).await;
    put_group(&registry, "theirs", &["stranger"]).await;
    let agent = registry
        .register_approved_card("secret.dev", &card_bytes("Zebra", "1.0"))
        .await;
    give(&registry, agent.domain_id, "owner").await;
    let owner = authenticate_account(&registry, "owner").await;
    let groups = |visibility, groups: &[&str]| AgentPatch {
        visibility,
        groups: Some(groups.iter().map(|name| (*name).to_owned()).collect()),
        ..AgentPatch::default()
    };
    let restricted = Some(Visibility::Restricted);
    let by_owner = async |change: &AgentPatch| {
        let done = patch_agent(&registry, &owner, agent.id, change).await;
        done.map_err(|error| error.kind)
    };
    let not_own = patch_agent(
        &registry,
        &stranger,
        agent.id,
        &groups(restricted, &["theirs"]),
    )
    .await;
    assert_eq!(not_own.unwrap_err().kind, ErrorKind::Forbidden);
    // A group that it is not in is for an owner as one that does not exist.
    let theirs = groups(restricted, &["theirs"]);
    assert_eq!(by_owner(&theirs).await, Err(ErrorKind::Conflict));
    let both = groups(restricted, &["own", "mine"]);
    assert_eq!(by_owner(&both).await, Ok(()));
    let shown = exposures(&registry, &owner, agent.id).await;
    assert!(shown.values().all(|one| *one), "{shown:?}");
    assert_eq!(by_owner(&groups(None, &["own"])).await, Ok(()));
    assert_eq!(by_owner(&both).await, Err(ErrorKind::Forbidden), "wider");
    let public = AgentPatch {
        visibility: Some(Visibility::Public),
        ..AgentPatch::default()
    };
    assert_eq!(by_owner(&public).await, Err(ErrorKind::Forbidden));
    // What a curator has named may stay, and is left out at will.
    let curators = groups(None, &["own", "theirs"]);
    patch_agent(&registry, &registry.admin, agent.id, &curators)
        .await
        .unwrap();
    assert_eq!(by_owner(&theirs).await, Ok(()));
    let shown = exposures(&registry, &owner, agent.id).await;
    assert!(
        shown.values().all(|one| *one),
        "an owner sees its own: {shown:?}"
    );
    let told = agent_show(&registry.app, &owner, &agent.id.to_string()).await;
    assert_eq!(told.unwrap().groups, ["theirs"]);
    assert_eq!(by_owner(&groups(None, &[])).await, Ok(()));
    let stranger = authenticate_account(&registry, "stranger").await;
    let shown = exposures(&registry, &stranger, agent.id).await;
    assert!(shown.values().all(|one| !*one), "{shown:?}");
}

/// Two curators who make one collection at the same time: neither overwrites what the other has made.
async fn a_collection_is_made_once_by_whoever_is_faster(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let filters = ["tag:one", "tag:two"];
    let contents = filters.map(|filter| content(filter, None));
    let racing = contents
        .iter()
        .map(|content| collection_create(&registry.app, &registry.admin, "books", content));
    let made = join_all(racing).await;
    let won = made.iter().position(Result::is_ok).unwrap();
    let lost = made[1 - won].as_ref().unwrap_err();
    assert_eq!(lost.kind, ErrorKind::Invalid);
    let shown = collection_show(&registry.app, &registry.admin, "books").await;
    assert_eq!(shown.unwrap().filter, filters[won]);
}

/// A group of an issuer goes with its last member, but for one that something is shown to.
async fn an_audience_outlives_the_last_member_of_its_group(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let issuer = "https://login.example";
    let come = async |groups: &[&str], after: i64| {
        let holder = holder("1", groups, after);
        resolve_subject_account(&registry.app, &holder)
            .await
            .unwrap();
    };
    let kept = async || {
        let mut kept = BTreeMap::new();
        for name in ["readers", "seers", "staff"] {
            let found = group_by_name(&registry.store, issuer, name).await.unwrap();
            kept.extend(found.map(|group| (name, group.id)));
        }
        kept
    };
    come(&["readers", "seers", "staff"], 10).await;
    let before = kept().await;
    assert_eq!(before.len(), 3);
    let audience = format!("{issuer}#readers");
    let shown = content("label:env=prod", Some(&[&audience]));
    put_collection(&registry, &registry.admin, "books", &shown)
        .await
        .unwrap();
    let agent = registry
        .register_approved_card("secret.dev", &card_bytes("Zebra", "1.0"))
        .await;
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        groups: Some(vec![format!("{issuer}#seers")]),
        ..AgentPatch::default()
    };
    patch_agent(&registry, &registry.admin, agent.id, &restricted)
        .await
        .unwrap();
    come(&[], 20).await;
    let mut after = before.clone();
    after.remove("staff");
    assert_eq!(kept().await, after, "nothing is shown to the staff");
    let ann = authenticate_account(&registry, "ann@corp").await;
    let hidden = collection_show(&registry.app, &ann, "books").await;
    assert_eq!(hidden.unwrap_err().kind, ErrorKind::NotFound);
    come(&["readers", "seers", "staff"], 30).await;
    let ann = authenticate_account(&registry, "ann@corp").await;
    assert!(collection_show(&registry.app, &ann, "books").await.is_ok());
    let id = agent.id.to_string();
    assert!(agent_show(&registry.app, &ann, &id).await.is_ok());
    let now = kept().await;
    assert_eq!(
        (now["readers"], now["seers"]),
        (after["readers"], after["seers"])
    );
    assert_ne!(now["staff"], before["staff"], "it was made again");
}
