//! Checks for the proofs of a domain over DNS and HTTPS, through the guarded fetcher.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use a2a_crawler::challenge::{
    ChallengeCheck, ChallengeResult, ExpectedProof, Nonce, ProofFormat, ProofScope,
};
use a2a_crawler::fetch::Fetcher;
use a2a_crawler::foreign_text::escape_invisible;
use a2a_registry_domain::ownership::{Method, ProofOutcome};
use time::OffsetDateTime;
use url::Url;

use crate::ownership::{Claimant, DomainCheckRequest, DomainCheckResult, ProofResult};
use crate::sources::https_origin;

/// Maximum number of parents of a host whose records are checked, nearest first: a record three levels up still
/// counts.
const MAX_PARENTS: usize = 3;

/// Maximum number of files requested from a host in one check. With one more request for its certificate a check makes
/// as many requests as a visit. The files of accounts with a proof come first.
const MAX_FILES: usize = 7;

struct DomainCheckScope<'a> {
    fetcher: &'a Fetcher,
    /// The URL of the host's root; `None` if its name cannot form one.
    origin: Option<Url>,
    registry: &'a str,
    /// Whether the host itself may be contacted, or only its name server.
    host_contact_allowed: bool,
    /// How many more files may be requested from the host.
    files_left: AtomicUsize,
    /// The longest `Retry-After` that the host has sent in this check, in seconds.
    retry_after: AtomicU32,
}

impl DomainCheckScope<'_> {
    /// Whether the host may be contacted now: contact is permitted, and it has sent no `Retry-After`.
    fn may_contact_host(&self) -> bool {
        self.host_contact_allowed && self.retry_after.load(Ordering::Relaxed) == 0
    }

    /// Counts one more file request; `false` if the host may not be contacted or the limit is reached.
    fn reserve_file_request(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        let (set, fetched) = (Ordering::Relaxed, Ordering::Relaxed);
        self.may_contact_host() && self.files_left.fetch_update(set, fetched, one_less).is_ok()
    }
}

/// Runs a check: the opt-out record, the proofs of every claimant, and the owner fingerprint.
pub async fn check_domain(
    fetcher: &Fetcher,
    registry: &str,
    request: &DomainCheckRequest,
    now: OffsetDateTime,
) -> DomainCheckResult {
    let own = fetcher
        .check_dns_persistent(&request.host, registry, None, now)
        .await;
    let mut result = DomainCheckResult {
        opted_out: opt_out_from_result(own.result),
        all_claims: request.all_claims,
        ..DomainCheckResult::default()
    };
    // A host that has opted out is not contacted, regardless of claims; its name server may be.
    let permitted = result
        .opted_out
        .map_or(request.contact_if_unknown, |opted_out| !opted_out);
    let scope = DomainCheckScope {
        fetcher,
        origin: https_origin(&request.host),
        registry,
        host_contact_allowed: permitted && request.may_contact_host,
        files_left: AtomicUsize::new(MAX_FILES),
        retry_after: AtomicU32::new(0),
    };
    for claimant in &request.claimants {
        let proofs = check_claimant(&scope, &request.host, claimant, now).await;
        result.proofs.extend(proofs);
    }
    let has_proof = result.has_proof();
    if request.proved_before || has_proof {
        fetch_owner_fingerprint(&scope, &request.host, &mut result).await;
    }
    let files = request
        .claimants
        .iter()
        .any(|claimant| !claimant.nonces.is_empty());
    let for_host = permitted && (files || request.proved_before || has_proof);
    result.contacted_host = for_host && request.may_contact_host;
    result.retry_after = scope.retry_after.into_inner();
    result.host_deferred = for_host && (!request.may_contact_host || result.retry_after > 0);
    result
}

/// Fetches the name servers and the certificate key, which reveal a new owner. A failed lookup leaves them empty.
async fn fetch_owner_fingerprint(
    scope: &DomainCheckScope<'_>,
    host: &str,
    result: &mut DomainCheckResult,
) {
    let fetcher = scope.fetcher;
    result.name_servers = fetcher.lookup_name_servers(host).await.unwrap_or_default();
    if let Some(origin) = &scope.origin
        && scope.may_contact_host()
    {
        result.tls_key = fetcher.fetch_tls_key_hash(origin).await.ok();
    }
}

/// Whether a host has opted out; `None` if the check failed.
pub fn opt_out_from_result(verdict: ChallengeResult) -> Option<bool> {
    match verdict {
        ChallengeResult::OptedOut => Some(true),
        ChallengeResult::Failed | ChallengeResult::Bogus | ChallengeResult::RejectedByGuard => None,
        ChallengeResult::Proved { .. } | ChallengeResult::Absent | ChallengeResult::Wrong => {
            Some(false)
        }
    }
}

async fn check_claimant(
    scope: &DomainCheckScope<'_>,
    host: &str,
    claimant: &Claimant,
    now: OffsetDateTime,
) -> Vec<ProofResult> {
    let DomainCheckScope {
        fetcher, registry, ..
    } = *scope;
    let uri = Some(claimant.uri.as_str());
    let to_result = |method, check: ChallengeCheck| proof_result(claimant, method, check);
    let own = fetcher.check_dns_persistent(host, registry, uri, now).await;
    let zone = covers_subdomains(&own).then(|| host.to_owned());
    let mut results = vec![ProofResult {
        zone,
        ..to_result(Method::Dns, own)
    }];
    for parent in parent_domains(fetcher, host) {
        let check = fetcher
            .check_dns_persistent(&parent, registry, uri, now)
            .await;
        let covers = covers_subdomains(&check);
        // A parent without a record says nothing about the host; only a record with `policy=subdomains` does.
        let decides = covers
            || matches!(
                check.result,
                ChallengeResult::Failed | ChallengeResult::Bogus
            );
        let mut parent_result = to_result(Method::DnsParent, check);
        parent_result.zone = covers.then_some(parent);
        if !decides {
            parent_result.outcome = ProofOutcome::Absent;
        }
        results.push(parent_result);
    }
    for text in &claimant.nonces {
        let Ok(nonce) = Nonce::parse(text) else {
            continue;
        };
        let with_nonce = |proof: ProofResult| ProofResult {
            nonce: Some(text.clone()),
            ..proof
        };
        let expected = ExpectedProof {
            account: &claimant.uri,
            nonce: &nonce,
        };
        let one_off = fetcher.check_dns_one_off(host, &expected, now).await;
        results.push(with_nonce(to_result(Method::Dns, one_off)));
        if let Some(origin) = &scope.origin
            && scope.reserve_file_request()
        {
            let file = fetcher.check_https_file(origin, &expected, now).await;
            let wait = file.retry_after.unwrap_or(0);
            scope.retry_after.fetch_max(wait, Ordering::Relaxed);
            results.push(with_nonce(to_result(Method::Http, file)));
        }
    }
    results
}

/// Whether a record also proves every host below its own.
fn covers_subdomains(check: &ChallengeCheck) -> bool {
    matches!(
        check.result,
        ChallengeResult::Proved {
            scope: ProofScope::Subdomains,
            ..
        }
    )
}

/// The parents of a host at which a record counts, up to and including its registrable domain.
fn parent_domains(fetcher: &Fetcher, host: &str) -> Vec<String> {
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

/// Maximum number of stored characters of the expected value.
const MAX_EXPECTED_CHARS: usize = 255;

fn proof_result(claimant: &Claimant, method: Method, check: ChallengeCheck) -> ProofResult {
    let is_missing = matches!(
        check.result,
        ChallengeResult::Wrong | ChallengeResult::Absent
    );
    let other = matches!(
        check.result,
        ChallengeResult::Wrong | ChallengeResult::OptedOut
    );
    // The detail of a file check quotes its content already.
    let shows_found = other && check.format != ProofFormat::HttpsFile;
    ProofResult {
        account: claimant.account,
        method,
        place: check.locations.join(", "),
        nonce: None,
        zone: None,
        outcome: match check.result {
            ChallengeResult::Proved { .. } => ProofOutcome::Held,
            ChallengeResult::OptedOut | ChallengeResult::Wrong => ProofOutcome::Wrong,
            ChallengeResult::Absent => ProofOutcome::Absent,
            ChallengeResult::Failed | ChallengeResult::RejectedByGuard => ProofOutcome::Unknown,
            ChallengeResult::Bogus => ProofOutcome::Bogus,
        },
        wanted: is_missing.then(|| escape_invisible(&check.expected_text, MAX_EXPECTED_CHARS)),
        found: if shows_found { check.found } else { Vec::new() },
        aliased: check.is_aliased,
        detail: check.detail,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const WANTED: &str =
        "registry.example; accounturi=https://registry.example/accounts/1; policy=exact";

    fn checked(format: ProofFormat, verdict: ChallengeResult, texts: &[&str]) -> ProofResult {
        let claimant = Claimant {
            account: Uuid::nil(),
            uri: String::new(),
            nonces: Vec::new(),
        };
        let check = ChallengeCheck {
            format,
            locations: vec!["_a2a-registry.a.example".into()],
            expected_text: WANTED.into(),
            found: texts.iter().map(|text| (*text).to_owned()).collect(),
            is_aliased: false,
            retry_after: None,
            result: verdict,
            detail: "it is not the expected one".into(),
        };
        proof_result(&claimant, Method::Dns, check)
    }

    #[test]
    fn a_wrong_record_is_shown_beside_the_expected_one() {
        let texts = ["v=spf1 -all", "hello"];
        let wrong = checked(ProofFormat::DnsPersistent, ChallengeResult::Wrong, &texts);
        assert_eq!(wrong.found, texts);
        assert_eq!(wrong.wanted.as_deref(), Some(WANTED));
        let absent = checked(ProofFormat::DnsOneOff, ChallengeResult::Absent, &[]);
        assert_eq!(absent.wanted.as_deref(), Some(WANTED));
        assert_eq!(absent.found, [""; 0]);
    }

    #[test]
    fn a_proof_found_and_a_failed_check_show_no_values() {
        let held = ChallengeResult::Proved {
            scope: ProofScope::Exact,
            expires_at: None,
        };
        for verdict in [
            held,
            ChallengeResult::Failed,
            ChallengeResult::Bogus,
            ChallengeResult::RejectedByGuard,
        ] {
            let one = checked(ProofFormat::DnsPersistent, verdict, &["v=spf1 -all"]);
            assert_eq!((one.wanted, one.found.len()), (None, 0), "{verdict:?}");
        }
        // The detail of a file check quotes its content already.
        let file = checked(ProofFormat::HttpsFile, ChallengeResult::Wrong, &["hello"]);
        assert_eq!(file.found, [""; 0]);
        assert!(file.wanted.is_some());
    }
}
