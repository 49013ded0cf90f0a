//! What the owner of a domain may do with it and its agents (model.md section 7).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use url::Url;

use crate::api::{Agent, AgentPatch, DomainPatch, DomainView, Transfer, Vouch};
use crate::app::error::ErrorKind;
use crate::app::ledger::Ledger;
use crate::app::reviews::check_reason;
use crate::app::{Account, App, AppError, Caller};
use crate::domain::event::EventKind;
use crate::domain::lifecycle::{Hold, Visibility};
use crate::domain::role::Permission;
use crate::store::entity::{agent, domain, enrolled_key};
use crate::store::{Write, accounts, agents, domains, ownership};

/// Characters of a contact.
const MAX_CONTACT: usize = 300;
/// Labels of an agent.
const MAX_LABELS: usize = 20;
/// Characters of a label's key and of its value.
const MAX_LABEL: usize = 63;
/// Keys named for one domain.
const MAX_ENROLLED: usize = 20;
/// Bytes of a key's name.
const MAX_KID: usize = 200;

impl App {
    /// Changes how a domain is looked after: its contact, and whether it is listed at all.
    ///
    /// # Errors
    /// `Forbidden` for whoever neither owns nor curates it; `Conflict` while it is disputed; `Invalid`;
    /// `NotFound`.
    pub async fn domain_patch(
        &self,
        caller: &Caller,
        domain: &str,
        patch: &DomainPatch,
    ) -> Result<DomainView, AppError> {
        let seen = self.domain_visible(caller, domain).await?;
        let account = may_keep(caller, &seen)?;
        let contact = patch.contact.as_deref().map(contact).transpose()?;
        let write = self.store.write().await?;
        let mut row = self.domain_locked(&write, &seen).await?;
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        if let Some(contact) = contact {
            row.contact = contact;
        }
        match patch.opt_out {
            Some(true) => row.opted_out_by = Some("owner".into()),
            Some(false) if row.opted_out_by.as_deref() == Some("record") => {
                return Err(AppError::new(
                    ErrorKind::Conflict,
                    "The domain opts out by a record of its own; remove policy=none from it.",
                ));
            }
            Some(false) => row.opted_out_by = None,
            None => {}
        }
        let data = json!({"contact": row.contact, "opt_out": row.opted_out_by});
        ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
        self.follow_proofs(&write, &mut ledger, &mut row, &account.name)
            .await?;
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.wake.visits.notify_one();
        self.domain_view(caller, row.id).await
    }

    /// Gives a domain to another account. What has proved it goes on counting as the account's that proved it,
    /// so the new one has to place a record of its own.
    ///
    /// # Errors
    /// As [`App::domain_patch`]; `Invalid` for an account that there is not.
    pub async fn domain_transfer(
        &self,
        caller: &Caller,
        domain: &str,
        transfer: &Transfer,
    ) -> Result<DomainView, AppError> {
        let seen = self.domain_visible(caller, domain).await?;
        let account = may_keep(caller, &seen)?;
        let write = self.store.write().await?;
        let mut row = self.domain_locked(&write, &seen).await?;
        let to = accounts::account_by_name(&write, &transfer.account)
            .await?
            .ok_or_else(|| AppError::invalid("/account", "There is no account of that name."))?;
        let from = row.owner_id.or(row.account_id);
        row.account_id = Some(to.id);
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        let data = json!({"transferred_to": to.name});
        ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
        // The one who gives it away claims it no more; a record left in place is no claim.
        for mut proof in domains::proofs_of(&write, &[row.id]).await? {
            if proof.account_id.is_some() && proof.account_id == from && from != Some(to.id) {
                proof.ended_at = Some(ledger.now().0);
                write.proof_update(&proof).await?;
                let data = json!({"method": proof.method, "account": proof.account_id, "reason": "transferred"});
                ledger.event(EventKind::DomainProofEnded, &row.name, &account.name, data);
            }
        }
        if let Some(from) = from {
            write.challenge_end(row.id, from).await?;
        }
        if super::is_provable(&row) {
            self.challenge(&write, row.id, to.id).await?;
        }
        self.follow_proofs(&write, &mut ledger, &mut row, &account.name)
            .await?;
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.domain_view(caller, row.id).await
    }

    /// Sets who may find an agent, which its owner may only narrow, and its labels, which curators set.
    ///
    /// # Errors
    /// `Forbidden`, `Conflict`, `Invalid`, `NotFound`.
    pub async fn agent_patch(
        &self,
        caller: &Caller,
        agent: &str,
        patch: &AgentPatch,
    ) -> Result<Agent, AppError> {
        let seen = self.agent_visible(caller, agent).await?;
        let account = self.may_keep_agent(caller, &seen).await?;
        let write = self.store.write().await?;
        let mut state = self.state_of(&write, seen.id).await?;
        let curates = caller.may(Permission::Curate);
        if let Some(visibility) = patch.visibility {
            let now = state
                .agent
                .visibility
                .parse()
                .unwrap_or(Visibility::Restricted);
            if !curates && visibility < now {
                return Err(AppError::new(
                    ErrorKind::Forbidden,
                    format!(
                        "An owner may only narrow who finds an agent; it is {now} now. Ask a curator."
                    ),
                ));
            }
            state.agent.visibility = visibility.as_str().into();
        }
        if let Some(labels) = &patch.labels {
            caller.demand(Permission::Curate)?;
            check_labels(labels)?;
            state.agent.labels = serde_json::to_string(labels).unwrap_or_else(|_| "{}".into());
        }
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        ledger.touch(&mut state);
        let data = json!({"visibility": patch.visibility, "labels": patch.labels});
        ledger.agent_event(EventKind::AgentUpdated, seen.id, &account.name, data);
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.agent_show(caller, &seen.id.to_string()).await
    }

    /// Says that a domain has another owner now: its proofs, challenges, keys and pins end, and every approval is
    /// asked for again.
    ///
    /// # Errors
    /// `Forbidden` for anyone but an admin; `NotFound`; `Invalid` without a reason.
    pub async fn domain_new_generation(
        &self,
        caller: &Caller,
        domain: &str,
        why: &Vouch,
    ) -> Result<DomainView, AppError> {
        let admin = caller.demand(Permission::Administer)?;
        check_reason(&why.reason)?;
        let seen = self.domain_visible(caller, domain).await?;
        let now = self.now();
        let write = self.store.write().await?;
        let mut row = self.domain_locked(&write, &seen).await?;
        for mut proof in domains::proofs_of(&write, &[row.id]).await? {
            proof.ended_at = Some(now.0);
            write.proof_update(&proof).await?;
        }
        for challenge in ownership::challenges_of(&write, &[row.id]).await? {
            write.challenge_end(row.id, challenge.account_id).await?;
        }
        for key in ownership::enrolled_of(&write, &[row.id]).await? {
            write.key_withdraw(row.id, &key.kid).await?;
        }
        row.generation += 1;
        row.generation_since = now.0;
        row.state = "unverified".into();
        row.owner_id = None;
        row.dns_proved = false;
        row.contact = None;
        row.lapsed_at = None;
        row.check_due_at = row.check_due_at.map(|_| now.0);
        write.domain_update(&row).await?;
        let mut ledger = Ledger::new(now, self.entropy.as_ref());
        let data = json!({"generation": row.generation, "reason": why.reason});
        ledger.event(EventKind::DomainGeneration, &row.name, &admin.name, data);
        for agent in agents::agents_of(&write, &[row.id]).await? {
            let mut state = self.state_of(&write, agent.id).await?;
            state.agent.pins.clear();
            state.agent.owner_id = state.agent.claimed_by;
            for hold in [Hold::DomainLapsed, Hold::Disputed, Hold::KeyChanged] {
                ledger.lift(&mut state, hold, &admin.name, "a new generation began");
            }
            ledger.touch(&mut state);
            self.ask_again(&write, &mut ledger, &mut state, &admin.name)
                .await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.wake.checks.notify_one();
        self.domain_view(caller, row.id).await
    }

    /// Names a key that signs the cards of a domain. Cards signed by it verify whether or not they say where
    /// their keys lie, and stand one step higher (design, invariant 9).
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
        let account = may_keep(caller, &seen)?;
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
        let account = may_keep(caller, &seen)?;
        let write = self.store.write().await?;
        let row = self.domain_locked(&write, &seen).await?;
        if !write.key_withdraw(row.id, kid).await? {
            return Err(AppError::not_found("key"));
        }
        let data = json!({"key_withdrawn": kid});
        self.keys_have_changed(write, &row, account, data).await
    }

    /// Tells of it, shows every agent of the domain anew, and has its cards fetched whole and judged again.
    async fn keys_have_changed(
        &self,
        write: Write,
        row: &domain::Model,
        account: &Account,
        data: Value,
    ) -> Result<(), AppError> {
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
        for agent in agents::agents_of(&write, &[row.id]).await? {
            let data = json!({"domain_keys": true});
            ledger.agent_event(EventKind::AgentUpdated, agent.id, &account.name, data);
        }
        write.sources_want_full(row.id).await?;
        if row.opted_out_by.is_none() {
            write
                .domain_make_due(row.id, self.now().0.max(row.not_before))
                .await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.wake.visits.notify_one();
        Ok(())
    }

    /// The caller, where it has proved an agent's domain or curates.
    ///
    /// # Errors
    /// `Unauthenticated`, `Forbidden`, `Conflict` while the domain is disputed.
    pub(in crate::app) async fn may_keep_agent<'a>(
        &self,
        caller: &'a Caller,
        agent: &agent::Model,
    ) -> Result<&'a Account, AppError> {
        let row = domains::domains_by_ids(&self.store, &[agent.domain_id]).await?;
        let row = row.first().ok_or_else(|| AppError::not_found("agent"))?;
        match &caller.account {
            // Its card proves an agent where its domain is nobody's, disputed ones apart.
            Some(account)
                if row.owner_id.is_none()
                    && row.state != "disputed"
                    && agent.claimed_by == Some(account.id) =>
            {
                Ok(account)
            }
            _ => may_keep(caller, row),
        }
    }
}

/// The caller, where it has proved a domain or curates. A disputed domain is nobody's to change but curators'.
fn may_keep<'a>(caller: &'a Caller, row: &domain::Model) -> Result<&'a Account, AppError> {
    let account = caller.demand(Permission::Register)?;
    if caller.may(Permission::Curate) || row.owner_id == Some(account.id) {
        return Ok(account);
    }
    if row.state == "disputed" && row.account_id == Some(account.id) {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "Two accounts have proved {}; nothing of it changes until that is settled.",
                row.name
            ),
        ));
    }
    Err(AppError::new(
        ErrorKind::Forbidden,
        format!(
            "This needs a proof that {} is yours: `a2a-registry domain verify {0}`.",
            row.name
        ),
    ))
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

/// A contact as it is kept; nothing for an empty one.
fn contact(text: &str) -> Result<Option<String>, AppError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let fits = text.len() <= MAX_CONTACT
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "mailto" | "https"));
    if fits {
        Ok(Some(text.to_owned()))
    } else {
        Err(AppError::invalid(
            "/contact",
            format!("A contact is a mailto: or https: URL of at most {MAX_CONTACT} characters."),
        ))
    }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), AppError> {
    let word = |text: &str| {
        !text.is_empty()
            && text.len() <= MAX_LABEL
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    if labels.len() > MAX_LABELS || !labels.iter().all(|(key, value)| word(key) && word(value)) {
        return Err(AppError::invalid(
            "/labels",
            format!(
                "An agent has at most {MAX_LABELS} labels; keys and values are 1 to {MAX_LABEL} letters, digits, - _ . and /."
            ),
        ));
    }
    Ok(())
}
