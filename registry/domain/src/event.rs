//! Everything that can happen, as one enum (docs/model.md#events-index-and-caches).

use super::text_enum::text_enum;

text_enum! {
    /// What happened. Index, caches, feed and audit all follow these.
    EventKind {
        /// A domain, or a further source of one, was registered.
        DomainRegistered = "domain.registered",
        /// Somebody took back the registration of a source.
        DomainWithdrawn = "domain.withdrawn",
        /// An admin vouched for a domain.
        DomainVouched = "domain.vouched",
        /// An account has proved a domain.
        DomainProved = "domain.proved",
        /// A proof ended.
        DomainProofEnded = "domain.proof_ended",
        /// What a domain is, or whose, has changed: verified, lapsed, disputed, opted out.
        DomainState = "domain.state",
        /// A domain has another owner: its proofs ended and its approvals are asked for again.
        DomainGeneration = "domain.generation",
        /// A domain's owner changed how it is looked after.
        DomainUpdated = "domain.updated",
        /// Somebody asked for a visit now.
        DomainRecrawl = "domain.recrawl",
        /// A domain was deleted and its agents retired.
        DomainDeleted = "domain.deleted",
        /// A card was seen in a slot for the first time.
        AgentDiscovered = "agent.discovered",
        /// A card changed and a new version was kept.
        AgentChanged = "agent.changed",
        /// A card names keys of another house, which nobody looked for.
        AgentForeignKeys = "agent.foreign_keys",
        /// A version was approved, by a rule or a person.
        AgentApproved = "agent.approved",
        /// A version was rejected.
        AgentRejected = "agent.rejected",
        /// An approval ended with what it was given for: `--approve-all`, or a proof that covered the card.
        AgentReturned = "agent.returned",
        /// A hold was set.
        AgentHeld = "agent.held",
        /// A hold was lifted.
        AgentReleased = "agent.released",
        /// An agent was marked as on its way out.
        AgentDeprecated = "agent.deprecated",
        /// That was taken back.
        AgentUndeprecated = "agent.undeprecated",
        /// An agent ended for good.
        AgentRetired = "agent.retired",
        /// The card could be reached again, or no longer.
        AgentLiveness = "agent.liveness",
        /// Something that is shown with an agent changed beside its card: a source it is fed by, or its
        /// domain's proofs.
        AgentUpdated = "agent.updated",
        /// Something derived from a card was derived again and came out differently.
        AgentDerived = "agent.derived",
        /// A question was put to the curators.
        ReviewOpened = "review.opened",
        /// A question was answered, superseded or withdrawn.
        ReviewClosed = "review.closed",
        /// A token was made.
        TokenCreated = "token.created",
        /// A token was revoked.
        TokenRevoked = "token.revoked",
    }
}

impl EventKind {
    /// Whether somebody, or a rule, has done or decided this, as opposed to what was only seen or follows from it.
    pub const fn is_act(self) -> bool {
        !matches!(
            self,
            Self::AgentDiscovered
                | Self::AgentChanged
                | Self::AgentForeignKeys
                | Self::AgentLiveness
                | Self::AgentUpdated
                | Self::AgentDerived
                | Self::ReviewOpened
                | Self::ReviewClosed
        )
    }
}
