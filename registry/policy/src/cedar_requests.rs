//! Questions to Cedar about the conditions of policies.

use std::collections::BTreeSet;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet as CedarSet, Request,
};

use crate::action::Action;
use crate::policy::entity_uid;
use crate::policy_matches::PolicyMatches;
use crate::principal::ANONYMOUS_ACCOUNT;

/// The policies that match a resource, each as a permit for everybody; all fail if there is no request about it.
pub(crate) fn match_probes(
    probes: &CedarSet,
    asked: Option<&(Request, Entities)>,
) -> PolicyMatches {
    let Some((request, entities)) = asked else {
        let all = probes.policies();
        return PolicyMatches {
            matching: BTreeSet::new(),
            failed: all
                .filter_map(|policy| parse_policy_index(policy.id()))
                .collect(),
        };
    };
    let response = Authorizer::new().is_authorized(request, probes, entities);
    let told = response.diagnostics();
    let failed = told.errors().filter_map(|error| {
        let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
        parse_policy_index(error.policy_id())
    });
    PolicyMatches {
        matching: told.reason().filter_map(parse_policy_index).collect(),
        failed: failed.collect(),
    }
}

fn parse_policy_index(probe_id: &PolicyId) -> Option<u16> {
    let place: &str = probe_id.as_ref();
    place.parse().ok()
}

/// The request and entities with which Cedar evaluates conditions. No condition of a probe depends on the principal.
pub(crate) fn cedar_request_with_entities(
    action: Action,
    (id, entities): (EntityUid, Vec<Entity>),
) -> Result<(Request, Entities), String> {
    let entities = Entities::from_entities(entities, None).map_err(|error| error.to_string())?;
    let request = new_cedar_request(entity_uid("Account", ANONYMOUS_ACCOUNT)?, action, id)?;
    Ok((request, entities))
}

fn new_cedar_request(
    principal: EntityUid,
    action: Action,
    resource: EntityUid,
) -> Result<Request, String> {
    let action = entity_uid("Action", action.as_str())?;
    Request::new(principal, action, resource, Context::empty(), None)
        .map_err(|error| error.to_string())
}
