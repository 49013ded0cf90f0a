//! The API key is sent to the endpoint and appears in no log, no error and no `Debug` output.

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;

use super::*;

const KEY: &str = "hush-0123456789-abcdefghij";

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);

    // Servers that quote the request, in every kind of wrong response.
    let quoting = |status: u16| {
        move |request: &Request| {
            let sent = request.header("authorization").unwrap();
            let said = json!({"error": {"message": format!("no account for {sent}, {sent}")}});
            ScriptedReply::new(status, &format!("x: {sent}\r\n"), said.to_string())
        }
    };
    let in_a_vector = |request: &Request| {
        let sent = request.header("authorization").unwrap();
        ScriptedReply::json(format!(
            r#"{{"data":[{{"index":0,"embedding":"{sent}"}}]}}"#
        ))
    };
    let redirecting = |request: &Request| {
        let sent = request.header("authorization").unwrap();
        ScriptedReply::redirect(&format!("/{}", sent.replace(' ', "/")))
    };
    let broken = |request: &Request| {
        let sent = request.header("authorization").unwrap();
        ScriptedReply::raw(format!("HTTP/1.1 {sent}\r\n\r\n")).then_close()
    };
    for server in [
        Server::start(quoting(401)).await,
        Server::start(quoting(429)).await,
        Server::start(quoting(500)).await,
        Server::start(in_a_vector).await,
        Server::start(redirecting).await,
        Server::start(broken).await,
    ] {
        let config = EndpointOptions {
            api_key: Some(BearerToken::new(KEY).unwrap()),
            ..config(&server)
        };
        let endpoint = open(&config).await.unwrap();
        for kind in [TextKind::Query, TextKind::Card] {
            let error = endpoint.embed(owned(&["x"]), kind).await.unwrap_err();
            tracing::info!("{config:?} {endpoint:?} {error} {error:?}");
        }
        let requests = server.requests();
        assert!(!requests.is_empty());
        for request in requests {
            let sent = request.header("authorization");
            assert_eq!(sent, Some(&*format!("Bearer {KEY}")));
            assert_eq!(request.path, "/v1/embeddings");
        }
    }
    let log = log.text();
    assert!(log.contains("no account for Bearer [key], Bearer [key]"));
    let at = log.find(KEY).map(|at| log[..at].lines().last());
    assert_eq!(at, None);
}
