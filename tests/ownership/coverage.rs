//! Coverage of a domain's proof, by every way in which a source is added (docs/ownership.md#coverage): a stranger gets
//! nothing listed under, named by, or levelled by another's domain.

use std::collections::BTreeMap;

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{
    DomainView, NewGeneration, NewToken, Registration, SourceView, Transfer, Vouch,
};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::{Config, Registration as WhoRegisters};
use a2a_registry_core::domains::acts::{domain_show, domain_vouch};
use a2a_registry_core::domains::generation::domain_new_generation;
use a2a_registry_core::domains::owner::domain_transfer;
use a2a_registry_core::domains::register;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::source;
use time::Duration;

use super::OwnershipSetup;
use super::ways::Step::{
    self, Card, Catalog, CatalogOfAnotherHost, DeleteOther, Domain, Lapse, LiesAt, Look,
    OtherIsAnothers, Prove, ProveOther, Redirect, Transfer as Give, Visit, Vouch as Word,
};
use super::ways::Who::{self, AdminApproving, Anyone, Curator, Heir, Owner, Partner, Stranger};
use super::ways::{ALLOWED, APPROVE_ALL, OPEN, WAYS, WELL_KNOWN, Way};
use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Read, card};

/// The accounts of a setup, and the responses of each row's domain.
struct Scene<'a> {
    setup: &'a OwnershipSetup,
    accounts: BTreeMap<&'static str, Caller>,
    domain: String,
    path: &'static str,
    named: bool,
    catalog_elsewhere: bool,
    redirect: Option<String>,
    lies_at: &'static str,
}

impl Scene<'_> {
    fn caller(&self, who: Who) -> Caller {
        match who {
            Owner => self.accounts["owner"].clone(),
            Heir => self.accounts["heir"].clone(),
            Stranger => self.accounts["stranger"].clone(),
            Partner => self.accounts["partner"].clone(),
            Curator => self.accounts["curator"].clone(),
            AdminApproving => self.setup.stage.admin.clone(),
            Anyone => Caller {
                network: Some([192, 0, 2, 7].into()),
                ..Caller::default()
            },
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.domain)
    }

    /// The URL of the card.
    fn card_url(&self) -> String {
        let host = self.lies_at.replace("{}", &self.domain);
        format!("https://{host}{}", self.path)
    }

    fn answer(&self, source: &source::Model) -> OriginAnswer {
        let path = source.url.split_once(&self.domain).unwrap().1;
        let asked = match source.kind.as_str() {
            "well_known" => WELL_KNOWN,
            _ => path,
        };
        let bytes = || card("Travel", &self.domain);
        let entries = vec![("x".to_owned(), self.card_url())];
        match source.kind.as_str() {
            "ard" if self.catalog_elsewhere => OriginAnswer::CatalogOf(
                entries,
                "https://evil.agents-elsewhere.com/ard.json".into(),
            ),
            "ard" if self.named => OriginAnswer::Catalog(entries, Read::Whole),
            "ard" => OriginAnswer::Catalog(Vec::new(), Read::Whole),
            "ai_catalog" => OriginAnswer::Fails(NotFound),
            _ if asked != self.path => OriginAnswer::NotModified,
            _ => match &self.redirect {
                Some(to) => OriginAnswer::Redirected(bytes(), to.clone()),
                None => OriginAnswer::Card(bytes()),
            },
        }
    }

    async fn register(&self, who: Who, domain: Option<String>, url: Option<String>) -> DomainView {
        let what = Registration {
            domain,
            card_url: url,
            approve: matches!(who, AdminApproving),
        };
        register::register(&self.setup.stage.app, &self.caller(who), &what)
            .await
            .unwrap()
    }

    async fn prove(&self, who: Who, domain: &str, policy: &str) {
        let view = self.register(who, Some(domain.to_owned()), None).await;
        let value = view.challenges[0].value.clone().unwrap();
        let value = value.replace("policy=exact", &format!("policy={policy}"));
        self.setup
            .place_record(view.challenges[0].name.as_ref().unwrap(), &value);
        let app = &self.setup.stage.app;
        let found = domain_verify(app, &self.caller(who), domain).await.unwrap();
        assert_eq!(
            found.domain.state.as_str(),
            "verified",
            "{domain}: {:#?}",
            found.checks
        );
    }

    async fn take(&mut self, step: Step) {
        let stage = &self.setup.stage;
        match step {
            Domain(who) => drop(self.register(who, Some(self.domain.clone()), None).await),
            Card(who, path) => drop(self.register(who, None, Some(self.url(path))).await),
            Prove(who, policy) => self.prove(who, &self.domain, policy).await,
            ProveOther(name) => {
                let other = name.replace("{}", &self.domain);
                self.prove(Owner, &other, "exact").await;
            }
            OtherIsAnothers(name) => {
                let other = name.replace("{}", &self.domain);
                let why = NewGeneration {
                    reason: "sold".into(),
                };
                let app = &stage.app;
                domain_new_generation(app, &stage.admin, &other, &why)
                    .await
                    .unwrap();
            }
            Lapse => {
                self.setup.remove(&format!("_a2a-registry.{}", self.domain));
                for _ in 0..5 {
                    stage.advance(Duration::hours(27));
                    self.setup.run_due_checks().await;
                }
                let view = domain_show(&stage.app, &stage.admin, &self.domain)
                    .await
                    .unwrap();
                assert_eq!(view.state.as_str(), "lapsed");
            }
            Give => {
                let to = Transfer {
                    account: "heir".into(),
                };
                domain_transfer(&stage.app, &self.caller(Owner), &self.domain, &to)
                    .await
                    .unwrap();
            }
            Word(account) => {
                let vouch = Vouch {
                    reason: "known".into(),
                    account: account.map(str::to_owned),
                };
                domain_vouch(&stage.app, &stage.admin, &self.domain, &vouch)
                    .await
                    .unwrap();
            }
            DeleteOther(name) => {
                let other = name.replace("{}", &self.domain);
                let app = &stage.app;
                domain_delete(app, &self.caller(Owner), &other)
                    .await
                    .unwrap();
            }
            Catalog(named) => self.named = named,
            LiesAt(host) => self.lies_at = host,
            CatalogOfAnotherHost => self.catalog_elsewhere = true,
            Redirect(to) => {
                let to = to.replace("{}", &self.domain);
                let to = if to.starts_with('/') {
                    self.url(&to)
                } else {
                    to
                };
                self.redirect = Some(to);
            }
            Visit => {
                stage.advance(Duration::minutes(2));
                stage
                    .visit(|source| {
                        if source.url.contains(&self.domain) && !source.url.contains("other-") {
                            self.answer(source)
                        } else {
                            OriginAnswer::NotModified
                        }
                    })
                    .await;
            }
            Look => {
                stage
                    .crawl_with(&self.domain, |source| self.answer(source))
                    .await
            }
        }
    }

    /// The results for the card of the row.
    async fn result(&self) -> (Coverage, String, String, String, bool) {
        let stage = &self.setup.stage;
        let view = domain_show(&stage.app, &stage.admin, &self.domain)
            .await
            .unwrap();
        let kinds: &[&str] = if self.path == WELL_KNOWN {
            &["well_known"]
        } else {
            &["url", "entry"]
        };
        let here = |source: &&SourceView| {
            kinds.contains(&source.kind.as_str())
                && (self.path == WELL_KNOWN || source.url == self.card_url())
        };
        let sources: Vec<&SourceView> = view.sources.iter().filter(here).collect();
        let agent = sources.iter().find_map(|source| source.agent);
        let agent = agent
            .unwrap_or_else(|| panic!("{} has no source with an agent: {view:#?}", self.domain));
        let shown = agent_show(&stage.app, &stage.admin, &agent.to_string())
            .await
            .unwrap();
        let row = stage
            .agents()
            .await
            .into_iter()
            .find(|row| row.id == agent)
            .unwrap();
        (
            sources[0].coverage.known().unwrap(),
            row.lifecycle.as_str().to_owned(),
            shown.decision.rules.join(" "),
            shown
                .hit
                .summary
                .trust
                .level
                .map(|level| level.to_string())
                .unwrap_or_default(),
            row.urn.is_some(),
        )
    }
}

async fn setup(url: &str, configure: impl FnOnce(&mut Config)) -> OwnershipSetup {
    let stage = crate::support::stage::Stage::with(url, configure).await;
    OwnershipSetup::on(stage)
}

async fn check_ways(setup: &OwnershipSetup, ways: &[Way], prefix: &str) {
    let mut accounts = BTreeMap::new();
    for name in ["owner", "heir", "stranger", "partner", "curator"] {
        let role = if name == "curator" {
            Role::Curator
        } else {
            Role::Publisher
        };
        let new = NewToken {
            account: name.into(),
            role: Some(role),
            name: "a test".into(),
            ..NewToken::default()
        };
        let app = &setup.stage.app;
        let made = token_create(app, &setup.stage.admin, &new).await.unwrap();
        accounts.insert(name, authenticate(app, &made.secret).await.unwrap());
    }
    let mut wrong = Vec::new();
    for (number, (name, path, steps, expected)) in ways.iter().enumerate() {
        let mut scene = Scene {
            setup,
            accounts: accounts.clone(),
            domain: format!("{prefix}{number}.agents-test.com"),
            path,
            named: false,
            catalog_elsewhere: false,
            redirect: None,
            lies_at: "{}",
        };
        for step in *steps {
            scene.take(*step).await;
        }
        let result = scene.result().await;
        let (coverage, lifecycle, rule, level, urn) = result.clone();
        if (
            coverage,
            lifecycle.as_str(),
            rule.as_str(),
            level.as_str(),
            urn,
        ) != *expected
        {
            wrong.push(format!("{name}: {result:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    setup.stage.index_equals_database().await;
}

both_databases!(
    only_covered_sources_have_the_domains_trust,
    open_registration_covers_nothing,
    approving_all_covers_nothing,
    an_allowed_domain_approves_only_its_own_sources,
    an_earlier_copy_does_not_affect_the_owners_agent
);

/// All ways in which a source is added, with the results for its card.
async fn only_covered_sources_have_the_domains_trust(url: &str) {
    check_ways(&setup(url, |_| ()).await, WAYS, "way").await;
}

/// The same where anyone may register.
async fn open_registration_covers_nothing(url: &str) {
    let open = |config: &mut Config| config.governance.registration = WhoRegisters::Open;
    check_ways(&setup(url, open).await, OPEN, "open").await;
}

/// The same where everything is approved.
async fn approving_all_covers_nothing(url: &str) {
    let all = |config: &mut Config| config.governance.approve_all = true;
    check_ways(&setup(url, all).await, APPROVE_ALL, "all").await;
}

/// The same where the domains are allowed without a proof.
async fn an_allowed_domain_approves_only_its_own_sources(url: &str) {
    let allow = |config: &mut Config| {
        config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())];
    };
    check_ways(&setup(url, allow).await, ALLOWED, "allowed").await;
}

/// A stranger who nominates a copy of the owner's card first keeps an agent of its own, and nothing that happens to it
/// affects the owner's.
async fn an_earlier_copy_does_not_affect_the_owners_agent(url: &str) {
    let setup = setup(url, |_| ()).await;
    let (owner, stranger) = (
        setup.account("owner").await,
        setup.account("stranger").await,
    );
    let domain = "copied.agents-test.com";
    let copy = Registration {
        card_url: Some(format!("https://{domain}/uploads/copy.json")),
        ..Registration::default()
    };
    let stage = &setup.stage;
    let own = card("Travel", "Books flights");
    register::register(&stage.app, &stranger, &copy)
        .await
        .unwrap();
    stage.visit(|_| OriginAnswer::Card(own.clone())).await;
    let nominated = stage.agent(domain).await;
    stage.reject(nominated.id).await;
    let view = setup.register(&owner, domain).await;
    stage.advance(Duration::minutes(2));
    stage.visit(|_| OriginAnswer::Card(own.clone())).await;
    setup.place_standing_record(&view);
    domain_verify(&stage.app, &owner, domain).await.unwrap();
    let of_slot = async |slot: &str| {
        let all = stage.agents().await;
        all.into_iter().find(|row| row.slot == slot).unwrap()
    };
    let first = of_slot("well-known").await;
    assert_ne!(first.id, nominated.id);
    assert_eq!(
        (first.lifecycle.as_str(), first.urn.is_some()),
        ("approved", true)
    );
    assert_eq!(stage.served(first.id).await, Some(own.clone()));
    // The copy changes as little as possible.
    let other = card("Travel", "Books flights of somebody else");
    stage
        .crawl_with(domain, |source| {
            OriginAnswer::Card(if source.kind == SourceKind::Url {
                other.clone()
            } else {
                own.clone()
            })
        })
        .await;
    assert_eq!(stage.served(first.id).await, Some(own));
    let copy = stage
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == nominated.id)
        .unwrap();
    assert_eq!((copy.lifecycle.as_str(), copy.urn), ("pending", None));
    stage.index_equals_database().await;
    assert_eq!(stage.found_by_anyone().await, [first.id].into());
}
