//! Ingest of a fetched card: finds its agent, and decides whether it is a new version.

use a2a_card::content_digest;
use a2a_crawler::FetchedCard;
use a2a_registry_domain::event::EventKind;
use a2a_registry_store::entity::{agent, version};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::{Write, accounts};
use serde_json::json;
use uuid::Uuid;

use crate::admission::urn;
use crate::commit::approver::CRAWLER;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::crawl::derivation::{CardSurroundings, derive};
use crate::crawl::ingest::arrival::{Arrival, CardContent};
use crate::crawl::ingest::catalog::miss_every_entry;
use crate::crawl::ingest::group::Group;
use crate::crawl::ingest::ruling::rule_again;
use crate::crawl::ingest::slot::agent_for;
use crate::crawl::ingest::version::{add_version, note_giver};
use crate::error::Result;
use crate::ownership::challenges::claimed_account;
use crate::signatures::KeptKeySet;
use crate::signatures::pins::{self, key_changed};

/// Ingests a card; returns whether its content is new.
pub async fn ingest_card(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    source: i64,
    fetched: &FetchedCard,
) -> Result<bool> {
    miss_every_entry(write, group, ledger, source).await?;
    let enrolled = group.enrolled_keys(source);
    let content = CardContent::of(fetched, content_digest(&fetched.bytes), &[], enrolled);
    let answered_by = group.answered(source, &fetched.url);
    let word = word_given(group, source);
    let Some(id) = agent_for(context, group, ledger, source, &content) else {
        return Ok(false);
    };
    if let Some(row) = group.touch(source) {
        // The approval is for the first card only, whatever the decision on it.
        row.approve_as = None;
    }
    let standing = group.coverage_of(source);
    let Some(mut state) = group.agents.remove(&id) else {
        return Ok(false);
    };
    let known = known_key_sets(write, &state.agent, fetched).await?;
    let content = content.judged_with(fetched, &known, group.enrolled_keys(source));
    state.agent.tls = fetched.tls;
    follow_claim(context, write, group, &mut state, fetched).await?;
    let newest = state.agent.newest_version;
    let card = Arrival {
        source,
        fetched,
        answered_by,
        word,
        newest: newest.and_then(|id| group.versions.get(&id)).cloned(),
        rotated: pins::check_keys(&mut state.agent, &content.signatures.thumbprints()),
        standing,
        content,
    };
    if card.content.signatures.renews(&known) {
        let but = card.repeats().map(|newest| newest.id);
        group.marked |= write.versions_judge_anew(&[id], but).await? > 0;
    }
    let repeated = card.repeats().cloned();
    let is_new = repeated.is_none();
    match repeated {
        Some(newest) => {
            repeat_version(context, write, group, ledger, &mut state, &card, &newest).await?;
        }
        None => add_version(context, write, group, ledger, &mut state, &card).await?,
    }
    if card.rotated {
        key_changed(write, ledger, &mut state).await?;
    }
    assign_name(write, group, ledger, &mut state, &card).await?;
    group.add_agent(state);
    Ok(is_new)
}

/// The account that approved the first card of a source with its registration, until the source has an agent.
fn word_given(group: &Group, source: i64) -> Option<Uuid> {
    let row = group.sources.get(&source)?;
    row.approve_as.filter(|_| row.agent_id.is_none())
}

/// Ingests a card with the content and signatures of the newest version. The same card signed by another key of the
/// same name is verified again too: it makes no new version.
async fn repeat_version(
    context: &Context,
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    card: &Arrival<'_>,
    newest: &VersionKey,
) -> Result<()> {
    if card.content.digest != newest.digest {
        ledger.repeats.push(newest.id);
    }
    ledger.put_agent(&state.agent);
    note_giver(group, ledger, newest.id, card);
    if newest.standing != card.standing {
        group.coverage_changed.insert(state.agent.domain_id);
    }
    let Some(has_error) = judge_again(write, group, ledger, newest, card).await? else {
        return Ok(());
    };
    rule_again(context, write, group, ledger, state, card, has_error).await
}

/// Gives an agent its URN by its card, domain and catalog entries, if it may have one.
async fn assign_name(
    write: &Write,
    group: &Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    card: &Arrival<'_>,
) -> Result<()> {
    let Some(domain) = group.domains.get(&state.agent.domain_id) else {
        return Ok(());
    };
    let name = &card.fetched.parsed.card.name;
    let identifiers = group.identifiers_of(domain.id, state.agent.id);
    let standing = card.standing;
    urn::assign(write, ledger, state, domain, identifiers, name, standing).await
}

/// Sets the account that the card itself names as owner, which owns the agent while its domain is not proved.
async fn follow_claim(
    context: &Context,
    write: &Write,
    group: &Group,
    state: &mut AgentState,
    fetched: &FetchedCard,
) -> Result<()> {
    let claimed = claimed_account(context, &fetched.parsed.card);
    if claimed != state.agent.claimed_by {
        let known: Vec<Uuid> = claimed.into_iter().collect();
        let known = accounts::accounts_by_ids(write, &known).await?;
        state.agent.claimed_by = known.first().map(|account| account.id);
    }
    let owner = group
        .domains
        .get(&state.agent.domain_id)
        .and_then(|domain| domain.owner_at(context.now()));
    state.agent.owner_id = owner.or(state.agent.claimed_by);
    Ok(())
}

/// The key sets that verified the newest and the approved version of an agent, for a signed card.
async fn known_key_sets(
    write: &Write,
    agent: &agent::Model,
    fetched: &FetchedCard,
) -> Result<Vec<KeptKeySet>> {
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

/// Stores a version whose signatures are in another state with the present keys, though content and signatures are the
/// same; returns whether the card has an error then, and `None` if the state is the same.
async fn judge_again(
    write: &Write,
    group: &mut Group,
    ledger: &mut Ledger<'_>,
    newest: &VersionKey,
    card: &Arrival<'_>,
) -> Result<Option<bool>> {
    let Arrival {
        fetched,
        content,
        rotated,
        ..
    } = card;
    if fetched.parsed.card.signatures.is_empty() {
        return Ok(None);
    }
    let Some(row) = versions::versions_by_ids(write, &[newest.id]).await?.pop() else {
        return Ok(None);
    };
    let (key_sets, verdicts) = (content.signatures.kept(), content.signatures.verdicts());
    if (&row.key_sets, &row.verdicts) == (&key_sets, &verdicts) && !*rotated {
        return Ok(None);
    }
    let around = CardSurroundings::of_version(write, &row).await?;
    let derived = derive(
        &fetched.parsed,
        &fetched.bytes,
        &content.signatures,
        &around,
    );
    let (state, thumbprints) = (content.signatures.state(), content.signatures.thumbprints());
    if row.signature != state || row.thumbprints != thumbprints || *rotated {
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
