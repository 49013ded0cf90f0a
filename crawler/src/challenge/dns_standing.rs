//! The standing record: `<registry>; accounturi=<account>; policy=<policy>; persistuntil=<unix>`, modelled on the
//! draft of ACME's `dns-persist-01`.

use time::OffsetDateTime;

use super::check::Reach;
use crate::fetch::visible;

/// The permission that the owner of a name gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// This account controls this host.
    Exact,
    /// This account controls this host and all hosts below it.
    Subdomains,
    /// No registry may list this host, whichever account asks.
    None,
}

impl Policy {
    /// The spelling in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Subdomains => "subdomains",
            Self::None => "none",
        }
    }
}

/// A parsed standing record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRecord {
    /// The registry that it is for: a host, lower-case, with `:port` where it has one.
    pub registry: String,
    /// The account's URI, byte for byte. A record of `policy=none` needs none.
    pub account: Option<String>,
    /// The policy; `exact` where the record names none.
    pub policy: Policy,
    /// When the record expires; `None` where it does not say.
    pub until: Option<OffsetDateTime>,
}

/// Why a text is not a standing record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not begin with a host.
    #[error("it does not begin with the registry's host")]
    NoRegistry,
    /// It has two semicolons in a row, or one at the end.
    #[error("it has an empty part (two semicolons in a row, or one at the end)")]
    EmptyPart,
    /// A part is not of the form `tag=value`.
    #[error("{0:?} is not of the form tag=value")]
    NotAPair(String),
    /// A tag occurs twice.
    #[error("it has {0:?} twice")]
    Twice(String),
    /// It has no `accounturi=`, and its policy is not `none`.
    #[error("it names no account (accounturi=)")]
    NoAccount,
    /// The policy is unknown.
    #[error("its policy is not one of: exact, subdomains, none")]
    Policy,
    /// The end is not a number of seconds.
    #[error("its persistuntil is not a number of seconds since 1970")]
    Until,
}

/// Parses a record. Case does not matter in tags; unknown tags are ignored, and no tag may occur twice.
pub fn parse(text: &str) -> Result<StandingRecord, Malformed> {
    let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
    let registry = registry(parts.next().unwrap_or_default());
    if registry.is_empty() || registry.contains(['=', ' ', '\t']) {
        return Err(Malformed::NoRegistry);
    }
    let mut seen: Vec<String> = Vec::new();
    let (mut account, mut policy, mut until) = (None, Policy::Exact, None);
    for part in parts {
        if part.is_empty() {
            return Err(Malformed::EmptyPart);
        }
        let Some((tag, value)) = part.split_once('=') else {
            return Err(Malformed::NotAPair(visible(part, 40)));
        };
        let tag = tag.trim_end_matches([' ', '\t']).to_ascii_lowercase();
        let value = value.trim_start_matches([' ', '\t']);
        if tag.is_empty() {
            return Err(Malformed::NotAPair(visible(part, 40)));
        }
        if seen.contains(&tag) {
            return Err(Malformed::Twice(visible(&tag, 40)));
        }
        match tag.as_str() {
            "accounturi" => account = Some(value.to_owned()).filter(|value| !value.is_empty()),
            "policy" => {
                policy = match value.to_ascii_lowercase().as_str() {
                    "exact" => Policy::Exact,
                    "subdomains" => Policy::Subdomains,
                    "none" => Policy::None,
                    _ => return Err(Malformed::Policy),
                }
            }
            "persistuntil" => until = Some(moment(value).ok_or(Malformed::Until)?),
            _ => {}
        }
        seen.push(tag);
    }
    if account.is_none() && policy != Policy::None {
        return Err(Malformed::NoAccount);
    }
    Ok(StandingRecord {
        registry,
        account,
        policy,
        until,
    })
}

fn registry(text: &str) -> String {
    text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()
}

/// Accepts digits only: a sign, a fraction or a date is a mistake, and a mistake must not lengthen a proof.
fn moment(text: &str) -> Option<OffsetDateTime> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = digits.then(|| text.parse().ok())??;
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// The verdict on one record, for one registry and account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordVerdict {
    /// It proves the host.
    Proves {
        /// The hosts that it covers.
        reach: Reach,
        /// When the record expires.
        until: Option<OffsetDateTime>,
    },
    /// The owner opts out.
    OptsOut,
    /// It is for this registry but proves nothing, for this reason.
    Fails(String),
    /// It is for another registry, or not a record of this kind.
    OfOthers,
}

/// Judges one record. `registry` is our host, with `:port` where it has one. `account` is compared byte for byte;
/// with `None` only an opt-out is looked for. An opt-out is in force until it expires, like a proof.
pub fn judge(
    text: &str,
    registry: &str,
    account: Option<&str>,
    now: OffsetDateTime,
) -> RecordVerdict {
    let registry = self::registry(registry);
    let record = match parse(text) {
        Ok(record) => record,
        // A broken record counts as ours if it begins with our name.
        Err(error) => {
            let begins = text.split(';').next().unwrap_or_default();
            let begins = self::registry(begins.trim_matches([' ', '\t']));
            return if begins == registry {
                RecordVerdict::Fails(error.to_string())
            } else {
                RecordVerdict::OfOthers
            };
        }
    };
    if record.registry != registry {
        return RecordVerdict::OfOthers;
    }
    if let Some(until) = record.until
        && now > until
    {
        return RecordVerdict::Fails(format!("it expired on {}", until.date()));
    }
    let reach = match record.policy {
        Policy::None => return RecordVerdict::OptsOut,
        Policy::Exact => Reach::Exact,
        Policy::Subdomains => Reach::Subdomains,
    };
    if account.is_none() || record.account.as_deref() != account {
        return RecordVerdict::Fails("it names another account".to_owned());
    }
    RecordVerdict::Proves {
        reach,
        until: record.until,
    }
}

#[cfg(test)]
#[path = "dns_standing_tests.rs"]
mod tests;
