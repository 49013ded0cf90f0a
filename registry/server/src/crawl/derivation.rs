//! What is derived from a card's bytes and kept beside them, and deriving it again after an upgrade.

use std::collections::{BTreeMap, HashMap};

use a2a_card::{DERIVATION, LintContext, Parsed, Severity, all_findings_in, content_digest};
use a2a_registry_domain::admission::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::{agent, enrolled_key, version};
use a2a_registry_store::{Handle, Write, agents, decisions, ownership, versions};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::admission::decision::{decide_newest, decide_waiting, submitter_name};
use crate::commit::ledger::{AgentState, Ledger, POLICY, SYSTEM};
use crate::commit::publish::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::signatures::{KeptKeySet, Signatures};

/// How many versions are derived again in one transaction.
const PAGE: u64 = 200;

/// What is kept of a reading.
#[derive(Debug)]
pub(crate) struct Derived {
    /// JSON of the model.
    pub(crate) model: String,
    /// JSON of the findings.
    pub(crate) findings: String,
    /// Whether one of them is an error.
    pub(crate) has_error: bool,
    /// The number this was made with.
    pub(crate) derivation: i32,
}

/// The derivation that this build makes, as the database keeps it.
pub(crate) fn current() -> i32 {
    i32::try_from(DERIVATION).unwrap_or(i32::MAX)
}

/// What stands around a card, as far as the linter looks at it.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    site: Option<Url>,
    previous: Option<Parsed>,
}

impl Surroundings {
    /// Those of a card of that domain, and the bytes that the agent had before.
    pub(crate) fn of(domain: &str, previous: Option<&[u8]>) -> Self {
        Self {
            site: Url::parse(&format!("https://{domain}/")).ok(),
            previous: previous.and_then(|bytes| a2a_card::parse(bytes).ok()),
        }
    }

    /// Those of a version that is kept.
    pub(crate) async fn of_version(
        on: &impl Handle,
        row: &version::Model,
    ) -> Result<Self, AppError> {
        let agent = agents::agents_by_ids(on, &[row.agent_id]).await?.pop();
        let before = versions::version_page(on, row.agent_id, true, Some(row.id), 1).await?;
        let previous = match before.first() {
            Some(before) => versions::body_by_digest(on, &before.digest).await?,
            None => None,
        };
        Ok(agent.map_or_else(Self::default, |agent| {
            Self::of(&agent.domain, previous.as_deref())
        }))
    }

    fn context(&self) -> LintContext<'_> {
        LintContext {
            card_url: self.site.as_ref(),
            previous: self.previous.as_ref(),
        }
    }
}

/// Writes a reading down.
pub(crate) fn derive(
    parsed: &Parsed,
    bytes: &[u8],
    signatures: &Signatures,
    around: &Surroundings,
) -> Derived {
    let mut findings = all_findings_in(parsed, bytes, around.context());
    findings.extend(signatures.findings(bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let text = |value: Result<String, serde_json::Error>| value.unwrap_or_else(|_| "null".into());
    Derived {
        model: text(serde_json::to_string(&parsed.card)),
        findings: text(serde_json::to_string(&findings)),
        has_error: findings
            .iter()
            .any(|finding| finding.severity == Severity::Error),
        derivation: current(),
    }
}

/// The keys that the versions of one agent are judged with.
#[derive(Debug, Default, PartialEq, Eq)]
struct Keys {
    /// Those that were found with its newest version.
    newest: Vec<KeptKeySet>,
    /// Those that are enrolled for its domain.
    enrolled: Vec<enrolled_key::Model>,
}

/// The keys of the versions of these agents.
async fn keys_of(on: &impl Handle, rows: &[agent::Model]) -> Result<HashMap<Uuid, Keys>, AppError> {
    let newest: Vec<Uuid> = rows.iter().filter_map(|row| row.newest_version).collect();
    let newest: HashMap<Uuid, String> = versions::key_sets_of(on, &newest)
        .await?
        .into_iter()
        .collect();
    let mut domains: Vec<i64> = rows.iter().map(|row| row.domain_id).collect();
    domains.sort_unstable();
    domains.dedup();
    let enrolled = ownership::enrolled_of(on, &domains).await?;
    let of = |row: &agent::Model| {
        let newest = row.newest_version.and_then(|id| newest.get(&id));
        let own = enrolled.iter().filter(|key| key.domain_id == row.domain_id);
        let keys = Keys {
            newest: newest.map_or_else(Vec::new, |sets| KeptKeySet::read_all(sets)),
            enrolled: own.cloned().collect(),
        };
        (row.id, keys)
    };
    Ok(rows.iter().map(of).collect())
}

/// Derives a page of versions again that an older build has derived, or for which other keys are known by now;
/// answers how many it was. Bytes and decisions made stay; where something came out differently an event tells of
/// the agent, and what waits for a decision is put before the rules again.
///
/// # Errors
/// Where the database fails; the page is tried again then.
pub async fn derive_again(context: &Context) -> Result<usize, AppError> {
    let old = versions::versions_derived_before(&context.store, current(), PAGE).await?;
    if old.is_empty() {
        return Ok(0);
    }
    let count = old.len();
    let mut agent_ids: Vec<Uuid> = old.iter().map(|row| row.agent_id).collect();
    agent_ids.sort_unstable();
    agent_ids.dedup();
    let rows = agents::agents_by_ids(&context.store, &agent_ids).await?;
    let keys = keys_of(&context.store, &rows).await?;
    let mut pairs = rederive_all(context, old, &keys).await?;
    let write = context.store.write().await?;
    let rows = agents::agents_by_ids(&write, &agent_ids).await?;
    let now = keys_of(&write, &rows).await?;
    let ids: Vec<Uuid> = pairs.iter().map(|pair| pair.before.id).collect();
    let kept = versions::key_sets_of(&write, &ids).await?;
    // What has changed meanwhile is derived with the next page.
    pairs.retain(|Rederived { before, .. }| {
        keys.get(&before.agent_id) == now.get(&before.agent_id)
            && kept.contains(&(before.id, before.key_sets.clone()))
    });
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for (agent, changed) in keep(&write, &mut ledger, pairs).await? {
        let mut state = state_of(&write, agent).await?;
        follow_verdicts(context, &write, &mut ledger, &mut state, &changed).await?;
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(count)
}

/// A version as it was and as it is.
struct Rederived {
    before: version::Model,
    after: version::Model,
}

impl Rederived {
    /// Whether it is read as something else, or signed by something else, and not only because other keys are known.
    /// Keys that are known only today are no other reading: nobody has decided on what they say.
    fn reads_differently(&self) -> bool {
        let by_keys = self.before.derivation == versions::UNDERIVED;
        let (before, after) = (&self.before, &self.after);
        let is_read_alike =
            (&before.content_digest, &before.signing) == (&after.content_digest, &after.signing);
        !by_keys && !is_read_alike
    }

    /// Whether anything of it came out differently.
    fn differs(&self) -> bool {
        let same = version::Model {
            derivation: self.after.derivation,
            ..self.before.clone()
        };
        self.after != same
    }
}

/// Derives versions again before anything is locked: verifying is the work of it, and nobody waits for it who wants to
/// write.
async fn rederive_all(
    context: &Context,
    old: Vec<version::Model>,
    keys: &HashMap<Uuid, Keys>,
) -> Result<Vec<Rederived>, AppError> {
    let none = Keys::default();
    let mut pairs = Vec::with_capacity(old.len());
    for before in old {
        let bytes = versions::body_by_digest(&context.store, &before.digest).await?;
        let around = Surroundings::of_version(&context.store, &before).await?;
        let keys = keys.get(&before.agent_id).unwrap_or(&none);
        let after = rederive(&before, bytes.as_deref(), &around, keys);
        pairs.push(Rederived { before, after });
        tokio::task::yield_now().await;
    }
    Ok(pairs)
}

/// Keeps what was derived again, and answers what of it came out differently, by the agent.
async fn keep(
    write: &Write,
    ledger: &mut Ledger<'_>,
    pairs: Vec<Rederived>,
) -> Result<BTreeMap<Uuid, Vec<Rederived>>, AppError> {
    let mut changed: BTreeMap<Uuid, Vec<Rederived>> = BTreeMap::new();
    for pair in pairs {
        let (before, after) = (&pair.before, &pair.after);
        if pair.reads_differently() {
            // What was decided was decided on these bytes, however they are read today.
            write
                .decisions_rekey(before.id, &after.content_digest, &after.signing)
                .await?;
        }
        write.version_derived(after.clone()).await?;
        if pair.differs() {
            let data = json!({"digest": before.digest, "derivation": after.derivation});
            ledger.agent_event(EventKind::AgentDerived, before.agent_id, SYSTEM, data);
            changed.entry(before.agent_id).or_default().push(pair);
        }
    }
    Ok(changed)
}

/// Lets an agent follow what came out differently for versions of its card, each as it was and as it is: a served
/// card whose signature is found invalid is withheld until a person has looked, one that was rejected for a
/// signature that verifies now is decided on anew, and so is what waits.
async fn follow_verdicts(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    judged: &[Rederived],
) -> Result<(), AppError> {
    if state.agent.retired_at.is_some() {
        return Ok(());
    }
    let of = |id: Option<Uuid>| judged.iter().find(|pair| Some(pair.before.id) == id);
    let invalid = |row: &version::Model| row.signature == SignatureState::Invalid;
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let broken = of(approved).filter(|pair| invalid(&pair.after));
    let unseen = match broken {
        // What a person approved knowing that its signature is invalid stays; what a rule of an older build
        // admitted does not.
        Some(Rederived { before, after }) => {
            !invalid(before) || !approved_by_person(write, after).await?
        }
        None => false,
    };
    if unseen {
        let ids: Vec<Uuid> = approved.into_iter().collect();
        match versions::version_keys(write, &ids).await?.pop() {
            Some(key) if state.is_under_review(key.id, Some(ChangeClass::Critical)) => {}
            Some(key) if newest == approved => {
                let submitter = submitter_name(write, state).await?;
                ledger.open_review(state, &key, Some(ChangeClass::Critical), submitter, SYSTEM);
            }
            _ => {
                let reason = "the signature of the card served was found invalid";
                ledger.hold(state, Hold::CriticalChange, POLICY, reason);
            }
        }
    }
    let mended = |Rederived { before, after }: &Rederived| {
        let rejected = before.state == VersionState::Rejected;
        let is_broken = after.signature.may_be(SignatureState::Invalid);
        rejected && before.signing != after.signing && !is_broken
    };
    if let Some(pair) = of(newest).filter(|pair| mended(pair)) {
        ledger.set_state(pair.before.id, VersionState::Pending);
        return decide_newest(context, write, ledger, state, SYSTEM).await;
    }
    decide_waiting(context, write, ledger, state, SYSTEM).await
}

/// Whether a person gave the last approval of a version.
async fn approved_by_person(write: &Write, row: &version::Model) -> Result<bool, AppError> {
    let made = decisions::decisions_on(write, &[row.agent_id]).await?;
    let mut made = made.iter().rev();
    let last = made.find(|made| made.version_id == row.id && made.approved);
    Ok(last.is_some_and(|made| made.rule == Rule::Person))
}

/// The row as this build derives it; a row whose bytes are gone or no longer read keeps what it has.
fn rederive(
    row: &version::Model,
    bytes: Option<&[u8]>,
    around: &Surroundings,
    keys: &Keys,
) -> version::Model {
    let read = bytes.and_then(|bytes| Some((a2a_card::parse(bytes).ok()?, bytes)));
    let Some((parsed, bytes)) = read else {
        return version::Model {
            derivation: current(),
            ..row.clone()
        };
    };
    let key_sets = KeptKeySet::to_judge_anew_with(&row.key_sets, &keys.newest, &keys.enrolled);
    let signatures = Signatures::judge(&parsed, bytes, key_sets);
    let derived = derive(&parsed, bytes, &signatures, around);
    version::Model {
        content_digest: content_digest(bytes),
        signing: signatures.summary(),
        signature: signatures.state().into(),
        key_sets: signatures.kept(),
        thumbprints: signatures.thumbprints(),
        verdicts: signatures.verdicts(),
        wire_family: parsed.family.as_str().into(),
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        ..row.clone()
    }
}
