//! Inputs 85 to 94: responses of name servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use a2a_crawler::AttemptOutcome::{self, Card, DnsFailure, NoSuchHost, Refused};
use a2a_crawler::dns::MAX_ADDRESSES;
use a2a_crawler::fetch::FetchLimits;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

use super::setup::FetchSetup;
use super::{HOME, config, serve_beside_canary, short};
use crate::support::{NameServer, ScriptedReply, Zone, alias};

/// Response to a name, its type, and the number of earlier queries.
type LookupScript = fn(&str, RecordType, usize) -> Option<Zone>;

pub struct DnsCase {
    pub number: u8,
    pub name: &'static str,
    pub script: LookupScript,
    /// The path that is fetched; `/hop` redirects to `/card` on the same host, over a new connection.
    path: &'static str,
    /// Expected outcomes of the first and the second fetch.
    outcomes: &'static [AttemptOutcome],
}

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn only(kind: RecordType, addresses: &[IpAddr]) -> Option<Zone> {
    Some(Zone::now(kind, addresses))
}

/// DNS rebinding: the open address at first, a forbidden one ever after, with a TTL of 0.
fn rebinding(_: &str, kind: RecordType, before: usize) -> Option<Zone> {
    let now = if before == 0 { HOME } else { LOOPBACK };
    only(kind, &[now.into()])
}

pub fn cases() -> Vec<DnsCase> {
    let case = |number, name, script: LookupScript, outcomes| DnsCase {
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
            |_, kind, _| only(kind, &[LOOPBACK.into()]),
            &[Refused],
        ),
        case(
            86,
            "a loopback address of IPv6 alone",
            |_, kind, _| only(kind, &[Ipv6Addr::LOCALHOST.into()]),
            &[Refused],
        ),
        case(
            87,
            "an open and a private address",
            |_, kind, _| only(kind, &[HOME.into(), LOOPBACK.into()]),
            &[Refused],
        ),
        case(
            87,
            "a public address and a private one of IPv6",
            |_, kind, _| only(kind, &[HOME.into(), "fd00::1".parse().ok()?]),
            &[Refused],
        ),
        case(
            88,
            "another address after the check",
            rebinding,
            &[Card, Refused],
        ),
        DnsCase {
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
                    only(kind, &[LOOPBACK.into()])
                }
            },
            &[NoSuchHost],
        ),
        case(
            92,
            "500 addresses",
            |_, kind, _| only(kind, &[IpAddr::V4(HOME); 500]),
            &[DnsFailure],
        ),
        case(
            92,
            "one address more than are looked at",
            |_, kind, _| only(kind, &[IpAddr::V4(HOME); MAX_ADDRESSES + 1]),
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
                    ..only(kind, &[HOME.into()])?
                })
            },
            &[DnsFailure],
        ),
        case(
            94,
            "a name with an address inside",
            |_, kind, _| only(kind, &[LOOPBACK.into()]),
            &[Refused],
        ),
    ]
}

fn host(case: &DnsCase) -> &'static str {
    match case.number {
        94 => "127.0.0.1.nip.example.com",
        _ => "names.example.com",
    }
}

async fn name_server(case: &DnsCase) -> NameServer {
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
    let (server, canary) = serve_beside_canary(|request| match request.path.as_str() {
        "/hop" => ScriptedReply::redirect("/card").then_close(),
        _ => ScriptedReply::json(r#"{"name": "x", "url": "https://a.example/"}"#).then_close(),
    })
    .await;
    for case in cases() {
        let names = name_server(&case).await;
        // The timeout for a silent name server is 50 times shorter than in production.
        let limits = match case.name {
            "silence" => FetchLimits {
                dns: short().dns,
                ..FetchLimits::default()
            },
            _ => FetchLimits::default(),
        };
        let world = FetchSetup::new(names, config(limits));
        let url = server.url_of(host(&case), case.path);
        for (turn, expected) in case.outcomes.iter().enumerate() {
            let (attempt, _) = world.ask(&url, case.name).await;
            assert_eq!(
                attempt.outcome, *expected,
                "input {}, {}, fetch {turn}: {attempt:?}",
                case.number, case.name
            );
            // The detail is shown to owners; addresses are for curators only.
            assert!(!attempt.detail.contains("127.0.0.1"), "{attempt:?}");
        }
    }
    canary.assert_untouched();
}
