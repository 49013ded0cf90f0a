//! The form of the policy editor, and what its buttons do with what was typed. Nothing but applying changes anything.

use a2a_registry_api::limits::MAX_POLICIES_BODY;
use a2a_registry_api::{NewPolicies, NewPolicy, PolicyPreview};
use a2a_registry_policy::{Fault, MAX_POLICIES, PolicyText, TEMPLATES, formatted};
use serde::Deserialize;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::http::forms::FormFields;
use crate::policies::preview::policies_preview;
use crate::policies::sets::{PoliciesQuery, policies_put, policies_show, text_of};
use crate::policy_sets::compiled_new;
use crate::precondition::Precondition;

/// The form as a browser sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EditForm {
    act: String,
    seen: String,
    id: Vec<String>,
    text: Vec<String>,
    template: String,
    reason: String,
}

/// What fits into a request of the API fits into the form: no byte takes more than three times its room in JSON.
impl FormFields for EditForm {
    const LIMIT: usize = 3 * MAX_POLICIES_BODY;
}

/// A set of policies that somebody writes.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The number of the newest set that its author knows.
    pub seen: u64,
    pub policies: Vec<NewPolicy>,
    pub reason: String,
}

/// What a button asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Add(String),
    Remove(usize),
    Format,
    Check,
    Preview,
    Apply,
    /// Goes on with what was typed, knowing the set with this number.
    GoOn(u64),
}

/// What came of it.
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
    /// The set was made.
    Applied,
    /// Another set was made since the draft was begun.
    Lost(Box<a2a_registry_api::Policies>),
}

impl EditForm {
    /// The act and the draft.
    ///
    /// # Errors
    /// `Invalid` for what no browser sends from the page, and for more policies than a set has.
    pub(super) fn read(self) -> Result<(Act, Draft), AppError> {
        let unknown = |member: &str| AppError::invalid(member, "This form asks for nothing.");
        let act = match (self.act.split_once(' '), self.act.as_str()) {
            (_, "add") => Act::Add(self.template),
            (_, "format") => Act::Format,
            (_, "check") => Act::Check,
            (_, "preview") => Act::Preview,
            (_, "apply") => Act::Apply,
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
        };
        Ok((act, draft))
    }
}

impl Draft {
    /// The newest set as a draft.
    ///
    /// # Errors
    /// As the act.
    pub(super) async fn of_newest(context: &Context, caller: &Caller) -> Result<Self, AppError> {
        let newest = policies_show(context, caller, &PoliciesQuery::default()).await?;
        let written = newest.policies.into_iter().filter(|one| !one.shipped);
        Ok(Self {
            seen: newest.number,
            policies: written
                .map(|one| NewPolicy {
                    id: one.id,
                    text: one.text,
                })
                .collect(),
            reason: String::new(),
        })
    }

    /// Adds a policy: the template of that name, or an empty one.
    ///
    /// # Errors
    /// `Invalid` where the set has as many as it may have.
    pub(super) fn add(&mut self, template: &str) -> Result<(), AppError> {
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

    /// Everything that speaks against it.
    ///
    /// # Errors
    /// Where the work was aborted.
    pub(super) async fn faults(&self, context: &Context) -> Result<Vec<Fault>, AppError> {
        let texts: Vec<PolicyText> = self.policies.iter().map(text_of).collect();
        let identity = &context.config().identity;
        let read = compiled_new(texts, &context.rules, identity).await?;
        Ok(read.err().unwrap_or_default())
    }

    /// Puts every policy without a fault into Cedar's usual form.
    fn format(&mut self, faults: &[Fault]) {
        for one in &mut self.policies {
            let is_sound = !faults.iter().any(|fault| fault.policy == one.id);
            // A text that the formatter does not take stays as it is.
            if let Some(text) = is_sound.then(|| formatted(&one.text).ok()).flatten() {
                one.text = text;
            }
        }
    }

    fn as_new(&self) -> NewPolicies {
        NewPolicies {
            policies: self.policies.clone(),
            reason: self.reason.clone(),
        }
    }

    /// Does what a button asks for; returns the faults that speak against it too.
    ///
    /// # Errors
    /// As the acts.
    pub(super) async fn act(
        &mut self,
        context: &Context,
        caller: &Caller,
        act: Act,
    ) -> Result<(Outcome, Vec<Fault>), AppError> {
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
            Act::Format | Act::Check | Act::Preview | Act::Apply => {}
        }
        let faults = self.faults(context).await?;
        if act == Act::Format {
            self.format(&faults);
            // The lines of the faults stay: what has one was not touched.
            return Ok((Outcome::Formatted, faults));
        }
        if !faults.is_empty() {
            return Ok((Outcome::Shown, faults));
        }
        let outcome = match act {
            Act::Preview | Act::GoOn(_) => {
                let mut new = self.as_new();
                if new.reason.trim().is_empty() {
                    // Nothing is made, so nobody needs to give a reason yet.
                    "preview".clone_into(&mut new.reason);
                }
                Outcome::Previewed(policies_preview(context, caller, &new).await?)
            }
            Act::Apply => self.apply(context, caller).await?,
            _ => Outcome::Sound,
        };
        Ok((outcome, faults))
    }

    async fn apply(&self, context: &Context, caller: &Caller) -> Result<Outcome, AppError> {
        let seen = Precondition(Some(format!("\"{}\"", self.seen)));
        match policies_put(context, caller, &self.as_new(), &seen).await {
            Ok(_) => Ok(Outcome::Applied),
            Err(error) if error.kind == ErrorKind::Changed => {
                let newest = policies_show(context, caller, &PoliciesQuery::default()).await?;
                Ok(Outcome::Lost(Box::new(newest)))
            }
            Err(error) => Err(error),
        }
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
