//! Traces over OTLP, as a collector receives them (docs/operate/monitoring.md#send-traces).

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use actix_web::dev::ServerHandle;
use actix_web::web::{self, Bytes, Data, PayloadConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::ApiResponse;
use crate::support::in_process_registry::card_bytes;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

const CARD: &str = "/.well-known/agent-card.json";
/// The trace and the span of a caller.
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN_ID: &str = "00f067aa0ba902b7";

/// The bodies of the requests that a collector received.
type ReceivedBodies = Arc<Mutex<Vec<Bytes>>>;

/// A collector on a loopback port of its own.
struct Collector {
    url: String,
    bodies: ReceivedBodies,
    server: ServerHandle,
}

async fn accept_traces(
    request: HttpRequest,
    body: Bytes,
    bodies: Data<Mutex<Vec<Bytes>>>,
) -> HttpResponse {
    let media_type = request.headers().get("content-type").unwrap();
    assert_eq!(media_type, "application/x-protobuf");
    bodies.lock().unwrap().push(body);
    HttpResponse::Ok()
        .content_type("application/x-protobuf")
        .finish()
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = ReceivedBodies::default();
        let state = Data::from(Arc::clone(&bodies));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(state.clone())
                .app_data(PayloadConfig::new(1024 * 1024))
                .route("/v1/traces", web::post().to(accept_traces))
        });
        let server = server
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        tokio::spawn(server);
        Self {
            url,
            bodies,
            server: handle,
        }
    }

    /// Stops the collector, and returns the bodies that it received.
    async fn stop(self) -> Vec<Bytes> {
        self.server.stop(true).await;
        std::mem::take(&mut *self.bodies.lock().unwrap())
    }
}

/// A setup with this collector.
fn setup_with_collector(url: &str) -> RegistrySetup {
    RegistrySetup::new()
        .approve_all()
        .with_config_lines("[log]\nformat = \"json\"")
        .with_config_lines(&format!(
            "[tracing]\notlp_endpoint = \"{url}\"\nservice_name = \"registry-of-the-tests\""
        ))
}

/// All spans in these bodies. Each body names the service.
fn decode_spans(bodies: &[Bytes]) -> Vec<Span> {
    let mut spans = Vec::new();
    for body in bodies {
        let message = ExportTraceServiceRequest::decode(body.clone()).unwrap();
        for resource_spans in message.resource_spans {
            let resource = resource_spans.resource.unwrap();
            let service = find_attribute(&resource.attributes, "service.name");
            assert_eq!(service.as_deref(), Some("registry-of-the-tests"));
            let scopes = resource_spans.scope_spans.into_iter();
            spans.extend(scopes.flat_map(|scope| scope.spans));
        }
    }
    spans
}

fn find_attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone() {
        Some(AnyValue {
            value: Some(AttributeValue::StringValue(text)),
        }) => Some(text),
        Some(AnyValue {
            value: Some(AttributeValue::IntValue(number)),
        }) => Some(number.to_string()),
        other => panic!("{key} is neither a text nor a number: {other:?}"),
    }
}

fn attribute(span: &Span, key: &str) -> String {
    find_attribute(&span.attributes, key).unwrap_or_else(|| panic!("{key} is missing: {span:?}"))
}

fn hex(id: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(id)
}

/// The only span of that name in a trace, or in all traces.
fn only_span<'a>(spans: &'a [Span], name: &str, trace: Option<&str>) -> &'a Span {
    let fits =
        |span: &&Span| span.name == name && trace.is_none_or(|trace| hex(&span.trace_id) == trace);
    let found: Vec<&Span> = spans.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

fn keys(span: &Span) -> BTreeSet<&str> {
    let keys = span.attributes.iter();
    keys.map(|attribute| attribute.key.as_str()).collect()
}

/// Publishes an agent, searches, and suspends the agent with the trace of a caller. Returns the agent's id.
async fn do_all_that_is_traced(registry: &ServingRegistry, origin: &Origin) -> String {
    let api = &registry.api;
    origin.set_reply(
        CARD,
        OriginReply::json(card_bytes("Fernweh", "Books flights")),
    );
    let agent = api.publish(&origin.url(CARD)).await;
    api.search("q=fernweh+zanzibar").await;
    let suspend = api
        .admin_request(Method::POST, &format!("/v1/agents/{agent}:suspend"))
        .header("traceparent", format!("00-{TRACE_ID}-{CALLER_SPAN_ID}-01"))
        .json(&json!({"reason": "because of quokkas"}));
    ApiResponse::send(suspend).await.expect_status(200);
    agent
}

/// The request continues the trace of its caller, and what it causes is below it.
#[tokio::test]
async fn a_request_continues_the_trace_of_its_caller() {
    let collector = Collector::start();
    let registry = setup_with_collector(&collector.url)
        .start_without_proxy()
        .await;
    let origin = Origin::start();
    let agent = do_all_that_is_traced(&registry, &origin).await;
    let secret = registry.api.create_token("admin", "curator").await;
    let stranger = registry
        .api
        .request(Method::GET, "/v1/agents/none?q=capybara")
        .bearer_auth(&secret);
    let refusal = ApiResponse::send(stranger).await;
    assert!(refusal.status.is_client_error(), "{refusal:?}");
    let ended = registry.stop().await;
    let bodies = collector.stop().await;
    let spans = decode_spans(&bodies);

    let route = "/v1/agents/{agent}:suspend";
    let request = only_span(&spans, &format!("POST {route}"), Some(TRACE_ID));
    assert_eq!(hex(&request.parent_span_id), CALLER_SPAN_ID);
    assert_eq!(request.kind, SpanKind::Server as i32);
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", route),
        ("http.response.status_code", "200"),
        ("agent", agent.as_str()),
    ] {
        assert_eq!(attribute(request, key), value, "{key}");
    }
    assert_eq!(keys(request).len(), 4, "{request:?}");
    let commit = only_span(&spans, "commit", Some(TRACE_ID));
    assert_eq!(commit.parent_span_id, request.span_id);
    assert!(attribute(commit, "kinds").contains("agent.held"));
    assert_eq!(attribute(commit, "agents"), agent);

    let search = spans.iter().find(|span| span.name == "search").unwrap();
    assert_eq!(keys(search), BTreeSet::from(["hits", "mode"]));
    let caller = spans
        .iter()
        .find(|span| span.span_id == search.parent_span_id);
    assert_eq!(caller.unwrap().name, "GET /v1/agents");
    let visit = spans.iter().find(|span| span.name == "visit").unwrap();
    assert!(visit.parent_span_id.is_empty(), "{visit:?}");
    assert!(attribute(visit, "outcomes").contains("card"), "{visit:?}");
    for name in ["ingest", "index"] {
        assert!(spans.iter().any(|span| span.name == name), "{name}");
    }

    // The line of the act in the log has the ids of the span.
    let lines = ended.stderr.iter();
    let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let act = lines.find(|line| line["event"] == "agent.held").unwrap();
    assert_eq!(act["trace_id"], TRACE_ID, "{act}");
    assert_eq!(act["span_id"], hex(&request.span_id), "{act}");
    assert_eq!(act["parent_id"], CALLER_SPAN_ID, "{act}");

    assert_no_secret_is_in(&bodies, &secret);
}

/// No credential, no query, no text of a card and no reason is in what a collector receives.
fn assert_no_secret_is_in(bodies: &[Bytes], secret: &str) {
    assert!(!bodies.is_empty());
    for body in bodies {
        let text = String::from_utf8_lossy(body);
        for word in [
            secret,
            ADMIN_TOKEN,
            "zanzibar",
            "capybara",
            "quokkas",
            "Fernweh",
            "Books flights",
        ] {
            assert!(!text.contains(word), "{word} is in {text}");
        }
    }
}

/// Nothing is sent of a trace that is not in the sample.
#[tokio::test]
async fn a_trace_outside_of_the_sample_is_not_sent() {
    let collector = Collector::start();
    let registry = setup_with_collector(&collector.url)
        .with_config_lines("sample_ratio = 0.0")
        .start_without_proxy()
        .await;
    do_all_that_is_traced(&registry, &Origin::start()).await;
    registry.stop().await;
    assert_eq!(collector.stop().await, Vec::<Bytes>::new());
}

/// A collector that is gone changes nothing for requests; what is lost is counted, and the log says so once.
#[tokio::test]
async fn a_dead_collector_changes_nothing_for_requests() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let registry = setup_with_collector(&url).start_without_proxy().await;
    do_all_that_is_traced(&registry, &Origin::start()).await;
    eventually("lost spans are counted", || async {
        let scrape = registry.api.get_as_admin("/metrics").await.text();
        scrape
            .contains("a2a_registry_trace_spans_total{outcome=\"failed\"}")
            .then_some(())
    })
    .await;
    let ended = registry.stop().await;
    let warnings = ended.stderr.iter();
    let warnings = warnings.filter(|line| line.contains("does not accept traces"));
    assert_eq!(warnings.count(), 1, "{ended:?}");
}

/// A collector that accepts connections and never answers delays neither requests nor, for long, the shutdown.
#[tokio::test]
async fn a_silent_collector_changes_nothing_for_requests() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let registry = setup_with_collector(&url).start_without_proxy().await;
    do_all_that_is_traced(&registry, &Origin::start()).await;
    registry.stop().await;
}
