//! The kinds of events (docs/model.md#events-index-and-caches).

use super::text_enum::text_enum;

text_enum! {
    /// The kind of an event. Index, caches, feed and audit all follow events.
    EventKind {
        /// A domain, or a further source of one, was registered.
        DomainRegistered = "domain.registered",
        DomainWithdrawn = "domain.withdrawn",
        DomainVouched = "domain.vouched",
        /// An admin vouched for an account as owner of a host that cannot be proved.
        DomainOwnerVouched = "domain.owner_vouched",
        /// Such a vouch ended: it expired, was taken back, or the host was proved.
        DomainOwnerVouchEnded = "domain.owner_vouch_ended",
        DomainProved = "domain.proved",
        DomainProofEnded = "domain.proof_ended",
        /// A domain's state or owner has changed: verified, lapsed, disputed, opted out.
        DomainState = "domain.state",
        /// A domain has a new owner: its proofs ended and its approvals were revoked.
        DomainGeneration = "domain.generation",
        /// A domain's contact, opt-out or keys were changed.
        DomainUpdated = "domain.updated",
        /// An immediate visit was requested.
        DomainRecrawl = "domain.recrawl",
        /// A domain was deleted and its agents retired.
        DomainDeleted = "domain.deleted",
        /// A card was found in a slot for the first time.
        AgentDiscovered = "agent.discovered",
        /// A card changed and a new version was stored.
        AgentChanged = "agent.changed",
        /// A card names key sets outside its own domain, which were not fetched.
        AgentForeignKeys = "agent.foreign_keys",
        AgentApproved = "agent.approved",
        AgentRejected = "agent.rejected",
        /// An approval was revoked with its cause: `--approve-all`, a proof that covered the card, or a broken glass.
        AgentReturned = "agent.returned",
        /// One account approved a version alone, for a day.
        AgentBreakGlass = "agent.break_glass",
        AgentHeld = "agent.held",
        AgentReleased = "agent.released",
        AgentDeprecated = "agent.deprecated",
        AgentUndeprecated = "agent.undeprecated",
        AgentRetired = "agent.retired",
        /// The card could be reached again, or no longer.
        AgentLiveness = "agent.liveness",
        /// Something that is shown with an agent changed beside its card: one of its sources, or its domain's proofs.
        AgentUpdated = "agent.updated",
        /// A card was derived again with another result.
        AgentDerived = "agent.derived",
        /// The stored bytes of a version of an agent's card were found not to have their digest.
        AgentDamagedCard = "agent.damaged_card",
        ReviewOpened = "review.opened",
        /// A review was decided, superseded or withdrawn.
        ReviewClosed = "review.closed",
        ReviewCommented = "review.commented",
        /// The assignee or the due date of a review was changed.
        ReviewAssigned = "review.assigned",
        /// An approval was counted that is not the last one needed, or was taken back.
        ReviewApproval = "review.approval",
        AgentReported = "agent.reported",
        TokenCreated = "token.created",
        TokenRevoked = "token.revoked",
        /// Somebody has signed in to the pages.
        SessionBegun = "session.begun",
        /// Tokens or sign-ins of one network were refused within a minute.
        SignInRefused = "sign_in.refused",
        /// A session was ended by its account or an admin.
        SessionRevoked = "session.revoked",
        AccountCreated = "account.created",
        /// The roles or the groups of an account were changed.
        AccountChanged = "account.changed",
        /// An account was disabled, and its tokens ended.
        AccountDisabled = "account.disabled",
        /// An account's identity provider does not let it in any more: its roles, sessions and tokens ended.
        AccountAccessEnded = "account.access_ended",
        AccountEnabled = "account.enabled",
        /// A group was made, or its members were changed.
        GroupChanged = "group.changed",
        GroupDeleted = "group.deleted",
        /// A collection was made or changed.
        CollectionChanged = "collection.changed",
        CollectionDeleted = "collection.deleted",
        /// An account's feed has got an address.
        FeedCreated = "feed.created",
        FeedRevoked = "feed.revoked",
        PolicySet = "policy.set",
        WaiverGranted = "waiver.granted",
        /// A waiver was taken back, has expired, or has lost its approver.
        WaiverEnded = "waiver.ended",
    }
}

impl EventKind {
    /// Whether a person or a rule has done or decided this, as opposed to an observation or its consequence.
    pub const fn is_action(self) -> bool {
        !matches!(
            self,
            Self::AgentDiscovered
                | Self::AgentChanged
                | Self::AgentForeignKeys
                | Self::AgentLiveness
                | Self::AgentUpdated
                | Self::AgentDerived
                | Self::AgentDamagedCard
                | Self::ReviewOpened
                | Self::ReviewClosed
                | Self::SignInRefused
        )
    }
}
