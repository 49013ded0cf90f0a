//! Credentials of sources: sealed for one source and origin, opened for the crawler, and removed with the owner who
//! has set them.

use a2a_crawler::fetch::{ClientRegistration, InvalidCredential, SourceCredential};
use a2a_registry_api::NewSourceCredential;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_domain::source::CredentialKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::entity::{domain, source_credential};
use a2a_registry_store::source_credentials::source_credentials_by_domain;
use serde_json::json;
use url::Url;

use crate::commit::change_set::ChangeSet;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::sealing::Sealer;

const OTHER_ORIGIN: &str =
    "the credential of this source is for another origin, so nothing was fetched; set it again";
const NO_KEY: &str = "the registry has no key for the credential of this source, so nothing was fetched; the operator \
                      must put the file of secrets.key_file back, or the credential must be set again";
const UNUSABLE: &str =
    "the credential of this source is no longer permitted, so nothing was fetched; set it again";

/// Where a credential belongs. It is part of what is sealed, so that it opens nowhere else.
fn credential_place(source: i64, origin: &str) -> String {
    format!("credential of source {source} at {origin}")
}

/// The origin of a source, as credentials are bound to it.
pub fn credential_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Seals a credential for this source and origin.
pub fn seal_credential(
    sealer: &Sealer,
    entropy: &dyn Entropy,
    (source, origin): (i64, &str),
    credential: &NewSourceCredential,
) -> Result<String> {
    let failure = || AppError::internal("a credential could not be sealed");
    let text = serde_json::to_vec(credential).map_err(|_| failure())?;
    let sealed = sealer.seal(&credential_place(source, origin), &text, entropy);
    sealed.ok_or_else(failure)
}

/// Opens a credential for the source to which its row belongs, at this origin.
fn unseal_credential(
    sealer: &Sealer,
    row: &source_credential::Model,
    origin: &str,
) -> Option<NewSourceCredential> {
    let text = sealer.open(&credential_place(row.source_id, origin), &row.sealed)?;
    serde_json::from_slice(&text).ok()
}

/// Whether this key opens a credential.
pub fn can_open_credential(sealer: &Sealer, row: &source_credential::Model) -> bool {
    unseal_credential(sealer, row, &row.origin).is_some()
}

/// The credential in the form that the crawler sends to the source at this URL. `key` distinguishes it from every other
/// one.
pub fn parse_credential(
    key: i64,
    url: &Url,
    credential: &NewSourceCredential,
    token_hosts: &[String],
) -> std::result::Result<SourceCredential, InvalidCredential> {
    let name = credential.name.as_deref().unwrap_or_default();
    let secret = credential.secret.reveal();
    match credential.kind {
        CredentialKind::Bearer => SourceCredential::bearer(key, url, secret),
        CredentialKind::Basic => SourceCredential::basic(key, url, name, secret),
        CredentialKind::Header => SourceCredential::header(key, url, name, secret),
        CredentialKind::ClientCredentials => {
            let token_url = credential.token_url.as_deref().unwrap_or_default();
            let token_url = Url::parse(token_url).map_err(|_| InvalidCredential::TokenUrl)?;
            let client = ClientRegistration {
                token_url: &token_url,
                client_id: name,
                client_secret: secret,
                scope: credential.scope.as_deref(),
            };
            SourceCredential::client(key, url, client, token_hosts)
        }
    }
}

/// Whether the owner who has set a credential, or for whom an admin has, still owns the domain.
pub fn is_credential_in_force(
    row: &source_credential::Model,
    domain: &domain::Model,
    now: Timestamp,
) -> bool {
    row.domain_id == domain.id
        && row.generation == domain.generation
        && row.owner_id == domain.domain_owner_at(now)
}

/// The credential of a source among these, or that of the catalog that lists it.
pub fn find_source_credential<'a>(
    credentials: impl Iterator<Item = &'a source_credential::Model> + Clone,
    source: i64,
    catalog: Option<i64>,
) -> Option<&'a source_credential::Model> {
    let of = |id: i64| credentials.clone().find(|row| row.source_id == id);
    of(source).or_else(|| catalog.and_then(of))
}

/// Opens a credential for a request to this URL; `None` if it is that of a catalog on another origin.
pub fn open_credential(
    context: &AppContext,
    row: &source_credential::Model,
    source: i64,
    url: &Url,
) -> Option<SourceCredential> {
    let unusable = |reason| Some(SourceCredential::unusable(row.id, url, reason));
    let origin = credential_origin(url);
    if origin != row.origin {
        return match row.source_id == source {
            true => unusable(OTHER_ORIGIN),
            false => None,
        };
    }
    let sealer = context.secrets.as_ref();
    let Some(opened) = sealer.and_then(|sealer| unseal_credential(sealer, row, &origin)) else {
        return unusable(NO_KEY);
    };
    let config = context.config();
    match parse_credential(row.id, url, &opened, &config.crawler.token_hosts) {
        Ok(credential) => Some(credential),
        Err(_) => unusable(UNUSABLE),
    }
}

/// Removes those credentials of a domain whose owner no longer owns it.
pub async fn remove_ended_credentials(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    domain: &domain::Model,
    actor: &str,
) -> Result<()> {
    let now = change_set.now();
    let has_ended = |row: &source_credential::Model| !is_credential_in_force(row, domain, now);
    let reason = "the owner of the domain has changed";
    remove_credentials(write, change_set, domain, (actor, reason), has_ended).await?;
    Ok(())
}

/// Removes the credentials of a domain that meet a condition, by `actor` and for this reason. Returns whether there were
/// any.
pub async fn remove_credentials(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    domain: &domain::Model,
    (actor, reason): (&str, &str),
    ends: impl Fn(&source_credential::Model) -> bool,
) -> Result<bool> {
    let mut is_any_removed = false;
    for row in source_credentials_by_domain(write, &[domain.id]).await? {
        if ends(&row) {
            is_any_removed = true;
            write.delete_source_credential(&row).await?;
            let data = json!({"origin": row.origin, "kind": row.kind, "reason": reason});
            change_set.add_event(
                EventKind::DomainCredentialRemoved,
                &domain.name,
                actor,
                data,
            );
        }
    }
    Ok(is_any_removed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::identifiers::SystemEntropy;

    use super::*;

    fn row(source_id: i64, origin: &str, sealed: String) -> source_credential::Model {
        source_credential::Model {
            id: 1,
            source_id,
            domain_id: 1,
            kind: CredentialKind::Bearer.into(),
            origin: origin.into(),
            sealed,
            owner_id: None,
            generation: 1,
            set_by: "ann".into(),
            set_at: 0,
        }
    }

    /// Whoever can write the database can swap rows and edit columns, and still gets no secret sent anywhere else.
    #[test]
    fn what_is_sealed_opens_for_its_source_and_origin_alone() {
        let (entropy, sealer) = (SystemEntropy::default(), Sealer::new(&[7; 32]).unwrap());
        let credential = NewSourceCredential {
            kind: CredentialKind::Bearer,
            name: None,
            secret: "hush-7".to_owned().into(),
            token_url: None,
            scope: None,
        };
        let origin = "https://a.example";
        let sealed = seal_credential(&sealer, &entropy, (7, origin), &credential).unwrap();
        assert!(!sealed.contains("hush"));
        let opens = |row: &source_credential::Model| can_open_credential(&sealer, row);
        let own = row(7, origin, sealed.clone());
        assert_eq!(unseal_credential(&sealer, &own, origin), Some(credential));
        assert!(opens(&own));
        assert!(!opens(&row(8, origin, sealed.clone())));
        for other in [
            "http://a.example",
            "https://a.example:8443",
            "https://b.example",
        ] {
            assert!(!opens(&row(7, other, sealed.clone())), "{other}");
            assert_eq!(unseal_credential(&sealer, &own, other), None, "{other}");
        }
        let other_key = Sealer::new(&[8; 32]).unwrap();
        assert!(!can_open_credential(&other_key, &own));
        assert!(!opens(&row(7, origin, String::new())));
    }
}
