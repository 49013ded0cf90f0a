//! Threads: encoding stays on the encoder's own.

use super::*;

/// The names of this process's threads.
#[cfg(target_os = "linux")]
fn names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| {
        // A thread of another test may end meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    });
    names.map(|name| name.trim_end().to_owned()).collect()
}

/// The name and the priority in a thread's status.
#[cfg(target_os = "linux")]
fn parse_priority(status: &str) -> Option<(&str, i32)> {
    // The name is in parentheses, and may contain spaces.
    let (name, fields) = status.rsplit_once(") ")?;
    let (_, name) = name.split_once('(')?;
    Some((name, fields.split(' ').nth(16)?.parse().ok()?))
}

/// The priorities of the threads whose names begin like this.
#[cfg(target_os = "linux")]
fn priorities(prefix: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let priorities = tasks.filter_map(|task| {
        // A thread of another test may end meanwhile.
        let status = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (name, priority) = parse_priority(&status)?;
        name.starts_with(prefix).then_some(priority)
    });
    priorities.collect()
}

/// Only the threads that encode cards give way to all others.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn cards_are_encoded_at_the_lowest_priority() {
    let encoder = open(&tiny());
    for kind in [TextKind::Query, TextKind::Card] {
        vector(&encoder, "find an agent", kind).await;
    }
    // Other tests have encoders too, some of which have not encoded a card yet.
    assert!(priorities("embed-card").contains(&19));
    let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, own) = parse_priority(&own).unwrap();
    let queries = priorities("embed-query");
    assert!(
        !queries.is_empty() && queries.iter().all(|priority| *priority == own),
        "{own}: {queries:?}"
    );
}

/// Encodes a text long enough for a library to split it over threads.
#[tokio::test]
async fn nothing_starts_threads_that_the_whole_process_shares() {
    let encoder = open(&tiny());
    let long = "a report of the customer support ".repeat(40);
    let texts = vec![long; MAX_TEXTS_PER_CALL];
    for kind in [TextKind::Query, TextKind::Card] {
        let vectors = encoder.embed(texts.clone(), kind).await.unwrap();
        assert_eq!(vectors.len(), MAX_TEXTS_PER_CALL);
    }
    #[cfg(target_os = "linux")]
    {
        let names = names();
        let threads = |prefix| names.iter().filter(|name| name.starts_with(prefix)).count();
        assert!(threads("embed-query") > 0 && threads("embed-card") > 0);
    }
    // The process-wide pool can still be built, so nothing has built it yet.
    let shared = rayon::ThreadPoolBuilder::new().num_threads(1);
    shared.build_global().unwrap();
}

#[tokio::test]
async fn queries_have_room_where_cards_have_none() {
    let options = EncoderOptions {
        max_waiting_cards: std::num::NonZeroUsize::MIN,
        ..EncoderOptions::default()
    };
    let encoder = LocalEncoder::open(&tiny(), options).unwrap();
    let long = "a report of the customer support ".repeat(40);
    let mut asking: Vec<_> = (0..64)
        .map(|_| encoder.embed(vec![long.clone(); MAX_TEXTS_PER_CALL], TextKind::Card))
        .collect();
    // One text is encoded, one waits, and of so many others some are rejected.
    let found = asking
        .iter_mut()
        .find_map(|asking| futures::FutureExt::now_or_never(asking.as_mut()));
    assert_eq!(found, Some(Err(EmbedError::Busy)));
    let query = vector(&encoder, "find an agent", TextKind::Query).await;
    assert_eq!(query.len(), 32);
}
