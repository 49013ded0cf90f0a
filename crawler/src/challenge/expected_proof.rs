//! Expected names, records and file that an owner has to publish to prove a domain.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use ring::digest::{Digest, SHA256, digest};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use super::dns_persistent::DnsRecordPolicy;

/// Label of the name that holds a one-off record.
pub const CHALLENGE_LABEL: &str = "_a2a-registry-challenge";
/// Label of the name that holds a persistent record.
pub const PERSISTENT_LABEL: &str = "_a2a-registry";
/// Folder that holds the file of a challenge.
pub const CHALLENGE_PATH: &str = "/.well-known/a2a-registry-challenge/";

const NONCE_BYTES: usize = 32;
/// Bytes of the account's digest that form its label, as in ACME's `dns-account-01`.
const ACCOUNT_LABEL_BYTES: usize = 10;

/// 32 random bytes in base64url, 43 characters, different for each challenge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Nonce(String);

/// Error for a text that is not a [`Nonce`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a nonce is 32 bytes in base64url without padding")]
pub struct InvalidNonce;

impl Nonce {
    /// Makes a nonce from 32 bytes, which the caller must take from an unpredictable random source.
    pub fn from_bytes(bytes: &[u8; NONCE_BYTES]) -> Self {
        Self(BASE64URL_NOPAD.encode(bytes))
    }

    /// Parses the text that [`as_str`](Self::as_str) returns, in exactly that spelling.
    pub fn parse(text: &str) -> Result<Self, InvalidNonce> {
        let bytes = BASE64URL_NOPAD
            .decode(text.as_bytes())
            .map_err(|_| InvalidNonce)?;
        if bytes.len() != NONCE_BYTES {
            return Err(InvalidNonce);
        }
        Ok(Self(text.to_owned()))
    }

    /// The nonce as 43 characters of base64url.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The values that prove a domain for one account and one challenge. Pure.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedProof<'a> {
    /// The account's URI. It is part of every value, byte for byte.
    pub account: &'a str,
    /// The nonce of the challenge.
    pub nonce: &'a Nonce,
}

impl ExpectedProof<'_> {
    /// Content of the file: the nonce, a dot, and the thumbprint of the account, base64url(SHA-256(account)). A server
    /// that merely echoes its path cannot produce the second half.
    pub fn file_content(&self) -> String {
        let thumbprint = BASE64URL_NOPAD.encode(sha256_digest(self.account).as_ref());
        format!("{}.{thumbprint}", self.nonce.as_str())
    }

    /// Token of the one-off record: base64url(SHA-256([`file_content`](Self::file_content))).
    pub fn dns_token(&self) -> String {
        BASE64URL_NOPAD.encode(sha256_digest(&self.file_content()).as_ref())
    }

    /// The one-off record, ready to copy. `expiry` is the end of the challenge, to the second.
    pub fn one_off_record(&self, expiry: OffsetDateTime) -> String {
        let expiry = expiry.replace_nanosecond(0).unwrap_or(expiry);
        // Only years after 9999 cannot be formatted; no challenge lasts that long.
        let expiry = expiry.format(&Rfc3339).unwrap_or_default();
        format!("token={} expiry={expiry}", self.dns_token())
    }

    /// The two names that may hold the one-off record: the plain one, and one used only by this account, for a host
    /// that several accounts prove at the same time.
    pub fn one_off_record_names(&self, host: &str) -> [String; 2] {
        let shared_name = format!("{CHALLENGE_LABEL}.{host}");
        let account_name = format!("{}.{shared_name}", account_dns_label(self.account));
        [shared_name, account_name]
    }

    /// URL of the file on this origin (scheme, host and port).
    pub fn file_url(&self, origin: &Url) -> Url {
        let mut url = origin.clone();
        url.set_path(&format!("{CHALLENGE_PATH}{}", self.nonce.as_str()));
        url.set_query(None);
        url.set_fragment(None);
        url
    }
}

/// Label of an account: `_` and the lower-case base32 of the first 10 bytes of SHA-256(account), 17 characters.
pub fn account_dns_label(account: &str) -> String {
    let digest = sha256_digest(account);
    let bytes = digest
        .as_ref()
        .get(..ACCOUNT_LABEL_BYTES)
        .unwrap_or_default();
    format!("_{}", BASE32_NOPAD.encode(bytes).to_ascii_lowercase())
}

/// Name that holds the persistent record of a host.
pub fn persistent_record_dns_name(host: &str) -> String {
    format!("{PERSISTENT_LABEL}.{host}")
}

/// The persistent record, ready to copy. `registry` is the registry's host, with `:port` if it has one.
pub fn format_persistent_dns_record(
    registry: &str,
    account: &str,
    policy: DnsRecordPolicy,
    expires_at: Option<OffsetDateTime>,
) -> String {
    let mut record = format!(
        "{registry}; accounturi={account}; policy={}",
        policy.as_str()
    );
    if let Some(expires_at) = expires_at {
        record.push_str(&format!("; persistuntil={}", expires_at.unix_timestamp()));
    }
    record
}

fn sha256_digest(text: &str) -> Digest {
    digest(&SHA256, text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use time::macros::datetime;

    use super::*;

    /// Expected values computed with `sha256sum`, `base64` and `base32`.
    #[test]
    fn values_are_those_of_other_tools() {
        let nonce = Nonce::from_bytes(&[0; 32]);
        assert_eq!(nonce.as_str(), "A".repeat(43));
        assert_eq!(Nonce::parse(nonce.as_str()), Ok(nonce.clone()));
        let expected = ExpectedProof {
            account: "https://registry.example.com/accounts/acme",
            nonce: &nonce,
        };
        assert_eq!(
            expected.file_content(),
            format!(
                "{}.znMOkL7MAFAp9BcB5Nrnt3er8cY7GfOSTAU21vmTdGY",
                "A".repeat(43)
            )
        );
        assert_eq!(
            expected.dns_token(),
            "fBVlPoVNYCME-Kt7mpW4q4SosmkLv8h23aTa-K1fC8o"
        );
        assert_eq!(account_dns_label(expected.account), "_zzzq5ef6zqafakpu");
        assert_eq!(
            expected.one_off_record_names("agents.example.com"),
            [
                "_a2a-registry-challenge.agents.example.com",
                "_zzzq5ef6zqafakpu._a2a-registry-challenge.agents.example.com"
            ]
        );
        assert_eq!(
            expected.one_off_record(datetime!(2026-10-01 12:00:00.5 UTC)),
            "token=fBVlPoVNYCME-Kt7mpW4q4SosmkLv8h23aTa-K1fC8o expiry=2026-10-01T12:00:00Z"
        );
        let origin = "https://agents.example.com:8443/x?y".parse().unwrap();
        assert_eq!(
            expected.file_url(&origin).as_str(),
            format!(
                "https://agents.example.com:8443/.well-known/a2a-registry-challenge/{}",
                nonce.as_str()
            )
        );
    }

    #[test]
    fn a_nonce_has_one_spelling() {
        for wrong in [
            "",
            "AAAA",
            &"A".repeat(42),
            &"A".repeat(44),
            &"=".repeat(43),
        ] {
            assert_eq!(Nonce::parse(wrong), Err(InvalidNonce), "{wrong}");
        }
        // The last character carries two bits that belong to no byte.
        assert!(Nonce::parse(&format!("{}B", "A".repeat(42))).is_err());
    }
}
