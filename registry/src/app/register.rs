//! Registering a domain, or a further source of one.

use a2a_crawler::guard::{Domain, GuardRefusal};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use super::domains::refuse_opted_out;
use super::error::ErrorKind;
use super::ledger::Ledger;
use super::ownership::is_provable;
use super::reviews::person;
use super::{App, AppError, Caller};
use crate::api::{DomainView, Registration};
use crate::config::Registration as WhoRegisters;
use crate::domain::event::EventKind;
use crate::domain::lifecycle::Lifecycle;
use crate::domain::role::Permission;
use crate::domain::timestamp::Timestamp;
use crate::store::entity::{domain, source};
use crate::store::{Write, agents, domains, versions};

/// The paths that stand for a domain's well-known slot.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// A source to be asked: its kind and what the database keeps as its URL.
struct NewSource {
    domain: Domain,
    kind: &'static str,
    url: String,
    pointer: &'static str,
}

impl App {
    /// Registers a domain's well-known paths, or one card URL. Its first visit is due at once. What is
    /// registered already gets the missing source, and the same answer.
    ///
    /// # Errors
    /// `Invalid` unless exactly one of the two is given; `TargetRefused` by the guard; `DomainDenied`
    /// by `deny_domains`; `LimitReached`; `Unauthenticated` and `Forbidden` by who asks.
    pub async fn register(
        &self,
        caller: &Caller,
        what: &Registration,
    ) -> Result<DomainView, AppError> {
        self.may_register(caller)?;
        if what.approve && !caller.may(Permission::Curate) {
            return Err(AppError::new(
                ErrorKind::Forbidden,
                "Only a curator or an admin may approve with the registration.",
            ));
        }
        let new = self.target(what)?;
        if self.rules.denies(&new.domain.name) {
            return Err(AppError::new(
                ErrorKind::DomainDenied,
                format!(
                    "The operator of this registry does not admit {}.",
                    new.domain.name
                ),
            ));
        }
        let now = self.now();
        let write = self.store.write().await?;
        let mut ledger = Ledger::new(now, self.entropy.as_ref());
        let row = match domains::domain_by_name(&write, &new.domain.name).await? {
            Some(row) => {
                refuse_opted_out(&row)?;
                row
            }
            None => self.new_domain(&write, caller, &new.domain, now).await?,
        };
        let added = self
            .add_source(&write, caller, &row, &new, what.approve, now)
            .await?;
        if added {
            let actor = caller
                .account
                .as_ref()
                .map_or("anyone", |account| account.name.as_str());
            let data = json!({"kind": new.kind, "url": new.url});
            ledger.event(EventKind::DomainRegistered, &row.name, actor, data);
            write
                .domain_make_visit_due(row.id, now.0.max(row.not_before))
                .await?;
        } else if what.approve {
            self.approve_pending(&write, &mut ledger, caller, &row, &new)
                .await?;
        }
        if let Some(account) = &caller.account
            && is_provable(&row)
        {
            self.challenge_where_none(&write, row.id, account.id)
                .await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        self.wake.visits.notify_one();
        self.wake.checks.notify_one();
        self.domain_view(caller, row.id).await
    }

    fn may_register(&self, caller: &Caller) -> Result<(), AppError> {
        let open = self.config.governance.registration == WhoRegisters::Open;
        if open && caller.account.is_none() {
            return Ok(());
        }
        caller.demand(Permission::Register).map(|_| ())
    }

    /// What is to be asked, judged by the guard before anything is stored.
    fn target(&self, what: &Registration) -> Result<NewSource, AppError> {
        match (&what.domain, &what.card_url) {
            (Some(domain), None) => {
                let refused = |refusal| refused("/domain", &refusal);
                let domain = self.guard.check_domain(domain.trim()).map_err(refused)?;
                let url = domain.origin.to_string();
                Ok(NewSource {
                    domain,
                    kind: "well_known",
                    url,
                    pointer: "/domain",
                })
            }
            (None, Some(url)) => {
                let refused = |refusal| refused("/card_url", &refusal);
                let url = self.guard.check_url(url.trim()).map_err(refused)?;
                let url = normalise(url);
                let domain = Domain::of(&url);
                if WELL_KNOWN.contains(&url.path()) && url.query().is_none() {
                    let url = domain.origin.to_string();
                    return Ok(NewSource {
                        domain,
                        kind: "well_known",
                        url,
                        pointer: "/card_url",
                    });
                }
                Ok(NewSource {
                    domain,
                    kind: "url",
                    url: url.into(),
                    pointer: "/card_url",
                })
            }
            _ => Err(AppError::invalid(
                "",
                "Give exactly one of `domain` and `card_url`.",
            )),
        }
    }

    async fn new_domain(
        &self,
        write: &Write,
        caller: &Caller,
        domain: &Domain,
        now: Timestamp,
    ) -> Result<domain::Model, AppError> {
        if let Some(account) = &caller.account
            && !account.role.may(Permission::Administer)
        {
            let limit = self.config.limits.domains_per_account;
            if domains::domain_count(write, account.id).await? >= limit {
                return Err(AppError::new(
                    ErrorKind::LimitReached,
                    format!("This account has registered {limit} domains, as many as it may."),
                ));
            }
        }
        if let Some(network) = caller.network {
            let limit = self.config.limits.pending_nominations;
            let network = network.to_string();
            if domains::nominations_pending(write, &network).await? >= limit {
                return Err(AppError::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{limit} domains that were named from your network wait for a curator, as many \
                         as may. Use a token, or wait for a decision."
                    ),
                ));
            }
        }
        let row = domain::Model {
            id: 0,
            name: domain.name.clone(),
            scheme: domain.origin.scheme().into(),
            state: "unverified".into(),
            generation: 1,
            account_id: caller.account.as_ref().map(|account| account.id),
            nominated_from: caller.network.map(|network| network.to_string()),
            generation_since: now.0,
            owner_id: None,
            dns_proved: false,
            contact: None,
            opted_out_by: None,
            lapsed_at: None,
            check_due_at: None,
            created_at: now.0,
            deleted_at: None,
            visit_due_at: Some(now.0),
            visit_interval_us: None,
            network: None,
            not_before: now.0,
            wanted_at: None,
            lease: None,
            leased_until: None,
        };
        let check_due_at = is_provable(&row).then_some(now.0);
        let row = domain::Model {
            check_due_at,
            ..row
        };
        Ok(write.domain_insert(row).await?)
    }

    /// Adds the source where it is missing; says whether it was.
    async fn add_source(
        &self,
        write: &Write,
        caller: &Caller,
        row: &domain::Model,
        new: &NewSource,
        approve: bool,
        now: Timestamp,
    ) -> Result<bool, AppError> {
        let standing = domains::sources_of(write, &[row.id]).await?;
        let approve_as = caller
            .account
            .as_ref()
            .filter(|_| approve)
            .map(|account| account.id);
        if let Some(known) = standing
            .iter()
            .find(|one| one.kind == new.kind && one.url == new.url)
        {
            if let (Some(account), None) = (approve_as, known.agent_id) {
                write.source_approve_as(known.id, account).await?;
            }
            return Ok(false);
        }
        let limit = self.config.limits.agents_per_domain;
        if standing.len() >= limit && !caller.may(Permission::Administer) {
            return Err(AppError {
                members: vec![(new.pointer.into(), "one source too many".into())],
                ..AppError::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{} has {limit} sources, as many as a domain may have.",
                        row.name
                    ),
                )
            });
        }
        write
            .source_insert(new_source(row.id, new, approve_as, now))
            .await?;
        Ok(true)
    }

    /// `--approve` for a source whose agent is known already: its newest card, where it waits, is
    /// approved on the caller's word.
    async fn approve_pending(
        &self,
        write: &Write,
        ledger: &mut Ledger<'_>,
        caller: &Caller,
        row: &domain::Model,
        new: &NewSource,
    ) -> Result<(), AppError> {
        let account = caller.demand(Permission::Curate)?;
        let sources = domains::sources_of(write, &[row.id]).await?;
        let known = sources
            .iter()
            .find(|one| one.kind == new.kind && one.url == new.url);
        let Some(agent) = known.and_then(|source| source.agent_id) else {
            return Ok(());
        };
        if agents::agents_by_ids(write, &[agent]).await?.is_empty() {
            return Ok(());
        }
        let mut state = self.state_of(write, agent).await?;
        let rejected = state.agent.lifecycle == Lifecycle::Rejected.as_str();
        let asked = state
            .open_review
            .as_ref()
            .map(|question| question.version_id);
        // A first card that was rejected has no open question any more, but can be thought over.
        let Some(version) = asked.or(state.agent.newest_version.filter(|_| rejected)) else {
            return Ok(());
        };
        let class = state
            .open_review
            .as_ref()
            .and_then(|question| question.change_class.as_deref()?.parse().ok());
        let Some(key) = versions::version_keys(write, &[version]).await?.pop() else {
            return Ok(());
        };
        let by = person(account, &state, "approved with the registration");
        ledger.approve(&mut state, &key, class, &by);
        Ok(())
    }
}

fn refused(pointer: &str, refusal: &GuardRefusal) -> AppError {
    AppError {
        members: vec![(pointer.into(), refusal.to_string())],
        ..AppError::new(ErrorKind::TargetRefused, refusal.to_string())
    }
}

/// RFC 3986 section 6.2.2: the URL parser has done the case and the dots; what is left are escapes of
/// characters that need none.
fn normalise(mut url: Url) -> Url {
    let path = unescape(url.path());
    url.set_path(&path);
    let query = url.query().map(unescape);
    url.set_query(query.as_deref());
    url
}

/// Takes back percent escapes of unreserved characters, and writes the others in upper case.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let offset = text.len() - rest.len() + at;
        let code = bytes
            .get(offset + 1..offset + 3)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if code.is_ascii_alphanumeric() || b"-._~".contains(&code) => {
                plain.push(char::from(code));
                rest = &rest[at + 3..];
            }
            Some(code) => {
                plain.push_str(&format!("%{code:02X}"));
                rest = &rest[at + 3..];
            }
            None => {
                plain.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn new_source(
    domain_id: i64,
    new: &NewSource,
    approve_as: Option<Uuid>,
    now: Timestamp,
) -> source::Model {
    source::Model {
        id: 0,
        domain_id,
        kind: new.kind.into(),
        url: new.url.clone(),
        agent_id: None,
        approve_as,
        validator_url: None,
        etag: None,
        last_modified: None,
        next_due_at: now.0,
        interval_us: 0,
        full_wanted: false,
        last_success_at: None,
        last_full_at: None,
        failing_as: None,
        failing_since: None,
        failures: 0,
        cause_since: None,
        cause_latest: None,
        cause_looks: 0,
        liveness: "new".into(),
        liveness_reason: None,
        created_at: now.0,
        ended_at: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn urls_are_normalised_as_rfc_3986_says() {
        let cases = [
            (
                "https://a.example/%7Ebot/card.json",
                "https://a.example/~bot/card.json",
            ),
            ("https://a.example/a%2fb", "https://a.example/a%2Fb"),
            (
                "https://A.example/./x/../card.json",
                "https://a.example/card.json",
            ),
            ("https://a.example/card?x=%41", "https://a.example/card?x=A"),
            ("https://a.example/100%", "https://a.example/100%"),
        ];
        for (given, expected) in cases {
            assert_eq!(normalise(Url::parse(given).unwrap()).as_str(), expected);
        }
    }
}
