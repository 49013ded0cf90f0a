//! The agent quota of a domain, with the places reserved for its owner's agents
//! (docs/publish/register.md#who-may-register).

use std::collections::BTreeMap;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::entity::source;

use crate::config::LimitsConfig;
use crate::sources::card_target;

/// The card targets of a domain's sources, with the highest coverage of each. Sources with the same target share one
/// place, so that registering an existing URL uses no second place.
pub fn card_targets<'a>(
    sources: impl Iterator<Item = &'a source::Model>,
    coverage_of: impl Fn(&source::Model) -> CoverageLevel,
) -> BTreeMap<(bool, String), CoverageLevel> {
    let mut targets = BTreeMap::new();
    for row in sources {
        let kind = row.kind.known_value().filter(|kind| !kind.is_catalog());
        let Some(kind) = kind else { continue };
        let coverage_level = coverage_of(row);
        targets
            .entry(card_target(kind, &row.url))
            .and_modify(|known: &mut CoverageLevel| *known = coverage_level.max(*known))
            .or_insert(coverage_level);
    }
    targets
}

/// The used places of a domain's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainAgentQuota {
    limit: usize,
    reserved: usize,
    own: usize,
    nominated: usize,
}

pub fn domain_agent_quota(
    limits: &LimitsConfig,
    used: impl IntoIterator<Item = CoverageLevel>,
) -> DomainAgentQuota {
    let mut quota = DomainAgentQuota {
        limit: limits.agents_per_domain,
        reserved: limits.agents_reserved.min(limits.agents_per_domain / 2),
        own: 0,
        nominated: 0,
    };
    for coverage_level in used {
        quota.count_agent(coverage_level);
    }
    quota
}

impl DomainAgentQuota {
    pub const fn count_agent(&mut self, coverage_level: CoverageLevel) {
        match coverage_level {
            CoverageLevel::Covered => self.own += 1,
            CoverageLevel::Admitted | CoverageLevel::Nomination => self.nominated += 1,
        }
    }

    /// Names the limit that leaves no place for this coverage; `None` if there is a place.
    pub fn limit_message(&self, domain: &str, coverage_level: CoverageLevel) -> Option<String> {
        let Self {
            limit: most,
            reserved,
            own,
            nominated,
        } = *self;
        let is_full = own + nominated >= most;
        match coverage_level {
            // Nominated agents do not use up the reserve, even if they came first.
            CoverageLevel::Covered if is_full && own >= reserved => {
                Some(format!("{domain} has reached its limit of {most} agents"))
            }
            CoverageLevel::Covered => None,
            _ if is_full || nominated >= most - reserved => Some(format!(
                "{domain} has reached its limit of {} agents registered by others than its owner",
                most - reserved
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(own: usize, nominated: usize, standing: CoverageLevel) -> bool {
        let limits = LimitsConfig {
            agents_per_domain: 5,
            agents_reserved: 2,
            ..LimitsConfig::default()
        };
        let taken = [
            (CoverageLevel::Covered, own),
            (CoverageLevel::Nomination, nominated),
        ];
        let taken = taken
            .iter()
            .flat_map(|(standing, count)| std::iter::repeat_n(*standing, *count));
        domain_agent_quota(&limits, taken)
            .limit_message("a.example", standing)
            .is_some()
    }

    #[test]
    fn the_last_places_are_the_owners() {
        use CoverageLevel::{Admitted, Covered, Nomination};
        for (own, nominated, standing, expected) in [
            (0, 2, Nomination, false),
            (0, 3, Nomination, true),
            (0, 3, Admitted, true),
            (0, 3, Covered, false),
            (1, 3, Covered, false),
            (2, 3, Covered, true),
            (4, 0, Covered, false),
            (5, 0, Covered, true),
            (4, 0, Nomination, false),
            (5, 0, Nomination, true),
            // Agents from before the reserve existed do not use it either.
            (0, 5, Covered, false),
            (1, 9, Covered, false),
            (2, 9, Covered, true),
        ] {
            assert_eq!(
                refused(own, nominated, standing),
                expected,
                "{own} {nominated} {standing}"
            );
        }
    }
}
