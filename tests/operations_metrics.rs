//! What an operator watches: metrics, alert rules and the dashboard (docs/operate/monitoring.md).

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use a2a_registry_api::Act;
use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::metrics::span_counters::SpanCounters;
use a2a_registry_core::metrics::{GaugeValues, Metrics};
use a2a_registry_core::reviews::recertification::advance_approval_terms;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::operating_counts::{
    EndingApprovals, OpenReviews, count_due_visits, count_ending_approvals, count_holds_by_kind,
    count_open_reviews,
};
use data_encoding::BASE64URL_NOPAD;
use reqwest::Method;
use serde_json::json;
use time::Duration;

use crate::reference::{assert_generated, describe_metrics};
use crate::support::api::RegistryClient;
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::{ServingRegistry, StatusLine, start_serving};
use crate::support::setup::RegistrySetup;

const CARD: &str = "/.well-known/agent-card.json";

both_databases!(due_visits_are_counted, what_waits_for_curators_is_counted);

fn packaging_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

/// The names of our metrics in rules or a dashboard.
fn named_metrics(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(packaging_folder().join(file)).unwrap();
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("a2a_registry_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// The names of the samples in a scrape.
fn sample_names(scrape: &str) -> BTreeSet<String> {
    let samples = scrape.lines().filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| line.split(['{', ' ']).next())
        .map(str::to_owned)
        .collect()
}

/// A token that names this issuer and that it never signed.
fn unsigned_access_token(issuer: &str) -> String {
    let encode = |part: serde_json::Value| BASE64URL_NOPAD.encode(part.to_string().as_bytes());
    format!(
        "{}.{}.{}",
        encode(json!({"alg": "ES256", "kid": "k", "typ": "at+jwt"})),
        encode(json!({"iss": issuer, "sub": "pipeline"})),
        BASE64URL_NOPAD.encode(&[0; 64])
    )
}

/// Does with a registry what metrics count: a crawl, a search, a policy switch, refused tokens, a provider that fails.
async fn cause_all_metrics(registry: &ServingRegistry, issuer: &str) {
    let api = &registry.api;
    let origin = Origin::start();
    let card = card_bytes("Fernweh", "Books flights");
    origin.set_reply(CARD, OriginReply::json(card));
    let mut feed = api.open_event_stream(0).await;
    api.register(&origin.url(CARD)).await;
    feed.wait_for("review.opened").await;
    api.search("q=fernweh").await;
    for (token, status) in [
        ("a2ar_nobody-has-this-token".to_owned(), 401),
        (unsigned_access_token(issuer), 503),
    ] {
        let request = api.request(Method::GET, "/v1/me").bearer_auth(token);
        assert_eq!(request.send().await.unwrap().status(), status);
    }
    let set = json!({"reason": "a test", "policies": [
        {"id": "open", "text": "permit (principal, action, resource);"},
    ]});
    let put = api
        .admin_request(Method::PUT, "/v1/policies")
        .json(&set)
        .send();
    assert!(put.await.unwrap().status().is_success());
    eventually("the new policies are in force", || async {
        (api.metric_value("policy_switches_total").await == 1).then_some(())
    })
    .await;
    eventually("the database was read for the metrics", || async {
        let scrape = api.get_as_admin("/metrics").await.text();
        scrape
            .contains("a2a_registry_database_read_only")
            .then_some(())
    })
    .await;
}

/// Every metric that an alert or a panel names exists in a registry that has done what it counts, and only callers who
/// may audit see it.
#[tokio::test]
async fn every_metric_of_alerts_and_dashboard_exists() {
    let provider = Origin::start();
    let issuer = provider.url("");
    let registry = RegistrySetup::new()
        .allow_loopback_identity()
        .with_config_lines(&format!(
            "[identity.providers.corp]\nissuer = \"{issuer}\"\naudiences = [\"https://registry.example\"]"
        ))
        .start_without_proxy()
        .await;
    cause_all_metrics(&registry, &issuer).await;
    let scrape = registry.get_as_admin("/metrics").await.text();
    let live = sample_names(&scrape);
    let public = sample_names(&registry.get("/metrics").await.text());
    for (file, least) in [
        ("prometheus/alerts.yml", 20),
        ("grafana/dashboard.json", 20),
    ] {
        let named = named_metrics(file);
        assert!(named.len() >= least, "{file}: {named:?}");
        let missing: Vec<&String> = named.difference(&live).collect();
        assert!(missing.is_empty(), "{file}: {missing:?} in:\n{scrape}");
        let shown: Vec<&String> = named.intersection(&public).collect();
        assert!(shown.is_empty(), "everyone sees {shown:?}");
    }
    // Traces are off here, so their counter is taken from elsewhere.
    let spans = SpanCounters::default();
    spans.count_sent(1);
    let traced = Metrics::with_span_counters(&spans).encode_all(&GaugeValues::default());
    let page = describe_metrics(&format!("{}{scrape}", traced.unwrap()));
    assert_generated("metrics", &page);
    let errors = "identity_provider_errors_total{provider=\"corp\"}";
    assert!(registry.metric_value(errors).await >= 1);
    registry.stop().await;
}

/// A process that only crawls has metrics too, where they have a port of their own.
#[tokio::test]
async fn a_crawler_without_the_api_has_metrics() {
    let database = Database::postgres().await;
    let setup = RegistrySetup::new()
        .with_database(database.url())
        .with_config_lines("[server]\nmetrics_listen = \"127.0.0.1:0\"")
        .with_argument("--roles")
        .with_argument("crawler");
    let (program, status_line) = start_serving(setup.serve_command()).await;
    let StatusLine::Serving {
        url: None,
        metrics_url: Some(url),
        ..
    } = &status_line
    else {
        panic!("it only serves metrics: {status_line:?}");
    };
    let metrics = RegistryClient::new(url.strip_suffix("/metrics").unwrap());
    let scrape = metrics.get("/metrics").await.text();
    assert!(scrape.contains("a2a_registry_crawl_braked 0"), "{scrape}");
    metrics
        .get("/v1/agents")
        .await
        .expect_problem(404, "not-found");
    let ended = program.terminate().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// The alert rules are valid, and fire where their tests say. `tests/run` provides `promtool`.
#[test]
fn alert_rules_pass_promtool() {
    let promtool = std::env::var_os("A2A_REGISTRY_TEST_PROMTOOL");
    let promtool = promtool.map_or_else(|| PathBuf::from("promtool"), PathBuf::from);
    for [verb, file] in [["check", "alerts.yml"], ["test", "alerts_test.yml"]] {
        let run = Command::new(&promtool)
            .args([verb, "rules", file])
            .current_dir(packaging_folder().join("prometheus"))
            .output();
        match run {
            // Written past the capture of the test harness, so that it is seen.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let line = "SKIPPED: alert rules are not checked, because promtool is missing \
                            (Debian's package prometheus)";
                writeln!(std::io::stderr(), "{line}").unwrap();
                return;
            }
            run => {
                let run = run.unwrap();
                assert!(run.status.success(), "{verb} {file}: {run:?}");
            }
        }
    }
}

async fn due_visits_are_counted(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let now = || Timestamp::from(registry.now()).0;
    let count = async |overdue_by: i64, limit: u64| {
        let counted = count_due_visits(&registry.store, now(), overdue_by, limit).await;
        let visits = counted.unwrap();
        (visits.due, visits.overdue, visits.oldest)
    };
    assert_eq!(count(now(), 9).await, (0, 0, None));
    for domain in ["a.dev", "b.dev", "c.dev"] {
        registry.register_domain(domain).await;
    }
    let begun = now();
    registry.advance(Duration::minutes(20));
    registry.register_domain("d.dev").await;
    let (due, overdue, oldest) = count(begun, 9).await;
    assert_eq!((due, overdue), (4, 3));
    assert!(oldest.unwrap() <= begun);
    // The oldest are counted first.
    assert_eq!(count(begun, 2).await, (2, 2, oldest));
    // Visits under way wait no longer.
    let leased = registry
        .lease_due_outcomes(|_| OriginResponse::Card(card_bytes("Fernweh", "Books flights")))
        .await;
    let leased = i64::try_from(leased.len()).unwrap();
    assert!(leased > 0);
    assert_eq!(count(begun, 9).await.0, 4 - leased);
}

async fn what_waits_for_curators_is_counted(url: &str) {
    const TERM_DAYS: u16 = 30;
    let term = i64::from(TERM_DAYS) * DAY;
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.recertify_after = Some(TERM_DAYS);
    })
    .await;
    let now = || Timestamp::from(registry.now()).0;
    let card = card_bytes("Echo", "1.0");
    let served = registry.register_approved_card("a.dev", &card).await;
    let approvals = async || {
        let ends = [7, 30].map(|days| now() + days * DAY);
        let counted = count_ending_approvals(&registry.store, term, now(), ends, 9).await;
        counted.unwrap()
    };
    let ending = |sooner, later| EndingApprovals { sooner, later };
    assert_eq!(approvals().await, ending(0, 1));

    let reviews = async |limit| count_open_reviews(&registry.store, limit).await.unwrap();
    assert_eq!(reviews(9).await, OpenReviews::default());
    let oldest = Some(now());
    registry.register_with_card("b.dev", &card).await;
    registry.advance(Duration::seconds(1));
    registry.register_with_card("c.dev", &card).await;
    assert_eq!(reviews(9).await, OpenReviews { open: 2, oldest });
    assert_eq!(reviews(1).await, OpenReviews { open: 1, oldest });

    // The end is announced 14 days before, which no count shows.
    registry.advance(Duration::days(16));
    advance_approval_terms(&registry.app).await.unwrap();
    assert_eq!(approvals().await, ending(0, 1));
    registry.advance(Duration::days(8));
    assert_eq!(approvals().await, ending(1, 1));
    registry.advance(Duration::days(6));
    assert_eq!(approvals().await, ending(0, 0));

    let act = Act {
        reason: "a test".into(),
        hold: None,
    };
    let (app, admin, id) = (&registry.app, &registry.admin, served.id.to_string());
    agent_suspend(app, admin, &id, &act).await.unwrap();
    let holds = async |limit| count_holds_by_kind(&registry.store, limit).await.unwrap();
    assert_eq!(holds(9).await, [("operator".to_owned(), 1)]);
    assert!(holds(0).await.is_empty());
    agent_retire(app, admin, &id, &act).await.unwrap();
    assert!(holds(9).await.is_empty());
}
