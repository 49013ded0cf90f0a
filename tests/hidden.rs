//! Hidden data costs a caller the same reads as missing data: on both databases, and with policies to evaluate. Which
//! addresses lead to these operations is tested within the server.

use a2a_registry_api::{
    AgentPatch, CollectionContent, DecisionRequest, GroupMembers, NewReport, Registration,
};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::diff::{VersionDiffQuery, agent_diff};
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::agents::similar::{SimilarAgentsQuery, agent_similar};
use a2a_registry_core::agents::views::{FindingsQuery, agent_findings, agent_show, agent_versions};
use a2a_registry_core::collections::actions::{collection_put, collection_show};
use a2a_registry_core::domains::actions::{domain_recrawl, domain_show};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::policies::access_decision::decide_access;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::reports::report_agent;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::role::Role;
use a2a_registry_store::Executor as _;
use a2a_registry_store::statements::record_statements;
use sea_orm::ConnectionTrait as _;
use uuid::Uuid;

use crate::policies::{OPEN, caller, put_policies};
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};

both_databases!(
    hidden_and_missing_cost_the_same_reads,
    a_url_of_others_costs_a_stranger_as_much_as_a_new_one
);

const HIDDEN: &str = "hidden.agents-test.com";
const MISSING: &str = "missing.agents-test.com";
/// An identifier that no agent has.
const NOBODY: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);

/// What a statement reads, without the rows that it asks for.
fn columns_of(statement: &str) -> String {
    let columns = statement.split(" WHERE ").next();
    columns.unwrap_or_default().to_owned()
}

/// Checks that an act on what is hidden and on what is missing fails alike, after the same reads.
async fn assert_same_reads<T>(
    what: &str,
    hidden: &str,
    missing: &str,
    act: impl AsyncFn(&str) -> Result<T, AppError>,
) {
    let reads = async |name: &str| {
        let (result, statements) = record_statements(act(name)).await;
        let statements = statements.iter().map(|statement| columns_of(statement));
        let mut statements: Vec<String> = statements.collect();
        statements.sort_unstable();
        (result.err().map(|error| error.kind), statements)
    };
    let expected = reads(missing).await;
    assert_eq!(expected.0, Some(ErrorKind::NotFound), "{what}");
    assert!(!expected.1.is_empty(), "{what}");
    // Twice, since the first answer may have left something in a cache.
    for _ in 0..2 {
        assert_eq!(reads(hidden).await, expected, "{what}");
    }
}

/// Compares the acts on an agent, its domain and a collection that the caller may not see.
async fn compare_all(registry: &InProcessRegistry, who: &Caller, hidden: &str) {
    let (app, missing) = (&registry.app, NOBODY.to_string());
    let missing = missing.as_str();
    let page = PageRequest::default();
    assert_same_reads("agent", hidden, missing, async |name: &str| {
        agent_show(app, who, name).await
    })
    .await;
    assert_same_reads("rendered", hidden, missing, async |name: &str| {
        load_cached_agent_view(app, who, name).await
    })
    .await;
    assert_same_reads("versions", hidden, missing, async |name: &str| {
        agent_versions(app, who, name, &page).await
    })
    .await;
    assert_same_reads("findings", hidden, missing, async |name: &str| {
        agent_findings(app, who, name, &FindingsQuery::default()).await
    })
    .await;
    for version in [None, Some("sha256:00")] {
        assert_same_reads("card", hidden, missing, async |name: &str| {
            load_agent_card(app, who, name, version).await
        })
        .await;
    }
    assert_same_reads("diff", hidden, missing, async |name: &str| {
        agent_diff(app, who, name, &VersionDiffQuery::default()).await
    })
    .await;
    assert_same_reads("similar", hidden, missing, async |name: &str| {
        agent_similar(app, who, name, &SimilarAgentsQuery::default()).await
    })
    .await;
    for action in ["discover", "invoke"] {
        assert_same_reads("decision", hidden, missing, async |name: &str| {
            let request = DecisionRequest {
                action: action.into(),
                agent: Some(name.into()),
                ..DecisionRequest::default()
            };
            decide_access(app, who, &request).await
        })
        .await;
    }
    assert_same_reads("report", hidden, missing, async |name: &str| {
        let new = NewReport {
            reason: "a test".into(),
            contact: String::new(),
        };
        report_agent(app, who, name, &new).await
    })
    .await;
    assert_same_reads("domain", HIDDEN, MISSING, async |name: &str| {
        domain_show(app, who, name).await
    })
    .await;
    assert_same_reads("crawl", HIDDEN, MISSING, async |name: &str| {
        domain_recrawl(app, who, name, &Default::default()).await
    })
    .await;
    assert_same_reads("collection", "hidden", "missing", async |name: &str| {
        collection_show(app, who, name).await
    })
    .await;
}

/// Makes a collection that only the members of a group see.
async fn hide_collection(registry: &InProcessRegistry) {
    caller(registry, "member", Role::Reader).await;
    let members = GroupMembers {
        members: vec!["member".into()],
    };
    let (app, admin, any) = (&registry.app, &registry.admin, IfMatch::default());
    group_put(app, admin, "team", &members, &any).await.unwrap();
    let content = CollectionContent {
        filter: "tag:secret".into(),
        audience: Some(vec!["team".into()]),
        ..CollectionContent::default()
    };
    let made = collection_put(app, admin, "hidden", &content, &any).await;
    made.unwrap();
}

async fn hidden_and_missing_cost_the_same_reads(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    // Where policies have to be asked, it is judged in the place of a missing one.
    registry
        .register_approved_card("open.agents-test.com", &card_bytes("Open", "x"))
        .await;
    let agent = registry
        .register_approved_card(HIDDEN, &card_bytes("Hidden", "x"))
        .await;
    let id = agent.id.to_string();
    hide_collection(&registry).await;
    let callers = [
        Caller::default(),
        caller(&registry, "reader", Role::Reader).await,
        caller(&registry, "publisher", Role::Publisher).await,
    ];
    let show_to = async |visibility: Visibility| {
        let patch = AgentPatch {
            visibility: Some(visibility),
            ..AgentPatch::default()
        };
        let patched = agent_patch(&registry.app, &registry.admin, &id, &patch).await;
        patched.unwrap();
        registry.catch_up().await;
        // What is kept for the admin must not show in the answers to others.
        let admin = &registry.admin;
        load_cached_agent_view(&registry.app, admin, &id)
            .await
            .unwrap();
        load_agent_card(&registry.app, admin, &id, None)
            .await
            .unwrap();
    };
    show_to(Visibility::Restricted).await;
    for who in &callers {
        compare_all(&registry, who, &id).await;
    }
    show_to(Visibility::Public).await;
    let secret = (
        "secret",
        "forbid (principal, action == Action::\"discover\", resource) when { resource.domain like \"hidden.*\" };",
    );
    put_policies(&registry, &[("open", OPEN), secret]).await;
    registry.catch_up().await;
    for who in &callers {
        compare_all(&registry, who, &id).await;
    }
    let ended = format!(
        "UPDATE sources SET agent_id = NULL WHERE domain_id = {}",
        agent.domain_id
    );
    let changed = registry.store.connection().execute_unprepared(&ended).await;
    changed.unwrap();
    for who in &callers {
        compare_all(&registry, who, &id).await;
    }
}

/// The agents of the domain are updated for a URL that is new as for one that others have registered. On SQLite only reads
/// outside of writes are noted.
async fn a_url_of_others_costs_a_stranger_as_much_as_a_new_one(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(HIDDEN, &card_bytes("Hidden", "x"))
        .await;
    let known = format!("https://{HIDDEN}/known.json");
    registry.register_card_url(&known).await;
    let stranger = caller(&registry, "stranger", Role::Publisher).await;
    let updates = async |card_url: String| {
        let what = Registration {
            card_url: Some(card_url),
            ..Registration::default()
        };
        let (added, statements) =
            record_statements(register_domain(&registry.app, &stranger, &what)).await;
        added.unwrap();
        let updates = statements.iter().map(|statement| columns_of(statement));
        updates
            .filter(|columns| columns.contains("version_sources"))
            .count()
    };
    let of_known = updates(known).await;
    let of_new = updates(format!("https://{HIDDEN}/new.json")).await;
    assert_eq!(of_new, of_known);
    assert_eq!(of_known > 0, url.starts_with("postgres"));
}
