//! The shipped configuration of nginx, in front of a registry (docs/operate/tls-and-proxies.md#put-a-proxy-in-front).

use std::io::Write as _;
use std::net::SocketAddr;

use reqwest::{Client, Method, RequestBuilder, StatusCode, Version};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::nginx::{CLIENT, Nginx, NginxSite};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};
use crate::support::{DEADLINE, free_port};

/// A registry behind nginx.
struct ProxiedRegistry {
    /// `None` while it is away.
    registry: Option<ServingRegistry>,
    setup: RegistrySetup,
    nginx: Nginx,
    url: String,
    plain_address: SocketAddr,
}

impl ProxiedRegistry {
    async fn start(site: &NginxSite) -> Self {
        let registry_port = free_port();
        let url = site.url();
        let setup = RegistrySetup::with_default_config()
            .with_argument("--listen")
            .with_argument(&format!("127.0.0.1:{registry_port}"))
            .with_config_lines(&format!(
                "[server]\npublic_url = \"{url}\"\ntrusted_proxies = [\"127.0.0.1\"]"
            ));
        let registry = setup.start_without_proxy().await;
        let nginx = site.start(setup.scratch_folder(), &[registry_port]).await;
        Self {
            registry: Some(registry),
            setup,
            nginx,
            url,
            plain_address: site.plain_address(),
        }
    }

    fn registry(&self) -> &ServingRegistry {
        self.registry.as_ref().expect("it runs")
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.nginx.client.get(format!("{}{path}", self.url))
    }

    /// How the registry sees a request.
    async fn received(&self, request: RequestBuilder) -> Value {
        let answer = request.bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        let readiness: Value = answer.json().await.unwrap();
        readiness["request"].clone()
    }
}

/// Reads a stream until it has sent this text.
async fn read_until(stream: &mut reqwest::Response, text: &str) {
    let reading = async {
        let mut received = String::new();
        while !received.contains(text) {
            let chunk = stream.chunk().await.unwrap().expect("the stream goes on");
            received.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    timeout(DEADLINE, reading).await.expect(text);
}

/// One test for everything, because each part needs the same registry, proxy and certificate.
#[tokio::test]
async fn the_shipped_nginx_configuration_serves_a_registry() {
    let Some(site) = NginxSite::find() else {
        // Written past the capture of the test harness, so that it is seen.
        let line = "SKIPPED: the shipped configuration of nginx is not tried, because nginx is missing \
                    (Debian's package nginx-light)";
        writeln!(std::io::stderr(), "{line}").unwrap();
        return;
    };
    let mut proxied = ProxiedRegistry::start(&site).await;

    // TLS with HTTP/2, and plain requests are sent there.
    let answer = proxied.get("/livez").send().await.unwrap();
    assert_eq!(
        (answer.status(), answer.version()),
        (StatusCode::OK, Version::HTTP_2)
    );
    let plain = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let plain_url = format!("http://{}/agents", proxied.plain_address);
    let redirect = plain.get(plain_url).send().await.unwrap();
    assert_eq!(redirect.status(), StatusCode::MOVED_PERMANENTLY);
    let hidden = proxied.get("/metrics").send().await.unwrap();
    assert_eq!(hidden.status(), StatusCode::NOT_FOUND);

    // The client's address and not the proxy's, whatever the client says.
    let authority = proxied.url.strip_prefix("https://").unwrap();
    for forged in [None, Some("198.51.100.7"), Some("127.0.0.1, 198.51.100.7")] {
        let mut request = proxied.get("/readyz");
        if let Some(forged) = forged {
            request = request
                .header("x-forwarded-for", forged)
                .header("forwarded", format!("for={forged}"))
                .header("x-forwarded-host", "evil.example.com")
                .header("x-forwarded-proto", "http");
        }
        let received = proxied.received(request).await;
        assert_eq!(received["client"], CLIENT.to_string(), "{received}");
        assert_eq!(received["peer"], "127.0.0.1", "{received}");
        assert_eq!(received["trusted"], true, "{received}");
        assert_eq!(received["host"], authority, "{received}");
        assert_eq!(received["forwarded_host"], Value::Null, "{received}");
        assert_eq!(received["forwarded_proto"], "https", "{received}");
    }
    let anonymous = proxied.get("/readyz").send().await.unwrap();
    let anonymous: Value = anonymous.json().await.unwrap();
    assert_eq!(anonymous.get("request"), None, "for who may read events");
    let refused = proxied
        .get("/v1/me")
        .bearer_auth("a2ar_unknown")
        .header("x-forwarded-for", "198.51.100.7")
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let program = &proxied.registry().program;
    let line = program.wait_for_line("unknown_token").await;
    assert!(
        line.contains(&CLIENT.to_string()) && !line.contains("198.51.100.7"),
        "{line}"
    );

    // Each event arrives before the next one happens.
    let stream = proxied.get("/v1/events").bearer_auth(ADMIN_TOKEN);
    let stream = stream.header("accept", "text/event-stream").send().await;
    let mut stream = stream.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    for account in ["first", "second", "third"] {
        proxied.registry().create_token(account, "reader").await;
        read_until(&mut stream, account).await;
    }
    drop(stream);

    // Too much is refused by the registry, which says what its limit is.
    let long = json!({"domain": "a".repeat(1_000_000)});
    let refused = proxied
        .nginx
        .client
        .request(Method::POST, format!("{}/v1/domains", proxied.url))
        .bearer_auth(ADMIN_TOKEN)
        .json(&long)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let kind = refused.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/problem+json"), "{kind}");

    // While the registry is away the proxy says so, and afterwards it goes on.
    let registry = proxied.registry.take().expect("it runs");
    registry.program.kill().await;
    let away = proxied.get("/livez").send().await.unwrap().status();
    assert!(
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE].contains(&away),
        "{away}"
    );
    proxied.registry = Some(proxied.setup.start_without_proxy().await);
    eventually("the registry is reached again", async || {
        let answer = proxied.get("/livez").send().await.ok()?;
        (answer.status() == StatusCode::OK).then_some(())
    })
    .await;
}
