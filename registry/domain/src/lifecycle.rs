//! The states of an agent, what holds it back, and who may see it (docs/model.md#lifecycle-and-holds).

use super::text_enum::text_enum;

text_enum! {
    /// Where an agent stands. Stored; what callers are shown is [`shown`].
    Lifecycle {
        /// Waits for its first approval; nothing of it is served.
        Pending = "pending",
        /// One of its versions is approved and served.
        Approved = "approved",
        /// Its first card was rejected.
        Rejected = "rejected",
        /// Still served, with the advice to move on.
        Deprecated = "deprecated",
        /// Gone for good; its id is never used again.
        Retired = "retired",
    }
}

text_enum! {
    /// A reason to withhold an agent, lifted only by its own cause.
    Hold {
        /// A curator suspended it.
        Operator = "operator",
        /// Its domain's proof lapsed.
        DomainLapsed = "domain_lapsed",
        /// Two accounts claim its domain.
        Disputed = "disputed",
        /// Its card changed in a way that must be looked at first.
        CriticalChange = "critical_change",
        /// The key that signs its card changed.
        KeyChanged = "key_changed",
        /// Its domain is on `deny_domains`.
        Denied = "denied",
        /// Its domain wants not to be listed.
        OptedOut = "opted_out",
    }
}

text_enum! {
    /// What callers are shown: the lifecycle, or `suspended` where a hold stands.
    ShownLifecycle {
        /// Waits for its first approval.
        Pending = "pending",
        /// Approved and served.
        Approved = "approved",
        /// Rejected.
        Rejected = "rejected",
        /// Served, on its way out.
        Deprecated = "deprecated",
        /// Gone for good.
        Retired = "retired",
        /// Withheld by a hold.
        Suspended = "suspended",
    }
}

text_enum! {
    /// Who may find an agent.
    Visibility {
        /// Everybody.
        Public = "public",
        /// Any signed-in caller.
        Internal = "internal",
        /// Named groups.
        Restricted = "restricted",
    }
}

text_enum! {
    /// Whether the card could be reached lately. Says nothing about whether the agent answers.
    LivenessState {
        /// The last look succeeded.
        Fresh = "fresh",
        /// The last look failed; the last good card is served.
        Stale = "stale",
        /// Failed for so long that the agent leaves search.
        Gone = "gone",
    }
}

/// What a caller is shown for this lifecycle under these holds.
pub fn shown(lifecycle: Lifecycle, holds: &[Hold]) -> ShownLifecycle {
    match lifecycle {
        Lifecycle::Retired => ShownLifecycle::Retired,
        _ if !holds.is_empty() => ShownLifecycle::Suspended,
        Lifecycle::Pending => ShownLifecycle::Pending,
        Lifecycle::Approved => ShownLifecycle::Approved,
        Lifecycle::Rejected => ShownLifecycle::Rejected,
        Lifecycle::Deprecated => ShownLifecycle::Deprecated,
    }
}

/// Whether an agent is listed: approved or deprecated, and nothing holds it back.
pub fn listed(lifecycle: Lifecycle, holds: &[Hold]) -> bool {
    matches!(lifecycle, Lifecycle::Approved | Lifecycle::Deprecated) && holds.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_hides_everything_but_retirement() {
        for &lifecycle in Lifecycle::ALL {
            let shown_state = shown(lifecycle, &[Hold::Operator]);
            let expected = if lifecycle == Lifecycle::Retired {
                ShownLifecycle::Retired
            } else {
                ShownLifecycle::Suspended
            };
            assert_eq!(shown_state, expected);
            assert!(!listed(lifecycle, &[Hold::Denied]));
        }
        assert!(listed(Lifecycle::Deprecated, &[]));
        assert!(!listed(Lifecycle::Pending, &[]));
    }
}
