//! The lifecycle, holds, visibility and liveness of an agent (docs/develop/model.md#lifecycle-and-holds).

use super::text_enum::text_enum;

text_enum! {
    /// The stored lifecycle state of an agent; callers see the [`effective_lifecycle`].
    Lifecycle {
        /// Waits for its first approval; none of its versions is served.
        Pending = "pending",
        /// One of its versions is approved and served.
        Approved = "approved",
        /// Its first card was rejected.
        Rejected = "rejected",
        /// Still served, with advice to use another agent.
        Deprecated = "deprecated",
        /// Permanently ended; its id is never reused.
        Retired = "retired",
    }
}

text_enum! {
    /// A hold: a reason to hide an agent, lifted only when that reason ends.
    Hold {
        Operator = "operator",
        DomainLapsed = "domain_lapsed",
        /// Two accounts claim its domain.
        Disputed = "disputed",
        /// Its card has a critical change that needs a review first.
        CriticalChange = "critical_change",
        /// The signing key of its card changed.
        KeyChanged = "key_changed",
        /// Its domain is on `deny_domains`.
        Denied = "denied",
        OptedOut = "opted_out",
        /// A policy forbids its content.
        Policy = "policy",
        /// Its approval ended, or was not renewed.
        Recertify = "recertify",
        /// The admission rules changed and may now forbid the agent; they have not been applied to it yet.
        RulesChanged = "rules_changed",
    }
}

text_enum! {
    /// The state that callers see: the lifecycle, or `suspended` while the agent is on hold.
    ShownLifecycle {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        Deprecated = "deprecated",
        Retired = "retired",
        Suspended = "suspended",
    }
}

text_enum! {
    /// Who may find an agent.
    Visibility {
        Public = "public",
        /// Every caller who has signed in.
        Internal = "internal",
        Restricted = "restricted",
    }
}

text_enum! {
    /// Whether recent fetches of the card succeeded; not whether the agent itself responds.
    LivenessState {
        Fresh = "fresh",
        /// The last fetch failed; the last good card is served.
        Stale = "stale",
        /// Fetches have failed for so long that the agent is not listed by default.
        Gone = "gone",
    }
}

/// The state that callers see for this lifecycle and these holds.
pub fn effective_lifecycle(lifecycle: Lifecycle, holds: &[Hold]) -> ShownLifecycle {
    match lifecycle {
        Lifecycle::Retired => ShownLifecycle::Retired,
        _ if !holds.is_empty() => ShownLifecycle::Suspended,
        Lifecycle::Pending => ShownLifecycle::Pending,
        Lifecycle::Approved => ShownLifecycle::Approved,
        Lifecycle::Rejected => ShownLifecycle::Rejected,
        Lifecycle::Deprecated => ShownLifecycle::Deprecated,
    }
}

/// Whether an agent is listed: approved or deprecated, and not on hold.
pub fn is_listed(lifecycle: Lifecycle, holds: &[Hold]) -> bool {
    matches!(lifecycle, Lifecycle::Approved | Lifecycle::Deprecated) && holds.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_hides_everything_but_retirement() {
        for &lifecycle in Lifecycle::ALL {
            let shown_state = effective_lifecycle(lifecycle, &[Hold::Operator]);
            let expected = if lifecycle == Lifecycle::Retired {
                ShownLifecycle::Retired
            } else {
                ShownLifecycle::Suspended
            };
            assert_eq!(shown_state, expected);
            assert!(!is_listed(lifecycle, &[Hold::Denied]));
        }
        assert!(is_listed(Lifecycle::Deprecated, &[]));
        assert!(!is_listed(Lifecycle::Pending, &[]));
    }
}
