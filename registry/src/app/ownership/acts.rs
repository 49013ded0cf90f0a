//! What the owner of a domain may do with it and its agents (docs/ownership.md#what-an-owner-may-do).

use std::collections::BTreeMap;

use serde_json::json;
use url::Url;

use super::is_disputed;
use crate::api::limits::{MAX_CONTACT, MAX_LABEL, MAX_LABELS};
use crate::api::{Agent, AgentPatch, DomainPatch, DomainView, Transfer};
use crate::app::error::ErrorKind;
use crate::app::ledger::Ledger;
use crate::app::{Account, App, AppError, Caller};
use crate::domain::event::EventKind;
use crate::domain::ownership::OptOut;
use crate::domain::role::Permission;
use crate::store::entity::agent;
use crate::store::{accounts, domains};

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
        let account = self.may_keep(caller, &seen).await?;
        let contact = patch.contact.as_deref().map(contact).transpose()?;
        let (write, mut row, followers) = self.write_with_followers(&seen).await?;
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        if let Some(contact) = contact {
            row.contact = contact;
        }
        match patch.opt_out {
            Some(true) => row.opted_out_by = Some(OptOut::Owner.into()),
            Some(false) if row.opted_out_by()? == Some(OptOut::Record) => {
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
        self.follow_proofs(&write, &mut ledger, &mut row, &followers, &account.name)
            .await?;
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_act(&touched).await;
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
        let account = self.may_keep(caller, &seen).await?;
        let (write, mut row, followers) = self.write_with_followers(&seen).await?;
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
        self.follow_proofs(&write, &mut ledger, &mut row, &followers, &account.name)
            .await?;
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_act(&touched).await;
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
        let (seen, account) = self.agent_to_keep(caller, agent).await?;
        let write = self.store.write().await?;
        let mut state = self.state_of(&write, seen.id).await?;
        let curates = caller.may(Permission::Curate);
        if let Some(visibility) = patch.visibility {
            let now = state.agent.visibility()?;
            if !curates && visibility < now {
                return Err(AppError::new(
                    ErrorKind::Forbidden,
                    format!(
                        "An owner may only narrow who finds an agent; it is {now} now. Ask a curator."
                    ),
                ));
            }
            state.agent.visibility = visibility.into();
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
        self.after_act(&touched).await;
        self.agent_show(caller, &seen.id.to_string()).await
    }

    /// An agent that the caller may change, and the caller: it has proved the agent's domain, or curates.
    ///
    /// # Errors
    /// `NotFound`, `Unauthenticated`, `Forbidden`; `Conflict` for whoever has a part in a dispute of its domain.
    pub(in crate::app) async fn agent_to_keep<'a>(
        &self,
        caller: &'a Caller,
        agent: &str,
    ) -> Result<(agent::Model, &'a Account), AppError> {
        let row = match self.agent_visible(caller, agent).await {
            Ok(row) => row,
            // Withheld for the dispute itself, it is hidden from whoever has not registered it.
            Err(error) => return Err(self.dispute_over(caller, agent).await?.unwrap_or(error)),
        };
        let account = self.may_keep_agent(caller, &row).await?;
        Ok((row, account))
    }

    /// The caller, where it has proved an agent's domain or curates.
    async fn may_keep_agent<'a>(
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
                    && !is_disputed(row)?
                    && agent.claimed_by == Some(account.id) =>
            {
                Ok(account)
            }
            _ => self.may_keep(caller, row).await,
        }
    }
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
