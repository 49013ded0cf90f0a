//! What policies can say, on both databases: the policies of the documentation with their cases, dates and ages that
//! pass, and names that no one has.

use a2a_registry_api::{
    AgentPatch, GroupMembers, NewPolicy, PolicyCase, PolicyCases, Registration,
};
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::policies::policy_cases::policies_test;
use a2a_registry_core::policies::policy_job::run_policy_job_once;
use a2a_registry_core::policies::sets::{PolicySetQuery, policies_put, policies_show};
use a2a_registry_core::policy_sets::age_progress::AgeProgress;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::{MINUTE, SECOND, Timestamp};
use a2a_registry_store::Executor as _;
use sea_orm::ConnectionTrait as _;
use serde::Deserialize;
use serde_json::json;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::policies::{OPEN, caller, policies, put_policies};
use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};
use crate::support::policy_previews::policies_preview;

both_databases!(
    the_documented_policies_pass_their_cases,
    cases_have_dates_and_not_too_many,
    an_agent_is_hidden_when_its_day_comes_and_found_once_it_is_seen,
    replicas_hide_an_agent_alike_when_its_day_comes,
    a_search_for_ages_is_taken_over_only_when_nobody_is_at_it,
    a_new_set_counts_the_ages_of_policies_that_it_keeps,
    a_policy_begins_and_ends_by_the_clock,
    a_freeze_holds_what_comes_and_releases_it,
    a_name_that_no_one_has_is_warned_of
);

#[derive(Deserialize)]
struct CaseFile {
    cases: Vec<PolicyCase>,
}

/// How an agent of the documented cases differs from one that is as every policy wants it.
struct Example {
    is_proved: bool,
    has_authentication: bool,
    is_inside: bool,
    provider: &'static str,
    has_sponsor: bool,
    is_signed: bool,
    label: (&'static str, &'static str),
}

impl Example {
    fn named(name: &str) -> Self {
        let is_sandbox = name == "sandbox";
        Self {
            is_proved: !is_sandbox && name != "unproved",
            has_authentication: !is_sandbox && name != "open",
            is_inside: !is_sandbox && !["travel", "clinic"].contains(&name),
            provider: match name {
                "shady" => "Shady Agents Inc.",
                _ => "Ours",
            },
            has_sponsor: !is_sandbox && name != "orphan",
            is_signed: !is_sandbox && name != "unsigned",
            label: match name {
                "payroll" | "clinic" => ("data", "pii"),
                "sandbox" => ("env", "dev"),
                _ => ("env", "prod"),
            },
        }
    }

    fn card(&self, name: &str) -> Vec<u8> {
        let mut card: serde_json::Value =
            serde_json::from_slice(&card_bytes(name, "an example")).unwrap();
        card["url"] = match self.is_inside {
            true => "https://agents.corp.example/a2a".into(),
            false => "https://agents.partner.test/a2a".into(),
        };
        card["provider"]["organization"] = self.provider.into();
        if self.has_authentication {
            card["securitySchemes"] = json!({"bearer": {"type": "http", "scheme": "bearer"}});
            card["security"] = json!([{"bearer": []}]);
        }
        card.to_string().into_bytes()
    }
}

/// Registers an agent as the cases describe it, and returns its identifier.
async fn register_example(registry: &InProcessRegistry, name: &str) -> Uuid {
    let example = Example::named(name);
    let domain = format!("{name}.agents-test.com");
    let card = example.card(name);
    if name == "waiting" {
        return registry.register_with_card(&domain, &card).await.id;
    }
    let id = registry.register_approved_card(&domain, &card).await.id;
    let account = registry.admin.account.as_ref().unwrap();
    let (key, value) = example.label;
    let patch = AgentPatch {
        labels: Some([(key.to_owned(), value.to_owned())].into()),
        sponsor: example.has_sponsor.then(|| account.name.clone()),
        ..AgentPatch::default()
    };
    agent_patch(&registry.app, &registry.admin, &id.to_string(), &patch)
        .await
        .unwrap();
    // Proofs and signatures have tests of their own; here it matters what policies make of them.
    let of_domain = format!("(SELECT id FROM agents WHERE domain = '{domain}')");
    let mut statements = Vec::new();
    if example.is_proved {
        statements.push(format!(
            "UPDATE domains SET state = 'verified' WHERE name = '{domain}'"
        ));
    }
    if example.is_signed {
        statements.push(format!(
            "UPDATE versions SET signature = 'valid' WHERE agent_id IN {of_domain}"
        ));
    }
    if name == "lost" {
        let seen = Timestamp::from(registry.now() - Duration::days(7)).0;
        statements.push(format!(
            "UPDATE agents SET last_seen_at = {seen} WHERE domain = '{domain}'"
        ));
    }
    for statement in statements {
        let on = registry.store.connection();
        on.execute_unprepared(&statement).await.unwrap();
    }
    id
}

fn documented_policies() -> Vec<NewPolicy> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policies");
    let mut policies = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "cedar") {
            policies.push(NewPolicy {
                id: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
            });
        }
    }
    policies
}

/// Each case is decided as it must be, and each policy decides one.
async fn the_documented_policies_pass_their_cases(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let text = include_str!("../docs/policies/cases.toml");
    let CaseFile { mut cases } = toml::from_str(text).unwrap();
    let mut registered: Vec<(String, Uuid)> = Vec::new();
    for case in &mut cases {
        let Some(name) = case.resource.rsplit_once("urn:air:") else {
            continue;
        };
        let name = name.1.split('.').next().unwrap().to_owned();
        let known = registered.iter().find(|(known, _)| *known == name);
        let id = match known.map(|(_, id)| *id) {
            Some(id) => id,
            None => {
                let id = register_example(&registry, &name).await;
                registered.push((name, id));
                id
            }
        };
        case.resource = id.to_string();
    }
    let request = PolicyCases {
        policies: Some(documented_policies()),
        cases,
    };
    let told = policies_test(&registry.app, &registry.admin, &request)
        .await
        .unwrap();
    for (case, result) in request.cases.iter().zip(&told.results) {
        assert!(result.passed, "{case:?}: {result:?}");
    }
    for policy in documented_policies() {
        let decides = |case: &PolicyCase| case.because.as_ref() == Some(&policy.id);
        assert!(request.cases.iter().any(decides), "{}", policy.id);
    }
}

async fn cases_have_dates_and_not_too_many(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let case = |at: &str| PolicyCase {
        action: "register".into(),
        resource: "example.com".into(),
        expect: "allow".into(),
        at: Some(at.into()),
        ..PolicyCase::default()
    };
    let test = async |cases: Vec<PolicyCase>| {
        let request = PolicyCases {
            policies: None,
            cases,
        };
        policies_test(&registry.app, &registry.admin, &request).await
    };
    let days = |count: usize| -> Vec<PolicyCase> {
        (1..=count)
            .map(|day| case(&format!("2026-12-{day:02}")))
            .collect()
    };
    assert!(test(days(10)).await.unwrap().passed);
    for (cases, pointer) in [
        (days(11), "/cases/10/at"),
        (vec![case("tomorrow")], "/cases/0/at"),
    ] {
        let refused = test(cases).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid);
        assert_eq!(refused.members[0].0, pointer);
    }
}

const NOT_SEEN: (&str, &str) = (
    "not-seen",
    "forbid (principal, action, resource) when { resource.days_since_fetched >= 7 };",
);

/// Runs the job, and lets the index follow.
async fn follow(registry: &InProcessRegistry) {
    run_policy_job_once(&registry.app, || false).await.unwrap();
    registry.catch_up().await;
}

async fn is_found(registry: &InProcessRegistry, agent: Uuid) -> bool {
    registry.publicly_found_ids().await.contains(&agent)
}

async fn an_agent_is_hidden_when_its_day_comes_and_found_once_it_is_seen(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let domain = "seldom.agents-test.com";
    let card = card_bytes("Seldom", "seen");
    let agent = registry.register_approved_card(domain, &card).await.id;
    put_policies(&registry, &[("open", OPEN), NOT_SEEN]).await;
    follow(&registry).await;
    registry.advance(Duration::days(7) - Duration::minutes(1));
    follow(&registry).await;
    assert!(is_found(&registry, agent).await);
    registry.advance(Duration::minutes(1));
    // Nobody has written about the agent; the decision follows from the time alone, and is made once.
    follow(&registry).await;
    assert!(!is_found(&registry, agent).await);
    let before = registry.app.index.applied_seq();
    registry.advance(Duration::minutes(2));
    follow(&registry).await;
    assert_eq!(registry.app.index.applied_seq(), before);
    // It outlives the process.
    let registry = registry.restart(|_| ()).await;
    follow(&registry).await;
    assert!(!is_found(&registry, agent).await);
    // An answer that nothing has changed is an answer.
    registry
        .crawl_conditionally(domain, |_| OriginResponse::NotModified)
        .await;
    registry.catch_up().await;
    assert!(is_found(&registry, agent).await);
    registry.assert_index_matches_database().await;
    registry.advance(Duration::days(8));
    follow(&registry).await;
    assert!(!is_found(&registry, agent).await);
}

async fn replicas_hide_an_agent_alike_when_its_day_comes(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    if !url.starts_with("postgres") {
        return;
    }
    let mut agents = Vec::new();
    for number in 0..3 {
        let domain = format!("seldom{number}.agents-test.com");
        let card = card_bytes(&format!("Seldom {number}"), "seen");
        agents.push(registry.register_approved_card(&domain, &card).await.id);
        registry.advance(Duration::minutes(1));
    }
    put_policies(&registry, &[("open", OPEN), NOT_SEEN]).await;
    follow(&registry).await;
    let others = [
        registry.second_process().await,
        registry.second_process().await,
    ];
    registry.advance(Duration::days(7) - Duration::minutes(4));
    for hidden in 0..=agents.len() {
        let (one, two) = tokio::join!(
            run_policy_job_once(&registry.app, || false),
            run_policy_job_once(&others[0].app, || false)
        );
        one.unwrap();
        two.unwrap();
        for replica in [&registry, &others[0], &others[1]] {
            replica.catch_up().await;
            for (number, agent) in agents.iter().enumerate() {
                let found = is_found(replica, *agent).await;
                assert_eq!(found, number >= hidden, "{number} after {hidden}");
            }
        }
        registry.advance(Duration::minutes(1));
    }
}

/// However long a search takes, another process leaves it to the one that writes its events.
async fn a_search_for_ages_is_taken_over_only_when_nobody_is_at_it(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let card = card_bytes("Seldom", "seen");
    let agent = registry.register_approved_card("seldom.agents-test.com", &card);
    let agent = agent.await.id;
    put_policies(&registry, &[("open", OPEN), NOT_SEEN]).await;
    follow(&registry).await;
    registry.advance(Duration::days(8));
    let begun = AgeProgress {
        as_of: registry.app.now(),
        worked_at: registry.app.now(),
        ..AgeProgress::load(&registry.store).await.unwrap()
    };
    // Another process has begun, and wrote an event half a minute ago.
    for worked_at in [begun.as_of, begun.as_of.plus_micros(10 * MINUTE)] {
        let write = registry.store.begin_write().await.unwrap();
        let other = AgeProgress { worked_at, ..begun };
        other.store(&write).await.unwrap();
        write.commit().await.unwrap();
        registry.advance(Duration::microseconds(
            worked_at.0 - registry.app.now().0 + 30 * SECOND,
        ));
        run_policy_job_once(&registry.app, || false).await.unwrap();
        assert_eq!(AgeProgress::load(&registry.store).await.unwrap(), other);
    }
    registry.advance(Duration::seconds(30));
    follow(&registry).await;
    let finished = AgeProgress::load(&registry.store).await.unwrap();
    assert_eq!(finished, AgeProgress::finished(begun.as_of));
    assert!(!is_found(&registry, agent).await);
}

/// A new set counts ages to its making, so agents that reach one by then have no event: a policy that it keeps must
/// be evaluated again, also on a process that starts later.
async fn a_new_set_counts_the_ages_of_policies_that_it_keeps(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let card = card_bytes("Seldom", "seen");
    let agent = registry.register_approved_card("seldom.agents-test.com", &card);
    let agent = agent.await.id;
    put_policies(&registry, &[("open", OPEN), NOT_SEEN]).await;
    follow(&registry).await;
    assert!(is_found(&registry, agent).await);
    // No job runs until an admin makes another set.
    registry.advance(Duration::days(8));
    let other = (
        "other",
        "forbid (principal, action, resource) when { resource.has_error };",
    );
    put_policies(&registry, &[("open", OPEN), NOT_SEEN, other]).await;
    registry.catch_up().await;
    assert!(!is_found(&registry, agent).await);
    // Nor does a set that has no ages in between leave an old decision behind.
    put_policies(&registry, &[("open", OPEN)]).await;
    registry.catch_up().await;
    assert!(is_found(&registry, agent).await);
    put_policies(&registry, &[("open", OPEN), NOT_SEEN]).await;
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    assert!(!is_found(&registry, agent).await);
}

fn moment(text: &str) -> OffsetDateTime {
    text.parse::<Timestamp>().unwrap().into()
}

async fn newest_set(registry: &InProcessRegistry) -> (u64, String, String) {
    let newest = PolicySetQuery::default();
    let set = policies_show(&registry.app, &registry.admin, &newest)
        .await
        .unwrap();
    (
        set.number,
        set.author.unwrap_or_default(),
        set.reason.unwrap_or_default(),
    )
}

async fn a_policy_begins_and_ends_by_the_clock(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card(
            "shut.agents-test.com",
            &card_bytes("Shut", "over the holidays"),
        )
        .await
        .id;
    let holidays = "@from(\"2026-12-15\") @until(\"2027-01-05\") forbid (principal, action, resource) when { resource.domain like \"shut.*\" };";
    let made = put_policies(&registry, &[("open", OPEN), ("holidays", holidays)]).await;
    let other = match url.starts_with("postgres") {
        true => Some(registry.second_process().await),
        false => None,
    };
    let begin = moment("2026-12-15T00:00:00Z");
    let end = moment("2027-01-05T00:00:00Z");
    for (now, number, found, reason) in [
        (begin - Duration::seconds(1), made, true, "a test"),
        (begin, made + 1, false, "`holidays` begins"),
        (
            end - Duration::seconds(1),
            made + 1,
            false,
            "`holidays` begins",
        ),
        (end, made + 2, true, "`holidays` ends"),
        (end + Duration::days(30), made + 2, true, "`holidays` ends"),
    ] {
        registry.advance(now - registry.now());
        run_policy_job_once(&registry.app, || false).await.unwrap();
        if let Some(other) = &other {
            run_policy_job_once(&other.app, || false).await.unwrap();
            other.catch_up().await;
            assert_eq!(is_found(other, agent).await, found, "{now}");
        }
        registry.catch_up().await;
        assert_eq!(is_found(&registry, agent).await, found, "{now}");
        let (newest, author, why) = newest_set(&registry).await;
        assert_eq!((newest, why.as_str()), (number, reason), "{now}");
        assert_eq!(author == "system", number > made, "{now}");
    }
    registry.assert_index_matches_database().await;
}

async fn a_freeze_holds_what_comes_and_releases_it(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let there = registry
        .register_approved_card("there.agents-test.com", &card_bytes("There", "before"))
        .await
        .id;
    let mut new = policies(&[("open", OPEN)]);
    new.policies.extend(
        documented_policies()
            .into_iter()
            .filter(|policy| policy.id.starts_with("audit-freeze")),
    );
    policies_put(&registry.app, &registry.admin, &new, &IfMatch::default())
        .await
        .unwrap();
    follow(&registry).await;
    registry.advance(moment("2026-12-15T00:00:00Z") - registry.now());
    registry.register_domain("late.agents-test.com").await;
    follow(&registry).await;
    let wanted = Registration {
        domain: Some("later.agents-test.com".into()),
        ..Registration::default()
    };
    let refused = register_domain(&registry.app, &registry.admin, &wanted).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::PolicyDenied);
    registry
        .run_due_visits(|source| match source.url.contains("late.agents-test.com") {
            true => OriginResponse::Card(card_bytes("Late", "during the audit")),
            false => OriginResponse::Card(card_bytes("There", "before")),
        })
        .await;
    let late = registry.agent("late.agents-test.com").await.id;
    assert_eq!(registry.holds(late).await, ["policy"]);
    assert!(registry.holds(there).await.is_empty());
    registry.advance(moment("2027-01-05T00:00:00Z") - registry.now());
    follow(&registry).await;
    run_policy_job_once(&registry.app, || false).await.unwrap();
    assert!(registry.holds(late).await.is_empty());
    register_domain(&registry.app, &registry.admin, &wanted)
        .await
        .unwrap();
}

async fn a_name_that_no_one_has_is_warned_of(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    caller(&registry, "ann", Role::Reader).await;
    let members = GroupMembers {
        members: vec!["ann".into()],
    };
    let any = IfMatch::default();
    group_put(&registry.app, &registry.admin, "finance", &members, &any)
        .await
        .unwrap();
    let new = policies(&[
        ("open", OPEN),
        (
            "known",
            "forbid (principal in Group::\"finance\", action, resource) when { resource.has_error } unless { principal == Account::\"ann\" };",
        ),
        (
            "misspelt",
            "forbid (principal, action, resource) when { resource.has_error } unless { principal in Group::\"finanse\" || principal == Account::\"anm\" || principal == Account::\"anonymous\" };",
        ),
        (
            "elsewhere",
            "forbid (principal in Group::\"https://idp.example.com#finance\", action, resource) when { resource.has_error };",
        ),
    ]);
    let preview = policies_preview(&registry.app, &registry.admin, &new).await;
    let accepted = policies_put(&registry.app, &registry.admin, &new, &any).await;
    for warnings in [preview.unwrap().warnings, accepted.unwrap().warnings] {
        let about = |words: &str| {
            warnings
                .iter()
                .filter(|warning| warning.contains(words))
                .count()
        };
        assert_eq!(about("is unknown"), 3, "{warnings:?}");
        assert_eq!(about("group finanse is unknown; did you mean finance?"), 1);
        assert_eq!(about("account anm is unknown; did you mean ann?"), 1);
        assert_eq!(about("https://idp.example.com#finance is unknown"), 1);
    }
}
