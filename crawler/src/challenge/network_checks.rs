//! Checks for proofs over the network.

use time::OffsetDateTime;
use url::Url;

use super::check_result::{ChallengeCheck, ChallengeResult, ProofFormat, ProofScope};
use super::dns_persistent::DnsRecordResult;
use super::expected_proof::{
    ExpectedProof, format_persistent_dns_record, persistent_record_dns_name,
};
use super::proof_file::{MAX_FILE_BYTES, ProofFileResult};
use super::{dns_one_off, dns_persistent};
use crate::dns::{TxtLookup, TxtRecords};
use crate::fetch::{Fetcher, GetOptions, parse_retry_after};

struct DnsNameCheckResult {
    result: ChallengeResult,
    detail: String,
}

impl Fetcher {
    /// Checks both names of a host for its one-off record. A proof at either name is enough. Otherwise a failed
    /// look-up outweighs a definite answer, because the proof may be at the name that could not be looked up.
    ///
    /// `host` has no port. A host that the guard rejects, in particular a public suffix, is not looked up.
    pub async fn check_dns_one_off(
        &self,
        host: &str,
        expected: &ExpectedProof<'_>,
        now: OffsetDateTime,
    ) -> ChallengeCheck {
        let names = expected.one_off_record_names(host);
        let token = expected.dns_token();
        let expected_text = format!("token={token} expiry=<date>");
        let mut check = ChallengeCheck::new(ProofFormat::DnsOneOff, names.to_vec(), expected_text);
        if let Err(reason) = self.check_record_host(host) {
            return check.with_result(ChallengeResult::RejectedByGuard, &reason);
        }
        let [shared_name, account_name] = &names;
        let (first, second) =
            tokio::join!(self.lookup_txt(shared_name), self.lookup_txt(account_name));
        let evaluate =
            |text: &str| match dns_one_off::evaluate_one_off_dns_record(text, &token, now) {
                Ok(record) => DnsRecordResult::Proves {
                    scope: ProofScope::Exact,
                    expires_at: Some(record.expiry),
                },
                Err(reason) => DnsRecordResult::Fails(reason),
            };
        let results = [
            evaluate_records_at_name(&mut check, shared_name, first, evaluate),
            evaluate_records_at_name(&mut check, account_name, second, evaluate),
        ];
        match results
            .into_iter()
            .min_by_key(|result| challenge_result_rank(result.result))
        {
            Some(result) => check.with_result(result.result, &result.detail),
            None => check,
        }
    }

    /// Checks for the persistent record of exactly this host: an account's proof, or an opt-out, which outweighs every
    /// proof. Without an account, only an opt-out is checked.
    ///
    /// `registry` is the host by which records name this registry, with `:port` if it has one. To check whether a
    /// parent's record covers a host, call this again with the parent and require [`ProofScope::Subdomains`].
    pub async fn check_dns_persistent(
        &self,
        host: &str,
        registry: &str,
        account: Option<&str>,
        now: OffsetDateTime,
    ) -> ChallengeCheck {
        let name = persistent_record_dns_name(host);
        let expected_text = match account {
            Some(account) => format_persistent_dns_record(
                registry,
                account,
                dns_persistent::DnsRecordPolicy::Exact,
                None,
            ),
            None => format!("{registry}; policy=none"),
        };
        let mut check = ChallengeCheck::new(
            ProofFormat::DnsPersistent,
            vec![name.clone()],
            expected_text,
        );
        if let Err(reason) = self.check_record_host(host) {
            return check.with_result(ChallengeResult::RejectedByGuard, &reason);
        }
        let lookup = self.lookup_txt(&name).await;
        let evaluate = |text: &str| {
            dns_persistent::evaluate_persistent_dns_record(text, registry, account, now)
        };
        let DnsNameCheckResult { result, detail } =
            evaluate_records_at_name(&mut check, &name, lookup, evaluate);
        check.with_result(result, &detail)
    }

    /// Checks for the file of a challenge: status 200 over valid TLS, no redirect, at most [`MAX_FILE_BYTES`], and the
    /// expected text. Trailing white space is ignored (RFC 8555 section 8.3), because editors add it.
    ///
    /// `origin` is scheme, host and port; http and other ports are fetched only if the guard allows them.
    pub async fn check_https_file(
        &self,
        origin: &Url,
        expected: &ExpectedProof<'_>,
        now: OffsetDateTime,
    ) -> ChallengeCheck {
        let url = expected.file_url(origin);
        let expected_text = expected.file_content();
        let mut check = ChallengeCheck::new(
            ProofFormat::HttpsFile,
            vec![url.to_string()],
            expected_text.clone(),
        );
        let (file_result, retry_after) = self.fetch_proof_file(&url, now).await;
        check.retry_after = retry_after;
        match file_result {
            ProofFileResult::Body(body) => {
                if body.trim_ascii_end() == expected_text.as_bytes() {
                    let proved = ChallengeResult::Proved {
                        scope: ProofScope::Exact,
                        expires_at: None,
                    };
                    check.add_found_text(&expected_text);
                    return check.with_result(proved, "the file has the expected text");
                }
                let text = String::from_utf8_lossy(&body);
                check.add_found_text(&text);
                let detail = match check.found.first() {
                    Some(found_text) if !found_text.trim().is_empty() => {
                        format!("the file has the text {found_text:?} instead of the expected one")
                    }
                    _ => "the file is empty".to_owned(),
                };
                check.with_result(ChallengeResult::Wrong, &detail)
            }
            ProofFileResult::Absent(why) => check.with_result(
                ChallengeResult::Absent,
                &format!("the file does not exist: {why}"),
            ),
            ProofFileResult::NotTheFile(why) => {
                check.add_found_text(&why);
                check.with_result(
                    ChallengeResult::Wrong,
                    &format!("the file was not served: {why}"),
                )
            }
            ProofFileResult::Failed(why) => check.with_result(
                ChallengeResult::Failed,
                &format!("the file could not be fetched: {why}"),
            ),
            ProofFileResult::RejectedByGuard(why) => {
                check.with_result(ChallengeResult::RejectedByGuard, &why)
            }
        }
    }

    /// Fetches the file at a URL without evaluating its content. Also returns the seconds of `Retry-After`.
    async fn fetch_proof_file(
        &self,
        url: &Url,
        now: OffsetDateTime,
    ) -> (ProofFileResult, Option<u32>) {
        let options = GetOptions {
            accept: "text/plain",
            max_redirects: 0,
            max_body_bytes: MAX_FILE_BYTES,
            ..GetOptions::default()
        };
        let result = self.get(url, &options).await.result;
        let error_response = result.as_ref().ok().filter(|answer| answer.status != 200);
        let wait = error_response.and_then(|answer| parse_retry_after(&answer.headers, now));
        (ProofFileResult::from_fetch_result(result), wait)
    }

    /// Checks whether records below this host may count. Records below a public suffix may not: no registrant owns it.
    fn check_record_host(&self, host: &str) -> Result<(), String> {
        let domain = self
            .guard()
            .check_domain(host)
            .map_err(|error| error.to_string())?;
        match domain.origin.domain() {
            Some(name) if name == host => Ok(()),
            _ => Err("records can only be placed below a host name, without a port".to_owned()),
        }
    }
}

/// Rank used to choose one of several results: an opt-out, a proof, a failed look-up, a definite answer.
const fn challenge_result_rank(result: ChallengeResult) -> u8 {
    match result {
        ChallengeResult::OptedOut => 0,
        ChallengeResult::Proved { .. } => 1,
        ChallengeResult::Bogus => 2,
        ChallengeResult::Failed | ChallengeResult::RejectedByGuard => 3,
        ChallengeResult::Wrong => 4,
        ChallengeResult::Absent => 5,
    }
}

/// Evaluates the records at one name, and quotes them in the check.
fn evaluate_records_at_name(
    check: &mut ChallengeCheck,
    name: &str,
    lookup: TxtLookup,
    evaluate: impl Fn(&str) -> DnsRecordResult,
) -> DnsNameCheckResult {
    let (result, detail) = match lookup {
        TxtLookup::Records(records) => {
            check.is_aliased |= records.aliased;
            for record in &records.records {
                check.add_found_text(record);
            }
            evaluate_txt_records(name, &records, evaluate)
        }
        TxtLookup::Absent => (
            ChallengeResult::Absent,
            format!(
                "there is no TXT record at {name}; a new record is visible only once the TTL of the old answer expires"
            ),
        ),
        TxtLookup::Failed(why) => (
            ChallengeResult::Failed,
            format!("the TXT records at {name} could not be looked up: {why}"),
        ),
        TxtLookup::Bogus(why) => (
            ChallengeResult::Bogus,
            format!("the TXT records at {name} do not pass DNSSEC validation: {why}"),
        ),
    };
    DnsNameCheckResult { result, detail }
}

fn evaluate_txt_records(
    name: &str,
    txt: &TxtRecords,
    evaluate: impl Fn(&str) -> DnsRecordResult,
) -> (ChallengeResult, String) {
    let mut proof = None;
    let mut reason = None;
    for record in &txt.records {
        match evaluate(record) {
            DnsRecordResult::OptsOut => {
                let detail = format!(
                    "the record at {name} asks every registry not to list this host (policy=none)"
                );
                return (ChallengeResult::OptedOut, detail);
            }
            DnsRecordResult::Proves { scope, expires_at } => {
                proof = Some(ChallengeResult::Proved { scope, expires_at })
            }
            DnsRecordResult::Fails(why) => reason = reason.or(Some(why)),
            DnsRecordResult::Unrelated => {}
        }
    }
    if let Some(proved) = proof {
        return (proved, format!("the expected record was found at {name}"));
    }
    let count = txt.records.len() + txt.skipped_count;
    let detail = match (count, reason) {
        (1, Some(reason)) => format!("the TXT record at {name} is not the expected one: {reason}"),
        (_, Some(reason)) => {
            format!(
                "none of the {count} TXT records at {name} is the expected one; one of them: {reason}"
            )
        }
        (_, None) => format!("the TXT records at {name} are not for this registry"),
    };
    if txt.skipped_count > 0 {
        let left_out = txt.skipped_count;
        return (
            ChallengeResult::Wrong,
            format!(
                "{detail}; {left_out} of them were not read, because there are too many or they are too long"
            ),
        );
    }
    (ChallengeResult::Wrong, detail)
}
