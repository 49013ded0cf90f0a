//! Contacts, settings, waivers and decisions: each is compared with what the registry has, and made if it is missing.

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_api::limits::{MAX_PAGE_SIZE, MAX_WAIVER_DAYS};
use a2a_registry_api::{
    Agent, DomainPatch, DomainView, NewComment, NewWaiver, Review, ReviewDecision,
};
use a2a_registry_domain::review::{ReviewKind, ReviewState, VersionState};
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use uuid::Uuid;

use super::super::client::Client;
use super::super::client_error::{ClientError, not_found_as_none};
use super::super::command_error::CommandError;
use super::super::export_format::{AgentSettings, DecisionRecord, WaiverRecord, source_url};
use super::content::{ImportedAgent, ImportedDomain};
use super::report::ImportResult;
use super::{Import, describe_decision, refusal_reason};

/// What an imported decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecisionStep {
    /// The registry has made it.
    Same,
    /// The registry has decided otherwise about this content.
    Contrary,
    /// This open review is about the content.
    Decide(Uuid),
    /// The registry has another content.
    Wait,
}

impl Import<'_> {
    /// Adds what people had set and decided about a domain and its agents.
    pub(super) async fn curate_domain(
        &mut self,
        name: &str,
        domain: &ImportedDomain,
        existed: bool,
    ) -> Result<(), CommandError> {
        let view = self.wait_for_crawl(name, domain).await?;
        if domain.is_exported {
            self.add_domain(name, domain, view.as_ref(), existed)
                .await?;
        }
        for (source, imported) in &domain.agents {
            let id = view.as_ref().and_then(|view| find_agent(view, source));
            let agent = match id {
                Some(id) => not_found_as_none(self.client.agent(id).await)?,
                None => None,
            };
            match agent {
                Some(agent) => {
                    self.curate_agent(name, source, imported, &agent.value)
                        .await?;
                }
                None => self.report_missing_agent(source, imported)?,
            }
        }
        Ok(())
    }

    async fn add_domain(
        &mut self,
        name: &str,
        domain: &ImportedDomain,
        view: Option<&DomainView>,
        existed: bool,
    ) -> Result<(), CommandError> {
        let present = view.and_then(|view| view.contact.as_ref());
        if existed && present == domain.contact.as_ref() {
            return self.report.add("domain", name, ImportResult::Same, "");
        }
        if existed && present.is_some() {
            return self
                .report
                .add_comparison("domain", name, false, "contacts");
        }
        if view.is_none() && !self.dry_run {
            let detail = "none of its sources is registered";
            return self
                .report
                .add("domain", name, ImportResult::Failed, detail);
        }
        let patch = DomainPatch {
            contact: domain.contact.clone(),
            ..DomainPatch::default()
        };
        let change = match self.dry_run || domain.contact.is_none() {
            true => None,
            false => Some(self.client.patch_domain(name, &patch).await),
        };
        self.report_change("domain", name, change).map(drop)
    }

    fn report_missing_agent(
        &mut self,
        source: &str,
        imported: &ImportedAgent,
    ) -> Result<(), CommandError> {
        let detail = "the registry has no agent from this source yet; import again later";
        let settings = imported.settings.iter().map(|_| "agent");
        let waivers = imported.waivers.iter().map(|_| "waiver");
        let decision = imported.decision.iter().map(|_| "decision");
        for kind in settings.chain(waivers).chain(decision) {
            let result = ImportResult::Waiting;
            self.report.add(kind, source, result, detail)?;
        }
        Ok(())
    }

    /// Adds settings first: an approval must not list an agent for more callers than those who saw it before.
    async fn curate_agent(
        &mut self,
        domain: &str,
        source: &str,
        imported: &ImportedAgent,
        agent: &Agent,
    ) -> Result<(), CommandError> {
        let mut has_settings = true;
        if let Some(settings) = &imported.settings {
            has_settings = self.add_settings(source, settings, agent).await?;
        }
        for waiver in &imported.waivers {
            self.add_waiver(source, waiver, agent).await?;
        }
        let Some(decision) = &imported.decision else {
            return Ok(());
        };
        // Read after the settings and waivers, by which the registry may have decided itself.
        let reviews = fetch_open_reviews(self.client, domain).await?;
        match next_step(decision, agent, &reviews) {
            DecisionStep::Decide(_) if decision.approved && !has_settings => {
                let detail = "its settings are not those of the file; set them, then import again";
                self.report
                    .add("decision", source, ImportResult::Waiting, detail)
            }
            DecisionStep::Decide(review) => self.decide_review(source, decision, review).await,
            DecisionStep::Same => self.report.add("decision", source, ImportResult::Same, ""),
            DecisionStep::Contrary => {
                let detail = format!(
                    "the card is {} here, by {}",
                    agent.decision.state, agent.decision.by
                );
                self.report
                    .add("decision", source, ImportResult::Different, &detail)
            }
            DecisionStep::Wait => {
                let detail = format!(
                    "it is about {}, and the registry has {}",
                    decision.digest, agent.hit.summary.card_digest
                );
                self.report
                    .add("decision", source, ImportResult::Waiting, &detail)
            }
        }
    }

    /// Returns whether the agent has the settings of the file.
    async fn add_settings(
        &mut self,
        source: &str,
        settings: &AgentSettings,
        agent: &Agent,
    ) -> Result<bool, CommandError> {
        let present = AgentSettings::from_agent(agent);
        if present.as_ref() == Some(settings) {
            self.report.add("agent", source, ImportResult::Same, "")?;
            return Ok(true);
        }
        if let Some(present) = present.as_ref().filter(|present| !present.is_initial()) {
            let differing = present.differing_members(settings).join(", ");
            self.report
                .add_comparison("agent", source, false, &differing)?;
            return Ok(false);
        }
        if present.is_none() {
            self.report
                .add_comparison("agent", source, false, "visibility")?;
            return Ok(false);
        }
        let id = agent.hit.summary.id;
        let change = match self.dry_run {
            true => None,
            false => Some(self.client.patch_agent(id, &settings.to_patch()).await),
        };
        let result = self.report_change("agent", source, change)?;
        Ok(result == ImportResult::Created)
    }

    async fn add_waiver(
        &mut self,
        source: &str,
        record: &WaiverRecord,
        agent: &Agent,
    ) -> Result<(), CommandError> {
        let name = format!("{} for {source}", record.policy);
        let summary = &agent.hit.summary;
        if summary.card_digest != record.digest {
            let detail = format!(
                "it is about {}, and the registry has {}",
                record.digest, summary.card_digest
            );
            return self
                .report
                .add("waiver", &name, ImportResult::Waiting, &detail);
        }
        let is_present = self.waivers.iter().any(|waiver| {
            waiver.agent == summary.id && waiver.policy == record.policy && waiver.is_shown
        });
        if is_present {
            return self.report.add("waiver", &name, ImportResult::Same, "");
        }
        let Some(expires_in_days) = whole_days_until(record.expires_at, SystemClock.now().into())
        else {
            let detail = "it ends within a day, and was not granted again";
            return self
                .report
                .add("waiver", &name, ImportResult::Failed, detail);
        };
        let new = NewWaiver {
            policy: record.policy.clone(),
            agent: summary.id.to_string(),
            digest: record.digest.clone(),
            reason: self.imported_reason(&describe_decision(&record.by, None, &record.reason)),
            expires_in_days,
        };
        let change = match self.dry_run {
            true => None,
            false => Some(self.client.grant_waiver(&new).await),
        };
        if let Some(Ok(granted)) = &change {
            self.waivers.push(granted.value.clone());
        }
        self.report_change("waiver", &name, change).map(drop)
    }

    /// Decides as the importer, unless others must decide: then the review stays open, with a comment.
    async fn decide_review(
        &mut self,
        source: &str,
        decision: &DecisionRecord,
        review: Uuid,
    ) -> Result<(), CommandError> {
        let reason = decision.reason.as_deref().unwrap_or_default();
        let reason = describe_decision(&decision.by, Some(decision.at), reason);
        let verb = if decision.approved {
            "approve"
        } else {
            "reject"
        };
        let detail = self.client.review(review).await?.value;
        let needs_others = decision.approved && detail.review.approvals_needed > 1;
        if needs_others || detail.cannot_decide.is_some() {
            let text = self.imported_reason(&format!("{verb}, decided by {reason}"));
            let mut comments = detail.comments.iter();
            let is_noted = comments.any(|comment| comment.text == text);
            if !is_noted && !self.dry_run {
                let comment = NewComment { text };
                self.client.comment(review, &comment).await?;
            }
            let waits = format!("others must decide the review {review}");
            return self
                .report
                .add("decision", source, ImportResult::Review, &waits);
        }
        let body = ReviewDecision {
            digest: decision.digest.clone(),
            reason: self.imported_reason(&reason),
        };
        let change = match self.dry_run {
            true => None,
            false => Some(self.client.decide(review, verb, &body).await),
        };
        match change {
            Some(Ok(decided)) if decided.value.state == ReviewState::Open => {
                let waits = format!("others must decide the review {review}");
                self.report
                    .add("decision", source, ImportResult::Review, &waits)
            }
            Some(Err(error)) => {
                let refusal = refusal_reason(error)?;
                self.report
                    .add("decision", source, ImportResult::Failed, &refusal)
            }
            None | Some(Ok(_)) => self
                .report
                .add("decision", source, ImportResult::Created, ""),
        }
    }
}

fn find_agent(view: &DomainView, source: &str) -> Option<Uuid> {
    let mut sources = view.sources.iter();
    sources.find_map(|one| one.agent.filter(|_| source_url(one) == source))
}

/// Whole days that are left, so that an imported waiver never lasts longer; `None` if there is none.
fn whole_days_until(end: Timestamp, now: Timestamp) -> Option<u32> {
    let days = end.0.saturating_sub(now.0) / DAY;
    let days = u32::try_from(days).ok().filter(|days| *days > 0)?;
    Some(days.min(MAX_WAIVER_DAYS))
}

/// Fetches the open reviews of a domain's cards.
async fn fetch_open_reviews(client: &Client, domain: &str) -> Result<Vec<Review>, ClientError> {
    let mut reviews = Vec::new();
    let mut page_token: Option<String> = None;
    loop {
        let mut query = vec![
            ("state", ReviewState::Open.to_string()),
            ("kind", ReviewKind::Admission.to_string()),
            ("domain", domain.to_owned()),
            ("page_size", MAX_PAGE_SIZE.to_string()),
        ];
        query.extend(page_token.map(|token| ("page_token", token)));
        let list = client.reviews(query.as_slice()).await?.value;
        reviews.extend(list.reviews);
        page_token = list.next_page_token;
        if page_token.is_none() {
            return Ok(reviews);
        }
    }
}

fn next_step(decision: &DecisionRecord, agent: &Agent, reviews: &[Review]) -> DecisionStep {
    let summary = &agent.hit.summary;
    let wanted_state = match decision.approved {
        true => VersionState::Approved,
        false => VersionState::Rejected,
    };
    let has_content = summary.card_digest == decision.digest;
    if has_content && agent.decision.state == wanted_state {
        return DecisionStep::Same;
    }
    let mut reviews = reviews.iter();
    let review =
        reviews.find(|review| review.agent == summary.id && review.digest == decision.digest);
    match review {
        Some(review) => DecisionStep::Decide(review.id),
        None if has_content && agent.decision.state != VersionState::Pending => {
            DecisionStep::Contrary
        }
        None => DecisionStep::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiver_never_lasts_longer_than_the_exported_one() {
        let day = |days: i64| Timestamp(days * DAY);
        for (end, days) in [
            (day(0), None),
            (day(1).plus_micros(-1), None),
            (day(1), Some(1)),
            (day(2).plus_micros(-1), Some(1)),
            (day(180), Some(180)),
            (day(9999), Some(180)),
            (day(-3), None),
            (Timestamp(i64::MAX), Some(180)),
        ] {
            assert_eq!(whole_days_until(end, day(0)), days, "{end:?}");
        }
    }
}
