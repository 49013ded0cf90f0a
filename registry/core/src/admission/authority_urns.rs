//! Names the agents of hosts for which an admin vouched before `[ard] authority` was set. For later vouches and cards
//! the URN is assigned with them.

use a2a_registry_store::entity::domain;
use a2a_registry_store::urn_authorities::vouched_domains_with_unnamed_agents;

use crate::admission::coverage_updates::update_domain_coverage;
use crate::admission::urn::is_named_by_authority;
use crate::commit::change_set::ChangeSet;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{ErrorKind, Result};

const DOMAINS_PER_PAGE: u64 = 100;

/// Assigns the missing URNs under the company's authority. Running it again, or in several processes at once, changes
/// nothing more. A failure does not stop the other domains; the first one is returned at the end.
pub async fn assign_missing_authority_urns(context: &AppContext) -> Result<()> {
    if context.config().ard.authority.is_empty() {
        return Ok(());
    }
    let (mut after_id, mut first_error) = (0, Ok(()));
    loop {
        let page =
            vouched_domains_with_unnamed_agents(&context.store, after_id, DOMAINS_PER_PAGE).await?;
        let Some(last) = page.last() else {
            return first_error;
        };
        after_id = last.id;
        for row in &page {
            match name_agents_of_domain(context, row).await {
                Err(error) if error.is_database_failure() => return Err(error),
                Err(error) => {
                    let text = error.log_message();
                    tracing::error!(error = text, domain = row.name, "cannot name its agents");
                    first_error = first_error.and(Err(error));
                }
                Ok(()) => {}
            }
        }
    }
}

async fn name_agents_of_domain(context: &AppContext, unlocked: &domain::Model) -> Result<()> {
    if !is_named_by_authority(&context.config().ard, unlocked) {
        return Ok(());
    }
    let write = context.store.begin_write().await?;
    // The domain may have been deleted since.
    let row = match lock_domain(&write, unlocked).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        row => row?,
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    update_domain_coverage(context, &write, &mut change_set, &row).await?;
    commit_changes(context, write, change_set).await
}
