//! Looking for proofs in the world outside, through the guarded fetcher.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use a2a_crawler::challenge::{Check, CheckVerdict, Expected, Format, Nonce, Reach};
use a2a_crawler::fetch::{Fetcher, visible};
use a2a_registry_domain::ownership::{Look, Method};
use time::OffsetDateTime;
use url::Url;

use crate::ownership::{Claimant, Found, Looked, Question};

/// Parents of a host whose records are looked at, the nearest first: a record three levels up still counts.
const MAX_PARENTS: usize = 3;

/// Files that a host is asked for in one look; its certificate makes one request more, and a visit makes as many. Those
/// whose proof stands are looked for first.
const MAX_FILES: usize = 7;

/// The world outside, as far as one look reaches into it.
struct World<'a> {
    fetcher: &'a Fetcher,
    /// The host by which records name this registry.
    registry: &'a str,
    /// Whether the host itself is asked, or only its name server.
    asks_host: bool,
    /// How many more files it is asked for.
    files_left: AtomicUsize,
    /// For how many seconds it wants to rest, by what it has answered in this look.
    retry_after: AtomicU32,
}

impl World<'_> {
    /// Whether the host is asked for anything: it may be, and has not said that it wants to rest.
    fn asks_host(&self) -> bool {
        self.asks_host && self.retry_after.load(Ordering::Relaxed) == 0
    }

    /// Whether the host is asked for one more file.
    fn asks_for_file(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        let (set, fetched) = (Ordering::Relaxed, Ordering::Relaxed);
        self.asks_host() && self.files_left.fetch_update(set, fetched, one_less).is_ok()
    }
}

/// Looks for everything a question is about.
pub(crate) async fn look(
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
        everybody: question.everybody,
        ..Looked::default()
    };
    // Who has opted out is left alone, whoever says that the host is theirs; its name server may be asked.
    let permitted = looked
        .opted_out
        .map_or(question.asks_in_doubt, |opted_out| !opted_out);
    let world = World {
        fetcher,
        registry,
        asks_host: permitted && question.may_ask_host,
        files_left: AtomicUsize::new(MAX_FILES),
        retry_after: AtomicU32::new(0),
    };
    for claimant in &question.claimants {
        let found = look_for(&world, &question.host, claimant, now).await;
        looked.found.extend(found);
    }
    let held = looked.found.iter().any(|found| found.look == Look::Held);
    if question.proved_before || held {
        look_for_owner(&world, &question.host, &mut looked).await;
    }
    let files = question
        .claimants
        .iter()
        .any(|claimant| !claimant.nonces.is_empty());
    let for_host = permitted && (files || question.proved_before || held);
    looked.asked_host = for_host && question.may_ask_host;
    looked.retry_after = world.retry_after.into_inner();
    looked.host_rested = for_host && (!question.may_ask_host || looked.retry_after > 0);
    looked
}

/// Sees what tells this owner of a host from another one. What cannot be told now is left open.
async fn look_for_owner(world: &World<'_>, host: &str, looked: &mut Looked) {
    let fetcher = world.fetcher;
    looked.name_servers = fetcher.name_servers(host).await.unwrap_or_default();
    if let Ok(origin) = Url::parse(&format!("https://{host}/"))
        && world.asks_host()
    {
        looked.tls_key = fetcher.tls_key(&origin).await.ok();
    }
}

/// Whether a host has opted out, as far as that can be told.
pub(crate) fn opted_out(verdict: CheckVerdict) -> Option<bool> {
    match verdict {
        CheckVerdict::OptedOut => Some(true),
        CheckVerdict::Failed | CheckVerdict::Bogus | CheckVerdict::Refused => None,
        CheckVerdict::Proved { .. } | CheckVerdict::Absent | CheckVerdict::Wrong => Some(false),
    }
}

async fn look_for(
    world: &World<'_>,
    host: &str,
    claimant: &Claimant,
    now: OffsetDateTime,
) -> Vec<Found> {
    let World {
        fetcher, registry, ..
    } = *world;
    let uri = Some(claimant.uri.as_str());
    let found = |method, check: Check| found(claimant, method, check);
    let own = fetcher.check_dns_standing(host, registry, uri, now).await;
    let zone = covers_subdomains(&own).then(|| host.to_owned());
    let mut all = vec![Found {
        zone,
        ..found(Method::Dns, own)
    }];
    for parent in parents(fetcher, host) {
        let check = fetcher
            .check_dns_standing(&parent, registry, uri, now)
            .await;
        let covers = covers_subdomains(&check);
        // A parent's silence says nothing about the host; only its word for all below it does.
        let known = covers || matches!(check.verdict, CheckVerdict::Failed | CheckVerdict::Bogus);
        let mut one = found(Method::DnsParent, check);
        one.zone = covers.then_some(parent);
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
        if let Ok(origin) = Url::parse(&format!("https://{host}/"))
            && world.asks_for_file()
        {
            let file = fetcher.check_https_file(&origin, &expected, now).await;
            let wait = file.retry_after.unwrap_or(0);
            world.retry_after.fetch_max(wait, Ordering::Relaxed);
            all.push(with(found(Method::Http, file)));
        }
    }
    all
}

/// Whether a record is a proof for every host below its own as well.
fn covers_subdomains(check: &Check) -> bool {
    matches!(
        check.verdict,
        CheckVerdict::Proved {
            reach: Reach::Subdomains,
            ..
        }
    )
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

/// Characters of what was looked for that are kept.
const MAX_WANTED: usize = 255;

fn found(claimant: &Claimant, method: Method, check: Check) -> Found {
    let missing = matches!(check.verdict, CheckVerdict::Wrong | CheckVerdict::Absent);
    let other = matches!(check.verdict, CheckVerdict::Wrong | CheckVerdict::OptedOut);
    // The sentence on a file quotes what it holds.
    let quotes = other && check.format != Format::HttpsFile;
    Found {
        account: claimant.account,
        method,
        place: check.places.join(", "),
        nonce: None,
        zone: None,
        look: match check.verdict {
            CheckVerdict::Proved { .. } => Look::Held,
            CheckVerdict::OptedOut | CheckVerdict::Wrong => Look::Wrong,
            CheckVerdict::Absent => Look::Absent,
            CheckVerdict::Failed | CheckVerdict::Refused => Look::Unknown,
            CheckVerdict::Bogus => Look::Bogus,
        },
        wanted: missing.then(|| visible(&check.wanted, MAX_WANTED)),
        instead: if quotes { check.found } else { Vec::new() },
        aliased: check.aliased,
        detail: check.detail,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const WANTED: &str =
        "registry.example; accounturi=https://registry.example/accounts/1; policy=exact";

    fn seen(format: Format, verdict: CheckVerdict, texts: &[&str]) -> Found {
        let claimant = Claimant {
            account: Uuid::nil(),
            uri: String::new(),
            nonces: Vec::new(),
        };
        let check = Check {
            format,
            places: vec!["_a2a-registry.a.example".into()],
            wanted: WANTED.into(),
            found: texts.iter().map(|text| (*text).to_owned()).collect(),
            aliased: false,
            retry_after: None,
            verdict,
            detail: "it is not the expected one".into(),
        };
        found(&claimant, Method::Dns, check)
    }

    #[test]
    fn a_record_that_does_not_fit_is_told_beside_what_was_looked_for() {
        let texts = ["v=spf1 -all", "hello"];
        let wrong = seen(Format::DnsStanding, CheckVerdict::Wrong, &texts);
        assert_eq!(wrong.instead, texts);
        assert_eq!(wrong.wanted.as_deref(), Some(WANTED));
        let absent = seen(Format::DnsOneOff, CheckVerdict::Absent, &[]);
        assert_eq!(absent.wanted.as_deref(), Some(WANTED));
        assert_eq!(absent.instead, [""; 0]);
    }

    #[test]
    fn a_proof_that_holds_and_an_answer_that_failed_are_told_without() {
        let held = CheckVerdict::Proved {
            reach: Reach::Exact,
            until: None,
        };
        for verdict in [
            held,
            CheckVerdict::Failed,
            CheckVerdict::Bogus,
            CheckVerdict::Refused,
        ] {
            let one = seen(Format::DnsStanding, verdict, &["v=spf1 -all"]);
            assert_eq!((one.wanted, one.instead.len()), (None, 0), "{verdict:?}");
        }
        // What a file holds stands in the sentence on it.
        let file = seen(Format::HttpsFile, CheckVerdict::Wrong, &["hello"]);
        assert_eq!(file.instead, [""; 0]);
        assert!(file.wanted.is_some());
    }
}
