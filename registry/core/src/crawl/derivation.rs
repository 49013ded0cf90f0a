//! Derives the model and findings from a card's bytes, also again after an upgrade.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use a2a_card::{
    DERIVATION_VERSION, LintContext, ParsedCard, Severity, all_findings_with_context,
    content_digest, with_absolute_addresses,
};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::{agent, domain, enrolled_key, version};
use a2a_registry_store::{
    Executor, WriteTransaction, agents, decisions, domains, ownership, versions,
};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::admission::decision::{decide_newest_version, redecide_pending_version, submitter_name};
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{POLICY_ACTOR, SYSTEM_ACTOR};
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::Result;
use crate::signatures::{StoredKeySet, VerifiedSignatures};
use crate::sources::agent_card_base_url;

/// Versions derived again per transaction.
const VERSIONS_PER_PAGE: u64 = 200;

#[derive(Debug)]
pub struct DerivedCard {
    /// The model as JSON.
    pub model: String,
    pub findings: String,
    pub has_error: bool,
    pub derivation: i32,
}

/// The derivation number of this build, in the database's type.
pub fn current_derivation_number() -> i32 {
    i32::try_from(DERIVATION_VERSION).unwrap_or(i32::MAX)
}

/// The context of a card: its URL, which resolves relative addresses, and its previous version.
#[derive(Debug, Default)]
pub struct DerivationContext {
    card_url: Option<Url>,
    previous: Option<ParsedCard>,
}

impl DerivationContext {
    /// The context of a card of this agent, given the agent's domain and previous bytes.
    pub fn for_agent(
        agent: &agent::Model,
        domain: Option<&domain::Model>,
        previous: Option<&[u8]>,
    ) -> Self {
        Self {
            card_url: agent_card_base_url(agent, domain),
            previous: previous.and_then(|bytes| a2a_card::parse_card(bytes).ok()),
        }
    }

    pub async fn load_for_version(db: &impl Executor, row: &version::Model) -> Result<Self> {
        let agent = agents::agents_by_ids(db, &[row.agent_id]).await?.pop();
        let before = versions::version_page(db, row.agent_id, true, Some(row.id), 1).await?;
        let previous = match before.first() {
            Some(before) => versions::intact_body_by_digest(db, &before.digest).await?,
            None => None,
        };
        let Some(agent) = agent else {
            return Ok(Self::default());
        };
        let domain = domains::domains_by_ids(db, &[agent.domain_id]).await?.pop();
        Ok(Self::for_agent(
            &agent,
            domain.as_ref(),
            previous.as_deref(),
        ))
    }

    fn lint_context(&self) -> LintContext<'_> {
        LintContext {
            card_url: self.card_url.as_ref(),
            previous: self.previous.as_ref(),
        }
    }
}

pub fn derive_card(
    parsed: &ParsedCard,
    bytes: &[u8],
    signatures: &VerifiedSignatures,
    derivation_context: &DerivationContext,
) -> DerivedCard {
    let mut findings = all_findings_with_context(parsed, bytes, derivation_context.lint_context());
    findings.extend(signatures.findings(bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let text = |value: Result<String, serde_json::Error>| value.unwrap_or_else(|_| "null".into());
    let card = match &derivation_context.card_url {
        Some(card_url) => with_absolute_addresses(&parsed.card, card_url),
        None => Cow::Borrowed(&parsed.card),
    };
    DerivedCard {
        model: text(serde_json::to_string(&card)),
        findings: text(serde_json::to_string(&findings)),
        has_error: findings
            .iter()
            .any(|finding| finding.severity == Severity::Error),
        derivation: current_derivation_number(),
    }
}

/// The keys that verify the versions of one agent.
#[derive(Debug, Default, PartialEq, Eq)]
struct VerificationKeys {
    /// The key sets fetched with its newest version.
    newest: Vec<StoredKeySet>,
    /// The keys enrolled for its domain.
    enrolled: Vec<enrolled_key::Model>,
}

/// Loads the verification keys of these agents' versions.
async fn load_verification_keys(
    db: &impl Executor,
    agent_rows: &[agent::Model],
) -> Result<HashMap<Uuid, VerificationKeys>> {
    let newest_ids: Vec<Uuid> = agent_rows
        .iter()
        .filter_map(|row| row.newest_version)
        .collect();
    let newest_key_sets: HashMap<Uuid, String> = versions::key_sets_by_version(db, &newest_ids)
        .await?
        .into_iter()
        .collect();
    let mut domains: Vec<i64> = agent_rows.iter().map(|row| row.domain_id).collect();
    domains.sort_unstable();
    domains.dedup();
    let enrolled = ownership::enrolled_keys_by_domain(db, &domains).await?;
    let keys_for_agent = |row: &agent::Model| {
        let newest = row.newest_version.and_then(|id| newest_key_sets.get(&id));
        let own = enrolled.iter().filter(|key| key.domain_id == row.domain_id);
        let keys = VerificationKeys {
            newest: newest.map_or_else(Vec::new, |sets| StoredKeySet::parse_all(sets)),
            enrolled: own.cloned().collect(),
        };
        (row.id, keys)
    };
    Ok(agent_rows.iter().map(keys_for_agent).collect())
}

/// Derives one page of versions again that an older build has derived, or whose keys have changed since; returns their
/// number. Bytes and decisions stay. If a result differs, an event is appended for the agent, and the rules are
/// applied again to pending versions. If the database fails, the next call derives the same page.
pub async fn rederive_version_page(context: &AppContext) -> Result<usize> {
    let outdated = versions::versions_below_derivation(
        &context.store,
        current_derivation_number(),
        VERSIONS_PER_PAGE,
    )
    .await?;
    if outdated.is_empty() {
        return Ok(0);
    }
    let count = outdated.len();
    let mut agent_ids: Vec<Uuid> = outdated.iter().map(|row| row.agent_id).collect();
    agent_ids.sort_unstable();
    agent_ids.dedup();
    let rows = agents::agents_by_ids(&context.store, &agent_ids).await?;
    let keys = load_verification_keys(&context.store, &rows).await?;
    let mut rederived = rederive_versions(context, outdated, &keys).await?;
    let write = context.store.begin_write().await?;
    let rows = agents::agents_by_ids(&write, &agent_ids).await?;
    let current_keys = load_verification_keys(&write, &rows).await?;
    let ids: Vec<Uuid> = rederived.iter().map(|pair| pair.before.id).collect();
    let stored_key_sets = versions::key_sets_by_version(&write, &ids).await?;
    // Versions that have changed in the meantime are derived with the next page.
    rederived.retain(|RederivedVersion { before, .. }| {
        keys.get(&before.agent_id) == current_keys.get(&before.agent_id)
            && stored_key_sets.contains(&(before.id, before.key_sets.clone()))
    });
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    for (agent, changed) in store_rederived_versions(&write, &mut change_set, rederived).await? {
        let mut state = load_agent_state(&write, agent).await?;
        apply_signature_changes(context, &write, &mut change_set, &mut state, &changed).await?;
    }
    commit_changes(context, write, change_set).await?;
    Ok(count)
}

struct RederivedVersion {
    before: version::Model,
    after: version::Model,
}

impl RederivedVersion {
    /// Whether content or signature has a different result, apart from keys that became known only now: no decision
    /// depends on those yet.
    fn content_or_signing_differs(&self) -> bool {
        let by_keys = self.before.derivation == versions::UNDERIVED;
        let (before, after) = (&self.before, &self.after);
        let is_read_alike =
            (&before.content_digest, &before.signing) == (&after.content_digest, &after.signing);
        !by_keys && !is_read_alike
    }

    /// Whether any result differs.
    fn any_result_differs(&self) -> bool {
        let same = version::Model {
            derivation: self.after.derivation,
            ..self.before.clone()
        };
        self.after != same
    }
}

/// Derives versions again before anything is locked: verification is slow, and other writes must not wait for it.
async fn rederive_versions(
    context: &AppContext,
    outdated: Vec<version::Model>,
    keys: &HashMap<Uuid, VerificationKeys>,
) -> Result<Vec<RederivedVersion>> {
    let no_keys = VerificationKeys::default();
    let mut rederived = Vec::with_capacity(outdated.len());
    for before in outdated {
        let bytes = versions::intact_body_by_digest(&context.store, &before.digest).await?;
        let derivation_context =
            DerivationContext::load_for_version(&context.store, &before).await?;
        let keys = keys.get(&before.agent_id).unwrap_or(&no_keys);
        let after = rederive_version(&before, bytes.as_deref(), &derivation_context, keys);
        rederived.push(RederivedVersion { before, after });
        tokio::task::yield_now().await;
    }
    Ok(rederived)
}

/// Stores the new results, and returns the versions whose results differ, by agent.
async fn store_rederived_versions(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    rederived: Vec<RederivedVersion>,
) -> Result<BTreeMap<Uuid, Vec<RederivedVersion>>> {
    let mut changed: BTreeMap<Uuid, Vec<RederivedVersion>> = BTreeMap::new();
    for pair in rederived {
        let (before, after) = (&pair.before, &pair.after);
        if pair.content_or_signing_differs() {
            // Decisions apply to these bytes, whatever this build derives from them.
            write
                .update_decision_digests(before.id, &after.content_digest, &after.signing)
                .await?;
        }
        write.update_derived_version_columns(after.clone()).await?;
        if pair.any_result_differs() {
            let data = json!({"digest": before.digest, "derivation": after.derivation});
            change_set.add_agent_event(
                EventKind::AgentDerived,
                before.agent_id,
                SYSTEM_ACTOR,
                data,
            );
            changed.entry(before.agent_id).or_default().push(pair);
        }
    }
    Ok(changed)
}

/// Updates an agent for versions whose results differ: if the signature of its served card is now invalid, it is put
/// on hold until a person decides; a version that was rejected for a signature that now verifies is decided again, and
/// so is a pending one.
async fn apply_signature_changes(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    rederived: &[RederivedVersion],
) -> Result<()> {
    if state.agent.retired_at.is_some() {
        return Ok(());
    }
    let find_version = |id: Option<Uuid>| rederived.iter().find(|pair| Some(pair.before.id) == id);
    let is_invalid = |row: &version::Model| row.signature == SignatureState::Invalid;
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let invalid_served = find_version(approved).filter(|pair| is_invalid(&pair.after));
    let needs_review = match invalid_served {
        // A version that a person approved despite an invalid signature stays approved; one that a rule of an older
        // build approved does not.
        Some(RederivedVersion { before, after }) => {
            !is_invalid(before) || !is_approved_by_person(write, after).await?
        }
        None => false,
    };
    if needs_review {
        let ids: Vec<Uuid> = approved.into_iter().collect();
        match versions::version_summaries(write, &ids).await?.pop() {
            Some(key) if state.is_under_review(key.id, Some(ChangeClass::Critical)) => {}
            Some(key) if newest == approved => {
                let submitter = submitter_name(write, state).await?;
                change_set.open_review(
                    state,
                    &key,
                    Some(ChangeClass::Critical),
                    submitter,
                    SYSTEM_ACTOR,
                );
            }
            _ => {
                let reason = "the signature of the served card is invalid";
                change_set.place_hold(state, Hold::CriticalChange, POLICY_ACTOR, reason);
            }
        }
    }
    let is_fixed = |RederivedVersion { before, after }: &RederivedVersion| {
        let rejected = before.state == VersionState::Rejected;
        let is_broken = after.signature.could_be(SignatureState::Invalid);
        rejected && before.signing != after.signing && !is_broken
    };
    if let Some(pair) = find_version(newest).filter(|pair| is_fixed(pair)) {
        change_set.set_version_state(pair.before.id, VersionState::Pending);
        return decide_newest_version(context, write, change_set, state, SYSTEM_ACTOR).await;
    }
    redecide_pending_version(context, write, change_set, state, SYSTEM_ACTOR).await
}

/// Whether the last approval of a version is by a person.
async fn is_approved_by_person(write: &WriteTransaction, row: &version::Model) -> Result<bool> {
    let agent_decisions = decisions::decisions_by_agent(write, &[row.agent_id]).await?;
    let mut newest_first = agent_decisions.iter().rev();
    let last = newest_first.find(|made| made.version_id == row.id && made.approved);
    Ok(last.is_some_and(|made| made.rule == Rule::Person))
}

/// The row as derived by this build. A row whose bytes are missing, damaged or unreadable is not changed.
fn rederive_version(
    row: &version::Model,
    bytes: Option<&[u8]>,
    derivation_context: &DerivationContext,
    keys: &VerificationKeys,
) -> version::Model {
    let read = bytes.and_then(|bytes| Some((a2a_card::parse_card(bytes).ok()?, bytes)));
    let Some((parsed, bytes)) = read else {
        return version::Model {
            derivation: current_derivation_number(),
            ..row.clone()
        };
    };
    let key_sets = StoredKeySet::for_reverification(&row.key_sets, &keys.newest, &keys.enrolled);
    let signatures = VerifiedSignatures::verify_card(&parsed, bytes, key_sets);
    let derived = derive_card(&parsed, bytes, &signatures, derivation_context);
    version::Model {
        content_digest: content_digest(bytes),
        signing: signatures.signing_summary(),
        signature: signatures.state().into(),
        key_sets: signatures.key_sets_json(),
        thumbprints: signatures.thumbprints(),
        verdicts: signatures.results_json(),
        wire_family: parsed.family.as_str().into(),
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        ..row.clone()
    }
}
