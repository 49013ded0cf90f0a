//! A policy: parsed, checked and prepared for evaluation.

use std::str::FromStr;

use cedar_policy::{
    ActionConstraint, EntityUid, Policy as CedarPolicy, PolicyId, ResourceConstraint,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::Action;
use crate::annotations::{PolicyNotice, is_quiet};
use crate::nesting_limit::{MAX_BRACKETS, MAX_OPERATORS, is_nested_too_deeply};
use crate::policy_error::PolicyError;
use crate::principal::PrincipalScope;

/// The source of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    /// 1 to 64 of `a` to `z`, digits, `.`, `_` and `-`, the first a letter or a digit.
    pub id: String,
    /// One policy in Cedar.
    pub text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// Stored but not evaluated.
    Off,
    /// Evaluated, without effect on decisions.
    DryRun,
    #[default]
    Enforce,
}

impl PolicyMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::DryRun => "dry_run",
            Self::Enforce => "enforce",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Permits unless another policy forbids.
    Permit,
    /// Forbids, whatever other policies permit.
    Forbid,
}

impl Effect {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Forbid => "forbid",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Policy {
    pub id: String,
    pub text: String,
    pub mode: PolicyMode,
    pub effect: Effect,
    pub actions: Vec<Action>,
    pub scope: PrincipalScope,
    /// Whether the policy matches only some resources.
    pub is_conditional: bool,
    /// Whether the policy is one of the program's default policies.
    pub is_built_in: bool,
    /// What it tells those whom it forbids something; `None` without a message and a contact.
    pub notice: Option<PolicyNotice>,
    /// Whether those whom it forbids something do not learn its name.
    pub is_quiet: bool,
    /// Whether its condition uses the agent's collections.
    pub(crate) uses_collections: bool,
    pub(crate) names_actions: bool,
    pub(crate) parsed: CedarPolicy,
    /// The policy as a permit for everybody, which is satisfied exactly if the policy matches. `None` without
    /// conditions.
    pub(crate) match_probe: Option<CedarPolicy>,
}

const MAX_ID_BYTES: usize = 64;

impl Policy {
    /// Parses a policy and runs the checks that need no schema. Returns the first error.
    pub(crate) fn parse(source: &PolicyText) -> Result<Self, PolicyError> {
        let PolicyText { id, text } = source;
        let error_at_start = |message: &str| PolicyError::at_start(id, text, message);
        if !is_policy_id(id) {
            return Err(error_at_start(
                "a policy identifier must have 1 to 64 characters of a to z, digits, `.`, `_` and `-`, and begin with a letter or a digit",
            ));
        }
        if is_nested_too_deeply(text) {
            return Err(error_at_start(&format!(
                "a policy may have at most {MAX_BRACKETS} nested brackets and {MAX_OPERATORS} operator characters; use a list with `contains` instead of many comparisons"
            )));
        }
        let parsed = CedarPolicy::parse(Some(PolicyId::new(id)), text).map_err(|errors| {
            let first: Option<&dyn miette::Diagnostic> =
                errors.iter().next().map(|first| first as _);
            first.map_or_else(
                || error_at_start("this is not a policy"),
                |first| PolicyError::from_diagnostic(id, text, first),
            )
        })?;
        let mode = parse_policy_mode(&parsed).map_err(|other| {
            error_at_start(&format!(
                "`@mode` must be \"off\", \"dry_run\" or \"enforce\", not {other:?}"
            ))
        })?;
        let policy_json = parsed
            .to_json()
            .map_err(|error| error_at_start(&error.to_string()))?;
        if let Some(variable) = non_resource_variable(&policy_json["conditions"]) {
            return Err(error_at_start(&format!(
                "a condition must refer to the resource only, but this one uses `{variable}`; put principals and actions in the scope, as in `principal in Group::\"…\"`"
            )));
        }
        let is_conditional = parsed.has_non_scope_constraint()
            || !matches!(parsed.resource_constraint(), ResourceConstraint::Any);
        let uses_collections = mentions_attribute(&policy_json["conditions"], "collections");
        let needs_probe = is_conditional && mode != PolicyMode::Off;
        let match_probe = needs_probe.then(|| to_match_probe(policy_json)).flatten();
        Ok(Self {
            id: id.clone(),
            text: text.clone(),
            mode,
            effect: match parsed.effect() {
                cedar_policy::Effect::Permit => Effect::Permit,
                cedar_policy::Effect::Forbid => Effect::Forbid,
            },
            actions: policy_actions(&parsed),
            is_built_in: false,
            notice: PolicyNotice::from_annotations(id, &parsed),
            is_quiet: is_quiet(&parsed),
            uses_collections,
            names_actions: parsed.action_constraint() != ActionConstraint::Any,
            scope: PrincipalScope::from_constraint(&parsed.principal_constraint()),
            is_conditional,
            parsed,
            match_probe,
        })
    }

    /// Whether the policy is enforced with this effect for some principal.
    pub(crate) fn enforces(&self, effect: Effect) -> bool {
        self.mode == PolicyMode::Enforce
            && self.effect == effect
            && self.scope != PrincipalScope::Nobody
    }
}

/// Converts the policy, in Cedar's JSON form, to a permit for everybody.
fn to_match_probe(mut policy_json: Value) -> Option<CedarPolicy> {
    policy_json["effect"] = json!("permit");
    policy_json["principal"] = json!({"op": "All"});
    CedarPolicy::from_json(None, policy_json).ok()
}

fn is_policy_id(id: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = id.as_bytes();
    bytes.len() <= MAX_ID_BYTES
        && bytes.first().is_some_and(|first| is_alphanumeric(*first))
        && bytes
            .iter()
            .all(|byte| is_alphanumeric(*byte) || b"._-".contains(byte))
}

fn parse_policy_mode(policy: &CedarPolicy) -> Result<PolicyMode, String> {
    match policy.annotation("mode") {
        None | Some("enforce") => Ok(PolicyMode::Enforce),
        Some("dry_run") => Ok(PolicyMode::DryRun),
        Some("off") => Ok(PolicyMode::Off),
        Some(other) => Err(other.chars().take(40).collect()),
    }
}

fn policy_actions(policy: &CedarPolicy) -> Vec<Action> {
    let parse_action = |entity: &EntityUid| Action::parse(entity.id().unescaped());
    match policy.action_constraint() {
        ActionConstraint::Any => Action::DEFAULTS.to_vec(),
        ActionConstraint::Eq(one) => parse_action(&one).into_iter().collect(),
        ActionConstraint::In(some) => {
            let some: Vec<Action> = some.iter().filter_map(parse_action).collect();
            let all = Action::ALL.into_iter();
            all.filter(|action| some.contains(action)).collect()
        }
    }
}

/// The first variable in a condition other than `resource`. Cedar's JSON form writes each as `{"Var": name}`.
fn non_resource_variable(condition: &Value) -> Option<&str> {
    match condition {
        Value::Object(members) => {
            let variable = members.get("Var").and_then(Value::as_str);
            let variable = variable.filter(|name| *name != "resource");
            variable.or_else(|| members.values().find_map(non_resource_variable))
        }
        Value::Array(parts) => parts.iter().find_map(non_resource_variable),
        _ => None,
    }
}

/// Whether a condition uses an attribute of this name. Cedar's JSON form has each attribute's name as `attr`.
fn mentions_attribute(condition: &Value, name: &str) -> bool {
    match condition {
        Value::Object(members) => {
            members.get("attr").and_then(Value::as_str) == Some(name)
                || members.values().any(|one| mentions_attribute(one, name))
        }
        Value::Array(parts) => parts.iter().any(|one| mentions_attribute(one, name)),
        _ => false,
    }
}

pub(crate) fn entity_uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind = cedar_policy::EntityTypeName::from_str(kind).map_err(|error| error.to_string())?;
    Ok(EntityUid::from_type_name_and_id(
        kind,
        cedar_policy::EntityId::new(id),
    ))
}
