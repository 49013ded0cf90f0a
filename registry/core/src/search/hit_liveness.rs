//! The fetch times of the cards of hits, and the days of their endpoint checks. The index does not have them: a fetch
//! that finds a card unchanged does not update it, nor does a check with the same result.

use a2a_registry_api::Hit;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::agents::agents_by_ids;
use uuid::Uuid;

use crate::context::AppContext;

/// Completes the liveness of hits, which their caller may see, with the result of the last fetch, in one query for a
/// whole page. While the database does not respond, hits keep the values of the index.
pub async fn fill_hit_liveness(context: &AppContext, hits: &mut [Hit]) {
    let ids: Vec<Uuid> = hits.iter().map(|hit| hit.summary.id).collect();
    let rows = match agents_by_ids(&context.store, &ids).await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::warn!(%error, "hits are shown without the time of their last fetch");
            return;
        }
    };
    for hit in hits {
        let row = rows.iter().find(|row| row.id == hit.summary.id);
        let Some(row) = row else { continue };
        let liveness = &mut hit.summary.liveness;
        liveness.last_seen = row.last_seen_at.map(Timestamp);
        if let Some(state) = row.liveness.known_value() {
            liveness.state = state.into();
            liveness.reason.clone_from(&row.liveness_reason);
        }
        let endpoint = &mut hit.summary.endpoint;
        endpoint.state.clone_from(&row.endpoint.0);
        endpoint.checked_on = row.endpoint_checked_at.map(|at| Timestamp(at).day_text());
    }
}
