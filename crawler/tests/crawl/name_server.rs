//! The real resolver against a scripted name server.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::Refused;
use a2a_crawler::dns::{DnsError, MAX_ADDRESSES, Resolver, TxtLookup, TxtRecords};
use a2a_crawler::fetch::{FetchLimits, GetOptions};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

use crate::support::{
    Canary, FORBIDDEN, NameServer, OPEN, ScriptedReply, Server, Zone, address, alias, config,
    fetcher_with, text,
};

fn v4(last: u8) -> [u8; 4] {
    [8, 8, 8, last]
}

/// Answers by the first label of the name.
fn zone(name: &str, kind: RecordType) -> Option<Zone> {
    // The system's search list must not be used: every queried name is rooted at the test's own domain.
    let label = name
        .strip_suffix(".example.com")
        .expect("another name was asked");
    let data = match (label, kind) {
        ("silent", _) => return None,
        ("both", RecordType::A) => vec![address(v4(8))],
        ("both", RecordType::AAAA) => vec![address([0x2a00, 0x1450, 0, 0, 0, 0, 0, 1])],
        ("open", RecordType::A) => vec![address(OPEN)],
        ("mixed", RecordType::A) => vec![address(OPEN), address(FORBIDDEN)],
        ("half", RecordType::A) => vec![address(v4(8))],
        ("half" | "broken", _) | ("unsure", RecordType::AAAA) => {
            return Some(Zone::code(ResponseCode::ServFail));
        }
        ("alias", _) => vec![alias("both.example.com")],
        ("circle", _) => vec![alias("circle.example.com")],
        ("most", RecordType::A) => (0..MAX_ADDRESSES as u8).map(|n| address(v4(n))).collect(),
        ("beyond", RecordType::A) => (0..=MAX_ADDRESSES as u8).map(|n| address(v4(n))).collect(),
        ("empty" | "unsure" | "open" | "mixed" | "most" | "beyond" | "both", _) => Vec::new(),
        ("_said", RecordType::TXT) => vec![text(&["one ", "record"]), text(&["two"])],
        ("_delegated", _) => vec![alias("_said.example.com")],
        ("_forged", _) => {
            return Some(Zone {
                extended: Some((7, "signature expired \u{1b}[2J")),
                ..Zone::code(ResponseCode::ServFail)
            });
        }
        ("_busy", _) => {
            return Some(Zone {
                extended: Some((23, "network error")),
                ..Zone::code(ResponseCode::ServFail)
            });
        }
        ("_refused", _) => return Some(Zone::code(ResponseCode::Refused)),
        ("_cut", _) => {
            return Some(Zone {
                truncated: true,
                ..Zone::of(vec![text(&["part"])])
            });
        }
        _ => return Some(Zone::code(ResponseCode::NXDomain)),
    };
    Some(Zone::of(data))
}

async fn resolve(label: &str) -> Result<Vec<IpAddr>, DnsError> {
    let server = NameServer::start(zone).await;
    server
        .resolver()
        .resolve(&format!("{label}.example.com"))
        .await
}

async fn texts(label: &str) -> TxtLookup {
    let server = NameServer::start(zone).await;
    server
        .resolver()
        .lookup_txt(&format!("{label}.example.com"))
        .await
}

#[tokio::test]
async fn texts_are_records_absence_failure_or_forgery() {
    let said = |aliased| {
        TxtLookup::Records(TxtRecords {
            records: vec!["one record".to_owned(), "two".to_owned()],
            skipped_count: 0,
            aliased,
        })
    };
    assert_eq!(texts("_said").await, said(false));
    assert_eq!(texts("_delegated").await, said(true));
    assert_eq!(texts("_nothing").await, TxtLookup::Absent);
    // A name without this type, an alias to such a name, and one that leads to itself.
    assert_eq!(texts("both").await, TxtLookup::Absent);
    assert_eq!(texts("alias").await, TxtLookup::Absent);
    assert_eq!(texts("circle").await, TxtLookup::Absent);
    for failing in ["broken", "_busy", "_refused", "_cut"] {
        let answer = texts(failing).await;
        assert!(
            matches!(answer, TxtLookup::Failed(_)),
            "{failing}: {answer:?}"
        );
    }
    let TxtLookup::Bogus(reason) = texts("_forged").await else {
        panic!("the extended error was not seen");
    };
    assert!(reason.contains("expired"), "{reason}");
    assert!(!reason.contains('\u{1b}'), "{reason}");
    let long = "x".repeat(64);
    assert!(matches!(texts(&long).await, TxtLookup::Failed(_)));
}

/// A check makes a DNS query of its own, and does not use the cache of an earlier one.
#[tokio::test]
async fn texts_are_asked_for_each_time() {
    let server = NameServer::start(zone).await;
    let resolver = server.resolver();
    for name in ["_said.example.com", "_nothing.example.com"] {
        let before = server.asked();
        let first = resolver.lookup_txt(name).await;
        assert_eq!(first, resolver.lookup_txt(name).await);
        assert_eq!(server.asked() - before, 2, "{name}");
    }
}

#[tokio::test]
async fn a_silent_name_server_is_no_absence_of_texts() {
    let server = NameServer::start(zone).await;
    let resolver = server.hasty_resolver(Duration::from_millis(200));
    let answer = resolver.lookup_txt("silent.example.com").await;
    assert!(matches!(answer, TxtLookup::Failed(_)), "{answer:?}");
}

#[tokio::test]
async fn both_families_are_asked_and_absence_needs_both() {
    let both: [IpAddr; 2] = ["8.8.8.8".parse().unwrap(), "2a00:1450::1".parse().unwrap()];
    assert_eq!(resolve("both").await.unwrap(), both);
    assert_eq!(resolve("half").await.unwrap(), [both[0]]);
    assert_eq!(resolve("nowhere").await, Err(DnsError::NoSuchHost));
    assert_eq!(resolve("empty").await, Err(DnsError::NoSuchHost));
    assert!(matches!(resolve("broken").await, Err(DnsError::Failure(_))));
    // No IPv4 address, and no response about IPv6: that is not absence.
    assert!(matches!(resolve("unsure").await, Err(DnsError::Failure(_))));
}

/// Input 92: an address that is not checked must not be dialled, so a longer answer is a failure.
#[tokio::test]
async fn answers_are_bounded() {
    assert_eq!(resolve("most").await.unwrap().len(), MAX_ADDRESSES);
    assert!(matches!(resolve("beyond").await, Err(DnsError::Failure(_))));
}

/// Input 90 and 91.
#[tokio::test]
async fn aliases_are_followed_and_circles_end() {
    let mut addresses = resolve("alias").await.unwrap();
    addresses.sort_unstable();
    assert_eq!(addresses.len(), 2);
    assert!(resolve("circle").await.is_err());
}

#[tokio::test]
async fn the_whole_way_from_name_server_to_answer() {
    let names = NameServer::start(zone).await;
    let resolver = Arc::new(names.resolver());
    let fetcher = fetcher_with(config(FetchLimits::default()), resolver);
    let server = Server::always(ScriptedReply::json("{}")).await;
    let canary = Canary::new();
    let url = server.url_of("open.example.com", "/");
    let answer = fetcher
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap();
    assert_eq!(answer.address, Some(OPEN.into()));
    let url = format!("http://mixed.example.com:{}/", canary.at.port())
        .parse()
        .unwrap();
    let error = fetcher
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, Refused, "{error}");
    canary.assert_untouched();
}

#[tokio::test]
async fn a_name_server_that_is_silent_is_a_failure() {
    let server = NameServer::start(zone).await;
    let resolver = server.hasty_resolver(Duration::from_millis(200));
    let answer = resolver.resolve("silent.example.com").await;
    assert!(matches!(answer, Err(DnsError::Failure(_))), "{answer:?}");
}
