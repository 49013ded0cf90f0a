//! The standing record: `<registry>; accounturi=<account>; policy=<policy>; persistuntil=<unix>`, after the
//! draft of ACME's `dns-persist-01`.

use time::OffsetDateTime;

use super::check::Reach;
use crate::fetch::visible;

/// What the owner of a name allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// This account has proved this host.
    Exact,
    /// This account has proved this host and all below it.
    Subdomains,
    /// No registry may list this host, whoever asks.
    None,
}

impl Policy {
    /// The word in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Subdomains => "subdomains",
            Self::None => "none",
        }
    }
}

/// A standing record as it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRecord {
    /// For which registry it is: a host, lower-case, with `:port` where it has one.
    pub registry: String,
    /// The account's URI, byte for byte. A record of `policy=none` needs none.
    pub account: Option<String>,
    /// `exact` where the record says nothing.
    pub policy: Policy,
    /// Until when the record holds; `None` for as long as it stands.
    pub until: Option<OffsetDateTime>,
}

/// Why a text is no standing record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not begin with a host.
    #[error("it does not begin with the registry's host")]
    NoRegistry,
    /// Two semicolons in a row, or one at the end.
    #[error("it has an empty part, as after a semicolon at the end")]
    EmptyPart,
    /// A part is no `tag=value`.
    #[error("{0:?} is no tag=value")]
    NotAPair(String),
    /// A tag stands twice.
    #[error("{0:?} stands there twice")]
    Twice(String),
    /// There is no `accounturi=`, and the policy is not `none`.
    #[error("it names no account (accounturi=)")]
    NoAccount,
    /// The policy is no word of ours.
    #[error("its policy is none of exact, subdomains and none")]
    Policy,
    /// The end is no number of seconds.
    #[error("its persistuntil is no number of seconds since 1970")]
    Until,
}

/// Reads a record. Tags are told apart without regard to case; unknown ones are passed over, and each may
/// stand there once.
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

/// Digits only: a sign, a fraction or a date is a mistake, and a mistake must not lengthen a proof.
fn moment(text: &str) -> Option<OffsetDateTime> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = digits.then(|| text.parse().ok())??;
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

/// What one record says to a registry that asks for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordVerdict {
    /// It is the proof.
    Proves {
        /// What it covers.
        reach: Reach,
        /// Until when.
        until: Option<OffsetDateTime>,
    },
    /// The owner has opted out.
    OptsOut,
    /// It is for this registry and proves nothing, for this reason.
    Fails(String),
    /// It is for another registry, or no record of this kind.
    OfOthers,
}

/// Judges one record. `registry` is our host, with `:port` where it has one; `account` is compared byte for
/// byte, and `None` asks for an opt-out only. An opt-out binds until its end, as a proof does.
pub fn judge(
    text: &str,
    registry: &str,
    account: Option<&str>,
    now: OffsetDateTime,
) -> RecordVerdict {
    let registry = self::registry(registry);
    let record = match parse(text) {
        Ok(record) => record,
        // A broken record is ours as far as it begins like one.
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
        return RecordVerdict::Fails(format!("it held until {}", until.date()));
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
#[path = "standing_record_tests.rs"]
mod tests;
