//! Whose a domain is: proofs, their ends, disputes, opting out, and what an owner may do (docs/ownership.md).
//!
//! The registry's own fetcher looks for the proofs; only the name server is scripted, and the clock.

mod attribution;
mod coverage;
mod dispute;
mod followers;
mod naming;
mod opt_out;
mod others;
mod outage;
mod over_tls;
mod polite;
mod site;
mod succession;
mod ways;
mod withdrawal;
mod word;

use a2a_registry_server::accounts::tokens::token_create;
use a2a_registry_server::agents::acts::agent_deprecate;
use a2a_registry_server::agents::acts::agent_retire;
use a2a_registry_server::agents::acts::agent_suspend;
use a2a_registry_server::agents::acts::agent_undeprecate;
use a2a_registry_server::agents::owner::agent_patch;
use a2a_registry_server::agents::views::agent_show;
use a2a_registry_server::authentication::authenticate;
use a2a_registry_server::domains::acts::domain_recrawl;
use a2a_registry_server::domains::acts::domain_show;
use a2a_registry_server::domains::acts::domain_vouch;
use a2a_registry_server::domains::generation::domain_new_generation;
use a2a_registry_server::domains::keys::key_enrol;
use a2a_registry_server::domains::keys::key_withdraw;
use a2a_registry_server::domains::owner::domain_patch;
use a2a_registry_server::domains::owner::domain_transfer;
use a2a_registry_server::domains::register::register;
use a2a_registry_server::domains::verify::domain_verify;
use a2a_registry_server::ownership::verify::check_lease;
use a2a_registry_server::ownership::verify::check_make;
use a2a_registry_server::ownership::verify::reach_out;
use std::sync::Arc;

use a2a_card::{ProtectedHeader, SigningKey};
use a2a_crawler::dns::{StaticResolver, TxtAnswer, TxtRecords};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{Guard, GuardConfig};
use a2a_registry_api::{
    Act, AgentPatch, Deprecate, DomainPatch, DomainView, NewToken, Recrawl, Registration, Transfer,
};
use a2a_registry_domain::lifecycle::{Lifecycle, Visibility};
use a2a_registry_domain::role::Role;
use a2a_registry_server::caller::Caller;
use a2a_registry_server::error::AppError;
use a2a_registry_server::error::ErrorKind;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use time::Duration;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::stage::Answer;
use crate::support::stage::Stage;
use crate::support::stage::card;

const DOMAIN: &str = "travel.agents-test.com";
const STANDING: &str = "_a2a-registry.travel.agents-test.com";

fn moved() -> Deprecate {
    Deprecate {
        reason: "moved".into(),
        ..Deprecate::default()
    }
}

/// A registry with a name server that says what it is told.
struct House {
    stage: Stage,
    names: Arc<StaticResolver>,
}

impl House {
    async fn new(url: &str) -> Self {
        Self::on(Stage::new(url).await, GuardConfig::default())
    }

    /// On a stage that admits as much as that guard does.
    fn on(stage: Stage, guard: GuardConfig) -> Self {
        let config = FetcherConfig {
            guard: Guard::new(guard),
            limits: FetchLimits::default(),
            contact: None,
            extra_ca: Vec::new(),
            key_hosts: Vec::new(),
        };
        Self::equipped(stage, config)
    }

    /// Whose fetcher reaches as far as that.
    async fn reaching(url: &str, config: FetcherConfig) -> Self {
        Self::equipped(Stage::new(url).await, config)
    }

    fn equipped(stage: Stage, config: FetcherConfig) -> Self {
        let names = Arc::new(StaticResolver::new());
        let fetcher = Fetcher::new(config, names.clone(), stage.app.clock()).unwrap();
        reach_out(&stage.app, Arc::new(fetcher));
        Self { stage, names }
    }

    /// A publisher of that name.
    async fn account(&self, name: &str) -> Caller {
        let new = NewToken {
            account: name.into(),
            role: Some(Role::Publisher),
            name: "a test".into(),
            expires_in_days: None,
        };
        let made = token_create(&self.stage.app, &self.stage.admin, &new)
            .await
            .unwrap();
        authenticate(&self.stage.app, &made.secret).await.unwrap()
    }

    async fn register(&self, caller: &Caller, domain: &str) -> DomainView {
        let what = Registration {
            domain: Some(domain.into()),
            ..Registration::default()
        };
        register(&self.stage.app, caller, &what).await.unwrap()
    }

    /// Places a TXT record at a name, instead of what was there.
    fn place(&self, name: &str, text: &str) {
        let mut records = TxtRecords::default();
        records.push([text]);
        self.names.set_texts(name, TxtAnswer::Records(records));
    }

    /// Places several TXT records at a name, instead of what was there.
    fn place_all<'a>(&self, name: &str, texts: impl IntoIterator<Item = &'a str>) {
        let mut records = TxtRecords::default();
        for text in texts {
            records.push([text]);
        }
        self.names.set_texts(name, TxtAnswer::Records(records));
    }

    fn remove(&self, name: &str) {
        self.names.set_texts(name, TxtAnswer::Absent);
    }

    /// Places what an account is told to place to stay: the first thing it is shown.
    fn place_standing(&self, view: &DomainView) {
        let challenge = &view.challenges[0];
        self.place(
            challenge.name.as_ref().unwrap(),
            challenge.value.as_ref().unwrap(),
        );
    }

    /// Looks at whatever is due a day and a bit later.
    async fn next_day(&self) -> String {
        self.stage.advance(Duration::hours(27));
        self.looks().await;
        self.state().await
    }

    /// Looks for proofs of whatever is due and may be looked at; answers of how many domains.
    async fn looks(&self) -> usize {
        let app = &self.stage.app;
        let mut looks = 0;
        while let Some(check) = check_lease(&app).await.unwrap() {
            check_make(&app, &check).await.unwrap();
            looks += 1;
        }
        looks
    }

    async fn shown(&self, caller: &Caller) -> DomainView {
        domain_show(&self.stage.app, caller, DOMAIN).await.unwrap()
    }

    async fn state(&self) -> String {
        self.shown(&self.stage.admin).await.state
    }

    /// An account that has proved the domain, with an agent that a curator approved.
    async fn proved(&self) -> (Caller, Uuid) {
        let owner = self.account("acme").await;
        let view = self.register(&owner, DOMAIN).await;
        self.stage
            .visit(|_| Answer::Card(card("Travel", "Books flights")))
            .await;
        self.place_standing(&view);
        let found = domain_verify(&self.stage.app, &owner, DOMAIN)
            .await
            .unwrap();
        assert_eq!(found.domain.state, "verified", "{:#?}", found.checks);
        (owner, self.stage.agent(DOMAIN).await.id)
    }

    async fn verify(&self, caller: &Caller) -> Result<Vec<(String, String)>, AppError> {
        let found = domain_verify(&self.stage.app, caller, DOMAIN).await?;
        Ok(found
            .checks
            .into_iter()
            .map(|check| (check.outcome, check.place))
            .collect())
    }
}

both_databases! {
    /// Registering says what to place; looking for it says where it was looked for and what was there.
    async fn a_record_that_is_placed_proves_a_domain(url: &str) {
        let house = House::new(url).await;
        let acme = house.account("acme").await;
        let view = house.register(&acme, DOMAIN).await;
        let account = acme.account.as_ref().unwrap().id;
        let value = view.challenges[0].value.clone().unwrap();
        assert_eq!(view.challenges[0].name.as_deref(), Some(STANDING));
        assert_eq!(
            value,
            format!("127.0.0.1:8080; accounturi=http://127.0.0.1:8080/accounts/{account}; policy=exact")
        );
        let methods: Vec<_> = view.challenges.iter().map(|one| one.method.as_str()).collect();
        assert_eq!(methods, ["dns", "dns", "http"]);
        // Registered again it is the same thing to place.
        assert_eq!(house.register(&acme, DOMAIN).await.challenges, view.challenges);

        house.stage.visit(|_| Answer::Card(card("Travel", "Books flights"))).await;
        let agent = house.stage.agent(DOMAIN).await;
        assert_eq!(agent.lifecycle, Lifecycle::Pending);
        let looked = house.verify(&acme).await.unwrap();
        assert!(looked.contains(&("absent".into(), STANDING.into())), "{looked:?}");
        assert_eq!(house.state().await, "unverified");

        house.place(STANDING, &value.replace("accounts/", "accounts/x"));
        let looked = house.verify(&acme).await.unwrap();
        assert!(looked.contains(&("wrong".into(), STANDING.into())), "{looked:?}");

        house.place(STANDING, &value);
        let looked = house.verify(&acme).await.unwrap();
        assert!(looked.contains(&("held".into(), STANDING.into())), "{looked:?}");
        let view = house.shown(&acme).await;
        assert_eq!((view.state.as_str(), view.owner.as_deref()), ("verified", Some("acme")));
        assert_eq!(view.proofs[0].method, "dns");
        assert!(view.next_check.is_some());
        // The shipped policy approves what waited, and the ladder is one step higher.
        assert_eq!(house.stage.agent(DOMAIN).await.lifecycle, Lifecycle::Approved);
        let hit = agent_show(&house.stage.app, &Caller::default(), &agent.id.to_string()).await.unwrap();
        assert_eq!(hit.hit.summary.trust.level.as_deref(), Some("L1"));
        house.stage.index_equals_database().await;
        // Anyone may see that and how it is proved, and neither by whom nor what was looked for.
        let outside = house.shown(&Caller::default()).await;
        assert_eq!(outside.proofs[0].method, "dns");
        assert_eq!((outside.owner, outside.contact, outside.checks.len()), (None, None, 0));
        assert!(outside.challenges.is_empty());
    }

    /// The one-off record proves as well, below its own name, until it expires.
    async fn a_one_off_record_proves_for_its_time(url: &str) {
        let house = House::new(url).await;
        let acme = house.account("acme").await;
        let view = house.register(&acme, DOMAIN).await;
        let one_off = &view.challenges[1];
        house.place(one_off.name.as_ref().unwrap(), one_off.value.as_ref().unwrap());
        house.verify(&acme).await.unwrap();
        for _ in 0..6 {
            assert_eq!(house.next_day().await, "verified");
        }
        let mut days = 6;
        while house.next_day().await == "verified" {
            days += 1;
            assert!(days < 20, "an expired record proves nothing");
        }
        assert_eq!(house.state().await, "lapsed");
    }

    /// Another account cannot prove a domain with what was given to the first.
    async fn a_challenge_is_its_accounts_own(url: &str) {
        let house = House::new(url).await;
        let [acme, mallory] = [house.account("acme").await, house.account("mallory").await];
        let view = house.register(&acme, DOMAIN).await;
        let missing = domain_verify(&house.stage.app, &mallory, DOMAIN).await.unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        let theirs = house.register(&mallory, DOMAIN).await;
        assert_ne!(view.challenges, theirs.challenges);
        for challenge in view.challenges.iter().filter(|one| one.method == "dns") {
            house.place(challenge.name.as_ref().unwrap(), challenge.value.as_ref().unwrap());
        }
        let looked = house.verify(&mallory).await.unwrap();
        assert!(looked.iter().all(|(outcome, _)| outcome != "held"), "{looked:?}");
        house.verify(&acme).await.unwrap();
        assert_eq!(house.shown(&acme).await.owner.as_deref(), Some("acme"));
    }

    /// Five checks may fail in an hour; then the answer says when the next one is possible.
    async fn failed_checks_are_limited(url: &str) {
        let house = House::new(url).await;
        let acme = house.account("acme").await;
        house.register(&acme, DOMAIN).await;
        for _ in 0..5 {
            house.stage.advance(Duration::seconds(1));
            house.verify(&acme).await.unwrap();
        }
        let refused = house.verify(&acme).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::TooManyRequests);
        let wait = refused.retry_after.unwrap();
        assert!((3_500..=3_601).contains(&wait), "{wait}");
        house.stage.advance(Duration::seconds(i64::from(wait)));
        house.verify(&acme).await.unwrap();
        assert_eq!(house.shown(&acme).await.checks.len(), 20, "older looks are not kept");
    }

    /// Checks that have failed while a clock was ahead keep nobody waiting until its time has come.
    async fn failed_checks_of_the_future_do_not_count(url: &str) {
        let house = House::new(url).await;
        let acme = house.account("acme").await;
        house.register(&acme, DOMAIN).await;
        house.stage.advance(Duration::days(365));
        for _ in 0..5 {
            house.stage.advance(Duration::seconds(1));
            house.verify(&acme).await.unwrap();
        }
        house.verify(&acme).await.unwrap_err();
        house.stage.advance(-Duration::days(365));
        house.verify(&acme).await.unwrap();
        // What has been looked at was looked at by now.
        let now = house.stage.now();
        let future = async || {
            let checks = house.shown(&acme).await.checks;
            checks.iter().filter(|check| check.at > now.into()).count()
        };
        assert!(future().await > 0);
        house.stage.store.moments_repair(house.stage.app.now().0).await.unwrap();
        assert_eq!(future().await, 0);
        house.verify(&acme).await.unwrap();
    }

    /// Others who say that a domain is theirs, however many, keep nobody from proving that it is not.
    async fn claims_of_others_lock_nobody_out(url: &str) {
        let house = House::new(url).await;
        for number in 1..=5 {
            let claimant = house.account(&format!("claimant{number}")).await;
            house.register(&claimant, DOMAIN).await;
            house.stage.advance(Duration::seconds(1));
        }
        let owner = house.account("owner").await;
        let view = house.register(&owner, DOMAIN).await;
        house.place_standing(&view);
        let looked = house.verify(&owner).await.unwrap();
        assert!(looked.contains(&("held".into(), STANDING.into())), "{looked:?}");
        let view = house.shown(&owner).await;
        assert_eq!((view.state.as_str(), view.owner.as_deref()), ("verified", Some("owner")));
        // It is looked for every day from then on, and ends like any other.
        assert_eq!(house.next_day().await, "verified");
        assert_eq!(house.shown(&owner).await.proofs[0].seen, house.stage.now().into());
        house.remove(STANDING);
        for _ in 0..4 {
            house.next_day().await;
        }
        assert_eq!(house.state().await, "lapsed");
    }

    /// A proof that stands is looked for every day, however many there are: one that nobody looks for would never end.
    async fn every_standing_proof_is_looked_for(url: &str) {
        let house = House::new(url).await;
        let mut accounts = Vec::new();
        let mut values = Vec::new();
        for number in 1..=7 {
            let account = house.account(&format!("account{number}")).await;
            let view = house.register(&account, DOMAIN).await;
            values.push(view.challenges[0].value.clone().unwrap());
            accounts.push(account);
        }
        house.place_all(STANDING, values.iter().map(String::as_str));
        for account in &accounts {
            house.verify(account).await.unwrap();
        }
        assert_eq!(house.shown(&house.stage.admin).await.proofs.len(), 7);
        house.place(STANDING, &values[6]);
        for _ in 0..4 {
            house.next_day().await;
        }
        let view = house.shown(&accounts[6]).await;
        assert_eq!((view.state.as_str(), view.owner.as_deref()), ("verified", Some("account7")));
        house.remove(STANDING);
        for _ in 0..4 {
            house.next_day().await;
        }
        assert_eq!(house.state().await, "lapsed", "the seventh is missed like the first");
    }

    /// A record that goes away ends the proof after three days, the agents are withheld until it is back.
    async fn a_proof_that_is_gone_lapses_and_comes_back(url: &str) {
        let house = House::new(url).await;
        let (owner, agent) = house.proved().await;
        assert!(house.stage.served(agent).await.is_some());
        house.remove(STANDING);
        for _ in 0..3 {
            assert_eq!(house.next_day().await, "verified");
        }
        assert!(house.shown(&owner).await.proofs[0].missing_since.is_some());
        assert_eq!(house.next_day().await, "lapsed");
        assert_eq!(house.stage.holds(agent).await, ["domain_lapsed"]);
        assert_eq!(house.stage.served(agent).await, None);
        house.stage.index_equals_database().await;
        let view = house.shown(&owner).await;
        assert_eq!((view.proofs.len(), &view.owner), (0, &None));

        house.place_standing(&view);
        house.verify(&owner).await.unwrap();
        assert_eq!(house.state().await, "verified");
        assert!(house.stage.holds(agent).await.is_empty());
        assert!(house.stage.served(agent).await.is_some());
        house.stage.index_equals_database().await;
    }

    /// A name server that does not answer says nothing about the record, for ten days.
    async fn silence_is_not_absence(url: &str) {
        let house = House::new(url).await;
        let (_, agent) = house.proved().await;
        let down = || TxtAnswer::Failed("SERVFAIL".into());
        for name in [STANDING, "_a2a-registry.agents-test.com"] {
            house.names.set_texts(name, down());
        }
        for day in 1..=8 {
            assert_eq!(house.next_day().await, "verified", "day {day}");
        }
        assert_eq!(house.next_day().await, "lapsed");
        assert_eq!(house.stage.holds(agent).await, ["domain_lapsed"]);
    }

    /// An admin's word keeps a domain verified whatever becomes of its record, and is no step of the ladder.
    async fn an_admins_word_stands_beside_a_record(url: &str) {
        let house = House::new(url).await;
        let (_, agent) = house.proved().await;
        let word = a2a_registry_api::Vouch { reason: "a partner".into(), ..Default::default() };
        domain_vouch(&house.stage.app, &house.stage.admin, DOMAIN, &word).await.unwrap();
        house.remove(STANDING);
        for _ in 0..5 {
            assert_eq!(house.next_day().await, "verified");
        }
        let view = house.shown(&house.stage.admin).await;
        assert_eq!(view.proofs.iter().map(|proof| proof.method.as_str()).collect::<Vec<_>>(), ["operator"]);
        assert_eq!(view.owner, None);
        let hit = agent_show(&house.stage.app, &Caller::default(), &agent.to_string()).await.unwrap();
        assert_eq!(hit.hit.summary.trust.level.as_deref(), Some("L0"));
    }

    /// Two accounts that prove a domain equally well dispute it: its agents are withheld and neither may change
    /// anything, until one of the records is gone.
    async fn two_proofs_are_a_dispute(url: &str) {
        let house = House::new(url).await;
        let (acme, agent) = house.proved().await;
        let other = house.account("other").await;
        let theirs = house.register(&other, DOMAIN).await;
        let ours = house.shown(&acme).await.challenges[0].value.clone().unwrap();
        let mut records = TxtRecords::default();
        records.push([ours.as_str()]);
        records.push([theirs.challenges[0].value.as_ref().unwrap().as_str()]);
        house.names.set_texts(STANDING, TxtAnswer::Records(records));
        house.verify(&other).await.unwrap();
        assert_eq!(house.state().await, "disputed");
        assert_eq!(house.stage.holds(agent).await, ["disputed"]);
        let patch = DomainPatch { contact: Some("mailto:ops@acme.example".into()), opt_out: None };
        let frozen = domain_patch(&house.stage.app, &acme, DOMAIN, &patch).await.unwrap_err();
        assert_eq!(frozen.kind, ErrorKind::Conflict);
        let frozen = domain_patch(&house.stage.app, &other, DOMAIN, &patch).await.unwrap_err();
        assert_eq!(frozen.kind, ErrorKind::Conflict);
        // Both are shown the state; both go on being looked for.
        assert_eq!(house.shown(&other).await.state, "disputed");
        house.place(STANDING, theirs.challenges[0].value.as_ref().unwrap());
        for _ in 0..3 {
            assert_eq!(house.next_day().await, "disputed");
        }
        assert_eq!(house.next_day().await, "verified");
        assert_eq!(house.shown(&other).await.owner.as_deref(), Some("other"));
        assert!(house.stage.holds(agent).await.is_empty());
        house.stage.index_equals_database().await;
    }

    /// A record of the domain above counts for those below it where it says so, and less than one of their own.
    async fn a_parents_record_counts_where_it_says_so(url: &str) {
        let house = House::new(url).await;
        let acme = house.account("acme").await;
        let view = house.register(&acme, DOMAIN).await;
        let exact = view.challenges[0].value.clone().unwrap();
        let parent = "_a2a-registry.agents-test.com";
        house.place(parent, &exact);
        house.verify(&acme).await.unwrap();
        assert_eq!(house.state().await, "unverified", "policy=exact is for its own host");
        house.place(parent, &exact.replace("policy=exact", "policy=subdomains"));
        house.verify(&acme).await.unwrap();
        let view = house.shown(&acme).await;
        assert_eq!((view.state.as_str(), view.proofs[0].method.as_str()), ("verified", "dns-parent"));
        // A tenant with a record of its own has the better claim.
        let tenant = house.account("tenant").await;
        let theirs = house.register(&tenant, DOMAIN).await;
        house.place_standing(&theirs);
        house.verify(&tenant).await.unwrap();
        let view = house.shown(&tenant).await;
        assert_eq!((view.state.as_str(), view.owner.as_deref()), ("verified", Some("tenant")));
    }

    /// `policy=none` is honoured for everybody, proved or not, and ends with the record.
    async fn a_domain_opts_out_by_its_own_record(url: &str) {
        let house = House::new(url).await;
        let agent = house.stage.publish_approved(DOMAIN, &card("Travel", "Books flights")).await.id;
        house.place(STANDING, "any.registry.example; policy=none");
        assert_eq!(house.next_day().await, "unverified", "it is said to another registry");
        house.place(STANDING, "127.0.0.1:8080; policy=none");
        assert_eq!(house.next_day().await, "opted_out");
        assert_eq!(house.stage.holds(agent).await, ["opted_out"]);
        assert_eq!(house.stage.served(agent).await, None);
        assert_eq!(house.stage.visit(|_| Answer::NotModified).await, 0, "it is visited no more");
        let admin = &house.stage.admin;
        let again = Registration { domain: Some(DOMAIN.into()), ..Registration::default() };
        let refused = register(&house.stage.app, admin, &again).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::DomainDenied);
        let refused = domain_recrawl(&house.stage.app, admin, DOMAIN, &Recrawl::default()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::DomainDenied);
        house.stage.index_equals_database().await;

        house.names.set_texts(STANDING, TxtAnswer::Failed("SERVFAIL".into()));
        assert_eq!(house.next_day().await, "opted_out", "nobody could tell otherwise");
        house.remove(STANDING);
        assert_eq!(house.next_day().await, "unverified");
        assert!(house.stage.holds(agent).await.is_empty());
        house.stage.advance(Duration::minutes(1));
        assert_eq!(house.stage.visit(|_| Answer::NotModified).await, 1);
        house.stage.index_equals_database().await;
    }

    /// Whoever has proved a domain looks after it and its agents; a stranger does not.
    async fn an_owner_looks_after_its_agents(url: &str) {
        let house = House::new(url).await;
        let (owner, agent) = house.proved().await;
        let stranger = house.account("stranger").await;
        let app = &house.stage.app;
        let id = agent.to_string();
        let contact = |text: &str| DomainPatch { contact: Some(text.into()), opt_out: None };
        let act = Act { reason: "moved".into(), hold: None };
        let narrow = |visibility| AgentPatch { visibility: Some(visibility), labels: None };
        for refused in [
            domain_patch(&app, &stranger, DOMAIN, &contact("")).await.unwrap_err(),
            agent_deprecate(&app, &stranger, &id, &moved()).await.unwrap_err(),
            agent_retire(&app, &stranger, &id, &act).await.unwrap_err(),
            agent_patch(&app, &stranger, &id, &narrow(Visibility::Internal)).await.unwrap_err(),
            agent_suspend(&app, &owner, &id, &act).await.unwrap_err(),
        ] {
            assert_eq!(refused.kind, ErrorKind::Forbidden, "{refused:?}");
        }
        let view = domain_patch(&app, &owner, DOMAIN, &contact("mailto:ops@acme.example")).await.unwrap();
        assert_eq!(view.contact.as_deref(), Some("mailto:ops@acme.example"));
        for bad in ["javascript:alert(1)", "ops", &format!("https://{}", "x".repeat(400))] {
            let refused = domain_patch(&app, &owner, DOMAIN, &contact(bad)).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Invalid, "{bad}");
        }
        let agent = agent_patch(&app, &owner, &id, &narrow(Visibility::Internal)).await.unwrap();
        assert_eq!(agent.hit.summary.visibility, Visibility::Internal);
        house.stage.settle().await;
        assert!(house.stage.found_by_anyone().await.is_empty());
        let wider = agent_patch(&app, &owner, &id, &narrow(Visibility::Public)).await.unwrap_err();
        assert_eq!(wider.kind, ErrorKind::Forbidden);
        agent_patch(&app, &house.stage.admin, &id, &narrow(Visibility::Public)).await.unwrap();
        let labels = AgentPatch { visibility: None, labels: Some([("tier".into(), "gold".into())].into()) };
        assert_eq!(agent_patch(&app, &owner, &id, &labels).await.unwrap_err().kind, ErrorKind::Forbidden);
        let labelled = agent_patch(&app, &house.stage.admin, &id, &labels).await.unwrap();
        assert_eq!(labelled.hit.summary.labels["tier"], "gold");
        agent_deprecate(&app, &owner, &id, &moved()).await.unwrap();
        house.stage.index_equals_database().await;
        agent_retire(&app, &owner, &id, &act).await.unwrap();
        assert!(house.stage.served(id.parse().unwrap()).await.is_none());
    }

    /// An owner opts its domain out and in again by itself.
    async fn an_owner_opts_out_and_in(url: &str) {
        let house = House::new(url).await;
        let (owner, agent) = house.proved().await;
        let set = |opt_out| DomainPatch { contact: None, opt_out: Some(opt_out) };
        let app = &house.stage.app;
        let view = domain_patch(&app, &owner, DOMAIN, &set(true)).await.unwrap();
        assert_eq!(view.state, "opted_out");
        assert_eq!(house.stage.served(agent).await, None);
        assert_eq!(house.next_day().await, "opted_out", "no record says so, and none has to");
        let view = domain_patch(&app, &owner, DOMAIN, &set(false)).await.unwrap();
        assert_eq!((view.state.as_str(), view.owner.as_deref()), ("verified", Some("acme")));
        assert!(house.stage.served(agent).await.is_some());
        house.stage.index_equals_database().await;
    }

    /// A domain that is given away is the other account's to prove; the old record counts no more.
    async fn a_domain_is_given_away(url: &str) {
        let house = House::new(url).await;
        let (owner, agent) = house.proved().await;
        let heir = house.account("heir").await;
        let app = &house.stage.app;
        let to = |name: &str| Transfer { account: name.into() };
        let refused = domain_transfer(&app, &owner, DOMAIN, &to("nobody")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid);
        domain_transfer(&app, &owner, DOMAIN, &to("heir")).await.unwrap();
        assert_eq!(house.state().await, "lapsed");
        assert_eq!(house.next_day().await, "lapsed", "what is left in place is no claim");
        let view = house.shown(&heir).await;
        house.place_standing(&view);
        house.verify(&heir).await.unwrap();
        assert_eq!(house.shown(&heir).await.owner.as_deref(), Some("heir"));
        assert!(house.stage.served(agent).await.is_some());
        assert_eq!(domain_patch(&app, &owner, DOMAIN, &DomainPatch::default()).await.unwrap_err().kind, ErrorKind::Forbidden);
    }

    /// Only a host name on port 443 can be proved; an admin's word is for the others.
    async fn addresses_and_ports_cannot_be_proved(url: &str) {
        let stage = Stage::with(url, |config| {
            config.crawler.allow_ports = a2a_registry_server::config::AllowPorts::Word("any".into());
        })
        .await;
        let view = stage.register_url("https://travel.agents-test.com:8443/card.json").await;
        assert!(view.challenges.is_empty());
        let refused = domain_verify(&stage.app, &stage.admin, &view.domain).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }

    /// A key that its owner names verifies cards that do not say where their keys lie, and is a step of the
    /// ladder; taken back it is none.
    async fn an_owner_names_its_keys(url: &str) {
        let house = House::new(url).await;
        let (owner, agent) = house.proved().await;
        let app = &house.stage.app;
        let random = SystemRandom::new();
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = SigningKey::from_bytes(pkcs8.as_ref(), &random).unwrap();
        let jwks: serde_json::Value = serde_json::from_str(&key.public_jwks("k1")).unwrap();
        let stranger = house.account("stranger").await;
        let refused = key_enrol(&app, &stranger, DOMAIN, "k1", &jwks["keys"][0]).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Forbidden);
        for bad in [serde_json::json!({}), serde_json::json!("k"), serde_json::json!({"kty": "oct", "k": "AAAA"})] {
            let refused = key_enrol(&app, &owner, DOMAIN, "k1", &bad).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Invalid, "{bad}");
        }
        let view = key_enrol(&app, &owner, DOMAIN, "k1", &jwks["keys"][0]).await.unwrap();
        assert_eq!(view.keys[0].kid, "k1");

        let header = ProtectedHeader { kid: "k1".into(), jku: None };
        let bytes = a2a_card::sign(&card("Travel", "Books flights"), &key, &header, &random).unwrap();
        let trust = async || {
            let shown = agent_show(&app, &house.stage.admin, &agent.to_string()).await.unwrap();
            let trust = shown.hit.summary.trust;
            (trust.level.unwrap_or_default(), trust.signature)
        };
        house.stage.look(DOMAIN, Answer::Card(bytes.clone())).await;
        if house.stage.open_review(agent).await.is_some() {
            house.stage.approve(agent).await;
        }
        assert_eq!(trust().await, ("L3".into(), "valid".into()));
        house.stage.index_equals_database().await;
        key_withdraw(&app, &owner, DOMAIN, "k1").await.unwrap();
        assert_eq!(key_withdraw(&app, &owner, DOMAIN, "k1").await.unwrap_err().kind, ErrorKind::NotFound);
        house.stage.index_equals_database().await;
        assert_ne!(trust().await.0, "L3");
    }

    /// Whoever a card names in the owner extension looks after that agent as long as nobody has proved its
    /// domain, and after no other one.
    async fn a_card_names_its_owner(url: &str) {
        let house = House::new(url).await;
        let [author, other] = [house.account("author").await, house.account("other").await];
        let app = &house.stage.app;
        let named = |account: &str| {
            let mut value: serde_json::Value = serde_json::from_slice(&card("Shared", "Hosted with others")).unwrap();
            value["capabilities"]["extensions"] = serde_json::json!([{
                "uri": "http://127.0.0.1:8080/ext/owner/v1",
                "params": {"account": account},
            }]);
            value.to_string().into_bytes()
        };
        let author_id = author.account.as_ref().unwrap().id;
        let uri = format!("http://127.0.0.1:8080/accounts/{author_id}");
        let agent = house.stage.publish_approved(DOMAIN, &named(&uri)).await.id.to_string();
        assert_eq!(agent_deprecate(&app, &other, &agent, &moved()).await.unwrap_err().kind, ErrorKind::Forbidden);
        agent_deprecate(&app, &author, &agent, &moved()).await.unwrap();
        let act = Act { reason: "moved".into(), hold: None };
        agent_undeprecate(&app, &author, &agent, &act).await.unwrap();
        // It proves the card and nothing of the domain.
        assert_eq!(house.state().await, "unverified");
        assert_eq!(domain_patch(&app, &author, DOMAIN, &DomainPatch::default()).await.unwrap_err().kind, ErrorKind::Forbidden);
        // A proof of the domain is worth more.
        let view = house.register(&other, DOMAIN).await;
        house.place_standing(&view);
        house.verify(&other).await.unwrap();
        assert_eq!(agent_retire(&app, &author, &agent, &act).await.unwrap_err().kind, ErrorKind::Forbidden);
        house.stage.index_equals_database().await;
        agent_retire(&app, &other, &agent, &act).await.unwrap();
        // Accounts that there are not, and ones of other registries, are nobody.
        for (number, wrong) in [uri.replace("127.0.0.1", "elsewhere"), format!("{uri}0"), Uuid::nil().to_string()].iter().enumerate() {
            let domain = format!("wrong{number}.agents-test.com");
            let agent = house.stage.publish(&domain, &named(wrong)).await;
            assert_eq!((agent.claimed_by, agent.owner_id), (None, None), "{wrong}");
        }
    }

    /// Another owner begins a new generation: nothing of the old one counts, decisions by persons neither.
    async fn a_new_generation_asks_for_everything_again(url: &str) {
        let house = House::new(url).await;
        let app = &house.stage.app;
        let bytes = card("Travel", "Books flights");
        let agent = house.stage.publish_approved(DOMAIN, &bytes).await.id;
        let owner = house.account("acme").await;
        let view = house.register(&owner, DOMAIN).await;
        house.place_standing(&view);
        house.verify(&owner).await.unwrap();
        house.remove(STANDING);
        let why = |reason: &str| a2a_registry_api::NewGeneration { reason: reason.into() };
        let refused = domain_new_generation(&app, &owner, DOMAIN, &why("mine")).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Forbidden);
        house.stage.advance(Duration::seconds(1));
        let view = domain_new_generation(&app, &house.stage.admin, DOMAIN, &why("sold")).await.unwrap();
        assert_eq!((view.generation, view.state.as_str(), view.proofs.len()), (2, "unverified", 0));
        assert_eq!(house.stage.served(agent).await, None);
        assert_eq!(house.stage.agent(DOMAIN).await.lifecycle, Lifecycle::Pending);
        assert!(view.not_listed.iter().any(|reason| reason.contains("waits for its first approval")), "{view:#?}");
        house.stage.index_equals_database().await;
        // The very content that a person had approved waits again, also after the next look.
        house.stage.look(DOMAIN, Answer::Card(bytes)).await;
        assert_eq!(house.stage.served(agent).await, None);
        house.stage.approve(agent).await;
        assert!(house.stage.served(agent).await.is_some());
        house.stage.index_equals_database().await;
    }
}
