//! The persistent record: `<registry>; accounturi=<account>; policy=<policy>; persistuntil=<unix>`, modelled on the
//! draft of ACME's `dns-persist-01`.

use a2a_card::named_enum;
use time::OffsetDateTime;

use super::check_result::ProofScope;
use crate::foreign_text::escape_invisible;

named_enum! {
    /// Permission that the owner of a name gives.
    pub enum DnsRecordPolicy {
        /// This account controls this host.
        Exact = "exact",
        /// This account controls this host and all hosts below it.
        Subdomains = "subdomains",
        /// No registry may list this host, whichever account asks.
        None = "none",
    }
}

/// A parsed persistent record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentDnsRecord {
    /// Host of the registry that the record is for, lower-case, with `:port` if it has one.
    pub registry: String,
    /// The account's URI, byte for byte. A record with `policy=none` needs none.
    pub account: Option<String>,
    /// The policy; `exact` if the record names none.
    pub policy: DnsRecordPolicy,
    /// When the record expires; `None` if it does not say.
    pub expires_at: Option<OffsetDateTime>,
}

/// Why a text is not a persistent record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersistentDnsRecordError {
    /// It does not begin with a host.
    #[error("it does not begin with the registry's host")]
    NoRegistry,
    /// It has two semicolons in a row, or one at the end.
    #[error("it has an empty part (two semicolons in a row, or one at the end)")]
    EmptyPart,
    /// A part is not of the form `tag=value`.
    #[error("{0:?} is not of the form tag=value")]
    NotTagValue(String),
    /// A tag occurs twice.
    #[error("it contains the tag {0:?} twice")]
    DuplicateTag(String),
    /// It has no `accounturi=`, and its policy is not `none`.
    #[error("it names no account (accounturi=)")]
    NoAccount,
    /// The policy is unknown.
    #[error("its policy is not one of: exact, subdomains, none")]
    UnknownPolicy,
    /// The expiry is not a number of seconds.
    #[error("its persistuntil is not a number of seconds since 1970")]
    InvalidExpiry,
}

/// Parses a record. Tags are case-insensitive; unknown tags are ignored, and no tag may occur twice.
pub fn parse_persistent_dns_record(
    text: &str,
) -> Result<PersistentDnsRecord, PersistentDnsRecordError> {
    let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
    let registry = normalize_registry_host(parts.next().unwrap_or_default());
    if registry.is_empty() || registry.contains(['=', ' ', '\t']) {
        return Err(PersistentDnsRecordError::NoRegistry);
    }
    let mut seen_tags: Vec<String> = Vec::new();
    let (mut account, mut policy, mut expires_at) = (None, DnsRecordPolicy::Exact, None);
    for part in parts {
        if part.is_empty() {
            return Err(PersistentDnsRecordError::EmptyPart);
        }
        let Some((tag, value)) = part.split_once('=') else {
            return Err(PersistentDnsRecordError::NotTagValue(escape_invisible(
                part, 40,
            )));
        };
        let tag = tag.trim_end_matches([' ', '\t']).to_ascii_lowercase();
        let value = value.trim_start_matches([' ', '\t']);
        if tag.is_empty() {
            return Err(PersistentDnsRecordError::NotTagValue(escape_invisible(
                part, 40,
            )));
        }
        if seen_tags.contains(&tag) {
            return Err(PersistentDnsRecordError::DuplicateTag(escape_invisible(
                &tag, 40,
            )));
        }
        match tag.as_str() {
            "accounturi" => account = Some(value.to_owned()).filter(|value| !value.is_empty()),
            "policy" => {
                policy = match value.to_ascii_lowercase().as_str() {
                    "exact" => DnsRecordPolicy::Exact,
                    "subdomains" => DnsRecordPolicy::Subdomains,
                    "none" => DnsRecordPolicy::None,
                    _ => return Err(PersistentDnsRecordError::UnknownPolicy),
                }
            }
            "persistuntil" => {
                expires_at =
                    Some(parse_unix_seconds(value).ok_or(PersistentDnsRecordError::InvalidExpiry)?)
            }
            _ => {}
        }
        seen_tags.push(tag);
    }
    if account.is_none() && policy != DnsRecordPolicy::None {
        return Err(PersistentDnsRecordError::NoAccount);
    }
    Ok(PersistentDnsRecord {
        registry,
        account,
        policy,
        expires_at,
    })
}

fn normalize_registry_host(text: &str) -> String {
    text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()
}

/// Accepts digits only: a sign, a fraction or a date is an error, and an error must not extend a proof.
fn parse_unix_seconds(text: &str) -> Option<OffsetDateTime> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = digits.then(|| text.parse().ok())??;
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// Result of evaluating one record for one registry and account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsRecordResult {
    /// It proves the host.
    Proves {
        /// The hosts that it covers.
        scope: ProofScope,
        /// When the record expires.
        expires_at: Option<OffsetDateTime>,
    },
    /// The owner opts out of every registry.
    OptsOut,
    /// The record is for this registry but proves nothing; the text gives the reason.
    Fails(String),
    /// The record is for another registry, or is not a persistent record.
    Unrelated,
}

/// Evaluates one record. `registry` is our host, with `:port` if it has one. `account` is compared byte for byte;
/// without an account only an opt-out is checked. An opt-out is in force until it expires, like a proof.
pub fn evaluate_persistent_dns_record(
    text: &str,
    registry: &str,
    account: Option<&str>,
    now: OffsetDateTime,
) -> DnsRecordResult {
    let registry = self::normalize_registry_host(registry);
    let record = match parse_persistent_dns_record(text) {
        Ok(record) => record,
        // A malformed record counts as ours if it begins with our name.
        Err(error) => {
            let record_registry = text.split(';').next().unwrap_or_default();
            let record_registry =
                self::normalize_registry_host(record_registry.trim_matches([' ', '\t']));
            return if record_registry == registry {
                DnsRecordResult::Fails(error.to_string())
            } else {
                DnsRecordResult::Unrelated
            };
        }
    };
    if record.registry != registry {
        return DnsRecordResult::Unrelated;
    }
    if let Some(expires_at) = record.expires_at
        && now > expires_at
    {
        return DnsRecordResult::Fails(format!("it expired on {}", expires_at.date()));
    }
    let scope = match record.policy {
        DnsRecordPolicy::None => return DnsRecordResult::OptsOut,
        DnsRecordPolicy::Exact => ProofScope::Exact,
        DnsRecordPolicy::Subdomains => ProofScope::Subdomains,
    };
    if account.is_none() || record.account.as_deref() != account {
        return DnsRecordResult::Fails("it names another account".to_owned());
    }
    DnsRecordResult::Proves {
        scope,
        expires_at: record.expires_at,
    }
}

#[cfg(test)]
#[path = "dns_standing_tests.rs"]
mod tests;
