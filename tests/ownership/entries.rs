//! Entries of catalogs that are no agents: whose are kept, who finds them, and how they end (docs/model.md#entries).

use std::net::TcpListener;
use std::sync::Arc;

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_crawler::catalog::Endorsement;
use a2a_crawler::catalog::manifest::ManifestFault;
use a2a_registry_api::{Act, DomainPatch, EntryList};
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle};
use a2a_registry_search::SearchRequest;
use a2a_registry_server::agents::acts::agent_retire;
use a2a_registry_server::caller::{Caller, ENTRIES, PUBLIC};
use a2a_registry_server::config::KeptEntries;
use a2a_registry_server::domains::owner::domain_patch;
use a2a_registry_server::domains::verify::domain_verify;
use a2a_registry_server::domains::withdrawal::domain_delete;
use a2a_registry_server::entries::{EntryQuery, entry_list};
use a2a_registry_server::entry_rows::{MAX_KEPT, end_expired};
use a2a_registry_server::metrics::Metrics;
use a2a_registry_server::search::query::{LookupQuery, SearchQuery, SuggestQuery};
use a2a_registry_server::search::{lookup, suggest};
use a2a_registry_store::entity::source;
use a2a_registry_store::entries::{entries_count, registry_candidates};
use serde_json::{Value, json};
use time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::api::Api;
use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

const MCP: &str = "application/mcp-server-card+json";
const SORTER: &str = "urn:air:travel.agents-test.com:tools:sorter";
const NEIGHBOUR: &str = "neighbour.agents-test.com";

fn entry(identifier: &str, kind: &str) -> Value {
    json!({
        "identifier": identifier, "type": kind, "url": "/x.json", "displayName": "Zanzibar sorter",
        "description": "Sorts quokkas", "version": "1.0", "tags": ["quokka"],
        "metadata": {"location": "eu", "reviewed": true}, "representativeQueries": ["sort it", "order it"],
    })
}

fn sorter() -> Value {
    entry(SORTER, MCP)
}

fn document(entries: &[Value]) -> String {
    json!({"specVersion": "1.0", "entries": entries}).to_string()
}

/// What the site of a domain answers: this at `ard.json`, and a card at the well-known path.
fn site(ard: &OriginAnswer) -> impl Fn(&source::Model) -> OriginAnswer + '_ {
    move |source| match source.kind.as_str() {
        "ard" => ard.clone(),
        "ai_catalog" => OriginAnswer::Fails(NotFound),
        _ => OriginAnswer::Card(card("Travel", "Books flights")),
    }
}

fn lists(entries: &[Value]) -> OriginAnswer {
    OriginAnswer::Document(document(entries), Endorsement::None)
}

/// The whole list, as anybody sees it.
pub async fn entries_in(stage: &Stage) -> EntryList {
    let query = EntryQuery {
        page_size: Some(100),
        ..EntryQuery::default()
    };
    entry_list(&stage.app, &Caller::default(), &query)
        .await
        .unwrap()
}

async fn keeping(url: &str) -> OwnershipSetup {
    let stage = Stage::with(url, |config| config.ard.entries = KeptEntries::Verified).await;
    OwnershipSetup::on(stage)
}

impl OwnershipSetup {
    /// An account that has proved a domain, which was not visited yet.
    async fn proved(&self, name: &str, domain: &str) -> Caller {
        let owner = self.account(name).await;
        let view = self.register(&owner, domain).await;
        self.place_standing_record(&view);
        let found = domain_verify(&self.stage.app, &owner, domain).await;
        assert_eq!(found.unwrap().domain.state.as_str(), "verified");
        owner
    }

    /// Fetches everything of a domain now.
    async fn fetch(&self, domain: &str, ard: &OriginAnswer) {
        self.stage.crawl_with(domain, site(ard)).await;
    }

    /// The identifiers of the entries in the list.
    async fn listed(&self) -> Vec<String> {
        let list = entries_in(&self.stage).await;
        let entries = list.entries.into_iter();
        entries.map(|one| one.identifier).collect()
    }

    /// The identifiers of what a search with these labels finds; the index is not brought up to date before.
    fn searched(&self, labels: &[&str]) -> Vec<String> {
        let request = SearchRequest {
            visible_to: labels.iter().map(|label| (*label).to_owned()).collect(),
            limit: 100,
            ..SearchRequest::default()
        };
        let found = self.stage.app.index().search(&request).unwrap();
        assert_eq!(found.total, found.hits.len() as u64);
        let hits = found.hits.iter();
        let mut found: Vec<String> = hits
            .map(|row| {
                let hit: Value = serde_json::from_slice(&row.hit).unwrap();
                hit["identifier"].as_str().unwrap_or("an agent").to_owned()
            })
            .collect();
        found.sort();
        found
    }

    /// Both, which must agree.
    async fn shown(&self) -> Vec<String> {
        self.stage.settle().await;
        let mut listed = self.listed().await;
        listed.sort();
        assert_eq!(self.searched(&[ENTRIES]), listed);
        listed
    }

    async fn count(&self) -> u64 {
        entries_count(&self.stage.store).await.unwrap()
    }
}

both_databases!(
    entries_of_a_proved_domain_are_kept_as_they_are_listed,
    entries_are_never_among_agents,
    nothing_is_kept_while_it_is_off_or_nobody_has_proved_the_domain,
    entries_go_with_the_proof,
    entries_go_with_the_domain,
    denied_domains_show_no_entries,
    a_denied_publisher_is_shown_by_no_catalog,
    an_entry_ends_with_its_manifest,
    a_name_of_another_publisher_needs_its_signature,
    what_the_signer_takes_back_is_gone_and_silence_takes_nothing_back,
    the_publishers_own_entry_counts_more,
    entries_end_as_sources_do,
    an_agents_identifier_is_no_entry,
    entries_of_a_domain_are_bounded,
    the_list_is_paged_and_filtered
);

async fn entries_of_a_proved_domain_are_kept_as_they_are_listed(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    let mut old = entry(
        "urn:ai:travel.agents-test.com:old",
        "application/mcp-server+json",
    );
    old["unknown"] = json!({"kept": [1, 2.50]});
    let entries = [
        sorter(),
        entry("urn:air:travel.agents-test.com:odd", "never/heard-of"),
        old.clone(),
        entry(
            "urn:air:travel.agents-test.com:peer",
            "application/ai-registry+json",
        ),
        entry("free text", MCP),
        entry("urn:air:sub.travel.agents-test.com:x", MCP),
        entry("urn:air:agents-test.com:x", MCP),
    ];
    setup.fetch(DOMAIN, &lists(&entries)).await;
    let old_identifier = "urn:air:travel.agents-test.com:old";
    let expected = ["urn:air:travel.agents-test.com:odd", old_identifier, SORTER];
    let mut shown = setup.shown().await;
    shown.sort();
    let mut sorted = expected.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(shown, sorted);

    let list = entries_in(&setup.stage).await;
    assert!(
        list.entries
            .iter()
            .all(|one| !one.reviewed && one.domain == DOMAIN)
    );
    let one = |identifier: &str| {
        let mut entries = list.entries.iter();
        entries
            .find(|one| one.identifier == identifier)
            .unwrap()
            .clone()
    };
    let first = one(SORTER);
    assert_eq!(
        first.catalog,
        format!("https://{DOMAIN}/.well-known/ard.json")
    );
    assert_eq!(first.authority, "domain-verified");
    assert_eq!(first.verification, None);
    assert_eq!(
        first.url.as_deref(),
        Some("https://travel.agents-test.com/x.json")
    );
    let second = one(old_identifier);
    assert_eq!(
        second.listed_as.as_deref(),
        Some("urn:ai:travel.agents-test.com:old")
    );
    assert_eq!(second.media_type, MCP);
    assert_eq!(second.entry, old);
    let now = setup.stage.now().unix_timestamp() * 1_000_000;
    let peers = registry_candidates(&setup.stage.store, now, 10)
        .await
        .unwrap();
    assert_eq!(peers.len(), 1);
    assert_eq!(peers[0].0.identifier, "urn:air:travel.agents-test.com:peer");

    // Unchanged it is no news; changed it is, in place.
    let seq = setup.stage.app.index().applied_seq();
    setup.fetch(DOMAIN, &lists(&entries)).await;
    setup.shown().await;
    let repeated = setup.stage.app.index().applied_seq();
    let mut other = sorter();
    other["displayName"] = json!("Another name");
    setup.fetch(DOMAIN, &lists(&[other])).await;
    assert_eq!(setup.shown().await.len(), 3);
    assert!(setup.stage.app.index().applied_seq() > repeated && repeated >= seq);
    let list = entries_in(&setup.stage).await;
    let other = list.entries.iter().find(|one| one.identifier == SORTER);
    assert_eq!(other.unwrap().display_name, "Another name");
}

/// No caller finds, counts, completes or looks up an entry where agents are.
async fn entries_are_never_among_agents(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    assert_eq!(setup.shown().await, [SORTER]);
    let stage = &setup.stage;
    let all = SearchQuery {
        lifecycle: ShownLifecycle::ALL
            .iter()
            .map(|one| one.as_str().to_owned())
            .filter(|one| one != "retired")
            .collect(),
        liveness: LivenessState::ALL
            .iter()
            .map(|one| one.as_str().to_owned())
            .collect(),
        facets: vec!["tag".into(), "domain".into(), "lifecycle".into()],
        ..SearchQuery::default()
    };
    for caller in [Caller::default(), stage.admin.clone()] {
        let found = stage.found(&caller, &all).await;
        assert!(
            found.agents.iter().all(|hit| hit.summary.name == "Travel"),
            "{found:?}"
        );
        assert_eq!(
            found.total,
            found.facets["domain"]
                .values
                .iter()
                .map(|one| one.count)
                .sum::<u64>()
        );
        assert!(
            found.facets["tag"]
                .values
                .iter()
                .all(|one| one.value != "quokka")
        );
        for q in ["Zanzibar", "quokkas", "sorter"] {
            let query = SearchQuery {
                q: Some(q.into()),
                ..all.clone()
            };
            let found = stage.found(&caller, &query).await;
            assert_eq!(found.total, 0, "{q}");
            assert!(
                !format!("{:?}", found.hints).contains("anzibar "),
                "{found:?}"
            );
            let suggested = suggest(&stage.app, &caller, &SuggestQuery { q: q.into() }).await;
            assert_eq!(suggested.unwrap().suggestions, [], "{q}");
        }
        for query in [
            LookupQuery {
                urn: Some(SORTER.into()),
                ..LookupQuery::default()
            },
            LookupQuery {
                url: Some("https://travel.agents-test.com/x.json".into()),
                ..LookupQuery::default()
            },
        ] {
            assert!(
                lookup(&stage.app, &caller, &query).await.is_err(),
                "{query:?}"
            );
        }
    }
    stage.index_equals_database().await;

    // ARD finds it, marked, whatever its publisher says of itself.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let api = Api::at(&format!("http://{}", listener.local_addr().unwrap()));
    let end = CancellationToken::new();
    let serving = a2a_registry_server::serve::run(
        Arc::clone(&stage.app),
        listener,
        end.clone(),
        Arc::new(Metrics::new()),
    );
    let serving = AbortOnDropHandle::new(tokio::spawn(serving));
    let query = json!({"query": {"text": "sorts quokkas", "filter": {"type": MCP, "metadata.location": "eu"}}});
    let found = api.post("/ard/search", &query).await.expect(200);
    assert_eq!(found["results"][0]["identifier"], SORTER, "{found}");
    assert_eq!(found["results"][0]["metadata"]["reviewed"], false);
    assert_eq!(
        found["results"][0]["metadata"]["authority"],
        "domain-verified"
    );
    let path = format!("/ard/agents/{}", SORTER.replace(':', "%3A"));
    let whole = api.get(&path).await.expect(200);
    assert_eq!(whole["type"], MCP);
    let known = api.get("/.well-known/ard.json").await.expect(200);
    assert!(!known.to_string().contains(SORTER), "{known}");
    let list = api
        .get("/v1/entries?q=quokkas&type=application%2Fmcp-server-card%2Bjson")
        .await
        .expect(200);
    assert_eq!(list["entries"][0]["reviewed"], false);
    end.cancel();
    serving.await.unwrap().unwrap();
}

async fn nothing_is_kept_while_it_is_off_or_nobody_has_proved_the_domain(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    assert_eq!(setup.count().await, 0);
    let list = entries_in(&setup.stage).await;
    assert_eq!(list.entries, []);
    assert_eq!(list.hints[0].kind, "off");
    let OwnershipSetup { stage, names } = setup;
    drop(names);
    let stage = stage
        .restart(|config| config.ard.entries = KeptEntries::Verified)
        .await;
    let setup = OwnershipSetup::on(stage);

    let owner = setup.account("other").await;
    let view = setup.register(&owner, NEIGHBOUR).await;
    let theirs = "urn:air:neighbour.agents-test.com:x";
    let ard = lists(&[entry(theirs, MCP)]);
    setup.fetch(NEIGHBOUR, &ard).await;
    assert_eq!(setup.count().await, 0);
    // The proof has the catalogs fetched in full, though nothing was due for hours.
    setup.place_standing_record(&view);
    domain_verify(&setup.stage.app, &owner, NEIGHBOUR)
        .await
        .unwrap();
    setup.stage.advance(Duration::minutes(2));
    setup.stage.visit(site(&ard)).await;
    assert!(setup.shown().await.contains(&theirs.to_owned()));
}

/// At once, before the index has applied anything; and back with the proof.
async fn entries_go_with_the_proof(url: &str) {
    let setup = keeping(url).await;
    let owner = setup.proved("acme", DOMAIN).await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    assert_eq!(setup.shown().await, [SORTER]);
    setup.remove(STANDING);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(setup.state().await, "lapsed");
    assert_eq!(setup.searched(&[ENTRIES]), Vec::<String>::new());
    assert_eq!(setup.shown().await, Vec::<String>::new());
    setup.place_standing_record(&view);
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(setup.shown().await, [SORTER]);
}

async fn entries_go_with_the_domain(url: &str) {
    let setup = keeping(url).await;
    let owner = setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    assert_eq!(setup.shown().await, [SORTER]);
    let opt = |out: bool| DomainPatch {
        opt_out: Some(out),
        ..DomainPatch::default()
    };
    domain_patch(&setup.stage.app, &owner, DOMAIN, &opt(true))
        .await
        .unwrap();
    assert_eq!(setup.searched(&[ENTRIES, PUBLIC]), Vec::<String>::new());
    assert_eq!(setup.shown().await, Vec::<String>::new());
    domain_patch(&setup.stage.app, &owner, DOMAIN, &opt(false))
        .await
        .unwrap();
    assert_eq!(setup.shown().await, [SORTER]);
    let admin = &setup.stage.admin;
    domain_delete(&setup.stage.app, admin, DOMAIN)
        .await
        .unwrap();
    assert_eq!(setup.searched(&[ENTRIES]), Vec::<String>::new());
    assert_eq!(setup.count().await, 0);
}

async fn denied_domains_show_no_entries(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    assert_eq!(setup.shown().await, [SORTER]);
    let OwnershipSetup { stage, names } = setup;
    drop(names);
    let denied = vec![DomainPattern(DOMAIN.into())];
    let stage = stage
        .restart(|config| config.governance.deny_domains = denied)
        .await;
    let setup = OwnershipSetup::on(stage);
    assert_eq!(setup.shown().await, Vec::<String>::new());
    let OwnershipSetup { stage, names } = setup;
    drop(names);
    let stage = stage
        .restart(|config| config.governance.deny_domains = Vec::new())
        .await;
    assert_eq!(OwnershipSetup::on(stage).shown().await, [SORTER]);
}

async fn a_denied_publisher_is_shown_by_no_catalog(url: &str) {
    let setup = keeping(url).await;
    setup.proved("other", NEIGHBOUR).await;
    let ard = OriginAnswer::Document(document(&[sorter()]), endorsed_by(DOMAIN));
    setup.fetch(NEIGHBOUR, &ard).await;
    assert_eq!(setup.shown().await, [SORTER]);
    // Policies about agents narrow a caller's labels, and say nothing about entries.
    let always = format!("!{ENTRIES}");
    assert_eq!(setup.searched(&[PUBLIC, "+p1+0", &always]), [SORTER]);
    let OwnershipSetup { stage, names } = setup;
    drop(names);
    let denied = vec![DomainPattern(DOMAIN.into())];
    let stage = stage
        .restart(|config| config.governance.deny_domains = denied)
        .await;
    let setup = OwnershipSetup::on(stage);
    assert_eq!(setup.shown().await, Vec::<String>::new());
    // Nor is one that is listed anew.
    let mut other = sorter();
    other["displayName"] = json!("Another name");
    let ard = OriginAnswer::Document(document(&[other]), endorsed_by(DOMAIN));
    setup.fetch(NEIGHBOUR, &ard).await;
    assert_eq!(setup.shown().await, Vec::<String>::new());
}

async fn an_entry_ends_with_its_manifest(url: &str) {
    let setup = keeping(url).await;
    setup.proved("other", NEIGHBOUR).await;
    let endorsed = Endorsement::Verified {
        domain: DOMAIN.to_owned(),
        expires_at: Some(setup.stage.now() + Duration::hours(1)),
    };
    let ard = OriginAnswer::Document(document(&[sorter()]), endorsed);
    setup.fetch(NEIGHBOUR, &ard).await;
    assert!(!end_expired(&setup.stage.app).await.unwrap());
    assert_eq!(setup.shown().await, [SORTER]);
    // Without another fetch it is gone from the list and from the index.
    setup.stage.advance(Duration::hours(2));
    end_expired(&setup.stage.app).await.unwrap();
    assert_eq!(setup.shown().await, Vec::<String>::new());
    assert_eq!(setup.count().await, 0);
}

fn endorsed_by(domain: &str) -> Endorsement {
    Endorsement::Verified {
        domain: domain.to_owned(),
        expires_at: None,
    }
}

async fn a_name_of_another_publisher_needs_its_signature(url: &str) {
    let setup = keeping(url).await;
    setup.proved("other", NEIGHBOUR).await;
    let text = document(&[sorter()]);
    for endorsement in [
        Endorsement::None,
        Endorsement::Failed(ManifestFault::Mismatch),
        Endorsement::Unchecked("no answer".into()),
        endorsed_by(NEIGHBOUR),
        endorsed_by("agents-test.com"),
    ] {
        let ard = OriginAnswer::Document(text.clone(), endorsement.clone());
        setup.fetch(NEIGHBOUR, &ard).await;
        assert_eq!(setup.count().await, 0, "{endorsement:?}");
    }
    let ard = OriginAnswer::Document(text, endorsed_by(DOMAIN));
    setup.fetch(NEIGHBOUR, &ard).await;
    assert_eq!(setup.shown().await, [SORTER]);
    let mut list = entries_in(&setup.stage).await;
    let first = list.entries.remove(0);
    assert_eq!(
        (first.domain.as_str(), first.authority.as_str()),
        (NEIGHBOUR, "manifest-verified")
    );
    assert_eq!(
        first.verification.unwrap().signer.as_deref(),
        Some("did:web:travel.agents-test.com")
    );
}

async fn what_the_signer_takes_back_is_gone_and_silence_takes_nothing_back(url: &str) {
    let setup = keeping(url).await;
    setup.proved("other", NEIGHBOUR).await;
    let with = |endorsement| OriginAnswer::Document(document(&[sorter()]), endorsement);
    setup.fetch(NEIGHBOUR, &with(endorsed_by(DOMAIN))).await;
    setup
        .fetch(NEIGHBOUR, &with(Endorsement::Unchecked("no answer".into())))
        .await;
    assert_eq!(setup.shown().await, [SORTER]);
    // Not for ever, though.
    setup.stage.advance(Duration::days(7));
    assert_eq!(setup.listed().await, Vec::<String>::new());
    setup.fetch(NEIGHBOUR, &with(endorsed_by(DOMAIN))).await;
    assert_eq!(setup.listed().await, [SORTER]);
    setup
        .fetch(NEIGHBOUR, &with(Endorsement::Failed(ManifestFault::Key)))
        .await;
    assert_eq!(setup.searched(&[ENTRIES]), Vec::<String>::new());
    assert_eq!(setup.count().await, 0);
}

/// A neighbour that lists our entry first, endorsed, gives way to our own catalog, and never takes it over.
async fn the_publishers_own_entry_counts_more(url: &str) {
    let setup = keeping(url).await;
    setup.proved("other", NEIGHBOUR).await;
    let theirs = OriginAnswer::Document(document(&[sorter()]), endorsed_by(DOMAIN));
    setup.fetch(NEIGHBOUR, &theirs).await;
    setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    setup.fetch(NEIGHBOUR, &theirs).await;
    assert_eq!(setup.shown().await, [SORTER]);
    let list = entries_in(&setup.stage).await;
    assert_eq!(list.entries[0].domain, DOMAIN);
}

async fn entries_end_as_sources_do(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    // Failed fetches end nothing, however many.
    for _ in 0..5 {
        setup.stage.advance(Duration::hours(20));
        setup.fetch(DOMAIN, &OriginAnswer::Fails(Timeout)).await;
    }
    assert_eq!(setup.listed().await, [SORTER]);
    // Catalogs without it do, after three fetches over a day.
    setup.fetch(DOMAIN, &lists(&[])).await;
    setup.fetch(DOMAIN, &lists(&[])).await;
    setup.fetch(DOMAIN, &lists(&[])).await;
    assert_eq!(setup.listed().await, [SORTER]);
    setup.stage.advance(Duration::hours(25));
    setup.fetch(DOMAIN, &lists(&[])).await;
    assert_eq!(setup.shown().await, Vec::<String>::new());
    // Being listed again in between begins anew.
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    for ard in [lists(&[]), lists(&[sorter()]), lists(&[]), lists(&[])] {
        setup.stage.advance(Duration::hours(25));
        setup.fetch(DOMAIN, &ard).await;
    }
    assert_eq!(setup.listed().await, [SORTER]);
    // A catalog that is not there, twice, ends them too.
    setup.fetch(DOMAIN, &lists(&[sorter()])).await;
    setup.fetch(DOMAIN, &OriginAnswer::Fails(Gone)).await;
    assert_eq!(setup.listed().await, [SORTER]);
    setup.stage.advance(Duration::hours(25));
    setup.fetch(DOMAIN, &OriginAnswer::Fails(NotFound)).await;
    assert_eq!(setup.shown().await, Vec::<String>::new());
}

async fn an_agents_identifier_is_no_entry(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    let named = "urn:air:travel.agents-test.com:agents:travel";
    // Listed before the agent is there, it gives way to it.
    setup.fetch(DOMAIN, &lists(&[entry(named, MCP)])).await;
    let agent = setup.stage.agent(DOMAIN).await;
    assert_eq!(agent.urn.as_deref(), Some(named));
    setup
        .fetch(DOMAIN, &lists(&[entry(named, MCP), sorter()]))
        .await;
    assert_eq!(setup.shown().await, [SORTER]);
    // An agent keeps its URN when it is retired.
    let (admin, id) = (&setup.stage.admin, agent.id.to_string());
    let retire = Act {
        reason: "gone".into(),
        hold: None,
    };
    agent_retire(&setup.stage.app, admin, &id, &retire)
        .await
        .unwrap();
    setup.stage.register(DOMAIN).await;
    setup
        .fetch(DOMAIN, &lists(&[entry(named, MCP), sorter()]))
        .await;
    assert_eq!(setup.shown().await, [SORTER]);
}

async fn entries_of_a_domain_are_bounded(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    let many: Vec<Value> = (0..MAX_KEPT + 5)
        .map(|number| entry(&format!("urn:air:travel.agents-test.com:e{number}"), MCP))
        .collect();
    setup.fetch(DOMAIN, &lists(&many)).await;
    assert_eq!(setup.count().await, MAX_KEPT as u64);
}

async fn the_list_is_paged_and_filtered(url: &str) {
    let setup = keeping(url).await;
    setup.proved("acme", DOMAIN).await;
    let mut entries: Vec<Value> = (0..5)
        .map(|number| entry(&format!("urn:air:travel.agents-test.com:e{number}"), MCP))
        .collect();
    entries[3]["type"] = json!("text/markdown; profile=x");
    entries[4]["description"] = json!("100% Ünique_");
    setup.fetch(DOMAIN, &lists(&entries)).await;
    let list = async |query: EntryQuery| {
        entry_list(&setup.stage.app, &Caller::default(), &query)
            .await
            .unwrap()
    };
    let mut seen = Vec::new();
    let mut query = EntryQuery {
        page_size: Some(2),
        ..EntryQuery::default()
    };
    loop {
        let page = list(query.clone()).await;
        seen.extend(page.entries.into_iter().map(|one| one.identifier));
        let Some(token) = page.next_page_token else {
            break;
        };
        query.page_token = Some(token);
    }
    let all: Vec<&str> = entries
        .iter()
        .map(|one| one["identifier"].as_str().unwrap())
        .collect();
    // Entries of one catalog were seen at the same time.
    seen.sort();
    assert_eq!(seen, all);
    let count = async |q: Option<&str>, kind: Option<&str>, domain: Option<&str>| {
        let query = EntryQuery {
            q: q.map(str::to_owned),
            media_type: kind.into_iter().map(str::to_owned).collect(),
            domain: domain.map(str::to_owned),
            ..EntryQuery::default()
        };
        list(query).await.entries.len()
    };
    assert_eq!(count(Some("SORTER quokkas"), None, None).await, 4);
    assert_eq!(count(Some("100% ünique_"), None, None).await, 1);
    assert_eq!(count(Some("100_"), None, None).await, 0);
    assert_eq!(count(None, Some("text/markdown"), None).await, 1);
    for none in ["text", "%", "text/mark_own", "text/markdown\0"] {
        assert_eq!(count(None, Some(none), None).await, 0, "{none}");
    }
    assert_eq!(count(Some("quokkas\0"), None, None).await, 0);
    assert_eq!(count(None, None, Some(DOMAIN)).await, 5);
    assert_eq!(count(None, None, Some("travel.agents-test.com\0")).await, 0);
    let other = EntryQuery {
        q: Some("x".into()),
        ..query
    };
    assert!(
        entry_list(&setup.stage.app, &Caller::default(), &other)
            .await
            .is_err()
    );
}
