//! The target of a hook: its URL, which is `mailto:` for mails, and the keys that sign its deliveries, sealed for the
//! hook, so that the database alone reveals neither.

use a2a_registry_domain::hook::HookFormat;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::hook;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::mailer::is_mail_address;
use crate::sealing::Sealer;

/// How long deliveries are signed with the keys before a rotation too.
pub const ROTATION_OVERLAP: i64 = DAY;
/// Sets of keys that sign at most: a second rotation ends the keys before the first.
const MAX_KEY_SETS: usize = 2;
/// Bytes of each key.
const KEY_BYTES: usize = 32;
const CHALLENGE_BYTES: usize = 16;
const MAIL_SCHEME: &str = "mailto";

/// What is sealed of a hook.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTarget {
    pub url: Url,
    /// The newest first; none for mails.
    keys: Vec<SigningKeys>,
    /// What the receiver must return to confirm the hook, and what the links in mails have in them.
    pub challenge: String,
}

/// The keys of both schemes of Standard Webhooks, in Base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SigningKeys {
    hmac: String,
    ed25519_seed: String,
    /// When they sign no longer; null for the newest.
    until: Option<i64>,
}

/// The path of a URL can be a secret too.
impl std::fmt::Debug for HookTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HookTarget({})", self.origin())
    }
}

impl SigningKeys {
    fn generate(entropy: &dyn Entropy) -> Self {
        let key = || {
            let mut key = [0; KEY_BYTES];
            entropy.fill(&mut key);
            BASE64.encode(&key)
        };
        Self {
            hmac: key(),
            ed25519_seed: key(),
            until: None,
        }
    }

    fn ed25519_pair(&self) -> Option<Ed25519KeyPair> {
        let seed = BASE64.decode(self.ed25519_seed.as_bytes()).ok()?;
        Ed25519KeyPair::from_seed_unchecked(&seed).ok()
    }

    /// The signatures of a content, separated by a space.
    fn sign(&self, content: &[u8]) -> Option<String> {
        let key = BASE64.decode(self.hmac.as_bytes()).ok()?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), content);
        let signature = self.ed25519_pair()?.sign(content);
        Some(format!(
            "v1,{} v1a,{}",
            BASE64.encode(tag.as_ref()),
            BASE64.encode(signature.as_ref())
        ))
    }
}

impl HookTarget {
    pub fn new(url: Url, entropy: &dyn Entropy) -> Self {
        let mut challenge = [0; CHALLENGE_BYTES];
        entropy.fill(&mut challenge);
        let is_signed = url.scheme() != MAIL_SCHEME;
        Self {
            url,
            keys: is_signed
                .then(|| SigningKeys::generate(entropy))
                .into_iter()
                .collect(),
            challenge: BASE64URL_NOPAD.encode(&challenge),
        }
    }

    /// Adds new keys. Those before sign until the overlap ends, so that no delivery is lost in between.
    pub fn rotate_keys(&mut self, now: Timestamp, entropy: &dyn Entropy) {
        for keys in &mut self.keys {
            let end = now.plus_micros(ROTATION_OVERLAP).0;
            keys.until = Some(keys.until.unwrap_or(end).min(end));
        }
        self.keys.insert(0, SigningKeys::generate(entropy));
        self.keys.truncate(MAX_KEY_SETS);
    }

    /// The newest secret and public key, as Standard Webhooks writes them; `None` for mails.
    pub fn shown_keys(&self) -> Option<(String, String)> {
        let newest = self.keys.first()?;
        let public = newest.ed25519_pair()?;
        let public = BASE64.encode(public.public_key().as_ref());
        Some((format!("whsec_{}", newest.hmac), format!("whpk_{public}")))
    }

    /// The header `webhook-signature` for a message (Standard Webhooks): one signature of each scheme for each set of
    /// keys.
    pub fn sign_message(&self, id: &str, at: Timestamp, body: &[u8]) -> Option<String> {
        let mut content = format!("{id}.{}.", at.0.div_euclid(1_000_000)).into_bytes();
        content.extend_from_slice(body);
        let valid = self.keys.iter();
        let valid = valid.filter(|keys| keys.until.is_none_or(|until| until > at.0));
        let signatures: Option<Vec<String>> = valid.map(|keys| keys.sign(&content)).collect();
        Some(signatures?.join(" "))
    }

    /// The address, if mails are sent.
    pub fn mail_address(&self) -> Option<&str> {
        (self.url.scheme() == MAIL_SCHEME).then(|| self.url.path())
    }

    /// Scheme, host and port; of a mail address the domain.
    pub fn origin(&self) -> String {
        match self
            .mail_address()
            .and_then(|address| address.split_once('@'))
        {
            Some((_, domain)) => format!("{MAIL_SCHEME}:***@{domain}"),
            None => self.url.origin().ascii_serialization(),
        }
    }

    /// Seals the target for a hook.
    pub fn seal(&self, sealer: &Sealer, hook: Uuid, entropy: &dyn Entropy) -> Result<String> {
        let failure = || AppError::internal("the target of a hook could not be sealed");
        let text = serde_json::to_vec(self).map_err(|_| failure())?;
        let sealed = sealer.seal(&hook_place(hook), &text, entropy);
        sealed.ok_or_else(failure)
    }

    /// Opens the target of a hook; `None` without the key that has sealed it.
    pub fn open(context: &AppContext, row: &hook::Model) -> Option<Self> {
        Self::open_with(context.secrets.as_ref()?, row)
    }

    /// Opens the target of a hook with this key.
    pub fn open_with(sealer: &Sealer, row: &hook::Model) -> Option<Self> {
        let text = sealer.open(&hook_place(row.id), &row.sealed)?;
        serde_json::from_slice(&text).ok()
    }
}

/// Checks where a hook shall send, and returns its URL and the format of what is sent.
pub fn check_target(
    context: &AppContext,
    url: &str,
    format: Option<HookFormat>,
) -> Result<(Url, HookFormat)> {
    let Some(address) = url.strip_prefix("mailto:") else {
        if format == Some(HookFormat::Mail) {
            let detail = "mails need an address, such as mailto:ann@example.com";
            return Err(AppError::invalid("/url", detail));
        }
        let url = context.network.webhook_fetcher.guard().check_url(url);
        let url = url.map_err(|refusal| AppError::invalid("/url", refusal.to_string()))?;
        return Ok((url, format.unwrap_or(HookFormat::CloudEvents)));
    };
    if format.is_some_and(|format| format != HookFormat::Mail) {
        let detail = "a mail address has the format mail; leave the format out";
        return Err(AppError::invalid("/url", detail));
    }
    if context.network.mailer.is_none() {
        return Err(AppError::conflict(
            "This registry sends no mails. The operator must set mail.host.",
        ));
    }
    let parsed = Url::parse(url).ok().filter(|_| is_mail_address(address));
    let detail = "this is not a mail address, such as mailto:ann@example.com";
    let parsed = parsed.ok_or_else(|| AppError::invalid("/url", detail))?;
    Ok((parsed, HookFormat::Mail))
}

/// Where a target belongs. It is part of what is sealed, so that it opens for no other hook.
fn hook_place(hook: Uuid) -> String {
    format!("target of hook {hook}")
}

/// The key that seals targets.
pub fn require_hook_key(context: &AppContext) -> Result<&Sealer> {
    context.secrets.as_ref().ok_or_else(|| {
        AppError::conflict(
            "This registry has no key to encrypt the targets of hooks with. The operator must set \
             secrets.key_file, or put the file back.",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use a2a_registry_domain::identifiers::SystemEntropy;
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    fn target() -> HookTarget {
        let url = Url::parse("https://a.example/hook?key=hush").unwrap();
        HookTarget::new(url, &SystemEntropy::default())
    }

    /// Whether a receiver with these keys accepts a header, by the specification of Standard Webhooks.
    fn accepts(keys: &(String, String), header: &str, content: &[u8]) -> (bool, bool) {
        let secret = keys.0.strip_prefix("whsec_").unwrap();
        let secret = BASE64.decode(secret.as_bytes()).unwrap();
        let public = keys.1.strip_prefix("whpk_").unwrap();
        let public = BASE64.decode(public.as_bytes()).unwrap();
        let (mut by_secret, mut by_public) = (false, false);
        for one in header.split(' ') {
            let (version, signature) = one.split_once(',').unwrap();
            let signature = BASE64.decode(signature.as_bytes()).unwrap();
            match version {
                "v1" => {
                    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
                    by_secret |= hmac::verify(&key, content, &signature).is_ok();
                }
                "v1a" => {
                    let key = UnparsedPublicKey::new(&ED25519, &public);
                    by_public |= key.verify(content, &signature).is_ok();
                }
                other => panic!("{other}"),
            }
        }
        (by_secret, by_public)
    }

    #[test]
    fn receivers_accept_the_keys_before_and_after_a_rotation() {
        let entropy = SystemEntropy::default();
        let (start, mut target) = (Timestamp(1_795_000_000_500_000), target());
        let first = target.shown_keys().unwrap();
        let header = target.sign_message("m1", start, b"{}").unwrap();
        let content = b"m1.1795000000.{}";
        assert_eq!(accepts(&first, &header, content), (true, true));
        assert_eq!(
            accepts(&first, &header, b"m1.1795000000.{ }"),
            (false, false)
        );
        target.rotate_keys(start, &entropy);
        let second = target.shown_keys().unwrap();
        assert_ne!(first, second);
        let header = target.sign_message("m1", start, b"{}").unwrap();
        for keys in [&first, &second] {
            assert_eq!(accepts(keys, &header, content), (true, true));
        }
        let later = start.plus_micros(ROTATION_OVERLAP);
        let header = target.sign_message("m1", later, b"{}").unwrap();
        let content = b"m1.1795086400.{}";
        assert_eq!(accepts(&first, &header, content), (false, false));
        assert_eq!(accepts(&second, &header, content), (true, true));
        target.rotate_keys(start, &entropy);
        target.rotate_keys(start, &entropy);
        assert_eq!(target.keys.len(), MAX_KEY_SETS);
    }

    #[test]
    fn a_mail_address_has_no_keys_and_is_not_shown() {
        let url = Url::parse("mailto:ann+agents@example.com").unwrap();
        let target = HookTarget::new(url, &SystemEntropy::default());
        assert_eq!(target.mail_address(), Some("ann+agents@example.com"));
        assert_eq!(target.shown_keys(), None);
        assert_eq!(target.origin(), "mailto:***@example.com");
        assert_eq!(format!("{target:?}"), "HookTarget(mailto:***@example.com)");
    }

    #[test]
    fn a_target_opens_for_its_hook_alone_and_is_shown_by_nothing() {
        let entropy = SystemEntropy::default();
        let (sealer, target) = (Sealer::new(&[7; 32]).unwrap(), target());
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let sealed = target.seal(&sealer, own, &entropy).unwrap();
        assert!(sealer.open(&hook_place(other), &sealed).is_none());
        let opened = sealer.open(&hook_place(own), &sealed).unwrap();
        assert_eq!(
            serde_json::from_slice::<HookTarget>(&opened).unwrap(),
            target
        );
        assert_eq!(target.origin(), "https://a.example");
        let secret = target.shown_keys().unwrap().0;
        let secret = secret.strip_prefix("whsec_").unwrap();
        let shown = format!("{target:?}");
        assert!(
            !shown.contains(secret) && !shown.contains("hush"),
            "{shown}"
        );
    }
}
