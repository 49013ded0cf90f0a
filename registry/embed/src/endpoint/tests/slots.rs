//! Limits of concurrent requests, separate for queries and cards.

use futures::poll;
use tokio::task::JoinHandle;

use super::*;

type Asking = JoinHandle<Result<Vec<Vec<f32>>, EmbedError>>;

/// Never responds to a text that must wait.
fn patient(request: &Request) -> ScriptedReply {
    match texts(request)[0].as_str() {
        "wait" => ScriptedReply::raw("").then_hang(),
        _ => honest(request),
    }
}

/// Sends a request in the background that gets no response.
fn wait(endpoint: &Arc<RemoteEncoder>, kind: TextKind) -> Asking {
    let endpoint = Arc::clone(endpoint);
    tokio::spawn(async move { endpoint.embed(owned(&["wait"]), kind).await })
}

/// Stops waiting for these requests.
async fn leave(waiting: Vec<Asking>) {
    for asking in waiting {
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
    }
}

#[tokio::test]
async fn a_query_too_many_is_told_so_and_cards_are_asked_all_the_same() {
    let server = Server::start(patient).await;
    let endpoint = Arc::new(open(&config(&server)).await.unwrap());
    let query = || endpoint.embed(owned(&["now"]), TextKind::Query);
    let card = || endpoint.embed(owned(&["now"]), TextKind::Card);
    let mut waiting = Vec::new();
    for count in 1..=MAX_CONCURRENT_QUERIES {
        assert!(query().await.is_ok(), "{count}");
        waiting.push(wait(&endpoint, TextKind::Query));
        server.arrived(2 * count).await;
    }
    assert_eq!(query().await, Err(EmbedError::Busy));
    assert!(card().await.is_ok());
    // Running queries continue after their callers stop waiting.
    leave(waiting).await;
    assert_eq!(query().await, Err(EmbedError::Busy));
}

#[tokio::test]
async fn a_query_that_is_late_makes_room() {
    let server = Server::start(patient).await;
    let patience = EncodeTimeouts {
        query: Duration::from_millis(300),
        card: Duration::from_millis(300),
    };
    let (clock, resolver) = (Arc::new(SystemClock), resolver());
    let endpoint = RemoteEncoder::open_with_timeouts(patience, &config(&server), resolver, clock)
        .await
        .unwrap();
    let endpoint = Arc::new(endpoint);
    let waiting: Vec<Asking> = (0..MAX_CONCURRENT_QUERIES)
        .map(|_| wait(&endpoint, TextKind::Query))
        .collect();
    for asking in waiting {
        let late = asking.await.unwrap();
        assert!(matches!(late, Err(EmbedError::Unavailable(_))), "{late:?}");
    }
    let vectors = endpoint.embed(owned(&["now"]), TextKind::Query).await;
    assert!(vectors.is_ok(), "{vectors:?}");
}

#[tokio::test]
async fn cards_wait_for_one_another_and_queries_for_none_of_them() {
    let server = Server::start(patient).await;
    let endpoint = Arc::new(open(&config(&server)).await.unwrap());
    let mut waiting: Vec<Asking> = (0..MAX_CONCURRENT_CARD_BATCHES)
        .map(|_| wait(&endpoint, TextKind::Card))
        .collect();
    server.arrived(MAX_CONCURRENT_CARD_BATCHES).await;
    let mut next = endpoint.embed(owned(&["now"]), TextKind::Card);
    assert!(poll!(next.as_mut()).is_pending());
    let query = endpoint.embed(owned(&["now"]), TextKind::Query).await;
    assert!(query.is_ok(), "{query:?}");
    assert!(poll!(next.as_mut()).is_pending());
    assert_eq!(server.requests().len(), MAX_CONCURRENT_CARD_BATCHES + 1);
    // An abandoned batch frees its slot at once.
    leave(waiting.split_off(1)).await;
    let vectors = next.await.unwrap();
    assert!(near(&vectors, &[turned(3)]));
    leave(waiting).await;
}
