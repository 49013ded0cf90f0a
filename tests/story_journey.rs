//! The story of one agent on the pages, by two people in two browsers: registered, held by a policy, approved under four-eyes,
//! waived, changed, served by one of them alone, confirmed, held again, and recertified.

use std::net::TcpListener;
use std::sync::Arc;

use a2a_registry_api::{NewAccount, NewToken};
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Role;
use a2a_registry_server::accounts::people::account_create;
use a2a_registry_server::accounts::tokens::token_create;
use a2a_registry_server::metrics::Metrics;
use a2a_registry_server::serve;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission_policies::{OPEN, put};
use crate::glass_journey::Person;
use crate::governance_story::{pass, seen};
use crate::recertification::open_of;
use crate::support::database::Database;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "story.dev";

/// The pages of a stage, whose clock the test moves.
struct Site {
    stage: Stage,
    url: String,
    end: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

impl Site {
    async fn start(database: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stage = Stage::with(database, |config| {
            config.server.public_url.clone_from(&url);
            config.governance.four_eyes = true;
            config.governance.recertify_after = Some(90);
        })
        .await;
        let end = CancellationToken::new();
        let app = Arc::clone(&stage.app);
        let served = serve::run(app, listener, end.clone(), Arc::new(Metrics::new()));
        Self {
            stage,
            url,
            end,
            server: tokio::spawn(served),
        }
    }

    /// Makes an account, and a token of it that outlasts the story.
    async fn account(&self, name: &str, roles: &[Role]) -> String {
        let (app, admin) = (&self.stage.app, &self.stage.admin);
        let new = NewAccount {
            name: name.into(),
            roles: roles.to_vec(),
            groups: Vec::new(),
        };
        account_create(app, admin, &new).await.unwrap();
        let new = NewToken {
            account: name.into(),
            name: "the story".into(),
            expires_in_days: Some(365),
            ..NewToken::default()
        };
        token_create(app, admin, &new).await.unwrap().secret
    }

    /// Somebody in a browser; sessions end while days pass, so each chapter begins with signing in.
    async fn person(&self, token: &str) -> Person {
        Person::signed_in(&self.url, token, false).await
    }

    /// The status of the agent's page for anybody, which agrees with what the registry serves.
    async fn is_shown(&self, agent: Uuid) -> bool {
        let served = seen(&self.stage, agent).await.is_some();
        let page = reqwest::get(format!("{}/agents/{agent}/", self.url)).await;
        assert_eq!(page.unwrap().status().is_success(), served);
        served
    }

    async fn stop(self) {
        self.end.cancel();
        self.server.await.unwrap().unwrap();
    }
}

/// Opens the newest question of that kind from the queue, and fills in the form for a decision.
async fn decide(person: &Person, kind: &str, act: &str, reason: &str) {
    person.visit(&format!("/reviews?kind={kind}")).await;
    person.click("a[href^='/reviews/0']").await;
    let button = match act {
        "break-glass" => {
            person.click("#break > summary").await;
            let field = person.find("#break-reason").await;
            field.send_keys(reason).await.unwrap();
            "#break button".to_owned()
        }
        act => {
            person
                .find("#reason")
                .await
                .send_keys(reason)
                .await
                .unwrap();
            format!("#decide button[value='{act}']")
        }
    };
    person.click(&button).await;
    person.sees(&[reason]).await;
}

/// Waives the policy for what the agent shows, on its page.
async fn waive(person: &Person, agent: Uuid, reason: &str) {
    person.visit(&format!("/agents/{agent}/")).await;
    person.sees(&["no-tests", "On hold"]).await;
    person.click("#waive > summary").await;
    person
        .find("#waive-reason")
        .await
        .send_keys(reason)
        .await
        .unwrap();
    person.click("#waive button").await;
    person.sees(&["waived", reason]).await;
}

#[tokio::test]
async fn two_people_lead_an_agent_through_its_story_on_the_pages() {
    let database = Database::sqlite();
    let site = Site::start(database.url()).await;
    let stage = &site.stage;
    let pia_token = site
        .account("pia", &[Role::Publisher, Role::Curator, Role::Admin])
        .await;
    let ann_token = site.account("ann", &[Role::Curator]).await;
    let forbids = "forbid (principal, action == Action::\"admit\", resource) when { resource.tags.contains(\"tests\") };";
    put(stage, &[OPEN, ("no-tests", forbids)]).await;

    // Pia registers her domain, and sees that a policy holds the agent.
    let pia = site.person(&pia_token).await;
    pia.visit("/register").await;
    let target = pia.find("#target").await;
    target.send_keys(DOMAIN).await.unwrap();
    pia.click("#register button").await;
    pia.sees(&[DOMAIN]).await;
    stage
        .visit(|_| OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    assert!(!site.is_shown(agent).await);
    pia.visit(&format!("/agents/{agent}/")).await;
    pia.sees(&["On hold", "policy", "no-tests"]).await;

    // Four eyes: Pia has registered it, so Ann decides; the policy holds it until Ann waives it.
    pia.visit("/reviews").await;
    pia.click("a[href^='/reviews/0']").await;
    pia.sees(&["Under four-eyes"]).await;
    let ann = site.person(&ann_token).await;
    decide(&ann, "admission", "approve", "we know the owner").await;
    assert!(!site.is_shown(agent).await);
    waive(&ann, agent, "until the audit").await;
    assert!(site.is_shown(agent).await);

    // The card changes critically and nobody finds it any more; Pia alone serves it for a day.
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Other", "1.0")))
        .await;
    assert!(!site.is_shown(agent).await);
    pia.visit(&format!("/agents/{agent}/")).await;
    pia.sees(&["critical_change"]).await;
    decide(&pia, "admission", "break-glass", "the old one leaks").await;
    assert_eq!(stage.holds(agent).await, ["policy"]);
    // The waiver was for other content.
    waive(&ann, agent, "the new one too").await;
    assert!(site.is_shown(agent).await);
    decide(&ann, "break_glass", "approve", "it is what we wanted").await;
    pass(stage, 2).await;
    assert!(site.is_shown(agent).await, "confirmed");

    // The waiver expires, and the policy bites.
    pass(stage, 30).await;
    assert!(!site.is_shown(agent).await);
    ann.browser.close().await;
    let ann = site.person(&ann_token).await;
    ann.visit("/waivers?ended=true").await;
    ann.sees(&["the new one too", "ended"]).await;
    put(stage, &[OPEN]).await;
    assert!(site.is_shown(agent).await);

    // Nobody recertifies it in time, and it goes; approving what is served brings it back.
    pass(stage, 44).await;
    assert!(
        open_of(stage, agent, ReviewKind::Recertification)
            .await
            .is_some()
    );
    pass(stage, 14).await;
    assert!(!site.is_shown(agent).await);
    ann.browser.close().await;
    let ann = site.person(&ann_token).await;
    ann.visit(&format!("/agents/{agent}/")).await;
    ann.sees(&["recertify"]).await;
    decide(&ann, "recertification", "approve", "still good").await;
    assert!(site.is_shown(agent).await);
    for person in [pia, ann] {
        assert!(person.browser.complaints().await.is_empty());
        person.browser.close().await;
    }
    site.stop().await;
}
