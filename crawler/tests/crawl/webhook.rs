//! Messages to webhooks: what arrives, and receivers that are slow, answer too much, or lead elsewhere.

use a2a_crawler::AttemptOutcome::{BadRedirect, Refused, Timeout};
use a2a_crawler::fetch::{FetchRecord, WebhookMessage};

use crate::support::{Canary, ScriptedReply, Server, fetcher, hasty_fetcher};

fn message(max_answer_bytes: usize) -> WebhookMessage {
    WebhookMessage {
        media_type: "application/json",
        body: b"{}".to_vec(),
        headers: vec![("webhook-id", "m1".to_owned())],
        max_answer_bytes,
    }
}

async fn send(server: &Server, max_answer_bytes: usize) -> FetchRecord {
    let message = message(max_answer_bytes);
    hasty_fetcher()
        .post_webhook(&server.url("/hook"), message)
        .await
}

/// A status of success counts as soon as it is there, however the answer goes on.
#[tokio::test]
async fn an_answer_that_is_not_wanted_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = ScriptedReply::raw(head).then_repeat("1\r\na\r\n", std::time::Duration::ZERO);
    for reply in [endless, ScriptedReply::raw(head).then_hang()] {
        let server = Server::always(reply).await;
        let answer = send(&server, 0).await.result.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b""[..]));
        let [request] = &server.requests()[..] else {
            panic!("it is sent once");
        };
        assert_eq!(request.header("webhook-id"), Some("m1"));
        assert_eq!(request.body, b"{}");
    }
}

/// One that is wanted is read within its bound, and its status is known if it is longer.
#[tokio::test]
async fn a_wanted_answer_has_a_bound() {
    let server = Server::always(ScriptedReply::new(200, "", "1234")).await;
    assert_eq!(send(&server, 4).await.result.unwrap().body, b"1234");
    let longer = send(&server, 3).await.result.unwrap_err();
    assert_eq!(longer.status, Some(200));
}

#[tokio::test]
async fn a_slow_receiver_is_not_waited_for() {
    let server = Server::always(ScriptedReply::raw("").then_hang()).await;
    let error = send(&server, 0).await.result.unwrap_err();
    assert_eq!((error.outcome, error.status), (Timeout, None));
    assert_eq!(server.requests().len(), 1, "it may have the message");
}

#[tokio::test]
async fn no_message_goes_elsewhere() {
    let canary = Canary::new();
    for status in [301, 303, 307, 308] {
        let headers = format!("location: {}\r\n", canary.url());
        let server = Server::always(ScriptedReply::new(status, &headers, "")).await;
        let error = send(&server, 0).await.result.unwrap_err();
        assert_eq!(error.outcome, BadRedirect, "{status}");
    }
    let refused = fetcher().post_webhook(&canary.url(), message(0)).await;
    assert_eq!(refused.result.unwrap_err().outcome, Refused);
    canary.assert_untouched();
}
