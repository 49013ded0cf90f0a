//! Form of the policy editor, and the actions of its buttons. Only applying the draft changes anything.

use a2a_registry_api::limits::MAX_POLICIES_BODY_BYTES;
use a2a_registry_api::{NewPolicies, NewPolicy, Policies, PolicyPreview};
use a2a_registry_core::commit::decision_maker::check_reason;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::policies::preview_jobs::policy_preview_await;
use a2a_registry_core::policies::principal_warnings::unknown_principal_warnings;
use a2a_registry_core::policies::sets::{
    PolicySetQuery, policies_put, policies_show, to_policy_text,
};
use a2a_registry_core::policy_sets::compile_new_draft;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_policy::{
    MAX_POLICIES, PolicyError, PolicySet, PolicyText, TEMPLATES, format_policy,
};
use serde::Deserialize;

use crate::requests::forms::FormFields;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PolicyEditForm {
    act: String,
    seen: String,
    id: Vec<String>,
    text: Vec<String>,
    template: String,
    reason: String,
    preview: String,
}

/// Size limits of the form: it holds what fits into an API request, because no byte takes more than three times its
/// size in JSON.
impl FormFields for PolicyEditForm {
    const MAX_BYTES: usize = 3 * MAX_POLICIES_BODY_BYTES;
}

/// Draft of a policy set.
#[derive(Debug, Default)]
pub(super) struct PolicySetDraft {
    /// Number of the newest set that the author knows.
    pub base_number: u64,
    pub policies: Vec<NewPolicy>,
    pub reason: String,
    /// Token of the preview that was shown before the set was confirmed.
    pub preview_token: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PolicyEditorAction {
    Add(String),
    Remove(usize),
    Format,
    Check,
    Preview,
    Apply,
    /// Applies a set that drops policies or hides many agents, after the author has seen the effects.
    Confirm,
    /// Continues the draft on the base of the set with this number.
    Continue(u64),
}

/// Result of an action.
#[derive(Debug)]
pub(super) enum PolicyEditorOutcome {
    /// The draft was changed or checked.
    Updated,
    /// A policy was added at the end.
    PolicyAdded,
    /// No policy has an error; these are the warnings about the set.
    Valid(Vec<String>),
    /// Every policy was formatted in Cedar's standard style.
    Formatted,
    Previewed(PolicyPreview),
    /// The set was not created yet: its author must confirm it first. The listed policies would be dropped.
    NeedsConfirmation(PolicyPreview, Vec<String>),
    Applied,
    /// Another set was created since the draft was started.
    Conflict(Box<Policies>),
}

impl PolicyEditForm {
    pub(super) fn parse(self) -> Result<(PolicyEditorAction, PolicySetDraft)> {
        let invalid = |member: &str| AppError::invalid(member, "This form has no valid action.");
        let action = match (self.act.split_once(' '), self.act.as_str()) {
            (_, "add") => PolicyEditorAction::Add(self.template),
            (_, "format") => PolicyEditorAction::Format,
            (_, "check") => PolicyEditorAction::Check,
            (_, "preview") => PolicyEditorAction::Preview,
            (_, "apply") => PolicyEditorAction::Apply,
            (_, "confirm") => PolicyEditorAction::Confirm,
            (Some(("remove", index)), _) => {
                PolicyEditorAction::Remove(index.parse().map_err(|_| invalid("/act"))?)
            }
            (Some(("go-on", number)), _) => {
                PolicyEditorAction::Continue(number.parse().map_err(|_| invalid("/act"))?)
            }
            _ => return Err(invalid("/act")),
        };
        if self.id.len() != self.text.len() {
            return Err(invalid("/text"));
        }
        if self.id.len() > MAX_POLICIES {
            let many = format!("A set can have at most {MAX_POLICIES} policies.");
            return Err(AppError::invalid("/id", many));
        }
        let policies = self.id.into_iter().zip(self.text);
        let draft = PolicySetDraft {
            base_number: self.seen.parse().map_err(|_| invalid("/seen"))?,
            policies: policies
                .map(|(id, text)| NewPolicy {
                    id: id.trim().to_owned(),
                    text: text.replace("\r\n", "\n"),
                })
                .collect(),
            reason: self.reason,
            preview_token: Some(self.preview).filter(|_| action == PolicyEditorAction::Confirm),
        };
        Ok((action, draft))
    }
}

impl PolicySetDraft {
    /// Loads the newest set as a draft.
    pub(super) async fn load_newest(context: &AppContext, caller: &Caller) -> Result<Self> {
        let newest = policies_show(context, caller, &PolicySetQuery::default()).await?;
        Ok(Self::from_set(newest))
    }

    /// Draft with the written policies of a set, based on that set.
    pub(super) fn from_set(set: Policies) -> Self {
        let written = set.policies.into_iter().filter(|one| !one.shipped);
        let policies = written.map(|one| NewPolicy {
            id: one.id,
            text: one.text,
        });
        Self {
            base_number: set.number,
            policies: policies.collect(),
            ..Self::default()
        }
    }

    /// Adds a policy from the template with this name, or an empty one.
    pub(super) fn add_policy(&mut self, template: &str) -> Result<()> {
        if self.policies.len() >= MAX_POLICIES {
            let many = format!("A set can have at most {MAX_POLICIES} policies.");
            return Err(AppError::invalid("/id", many));
        }
        let known = TEMPLATES.iter().find(|(name, _)| *name == template);
        let (name, text) = known.copied().unwrap_or_default();
        let is_taken = |id: &str| self.policies.iter().any(|one| one.id == id);
        let mut id = name.to_owned();
        let mut number = 2;
        while !id.is_empty() && is_taken(&id) {
            id = format!("{name}-{number}");
            number += 1;
        }
        self.policies.push(NewPolicy {
            id,
            text: text.to_owned(),
        });
        Ok(())
    }

    pub(super) async fn find_faults(&self, context: &AppContext) -> Result<Vec<PolicyError>> {
        Ok(self.compile_set(context).await?.err().unwrap_or_default())
    }

    /// The warnings about a draft without errors.
    async fn find_warnings(&self, context: &AppContext) -> Result<Vec<String>> {
        match self.compile_set(context).await? {
            Ok(set) => unknown_principal_warnings(context, &set).await,
            Err(_) => Ok(Vec::new()),
        }
    }

    async fn compile_set(
        &self,
        context: &AppContext,
    ) -> Result<std::result::Result<PolicySet, Vec<PolicyError>>> {
        let texts: Vec<PolicyText> = self.policies.iter().map(to_policy_text).collect();
        compile_new_draft(
            &context.policy_sets.compiled,
            texts,
            &context.rules(),
            &context.config().identity,
            context.now(),
        )
        .await
    }

    /// Formats every policy without errors in Cedar's standard style, on a thread that does not serve requests.
    async fn format_policies(
        &mut self,
        context: &AppContext,
        faults: &[PolicyError],
    ) -> Result<()> {
        let permit = context
            .policy_sets
            .compiled
            .acquire_compile_permit()
            .await?;
        let faulty: Vec<String> = faults.iter().map(|fault| fault.policy.clone()).collect();
        let mut policies = self.policies.clone();
        let format_all = move || {
            let _permit = permit;
            for one in policies.iter_mut().filter(|one| !faulty.contains(&one.id)) {
                // A text that the formatter rejects stays unchanged.
                if let Ok(text) = format_policy(&one.text) {
                    one.text = text;
                }
            }
            policies
        };
        let result = tokio::task::spawn_blocking(format_all).await;
        self.policies = result
            .map_err(|error| AppError::internal(format!("formatting was aborted: {error}")))?;
        Ok(())
    }

    fn to_new_policies(&self) -> NewPolicies {
        NewPolicies {
            policies: self.policies.clone(),
            reason: self.reason.clone(),
            ..NewPolicies::default()
        }
    }

    /// Runs the action of a button. Also returns the errors of the draft.
    pub(super) async fn run_action(
        &mut self,
        context: &AppContext,
        caller: &Caller,
        action: PolicyEditorAction,
    ) -> Result<(PolicyEditorOutcome, Vec<PolicyError>)> {
        match &action {
            PolicyEditorAction::Add(template) => {
                self.add_policy(template)?;
                return Ok((PolicyEditorOutcome::PolicyAdded, Vec::new()));
            }
            PolicyEditorAction::Remove(index) => {
                if *index < self.policies.len() {
                    self.policies.remove(*index);
                }
                return Ok((PolicyEditorOutcome::Updated, Vec::new()));
            }
            PolicyEditorAction::Continue(number) => self.base_number = *number,
            PolicyEditorAction::Format
            | PolicyEditorAction::Check
            | PolicyEditorAction::Preview
            | PolicyEditorAction::Apply
            | PolicyEditorAction::Confirm => {}
        }
        let faults = self.find_faults(context).await?;
        if action == PolicyEditorAction::Format {
            self.format_policies(context, &faults).await?;
            // The line numbers of the errors stay valid, because policies with errors were not changed.
            return Ok((PolicyEditorOutcome::Formatted, faults));
        }
        if !faults.is_empty() {
            return Ok((PolicyEditorOutcome::Updated, faults));
        }
        let outcome = match action {
            PolicyEditorAction::Preview | PolicyEditorAction::Continue(_) => {
                PolicyEditorOutcome::Previewed(self.preview_changes(context, caller).await?)
            }
            PolicyEditorAction::Apply | PolicyEditorAction::Confirm => {
                self.apply_unless_unconfirmed(context, caller).await?
            }
            _ => PolicyEditorOutcome::Valid(self.find_warnings(context).await?),
        };
        Ok((outcome, faults))
    }

    async fn preview_changes(
        &self,
        context: &AppContext,
        caller: &Caller,
    ) -> Result<PolicyPreview> {
        let mut new = self.to_new_policies();
        if new.reason.trim().is_empty() {
            // Nothing is created, so no reason is needed yet.
            "preview".clone_into(&mut new.reason);
        }
        policy_preview_await(context, caller, &new).await
    }

    /// Creates the set. If it lacks a policy of the newest set, or hides every agent, its author must confirm it
    /// first.
    pub(super) async fn apply_unless_unconfirmed(
        &self,
        context: &AppContext,
        caller: &Caller,
    ) -> Result<PolicyEditorOutcome> {
        check_reason(&self.reason)?;
        let newest = policies_show(context, caller, &PolicySetQuery::default()).await?;
        if newest.number != self.base_number {
            return Ok(PolicyEditorOutcome::Conflict(Box::new(newest)));
        }
        let custom_policies = newest.policies.iter().filter(|one| !one.shipped);
        let is_in_draft = |id: &str| self.policies.iter().any(|one| one.id == id);
        let dropped: Vec<String> = custom_policies
            .filter(|one| !is_in_draft(&one.id))
            .map(|one| one.id.clone())
            .collect();
        if dropped.is_empty() || self.preview_token.is_some() {
            let new = NewPolicies {
                allow_no_permit: self.preview_token.is_some(),
                preview: self.preview_token.clone(),
                ..self.to_new_policies()
            };
            let precondition = IfMatch(Some(format!("\"{}\"", self.base_number)));
            match policies_put(context, caller, &new, &precondition).await {
                Ok(_) => return Ok(PolicyEditorOutcome::Applied),
                Err(error) => match error.kind {
                    // Edits after the confirmation page must be confirmed again.
                    ErrorKind::NoPermit | ErrorKind::PreviewNeeded => {}
                    ErrorKind::Changed => {
                        let newest = PolicySetQuery::default();
                        let newest = policies_show(context, caller, &newest).await?;
                        return Ok(PolicyEditorOutcome::Conflict(Box::new(newest)));
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(PolicyEditorOutcome::NeedsConfirmation(
            self.preview_changes(context, caller).await?,
            dropped,
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn policy_edit_form(act: &str, policies: usize) -> PolicyEditForm {
        PolicyEditForm {
            act: act.into(),
            seen: "3".into(),
            id: (0..policies).map(|place| format!("p{place}")).collect(),
            text: vec!["permit (principal, action, resource);\r\n".into(); policies],
            ..PolicyEditForm::default()
        }
    }

    #[test]
    fn a_form_is_an_act_and_a_draft() {
        let (act, draft) = policy_edit_form("remove 1", 2).parse().unwrap();
        assert_eq!(act, PolicyEditorAction::Remove(1));
        assert_eq!(draft.base_number, 3);
        assert_eq!(
            draft.policies[1].text,
            "permit (principal, action, resource);\n"
        );
        assert_eq!(
            policy_edit_form("go-on 4", 0).parse().unwrap().0,
            PolicyEditorAction::Continue(4)
        );
        // A token that another button sends does not confirm anything.
        for (act, token) in [("apply", None), ("confirm", Some("t"))] {
            let typed = PolicyEditForm {
                preview: "t".into(),
                ..policy_edit_form(act, 1)
            };
            assert_eq!(typed.parse().unwrap().1.preview_token.as_deref(), token);
        }
        for nothing in ["", "remove", "remove x", "remove -1", "go-on", "delete 1"] {
            assert!(policy_edit_form(nothing, 1).parse().is_err(), "{nothing}");
        }
        let fewer = PolicyEditForm {
            text: Vec::new(),
            ..policy_edit_form("check", 1)
        };
        assert!(fewer.parse().is_err());
        let unseen = PolicyEditForm {
            seen: String::new(),
            ..policy_edit_form("check", 1)
        };
        assert!(unseen.parse().is_err());
    }

    #[test]
    fn a_draft_has_as_many_policies_as_a_set() {
        let (_, mut full) = policy_edit_form("check", MAX_POLICIES).parse().unwrap();
        assert!(full.add_policy("").is_err());
        assert!(policy_edit_form("check", MAX_POLICIES + 1).parse().is_err());
        full.policies.truncate(1);
        for expected in ["deny-tag", "deny-tag-2", "deny-tag-3"] {
            full.add_policy("deny-tag").unwrap();
            assert_eq!(full.policies.last().unwrap().id, expected);
        }
        full.add_policy("no template").unwrap();
        let added = full.policies.last().unwrap();
        assert_eq!((added.id.as_str(), added.text.as_str()), ("", ""));
    }
}
