//! The form of the policy editor, and the actions of its buttons. Only applying changes anything.

use a2a_registry_api::limits::MAX_POLICIES_BODY;
use a2a_registry_api::{NewPolicies, NewPolicy, Policies, PolicyPreview};
use a2a_registry_core::commit::approver::check_reason;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::policies::preview::policies_preview;
use a2a_registry_core::policies::sets::{PoliciesQuery, policies_put, policies_show, text_of};
use a2a_registry_core::policy_sets::compile_new;
use a2a_registry_core::precondition::Precondition;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_policy::{Fault, MAX_POLICIES, PolicyText, TEMPLATES, formatted};
use serde::Deserialize;

use crate::requests::forms::FormFields;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EditForm {
    act: String,
    seen: String,
    id: Vec<String>,
    text: Vec<String>,
    template: String,
    reason: String,
    preview: String,
}

/// What fits into a request of the API fits into the form: no byte takes more than three times its size in JSON.
impl FormFields for EditForm {
    const LIMIT: usize = 3 * MAX_POLICIES_BODY;
}

/// A set of policies being written.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The number of the newest set that its author knows.
    pub seen: u64,
    pub policies: Vec<NewPolicy>,
    pub reason: String,
    /// The token of the preview that the page has shown before the set was confirmed.
    pub preview: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Add(String),
    Remove(usize),
    Format,
    Check,
    Preview,
    Apply,
    /// Applies a set that drops policies or hides much, after that was shown.
    Confirm,
    /// Continues with the draft, knowing the set with this number.
    GoOn(u64),
}

/// The result of an action.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The draft is different, or its faults are known.
    Shown,
    /// A policy was added at the end.
    Added,
    /// No policy has a fault.
    Sound,
    /// Every policy is in Cedar's usual form.
    Formatted,
    Previewed(PolicyPreview),
    /// The set was not made yet: its author must confirm it first. These policies would be dropped.
    Unconfirmed(PolicyPreview, Vec<String>),
    Applied,
    /// Another set was made since the draft was begun.
    Lost(Box<Policies>),
}

impl EditForm {
    pub(super) fn read(self) -> Result<(Act, Draft)> {
        let unknown = |member: &str| AppError::invalid(member, "This form asks for nothing.");
        let act = match (self.act.split_once(' '), self.act.as_str()) {
            (_, "add") => Act::Add(self.template),
            (_, "format") => Act::Format,
            (_, "check") => Act::Check,
            (_, "preview") => Act::Preview,
            (_, "apply") => Act::Apply,
            (_, "confirm") => Act::Confirm,
            (Some(("remove", place)), _) => {
                Act::Remove(place.parse().map_err(|_| unknown("/act"))?)
            }
            (Some(("go-on", number)), _) => Act::GoOn(number.parse().map_err(|_| unknown("/act"))?),
            _ => return Err(unknown("/act")),
        };
        if self.id.len() != self.text.len() {
            return Err(unknown("/text"));
        }
        if self.id.len() > MAX_POLICIES {
            let many = format!("A set has at most {MAX_POLICIES} policies.");
            return Err(AppError::invalid("/id", many));
        }
        let policies = self.id.into_iter().zip(self.text);
        let draft = Draft {
            seen: self.seen.parse().map_err(|_| unknown("/seen"))?,
            policies: policies
                .map(|(id, text)| NewPolicy {
                    id: id.trim().to_owned(),
                    text: text.replace("\r\n", "\n"),
                })
                .collect(),
            reason: self.reason,
            preview: Some(self.preview).filter(|_| act == Act::Confirm),
        };
        Ok((act, draft))
    }
}

impl Draft {
    /// The newest set as a draft.
    pub(super) async fn of_newest(context: &Context, caller: &Caller) -> Result<Self> {
        let newest = policies_show(context, caller, &PoliciesQuery::default()).await?;
        Ok(Self::of_set(newest))
    }

    /// The written policies of a set, as a draft that follows it.
    pub(super) fn of_set(set: Policies) -> Self {
        let written = set.policies.into_iter().filter(|one| !one.shipped);
        let policies = written.map(|one| NewPolicy {
            id: one.id,
            text: one.text,
        });
        Self {
            seen: set.number,
            policies: policies.collect(),
            ..Self::default()
        }
    }

    /// Adds a policy: the template of that name, or an empty one.
    pub(super) fn add(&mut self, template: &str) -> Result<()> {
        if self.policies.len() >= MAX_POLICIES {
            let many = format!("A set has at most {MAX_POLICIES} policies.");
            return Err(AppError::invalid("/id", many));
        }
        let known = TEMPLATES.iter().find(|(name, _)| *name == template);
        let (name, text) = known.copied().unwrap_or_default();
        let taken = |id: &str| self.policies.iter().any(|one| one.id == id);
        let mut id = name.to_owned();
        let mut number = 2;
        while !id.is_empty() && taken(&id) {
            id = format!("{name}-{number}");
            number += 1;
        }
        self.policies.push(NewPolicy {
            id,
            text: text.to_owned(),
        });
        Ok(())
    }

    pub(super) async fn faults(&self, context: &Context) -> Result<Vec<Fault>> {
        let texts: Vec<PolicyText> = self.policies.iter().map(text_of).collect();
        let read = compile_new(
            &context.policies.compiled,
            texts,
            &context.rules,
            &context.config.identity,
        )
        .await?;
        Ok(read.err().unwrap_or_default())
    }

    /// Puts every policy without a fault into Cedar's usual form, on another thread than those that answer requests.
    async fn format(&mut self, context: &Context, faults: &[Fault]) -> Result<()> {
        let permit = context.policies.compiled.acquire_permit().await?;
        let faulty: Vec<String> = faults.iter().map(|fault| fault.policy.clone()).collect();
        let mut policies = self.policies.clone();
        let format = move || {
            let _permit = permit;
            for one in policies.iter_mut().filter(|one| !faulty.contains(&one.id)) {
                // A text that the formatter refuses stays as it is.
                if let Ok(text) = formatted(&one.text) {
                    one.text = text;
                }
            }
            policies
        };
        let done = tokio::task::spawn_blocking(format).await;
        self.policies =
            done.map_err(|error| AppError::internal(format!("formatting was aborted: {error}")))?;
        Ok(())
    }

    fn as_new(&self) -> NewPolicies {
        NewPolicies {
            policies: self.policies.clone(),
            reason: self.reason.clone(),
            ..NewPolicies::default()
        }
    }

    /// Runs the action of a button; returns the faults of the draft too.
    pub(super) async fn act(
        &mut self,
        context: &Context,
        caller: &Caller,
        act: Act,
    ) -> Result<(Outcome, Vec<Fault>)> {
        match &act {
            Act::Add(template) => {
                self.add(template)?;
                return Ok((Outcome::Added, Vec::new()));
            }
            Act::Remove(place) => {
                if *place < self.policies.len() {
                    self.policies.remove(*place);
                }
                return Ok((Outcome::Shown, Vec::new()));
            }
            Act::GoOn(number) => self.seen = *number,
            Act::Format | Act::Check | Act::Preview | Act::Apply | Act::Confirm => {}
        }
        let faults = self.faults(context).await?;
        if act == Act::Format {
            self.format(context, &faults).await?;
            // The line numbers of the faults stay valid: faulty policies were not changed.
            return Ok((Outcome::Formatted, faults));
        }
        if !faults.is_empty() {
            return Ok((Outcome::Shown, faults));
        }
        let outcome = match act {
            Act::Preview | Act::GoOn(_) => {
                Outcome::Previewed(self.previewed(context, caller).await?)
            }
            Act::Apply | Act::Confirm => self.apply(context, caller).await?,
            _ => Outcome::Sound,
        };
        Ok((outcome, faults))
    }

    async fn previewed(&self, context: &Context, caller: &Caller) -> Result<PolicyPreview> {
        let mut new = self.as_new();
        if new.reason.trim().is_empty() {
            // Nothing is made, so no reason is needed yet.
            "preview".clone_into(&mut new.reason);
        }
        policies_preview(context, caller, &new).await
    }

    /// Makes the set; one that lacks a policy of the newest set, or that hides every agent, only after its author has
    /// confirmed it.
    pub(super) async fn apply(&self, context: &Context, caller: &Caller) -> Result<Outcome> {
        check_reason(&self.reason)?;
        let newest = policies_show(context, caller, &PoliciesQuery::default()).await?;
        if newest.number != self.seen {
            return Ok(Outcome::Lost(Box::new(newest)));
        }
        let written = newest.policies.iter().filter(|one| !one.shipped);
        let kept = |id: &str| self.policies.iter().any(|one| one.id == id);
        let gone: Vec<String> = written
            .filter(|one| !kept(&one.id))
            .map(|one| one.id.clone())
            .collect();
        if gone.is_empty() || self.preview.is_some() {
            let new = NewPolicies {
                allow_no_permit: self.preview.is_some(),
                preview: self.preview.clone(),
                ..self.as_new()
            };
            let seen = Precondition(Some(format!("\"{}\"", self.seen)));
            match policies_put(context, caller, &new, &seen).await {
                Ok(_) => return Ok(Outcome::Applied),
                Err(error) => match error.kind {
                    // What was edited after the question must be confirmed again.
                    ErrorKind::NoPermit | ErrorKind::PreviewNeeded => {}
                    ErrorKind::Changed => {
                        let newest = PoliciesQuery::default();
                        let newest = policies_show(context, caller, &newest).await?;
                        return Ok(Outcome::Lost(Box::new(newest)));
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(Outcome::Unconfirmed(
            self.previewed(context, caller).await?,
            gone,
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn form(act: &str, policies: usize) -> EditForm {
        EditForm {
            act: act.into(),
            seen: "3".into(),
            id: (0..policies).map(|place| format!("p{place}")).collect(),
            text: vec!["permit (principal, action, resource);\r\n".into(); policies],
            ..EditForm::default()
        }
    }

    #[test]
    fn a_form_is_an_act_and_a_draft() {
        let (act, draft) = form("remove 1", 2).read().unwrap();
        assert_eq!(act, Act::Remove(1));
        assert_eq!(draft.seen, 3);
        assert_eq!(
            draft.policies[1].text,
            "permit (principal, action, resource);\n"
        );
        assert_eq!(form("go-on 4", 0).read().unwrap().0, Act::GoOn(4));
        // A token that another button sends with it confirms nothing.
        for (act, token) in [("apply", None), ("confirm", Some("t"))] {
            let typed = EditForm {
                preview: "t".into(),
                ..form(act, 1)
            };
            assert_eq!(typed.read().unwrap().1.preview.as_deref(), token);
        }
        for nothing in ["", "remove", "remove x", "remove -1", "go-on", "delete 1"] {
            assert!(form(nothing, 1).read().is_err(), "{nothing}");
        }
        let fewer = EditForm {
            text: Vec::new(),
            ..form("check", 1)
        };
        assert!(fewer.read().is_err());
        let unseen = EditForm {
            seen: String::new(),
            ..form("check", 1)
        };
        assert!(unseen.read().is_err());
    }

    #[test]
    fn a_draft_has_as_many_policies_as_a_set() {
        let (_, mut full) = form("check", MAX_POLICIES).read().unwrap();
        assert!(full.add("").is_err());
        assert!(form("check", MAX_POLICIES + 1).read().is_err());
        full.policies.truncate(1);
        for expected in ["deny-tag", "deny-tag-2", "deny-tag-3"] {
            full.add("deny-tag").unwrap();
            assert_eq!(full.policies.last().unwrap().id, expected);
        }
        full.add("no template").unwrap();
        let added = full.policies.last().unwrap();
        assert_eq!((added.id.as_str(), added.text.as_str()), ("", ""));
    }
}
