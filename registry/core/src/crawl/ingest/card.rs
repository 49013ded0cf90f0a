//! Ingest of a fetched card: finds its agent, and determines whether it is a new version.

use a2a_card::content_digest;
use a2a_crawler::FetchedCard;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_store::entity::{agent, version};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::{WriteTransaction, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::admission::urn;
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::CRAWLER_ACTOR;
use crate::context::AppContext;
use crate::crawl::derivation::{DerivationContext, derive_card};
use crate::crawl::ingest::agent_matching::match_or_create_agent;
use crate::crawl::ingest::batch::IngestBatch;
use crate::crawl::ingest::catalog::mark_all_entries_missing;
use crate::crawl::ingest::ingested_card::{CardContent, IngestedCard};
use crate::crawl::ingest::new_version::{add_version, record_version_source};
use crate::crawl::ingest::version_admission::redecide_repeated_version;
use crate::error::Result;
use crate::ownership::challenges::card_claimed_owner;
use crate::signatures::StoredKeySet;
use crate::signatures::pins::{self, hold_for_changed_key};

/// Ingests a card; returns whether its content is new.
pub async fn ingest_card(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    source: i64,
    fetched: &FetchedCard,
) -> Result<bool> {
    mark_all_entries_missing(write, batch, change_set, source).await?;
    let enrolled = batch.enrolled_keys(source);
    let content = CardContent::from_fetched(fetched, content_digest(&fetched.bytes), &[], enrolled);
    let answered_by = batch.record_response_origin(source, &fetched.url);
    let preapproved_by = preapproval_account(batch, source);
    let visibility = first_visibility(fetched);
    let matched = match_or_create_agent(context, batch, change_set, source, &content, visibility);
    let Some(id) = matched else {
        return Ok(false);
    };
    if let Some(row) = batch.source_mut(source) {
        // The approval applies only to the first card, whatever the decision on it.
        row.approve_as = None;
    }
    let coverage_level = batch.source_coverage(source);
    let Some(mut state) = batch.agents.remove(&id) else {
        return Ok(false);
    };
    let stored_key_sets = load_stored_key_sets(write, &state.agent, fetched).await?;
    let content =
        content.verified_with_stored_keys(fetched, &stored_key_sets, batch.enrolled_keys(source));
    state.agent.tls = fetched.over_tls;
    set_claimed_owner(context, write, batch, &mut state, fetched).await?;
    let newest = state.agent.newest_version;
    let card = IngestedCard {
        source,
        fetched,
        answered_by,
        preapproved_by,
        newest: newest.and_then(|id| batch.versions.get(&id)).cloned(),
        keys_rotated: pins::check_and_pin_keys(&mut state.agent, &content.signatures.thumbprints()),
        coverage_level,
        content,
    };
    if card.content.signatures.has_new_keys(&stored_key_sets) {
        let but = card.repeated_version().map(|newest| newest.id);
        batch.needs_reverification |= write.mark_for_reverification(&[id], but).await? > 0;
    }
    let repeated = card.repeated_version().cloned();
    let is_new = repeated.is_none();
    match repeated {
        Some(newest) => {
            ingest_repeated_card(
                context, write, batch, change_set, &mut state, &card, &newest,
            )
            .await?;
        }
        None => add_version(context, write, batch, change_set, &mut state, &card).await?,
    }
    if card.keys_rotated {
        hold_for_changed_key(write, change_set, &mut state).await?;
    }
    assign_agent_urns(context, write, batch, change_set, &mut state, &card).await?;
    batch.add_agent(state);
    Ok(is_new)
}

/// The visibility of an agent that a card creates: what needs a credential is not for everyone, until a curator makes it
/// public.
const fn first_visibility(fetched: &FetchedCard) -> Visibility {
    match fetched.with_credential {
        true => Visibility::Internal,
        false => Visibility::Public,
    }
}

/// The account that approved the first card of a source with its registration, until the source has an agent.
fn preapproval_account(batch: &IngestBatch, source: i64) -> Option<Uuid> {
    let row = batch.sources.get(&source)?;
    row.approve_as.filter(|_| row.agent_id.is_none())
}

/// Ingests a card with the content and signatures of the newest version. A card signed by another key of the same name
/// is verified again too; it is not a new version.
async fn ingest_repeated_card(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    card: &IngestedCard<'_>,
    newest: &VersionSummary,
) -> Result<()> {
    if card.content.digest != newest.digest {
        change_set.repeated_versions.push(newest.id);
    }
    change_set.put_agent(&state.agent);
    record_version_source(batch, change_set, newest.id, card);
    if newest.standing != card.coverage_level {
        batch.coverage_changed.insert(state.agent.domain_id);
    }
    let Some(has_error) = store_reverified_version(write, batch, change_set, newest, card).await?
    else {
        return Ok(());
    };
    redecide_repeated_version(context, write, batch, change_set, state, card, has_error).await
}

/// Gives an agent the URNs that it may have by its card, domain and catalog entries.
async fn assign_agent_urns(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    card: &IngestedCard<'_>,
) -> Result<()> {
    let Some(domain) = batch.domains.get(&state.agent.domain_id) else {
        return Ok(());
    };
    let identifiers = batch.agent_catalog_identifiers(domain.id, state.agent.id);
    let named = (card.fetched.parsed.card.name.as_str(), card.coverage_level);
    urn::assign_urns(
        context,
        write,
        change_set,
        state,
        domain,
        identifiers,
        named,
    )
    .await
}

/// Sets the account that the card names as owner, which owns the agent while its domain is not verified.
async fn set_claimed_owner(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    state: &mut AgentChangeState,
    fetched: &FetchedCard,
) -> Result<()> {
    let claimed = card_claimed_owner(context, &fetched.parsed.card);
    if claimed != state.agent.claimed_by {
        let claimed_ids: Vec<Uuid> = claimed.into_iter().collect();
        let existing = accounts::accounts_by_ids(write, &claimed_ids).await?;
        state.agent.claimed_by = existing.first().map(|account| account.id);
    }
    let owner = batch
        .domains
        .get(&state.agent.domain_id)
        .and_then(|domain| domain.domain_owner_at(context.now()));
    state.agent.owner_id = owner.or(state.agent.claimed_by);
    Ok(())
}

/// The key sets that verified the newest and the approved version of an agent, for a signed card.
async fn load_stored_key_sets(
    write: &WriteTransaction,
    agent: &agent::Model,
    fetched: &FetchedCard,
) -> Result<Vec<StoredKeySet>> {
    if fetched.parsed.card.signatures.is_empty() {
        return Ok(Vec::new());
    }
    let ids = agent.newest_version.into_iter();
    let ids: Vec<Uuid> = ids.chain(agent.approved_version).collect();
    let stored = versions::key_sets_by_version(write, &ids).await?;
    let of = |id: &Uuid| stored.iter().find(|(kept, _)| kept == id);
    let sets = ids.iter().filter_map(of);
    Ok(sets
        .flat_map(|(_, sets)| StoredKeySet::parse_all(sets))
        .collect())
}

/// Stores a version whose signature state changed with the current keys, though its content and signatures are the
/// same. Returns whether the card then has an error, and `None` if the state did not change.
async fn store_reverified_version(
    write: &WriteTransaction,
    batch: &mut IngestBatch,
    change_set: &mut ChangeSet<'_>,
    newest: &VersionSummary,
    card: &IngestedCard<'_>,
) -> Result<Option<bool>> {
    let IngestedCard {
        fetched,
        content,
        keys_rotated: rotated,
        ..
    } = card;
    if fetched.parsed.card.signatures.is_empty() {
        return Ok(None);
    }
    let Some(row) = versions::versions_by_ids(write, &[newest.id]).await?.pop() else {
        return Ok(None);
    };
    let (key_sets, verdicts) = (
        content.signatures.key_sets_json(),
        content.signatures.results_json(),
    );
    if (&row.key_sets, &row.verdicts) == (&key_sets, &verdicts) && !*rotated {
        return Ok(None);
    }
    let derivation_context = DerivationContext::load_for_version(write, &row).await?;
    let derived = derive_card(
        &fetched.parsed,
        &fetched.bytes,
        &content.signatures,
        &derivation_context,
    );
    let (state, thumbprints) = (content.signatures.state(), content.signatures.thumbprints());
    if row.signature != state || row.thumbprints != thumbprints || *rotated {
        let data = json!({"digest": newest.digest, "signature": state, "before": newest.signature});
        change_set.add_agent_event(
            EventKind::AgentUpdated,
            newest.agent_id,
            CRAWLER_ACTOR,
            data,
        );
    }
    if let Some(key) = batch.versions.get_mut(&newest.id) {
        key.signature = state.into();
        key.thumbprints.clone_from(&thumbprints);
    }
    change_set.reverified.push(version::Model {
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
