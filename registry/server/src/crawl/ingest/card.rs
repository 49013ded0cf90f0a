//! A fetched card: which agent it is, and whether it is a new version.

use a2a_card::{content_digest, digest};
use a2a_crawler::FetchedCard;
use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::DAY;
use a2a_registry_store::entity::{agent, body, enrolled_key, source, version, version_source};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::{Kept, Write, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::admission::change::{bytes_of, change_between};
use crate::admission::urn;
use crate::commit::ledger::{AgentState, CRAWLER, Ledger};
use crate::commit::pins;
use crate::commit::pins::key_changed;
use crate::context::Context;
use crate::crawl::derivation::{Surroundings, derive};
use crate::crawl::ingest::group::Group;
use crate::crawl::ingest::ruling::{rule, rule_again};
use crate::crawl::ingest::slot::agent_for;
use crate::error::AppError;
use crate::ownership::challenges::claimed_account;
use crate::signatures::{KeptKeySet, Signatures};

/// What tells one content from another: the canonical form and how it is signed.
pub(crate) struct Content {
    digest: String,
    pub(crate) content_digest: String,
    signing: String,
    signatures: Signatures,
}

impl Content {
    /// Reads it off a fetched card, its signatures judged with the keys that came along, are enrolled, or were known
    /// of the same place before.
    fn of(
        fetched: &FetchedCard,
        content_digest: String,
        known: &[KeptKeySet],
        enrolled: &[enrolled_key::Model],
    ) -> Self {
        let key_sets = fetched.key_sets.iter().map(KeptKeySet::from).collect();
        let key_sets = KeptKeySet::to_judge_with(key_sets, known, enrolled);
        let signatures = Signatures::judge(&fetched.parsed, &fetched.bytes, key_sets);
        Self {
            digest: digest(&fetched.bytes),
            content_digest,
            signing: signatures.summary(),
            signatures,
        }
    }

    /// Whether a version says the same and is signed alike.
    pub(crate) fn is(&self, version: &VersionKey) -> bool {
        self.content_digest == version.content_digest && self.signing == version.signing
    }
}

/// Takes in a card; says whether its content was new.
pub(crate) async fn ingest_card(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetched: &FetchedCard,
) -> Result<bool, AppError> {
    let enrolled = group.enrolled_keys(source);
    let content = Content::of(fetched, content_digest(&fetched.bytes), &[], enrolled);
    let answered_by = group.answered(source, &fetched.url);
    let unfed = |row: &&source::Model| row.agent_id.is_none();
    let word = group.sources.get(&source).filter(unfed);
    let word = word.and_then(|row| row.approve_as);
    let Some(id) = agent_for(context, group, ledger, source, &content) else {
        return Ok(false);
    };
    if let Some(row) = group.touch(source) {
        // Given for the first card that comes in, whatever becomes of that.
        row.approve_as = None;
    }
    let standing = group.standing_of(source);
    let Some(mut state) = group.agents.remove(&id) else {
        return Ok(false);
    };
    let known = known_key_sets(write, &state.agent, fetched).await?;
    let content = if known.is_empty() {
        content
    } else {
        let enrolled = group.enrolled_keys(source);
        Content::of(fetched, content.content_digest, &known, enrolled)
    };
    state.agent.tls = fetched.tls;
    let newest = state
        .agent
        .newest_version
        .and_then(|id| group.versions.get(&id))
        .cloned();
    follow_claim(context, write, group, &mut state, fetched).await?;
    let rotated = pins::look(&mut state.agent, &content.signatures.thumbprints());
    if content.signatures.renews(&known) {
        let judged = newest.as_ref().filter(|newest| content.is(newest));
        let but = judged.map(|newest| newest.id);
        group.marked |= write.versions_judge_anew(&[id], but).await? > 0;
    }
    let changed = match newest {
        Some(newest) if content.is(&newest) => {
            if content.digest != newest.digest {
                ledger.repeats.push(newest.id);
            }
            ledger.put_agent(&state.agent);
            note_giver(group, ledger, newest.id, source, &answered_by);
            if newest.standing != standing {
                group.regarded_anew.insert(state.agent.domain_id);
            }
            // The same card signed by another key of the same name is judged again too: no version tells of it.
            let judged =
                judge_again(write, group, ledger, &newest, fetched, &content, rotated).await?;
            if let Some(has_error) = judged {
                rule_again(
                    context, write, group, ledger, &mut state, source, newest.id, has_error,
                )
                .await?;
            }
            false
        }
        newest => {
            let new = New {
                source,
                fetched,
                content,
                // An agent that had a card before is not what was registered.
                word: word.filter(|_| newest.is_none()),
                newest,
                rotated,
                standing,
            };
            new_version(context, write, group, ledger, &mut state, new).await?;
            if let Some(version) = state.agent.newest_version {
                note_giver(group, ledger, version, source, &answered_by);
            }
            true
        }
    };
    if rotated {
        key_changed(write, ledger, &mut state).await?;
    }
    if let Some(domain) = group.domains.get(&state.agent.domain_id) {
        let name = &fetched.parsed.card.name;
        let identifiers = group.identifiers_of(id);
        urn::assign(
            write,
            ledger,
            &mut state,
            domain,
            identifiers,
            name,
            standing,
        )
        .await?;
    }
    group.agents.insert(id, state);
    Ok(changed)
}

/// Whose the card says that it is. It proves the agent where nobody has proved its domain.
async fn follow_claim(
    context: &Context,
    write: &Write,
    group: &Group,
    state: &mut AgentState,
    fetched: &FetchedCard,
) -> Result<(), AppError> {
    let claimed = claimed_account(context, &fetched.parsed.card);
    if claimed != state.agent.claimed_by {
        let known: Vec<Uuid> = claimed.into_iter().collect();
        let known = accounts::accounts_by_ids(write, &known).await?;
        state.agent.claimed_by = known.first().map(|account| account.id);
    }
    let proved = group
        .domains
        .get(&state.agent.domain_id)
        .and_then(|domain| domain.owner_id);
    state.agent.owner_id = proved.or(state.agent.claimed_by);
    Ok(())
}

async fn new_version(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    new: New<'_>,
) -> Result<(), AppError> {
    let New {
        source,
        fetched,
        content,
        word,
        newest,
        rotated,
        standing,
    } = new;
    let now = ledger.now();
    let approved = state
        .agent
        .approved_version
        .and_then(|id| group.versions.get(&id))
        .cloned();
    ledger.bodies.push(body::Model {
        digest: content.digest.clone(),
        bytes: fetched.bytes.clone(),
    });
    let previous = match &newest {
        Some(newest) => bytes_of(write, &newest.digest, &ledger.bodies).await?,
        None => None,
    };
    let around = Surroundings::of(&state.agent.domain, previous.as_deref());
    let id = ledger.new_id();
    let mut row = version_row(id, state.agent.id, fetched, &content, &around, now.0);
    let key = VersionKey {
        id: row.id,
        agent_id: row.agent_id,
        digest: content.digest,
        content_digest: content.content_digest,
        signing: content.signing,
        signature: row.signature.clone(),
        thumbprints: row.thumbprints.clone(),
        state: row.state.clone(),
        observed_at: row.observed_at,
        standing: standing.into(),
    };
    let class = match &approved {
        None => None,
        Some(_) if rotated => Some(ChangeClass::Critical),
        Some(approved) => Some(
            change_between(
                context,
                write,
                &state.agent,
                approved,
                &key,
                &group.key_binding(source),
                &ledger.bodies,
            )
            .await?,
        ),
    };
    row.change_class = class.map(Kept::from);
    row.standing = standing.into();
    let has_error = row.has_error;
    let foreign = content.signatures.foreign();
    if !foreign.is_empty() {
        let data = json!({"digest": key.digest, "key_sets": foreign});
        ledger.agent_event(EventKind::AgentForeignKeys, state.agent.id, CRAWLER, data);
    }
    ledger.versions.push(row);
    group.versions.insert(key.id, key.clone());
    state.agent.newest_version = Some(key.id);
    state.agent.last_changed_at = Some(now.0);
    if let Some(newest) = newest {
        count_change(&mut state.agent, now.0);
        let data = json!({"digest": key.digest, "previous": newest.digest, "change_class": class});
        ledger.agent_event(EventKind::AgentChanged, state.agent.id, CRAWLER, data);
        let asked = state
            .open_review
            .as_ref()
            .map(|question| question.version_id);
        let keep = [Some(key.id), state.agent.approved_version, asked]
            .into_iter()
            .flatten()
            .collect();
        group.changed.push((state.agent.id, keep));
    }
    ledger.touch(state);
    rule(context, group, ledger, state, &key, class, has_error, word);
    Ok(())
}

/// A card whose content is new to its agent.
struct New<'a> {
    source: i64,
    fetched: &'a FetchedCard,
    content: Content,
    /// The account that has approved it with the registration.
    word: Option<Uuid>,
    newest: Option<VersionKey>,
    /// Whether none of the keys it is signed with is one that the agent's card is known by.
    rotated: bool,
    /// Whose word stands behind it.
    standing: Standing,
}

/// Notes which source gave a version, and which origin answered.
fn note_giver(
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    version: Uuid,
    source: i64,
    answered_by: &str,
) {
    let known = group.gave.insert((version, source), answered_by.to_owned());
    if known.as_deref() != Some(answered_by) {
        ledger.gave.push(version_source::Model {
            version_id: version,
            source_id: source,
            answered_by: answered_by.to_owned(),
        });
    }
}

/// The key sets that the newest and the approved version of an agent were judged with, where the card is signed.
async fn known_key_sets(
    write: &Write,
    agent: &agent::Model,
    fetched: &FetchedCard,
) -> Result<Vec<KeptKeySet>, AppError> {
    if fetched.parsed.card.signatures.is_empty() {
        return Ok(Vec::new());
    }
    let ids = agent.newest_version.into_iter();
    let ids: Vec<Uuid> = ids.chain(agent.approved_version).collect();
    let kept = versions::key_sets_of(write, &ids).await?;
    let of = |id: &Uuid| kept.iter().find(|(kept, _)| kept == id);
    let sets = ids.iter().filter_map(of);
    Ok(sets
        .flat_map(|(_, sets)| KeptKeySet::read_all(sets))
        .collect())
}

/// Notes that the signatures of a version are judged differently with the keys of today, though the card and
/// the way it is signed are the same; says whether the card has an error then, and nothing where they are not.
async fn judge_again(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    newest: &VersionKey,
    fetched: &FetchedCard,
    content: &Content,
    rotated: bool,
) -> Result<Option<bool>, AppError> {
    if fetched.parsed.card.signatures.is_empty() {
        return Ok(None);
    }
    let Some(row) = versions::versions_by_ids(write, &[newest.id]).await?.pop() else {
        return Ok(None);
    };
    let (key_sets, verdicts) = (content.signatures.kept(), content.signatures.verdicts());
    if (&row.key_sets, &row.verdicts) == (&key_sets, &verdicts) && !rotated {
        return Ok(None);
    }
    let around = Surroundings::of_version(write, &row).await?;
    let derived = derive(
        &fetched.parsed,
        &fetched.bytes,
        &content.signatures,
        &around,
    );
    let (state, thumbprints) = (content.signatures.state(), content.signatures.thumbprints());
    if row.signature != state || row.thumbprints != thumbprints || rotated {
        let data = json!({"digest": newest.digest, "signature": state, "before": newest.signature});
        ledger.agent_event(EventKind::AgentUpdated, newest.agent_id, CRAWLER, data);
    }
    if let Some(key) = group.versions.get_mut(&newest.id) {
        key.signature = state.into();
        key.thumbprints.clone_from(&thumbprints);
    }
    ledger.judged.push(version::Model {
        signature: state.into(),
        key_sets,
        thumbprints,
        verdicts,
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        ..row
    });
    Ok(Some(derived.has_error))
}

/// Counts new versions by the day, so that a card that flaps is noticed.
fn count_change(agent: &mut agent::Model, now: i64) {
    if now - agent.changes_since >= DAY {
        agent.changes_since = now;
        agent.changes = 0;
    }
    agent.changes = agent.changes.saturating_add(1);
}

fn version_row(
    id: Uuid,
    agent_id: Uuid,
    fetched: &FetchedCard,
    content: &Content,
    around: &Surroundings,
    now: i64,
) -> version::Model {
    let derived = derive(&fetched.parsed, &fetched.bytes, &content.signatures, around);
    version::Model {
        id,
        agent_id,
        digest: content.digest.clone(),
        content_digest: content.content_digest.clone(),
        signing: content.signing.clone(),
        signature: content.signatures.state().into(),
        key_sets: content.signatures.kept(),
        thumbprints: content.signatures.thumbprints(),
        verdicts: content.signatures.verdicts(),
        wire_family: fetched.parsed.family.as_str().into(),
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        observed_at: now,
        change_class: None,
        state: VersionState::Pending.into(),
        ever_approved: false,
        repeats: 0,
        standing: Standing::Nomination.into(),
    }
}
