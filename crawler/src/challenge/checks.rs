//! Checks for proofs over the network.

use time::OffsetDateTime;
use url::Url;

use super::check::{Check, CheckVerdict, Format, Reach};
use super::dns_standing::RecordVerdict;
use super::expected::{Expected, standing_name, standing_record};
use super::file::{FileAnswer, MAX_FILE_BYTES};
use super::{dns_one_off, dns_standing};
use crate::dns::{TxtAnswer, TxtRecords};
use crate::fetch::{Fetcher, GetOptions, retry_after};

struct NameResult {
    verdict: CheckVerdict,
    detail: String,
}

impl Fetcher {
    /// Checks both names of a host for its one-off record. A proof at either name is enough. Otherwise a failed
    /// look-up outweighs a definite answer, since the proof may be where the look-up failed.
    ///
    /// `host` has no port. One that the guard refuses, in particular a public suffix, is not looked up.
    pub async fn check_dns_one_off(
        &self,
        host: &str,
        expected: &Expected<'_>,
        now: OffsetDateTime,
    ) -> Check {
        let names = expected.one_off_names(host);
        let token = expected.dns_token();
        let wanted = format!("token={token} expiry=<date>");
        let mut check = Check::new(Format::DnsOneOff, names.to_vec(), wanted);
        if let Err(refused) = self.host_is_asked(host) {
            return check.ended(CheckVerdict::Refused, &refused);
        }
        let [plain, own] = &names;
        let (first, second) = tokio::join!(self.texts(plain), self.texts(own));
        let judge = |text: &str| match dns_one_off::judge(text, &token, now) {
            Ok(record) => RecordVerdict::Proves {
                reach: Reach::Exact,
                until: Some(record.expiry),
            },
            Err(reason) => RecordVerdict::Fails(reason),
        };
        let results = [
            judge_name(&mut check, plain, first, judge),
            judge_name(&mut check, own, second, judge),
        ];
        match results
            .into_iter()
            .min_by_key(|result| rank(result.verdict))
        {
            Some(result) => check.ended(result.verdict, &result.detail),
            None => check,
        }
    }

    /// Checks for the standing record of exactly this host: an account's proof, or an opt-out, which outweighs every
    /// proof. Without an account, only an opt-out is looked for.
    ///
    /// `registry` is the host by which records name this registry, with `:port` where it has one. To check whether a
    /// parent's record covers a host, call this again with the parent and require [`Reach::Subdomains`].
    pub async fn check_dns_standing(
        &self,
        host: &str,
        registry: &str,
        account: Option<&str>,
        now: OffsetDateTime,
    ) -> Check {
        let name = standing_name(host);
        let wanted = match account {
            Some(account) => standing_record(registry, account, dns_standing::Policy::Exact, None),
            None => format!("{registry}; policy=none"),
        };
        let mut check = Check::new(Format::DnsStanding, vec![name.clone()], wanted);
        if let Err(refused) = self.host_is_asked(host) {
            return check.ended(CheckVerdict::Refused, &refused);
        }
        let answer = self.texts(&name).await;
        let judge = |text: &str| dns_standing::judge(text, registry, account, now);
        let NameResult { verdict, detail } = judge_name(&mut check, &name, answer, judge);
        check.ended(verdict, &detail)
    }

    /// Checks for the file of a challenge: status 200 over valid TLS, no redirect, at most [`MAX_FILE_BYTES`], the
    /// expected text. Trailing white space is ignored (RFC 8555 section 8.3), because editors add it.
    ///
    /// `origin` is scheme, host and port; http and other ports are fetched only if the guard allows them.
    pub async fn check_https_file(
        &self,
        origin: &Url,
        expected: &Expected<'_>,
        now: OffsetDateTime,
    ) -> Check {
        let url = expected.file_url(origin);
        let wanted = expected.file();
        let mut check = Check::new(Format::HttpsFile, vec![url.to_string()], wanted.clone());
        let (answer, retry_after) = self.ask_for_file(&url, now).await;
        check.retry_after = retry_after;
        match answer {
            FileAnswer::Body(body) => {
                if body.trim_ascii_end() == wanted.as_bytes() {
                    let proved = CheckVerdict::Proved {
                        reach: Reach::Exact,
                        until: None,
                    };
                    check.quote(&wanted);
                    return check.ended(proved, "the file has the expected text");
                }
                let text = String::from_utf8_lossy(&body);
                check.quote(&text);
                let detail = match check.found.first() {
                    Some(found) if !found.trim().is_empty() => {
                        format!("the file has the text {found:?} instead of the expected one")
                    }
                    _ => "the file is empty".to_owned(),
                };
                check.ended(CheckVerdict::Wrong, &detail)
            }
            FileAnswer::Absent(why) => check.ended(
                CheckVerdict::Absent,
                &format!("the file does not exist: {why}"),
            ),
            FileAnswer::Wrong(why) => {
                check.quote(&why);
                check.ended(
                    CheckVerdict::Wrong,
                    &format!("the file was not served: {why}"),
                )
            }
            FileAnswer::Failed(why) => check.ended(
                CheckVerdict::Failed,
                &format!("the file could not be fetched: {why}"),
            ),
            FileAnswer::Refused(why) => check.ended(CheckVerdict::Refused, &why),
        }
    }

    /// Fetches the file at a URL without judging its content. Also returns the seconds of `Retry-After`.
    async fn ask_for_file(&self, url: &Url, now: OffsetDateTime) -> (FileAnswer, Option<u32>) {
        let options = GetOptions {
            accept: "text/plain",
            redirects: 0,
            body: MAX_FILE_BYTES,
            ..GetOptions::default()
        };
        let answer = self.get(url, &options).await.answer;
        let asks_for_rest = answer.as_ref().ok().filter(|answer| answer.status != 200);
        let wait = asks_for_rest.and_then(|answer| retry_after(&answer.headers, now));
        (FileAnswer::of(answer), wait)
    }

    /// Whether records below this host may count. Those of a public suffix may not: nobody who registers there owns it.
    fn host_is_asked(&self, host: &str) -> Result<(), String> {
        let domain = self
            .guard()
            .check_domain(host)
            .map_err(|refusal| refusal.to_string())?;
        match domain.origin.domain() {
            Some(name) if name == host => Ok(()),
            _ => Err("records can only be placed below a host name, without a port".to_owned()),
        }
    }
}

/// Rank by which one of several results is chosen: an opt-out, a proof, a failed look-up, a definite answer.
const fn rank(verdict: CheckVerdict) -> u8 {
    match verdict {
        CheckVerdict::OptedOut => 0,
        CheckVerdict::Proved { .. } => 1,
        CheckVerdict::Bogus => 2,
        CheckVerdict::Failed | CheckVerdict::Refused => 3,
        CheckVerdict::Wrong => 4,
        CheckVerdict::Absent => 5,
    }
}

/// Judges the records at one name, and quotes them in the check.
fn judge_name(
    check: &mut Check,
    name: &str,
    answer: TxtAnswer,
    judge: impl Fn(&str) -> RecordVerdict,
) -> NameResult {
    let (verdict, detail) = match answer {
        TxtAnswer::Records(records) => {
            check.aliased |= records.aliased;
            for record in &records.records {
                check.quote(record);
            }
            read_records(name, &records, judge)
        }
        TxtAnswer::Absent => (
            CheckVerdict::Absent,
            format!(
                "there is no TXT record at {name}; a new record is seen only after the old answer's TTL has passed"
            ),
        ),
        TxtAnswer::Failed(why) => (
            CheckVerdict::Failed,
            format!("the TXT records at {name} could not be looked up: {why}"),
        ),
        TxtAnswer::Bogus(why) => (
            CheckVerdict::Bogus,
            format!("the TXT records at {name} do not pass DNSSEC validation: {why}"),
        ),
    };
    NameResult { verdict, detail }
}

fn read_records(
    name: &str,
    found: &TxtRecords,
    judge: impl Fn(&str) -> RecordVerdict,
) -> (CheckVerdict, String) {
    let mut proved = None;
    let mut reason = None;
    for record in &found.records {
        match judge(record) {
            RecordVerdict::OptsOut => {
                let detail = format!(
                    "the record at {name} asks every registry not to list this host (policy=none)"
                );
                return (CheckVerdict::OptedOut, detail);
            }
            RecordVerdict::Proves { reach, until } => {
                proved = Some(CheckVerdict::Proved { reach, until })
            }
            RecordVerdict::Fails(why) => reason = reason.or(Some(why)),
            RecordVerdict::OfOthers => {}
        }
    }
    if let Some(proved) = proved {
        return (proved, format!("the expected record was found at {name}"));
    }
    let count = found.records.len() + found.left_out;
    let what = match (count, reason) {
        (1, Some(reason)) => format!("the TXT record at {name} is not the expected one: {reason}"),
        (_, Some(reason)) => {
            format!(
                "none of the {count} TXT records at {name} is the expected one; one of them: {reason}"
            )
        }
        (_, None) => format!("the TXT records at {name} are not for this registry"),
    };
    if found.left_out > 0 {
        let left_out = found.left_out;
        return (
            CheckVerdict::Wrong,
            format!(
                "{what}; {left_out} of them were not read, because there are too many or they are too long"
            ),
        );
    }
    (CheckVerdict::Wrong, what)
}
