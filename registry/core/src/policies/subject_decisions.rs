//! Decisions about others: whether an account, a member of groups or the holder of an access token may find or call an
//! agent. Gateways and pipelines ask this, so it is decided from memory.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_api::limits::{MAX_GROUP_NAME_CHARS, MAX_NAME};
use a2a_registry_api::{
    DecisionBatch, DecisionBatchResult, DecisionRequest, DecisionSubject, PolicyDecision,
    deserialize_nonempty_parameter,
};
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::{ANONYMOUS_ACCOUNT, Action, PolicySet};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::accounts::authentication::{authenticate_cached_token, sha256_hex};
use crate::accounts::subject_callers::{
    SubjectCaller, load_account_caller, load_group_caller, load_token_caller,
};
use crate::admission::coverage::url_origin;
use crate::agents::decidable_urls::{approved_url_key, normalize_url};
use crate::agents::rendering::load_decision_entry;
use crate::context::AppContext;
use crate::database_health::database_silence;
use crate::decision_log::asker_name;
use crate::endpoints::selection::load_vouched_origins;
use crate::error::{AppError, ErrorKind, Result};
use crate::policies::access_decision::{
    AccessQuestion, AccessVerdict, MAX_SET_CHANGES, changing_sets_error, decide_call,
    is_evaluated_under, parse_decision_action, silent_database_verdict, uncallable_agent_reason,
};
use crate::process_state::agent_cache::RenderedAgent;
use crate::visibility::caller::Caller;

/// Maximum number of questions in one request.
pub const MAX_QUESTIONS: usize = 100;
/// How long the database may be silent until everything is denied: what others have changed meanwhile is not known.
pub const MAX_DATABASE_SILENCE: Duration = Duration::from_secs(5);
/// Maximum number of agents at one URL; if more share it, the answer is no.
pub const MAX_AGENTS_PER_URL: usize = 100;
const MAX_REFERENCE_CHARS: usize = 1_024;
const MAX_SUBJECT_GROUPS: usize = 100;
pub(super) const SILENT_DATABASE: &str = "The database has not responded to this process for more than 5 s, so it denies everything. Try again later.";

/// A question of a gateway, whose subject is the holder of the token in `Subject-Authorization`, or else the account
/// or the groups; without all of these a client without a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct GatewayQuery {
    /// `discover` or `invoke`; by default `invoke`.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub action: Option<String>,
    /// Id or URN of the agent; left out with `url`.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub agent: Option<String>,
    /// Exact URL of an interface of an approved card, on a host that the domain of the agent has proved or an admin
    /// vouches for.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub url: Option<String>,
    /// Name of an account, instead of a token.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub account: Option<String>,
    /// Group as policies name it, instead of a token; repeated for several.
    #[serde(default)]
    pub groups: Vec<String>,
}

impl GatewayQuery {
    fn to_request(&self, has_token: bool) -> Result<DecisionRequest> {
        let is_named = self.account.is_some() || !self.groups.is_empty();
        if is_named && has_token {
            let detail = "the subject is given both by a header and by parameters";
            return Err(AppError::invalid("/account", detail));
        }
        let account = match is_named {
            true => self.account.clone(),
            false => Some(ANONYMOUS_ACCOUNT.to_owned()),
        };
        let subject = DecisionSubject {
            account,
            groups: self.groups.clone(),
        };
        let action = self.action.as_deref().unwrap_or(Action::Invoke.as_str());
        Ok(DecisionRequest {
            action: action.to_owned(),
            agent: self.agent.clone(),
            url: self.url.clone(),
            subject: (!has_token).then_some(subject),
        })
    }
}

/// Authenticates a gateway by its token, from memory where nothing has changed.
///
/// # Errors
/// As other requests have, and `Unavailable` if the database is silent: it is not asked then, because it might never
/// answer.
pub async fn authenticate_gateway(context: &AppContext, token: &str) -> Result<Caller> {
    if database_silence(context) > MAX_DATABASE_SILENCE {
        return Err(AppError::unavailable(SILENT_DATABASE, 5));
    }
    authenticate_cached_token(context, token).await
}

/// Answers a gateway.
///
/// # Errors
/// As other requests have; whoever tells the gateway treats each of them as a denial.
pub async fn decide_for_gateway(
    context: &AppContext,
    gateway: &Caller,
    query: &GatewayQuery,
    subject_token: Option<&str>,
) -> Result<PolicyDecision> {
    let request = query.to_request(subject_token.is_some())?;
    decide_for_subject(context, gateway, &request, subject_token).await
}

/// Answers several questions, each by itself.
pub async fn decide_batch(
    context: &AppContext,
    asker: &Caller,
    batch: &DecisionBatch,
    subject_token: Option<&str>,
) -> Result<DecisionBatchResult> {
    asker.require_permission(Permission::Decide)?;
    if !(1..=MAX_QUESTIONS).contains(&batch.questions.len()) {
        let detail = format!("a request must have 1 to {MAX_QUESTIONS} questions");
        return Err(AppError::invalid("/questions", detail));
    }
    let mut decisions = Vec::with_capacity(batch.questions.len());
    for (index, question) in batch.questions.iter().enumerate() {
        let decision = decide_for_subject(context, asker, question, subject_token).await;
        decisions.push(decision.map_err(|error| {
            let members = error.members.iter();
            let members = members
                .map(|(pointer, detail)| (format!("/questions/{index}{pointer}"), detail.clone()));
            AppError {
                members: members.collect(),
                ..error.clone()
            }
        })?);
    }
    Ok(DecisionBatchResult { decisions })
}

/// Decides whether the subject of a request may find or call an agent, for a caller who may ask about others.
pub(super) async fn decide_for_subject(
    context: &AppContext,
    asker: &Caller,
    request: &DecisionRequest,
    subject_token: Option<&str>,
) -> Result<PolicyDecision> {
    let action = parse_decision_action(&request.action)?;
    let resource = check_question(request)?.to_owned();
    asker.require_permission(Permission::Decide)?;
    let mut question = AccessQuestion {
        asker,
        action,
        subject: "somebody who was not looked up".to_owned(),
        resource,
        sees_policies: true,
    };
    if let Some(verdict) = silent_database_verdict(context) {
        let set = context.policy_sets.enforced_set();
        return Ok(question.record_verdict(context, &set, verdict, None));
    }
    let (name, subject) = load_subject(context, asker, request, subject_token).await?;
    question.subject = name;
    let (set, verdict, entry) = match subject {
        Ok(caller) => judge_agents(context, &caller, action, request).await?,
        Err(reason) => {
            let set = context.policy_sets.enforced_set();
            (set, AccessVerdict::denied(reason), None)
        }
    };
    Ok(question.record_verdict(context, &set, verdict, entry.as_deref()))
}

/// Checks the members of a question; returns the agent or the URL that it is about.
fn check_question(request: &DecisionRequest) -> Result<&str> {
    let (pointer, resource) = match (&request.agent, &request.url) {
        (Some(agent), None) => ("/agent", agent),
        (None, Some(url)) => ("/url", url),
        _ => {
            return Err(AppError::invalid(
                "",
                "give either `agent` or `url`, and not both",
            ));
        }
    };
    if resource.chars().count() > MAX_REFERENCE_CHARS {
        let detail = format!("at most {MAX_REFERENCE_CHARS} characters");
        return Err(AppError::invalid(pointer, detail));
    }
    Ok(resource)
}

/// Loads whom a question is about, with a name for the record.
async fn load_subject(
    context: &AppContext,
    asker: &Caller,
    request: &DecisionRequest,
    token: Option<&str>,
) -> Result<(String, SubjectCaller)> {
    match (&request.subject, token) {
        (Some(subject), _) => load_named_subject(context, subject).await,
        (None, Some(token)) => load_token_subject(context, token).await,
        (None, None) => Ok((asker_name(asker).to_owned(), Ok(asker.clone()))),
    }
}

async fn load_named_subject(
    context: &AppContext,
    subject: &DecisionSubject,
) -> Result<(String, SubjectCaller)> {
    match (&subject.account, subject.groups.as_slice()) {
        (Some(name), []) => {
            let is_valid = !name.is_empty() && name.chars().count() <= 2 * MAX_NAME;
            if !is_valid {
                return Err(AppError::invalid(
                    "/subject/account",
                    "this is not a valid account name",
                ));
            }
            let key = format!("account:{name}");
            let load = load_account_caller(context, name);
            Ok((name.clone(), load_cached(context, key, load).await?))
        }
        (None, [_, ..]) => {
            check_group_names(&subject.groups)?;
            let key = serde_json::to_string(&subject.groups);
            let key = key.map_err(|error| AppError::internal(error.to_string()))?;
            let load = async {
                let caller = load_group_caller(&context.store, &subject.groups).await?;
                Ok::<SubjectCaller, AppError>(Ok(caller))
            };
            let name = format!("groups {}", subject.groups.join(", "));
            Ok((name, load_cached(context, key, load).await?))
        }
        _ => Err(AppError::invalid(
            "/subject",
            "give either `account` or `groups`, and not both",
        )),
    }
}

fn check_group_names(names: &[String]) -> Result<()> {
    let is_valid = |name: &String| {
        (1..=MAX_GROUP_NAME_CHARS).contains(&name.chars().count()) && !name.contains('\0')
    };
    if names.len() > MAX_SUBJECT_GROUPS || !names.iter().all(is_valid) {
        let detail = format!(
            "at most {MAX_SUBJECT_GROUPS} groups, each with 1 to {MAX_GROUP_NAME_CHARS} characters"
        );
        return Err(AppError::invalid("/subject/groups", detail));
    }
    Ok(())
}

/// Loads the holder of an identity provider's access token.
async fn load_token_subject(context: &AppContext, token: &str) -> Result<(String, SubjectCaller)> {
    let unnamed = |reason: &str| ("holder of a token".to_owned(), Err(reason.to_owned()));
    let Some(provider) = context.providers.by_claimed_issuer(token) else {
        let reason =
            "The token of the subject is not an access token of a configured identity provider.";
        return Ok(unnamed(reason));
    };
    let token_subject = match provider.verify_access_token(token).await {
        Ok(subject) => subject,
        Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
        Err(error) => return Ok(unnamed(&error.public)),
    };
    let key = format!("token:{}", sha256_hex(token));
    let load = load_token_caller(context, &token_subject);
    let subject = load_cached(context, key, load).await?;
    let name = match &subject {
        Ok(caller) => asker_name(caller).to_owned(),
        Err(_) => "holder of a token".to_owned(),
    };
    Ok((name, subject))
}

/// A caller from memory, or loaded if it is not there.
async fn load_cached(
    context: &AppContext,
    key: String,
    load: impl Future<Output = Result<SubjectCaller>>,
) -> Result<SubjectCaller> {
    if let Some(known) = context.decision_callers.get(&key, context.now().0) {
        return Ok(Ok(known));
    }
    // Read before the rows, so that a change in between is detected later.
    let generation = context.decision_callers.generation();
    let loaded = load.await?;
    if let Ok(caller) = &loaded {
        let callers = &context.decision_callers;
        callers.insert(key, generation, caller.clone(), None);
    }
    Ok(loaded)
}

type JudgedAgent = (Arc<PolicySet>, AccessVerdict, Option<Arc<RenderedAgent>>);

/// Decides about the agents that a question is about: of several at one URL, the first that is denied decides.
async fn judge_agents(
    context: &AppContext,
    subject: &Caller,
    action: Action,
    request: &DecisionRequest,
) -> Result<JudgedAgent> {
    for _ in 0..MAX_SET_CHANGES {
        let found = find_agents(context, request).await?;
        let set = context.policy_sets.enforced_set();
        let entries = match found {
            Ok(entries) => entries,
            Err(reason) => return Ok((set, AccessVerdict::denied(reason), None)),
        };
        if !entries.iter().all(|entry| is_evaluated_under(entry, &set)) {
            continue;
        }
        let mut judged = None;
        for entry in entries {
            let verdict = judge_agent(context, &set, subject, action, &entry);
            let is_denied = !verdict.is_allowed();
            judged = Some((verdict, entry));
            if is_denied {
                break;
            }
        }
        return Ok(match judged {
            Some((verdict, entry)) => (set, verdict, Some(entry)),
            None => (set, AccessVerdict::denied(missing_reason(request)), None),
        });
    }
    Err(changing_sets_error())
}

fn missing_reason(request: &DecisionRequest) -> &'static str {
    match request.url {
        Some(_) => {
            "No approved agent has an interface with exactly this URL on a host that its domain has proved or an \
             admin vouches for."
        }
        None => "No agent has this identifier or URN.",
    }
}

fn judge_agent(
    context: &AppContext,
    set: &PolicySet,
    subject: &Caller,
    action: Action,
    entry: &RenderedAgent,
) -> AccessVerdict {
    if let Some(reason) = uncallable_agent_reason(entry).filter(|_| action == Action::Invoke) {
        return AccessVerdict::denied(reason);
    }
    if !entry.is_visible_to(subject, set) {
        let (principal, no_waivers) = (subject.principal(), std::collections::BTreeSet::new());
        let matches = &entry.discover_matches;
        let decision = set.decide(Action::Discover, &principal, matches, &no_waivers);
        return match decision.allowed {
            true => AccessVerdict::denied("The subject cannot see the agent."),
            false => AccessVerdict {
                decision,
                other_reason: None,
            },
        };
    }
    match action {
        Action::Invoke => decide_call(context, set, subject, entry),
        _ => AccessVerdict::allowed(),
    }
}

/// Finds the agents that a question is about; the error is the reason to deny it, in a sentence.
async fn find_agents(
    context: &AppContext,
    request: &DecisionRequest,
) -> Result<std::result::Result<Vec<Arc<RenderedAgent>>, String>> {
    let Some(url) = &request.url else {
        let agent = request.agent.as_deref().unwrap_or_default();
        let ids = match agent.parse::<Uuid>() {
            Ok(id) => Some(vec![id]),
            Err(_) => find_agent_ids(context, format!("urn:{agent}")).await?,
        };
        let mut entries = Vec::new();
        for id in ids.unwrap_or_default() {
            entries.extend(load_decision_entry(context, id).await?);
        }
        return Ok(Ok(entries));
    };
    let Some(url) = normalize_url(url) else {
        return Ok(Ok(Vec::new()));
    };
    let is_vouched = is_vouched_origin(context, &url_origin(&url)).await?;
    let mut ids = find_agent_ids(context, approved_url_key(&url, true)).await?;
    if is_vouched {
        let named = find_agent_ids(context, approved_url_key(&url, false)).await?;
        ids = ids.zip(named).map(|(own, named)| [own, named].concat());
    }
    let Some(ids) = ids else {
        let reason = format!("More than {MAX_AGENTS_PER_URL} agents share this URL.");
        return Ok(Err(reason));
    };
    let mut entries = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(entry) = load_decision_entry(context, id).await? else {
            return Ok(Err("An agent at this URL cannot be read.".to_owned()));
        };
        // The index may still have a URL that the agent has no longer.
        let mut urls = entry.approved_urls.iter();
        if urls.any(|one| one.url == url && (one.is_own || is_vouched)) {
            entries.push(entry);
        }
    }
    Ok(Ok(entries))
}

/// Whether an admin vouches for the endpoints of an origin, from memory while no vouch has changed.
async fn is_vouched_origin(context: &AppContext, origin: &str) -> Result<bool> {
    let callers = &context.decision_callers;
    // Read before the rows, so that a change in between is detected later.
    let generation = callers.generation();
    if let Some(known) = callers.vouched_origins.get(generation) {
        return Ok(known.contains(origin));
    }
    let loaded = Arc::new(load_vouched_origins(&context.store).await?);
    callers.vouched_origins.set(generation, Arc::clone(&loaded));
    Ok(loaded.contains(origin))
}

async fn find_agent_ids(context: &AppContext, key: String) -> Result<Option<Vec<Uuid>>> {
    let index = context.index.clone();
    let find = move || {
        index.run_with_damage_retry(|index| index.agent_ids_by_key(&key, MAX_AGENTS_PER_URL))
    };
    let found = tokio::task::spawn_blocking(find)
        .await
        .map_err(|error| AppError::internal(format!("a look-up was aborted: {error}")))?;
    Ok(found?)
}
