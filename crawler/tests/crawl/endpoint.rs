//! Endpoint checks over real sockets: what is sent, and the verdict on agents, other servers and hostile ones.

use std::time::Duration;

use a2a_card::{AgentCard, Interface};
use a2a_crawler::endpoint_check::EndpointVerdict::{
    Answers, DoesNotAnswer, NeedsCredentials, NotA2a, NotChecked, Unclear,
};
use a2a_crawler::endpoint_check::{EndpointAddress, EndpointCheck, MAX_ENDPOINT_RESPONSE_BYTES};
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};
use hyper::body::Bytes;
use hyper::{HeaderMap, Response};
use tokio::net::TcpListener;

use crate::support::{
    Authority, Canary, HOST, OPEN, ScriptedReply, Server, config, fetcher_with, hasty_fetcher,
    resolver,
};

const NOT_FOUND: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#;

fn address(url: &str, binding: &str, version: &str) -> EndpointAddress {
    let card = AgentCard {
        interfaces: vec![Interface {
            url: url.to_owned(),
            binding: binding.to_owned(),
            protocol_version: Some(version.to_owned()),
            tenant: None,
        }],
        ..AgentCard::default()
    };
    EndpointAddress::from_card(&card).pop().unwrap()
}

async fn check(server: &Server, binding: &str) -> EndpointCheck {
    let address = address(server.url("/agent").as_str(), binding, "1.0");
    hasty_fetcher().check_endpoint(&address).await
}

#[tokio::test]
async fn a_get_asks_for_a_task_and_nothing_else() {
    let reply = ScriptedReply::new(404, "", r#"{"message":"Task not found"}"#);
    let server = Server::always(reply).await;
    let found = check(&server, "HTTP+JSON").await;
    assert_eq!((found.verdict, found.status), (Answers, Some(404)));
    assert_eq!(found.address, Some(OPEN.into()));
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0].method, "GET");
    let path = "/agent/tasks/00000000-0000-0000-0000-000000000000";
    assert_eq!(requests[0].path, path);
    assert_eq!(requests[0].header("a2a-version"), Some("1.0"));
    for absent in ["authorization", "cookie", "referer"] {
        assert_eq!(requests[0].header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn a_post_calls_get_task_and_sends_no_message() {
    let server = Server::always(ScriptedReply::json(NOT_FOUND)).await;
    for (version, method) in [
        ("1.0", "GetTask"),
        ("0.3", "tasks/get"),
        ("0.1", "tasks/get"),
    ] {
        let address = address(server.url("/rpc").as_str(), "JSONRPC", version);
        let found = hasty_fetcher().check_endpoint(&address).await;
        assert_eq!(found.verdict, Answers, "{version}: {}", found.reason);
        let sent = server.requests().pop().unwrap();
        let body = String::from_utf8(sent.body).unwrap();
        assert!(body.contains(&format!("\"method\":\"{method}\"")), "{body}");
        assert!(!body.to_lowercase().contains("message"), "{body}");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn servers_that_are_no_agents_are_told_apart() {
    let web_page = ScriptedReply::new(200, "content-type: text/html\r\n", "<!doctype html>");
    let login = ScriptedReply::new(401, "www-authenticate: Bearer realm=\"x\"\r\n", "");
    let too_large = "x".repeat(MAX_ENDPOINT_RESPONSE_BYTES + 1);
    let hundred_megabytes =
        ScriptedReply::raw("HTTP/1.1 200 X\r\ncontent-length: 104857600\r\n\r\n").then_hang();
    let endless =
        ScriptedReply::raw("HTTP/1.1 200 X\r\n\r\n").then_repeat(vec![b'x'; 8192], Duration::ZERO);
    let dripping =
        ScriptedReply::raw("HTTP/1.1 200 X\r\n\r\n").then_repeat("x", Duration::from_millis(20));
    for (reply, expected) in [
        (web_page, NotA2a),
        (login, NeedsCredentials),
        (ScriptedReply::new(404, "", ""), Unclear),
        (ScriptedReply::redirect("http://127.0.0.2/"), Unclear),
        (ScriptedReply::new(200, "", too_large), Unclear),
        (hundred_megabytes, Unclear),
        (endless, Unclear),
        (dripping, DoesNotAnswer),
        (ScriptedReply::raw("").then_hang(), DoesNotAnswer),
        (ScriptedReply::raw("").then_close(), DoesNotAnswer),
        (ScriptedReply::raw("SSH-2.0-x\r\n").then_close(), NotA2a),
    ] {
        for binding in ["HTTP+JSON", "JSONRPC"] {
            let server = Server::always(reply.clone()).await;
            let found = check(&server, binding).await;
            assert_eq!(
                found.verdict, expected,
                "{reply:?} {binding}: {}",
                found.reason
            );
            assert_eq!(server.requests().len(), 1, "{reply:?} {binding}");
            assert!(
                server.written() < 10 * MAX_ENDPOINT_RESPONSE_BYTES * 16,
                "{reply:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_guard_rejects_is_not_checked() {
    let canary = Canary::new();
    for url in [canary.url().to_string(), "http://10.0.0.1/".to_owned()] {
        for binding in ["HTTP+JSON", "JSONRPC", "GRPC"] {
            let found = hasty_fetcher()
                .check_endpoint(&address(&url, binding, "1.0"))
                .await;
            assert_eq!(found.verdict, NotChecked, "{url} {binding}");
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn a_closed_port_and_an_unknown_host_do_not_answer() {
    let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for (url, binding) in [
        (format!("http://{HOST}:{port}/"), "JSONRPC"),
        (format!("http://{HOST}:{port}"), "GRPC"),
        ("https://nowhere.example.com/".to_owned(), "JSONRPC"),
    ] {
        let found = hasty_fetcher()
            .check_endpoint(&address(&url, binding, "1.0"))
            .await;
        assert_eq!(found.verdict, DoesNotAnswer, "{url}: {}", found.reason);
        assert!(!found.reason.is_empty());
    }
}

#[tokio::test]
async fn a_server_that_wants_a_client_certificate_needs_credentials() {
    let authority = Authority::new("endpoint");
    let acceptor = authority.identity(HOST).mutual_acceptor(&authority.der());
    let reply = ScriptedReply::json(NOT_FOUND);
    let server = Server::bind(OPEN.into(), Some(acceptor), move |_| reply.clone()).await;
    let config = FetcherConfig {
        extra_ca: vec![authority.pem()],
        ..config(FetchLimits::default())
    };
    let fetcher = fetcher_with(config, resolver());
    let found = fetcher
        .check_endpoint(&address(server.url("/").as_str(), "JSONRPC", "1.0"))
        .await;
    assert_eq!(found.verdict, NeedsCredentials, "{}", found.reason);
    assert_eq!(found.auth_scheme.as_deref(), Some("mutualTLS"));
    assert!(server.requests().is_empty());
}

/// A gRPC server without TLS for one call, which sends its status in the trailers; returns the call's path and body.
async fn answer_grpc(listener: TcpListener, status: &'static str) -> (String, Bytes) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    let path = request.uri().path().to_owned();
    let mut incoming = request.into_body();
    let answering = async move {
        let body = incoming.data().await.unwrap().unwrap();
        let head = Response::builder()
            .header("content-type", "application/grpc")
            .body(())
            .unwrap();
        let mut stream = respond.send_response(head, false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        body
    };
    // The connection makes progress only while it is accepted from.
    let (body, _ended) = tokio::join!(answering, async { connection.accept().await.is_none() });
    (path, body)
}

#[tokio::test]
async fn a_grpc_call_is_judged_by_the_status_in_its_trailers() {
    for (version, status, expected, expected_path) in [
        ("1.0", "5", Answers, "/lf.a2a.v1.A2AService/GetTask"),
        ("0.3", "5", Answers, "/a2a.v1.A2AService/GetTask"),
        ("1.0", "12", NotA2a, "/lf.a2a.v1.A2AService/GetTask"),
        (
            "1.0",
            "16",
            NeedsCredentials,
            "/lf.a2a.v1.A2AService/GetTask",
        ),
    ] {
        let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
        let url = format!("http://{HOST}:{}", listener.local_addr().unwrap().port());
        let server = tokio::spawn(answer_grpc(listener, status));
        let found = hasty_fetcher()
            .check_endpoint(&address(&url, "GRPC", version))
            .await;
        assert_eq!(
            found.verdict, expected,
            "{version} {status}: {}",
            found.reason
        );
        let (path, body) = server.await.unwrap();
        assert_eq!(path, expected_path);
        assert_eq!(body[0], 0);
        assert_eq!(body.len(), 5 + usize::from(body[4]));
    }
}
