//! Looking for proofs in the world outside, through the guarded fetcher.

use a2a_crawler::challenge::{Check, Expected, Nonce, Reach, Verdict};
use a2a_crawler::fetch::Fetcher;
use time::OffsetDateTime;
use url::Url;

use super::{Claimant, Found, Looked, Question};
use crate::domain::ownership::{Look, Method};

/// Parents of a host whose records are looked at, the nearest first: a record three levels up still counts.
const MAX_PARENTS: usize = 3;

/// Looks for everything a question is about.
pub(super) async fn look(
    fetcher: &Fetcher,
    registry: &str,
    question: &Question,
    now: OffsetDateTime,
) -> Looked {
    let own = fetcher
        .check_dns_standing(&question.host, registry, None, now)
        .await;
    let mut looked = Looked {
        opted_out: opted_out(own.verdict),
        ..Looked::default()
    };
    for claimant in &question.claimants {
        let found = look_for(fetcher, registry, &question.host, claimant, now).await;
        looked.found.extend(found);
    }
    let held = looked.found.iter().any(|found| found.look == Look::Held);
    if question.proved_before || held {
        look_for_owner(fetcher, &question.host, &mut looked).await;
    }
    looked
}

/// Sees what tells this owner of a host from another one. What cannot be told now is left open.
async fn look_for_owner(fetcher: &Fetcher, host: &str, looked: &mut Looked) {
    looked.name_servers = fetcher.name_servers(host).await.unwrap_or_default();
    if let Ok(origin) = Url::parse(&format!("https://{host}/")) {
        looked.tls_key = fetcher.tls_key(&origin).await.ok();
    }
}

/// Whether a host has opted out, as far as that can be told.
fn opted_out(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::OptedOut => Some(true),
        Verdict::Failed | Verdict::Bogus | Verdict::Refused => None,
        Verdict::Proved { .. } | Verdict::Absent | Verdict::Wrong => Some(false),
    }
}

async fn look_for(
    fetcher: &Fetcher,
    registry: &str,
    host: &str,
    claimant: &Claimant,
    now: OffsetDateTime,
) -> Vec<Found> {
    let uri = Some(claimant.uri.as_str());
    let found = |method, check: Check| found(claimant, method, check);
    let mut all = vec![found(
        Method::Dns,
        fetcher.check_dns_standing(host, registry, uri, now).await,
    )];
    for parent in parents(fetcher, host) {
        let check = fetcher
            .check_dns_standing(&parent, registry, uri, now)
            .await;
        let covers = matches!(
            check.verdict,
            Verdict::Proved {
                reach: Reach::Subdomains,
                ..
            }
        );
        // A parent's silence says nothing about the host; only its word for all below it does.
        let known = covers || matches!(check.verdict, Verdict::Failed | Verdict::Bogus);
        let mut one = found(Method::DnsParent, check);
        if !known {
            one.look = Look::Absent;
        }
        all.push(one);
    }
    for text in &claimant.nonces {
        let Ok(nonce) = Nonce::parse(text) else {
            continue;
        };
        let with = |found: Found| Found {
            nonce: Some(text.clone()),
            ..found
        };
        let expected = Expected {
            account: &claimant.uri,
            nonce: &nonce,
        };
        let one_off = fetcher.check_dns_one_off(host, &expected, now).await;
        all.push(with(found(Method::Dns, one_off)));
        if let Ok(origin) = Url::parse(&format!("https://{host}/")) {
            let file = fetcher.check_https_file(&origin, &expected).await;
            all.push(with(found(Method::Http, file)));
        }
    }
    all
}

/// The hosts above one that a record may stand at, down to the domain that was registered at a registry of names.
fn parents(fetcher: &Fetcher, host: &str) -> Vec<String> {
    let mut parents = Vec::new();
    let mut rest = host;
    while let Some((_, parent)) = rest.split_once('.') {
        if parents.len() == MAX_PARENTS || fetcher.guard().check_domain(parent).is_err() {
            break;
        }
        parents.push(parent.to_owned());
        rest = parent;
    }
    parents
}

fn found(claimant: &Claimant, method: Method, check: Check) -> Found {
    Found {
        account: claimant.account,
        method,
        place: check.places.join(", "),
        nonce: None,
        look: match check.verdict {
            Verdict::Proved { .. } => Look::Held,
            Verdict::OptedOut | Verdict::Wrong => Look::Wrong,
            Verdict::Absent => Look::Absent,
            Verdict::Failed | Verdict::Refused => Look::Unknown,
            Verdict::Bogus => Look::Bogus,
        },
        detail: check.detail,
    }
}
