//! The kinds of events (docs/develop/model.md#events-index-and-caches).

use super::text_enum::text_enum;

text_enum! {
    /// The kind of an event. Index, caches, feed and audit all follow events.
    EventKind {
        /// A domain, or a further source of one, was registered.
        DomainRegistered = "domain.registered",
        /// An account withdrew its registration of a domain or of a source.
        DomainWithdrawn = "domain.withdrawn",
        /// An admin vouched for a domain, which counts as a proof.
        DomainVouched = "domain.vouched",
        /// An admin vouched for an account as owner of a host that cannot be proved.
        DomainOwnerVouched = "domain.owner_vouched",
        /// Such a vouch ended: it expired, was revoked, or the host was proved.
        DomainOwnerVouchEnded = "domain.owner_vouch_ended",
        /// An admin permitted checks of the endpoints of a host.
        DomainEndpointsVouched = "domain.endpoints_vouched",
        /// Such a permission ended.
        DomainEndpointsVouchEnded = "domain.endpoints_vouch_ended",
        /// A proof of a domain was found.
        DomainProved = "domain.proved",
        /// A proof of a domain ended.
        DomainProofEnded = "domain.proof_ended",
        /// A domain's state or owner has changed: verified, lapsed, disputed, opted out.
        DomainState = "domain.state",
        /// A domain has a new owner: its proofs ended and its approvals were revoked.
        DomainGeneration = "domain.generation",
        /// A domain's contact, opt-out or keys were changed.
        DomainUpdated = "domain.updated",
        /// A source of a domain got a credential for the crawler.
        DomainCredentialSet = "domain.credential_set",
        /// Such a credential was removed, or ended with the owner who had set it.
        DomainCredentialRemoved = "domain.credential_removed",
        /// An immediate visit was requested.
        DomainRecrawl = "domain.recrawl",
        /// A domain was deleted and its agents retired.
        DomainDeleted = "domain.deleted",
        /// The cards of a domain's agents were erased; events keep their digests.
        DomainErased = "domain.erased",
        /// A card was found in a slot for the first time.
        AgentDiscovered = "agent.discovered",
        /// A card changed and a new version was stored.
        AgentChanged = "agent.changed",
        /// A card names key sets outside its own domain, which were not fetched.
        AgentForeignKeys = "agent.foreign_keys",
        /// A rule or a person approved the content of a card.
        AgentApproved = "agent.approved",
        /// A rule or a person rejected the content of a card.
        AgentRejected = "agent.rejected",
        /// An approval ended because its cause ended: `--approve-all`, a proof that covered the card, or a break-glass
        /// approval.
        AgentReturned = "agent.returned",
        /// One account alone approved a version, for a day.
        AgentBreakGlass = "agent.break_glass",
        /// A hold on an agent began, which hides it.
        AgentHeld = "agent.held",
        /// A hold on an agent ended.
        AgentReleased = "agent.released",
        /// An agent was marked as deprecated.
        AgentDeprecated = "agent.deprecated",
        /// A deprecation was revoked.
        AgentUndeprecated = "agent.undeprecated",
        /// An agent was retired, which is final.
        AgentRetired = "agent.retired",
        /// The card became reachable or unreachable.
        AgentLiveness = "agent.liveness",
        /// The result of the checks of the agent's endpoint changed.
        AgentEndpoint = "agent.endpoint",
        /// Data shown with an agent changed outside its card: one of its sources, or its domain's proofs.
        AgentUpdated = "agent.updated",
        /// A stored card was processed again with another result.
        AgentDerived = "agent.derived",
        /// The stored bytes of a card version do not match their digest.
        AgentDamagedCard = "agent.damaged_card",
        /// A review was opened.
        ReviewOpened = "review.opened",
        /// A review was decided, superseded or withdrawn.
        ReviewClosed = "review.closed",
        /// A comment was added to a review.
        ReviewCommented = "review.commented",
        /// The assignee or the due date of a review was changed.
        ReviewAssigned = "review.assigned",
        /// An approval was added that is not the last one required, or was revoked.
        ReviewApproval = "review.approval",
        /// A caller reported an agent.
        AgentReported = "agent.reported",
        /// A token was created.
        TokenCreated = "token.created",
        /// A token was revoked.
        TokenRevoked = "token.revoked",
        /// An account signed in to the website.
        SessionBegun = "session.begun",
        /// Tokens or sign-ins from one network were rejected within a minute.
        SignInRefused = "sign_in.refused",
        /// A session was ended by its account or an admin.
        SessionRevoked = "session.revoked",
        /// An account was created.
        AccountCreated = "account.created",
        /// The roles or the groups of an account were changed.
        AccountChanged = "account.changed",
        /// An account was disabled, and its tokens were revoked.
        AccountDisabled = "account.disabled",
        /// An account's identity provider no longer grants it access: its roles, sessions and tokens ended.
        AccountAccessEnded = "account.access_ended",
        /// A disabled account was enabled.
        AccountEnabled = "account.enabled",
        /// A group was created, or its members were changed.
        GroupChanged = "group.changed",
        /// A group was deleted.
        GroupDeleted = "group.deleted",
        /// A collection was created or changed.
        CollectionChanged = "collection.changed",
        /// A collection was deleted.
        CollectionDeleted = "collection.deleted",
        /// An account's feed got a URL.
        FeedCreated = "feed.created",
        /// The URL of an account's feed was revoked.
        FeedRevoked = "feed.revoked",
        /// Another set of policies was put in force.
        PolicySet = "policy.set",
        /// Policies began to hide an agent from some callers who could see it otherwise.
        AgentHidden = "agent.hidden",
        /// Policies no longer hide an agent from any caller.
        AgentUnhidden = "agent.unhidden",
        /// A waiver was granted.
        WaiverGranted = "waiver.granted",
        /// A waiver was revoked, expired, or lost its approver.
        WaiverEnded = "waiver.ended",
        /// A hook was created.
        HookCreated = "hook.created",
        /// A hook was deleted.
        HookDeleted = "hook.deleted",
        /// The registry was restored from a backup; events after the backup are lost.
        RegistryRestored = "registry.restored",
    }
}

impl EventKind {
    /// Whether this event may change which callers exist and what they may do, or for which hosts admins vouch: what
    /// decisions keep in memory.
    pub const fn changes_callers(self) -> bool {
        matches!(
            self,
            Self::DomainEndpointsVouched
                | Self::DomainEndpointsVouchEnded
                | Self::DomainState
                | Self::DomainGeneration
                | Self::DomainDeleted
                | Self::TokenRevoked
                | Self::AccountCreated
                | Self::AccountChanged
                | Self::AccountDisabled
                | Self::AccountAccessEnded
                | Self::AccountEnabled
                | Self::GroupChanged
                | Self::GroupDeleted
        )
    }

    /// Whether a person or a rule caused this event, as opposed to an observation or its consequence.
    pub const fn is_action(self) -> bool {
        !matches!(
            self,
            Self::AgentDiscovered
                | Self::AgentChanged
                | Self::AgentForeignKeys
                | Self::AgentLiveness
                | Self::AgentEndpoint
                | Self::AgentUpdated
                | Self::AgentDerived
                | Self::AgentDamagedCard
                | Self::AgentHidden
                | Self::AgentUnhidden
                | Self::ReviewOpened
                | Self::ReviewClosed
                | Self::SignInRefused
        )
    }
}
