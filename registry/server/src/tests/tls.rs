//! Tests of serving over TLS with the configured certificate.

use std::net::TcpListener;
use std::sync::Arc;

use a2a_registry_core::metrics::Metrics;
use tokio_util::sync::CancellationToken;

use crate::serve::Listeners;
use crate::tests::Registry;
use crate::tls::ServerCertificate;

#[actix_web::test]
async fn https_is_spoken_where_a_certificate_is_configured() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let registry = Registry::with(|config| {
        config.server.tls_cert = Some(certificate);
        config.server.tls_key = Some(key.clone());
    })
    .await;

    let serve = |shutdown: &CancellationToken| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let context = Arc::clone(&registry.state.context);
        let listeners = Listeners {
            certificate: ServerCertificate::from_config(&context.config().server).unwrap(),
            ..Listeners::from(listener)
        };
        let metrics = Arc::new(Metrics::new());
        (
            port,
            crate::serve::run_server(context, listeners, shutdown.clone(), metrics),
        )
    };
    let shutdown = CancellationToken::new();
    let (port, running) = serve(&shutdown);
    let running = tokio::spawn(running);
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([root])
        .build()
        .unwrap();
    let answer = client
        .get(format!("https://localhost:{port}/livez"))
        .send()
        .await
        .unwrap();
    // HTTP/2 is left to TLS proxies, even if a client offers it.
    assert_eq!(answer.version(), reqwest::Version::HTTP_11);
    assert_eq!(answer.text().await.unwrap(), "ok\n");
    let head = client
        .head(format!("https://localhost:{port}/v1/agents"))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status(), 200);
    drop(client);
    shutdown.cancel();
    running.await.unwrap().unwrap();

    // An invalid key is named in the error, and nothing is served.
    std::fs::write(&key, "no key").unwrap();
    let config = registry.state.context.config();
    let error = ServerCertificate::from_config(&config.server).unwrap_err();
    assert!(error.to_string().contains("key.pem"), "{error}");
}
