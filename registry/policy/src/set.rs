//! A numbered set of policies: compiled and checked as a whole.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet as CedarSet, Request,
    Schema, ValidationMode, Validator,
};

use crate::action::Action;
use crate::depth::{TextSize, is_too_deep, with_room};
use crate::evaluation::Matches;
use crate::fault::Fault;
use crate::policy::{Effect, Mode, Policy, PolicyText, entity};
use crate::principal::{ANONYMOUS, PrincipalScope};
use crate::resource::{AgentFacts, Collections, domain_entities};

/// The schema of everything that policies may speak about.
pub const SCHEMA: &str = include_str!("schema.cedarschema");
pub const MAX_POLICIES: usize = 1_000;
pub const MAX_POLICY_BYTES: usize = 64 * 1024;
/// Words, numbers and texts in all policies of a new set: each is read, and evaluated for each agent.
pub const MAX_TERMS: usize = 20_000;
/// Characters in the patterns of `like` of a new set: each may be compared with each character of a text.
pub const MAX_PATTERN_CHARS: usize = 20_000;
const MAX_FAULTS: usize = 50;

/// A clone shares what was compiled.
#[derive(Debug, Clone)]
pub struct PolicySet {
    number: u64,
    compiled: Arc<Compiled>,
    /// Answers policies that use collections; without it, no collection holds any agent.
    collections: Option<Arc<dyn Collections>>,
}

/// Everything but the number of the set.
#[derive(Debug)]
struct Compiled {
    policies: Vec<Policy>,
    questions: HashMap<Action, Questions>,
    /// Actions with policies on a dry run.
    tried: Vec<Action>,
}

/// The policies about one action, each as a permit for everybody under its place in the set.
#[derive(Debug, Default)]
struct Questions {
    conditional: CedarSet,
    /// Those that match every resource.
    always: BTreeSet<u16>,
}

impl PolicySet {
    /// Compiles a set under a number, and checks it against the schema. Returns every fault, at most fifty.
    pub fn compile(number: u64, written: &[PolicyText]) -> Result<Self, Vec<Fault>> {
        Self::compile_beside(number, written, &[])
    }

    /// Compiles a set together with shipped policies; a written policy replaces a shipped one with the same identifier.
    pub fn compile_beside(
        number: u64,
        written: &[PolicyText],
        shipped: &[PolicyText],
    ) -> Result<Self, Vec<Fault>> {
        let read = with_room(|| Self::read(number, written, shipped));
        read.unwrap_or_else(|| {
            let whole = Fault::of_whole("set", "", "there is no room to read policies; try again");
            Err(vec![whole])
        })
    }

    fn read(
        number: u64,
        written: &[PolicyText],
        shipped: &[PolicyText],
    ) -> Result<Self, Vec<Fault>> {
        let mut faults = limits(written);
        let mut policies = Vec::with_capacity(written.len() + shipped.len());
        if faults.is_empty() {
            let is_replaced = |one: &&PolicyText| written.iter().any(|other| other.id == one.id);
            let beside = shipped.iter().filter(|one| !is_replaced(one));
            let written = written.iter().map(|one| (one, false));
            // Shipped policies come last, so that the places of written ones do not depend on them.
            for (one, is_shipped) in written.chain(beside.map(|one| (one, true))) {
                match Policy::read(one) {
                    Ok(policy) => policies.push(Policy {
                        is_shipped,
                        ..policy
                    }),
                    Err(fault) => faults.push(fault),
                }
            }
            faults.extend(validate(&policies));
        }
        if !faults.is_empty() {
            faults.truncate(MAX_FAULTS);
            return Err(faults);
        }
        let mut questions = HashMap::new();
        for action in Action::ALL {
            questions.insert(action, Questions::about(action, &policies)?);
        }
        let is_tried = |action: &Action| {
            let mut policies = policies.iter();
            policies.any(|one| one.mode == Mode::DryRun && one.actions.contains(action))
        };
        let tried = Action::ALL.into_iter().filter(is_tried).collect();
        Ok(Self {
            number,
            compiled: Arc::new(Compiled {
                policies,
                questions,
                tried,
            }),
            collections: None,
        })
    }

    #[must_use]
    pub fn with_number(self, number: u64) -> Self {
        Self { number, ..self }
    }

    #[must_use]
    pub fn asking(self, collections: Arc<dyn Collections>) -> Self {
        Self {
            collections: self.asks_about_collections().then_some(collections),
            ..self
        }
    }

    /// The same set, with the collections of another one.
    #[must_use]
    pub fn asking_like(self, other: &Self) -> Self {
        match other.collections.clone() {
            Some(collections) => self.asking(collections),
            None => self,
        }
    }

    pub fn asks_about_collections(&self) -> bool {
        let mut policies = self.policies().iter();
        policies.any(|policy| policy.mode != Mode::Off && policy.asks_about_collections)
    }

    pub const fn number(&self) -> u64 {
        self.number
    }

    /// In order; [`Matches`] refers to their places.
    pub fn policies(&self) -> &[Policy] {
        &self.compiled.policies
    }

    /// The policies about an action with their places, off ones too.
    pub fn about(&self, action: Action) -> impl Iterator<Item = (u16, &Policy)> {
        let placed = (0..).zip(self.policies());
        placed.filter(move |(_, policy)| policy.actions.contains(&action))
    }

    /// Whether every policy about an action that is not off matches every resource, so that nothing needs evaluation.
    pub fn is_plain(&self, action: Action) -> bool {
        let mut about = self.about(action);
        about.all(|(_, policy)| policy.mode == Mode::Off || !policy.conditional)
    }

    /// Whether a policy about an action that is not off was written by somebody, and not shipped.
    pub fn has_written(&self, action: Action) -> bool {
        let mut about = self.about(action);
        about.any(|(_, policy)| policy.mode != Mode::Off && !policy.is_shipped)
    }

    /// Whether it has policies about an action on a dry run.
    pub fn tries(&self, action: Action) -> bool {
        self.compiled.tried.contains(&action)
    }

    /// Whether a policy in force permits an action to anybody, if only for some resources.
    pub fn permits(&self, action: Action) -> bool {
        let mut about = self.about(action);
        about.any(|(_, policy)| policy.decides(Effect::Permit))
    }

    /// Whether an action is allowed to everybody for every resource, whatever else the set says.
    pub fn allows_all(&self, action: Action) -> bool {
        let permits = |policy: &Policy| {
            policy.decides(Effect::Permit)
                && !policy.conditional
                && policy.scope == PrincipalScope::Everybody
        };
        let mut about = self.about(action);
        let forbids = self.about(action).any(|(_, policy)| {
            // A permit that cannot be evaluated denies too.
            policy.decides(Effect::Forbid) || (policy.conditional && policy.decides(Effect::Permit))
        });
        about.any(|(_, policy)| permits(policy)) && !forbids
    }

    /// Whether the decision on an action depends on the principal.
    pub fn asks_who(&self, action: Action) -> bool {
        let mut about = self.about(action);
        about.any(|(_, policy)| {
            policy.mode != Mode::Off && policy.scope != PrincipalScope::Everybody
        })
    }

    pub fn matches(&self, action: Action, agent: &AgentFacts) -> Matches {
        self.matching(action, || {
            let asked = self.collections.as_ref();
            let holding = asked.map(|collections| collections.holding(agent));
            agent.entities(&holding.unwrap_or_default())
        })
    }

    pub fn matches_domain(&self, name: &str) -> Matches {
        self.matching(Action::Register, || domain_entities(name))
    }

    fn matching(
        &self,
        action: Action,
        resource: impl FnOnce() -> Result<(EntityUid, Vec<Entity>), String>,
    ) -> Matches {
        let Some(questions) = self.compiled.questions.get(&action) else {
            return Matches::default();
        };
        let mut matches = Matches {
            matching: questions.always.clone(),
            failed: BTreeSet::new(),
        };
        if questions.conditional.is_empty() {
            return matches;
        }
        let Ok((request, entities)) = resource().and_then(|resource| asked(action, resource))
        else {
            let all = questions.conditional.policies();
            matches.failed = all.filter_map(|policy| place_of(policy.id())).collect();
            return matches;
        };
        let response = Authorizer::new().is_authorized(&request, &questions.conditional, &entities);
        let told = response.diagnostics();
        let satisfied = told.reason().filter_map(place_of);
        matches.matching.extend(satisfied);
        let failed = told.errors().filter_map(|error| {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            place_of(error.policy_id())
        });
        matches.failed.extend(failed);
        matches
    }
}

impl Questions {
    fn about(action: Action, policies: &[Policy]) -> Result<Self, Vec<Fault>> {
        let mut questions = Self::default();
        for (place, policy) in (0_u16..).zip(policies) {
            if policy.mode == Mode::Off || !policy.actions.contains(&action) {
                continue;
            }
            if !policy.conditional {
                questions.always.insert(place);
                continue;
            }
            let question = policy.question.as_ref();
            let question = question.map(|one| one.new_id(PolicyId::new(place.to_string())));
            let added = question.map(|question| questions.conditional.add(question).is_ok());
            if added != Some(true) {
                let message = "this policy cannot be evaluated on its own";
                return Err(vec![Fault::of_whole(&policy.id, &policy.text, message)]);
            }
        }
        Ok(questions)
    }
}

fn place_of(question: &PolicyId) -> Option<u16> {
    let place: &str = question.as_ref();
    place.parse().ok()
}

/// The request and entities by which Cedar evaluates conditions. Who asks does not matter to any.
fn asked(
    action: Action,
    (id, entities): (EntityUid, Vec<Entity>),
) -> Result<(Request, Entities), String> {
    let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
    let request = request(entity("Account", ANONYMOUS)?, action, id)?;
    Ok((request, entities))
}

fn request(principal: EntityUid, action: Action, resource: EntityUid) -> Result<Request, String> {
    let action = entity("Action", action.as_str())?;
    Request::new(principal, action, resource, Context::empty(), None)
        .map_err(|error| error.to_string())
}

/// Faults of a set that is too large or has an identifier twice.
fn limits(written: &[PolicyText]) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(one) = written.get(MAX_POLICIES) {
        let message = format!(
            "a set has at most {MAX_POLICIES} policies, and this one has {}",
            written.len()
        );
        faults.push(Fault::of_whole(&one.id, &one.text, message));
    }
    let mut seen = HashSet::new();
    for one in written.iter().take(MAX_POLICIES) {
        if one.text.len() > MAX_POLICY_BYTES {
            let message = format!(
                "a policy has at most {MAX_POLICY_BYTES} bytes, and this one has {}",
                one.text.len()
            );
            faults.push(Fault::of_whole(&one.id, &one.text, message));
        }
        if !seen.insert(&one.id) {
            faults.push(Fault::of_whole(
                &one.id,
                &one.text,
                "another policy has this identifier",
            ));
        }
    }
    faults
}

/// Faults of a set that takes too long to read or evaluate. A set stored before this limit existed is still read.
pub fn cost_faults(written: &[PolicyText]) -> Vec<Fault> {
    let (mut terms, mut pattern_chars) = (0, 0);
    for one in written {
        let size = TextSize::measure(&one.text);
        terms += size.terms;
        pattern_chars += size.pattern_chars;
        let message = if pattern_chars > MAX_PATTERN_CHARS {
            format!(
                "the patterns of `like` in a set may have {MAX_PATTERN_CHARS} characters together, and with this policy they have {pattern_chars}; use a list with `contains` in place of patterns without `*`"
            )
        } else if terms > MAX_TERMS {
            format!(
                "the policies of a set may have {MAX_TERMS} words, numbers and texts together, and with this one they have {terms}; use a label or a collection in place of a long list"
            )
        } else {
            continue;
        };
        return vec![Fault::of_whole(&one.id, &one.text, message)];
    }
    Vec::new()
}

/// The faults that Cedar's strict validation finds. A policy that names no action is checked for those it means.
fn validate(policies: &[Policy]) -> Vec<Fault> {
    let unnamed: Vec<&str> = SCHEMA
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("action admit") && !line.starts_with("action register"))
        .collect();
    let of = |named: bool| {
        policies
            .iter()
            .filter(move |policy| policy.names_actions == named)
    };
    let mut faults = validate_by(SCHEMA, of(true));
    faults.extend(validate_by(&unnamed.concat(), of(false)));
    faults
}

fn validate_by<'a>(schema: &str, policies: impl Iterator<Item = &'a Policy> + Clone) -> Vec<Fault> {
    let schema = match Schema::from_cedarschema_str(schema) {
        Ok((schema, _)) => schema,
        Err(error) => return vec![Fault::of_whole("schema", SCHEMA, error.to_string())],
    };
    let mut set = CedarSet::new();
    for policy in policies.clone() {
        if let Err(error) = set.add(policy.read.clone()) {
            return vec![Fault::of_whole(&policy.id, &policy.text, error.to_string())];
        }
    }
    let told = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let text = |id: &str| {
        let mut policies = policies.clone();
        policies
            .find(|policy| policy.id == id)
            .map_or("", |policy| policy.text.as_str())
    };
    told.validation_errors()
        .map(|error| {
            let id: &str = error.policy_id().as_ref();
            Fault::of_diagnostic(id, text(id), error)
        })
        .collect()
}

/// A policy's text in Cedar's usual form.
pub fn formatted(text: &str) -> Result<String, String> {
    if is_too_deep(text) {
        return Err("it is nested too deep".to_owned());
    }
    let written = || {
        let config = cedar_policy_formatter::Config::default();
        cedar_policy_formatter::policies_str_to_pretty(text, &config)
            .map_err(|error| error.to_string())
    };
    with_room(written).unwrap_or_else(|| Err("there is no room to read it".to_owned()))
}
