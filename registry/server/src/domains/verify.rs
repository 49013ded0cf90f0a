//! Looking for the proof of a domain at once, for whoever asks.

use a2a_registry_api::{ProofCheck, Verification};
use a2a_registry_domain::role::Permission;

use crate::caller::Caller;
use crate::context::Context;
use crate::domains::acts::domain_visible;
use crate::domains::view::domain_view;
use crate::error::{AppError, ErrorKind};
use crate::ownership::challenges::challenge_where_none;
use crate::ownership::is_provable;
use crate::ownership::verify::{check_attempts, look, question, take_in};

/// Looks for the caller's proof of a domain now; a curator looks for everybody's.
///
/// # Errors
/// `NotFound`; `Conflict` for a domain that nobody can prove; `TooManyRequests` after five failed checks in
/// an hour; `Unavailable` where this process reaches nothing outside.
pub async fn domain_verify(
    context: &Context,
    caller: &Caller,
    domain: &str,
) -> Result<Verification, AppError> {
    let account = caller.demand(Permission::Register)?;
    let row = domain_visible(context, caller, domain).await?;
    if !is_provable(&row) {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "{} cannot be proved: only a host name on port 443 can. An admin can vouch for it.",
                row.name
            ),
        ));
    }
    check_attempts(context, account, &row).await?;
    // A curator looks for what others have placed and claims nothing by that.
    if !caller.may(Permission::Curate) {
        let write = context.store.write().await?;
        challenge_where_none(context, &write, row.id, account.id).await?;
        write.commit().await?;
    }
    let question = question(context, &row, Some(caller)).await?;
    let mut looked = look(context, &question).await?;
    take_in(context, &row, &mut looked, &account.name).await?;
    let at = context.now();
    Ok(Verification {
        domain: domain_view(context, caller, row.id).await?,
        checks: looked
            .found
            .into_iter()
            .map(|found| ProofCheck {
                at,
                method: found.method.into(),
                place: found.place,
                outcome: found.look.into(),
                detail: found.detail,
                wanted: found.wanted,
                found: found.instead,
                aliased: found.aliased,
            })
            .collect(),
    })
}
