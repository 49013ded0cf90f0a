//! A policy: parsed, checked and prepared for evaluation.

use std::collections::BTreeSet;
use std::str::FromStr;

use a2a_registry_domain::timestamp::Timestamp;
use cedar_policy::{
    ActionConstraint, EntityUid, Policy as CedarPolicy, PolicyId, ResourceConstraint,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::action::Action;
use crate::agent_age::{AgeThreshold, condition_thresholds};
use crate::annotations::{PolicyNotice, annotation_value_messages, is_quiet};
use crate::nesting_limit::{MAX_BRACKETS, MAX_OPERATORS, is_nested_too_deeply};
use crate::policy_dates::{PolicyDates, annotation_errors};
use crate::policy_error::PolicyError;
use crate::principal::PrincipalScope;
use crate::principal_clauses::SplitConditions;

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
    /// Its mode as of the moment for which the set was compiled: outside its dates it is off.
    pub mode: PolicyMode,
    pub dates: PolicyDates,
    pub effect: Effect,
    pub actions: Vec<Action>,
    /// The principals that it is about, by its scope and its clauses about the principal.
    pub scope: PrincipalScope,
    /// Whether the policy matches only some resources.
    pub is_conditional: bool,
    /// Whether the policy is one of the program's default policies.
    pub is_built_in: bool,
    /// What it tells those whom it forbids something; `None` without a message and a contact.
    pub notice: Option<PolicyNotice>,
    /// Whether those whom it forbids something do not learn its name.
    pub is_quiet: bool,
    /// Whether its condition uses the agent's collections, now or once its dates have come.
    pub(crate) uses_collections: bool,
    /// The ages of agents at which it may decide differently.
    pub(crate) age_thresholds: BTreeSet<AgeThreshold>,
    pub(crate) names_actions: bool,
    /// The attributes that decide whether the policy matches; `None` if the agent's identity may decide it.
    pub(crate) read_attributes: Option<BTreeSet<String>>,
    pub(crate) parsed: CedarPolicy,
    /// The policy as a permit for everybody, which is satisfied exactly if the policy matches. `None` without
    /// conditions.
    pub(crate) match_probe: Option<CedarPolicy>,
}

const MAX_ID_BYTES: usize = 64;

impl Policy {
    /// Parses a policy as of a moment, and runs the checks that need no schema. Returns the first error.
    pub(crate) fn parse(source: &PolicyText, as_of: Timestamp) -> Result<Self, PolicyError> {
        let PolicyText { id, text } = source;
        let error_at_start = |message: &str| PolicyError::at_start(id, text, message);
        let parsed = parse_cedar_policy(source)?;
        let written_mode = parse_policy_mode(&parsed).map_err(|other| {
            error_at_start(&format!(
                "`@mode` must be \"off\", \"dry_run\" or \"enforce\", not {other:?}"
            ))
        })?;
        let dates = PolicyDates::from_annotations(&parsed);
        let mode = match dates.contains(as_of) {
            true => written_mode,
            false => PolicyMode::Off,
        };
        let policy_json = parsed
            .to_json()
            .map_err(|error| error_at_start(&error.to_string()))?;
        let conditions = SplitConditions::from_conditions(&policy_json["conditions"])
            .map_err(|message| error_at_start(&message))?;
        let age_thresholds = condition_thresholds(&conditions.resource).map_err(|age| {
            let name = age.as_str();
            error_at_start(&format!(
                "`resource.{name}` must be compared with a number, as in `resource.{name} > 7`"
            ))
        })?;
        let is_conditional = !conditions.resource.is_empty()
            || !matches!(parsed.resource_constraint(), ResourceConstraint::Any);
        let scope = PrincipalScope::from_constraint(&parsed.principal_constraint());
        let uses_collections = conditions
            .resource
            .iter()
            .any(|condition| mentions_attribute(condition, "collections"));
        let read_attributes = read_attributes(&policy_json["resource"], &conditions.resource);
        let match_probe = match is_conditional && mode != PolicyMode::Off {
            true => to_match_probe(policy_json, conditions.resource),
            false => None,
        };
        Ok(Self {
            id: id.clone(),
            text: text.clone(),
            mode,
            dates,
            effect: match parsed.effect() {
                cedar_policy::Effect::Permit => Effect::Permit,
                cedar_policy::Effect::Forbid => Effect::Forbid,
            },
            actions: policy_actions(&parsed),
            is_built_in: false,
            notice: PolicyNotice::from_annotations(id, &parsed),
            is_quiet: is_quiet(&parsed),
            uses_collections: uses_collections && written_mode != PolicyMode::Off,
            age_thresholds,
            read_attributes,
            names_actions: parsed.action_constraint() != ActionConstraint::Any,
            scope: PrincipalScope::intersection(vec![scope, conditions.scope]),
            is_conditional,
            parsed,
            match_probe,
        })
    }

    /// The errors of its annotations, which only a new policy must not have.
    pub(crate) fn annotation_errors(&self) -> Vec<PolicyError> {
        let mut errors = annotation_errors(&self.id, &self.text, &self.parsed);
        let messages = annotation_value_messages(&self.parsed);
        errors.extend(messages.map(|text| PolicyError::at_start(&self.id, &self.text, text)));
        errors
    }

    /// Whether the policy is enforced with this effect for some principal.
    pub(crate) fn enforces(&self, effect: Effect) -> bool {
        self.mode == PolicyMode::Enforce
            && self.effect == effect
            && self.scope != PrincipalScope::Nobody
    }
}

/// Parses a policy whose identifier and nesting are within the limits.
fn parse_cedar_policy(source: &PolicyText) -> Result<CedarPolicy, PolicyError> {
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
    CedarPolicy::parse(Some(PolicyId::new(id)), text).map_err(|errors| {
        let first: Option<&dyn miette::Diagnostic> = errors.iter().next().map(|first| first as _);
        first.map_or_else(
            || error_at_start("this is not a policy"),
            |first| PolicyError::from_diagnostic(id, text, first),
        )
    })
}

/// Converts the policy, in Cedar's JSON form, to a permit for everybody under these conditions, which are those about
/// the resource.
fn to_match_probe(mut policy_json: Value, conditions: Vec<Value>) -> Option<CedarPolicy> {
    policy_json["effect"] = json!("permit");
    policy_json["principal"] = json!({"op": "All"});
    policy_json["conditions"] = Value::Array(conditions);
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

/// The attributes that decide whether a policy matches a resource, by its resource scope and the conditions about the
/// resource, in Cedar's JSON form; `None` if it compares the resource itself with something.
fn read_attributes(scope: &Value, conditions: &[Value]) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    match scope["op"].as_str() {
        Some("All") => {}
        // An agent is in its domain, and in nothing else but itself.
        Some("in") if scope["entity"]["type"] == "Domain" => {
            names.insert("domain".to_owned());
        }
        _ => return None,
    }
    let mut conditions = conditions.iter();
    let reads_attributes_only =
        conditions.all(|condition| collect_read_attributes(condition, &mut names));
    reads_attributes_only.then_some(names)
}

/// Adds the attributes in a condition; returns whether it uses the resource for nothing but its attributes.
fn collect_read_attributes(condition: &Value, names: &mut BTreeSet<String>) -> bool {
    match condition {
        Value::Object(members) => {
            let access = members.get(".").or_else(|| members.get("has"));
            let attribute = access.and_then(|access| access["attr"].as_str());
            if let (Some(access), Some(attribute)) = (access, attribute) {
                names.insert(attribute.to_owned());
                let is_of_resource = access["left"]["Var"] == "resource";
                return is_of_resource || collect_read_attributes(&access["left"], names);
            }
            let is_resource = members.get("Var").and_then(Value::as_str) == Some("resource");
            !is_resource
                && members
                    .values()
                    .all(|part| collect_read_attributes(part, names))
        }
        Value::Array(parts) => parts
            .iter()
            .all(|part| collect_read_attributes(part, names)),
        _ => true,
    }
}

pub(crate) fn entity_uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    let kind = cedar_policy::EntityTypeName::from_str(kind).map_err(|error| error.to_string())?;
    Ok(EntityUid::from_type_name_and_id(
        kind,
        cedar_policy::EntityId::new(id),
    ))
}
