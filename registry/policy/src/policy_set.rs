//! Policy sets: numbered, compiled and checked as a whole.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use a2a_registry_domain::timestamp::Timestamp;
use cedar_policy::{PolicySet as CedarSet, Schema, ValidationMode, Validator};

use crate::action::Action;
use crate::agent_age::{AgeThreshold, MAX_AGE_COMPARISONS};
use crate::agent_attributes::{AgentAttributes, CollectionMembership, domain_entities};
use crate::batch_evaluation::BatchEvaluator;
use crate::cedar_requests::cedar_request_with_entities;
use crate::nesting_limit::{PolicyTextSize, is_nested_too_deeply, run_with_large_stack};
use crate::policy::{Effect, Policy, PolicyMode, PolicyText};
use crate::policy_error::PolicyError;
use crate::policy_matches::PolicyMatches;
use crate::principal::PrincipalScope;

/// The Cedar schema of the entities and attributes that policies may use.
pub const SCHEMA: &str = include_str!("schema.cedarschema");
pub const MAX_POLICIES: usize = 1_000;
pub const MAX_POLICY_BYTES: usize = 64 * 1024;
/// Maximum number of words, numbers and strings in a new set, counted together: each is parsed, and evaluated for each
/// agent.
pub const MAX_TERMS: usize = 20_000;
/// Maximum total number of characters in the `like` patterns of a new set: each may be compared with each character of
/// a text.
pub const MAX_PATTERN_CHARS: usize = 20_000;
const MAX_ERRORS: usize = 50;

/// A compiled set of policies. Clones share the compiled policies.
#[derive(Debug, Clone)]
pub struct PolicySet {
    number: u64,
    compiled: Arc<CompiledPolicies>,
    /// Membership for policies that use collections; without it, no collection contains any agent.
    membership: Option<Arc<dyn CollectionMembership>>,
}

/// The content of a set, without its number.
#[derive(Debug)]
struct CompiledPolicies {
    policies: Vec<Policy>,
    by_action: HashMap<Action, BatchEvaluator>,
    /// Actions with dry-run policies.
    dry_run_actions: Vec<Action>,
    age_thresholds: BTreeSet<AgeThreshold>,
}

impl PolicySet {
    /// Compiles a set of policies without dates, and checks it against the schema. Returns all errors, at most fifty.
    pub fn compile(number: u64, custom: &[PolicyText]) -> Result<Self, Vec<PolicyError>> {
        Self::compile_with_defaults(number, custom, &[], Timestamp::default())
    }

    /// Compiles a set together with the default policies; a custom policy replaces the default one with the same id.
    /// Policies whose dates do not contain `as_of` are off.
    pub fn compile_with_defaults(
        number: u64,
        custom: &[PolicyText],
        defaults: &[PolicyText],
        as_of: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let read = run_with_large_stack(|| Self::compile_policies(number, custom, defaults, as_of));
        read.unwrap_or_else(|| {
            let whole = PolicyError::at_start(
                "set",
                "",
                "not enough memory to parse the policies; try again",
            );
            Err(vec![whole])
        })
    }

    fn compile_policies(
        number: u64,
        custom: &[PolicyText],
        defaults: &[PolicyText],
        as_of: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let mut errors = check_policy_set_limits(custom);
        let mut policies = Vec::with_capacity(custom.len() + defaults.len());
        if errors.is_empty() {
            let is_replaced =
                |default_text: &&PolicyText| custom.iter().any(|other| other.id == default_text.id);
            let beside = defaults
                .iter()
                .filter(|default_text| !is_replaced(default_text));
            let written = custom.iter().map(|one| (one, false));
            // Default policies come last, so the indices of custom ones do not depend on them.
            for (text, is_shipped) in written.chain(beside.map(|one| (one, true))) {
                match Policy::parse(text, as_of) {
                    Ok(policy) => policies.push(Policy {
                        is_built_in: is_shipped,
                        ..policy
                    }),
                    Err(fault) => errors.push(fault),
                }
            }
            errors.extend(check_age_thresholds(&policies));
            errors.extend(validate_policies(&policies));
        }
        if !errors.is_empty() {
            errors.truncate(MAX_ERRORS);
            return Err(errors);
        }
        let mut by_action = HashMap::new();
        for action in Action::ALL {
            by_action.insert(action, prepare_evaluation(action, &policies)?);
        }
        let is_tried = |action: &Action| {
            let mut policies = policies.iter();
            policies.any(|one| one.mode == PolicyMode::DryRun && one.actions.contains(action))
        };
        let dry_run_actions = Action::ALL.into_iter().filter(is_tried).collect();
        let age_thresholds = policies.iter().flat_map(|one| &one.age_thresholds);
        let age_thresholds = age_thresholds.copied().collect();
        Ok(Self {
            number,
            compiled: Arc::new(CompiledPolicies {
                policies,
                by_action,
                dry_run_actions,
                age_thresholds,
            }),
            membership: None,
        })
    }

    #[must_use]
    pub fn with_number(self, number: u64) -> Self {
        Self { number, ..self }
    }

    #[must_use]
    pub fn with_collections(self, collections: Arc<dyn CollectionMembership>) -> Self {
        Self {
            membership: self.uses_collections().then_some(collections),
            ..self
        }
    }

    pub(crate) fn membership(&self) -> Option<&dyn CollectionMembership> {
        self.membership.as_deref()
    }

    pub fn uses_collections(&self) -> bool {
        self.policies().iter().any(|policy| policy.uses_collections)
    }

    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The ages of agents at which policies may decide differently, also those of policies that are off.
    pub fn age_thresholds(&self) -> &BTreeSet<AgeThreshold> {
        &self.compiled.age_thresholds
    }

    /// The policies in order; [`PolicyMatches`] refers to their indices.
    pub fn policies(&self) -> &[Policy] {
        &self.compiled.policies
    }

    /// The policies about an action with their indices, including those that are off.
    pub fn policies_for_action(&self, action: Action) -> impl Iterator<Item = (u16, &Policy)> {
        let placed = (0..).zip(self.policies());
        placed.filter(move |(_, policy)| policy.actions.contains(&action))
    }

    /// Whether every active policy about an action matches every resource, so that nothing needs evaluation.
    pub fn is_independent_of_resource(&self, action: Action) -> bool {
        let mut about = self.policies_for_action(action);
        about.all(|(_, policy)| policy.mode == PolicyMode::Off || !policy.is_conditional)
    }

    /// Whether a custom policy about an action is active.
    pub fn has_active_custom_policy(&self, action: Action) -> bool {
        let mut about = self.policies_for_action(action);
        about.any(|(_, policy)| policy.mode != PolicyMode::Off && !policy.is_built_in)
    }

    /// Whether the set has dry-run policies about an action.
    pub fn has_dry_run(&self, action: Action) -> bool {
        self.compiled.dry_run_actions.contains(&action)
    }

    /// Whether an enforced policy permits an action to some principal, if only for some resources.
    pub fn may_permit(&self, action: Action) -> bool {
        let mut about = self.policies_for_action(action);
        about.any(|(_, policy)| policy.enforces(Effect::Permit))
    }

    /// Whether an action is allowed to every principal for every resource, considering the whole set.
    pub fn always_allows_action(&self, action: Action) -> bool {
        let permits = |policy: &Policy| {
            policy.enforces(Effect::Permit)
                && !policy.is_conditional
                && policy.scope == PrincipalScope::Everybody
        };
        let mut policies = self.policies_for_action(action);
        let forbids = self.policies_for_action(action).any(|(_, policy)| {
            // A permit that fails to evaluate also denies.
            policy.enforces(Effect::Forbid)
                || (policy.is_conditional && policy.enforces(Effect::Permit))
        });
        policies.any(|(_, policy)| permits(policy)) && !forbids
    }

    /// Whether the decision on an action depends on the principal.
    pub fn depends_on_principal(&self, action: Action) -> bool {
        let mut about = self.policies_for_action(action);
        about.any(|(_, policy)| {
            policy.mode != PolicyMode::Off && policy.scope != PrincipalScope::Everybody
        })
    }

    pub fn match_agent(&self, action: Action, agent: &AgentAttributes) -> PolicyMatches {
        let policies = self.compiled.by_action.get(&action);
        policies.map_or_else(PolicyMatches::default, |policies| {
            self.match_agent_in_batch(policies, agent)
        })
    }

    pub fn match_domain(&self, name: &str) -> PolicyMatches {
        let action = Action::Register;
        let request = domain_entities(name)
            .and_then(|resource| cedar_request_with_entities(action, resource));
        let policies = self.compiled.by_action.get(&action);
        policies.map_or_else(PolicyMatches::default, |policies| {
            policies.match_request(request.as_ref().ok())
        })
    }
}

impl PolicySet {
    /// The policies about an action that match the same agents as the one with the same name in another set: each with
    /// its index there and here. Policies that use collections are left out, because these may have changed, and so are
    /// those that compare ages: with a new set ages count to a later moment, and agents that reach one by then have no
    /// event.
    pub fn carried_policies(&self, before: &Self, action: Action) -> Vec<(u16, u16)> {
        let earlier: HashMap<&str, (u16, &Policy)> = before
            .policies_for_action(action)
            .map(|(index, policy)| (policy.id.as_str(), (index, policy)))
            .collect();
        let carried = self
            .policies_for_action(action)
            .filter_map(|(index, policy)| {
                let (there, old) = earlier.get(policy.id.as_str())?;
                // The dates of a policy may have switched it on or off.
                let is_same = old.text == policy.text && old.mode == policy.mode;
                let is_carried =
                    is_same && !policy.uses_collections && policy.age_thresholds.is_empty();
                is_carried.then_some((*there, index))
            });
        carried.collect()
    }

    /// Prepares to evaluate some policies about an action, by their indices, for many agents. `None` if there is not
    /// enough memory.
    pub fn batch_evaluator(
        &self,
        action: Action,
        indices: &BTreeSet<u16>,
    ) -> Option<BatchEvaluator> {
        run_with_large_stack(|| {
            let policies = self.policies_for_action(action);
            let policies = policies.filter(|(index, policy)| {
                policy.mode != PolicyMode::Off && indices.contains(index)
            });
            BatchEvaluator::new(action, policies)
        })
    }

    /// The policies of an evaluator of this set that match an agent. Attributes that none of them reads may be missing.
    pub fn match_agent_in_batch(
        &self,
        evaluator: &BatchEvaluator,
        agent: &AgentAttributes,
    ) -> PolicyMatches {
        evaluator.evaluate(agent, self.membership())
    }
}

fn prepare_evaluation(
    action: Action,
    policies: &[Policy],
) -> Result<BatchEvaluator, Vec<PolicyError>> {
    let active = (0_u16..)
        .zip(policies)
        .filter(|(_, policy)| policy.mode != PolicyMode::Off && policy.actions.contains(&action));
    let evaluator = BatchEvaluator::new(action, active);
    let mut refused = evaluator.refused.iter();
    match refused.find_map(|index| policies.get(usize::from(*index))) {
        Some(policy) => {
            let message = "this policy cannot be evaluated on its own";
            Err(vec![PolicyError::at_start(
                &policy.id,
                &policy.text,
                message,
            )])
        }
        None => Ok(evaluator),
    }
}

/// Errors of a set that is too large or contains an identifier twice.
fn check_policy_set_limits(texts: &[PolicyText]) -> Vec<PolicyError> {
    let mut errors = Vec::new();
    if let Some(text) = texts.get(MAX_POLICIES) {
        let message = format!(
            "a set has at most {MAX_POLICIES} policies, and this one has {}",
            texts.len()
        );
        errors.push(PolicyError::at_start(&text.id, &text.text, message));
    }
    let mut seen_ids = HashSet::new();
    for text in texts.iter().take(MAX_POLICIES) {
        if text.text.len() > MAX_POLICY_BYTES {
            let message = format!(
                "a policy has at most {MAX_POLICY_BYTES} bytes, and this one has {}",
                text.text.len()
            );
            errors.push(PolicyError::at_start(&text.id, &text.text, message));
        }
        if !seen_ids.insert(&text.id) {
            errors.push(PolicyError::at_start(
                &text.id,
                &text.text,
                "another policy has this identifier",
            ));
        }
    }
    errors
}

/// Errors of a set that takes too long to parse or evaluate. Sets stored before this limit existed are still loaded.
pub fn policy_set_cost_errors(texts: &[PolicyText]) -> Vec<PolicyError> {
    let (mut terms, mut pattern_chars) = (0, 0);
    for text in texts {
        let size = PolicyTextSize::measure(&text.text);
        terms += size.terms;
        pattern_chars += size.pattern_chars;
        let message = if pattern_chars > MAX_PATTERN_CHARS {
            format!(
                "the `like` patterns of a set may have {MAX_PATTERN_CHARS} characters in total, and with this policy they have {pattern_chars}; use a list with `contains` instead of patterns without `*`"
            )
        } else if terms > MAX_TERMS {
            format!(
                "the policies of a set may have {MAX_TERMS} words, numbers and strings in total, and with this one they have {terms}; use a label or a collection instead of a long list"
            )
        } else {
            continue;
        };
        return vec![PolicyError::at_start(&text.id, &text.text, message)];
    }
    Vec::new()
}

/// The errors of Cedar's strict validation. A policy without an action is checked for the default ones.
fn validate_policies(policies: &[Policy]) -> Vec<PolicyError> {
    let default_actions_schema: Vec<&str> = SCHEMA
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("action admit") && !line.starts_with("action register"))
        .collect();
    let with_named_actions = |names_actions: bool| {
        policies
            .iter()
            .filter(move |policy| policy.names_actions == names_actions)
    };
    let mut faults = validate_against_schema(SCHEMA, with_named_actions(true));
    faults.extend(validate_against_schema(
        &default_actions_schema.concat(),
        with_named_actions(false),
    ));
    faults
}

fn validate_against_schema<'a>(
    schema: &str,
    policies: impl Iterator<Item = &'a Policy> + Clone,
) -> Vec<PolicyError> {
    let schema = match Schema::from_cedarschema_str(schema) {
        Ok((schema, _)) => schema,
        Err(error) => return vec![PolicyError::at_start("schema", SCHEMA, error.to_string())],
    };
    let mut set = CedarSet::new();
    for policy in policies.clone() {
        if let Err(error) = set.add(policy.parsed.clone()) {
            return vec![PolicyError::at_start(
                &policy.id,
                &policy.text,
                error.to_string(),
            )];
        }
    }
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let text_of_policy = |id: &str| {
        let mut policies = policies.clone();
        policies
            .find(|policy| policy.id == id)
            .map_or("", |policy| policy.text.as_str())
    };
    result
        .validation_errors()
        .map(|error| {
            let id: &str = error.policy_id().as_ref();
            PolicyError::from_diagnostic(id, text_of_policy(id), error)
        })
        .collect()
}

/// Formats a policy's text in Cedar's standard style.
pub fn format_policy(text: &str) -> Result<String, String> {
    if is_nested_too_deeply(text) {
        return Err("the policy is nested too deeply".to_owned());
    }
    let format = || {
        let config = cedar_policy_formatter::Config::default();
        cedar_policy_formatter::policies_str_to_pretty(text, &config)
            .map_err(|error| error.to_string())
    };
    run_with_large_stack(format)
        .unwrap_or_else(|| Err("not enough memory to parse the policy".to_owned()))
}

/// The error of a set that compares ages with too many numbers, at the first policy beyond.
fn check_age_thresholds(policies: &[Policy]) -> Option<PolicyError> {
    let mut thresholds = BTreeSet::new();
    policies.iter().find_map(|policy| {
        thresholds.extend(policy.age_thresholds.iter().copied());
        // A comparison has up to two thresholds.
        (thresholds.len() > 2 * MAX_AGE_COMPARISONS).then(|| {
            let message = format!(
                "the policies of a set may compare ages of agents with {MAX_AGE_COMPARISONS} different numbers, and this \
                 one has more"
            );
            PolicyError::at_start(&policy.id, &policy.text, message)
        })
    })
}
