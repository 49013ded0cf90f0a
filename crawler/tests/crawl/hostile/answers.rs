//! Inputs 85 to 94: what name servers say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use a2a_crawler::AttemptOutcome::{self, Card, DnsFailure, NoSuchHost, Refused};
use a2a_crawler::dns::{MAX_ADDRESSES, Resolver, StaticResolver};
use a2a_crawler::fetch::{FetchLimits, GetOptions};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

use super::mutation::Seed;
use super::{HOME, MANY, ask, canary, config, in_time, serve};
use crate::support::{Canary, NameServer, Reply, Zone, address, alias, fetcher_with};

/// Asked for the name's type, and how often it was asked before.
type Script = fn(&str, RecordType, usize) -> Option<Zone>;

pub struct Case {
    pub number: u8,
    name: &'static str,
    script: Script,
    /// The path that is asked; `/hop` leads to `/card` on the same host, over a new connection.
    path: &'static str,
    /// What comes of the first fetch, and of the second.
    outcomes: &'static [AttemptOutcome],
}

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn only(kind: RecordType, wanted: RecordType, addresses: &[IpAddr]) -> Option<Zone> {
    let matching = addresses.iter().filter(|_| kind == wanted);
    Some(Zone {
        ttl: 0,
        ..Zone::of(matching.map(|at| address(*at)).collect())
    })
}

/// The open address at first, a forbidden one ever after, to be remembered for no time at all.
fn rebinding(_: &str, kind: RecordType, before: usize) -> Option<Zone> {
    let now = if before == 0 { HOME } else { LOOPBACK };
    only(kind, RecordType::A, &[now.into()])
}

pub fn cases() -> Vec<Case> {
    let case = |number, name, script: Script, outcomes| Case {
        number,
        name,
        script,
        path: "/card",
        outcomes,
    };
    vec![
        case(
            85,
            "a loopback address",
            |_, kind, _| only(kind, RecordType::A, &[LOOPBACK.into()]),
            &[Refused],
        ),
        case(
            86,
            "a loopback address of IPv6 alone",
            |_, kind, _| only(kind, RecordType::AAAA, &[Ipv6Addr::LOCALHOST.into()]),
            &[Refused],
        ),
        case(
            87,
            "an open and a private address",
            |_, kind, _| only(kind, RecordType::A, &[HOME.into(), LOOPBACK.into()]),
            &[Refused],
        ),
        case(
            87,
            "a public address and a private one of IPv6",
            |_, kind, _| match kind {
                RecordType::A => only(kind, RecordType::A, &[HOME.into()]),
                _ => only(kind, RecordType::AAAA, &["fd00::1".parse().ok()?]),
            },
            &[Refused],
        ),
        case(
            88,
            "another address after the check",
            rebinding,
            &[Card, Refused],
        ),
        Case {
            path: "/hop",
            ..case(
                89,
                "another address for the second hop",
                rebinding,
                &[Refused],
            )
        },
        case(
            90,
            "an alias of localhost",
            |_, _, _| Some(Zone::of(vec![alias("localhost")])),
            &[Refused],
        ),
        case(
            91,
            "an alias of itself",
            |name, _, _| Some(Zone::of(vec![alias(name)])),
            &[NoSuchHost],
        ),
        case(
            91,
            "a chain of twenty aliases",
            |name, kind, _| {
                let step: u8 = name
                    .split('.')
                    .next()?
                    .trim_start_matches(|c: char| !c.is_ascii_digit())
                    .parse()
                    .unwrap_or(0);
                if step < 20 {
                    Some(Zone::of(vec![alias(&format!("n{}.example.com", step + 1))]))
                } else {
                    only(kind, RecordType::A, &[LOOPBACK.into()])
                }
            },
            &[NoSuchHost],
        ),
        case(
            92,
            "500 addresses",
            |_, kind, _| only(kind, RecordType::A, &[IpAddr::V4(HOME); 500]),
            &[DnsFailure],
        ),
        case(
            92,
            "one address more than are looked at",
            |_, kind, _| only(kind, RecordType::A, &[IpAddr::V4(HOME); MAX_ADDRESSES + 1]),
            &[DnsFailure],
        ),
        case(
            93,
            "SERVFAIL",
            |_, _, _| Some(Zone::code(ResponseCode::ServFail)),
            &[DnsFailure],
        ),
        case(93, "silence", |_, _, _| None, &[DnsFailure]),
        case(
            93,
            "DNSSEC bogus",
            |_, _, _| {
                Some(Zone {
                    extended: Some((6, "bogus")),
                    ..Zone::code(ResponseCode::ServFail)
                })
            },
            &[DnsFailure],
        ),
        case(
            93,
            "truncated",
            |_, kind, _| {
                Some(Zone {
                    truncated: true,
                    ..only(kind, RecordType::A, &[HOME.into()])?
                })
            },
            &[DnsFailure],
        ),
        case(
            94,
            "a name with an address inside",
            |_, kind, _| only(kind, RecordType::A, &[LOOPBACK.into()]),
            &[Refused],
        ),
    ]
}

fn host(case: &Case) -> &'static str {
    match case.number {
        94 => "127.0.0.1.nip.example.com",
        _ => "names.example.com",
    }
}

async fn name_server(case: &Case) -> NameServer {
    let script = case.script;
    let asked = AtomicUsize::new(0);
    NameServer::start(move |name, kind| {
        let before = match kind {
            RecordType::A => asked.fetch_add(1, Ordering::Relaxed),
            _ => asked.load(Ordering::Relaxed),
        };
        script(name, kind, before)
    })
    .await
}

#[tokio::test]
async fn no_answer_leads_to_a_forbidden_address() {
    let server = serve(|request| match request.path.as_str() {
        "/hop" => Reply::redirect("/card").then_close(),
        _ => Reply::json(r#"{"name": "x", "url": "https://a.example/"}"#).then_close(),
    })
    .await;
    // The same port everywhere else: whoever dials another address than the open one is seen.
    let canary = Canary::at(LOOPBACK.into(), server.at.port());
    for case in cases() {
        let names = name_server(&case).await;
        // A silent name server is waited for, 50 times shorter than in production.
        let limits = match case.name {
            "silence" => FetchLimits {
                dns: FetchLimits::default().dns / 50,
                ..FetchLimits::default()
            },
            _ => FetchLimits::default(),
        };
        let fetcher = fetcher_with(config(limits), Arc::new(names.resolver()));
        let url = server.url_of(host(&case), case.path);
        for (turn, expected) in case.outcomes.iter().enumerate() {
            let (attempt, _) = ask(&fetcher, &url, case.name).await;
            assert_eq!(
                attempt.outcome, *expected,
                "input {}, {}, fetch {turn}: {attempt:?}",
                case.number, case.name
            );
            // Owners read the detail, and addresses are for curators.
            assert!(!attempt.detail.contains("127.0.0.1"), "{attempt:?}");
        }
    }
    canary.assert_untouched();
}

/// Mutated bytes of an answer, at the real resolver: what comes of them passes the guard, or nothing is
/// dialled. What would be a public address is not tried.
async fn mutated(rounds: usize) {
    let canary = canary();
    for case in cases() {
        let script = case.script;
        let names = NameServer::lying(
            move |name, kind| script(name, kind, 1),
            move |bytes, round| Seed::new(case.number, round).mutate(bytes, 2),
        )
        .await;
        let resolver = names.hasty_resolver(Duration::from_millis(40));
        for round in 0..rounds {
            names.lie(round);
            // Another name each time, since answers are remembered.
            let host = format!("{}x{round}.example.com", &host(&case)[..9]);
            let answer = in_time(case.name, resolver.resolve(&host)).await;
            let Ok(addresses) = answer else { continue };
            assert!(addresses.len() <= MAX_ADDRESSES);
            let told = StaticResolver::new();
            told.set(&host, addresses.clone());
            let fetcher = fetcher_with(config(FetchLimits::default()), Arc::new(told));
            let refused = |at: &IpAddr| fetcher.guard().check_address(*at).is_err();
            if addresses.iter().any(refused) {
                let url = format!("http://{host}:{}/", canary.at.port());
                let url = url.parse().unwrap();
                let fetched = in_time(case.name, fetcher.get(&url, &GetOptions::default())).await;
                let error = fetched.answer.expect_err(case.name);
                assert_eq!(error.outcome, Refused, "input {}, {round}", case.number);
            }
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutated_answers_lead_nowhere() {
    mutated(4).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutated_answers_lead_nowhere() {
    mutated(MANY).await;
}
