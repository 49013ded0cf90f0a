//! Another owner of a domain is told by what changes with it (docs/ownership.md#generations).

use std::collections::BTreeSet;

use a2a_registry_domain::coverage::Standing;
use a2a_registry_domain::ownership::Look;
use a2a_registry_domain::succession::OwnerMarks;
use a2a_registry_store::entity::{self, domain};
use a2a_registry_store::{Write, agents, domains, ownership, versions};
use uuid::Uuid;

use crate::commit::ledger::{SYSTEM, Touched};
use crate::context::Context;
use crate::error::AppError;
use crate::ownership::Looked;
use crate::ownership::generation::begin_generation;

/// Keys of a domain's cards that are kept.
const MAX_CARD_KEYS: usize = 64;
/// Why a generation ended by itself.
const CHANGED: &str =
    "its name servers, its TLS key and the keys of its cards have all changed since its last proof";

/// Ends a domain's generation where everything that it was known by has changed since a proof of it was last
/// found; then what was found for accounts whose proofs have stood until now is no proof any more. Keeps what
/// it is known by from now on, where a proof was found.
pub(crate) async fn follow_owner(
    context: &Context,
    write: &Write,
    row: &mut domain::Model,
    followers: &[domain::Model],
    looked: &mut Looked,
) -> Result<Touched, AppError> {
    let held = |looked: &Looked| looked.found.iter().any(|found| found.look == Look::Held);
    let kept = ownership::owner_marks_of(write, &[row.id]).await?.pop();
    let standing = domains::proofs_of(write, &[row.id]).await?;
    if kept.is_none() && standing.is_empty() && !held(looked) {
        return Ok(Touched::default());
    }
    let mut before = kept.as_ref().map(owner_marks).unwrap_or_default();
    let now = OwnerMarks {
        name_servers: looked.name_servers.iter().cloned().collect(),
        tls_key: looked.tls_key.clone(),
        card_keys: card_keys(write, row.id).await?,
    };
    let mut touched = Touched::default();
    if before.are_of_another_than(&now) {
        let past: Vec<Uuid> = standing.iter().filter_map(|row| row.account_id).collect();
        let mut newcomers = Vec::new();
        for found in looked.found.iter_mut().filter(|one| one.look == Look::Held) {
            if past.contains(&found.account) {
                found.look = Look::Wrong;
                found.detail = format!("it was there, and counts no more: {CHANGED}");
            } else {
                newcomers.push(found.account);
            }
        }
        touched = begin_generation(
            context,
            write,
            row,
            followers,
            (SYSTEM, CHANGED),
            &newcomers,
        )
        .await?;
        before = OwnerMarks::default();
    } else if kept.is_some() && !held(looked) {
        return Ok(touched);
    }
    if touched.seq.is_none() || held(looked) {
        let seen_at = context.now().0;
        write
            .owner_marks_keep(model(row.id, &before.after(now), seen_at))
            .await?;
    }
    Ok(touched)
}

/// The keys that the newest of a domain's own cards are signed with.
async fn card_keys(write: &Write, domain: i64) -> Result<BTreeSet<String>, AppError> {
    let agents = agents::agents_of(write, &[domain]).await?;
    let newest: Vec<Uuid> = agents.iter().filter_map(|row| row.newest_version).collect();
    let keys = versions::version_keys(write, &newest).await?;
    let all: BTreeSet<&str> = keys
        .iter()
        // What others have nominated says nothing of the domain's owner.
        .filter(|key| key.standing == Standing::Covered)
        .flat_map(|key| key.thumbprints.split_whitespace())
        .collect();
    Ok(all
        .into_iter()
        .take(MAX_CARD_KEYS)
        .map(str::to_owned)
        .collect())
}

/// What a row says that a domain was like.
pub(crate) fn owner_marks(row: &entity::owner_marks::Model) -> OwnerMarks {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    OwnerMarks {
        name_servers: words(&row.name_servers),
        tls_key: row.tls_key.clone(),
        card_keys: words(&row.card_keys),
    }
}

fn model(domain_id: i64, marks: &OwnerMarks, seen_at: i64) -> entity::owner_marks::Model {
    let text = |words: &BTreeSet<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.join(" ")
    };
    entity::owner_marks::Model {
        domain_id,
        name_servers: text(&marks.name_servers),
        tls_key: marks.tls_key.clone(),
        card_keys: text(&marks.card_keys),
        seen_at,
    }
}
