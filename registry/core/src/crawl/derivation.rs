//! The model and findings derived from a card's bytes, and deriving them again after an upgrade.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use a2a_card::{
    DERIVATION, LintContext, Parsed, Severity, all_findings_in, content_digest,
    with_absolute_addresses,
};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::entity::{agent, domain, enrolled_key, version};
use a2a_registry_store::{Handle, Write, agents, decisions, domains, ownership, versions};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::admission::decision::{decide_newest, decide_waiting, submitter_name};
use crate::commit::approver::{POLICY, SYSTEM};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::Result;
use crate::signatures::{KeptKeySet, Signatures};
use crate::sources::card_url_of;

/// Versions derived again per transaction.
const PAGE: u64 = 200;

#[derive(Debug)]
pub struct DerivedCard {
    /// JSON of the model.
    pub model: String,
    pub findings: String,
    pub has_error: bool,
    pub derivation: i32,
}

/// The derivation number of this build, as the database stores it.
pub fn current() -> i32 {
    i32::try_from(DERIVATION).unwrap_or(i32::MAX)
}

/// The context of a card: its URL, which completes its addresses, and its previous version.
#[derive(Debug, Default)]
pub struct CardSurroundings {
    card_url: Option<Url>,
    previous: Option<Parsed>,
}

impl CardSurroundings {
    /// The context of a card of that agent, given the agent's domain and previous bytes.
    pub fn of(
        agent: &agent::Model,
        domain: Option<&domain::Model>,
        previous: Option<&[u8]>,
    ) -> Self {
        Self {
            card_url: card_url_of(agent, domain),
            previous: previous.and_then(|bytes| a2a_card::parse(bytes).ok()),
        }
    }

    pub async fn of_version(on: &impl Handle, row: &version::Model) -> Result<Self> {
        let agent = agents::agents_by_ids(on, &[row.agent_id]).await?.pop();
        let before = versions::version_page(on, row.agent_id, true, Some(row.id), 1).await?;
        let previous = match before.first() {
            Some(before) => versions::intact_body_by_digest(on, &before.digest).await?,
            None => None,
        };
        let Some(agent) = agent else {
            return Ok(Self::default());
        };
        let domain = domains::domains_by_ids(on, &[agent.domain_id]).await?.pop();
        Ok(Self::of(&agent, domain.as_ref(), previous.as_deref()))
    }

    fn context(&self) -> LintContext<'_> {
        LintContext {
            card_url: self.card_url.as_ref(),
            previous: self.previous.as_ref(),
        }
    }
}

pub fn derive(
    parsed: &Parsed,
    bytes: &[u8],
    signatures: &Signatures,
    around: &CardSurroundings,
) -> DerivedCard {
    let mut findings = all_findings_in(parsed, bytes, around.context());
    findings.extend(signatures.findings(bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let text = |value: Result<String, serde_json::Error>| value.unwrap_or_else(|_| "null".into());
    let card = match &around.card_url {
        Some(card_url) => with_absolute_addresses(&parsed.card, card_url),
        None => Cow::Borrowed(&parsed.card),
    };
    DerivedCard {
        model: text(serde_json::to_string(&card)),
        findings: text(serde_json::to_string(&findings)),
        has_error: findings
            .iter()
            .any(|finding| finding.severity == Severity::Error),
        derivation: current(),
    }
}

/// The keys that verify the versions of one agent.
#[derive(Debug, Default, PartialEq, Eq)]
struct VerificationKeys {
    /// The key sets fetched with its newest version.
    newest: Vec<KeptKeySet>,
    /// The keys enrolled for its domain.
    enrolled: Vec<enrolled_key::Model>,
}

/// The keys of the versions of these agents.
async fn keys_of(
    on: &impl Handle,
    rows: &[agent::Model],
) -> Result<HashMap<Uuid, VerificationKeys>> {
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
        let keys = VerificationKeys {
            newest: newest.map_or_else(Vec::new, |sets| KeptKeySet::read_all(sets)),
            enrolled: own.cloned().collect(),
        };
        (row.id, keys)
    };
    Ok(rows.iter().map(of).collect())
}

/// Derives again one page of versions that an older build has derived, or whose keys have changed since; returns how
/// many there were. Bytes and decisions stay; if a result differs an event is appended for the agent, and the rules are
/// applied again to waiting versions. If the database fails, the next call derives the same page.
pub async fn derive_again(context: &Context) -> Result<usize> {
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
    // Versions that have changed in the meantime are derived with the next page.
    pairs.retain(|RederivedVersion { before, .. }| {
        keys.get(&before.agent_id) == now.get(&before.agent_id)
            && kept.contains(&(before.id, before.key_sets.clone()))
    });
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for (agent, changed) in keep(&write, &mut ledger, pairs).await? {
        let mut state = state_of(&write, agent).await?;
        follow_verdicts(context, &write, &mut ledger, &mut state, &changed).await?;
    }
    commit_ledger(context, write, ledger).await?;
    Ok(count)
}

struct RederivedVersion {
    before: version::Model,
    after: version::Model,
}

impl RederivedVersion {
    /// Whether content or signature is read differently, apart from keys that only became known now: no decision exists
    /// on those yet.
    fn reads_differently(&self) -> bool {
        let by_keys = self.before.derivation == versions::UNDERIVED;
        let (before, after) = (&self.before, &self.after);
        let is_read_alike =
            (&before.content_digest, &before.signing) == (&after.content_digest, &after.signing);
        !by_keys && !is_read_alike
    }

    /// Whether any result differs.
    fn differs(&self) -> bool {
        let same = version::Model {
            derivation: self.after.derivation,
            ..self.before.clone()
        };
        self.after != same
    }
}

/// Derives versions again before anything is locked: verification is slow, and no writer should wait for it.
async fn rederive_all(
    context: &Context,
    old: Vec<version::Model>,
    keys: &HashMap<Uuid, VerificationKeys>,
) -> Result<Vec<RederivedVersion>> {
    let none = VerificationKeys::default();
    let mut pairs = Vec::with_capacity(old.len());
    for before in old {
        let bytes = versions::intact_body_by_digest(&context.store, &before.digest).await?;
        let around = CardSurroundings::of_version(&context.store, &before).await?;
        let keys = keys.get(&before.agent_id).unwrap_or(&none);
        let after = rederive(&before, bytes.as_deref(), &around, keys);
        pairs.push(RederivedVersion { before, after });
        tokio::task::yield_now().await;
    }
    Ok(pairs)
}

/// Stores the new results, and returns the versions whose results differ, by agent.
async fn keep(
    write: &Write,
    ledger: &mut Ledger<'_>,
    pairs: Vec<RederivedVersion>,
) -> Result<BTreeMap<Uuid, Vec<RederivedVersion>>> {
    let mut changed: BTreeMap<Uuid, Vec<RederivedVersion>> = BTreeMap::new();
    for pair in pairs {
        let (before, after) = (&pair.before, &pair.after);
        if pair.reads_differently() {
            // Decisions were made on these bytes, however this build reads them.
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

/// Updates an agent for versions whose results differ: a served card whose signature is found invalid is put on hold
/// until a person decides; a version that was rejected for a signature that verifies now is decided again, and so is
/// a waiting one.
async fn follow_verdicts(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    judged: &[RederivedVersion],
) -> Result<()> {
    if state.agent.retired_at.is_some() {
        return Ok(());
    }
    let of = |id: Option<Uuid>| judged.iter().find(|pair| Some(pair.before.id) == id);
    let invalid = |row: &version::Model| row.signature == SignatureState::Invalid;
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let broken = of(approved).filter(|pair| invalid(&pair.after));
    let unseen = match broken {
        // A version that a person approved with an invalid signature stays; one that a rule of an older build
        // admitted does not.
        Some(RederivedVersion { before, after }) => {
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
    let mended = |RederivedVersion { before, after }: &RederivedVersion| {
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
async fn approved_by_person(write: &Write, row: &version::Model) -> Result<bool> {
    let made = decisions::decisions_on(write, &[row.agent_id]).await?;
    let mut made = made.iter().rev();
    let last = made.find(|made| made.version_id == row.id && made.approved);
    Ok(last.is_some_and(|made| made.rule == Rule::Person))
}

/// The row as this build derives it; a row whose bytes are missing, damaged or unreadable stays as it is.
fn rederive(
    row: &version::Model,
    bytes: Option<&[u8]>,
    around: &CardSurroundings,
    keys: &VerificationKeys,
) -> version::Model {
    let read = bytes.and_then(|bytes| Some((a2a_card::parse(bytes).ok()?, bytes)));
    let Some((parsed, bytes)) = read else {
        return version::Model {
            derivation: current(),
            ..row.clone()
        };
    };
    let key_sets = KeptKeySet::to_verify_again_with(&row.key_sets, &keys.newest, &keys.enrolled);
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
