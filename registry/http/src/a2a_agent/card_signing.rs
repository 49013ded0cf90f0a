//! The key that signs the registry's own card, and the published key set.
//!
//! Without a key file the registry creates a P-256 key at its first start. The key is stored in the settings of the
//! database, like the page token key: all replicas need the same key, and anyone who can read the database can read
//! everything that the card vouches for. The signed card is stored there too, because every ECDSA signature has
//! different bytes and all replicas must serve the same ones.

use std::path::Path;

use a2a_card::{MAX_KEY_FILE_BYTES, ProtectedHeader, SigningKey};
use a2a_registry_core::config::secret_file::read_secret_bytes;
use a2a_registry_core::config::{A2aConfig, Config};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::StartError;
use a2a_registry_core::process_state::self_agent::SelfAgentCard;
use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::{Store, settings};
use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::KEY_SET_PATH;
use super::card_document::own_card_json;

/// The setting with the private key that the registry created: PKCS#8 in base64.
pub const KEY_SETTING: &str = "a2a_card_key";
pub const CARD_SETTING: &str = "a2a_card";

#[derive(Debug, Serialize, Deserialize)]
pub struct SignedCard {
    /// SHA-256 of the card without signature and of the signing key's identifier.
    pub content: String,
    pub card: String,
    pub signed_at: i64,
}

pub struct NamedSigningKey {
    key: SigningKey,
    kid: String,
}

impl NamedSigningKey {
    fn parse(bytes: &[u8], kid: &str) -> Result<Self, String> {
        let key = SigningKey::from_bytes(bytes, &SystemRandom::new())
            .map_err(|error| error.to_string())?;
        let kid = match kid {
            "" => key.kid().map_or_else(|| key.thumbprint(), str::to_owned),
            kid => kid.to_owned(),
        };
        Ok(Self { key, kid })
    }

    fn from_file(setting: &str, path: &Path, kid: &str) -> Result<Self, StartError> {
        let unusable = |error: String| {
            StartError(format!(
                "the key {} cannot be used: {error}",
                path.display()
            ))
        };
        let bytes =
            read_secret_bytes(setting, path, MAX_KEY_FILE_BYTES as u64).map_err(StartError)?;
        Self::parse(&bytes, kid).map_err(unusable)
    }
}

/// Signs the registry's own card, unless the stored card is still current.
pub async fn sign_own_card(context: &AppContext) -> Result<(), StartError> {
    let config = &context.config();
    if !config.a2a.enabled {
        return Ok(());
    }
    let keys = load_signing_keys(&context.store, &config.a2a).await?;
    let Some(first) = keys.first() else {
        return Ok(());
    };
    let signed = load_or_sign_card(context, first).await?;
    let key_set = key_set_json(&keys);
    let tag = |bytes: &[u8]| format!("\"{}\"", HEXLOWER.encode(digest(&SHA256, bytes).as_ref()));
    let card = SelfAgentCard {
        tag: tag(signed.card.as_bytes()),
        key_set_tag: tag(key_set.as_bytes()),
        signed_at: u64::try_from(signed.signed_at / SECOND).unwrap_or(0),
        bytes: Bytes::from(signed.card),
        key_set: Bytes::from(key_set),
    };
    let _ = context.self_agent.card.set(card);
    Ok(())
}

pub async fn load_signing_keys(
    store: &Store,
    config: &A2aConfig,
) -> Result<Vec<NamedSigningKey>, StartError> {
    let mut keys = Vec::new();
    if let Some(path) = &config.key_file {
        keys.push(NamedSigningKey::from_file(
            "a2a.key_file",
            path,
            &config.kid,
        )?);
    }
    let stored_key = match keys.is_empty() {
        true => Some(ensure_signing_key(store).await?),
        // Cards that this key signed while it was in use stay valid.
        false => settings::setting_value(store, KEY_SETTING).await?,
    };
    if let Some(made) = stored_key {
        let kid = if keys.is_empty() { &config.kid } else { "" };
        let unusable = || {
            StartError(format!(
                "the setting {KEY_SETTING} in the database is invalid"
            ))
        };
        let bytes = BASE64.decode(made.as_bytes()).map_err(|_| unusable())?;
        keys.push(NamedSigningKey::parse(&bytes, kid).map_err(|_| unusable())?);
    }
    for path in &config.old_key_files {
        keys.push(NamedSigningKey::from_file("a2a.old_key_files", path, "")?);
    }
    Ok(keys)
}

/// Loads the key that the registry created, as stored in the setting, or creates it.
async fn ensure_signing_key(store: &Store) -> Result<String, StartError> {
    let fresh =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| StartError("cannot create a key for the registry's own card".into()))?;
    let fresh = BASE64.encode(fresh.as_ref());
    Ok(store.get_or_insert_setting(KEY_SETTING, &fresh).await?)
}

fn key_set_json(keys: &[NamedSigningKey]) -> String {
    let mut jwks: Vec<Value> = Vec::new();
    for named in keys {
        let read: Value =
            serde_json::from_str(&named.key.public_jwks(&named.kid)).unwrap_or_default();
        for key in read["keys"].as_array().into_iter().flatten() {
            if !jwks.contains(key) {
                jwks.push(key.clone());
            }
        }
    }
    json!({ "keys": jwks }).to_string()
}

/// Returns the stored card if its content and key match; otherwise signs a new one and stores it.
pub async fn load_or_sign_card(
    context: &AppContext,
    key: &NamedSigningKey,
) -> Result<SignedCard, StartError> {
    let unsigned = own_card_json(&context.config()).to_string();
    let named = format!("{unsigned}\n{} {}", key.kid, key.key.thumbprint());
    let content = HEXLOWER.encode(digest(&SHA256, named.as_bytes()).as_ref());
    let matching_card = |text: &str| {
        let kept = serde_json::from_str::<SignedCard>(text).ok();
        kept.filter(|kept| kept.content == content)
    };
    let stored_text = settings::setting_value(&context.store, CARD_SETTING).await?;
    if let Some(kept) = stored_text.as_deref().and_then(matching_card) {
        return Ok(kept);
    }
    let signed = SignedCard {
        content: content.clone(),
        card: sign_card(&context.config(), &unsigned, key)?,
        signed_at: context.now().0,
    };
    let text = serde_json::to_string(&signed).unwrap_or_default();
    let is_right = |text: &str| matching_card(text).is_some();
    // Another replica may have stored a card meanwhile. If storing fails, the card is still valid, but its bytes
    // differ from those that other replicas serve.
    match context
        .store
        .get_or_replace_setting(CARD_SETTING, &text, is_right)
        .await
    {
        Ok(text) => Ok(matching_card(&text).unwrap_or(signed)),
        Err(error) => {
            tracing::warn!(%error, "the registry's signed card could not be stored");
            Ok(signed)
        }
    }
}

fn sign_card(config: &Config, unsigned: &str, key: &NamedSigningKey) -> Result<String, StartError> {
    let header = ProtectedHeader {
        kid: key.kid.clone(),
        jku: Some(format!("{}{KEY_SET_PATH}", config.public_url())),
    };
    let signed = a2a_card::sign_card(unsigned.as_bytes(), &key.key, &header, &SystemRandom::new());
    let signed = signed.map_err(|error| error.to_string());
    let text = signed.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
    text.map_err(|error| StartError(format!("the registry's own card cannot be signed: {error}")))
}
