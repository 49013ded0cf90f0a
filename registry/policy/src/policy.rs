//! One policy: read, checked, and made ready to be evaluated.

use std::str::FromStr;

use cedar_policy::{
    ActionConstraint, EntityUid, Policy as CedarPolicy, PolicyId, ResourceConstraint,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::Action;
use crate::depth::{MAX_BRACKETS, MAX_OPERATORS, is_too_deep};
use crate::fault::Fault;
use crate::principal::PrincipalScope;

/// A policy as somebody writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    /// 1 to 64 of `a` to `z`, digits, `.`, `_` and `-`, the first a letter or a digit.
    pub id: String,
    /// One policy in Cedar.
    pub text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Kept, and not evaluated.
    Off,
    /// Evaluated, and decides nothing.
    DryRun,
    #[default]
    Enforce,
}

impl Mode {
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
    /// Decides unless another one forbids.
    Permit,
    /// Decides whatever others permit.
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
    pub mode: Mode,
    pub effect: Effect,
    pub actions: Vec<Action>,
    pub scope: PrincipalScope,
    /// Whether it matches some resources only.
    pub conditional: bool,
    /// Whether it belongs to every set, as part of the program.
    pub is_shipped: bool,
    /// Whether its condition asks which collections hold the agent.
    pub(crate) asks_about_collections: bool,
    pub(crate) names_actions: bool,
    pub(crate) read: CedarPolicy,
    /// The same policy as a permit for everybody: if it is satisfied, the policy matches. `None` without conditions.
    pub(crate) question: Option<CedarPolicy>,
}

const MAX_ID: usize = 64;

impl Policy {
    /// Reads a policy and checks all of it that needs no schema. Returns the first fault.
    pub(crate) fn read(written: &PolicyText) -> Result<Self, Fault> {
        let PolicyText { id, text } = written;
        let whole = |message: &str| Fault::of_whole(id, text, message);
        if !is_identifier(id) {
            return Err(whole(
                "the identifier of a policy is 1 to 64 of a to z, digits, `.`, `_` and `-`, and begins with a letter or a digit",
            ));
        }
        if is_too_deep(text) {
            return Err(whole(&format!(
                "a policy has at most {MAX_BRACKETS} brackets within one another and {MAX_OPERATORS} signs of operators; a list with `contains` takes the place of many comparisons"
            )));
        }
        let read = CedarPolicy::parse(Some(PolicyId::new(id)), text).map_err(|errors| {
            let first: Option<&dyn miette::Diagnostic> =
                errors.iter().next().map(|first| first as _);
            first.map_or_else(
                || whole("this is no policy"),
                |first| Fault::of_diagnostic(id, text, first),
            )
        })?;
        let mode = mode_of(&read).map_err(|other| {
            whole(&format!(
                "`@mode` is \"off\", \"dry_run\" or \"enforce\", and not {other:?}"
            ))
        })?;
        let est = read.to_json().map_err(|error| whole(&error.to_string()))?;
        if let Some(variable) = foreign_variable(&est["conditions"]) {
            return Err(whole(&format!(
                "a condition asks about the resource only, and this one mentions `{variable}`: who asks and what for stand in the scope, as in `principal in Group::\"…\"`"
            )));
        }
        let conditional = read.has_non_scope_constraint()
            || !matches!(read.resource_constraint(), ResourceConstraint::Any);
        let asks_about_collections = mentions_attribute(&est["conditions"], "collections");
        let question = match conditional && mode != Mode::Off {
            true => question_of(est),
            false => None,
        };
        Ok(Self {
            id: id.clone(),
            text: text.clone(),
            mode,
            effect: match read.effect() {
                cedar_policy::Effect::Permit => Effect::Permit,
                cedar_policy::Effect::Forbid => Effect::Forbid,
            },
            actions: actions_of(&read),
            is_shipped: false,
            asks_about_collections,
            names_actions: read.action_constraint() != ActionConstraint::Any,
            scope: PrincipalScope::of(&read.principal_constraint()),
            conditional,
            read,
            question,
        })
    }

    /// Whether it decides, with this effect, for anybody at all.
    pub(crate) fn decides(&self, effect: Effect) -> bool {
        self.mode == Mode::Enforce && self.effect == effect && self.scope != PrincipalScope::Nobody
    }
}

/// The policy as a permit for everybody, made in Cedar's own JSON form.
fn question_of(mut est: Value) -> Option<CedarPolicy> {
    est["effect"] = json!("permit");
    est["principal"] = json!({"op": "All"});
    CedarPolicy::from_json(None, est).ok()
}

fn is_identifier(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = id.as_bytes();
    bytes.len() <= MAX_ID
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes
            .iter()
            .all(|byte| plain(*byte) || b"._-".contains(byte))
}

fn mode_of(policy: &CedarPolicy) -> Result<Mode, String> {
    match policy.annotation("mode") {
        None | Some("enforce") => Ok(Mode::Enforce),
        Some("dry_run") => Ok(Mode::DryRun),
        Some("off") => Ok(Mode::Off),
        Some(other) => Err(other.chars().take(40).collect()),
    }
}

fn actions_of(policy: &CedarPolicy) -> Vec<Action> {
    let named = |entity: &EntityUid| Action::parse(entity.id().unescaped());
    match policy.action_constraint() {
        ActionConstraint::Any => Action::UNNAMED.to_vec(),
        ActionConstraint::Eq(one) => named(&one).into_iter().collect(),
        ActionConstraint::In(some) => {
            let some: Vec<Action> = some.iter().filter_map(named).collect();
            let all = Action::ALL.into_iter();
            all.filter(|action| some.contains(action)).collect()
        }
    }
}

/// A variable of a condition that is not the resource. Cedar's own JSON form has each as `{"Var": name}`.
fn foreign_variable(condition: &Value) -> Option<&str> {
    match condition {
        Value::Object(members) => {
            let variable = members.get("Var").and_then(Value::as_str);
            let variable = variable.filter(|name| *name != "resource");
            variable.or_else(|| members.values().find_map(foreign_variable))
        }
        Value::Array(parts) => parts.iter().find_map(foreign_variable),
        _ => None,
    }
}

/// Whether a condition asks for an attribute of this name. Cedar's own JSON form has the name of each as `attr`.
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

pub(crate) fn entity(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind = cedar_policy::EntityTypeName::from_str(kind).map_err(|error| error.to_string())?;
    Ok(EntityUid::from_type_name_and_id(
        kind,
        cedar_policy::EntityId::new(id),
    ))
}
