//! Attacks on connections: slow clients, many at once, clients that do not read, and bytes that are not HTTP. All
//! other clients are served meanwhile.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::DEADLINE;
use crate::support::api::RegistryClient;
use crate::support::polling::eventually;
use crate::support::serving_registry::{ServingRegistry, StatusLine};
use crate::support::setup::RegistrySetup;

/// The largest public response.
const LARGE: &str = "/docs/swagger-ui-bundle.js";

fn address(api: &RegistryClient) -> SocketAddr {
    api.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// A connection from that address of this machine.
async fn connect_from(from: &str, api: &RegistryClient) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    // With a small buffer the server soon notices that the client does not read.
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(address(api)).await.unwrap()
}

/// All bytes until the server closes the connection, in whichever way.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    timeout(DEADLINE, async {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            all.extend_from_slice(&part[..count]);
        }
    })
    .await
    .expect("the connection was never closed");
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads one response; returns whether its body is `ok`.
async fn is_answered(stream: &mut TcpStream) -> bool {
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if stream.write_all(request).await.is_err() {
        return false;
    }
    let mut received = Vec::new();
    let mut part = [0; 1024];
    let ends = |received: &[u8]| received.ends_with(b"\r\n\r\nok\n");
    while !ends(&received) {
        match timeout(DEADLINE, stream.read(&mut part)).await.unwrap() {
            Ok(count @ 1..) => received.extend_from_slice(&part[..count]),
            _ => return false,
        }
    }
    true
}

async fn serve(limits: &str) -> ServingRegistry {
    RegistrySetup::new()
        .with_config_lines(&format!("[limits]\n{limits}"))
        .start()
        .await
}

/// An endless body, to the page's form and to the API, is accepted up to the body timeout, and no longer.
#[tokio::test]
async fn a_slow_body_is_cut_off() {
    let registry = serve("body_seconds = 1").await;
    for (path, kind) in [
        ("/register", "application/x-www-form-urlencoded"),
        ("/v1/domains", "application/json"),
        ("/v1/agents/x:suspend", "application/json"),
    ] {
        let mut stream = connect_from("127.0.0.1", &registry.api).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\
             Authorization: Bearer {token}\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\nt",
            token = crate::support::setup::ADMIN_TOKEN,
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{path}: {answer}");
        assert!(answer.contains("not complete after 1 second"), "{answer}");
    }
    registry.stop().await;
}

/// While one client opens slow connections one after the other, other clients are served as usual, even with a low
/// limit of open files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_slow_connections_do_not_block_other_clients() {
    let registry = RegistrySetup::new()
        .start_after_commands("ulimit -n 600")
        .await;
    let mut slow = Vec::new();
    for number in 0..600 {
        let mut stream = connect_from("127.0.0.2", &registry.api).await;
        // Connections beyond the limit are closed, which the client may notice later.
        let head = "POST /register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nt";
        let _ = stream.write_all(head.as_bytes()).await;
        slow.push(stream);
        if number % 100 == 99 {
            assert_eq!(registry.api.get("/livez").await.status, 200, "{number}");
        }
    }
    let ready = registry.api.get("/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.text());
    assert!(
        registry
            .metric_value("http_connections_refused_total")
            .await
            >= 600 - 256
    );
    drop(slow);
    registry.stop().await;
}

/// The limit per address is exact, holds for each address alone, and not for a trusted proxy.
#[tokio::test]
async fn connections_per_address_are_limited() {
    let setup = RegistrySetup::new().with_config_lines(
        "[limits]\nconnections_per_address = 2\n[server]\ntrusted_proxies = [\"127.0.0.3\"]",
    );
    let registry = setup.start_without_proxy().await;
    let api = &registry.api;
    let mut first = connect_from("127.0.0.2", api).await;
    let mut second = connect_from("127.0.0.2", api).await;
    assert!(is_answered(&mut first).await && is_answered(&mut second).await);
    let mut third = connect_from("127.0.0.2", api).await;
    assert!(!is_answered(&mut third).await);
    // Open connections continue, and other addresses are not affected.
    assert!(is_answered(&mut first).await);
    let mut other = connect_from("127.0.0.4", api).await;
    assert!(is_answered(&mut other).await);
    let mut proxied = Vec::new();
    for _ in 0..5 {
        let mut stream = connect_from("127.0.0.3", api).await;
        assert!(is_answered(&mut stream).await);
        proxied.push(stream);
    }
    drop(second);
    eventually("another connection is accepted", || async {
        let mut again = connect_from("127.0.0.2", api).await;
        is_answered(&mut again).await.then_some(())
    })
    .await;
    drop((first, other, proxied));
    registry.stop().await;
}

/// A client that does not read its response keeps its connection up to the write timeout, and no longer.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let registry = serve("write_seconds = 1").await;
    let mut stream = connect_from("127.0.0.2", &registry.api).await;
    // More than the system buffers for a client.
    let request = format!("GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(16);
    stream.write_all(request.as_bytes()).await.unwrap();
    eventually("the connection is cut off", || async {
        let cut_off = registry
            .metric_value("http_connections_cut_off_total")
            .await;
        (cut_off == 1).then_some(())
    })
    .await;
    let read = until_closed(&mut stream).await;
    assert!(read.starts_with("HTTP/1.1 200 "), "no byte was sent");
    registry.stop().await;
}

/// For the first request on a connection the server's library has a timeout; for further ones this server does.
#[tokio::test]
async fn a_slow_second_request_is_cut_off() {
    let registry = serve("body_seconds = 1\nrequest_seconds = 2").await;
    let mut stream = connect_from("127.0.0.2", &registry.api).await;
    assert!(is_answered(&mut stream).await);
    stream.write_all(b"GET /li").await.unwrap();
    assert_eq!(until_closed(&mut stream).await, "");
    registry.stop().await;
}

/// Bytes that are not HTTP are counted, and not logged.
#[tokio::test]
async fn malformed_requests_are_counted_and_not_logged() {
    let registry = RegistrySetup::new().start_without_proxy().await;
    let inputs: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nno colon\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for input in inputs {
        let mut stream = connect_from("127.0.0.2", &registry.api).await;
        stream.write_all(input).await.unwrap();
        until_closed(&mut stream).await;
    }
    let counted = registry.metric_value("http_malformed_requests_total").await;
    assert_eq!(counted, inputs.len() as i64);
    let ended = registry.stop().await;
    let logged: Vec<_> = ended
        .stderr
        .iter()
        .filter(|line| line.contains("ERROR") || line.contains("WARN"))
        .collect();
    assert!(logged.is_empty(), "{logged:?}");
}

/// Metrics can have a port of their own, and are then not served on the main port.
#[tokio::test]
async fn metrics_can_have_a_port_of_their_own() {
    let registry = RegistrySetup::new()
        .with_config_lines("[server]\nmetrics_listen = \"127.0.0.1:0\"")
        .start()
        .await;
    let StatusLine::Serving { metrics_url, .. } = &registry.status_line else {
        panic!("it serves: {:?}", registry.status_line);
    };
    let url = metrics_url.as_ref().unwrap();
    let own = RegistryClient::new(url.strip_suffix("/metrics").unwrap());
    let text = own.get("/metrics").await;
    assert_eq!(text.status, 200);
    assert!(text.text().contains("a2a_registry_http_requests"));
    own.get("/v1/agents").await.expect_problem(404, "not-found");
    own.get("/livez").await.expect_problem(404, "not-found");
    let main = registry.api.get("/metrics").await;
    main.expect_problem(404, "not-found");
    registry
        .api
        .get_as_admin("/metrics")
        .await
        .expect_problem(404, "not-found");
    assert_eq!(registry.api.get("/livez").await.status, 200);
    registry.stop().await;
}
