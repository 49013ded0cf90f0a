//! Proof checks over the wire: records through the real resolver, files through the real client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::challenge::{
    ChallengeCheck, ChallengeResult, ExpectedProof, MAX_FILE_BYTES, MAX_FOUND_TEXTS, Nonce,
    ProofScope, persistent_record_dns_name,
};
use a2a_crawler::dns::{TxtLookup, TxtRecords};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use hickory_resolver::proto::op::ResponseCode;
use time::OffsetDateTime;
use time::macros::datetime;

use crate::support::{
    Authority, Canary, HOST, NameServer, OPEN, ScriptedReply, Server, StaticResolver, Zone, alias,
    config, fetcher, fetcher_with, hasty_fetcher, resolver, text,
};

const NOW: OffsetDateTime = datetime!(2026-10-01 12:00 UTC);
const ACCOUNT: &str = "https://registry.example.org/accounts/acme";
const REGISTRY: &str = "registry.example.org";

fn nonce() -> Nonce {
    Nonce::from_bytes(&[7; 32])
}

#[track_caller]
fn fit_for_people(check: &ChallengeCheck) {
    assert!(!check.detail.is_empty(), "{check:?}");
    assert!(check.detail.chars().count() <= 300, "{check:?}");
    for text in check.found.iter().chain([&check.detail]) {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(check.found.len() <= MAX_FOUND_TEXTS);
}

/// A fetcher whose resolver has these TXT records and no others.
fn fetcher_answering(records: &[(&str, TxtLookup)]) -> Fetcher {
    let resolver = StaticResolver::new();
    for (name, answer) in records {
        resolver.set_texts(name, answer.clone());
    }
    fetcher_with(config(FetchLimits::default()), Arc::new(resolver))
}

fn said(records: &[&str]) -> TxtLookup {
    let mut found = TxtRecords::default();
    for record in records {
        found.push([record]);
    }
    TxtLookup::Records(found)
}

#[tokio::test]
async fn a_one_off_record_proves_at_either_name() {
    let nonce = nonce();
    let expected = ExpectedProof {
        account: ACCOUNT,
        nonce: &nonce,
    };
    let expiry = datetime!(2026-10-08 12:00 UTC);
    let record = expected.one_off_record(expiry);
    let foreign = ExpectedProof {
        account: "https://registry.example.org/accounts/other",
        nonce: &nonce,
    }
    .one_off_record(expiry);
    let late = expected.one_off_record(datetime!(2026-09-30 12:00 UTC));
    let [plain, own] = expected.one_off_record_names(HOST);
    let proved = ChallengeResult::Proved {
        scope: ProofScope::Exact,
        expires_at: Some(expiry),
    };
    let failed = || TxtLookup::Failed("SERVFAIL".to_owned());
    let bogus = || TxtLookup::Bogus("a signature is missing".to_owned());
    for (at_plain, at_own, verdict) in [
        (said(&[&record]), TxtLookup::Absent, proved),
        (TxtLookup::Absent, said(&["other", &record]), proved),
        // A proof at one name counts, with any response at the other name.
        (failed(), said(&[&record]), proved),
        (bogus(), said(&[&record]), proved),
        (said(&[&foreign]), TxtLookup::Absent, ChallengeResult::Wrong),
        (said(&[&late]), TxtLookup::Absent, ChallengeResult::Wrong),
        (said(&[&foreign]), failed(), ChallengeResult::Failed),
        (said(&[&foreign]), bogus(), ChallengeResult::Bogus),
        (TxtLookup::Absent, failed(), ChallengeResult::Failed),
        (
            TxtLookup::Absent,
            TxtLookup::Absent,
            ChallengeResult::Absent,
        ),
    ] {
        let fetcher = fetcher_answering(&[(&plain, at_plain.clone()), (&own, at_own.clone())]);
        let check = fetcher.check_dns_one_off(HOST, &expected, NOW).await;
        assert_eq!(check.result, verdict, "{at_plain:?} {at_own:?} {check:?}");
        assert_eq!(check.locations, [plain.clone(), own.clone()]);
        assert!(check.expected_text.contains(&expected.dns_token()));
        fit_for_people(&check);
    }
}

#[tokio::test]
async fn a_standing_record_proves_or_opts_out() {
    let ours = format!("{REGISTRY}; accounturi={ACCOUNT}; policy=subdomains");
    let proved = ChallengeResult::Proved {
        scope: ProofScope::Subdomains,
        expires_at: None,
    };
    let opted_out = format!("{REGISTRY}; policy=none");
    let hostile = format!("{REGISTRY}; \u{1b}[2J\u{202e}{}", "x".repeat(500));
    for (answer, verdict, found) in [
        (said(&[&ours]), proved, "record was found at"),
        (said(&["v=spf1 -all", &ours]), proved, "record was found at"),
        (
            said(&[&ours, &opted_out]),
            ChallengeResult::OptedOut,
            "every registry",
        ),
        (
            said(&[&opted_out, &ours]),
            ChallengeResult::OptedOut,
            "every registry",
        ),
        (
            said(&["v=spf1 -all"]),
            ChallengeResult::Wrong,
            "not for this registry",
        ),
        (said(&[&hostile]), ChallengeResult::Wrong, "tag=value"),
        (said(&["x"; 51]), ChallengeResult::Wrong, "were not read"),
        (TxtLookup::Absent, ChallengeResult::Absent, "no TXT record"),
        (
            TxtLookup::Failed("x".to_owned()),
            ChallengeResult::Failed,
            "looked up",
        ),
        (
            TxtLookup::Bogus("x".to_owned()),
            ChallengeResult::Bogus,
            "DNSSEC",
        ),
    ] {
        let fetcher = fetcher_answering(&[(&persistent_record_dns_name(HOST), answer.clone())]);
        let check = fetcher
            .check_dns_persistent(HOST, REGISTRY, Some(ACCOUNT), NOW)
            .await;
        assert_eq!(check.result, verdict, "{answer:?} {check:?}");
        assert!(check.detail.contains(found), "{check:?}");
        fit_for_people(&check);
    }
    // An opt-out is found for every account that is checked; a proof counts only for its own account.
    let fetcher = fetcher_answering(&[(&persistent_record_dns_name(HOST), said(&[&opted_out]))]);
    let check = fetcher
        .check_dns_persistent(HOST, REGISTRY, None, NOW)
        .await;
    assert_eq!(check.result, ChallengeResult::OptedOut);
    let fetcher = fetcher_answering(&[(&persistent_record_dns_name(HOST), said(&[&ours]))]);
    let check = fetcher
        .check_dns_persistent(HOST, REGISTRY, None, NOW)
        .await;
    assert_eq!(check.result, ChallengeResult::Wrong);
}

/// A public suffix, an address or a special name cannot be proved, so no query is sent.
#[tokio::test]
async fn hosts_that_cannot_be_proved_are_refused() {
    let names = NameServer::start(|name, _| panic!("{name} was asked")).await;
    let fetcher = fetcher_with(config(FetchLimits::default()), Arc::new(names.resolver()));
    let nonce = nonce();
    let expected = ExpectedProof {
        account: ACCOUNT,
        nonce: &nonce,
    };
    for host in [
        "co.uk",
        "github.io",
        "localhost",
        "127.0.0.1",
        "a.example.com:8443",
        "A.example.com",
        "",
        "a b",
    ] {
        let check = fetcher.check_dns_one_off(host, &expected, NOW).await;
        assert_eq!(check.result, ChallengeResult::RejectedByGuard, "{host}");
        fit_for_people(&check);
        let check = fetcher
            .check_dns_persistent(host, REGISTRY, Some(ACCOUNT), NOW)
            .await;
        assert_eq!(check.result, ChallengeResult::RejectedByGuard, "{host}");
    }
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn records_come_through_the_real_resolver() {
    let record = format!("{REGISTRY}; accounturi={ACCOUNT}; policy=exact");
    let names = NameServer::start(move |name, _| {
        Some(match name {
            "_a2a-registry.agents.example.com" => Zone::of(vec![alias("kept.example.net")]),
            "kept.example.net" => Zone::of(vec![text(&[&record[..30], &record[30..]])]),
            "_a2a-registry.broken.example.com" => Zone::code(ResponseCode::ServFail),
            _ => Zone::code(ResponseCode::NXDomain),
        })
    })
    .await;
    let fetcher = fetcher_with(config(FetchLimits::default()), Arc::new(names.resolver()));
    let check = async |host| {
        fetcher
            .check_dns_persistent(host, REGISTRY, Some(ACCOUNT), NOW)
            .await
    };
    let found = check(HOST).await;
    assert!(
        matches!(found.result, ChallengeResult::Proved { .. }),
        "{found:?}"
    );
    assert!(found.is_aliased);
    assert_eq!(
        check("broken.example.com").await.result,
        ChallengeResult::Failed
    );
    assert_eq!(
        check("nowhere.example.com").await.result,
        ChallengeResult::Absent
    );
}

/// Serves the reply over TLS with a certificate that the fetcher trusts.
async fn checked_file(
    reply: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static,
) -> (ChallengeCheck, String) {
    let authority = Authority::new("challenge");
    let identity = authority.identity(HOST);
    let nonce = nonce();
    let expected = ExpectedProof {
        account: ACCOUNT,
        nonce: &nonce,
    };
    let path = expected.file_url(&"https://x.example.com/".parse().unwrap());
    let path = path.path().to_owned();
    let wanted = expected.file_content();
    let server = Server::bind(OPEN.into(), Some(identity.acceptor(None)), move |request| {
        assert_eq!(request.path, path);
        reply(&wanted)
    })
    .await;
    let fetcher = fetcher_with(
        FetcherConfig {
            extra_ca: vec![authority.pem()],
            ..config(FetchLimits::default())
        },
        resolver(),
    );
    let check = fetcher
        .check_https_file(&server.url("/"), &expected, NOW)
        .await;
    assert_eq!(server.requests().len(), 1);
    fit_for_people(&check);
    (check, expected.file_content())
}

#[tokio::test]
async fn a_file_proves_byte_for_byte() {
    let plain = |body: &str| ScriptedReply::new(200, "content-type: text/plain\r\n", body);
    let (check, wanted) = checked_file(move |wanted| plain(wanted)).await;
    let proved = ChallengeResult::Proved {
        scope: ProofScope::Exact,
        expires_at: None,
    };
    assert_eq!((check.result, check.expected_text), (proved, wanted));
    let (check, _) = checked_file(move |wanted| plain(&format!("{wanted}\r\n"))).await;
    assert_eq!(check.result, proved);
    let echo = nonce().as_str().to_owned();
    let wanted = check.expected_text;
    let wrong = [
        echo,
        String::new(),
        format!(" {wanted}"),
        format!("{wanted}x"),
        format!("{wanted}\u{0}"),
        wanted.to_uppercase(),
        "\u{1b}[2J\u{202e}<html>".to_owned(),
    ];
    for body in wrong {
        let (check, _) = checked_file(move |_| plain(&body)).await;
        assert_eq!(check.result, ChallengeResult::Wrong, "{check:?}");
    }
}

#[tokio::test]
async fn other_answers_than_the_file_are_told_apart() {
    let padded = |bytes: usize| {
        move |wanted: &str| {
            let body = format!("{wanted}{}", " ".repeat(bytes - wanted.len()));
            ScriptedReply::new(200, "", body)
        }
    };
    let (check, _) = checked_file(padded(MAX_FILE_BYTES)).await;
    assert!(
        matches!(check.result, ChallengeResult::Proved { .. }),
        "{check:?}"
    );
    let (check, _) = checked_file(padded(MAX_FILE_BYTES + 1)).await;
    assert_eq!(check.result, ChallengeResult::Wrong, "{check:?}");
    for (reply, verdict) in [
        (ScriptedReply::new(404, "", ""), ChallengeResult::Absent),
        (ScriptedReply::new(410, "", ""), ChallengeResult::Absent),
        (ScriptedReply::new(403, "", ""), ChallengeResult::Wrong),
        (ScriptedReply::new(204, "", ""), ChallengeResult::Wrong),
        (
            ScriptedReply::redirect("/elsewhere"),
            ChallengeResult::Wrong,
        ),
        (ScriptedReply::new(500, "", ""), ChallengeResult::Failed),
        (ScriptedReply::new(429, "", ""), ChallengeResult::Failed),
        (ScriptedReply::raw("").then_close(), ChallengeResult::Failed),
    ] {
        let (check, _) = checked_file(move |_| reply.clone()).await;
        assert_eq!(
            (check.result, check.retry_after),
            (verdict, None),
            "{check:?}"
        );
    }
    let (throttled, _) = checked_file(|_| ScriptedReply::new(503, "retry-after: 5\r\n", "")).await;
    assert_eq!(
        (throttled.result, throttled.retry_after),
        (ChallengeResult::Failed, Some(5))
    );
    // `Retry-After` counts only with an error: a response that delivers the file has none.
    let (given, _) =
        checked_file(|wanted| ScriptedReply::new(200, "retry-after: 5\r\n", wanted)).await;
    assert_eq!(given.retry_after, None);
}

#[tokio::test]
async fn where_there_is_no_answer_nothing_is_proved_or_lost() {
    let nonce = nonce();
    let expected = ExpectedProof {
        account: ACCOUNT,
        nonce: &nonce,
    };
    // A certificate of an authority that is not trusted.
    let stranger = Authority::new("stranger").identity(HOST);
    let server = Server::with_tls(&stranger, ScriptedReply::json(expected.file_content())).await;
    let check = fetcher()
        .check_https_file(&server.url("/"), &expected, NOW)
        .await;
    assert_eq!(check.result, ChallengeResult::Failed, "{check:?}");
    // A server that never answers.
    let server = Server::always(ScriptedReply::raw("").then_hang()).await;
    let check = hasty_fetcher()
        .check_https_file(&server.url("/"), &expected, NOW)
        .await;
    assert_eq!(check.result, ChallengeResult::Failed, "{check:?}");
    // A host that does not exist, and one at a forbidden address.
    let canary = Canary::new();
    let names = StaticResolver::new();
    names.set("inside.example.com", [canary.at.ip()]);
    let fetcher = fetcher_with(
        config(FetchLimits {
            dns: Duration::from_millis(500),
            ..FetchLimits::default()
        }),
        Arc::new(names),
    );
    let port = canary.at.port();
    for (host, verdict) in [
        ("nowhere.example.com", ChallengeResult::Absent),
        ("inside.example.com", ChallengeResult::RejectedByGuard),
        ("127.0.0.2", ChallengeResult::RejectedByGuard),
    ] {
        let origin = format!("http://{host}:{port}/").parse().unwrap();
        let check = fetcher.check_https_file(&origin, &expected, NOW).await;
        assert_eq!(check.result, verdict, "{check:?}");
        let shown = format!("{} {:?}", check.detail, check.found);
        let address: IpAddr = canary.at.ip();
        assert!(
            host == "127.0.0.2" || !shown.contains(&address.to_string()),
            "{shown}"
        );
    }
    canary.assert_untouched();
}
