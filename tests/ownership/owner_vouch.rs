//! An admin vouches for the owner of a host that cannot be proved (docs/publish/prove.md#hosts-that-cannot-be-proved).

use a2a_registry_api::{
    AccountPatch, Act, AgentPatch, DomainPatch, DomainView, GroupMembers, NewGeneration,
    NewOwnerVouch, Registration, Transfer, Vouch,
};
use a2a_registry_core::accounts::account_operations::account_patch;
use a2a_registry_core::accounts::groups::group_put;
use a2a_registry_core::agents::lifecycle_actions::{agent_deprecate, agent_retire};
use a2a_registry_core::agents::views::agent_versions;
use a2a_registry_core::config::AllowPorts;
use a2a_registry_core::domains::actions::{domain_list, domain_show, vouch_for_domain};
use a2a_registry_core::domains::owner_actions::{domain_patch, domain_transfer};
use a2a_registry_core::domains::owner_vouch::{vouch_for_domain_owner, withdraw_owner_vouch};
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::ownership::owner_vouches::end_owner_vouches;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_store::entity::agent;
use a2a_registry_store::events::events_after;
use time::Duration;

use super::{DOMAIN, OwnershipSetup, STANDING, moved};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};

/// A port that cannot be proved, and the card there.
const HOST: &str = "travel.agents-test.com:8443";
const CARD: &str = "https://travel.agents-test.com:8443/card.json";

both_databases!(
    a_vouched_owner_does_what_an_owner_may_and_proves_nothing,
    a_vouched_owner_takes_the_places_of_the_hosts_own,
    a_vouch_expires_by_the_clock,
    a_vouch_ends_when_the_host_name_is_proved,
    a_vouch_ends_when_a_parent_is_proved_for_its_subdomains,
    a_domain_that_can_be_proved_gets_no_vouched_owner,
    a_vouch_is_for_one_scheme_host_and_port,
    one_vouch_that_cannot_be_ended_keeps_no_other,
    a_group_of_the_same_name_owns_nothing,
    one_account_is_vouched_for_at_a_time,
    whatever_ends_a_domains_owner_ends_the_vouch,
    an_opt_out_and_holds_are_above_the_vouch
);

fn vouch_for(account: &str) -> NewOwnerVouch {
    NewOwnerVouch {
        account: account.into(),
        reason: "ticket 7".into(),
        expires_in_days: None,
    }
}

fn card_registration(url: &str) -> Registration {
    Registration {
        card_url: Some(url.into()),
        ..Registration::default()
    }
}

fn sponsored(name: &str) -> AgentPatch {
    AgentPatch {
        sponsor: Some(name.into()),
        ..AgentPatch::default()
    }
}

impl OwnershipSetup {
    /// A registry that reaches every port and address, also without TLS.
    async fn with_open_network(url: &str) -> Self {
        Self::with_registry(
            InProcessRegistry::with_config(url, |config| {
                config.crawler.allow_ports = AllowPorts::Word("any".into());
                config.crawler.allow_http = true;
                config.crawler.allow_networks = vec!["10.0.0.0/8".parse().unwrap()];
                config.limits.agents_per_domain = 6;
                config.limits.agents_reserved = 3;
            })
            .await,
        )
    }

    /// An account with a listed agent at that URL, which a curator has approved.
    async fn publish_at(&self, name: &str, url: &str) -> (Caller, agent::Model) {
        let caller = self.create_publisher(name).await;
        let view = register_domain(&self.registry.app, &caller, &card_registration(url))
            .await
            .unwrap();
        self.registry.advance(Duration::minutes(2));
        self.registry
            .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Books flights")))
            .await;
        let agent = self.registry.agent(&view.domain).await;
        self.registry.approve_open_review(agent.id).await;
        (caller, agent)
    }

    async fn vouch(&self, host: &str, account: &str) -> Result<DomainView, AppError> {
        vouch_for_domain_owner(
            &self.registry.app,
            &self.registry.admin,
            host,
            &vouch_for(account),
        )
        .await
    }

    async fn host_view(&self, caller: &Caller) -> DomainView {
        domain_show(&self.registry.app, caller, HOST).await.unwrap()
    }

    /// Whether the account may act on an agent as its owner.
    async fn owns(&self, caller: &Caller, agent: &agent::Model) -> bool {
        let id = agent.id.to_string();
        match agent_patch(&self.registry.app, caller, &id, &sponsored("")).await {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Forbidden, "{error:?}");
                false
            }
        }
    }

    /// The reasons for which owner vouches have ended, with the hosts.
    async fn vouch_ends(&self) -> Vec<(String, String)> {
        let page = events_after(&self.registry.store, 0, 1000).await.unwrap();
        page.into_iter()
            .filter(|event| event.kind == EventKind::DomainOwnerVouchEnded)
            .map(|event| {
                let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
                (event.subject, data["reason"].as_str().unwrap().to_owned())
            })
            .collect()
    }

    /// Proves the host name on port 443 for an account.
    async fn prove(&self, caller: &Caller) {
        let view = self.register(caller, DOMAIN).await;
        self.place_standing_record(&view);
        let found = domain_verify(&self.registry.app, caller, DOMAIN)
            .await
            .unwrap();
        assert_eq!(found.domain.state.as_str(), "verified");
    }
}

/// Everything that an owner may, and no step of the ladder: neither by that vouch, nor together with one for the host.
async fn a_vouched_owner_does_what_an_owner_may_and_proves_nothing(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    let id = agent.id.to_string();
    let refused = agent_deprecate(app, &acme, &id, &moved())
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    assert!(
        refused.public.contains("--owner NAME"),
        "it says what is needed: {}",
        refused.public
    );
    assert!(!setup.owns(&acme, &agent).await);

    let view = setup.vouch(HOST, "acme").await.unwrap();
    assert_eq!(view.owner.as_deref(), Some("acme"));
    let vouch = view.owner_vouch.unwrap();
    assert_eq!(
        (vouch.until.0 - vouch.since.0, vouch.reason.as_deref()),
        (180 * 24 * 3_600_000_000, Some("ticket 7"))
    );
    assert!(view.proofs.is_empty() && view.state.as_str() == "unverified");
    let own = setup.host_view(&acme).await;
    assert!(own.complete && own.owner_vouch.unwrap().by.is_some());
    let outside = setup.host_view(&Caller::default()).await;
    assert_eq!(outside.owner, None);
    let told = outside.owner_vouch.unwrap();
    assert_eq!((told.by, told.reason), (None, None));

    agent_deprecate(app, &acme, &id, &moved()).await.unwrap();
    agent_patch(app, &acme, &id, &sponsored("acme"))
        .await
        .unwrap();
    let contact = DomainPatch {
        contact: Some("mailto:ops@agents-test.com".into()),
        opt_out: None,
        ..DomainPatch::default()
    };
    domain_patch(app, &acme, HOST, &contact).await.unwrap();
    agent_versions(app, &acme, &id, &Default::default())
        .await
        .unwrap();

    let is_unproved = async || {
        let agent = setup.registry.agent(HOST).await;
        let shown = agent_show_checked(app, admin, &id).await.unwrap();
        let level = shown.hit.summary.trust.level;
        (agent.urn, level.is_none_or(|level| level == TrustLevel::L0))
    };
    assert_eq!(is_unproved().await, (None, true));
    let word = Vouch {
        reason: "our own machine".into(),
        account: None,
    };
    let view = vouch_for_domain(app, admin, HOST, &word).await.unwrap();
    assert_eq!(view.state.as_str(), "verified");
    assert_eq!(view.owner.as_deref(), Some("acme"));
    assert_eq!(is_unproved().await, (None, true));
    setup.registry.assert_index_matches_database().await;
    let act = Act {
        reason: "gone".into(),
        hold: None,
    };
    agent_retire(app, &acme, &id, &act).await.unwrap();
    domain_delete(app, &acme, HOST).await.unwrap();
    setup.registry.assert_index_matches_database().await;
}

/// The places that are kept for a domain's own are the vouched owner's, and nobody else's.
async fn a_vouched_owner_takes_the_places_of_the_hosts_own(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, _) = setup.publish_at("acme", CARD).await;
    let other = setup.create_publisher("other").await;
    let app = &setup.registry.app;
    let path = |number: usize| format!("https://{HOST}/{number}.json");
    for number in [2, 3] {
        register_domain(app, &acme, &card_registration(&path(number)))
            .await
            .unwrap();
    }
    let refused = register_domain(app, &acme, &card_registration(&path(4)))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    setup.vouch(HOST, "acme").await.unwrap();
    register_domain(app, &acme, &card_registration(&path(4)))
        .await
        .unwrap();
    // The places of others are free again, and no more than those.
    register_domain(app, &other, &card_registration(&path(9)))
        .await
        .unwrap();
    setup.registry.advance(Duration::minutes(2));
    setup
        .registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Books hotels")))
        .await;
    // Its own are covered, and the agent of the other account is a nomination.
    let mut covered = 0;
    for agent in setup.registry.agents().await {
        let versions = setup.registry.versions(agent.id).await;
        let level = versions.last().unwrap().standing.known_value().unwrap();
        covered += usize::from(level == CoverageLevel::Covered);
        let own = agent.submitter == acme.account.as_ref().map(|one| one.id);
        assert_eq!(level == CoverageLevel::Covered, own, "{}", agent.slot);
    }
    assert!(covered >= 3, "{covered}");
    // One place is left, and from the moment of its expiry it is not for this account.
    setup.registry.advance(Duration::days(181));
    let refused = register_domain(app, &acme, &card_registration(&path(5)))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
}

/// No job is needed for what it permits; a job ends what is shown, once.
async fn a_vouch_expires_by_the_clock(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let stranger = setup.create_publisher("first").await;
    register_domain(
        &setup.registry.app,
        &stranger,
        &card_registration(&format!("https://{HOST}/x.json")),
    )
    .await
    .unwrap();
    let owner = setup.create_publisher("acme").await;
    setup
        .registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Books flights")))
        .await;
    let agent = setup.registry.agent(HOST).await;
    setup.registry.approve_open_review(agent.id).await;
    let app = &setup.registry.app;
    for days in [0, 366] {
        let vouch = NewOwnerVouch {
            expires_in_days: Some(days),
            ..vouch_for("acme")
        };
        let refused = vouch_for_domain_owner(app, &setup.registry.admin, HOST, &vouch).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Invalid, "{days}");
    }
    let week = NewOwnerVouch {
        expires_in_days: Some(7),
        ..vouch_for("acme")
    };
    vouch_for_domain_owner(app, &setup.registry.admin, HOST, &week)
        .await
        .unwrap();
    setup.registry.advance(Duration::days(6));
    assert!(setup.owns(&owner, &agent).await);
    let listed = domain_list(app, &owner, &Default::default()).await.unwrap();
    assert_eq!(listed.domains.len(), 1);
    end_owner_vouches(app).await.unwrap();
    assert!(setup.owns(&owner, &agent).await, "it has not expired");
    let beside = match url.starts_with("postgres") {
        true => Some(setup.registry.second_process().await),
        false => None,
    };

    setup.registry.advance(Duration::days(1));
    assert!(!setup.owns(&owner, &agent).await);
    let listed = domain_list(app, &owner, &Default::default()).await.unwrap();
    assert!(listed.domains.is_empty());
    let view = setup.host_view(&setup.registry.admin).await;
    assert_eq!((view.owner, view.owner_vouch), (None, None));
    let row = setup.registry.agent(HOST).await;
    assert_eq!(row.owner_id, owner.account.as_ref().map(|one| one.id));

    // Both replicas look, and one of them ends it.
    end_owner_vouches(app).await.unwrap();
    if let Some(beside) = &beside {
        end_owner_vouches(&beside.app).await.unwrap();
    }
    end_owner_vouches(app).await.unwrap();
    assert_eq!(
        setup.vouch_ends().await,
        [(HOST.to_owned(), "it has expired".to_owned())]
    );
    assert_eq!(setup.registry.agent(HOST).await.owner_id, None);
    setup.registry.assert_index_matches_database().await;
    // What it was vouched for can be vouched for again.
    setup.vouch(HOST, "acme").await.unwrap();
    if let Some(beside) = &beside {
        let patched = agent_patch(&beside.app, &owner, &agent.id.to_string(), &sponsored("")).await;
        assert!(patched.is_ok(), "another process knows it at once");
    }
}

/// Whoever proves the name on port 443 ends it, in the same act.
async fn a_vouch_ends_when_the_host_name_is_proved(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    setup.vouch(HOST, "acme").await.unwrap();
    assert!(setup.owns(&acme, &agent).await);
    let rival = setup.create_publisher("rival").await;
    setup.register(&rival, DOMAIN).await;
    assert!(
        setup.owns(&acme, &agent).await,
        "registering proves nothing"
    );
    setup.prove(&rival).await;
    assert!(!setup.owns(&acme, &agent).await);
    assert!(!setup.owns(&rival, &agent).await, "the port is nobody's");
    assert_eq!(
        setup.vouch_ends().await,
        [(HOST.to_owned(), format!("{DOMAIN} is proved"))]
    );
    let refused = setup.vouch(HOST, "acme").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.public.contains(DOMAIN), "{}", refused.public);
    setup.registry.assert_index_matches_database().await;
}

/// A parent's record ends it where it reaches the host, and not where it is for the parent alone.
async fn a_vouch_ends_when_a_parent_is_proved_for_its_subdomains(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    setup.vouch(HOST, "acme").await.unwrap();
    let parent = "agents-test.com";
    let rival = setup.create_publisher("rival").await;
    let view = setup.register(&rival, parent).await;
    setup.place_standing_record(&view);
    let app = &setup.registry.app;
    let found = domain_verify(app, &rival, parent).await.unwrap();
    assert_eq!(found.domain.state.as_str(), "verified");
    assert!(
        setup.owns(&acme, &agent).await,
        "policy=exact is about the parent alone"
    );
    end_owner_vouches(app).await.unwrap();
    assert!(setup.owns(&acme, &agent).await);
    let record = view.challenges[0].value.clone().unwrap();
    let name = view.challenges[0].name.clone().unwrap();
    setup.place_record(&name, &record.replace("policy=exact", "policy=subdomains"));
    domain_verify(app, &rival, parent).await.unwrap();
    assert!(!setup.owns(&acme, &agent).await);
    assert_eq!(
        setup.vouch_ends().await,
        [(HOST.to_owned(), format!("{parent} is proved"))]
    );
    setup.registry.assert_index_matches_database().await;
}

async fn a_domain_that_can_be_proved_gets_no_vouched_owner(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let acme = setup.create_publisher("acme").await;
    setup.register(&acme, DOMAIN).await;
    let refused = setup.vouch(DOMAIN, "acme").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(
        refused.public.contains("can be proved") && refused.public.contains("domain verify"),
        "{}",
        refused.public
    );
    let refused = withdraw_owner_vouch(&setup.registry.app, &setup.registry.admin, DOMAIN).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
    let refused =
        vouch_for_domain_owner(&setup.registry.app, &acme, DOMAIN, &vouch_for("acme")).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
}

/// Neither another port, nor the same address over TLS, nor a name below it.
async fn a_vouch_is_for_one_scheme_host_and_port(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, own) = setup
        .publish_at("acme", "http://10.0.0.1:8080/card.json")
        .await;
    setup.vouch("10.0.0.1:8080", "acme").await.unwrap();
    assert!(setup.owns(&acme, &own).await);
    for (number, other) in [
        "http://10.0.0.1:8081/card.json",
        "https://10.0.0.1/card.json",
        "http://10.0.0.2:8080/card.json",
    ]
    .into_iter()
    .enumerate()
    {
        let (_, agent) = setup.publish_at(&format!("other{number}"), other).await;
        assert!(!setup.owns(&acme, &agent).await, "{other}");
    }
    // Plain http and https on their usual ports are one domain here, and the vouch is for one of them.
    let (bert, plain) = setup.publish_at("bert", "http://10.0.0.3/card.json").await;
    setup.vouch("10.0.0.3", "bert").await.unwrap();
    assert!(setup.owns(&bert, &plain).await);
    let carl = setup.create_publisher("carl").await;
    let app = &setup.registry.app;
    register_domain(app, &carl, &card_registration("https://10.0.0.3/tls.json"))
        .await
        .unwrap();
    register_domain(app, &bert, &card_registration("https://10.0.0.3/tls.json"))
        .await
        .unwrap();
    setup.registry.advance(Duration::minutes(2));
    setup
        .registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Over TLS")))
        .await;
    let mut all = setup.registry.agents().await;
    all.retain(|one| one.domain == "10.0.0.3" && one.id != plain.id);
    let over_tls = all.pop().unwrap();
    setup.registry.approve_open_review(over_tls.id).await;
    assert!(!setup.owns(&bert, &over_tls).await);
    let versions = setup.registry.versions(over_tls.id).await;
    let level = versions.last().unwrap().standing.known_value();
    assert_eq!(level, Some(CoverageLevel::Nomination));
    // Nor does an act on the whole domain reach what is served over TLS.
    let refused = domain_delete(app, &bert, "10.0.0.3").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden, "{refused:?}");
    let out = DomainPatch {
        contact: None,
        opt_out: Some(true),
        ..DomainPatch::default()
    };
    let refused = domain_patch(app, &bert, "10.0.0.3", &out).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    assert!(
        setup
            .registry
            .public_card_bytes(over_tls.id)
            .await
            .is_some()
    );
    domain_delete(app, &setup.registry.admin, "10.0.0.3")
        .await
        .unwrap();
}

/// A vouch that cannot be ended at present keeps none of the others.
async fn one_vouch_that_cannot_be_ended_keeps_no_other(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    setup.publish_at("acme", CARD).await;
    let other = "stays.agents-test.com:8443";
    setup
        .publish_at("other", &format!("https://{other}/card.json"))
        .await;
    setup.vouch(HOST, "acme").await.unwrap();
    setup.vouch(other, "other").await.unwrap();
    setup.registry.advance(Duration::days(181));
    setup
        .registry
        .reject_row_updates("domains", "name", HOST)
        .await;
    let app = &setup.registry.app;
    end_owner_vouches(app).await.unwrap_err();
    let expired = "it has expired".to_owned();
    assert_eq!(
        setup.vouch_ends().await,
        [(other.to_owned(), expired.clone())],
        "the first one stays for the next pass"
    );
    setup.registry.allow_row_updates("domains").await;
    end_owner_vouches(app).await.unwrap();
    assert_eq!(setup.vouch_ends().await[1..], [(HOST.to_owned(), expired)]);
}

async fn a_group_of_the_same_name_owns_nothing(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    let member = setup.create_publisher("member").await;
    let members = GroupMembers {
        members: vec!["member".into()],
    };
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    group_put(app, admin, "acme", &members, &IfMatch::default())
        .await
        .unwrap();
    group_put(app, admin, "crowd", &members, &IfMatch::default())
        .await
        .unwrap();
    let refused = setup.vouch(HOST, "crowd").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid, "a group is no account");
    setup.vouch(HOST, "acme").await.unwrap();
    assert!(setup.owns(&acme, &agent).await);
    assert!(!setup.owns(&member, &agent).await);
}

/// A second account has to wait for the end of the first, unless that one may not be used any more.
async fn one_account_is_vouched_for_at_a_time(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    let other = setup.create_publisher("other").await;
    setup.vouch(HOST, "acme").await.unwrap();
    setup.registry.advance(Duration::days(100));
    let refused = setup.vouch(HOST, "other").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(
        refused.public.contains("acme") && refused.public.contains("--end-owner"),
        "{}",
        refused.public
    );
    setup.vouch(HOST, "acme").await.unwrap();
    setup.registry.advance(Duration::days(100));
    assert!(setup.owns(&acme, &agent).await, "it was vouched for anew");
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    withdraw_owner_vouch(app, admin, HOST).await.unwrap();
    assert!(!setup.owns(&acme, &agent).await);
    setup.vouch(HOST, "other").await.unwrap();
    assert!(setup.owns(&other, &agent).await && !setup.owns(&acme, &agent).await);

    let disable = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(app, admin, "other", &disable, &IfMatch::default())
        .await
        .unwrap();
    let refused = setup.vouch(HOST, "other").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid, "it may not be used");
    setup.vouch(HOST, "acme").await.unwrap();
    assert!(setup.owns(&acme, &agent).await);
    account_patch(app, admin, "acme", &disable, &IfMatch::default())
        .await
        .unwrap();
    end_owner_vouches(app).await.unwrap();
    let view = setup.host_view(admin).await;
    assert_eq!((view.owner, view.owner_vouch), (None, None));
    let reasons: Vec<String> = setup
        .vouch_ends()
        .await
        .into_iter()
        .map(|end| end.1)
        .collect();
    assert_eq!(
        reasons,
        [
            "an admin ended it",
            "an admin vouches for another account",
            "its account cannot be used"
        ]
    );
    setup.registry.assert_index_matches_database().await;
}

async fn whatever_ends_a_domains_owner_ends_the_vouch(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    let other = setup.create_publisher("other").await;
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    setup.vouch(HOST, "acme").await.unwrap();
    let given = Transfer {
        account: "other".into(),
    };
    domain_transfer(app, &acme, HOST, &given).await.unwrap();
    assert!(!setup.owns(&acme, &agent).await);
    assert!(
        !setup.owns(&other, &agent).await,
        "an admin has not vouched for that account"
    );
    setup.vouch(HOST, "other").await.unwrap();
    let why = NewGeneration {
        reason: "sold".into(),
    };
    domain_new_generation(app, admin, HOST, &why).await.unwrap();
    assert_eq!(setup.host_view(admin).await.owner, None);
    assert_eq!(setup.registry.agent(HOST).await.owner_id, None);
    setup.vouch(HOST, "acme").await.unwrap();
    domain_delete(app, &acme, HOST).await.unwrap();
    register_domain(app, &other, &card_registration(CARD))
        .await
        .unwrap();
    let view = setup.host_view(admin).await;
    assert_eq!((view.owner, view.owner_vouch), (None, None));
    let reasons: Vec<String> = setup
        .vouch_ends()
        .await
        .into_iter()
        .map(|end| end.1)
        .collect();
    assert_eq!(reasons, ["transferred", "a new generation began"]);
    setup.registry.assert_index_matches_database().await;
}

async fn an_opt_out_and_holds_are_above_the_vouch(url: &str) {
    let setup = OwnershipSetup::with_open_network(url).await;
    let (acme, agent) = setup.publish_at("acme", CARD).await;
    setup.place_record(STANDING, "127.0.0.1:8080; policy=none");
    setup.registry.advance(Duration::hours(27));
    setup.run_due_checks().await;
    assert_eq!(
        setup.host_view(&setup.registry.admin).await.state.as_str(),
        "opted_out"
    );
    setup.vouch(HOST, "acme").await.unwrap();
    let app = &setup.registry.app;
    assert_eq!(setup.registry.holds(agent.id).await, ["opted_out"]);
    let back = DomainPatch {
        contact: None,
        opt_out: Some(false),
        ..DomainPatch::default()
    };
    let refused = domain_patch(app, &acme, HOST, &back).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    let act = Act {
        reason: "mine".into(),
        hold: None,
    };
    let id = agent.id.to_string();
    let refused = agent_resume(app, &acme, &id, &act).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    let wider = AgentPatch {
        visibility: Some(Visibility::Internal),
        ..AgentPatch::default()
    };
    agent_patch(app, &acme, &id, &wider).await.unwrap();
    assert_eq!(setup.registry.holds(agent.id).await, ["opted_out"]);
    assert_eq!(setup.registry.public_card_bytes(agent.id).await, None);
    setup.registry.assert_index_matches_database().await;
}
