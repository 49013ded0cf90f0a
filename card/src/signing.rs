//! The signatures of a card, as far as they can be told without keys.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::AgentCard;

/// At most this many characters of a header member are taken over.
const MAX_HEADER_CHARS: usize = 1_024;

/// What is known about one signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// In the form of a JWS; nobody has looked for its key.
    Unverified,
    /// Not in the form of a JWS (1.0 §8.4).
    Malformed,
}

impl Verdict {
    /// The name used in signing summaries.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Unverified => "unverified",
            Verdict::Malformed => "malformed",
        }
    }
}

/// One entry of a card's `signatures`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignatureEntry {
    /// The key's identifier, from the protected header or else the unprotected one.
    pub kid: Option<String>,
    /// The algorithm, from the protected header only.
    pub alg: Option<String>,
    /// Where the protected header says that keys are found. A claim: never fetched without a guard.
    pub jku: Option<String>,
    /// What is known about it.
    pub verdict: Verdict,
}

/// The state of a card's signatures as a whole; the best entry counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureState {
    /// No entry in the form of a JWS.
    Unsigned,
    /// One verifies with a key that is bound to the domain or enrolled.
    Valid,
    /// One verifies, with a key that is bound to nothing.
    Untrusted,
    /// None verifies, and at least one is wrong, malformed or refused.
    Invalid,
    /// There are signatures, and no key to be had.
    Unknown,
}

impl SignatureState {
    /// Every state.
    pub const ALL: [SignatureState; 5] = [
        SignatureState::Unsigned,
        SignatureState::Valid,
        SignatureState::Untrusted,
        SignatureState::Invalid,
        SignatureState::Unknown,
    ];

    /// The name used in JSON, such as `unsigned`.
    pub fn as_str(self) -> &'static str {
        match self {
            SignatureState::Unsigned => "unsigned",
            SignatureState::Valid => "valid",
            SignatureState::Untrusted => "untrusted",
            SignatureState::Invalid => "invalid",
            SignatureState::Unknown => "unknown",
        }
    }
}

impl fmt::Display for SignatureState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text names no signature state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no signature state is called {0:?}")]
pub struct UnknownSignatureState(pub String);

impl FromStr for SignatureState {
    type Err = UnknownSignatureState;

    /// Reads the name that [`SignatureState::as_str`] gives.
    fn from_str(name: &str) -> Result<Self, UnknownSignatureState> {
        SignatureState::ALL
            .into_iter()
            .find(|state| state.as_str() == name)
            .ok_or_else(|| UnknownSignatureState(name.to_owned()))
    }
}

/// The entries of the card's `signatures`, in its order.
pub fn signature_entries(card: &AgentCard) -> Vec<SignatureEntry> {
    card.signatures.iter().map(entry).collect()
}

/// Reads one entry. It has JWS form when `protected` is the base64url of a JSON object and `signature` is
/// base64url and not empty, both without padding (RFC 7515 §7.2.2).
fn entry(value: &Value) -> SignatureEntry {
    let decoded = |name: &str| {
        let text = value.get(name)?.as_str().filter(|text| !text.is_empty())?;
        URL_SAFE_NO_PAD.decode(text).ok()
    };
    let protected = decoded("protected")
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        .filter(Value::is_object);
    let jws = protected.is_some() && decoded("signature").is_some();
    let header = |source: Option<&Value>, name: &str| -> Option<String> {
        let text = source?.get(name)?.as_str()?;
        Some(text.chars().take(MAX_HEADER_CHARS).collect())
    };
    SignatureEntry {
        kid: header(protected.as_ref(), "kid").or_else(|| header(value.get("header"), "kid")),
        alg: header(protected.as_ref(), "alg"),
        jku: header(protected.as_ref(), "jku"),
        verdict: if jws {
            Verdict::Unverified
        } else {
            Verdict::Malformed
        },
    }
}

/// What the signatures say, apart from their bytes: one line `verdict alg kid` for each, sorted and
/// without repetitions, with `alg` and `kid` as JSON texts or `null`. Empty when there are none.
///
/// Cards that an agent signs anew at every start have equal summaries.
pub fn signing_summary(card: &AgentCard) -> String {
    let lines: BTreeSet<String> = signature_entries(card)
        .into_iter()
        .map(|entry| {
            let (alg, kid) = (Value::from(entry.alg), Value::from(entry.kid));
            format!("{} {alg} {kid}", entry.verdict.as_str())
        })
        .collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// The state as far as it can be told without keys: [`SignatureState::Unsigned`] or
/// [`SignatureState::Unknown`].
pub fn signature_state(card: &AgentCard) -> SignatureState {
    let entries = signature_entries(card);
    if entries
        .iter()
        .any(|entry| entry.verdict == Verdict::Unverified)
    {
        SignatureState::Unknown
    } else {
        SignatureState::Unsigned
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jws(header: &Value, signature: &str) -> Value {
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        json!({"protected": protected, "signature": signature})
    }

    fn card(signatures: Vec<Value>) -> AgentCard {
        AgentCard {
            name: "A".into(),
            signatures,
            ..AgentCard::default()
        }
    }

    #[test]
    fn signature_bytes_and_order_do_not_change_the_summary() {
        let one = json!({"alg": "ES256", "kid": "k 1", "jku": "https://a.example/keys"});
        let two = json!({"alg": "EdDSA", "kid": "k2"});
        let first = signing_summary(&card(vec![jws(&one, "AAAA"), jws(&two, "BBBB")]));
        let again = signing_summary(&card(vec![jws(&two, "CCCC"), jws(&one, "DDDD")]));
        assert_eq!(first, again);
        assert_eq!(
            first,
            "unverified \"ES256\" \"k 1\"\nunverified \"EdDSA\" \"k2\""
        );
        let other = signing_summary(&card(vec![jws(&one, "AAAA")]));
        assert_ne!(first, other);
        assert_eq!(signing_summary(&card(vec![])), "");
    }

    #[test]
    fn what_is_no_jws_leaves_the_card_unsigned() {
        for entry in [
            json!({"proofValue": "z3Fx"}),
            json!("text"),
            json!({"protected": "!", "signature": "AAAA"}),
            json!({"protected": URL_SAFE_NO_PAD.encode("[]"), "signature": "AAAA"}),
            jws(&json!({"alg": "ES256"}), ""),
            jws(&json!({"alg": "ES256"}), "AA=="),
        ] {
            let card = card(vec![entry.clone()]);
            assert_eq!(signature_state(&card), SignatureState::Unsigned, "{entry}");
            assert!(signing_summary(&card).starts_with("malformed "), "{entry}");
        }
        assert_eq!(signature_state(&card(vec![])), SignatureState::Unsigned);
        let signed = card(vec![json!(1), jws(&json!({"alg": "ES256"}), "AAAA")]);
        assert_eq!(signature_state(&signed), SignatureState::Unknown);
    }

    #[test]
    fn the_key_may_be_named_in_the_unprotected_header() {
        let mut entry = jws(&json!({"alg": "ES256"}), "AAAA");
        entry["header"] = json!({"kid": "k", "alg": "none"});
        let read = signature_entries(&card(vec![entry]));
        assert_eq!(read[0].kid.as_deref(), Some("k"));
        assert_eq!(read[0].alg.as_deref(), Some("ES256"));
    }

    #[test]
    fn states_are_named_as_the_contract_names_them() {
        for state in SignatureState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("Valid".parse::<SignatureState>().is_err());
    }
}
