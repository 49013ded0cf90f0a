//! The one-off record: `token=<token> expiry=<RFC 3339>`. The syntax follows the IETF draft on domain control
//! validation with DNS: `token=` first, then further `key=value` pairs separated by spaces.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::foreign_text::escape_invisible;

/// A parsed one-off record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOffDnsRecord {
    /// The token, to be compared with the expected one.
    pub token: String,
    /// When the record expires.
    pub expiry: OffsetDateTime,
}

/// Why a text is not a one-off record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OneOffDnsRecordError {
    /// It does not begin with `token=`.
    #[error("it does not begin with token=")]
    NoToken,
    /// A part is not of the form `key=value`.
    #[error("{0:?} is not of the form key=value")]
    NotKeyValue(String),
    /// A key occurs twice.
    #[error("it contains the key {0:?} twice")]
    DuplicateKey(String),
    /// It has no `expiry=`.
    #[error("it has no expiry=")]
    NoExpiry,
    /// The expiry is not a date.
    #[error("its expiry is not a date like 2026-12-31T23:59:59Z")]
    InvalidExpiry,
}

/// Parses a record. Unknown keys are ignored; no key may occur twice.
pub fn parse_one_off_dns_record(text: &str) -> Result<OneOffDnsRecord, OneOffDnsRecordError> {
    if !text.starts_with("token=") {
        return Err(OneOffDnsRecordError::NoToken);
    }
    let mut seen_keys: Vec<&str> = Vec::new();
    let (mut token, mut expiry) = ("", None);
    for part in text.split(' ').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(OneOffDnsRecordError::NotKeyValue(escape_invisible(
                part, 40,
            )));
        };
        if seen_keys.contains(&key) {
            return Err(OneOffDnsRecordError::DuplicateKey(escape_invisible(
                key, 40,
            )));
        }
        seen_keys.push(key);
        match key {
            "token" => token = value,
            "expiry" => {
                let date = OffsetDateTime::parse(value, &Rfc3339)
                    .map_err(|_| OneOffDnsRecordError::InvalidExpiry)?;
                expiry = Some(date);
            }
            _ => {}
        }
    }
    Ok(OneOffDnsRecord {
        token: token.to_owned(),
        expiry: expiry.ok_or(OneOffDnsRecordError::NoExpiry)?,
    })
}

/// Checks whether a record is the expected one and has not expired; the error gives the reason. The record is still
/// valid at its exact expiry time. The caller limits how far in the future the expiry may be.
pub fn evaluate_one_off_dns_record(
    text: &str,
    expected_token: &str,
    now: OffsetDateTime,
) -> Result<OneOffDnsRecord, String> {
    let record = parse_one_off_dns_record(text).map_err(|error| error.to_string())?;
    if record.token != expected_token {
        return Err("it has another token".to_owned());
    }
    if now > record.expiry {
        let date = record.expiry.date();
        return Err(format!("it expired on {date}"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-10-01 12:00 UTC);

    #[test]
    fn records_are_judged_word_by_word() {
        for (text, expected) in [
            ("token=abc expiry=2026-10-02T00:00:00Z", Ok(())),
            ("token=abc expiry=2026-10-01T14:00:00+02:00", Ok(())),
            ("token=abc  expiry=2026-10-02T00:00:00Z ", Ok(())),
            ("token=abc note=x=y expiry=2026-10-02T00:00:00Z", Ok(())),
            ("token=abc expiry=2026-10-01T11:59:59Z", Err("expired")),
            ("token=ABC expiry=2026-10-02T00:00:00Z", Err("another")),
            ("token= expiry=2026-10-02T00:00:00Z", Err("another")),
            (
                "token=abc\u{200b} expiry=2026-10-02T00:00:00Z",
                Err("another"),
            ),
            ("token=abc", Err("no expiry")),
            ("token=abc expiry=never", Err("not a date")),
            ("token=abc expiry=2026-13-02T00:00:00Z", Err("not a date")),
            ("token=abc expiry=2026-10-02", Err("not a date")),
            (
                "token=abc token=abc expiry=2026-10-02T00:00:00Z",
                Err("twice"),
            ),
            (
                "token=abc expiry=2026-10-02T00:00:00Z expiry=2026-10-02T00:00:00Z",
                Err("twice"),
            ),
            (
                "token=abc x=1 x=1 expiry=2026-10-02T00:00:00Z",
                Err("twice"),
            ),
            ("token=abc expiry=2026-10-02T00:00:00Z;", Err("not a date")),
            (
                "token=abc word expiry=2026-10-02T00:00:00Z",
                Err("not of the form key=value"),
            ),
            ("expiry=2026-10-02T00:00:00Z token=abc", Err("begin")),
            (" token=abc expiry=2026-10-02T00:00:00Z", Err("begin")),
            ("Token=abc expiry=2026-10-02T00:00:00Z", Err("begin")),
            ("\"token=abc expiry=2026-10-02T00:00:00Z\"", Err("begin")),
            ("abc", Err("begin")),
            ("", Err("begin")),
        ] {
            match (evaluate_one_off_dns_record(text, "abc", NOW), expected) {
                (Ok(_), Ok(())) => {}
                (Err(found), Err(wanted)) => assert!(found.contains(wanted), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(token=)?\\PC*|[\\x00-\\x{ffff}]*|(token|expiry|[ =;0-9TZ:-])*") {
            if let Ok(record) = parse_one_off_dns_record(&text) {
                proptest::prop_assert!(text.starts_with("token="));
                proptest::prop_assert!(text.contains(&record.token));
                proptest::prop_assert!(evaluate_one_off_dns_record(&text, "not this one", NOW).is_err());
            }
        }

        #[test]
        fn what_is_told_is_what_is_read(account in "\\PC{0,60}", nonce: [u8; 32], seconds in 0_i64..2_000_000_000) {
            let nonce = super::super::Nonce::from_bytes(&nonce);
            let expected = super::super::ExpectedProof { account: &account, nonce: &nonce };
            let expiry = OffsetDateTime::from_unix_timestamp(seconds).expect("in range");
            let record = expected.one_off_record(expiry);
            let read = evaluate_one_off_dns_record(&record, &expected.dns_token(), expiry);
            proptest::prop_assert_eq!(read, Ok(OneOffDnsRecord { token: expected.dns_token(), expiry }));
            let later = expiry + time::Duration::seconds(1);
            proptest::prop_assert!(evaluate_one_off_dns_record(&record, &expected.dns_token(), later).is_err());
        }
    }
}
