//! The keys that a domain's owner names for its cards.

use serde_json::{Value, json};

use crate::api::DomainView;
use crate::api::limits::MAX_KID;
use crate::app::error::ErrorKind;
use crate::app::ledger::Ledger;
use crate::app::{Account, App, AppError, Caller};
use crate::domain::event::EventKind;
use crate::store::entity::{domain, enrolled_key};
use crate::store::{Write, agents, ownership};

/// Keys named for one domain.
const MAX_ENROLLED: usize = 20;

impl App {
    /// Names a key that signs the cards of a domain. Cards signed by it verify whether or not they say where
    /// their keys lie, and stand one step higher (docs/model.md#trust).
    ///
    /// # Errors
    /// As [`App::domain_patch`]; `Invalid` for what is no public key; `LimitReached`.
    pub async fn key_enrol(
        &self,
        caller: &Caller,
        domain: &str,
        kid: &str,
        jwk: &Value,
    ) -> Result<DomainView, AppError> {
        let seen = self.domain_visible(caller, domain).await?;
        let account = self.may_keep(caller, &seen).await?;
        let (jwk, thumbprint) = public_key(kid, jwk)?;
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &seen).await?;
        let known = ownership::enrolled_of(&write, &[row.id]).await?;
        if known.len() >= MAX_ENROLLED && known.iter().all(|key| key.kid != kid) {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!(
                    "{} has {MAX_ENROLLED} keys, as many as it may; withdraw one first.",
                    row.name
                ),
            ));
        }
        let now = self.now();
        write
            .key_enrol(enrolled_key::Model {
                id: 0,
                domain_id: row.id,
                kid: kid.to_owned(),
                thumbprint: thumbprint.clone(),
                jwk,
                actor: account.name.clone(),
                created_at: now.0,
            })
            .await?;
        let data = json!({"key_enrolled": kid, "thumbprint": thumbprint});
        self.keys_have_changed(write, &row, account, data).await?;
        self.domain_view(caller, row.id).await
    }

    /// Takes a named key back.
    ///
    /// # Errors
    /// As [`App::key_enrol`]; `NotFound` where there is no such key.
    pub async fn key_withdraw(
        &self,
        caller: &Caller,
        domain: &str,
        kid: &str,
    ) -> Result<(), AppError> {
        let seen = self.domain_visible(caller, domain).await?;
        let account = self.may_keep(caller, &seen).await?;
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &seen).await?;
        if !write.key_withdraw(row.id, kid).await? {
            return Err(AppError::not_found("key"));
        }
        let data = json!({"key_withdrawn": kid});
        self.keys_have_changed(write, &row, account, data).await
    }

    /// Tells of it, shows every agent of the domain anew, judges the kept versions of their cards anew, and has the
    /// cards fetched whole.
    async fn keys_have_changed(
        &self,
        write: Write,
        row: &domain::Model,
        account: &Account,
        data: Value,
    ) -> Result<(), AppError> {
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
        let agents: Vec<_> = agents::agents_of(&write, &[row.id]).await?;
        let agents: Vec<_> = agents.into_iter().map(|agent| agent.id).collect();
        for agent in &agents {
            let data = json!({"domain_keys": true});
            ledger.agent_event(EventKind::AgentUpdated, *agent, &account.name, data);
        }
        let marked = write.versions_judge_anew(&agents, None).await?;
        write.sources_want_full(row.id).await?;
        if row.opted_out_by.is_none() {
            write
                .domain_make_due(row.id, self.now().0.max(row.not_before))
                .await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_act(&touched).await;
        self.wake.visits.notify_one();
        if marked > 0 {
            // Most domains have few versions: their verdicts are those of the new keys once this answers.
            if let Err(error) = self.derive_again().await {
                tracing::warn!(%error, "versions are judged anew later");
            }
            self.wake.derive.notify_one();
        }
        Ok(())
    }
}

/// A public key as it is kept, under that name, and its thumbprint.
fn public_key(kid: &str, jwk: &Value) -> Result<(String, String), AppError> {
    let wrong = |detail: &str| AppError::invalid("", detail);
    if kid.is_empty() || kid.len() > MAX_KID || kid.chars().any(char::is_control) {
        return Err(wrong("A key's name has 1 to 200 characters."));
    }
    let mut jwk = jwk
        .as_object()
        .cloned()
        .ok_or_else(|| wrong("A key is one public key as a JWK (RFC 7517)."))?;
    jwk.insert("kid".into(), kid.into());
    let set = json!({"keys": [jwk]}).to_string();
    let thumbprint = a2a_card::KeySet::from_jwks(set.as_bytes())
        .ok()
        .and_then(|set| set.thumbprints().next().map(str::to_owned));
    let thumbprint = thumbprint.ok_or_else(|| {
        wrong(
            "This is no public key to verify with: Ed25519, P-256, P-384, or RSA of 2048 bits at least, as a \
             JWK without its private members.",
        )
    })?;
    Ok((Value::Object(jwk).to_string(), thumbprint))
}
