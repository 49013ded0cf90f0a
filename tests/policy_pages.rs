//! The pages of waivers and of agents that policies hold, with a browser's session but without a browser.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

const OPEN: &str = "permit (principal, action, resource);";
const NO_REPEATING: &str = "forbid (principal, action == Action::\"admit\", resource) when { resource.skills.contains(\"repeat\") };";

/// A session of somebody, and the form token of its pages.
pub(crate) struct PageSession<'a> {
    served: &'a ServingRegistry,
    cookie: String,
    form_token: String,
}

/// A page: its status and its text.
pub(crate) type PageResponse = (u16, String);

/// A request with a form.
fn filled(request: reqwest::RequestBuilder, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

fn form_token(page: &str) -> String {
    let begin = page.split("name=\"form_token\" value=\"").nth(1);
    let token = begin.and_then(|rest| rest.split('"').next());
    token.unwrap_or_else(|| panic!("{page}")).to_owned()
}

fn cookie(answer: &reqwest::Response, name: &str) -> String {
    let mut lines = answer.headers().get_all("set-cookie").iter();
    let line = lines.find_map(|line| {
        let line = line.to_str().unwrap();
        line.starts_with(name).then(|| line.split(';').next())?
    });
    line.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

impl<'a> PageSession<'a> {
    pub(crate) async fn sign_in(registry: &'a ServingRegistry, token: &str) -> Self {
        let shown = registry.request(Method::GET, "/sign-in").send().await;
        let shown = shown.unwrap();
        let before = cookie(&shown, "__Host-a2a_form");
        let form_token_before = form_token(&shown.text().await.unwrap());
        let fields = [
            ("token", token),
            ("next", "/account"),
            ("form_token", &form_token_before),
        ];
        let sign_in = filled(registry.request(Method::POST, "/sign-in"), &fields);
        let answer = sign_in.header("cookie", before).send().await.unwrap();
        assert_eq!(answer.status(), 303);
        let mut session = Self {
            served: registry,
            cookie: cookie(&answer, "__Host-a2a_session"),
            form_token: String::new(),
        };
        session.form_token = form_token(&session.get("/account").await.1);
        session
    }

    async fn sent(&self, request: reqwest::RequestBuilder) -> PageResponse {
        let request = request.header("cookie", &self.cookie);
        let answer = request.header("accept", "text/html").send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> PageResponse {
        self.sent(self.served.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> PageResponse {
        let mut fields = fields.to_vec();
        fields.push(("form_token", &self.form_token));
        self.sent(filled(self.served.request(Method::POST, path), &fields))
            .await
    }

    /// The agent's page, once it has these words.
    async fn agent_says(&self, agent: &str, words: &[&str]) -> String {
        eventually(words.join(", ").as_str(), || async {
            let (_, page) = self.get(&format!("/agents/{agent}/")).await;
            words.iter().all(|word| page.contains(word)).then_some(page)
        })
        .await
    }
}

#[track_caller]
pub(crate) fn assert_shows((status, text): &PageResponse, expected: u16, words: &[&str]) {
    assert_eq!(*status, expected, "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// An agent whose skill a policy does not admit, registered by the admin.
async fn held(registry: &ServingRegistry, origin: &Origin) -> String {
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let set = json!({"reason": "a test", "policies": [
        {"id": "open", "text": OPEN}, {"id": "no-repeating", "text": NO_REPEATING},
    ]});
    let put = registry
        .admin_request(Method::PUT, "/v1/policies")
        .json(&set);
    assert_eq!(put.send().await.unwrap().status(), 202);
    eventually("the agent is held", || async {
        let agent: Value = registry.read_as_admin(&format!("/v1/agents/{id}")).await;
        let holds = agent["holds"].to_string();
        holds.contains("\"policy\"").then_some(())
    })
    .await;
    id
}

fn read_digest(page: &str) -> String {
    let begin = page.split("name=\"digest\" value=\"").nth(1);
    let digest = begin.and_then(|rest| rest.split('"').next());
    digest.unwrap_or_else(|| panic!("{page}")).to_owned()
}

#[tokio::test]
async fn a_policy_is_waived_on_the_page_of_an_agent_and_the_waiver_is_ended() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let agent = held(&registry, &origin).await;
    let curator =
        PageSession::sign_in(&registry, &registry.create_token("cora", "curator").await).await;
    let page = curator
        .agent_says(
            &agent,
            &[
                "A policy does not admit the content of this agent",
                "id=\"waive\"",
            ],
        )
        .await;
    assert!(page.contains("forbids admit"), "{page}");
    let digest = read_digest(&page);
    let waiver = |digest: &str, days: &str| {
        [
            ("agent", agent.clone()),
            ("policy", "no-repeating".to_owned()),
            ("digest", digest.to_owned()),
            ("days", days.to_owned()),
            ("reason", "<b>until it is mended</b>".to_owned()),
        ]
    };
    let grant = async |digest: &str, days: &str| {
        let waiver = waiver(digest, days);
        let fields: Vec<(&str, &str)> = waiver
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        curator.post("/waivers", &fields).await
    };
    // What is refused is said in words, and what was typed is kept.
    let kept = "value=\"&#60;b&#62;until it is mended";
    let other = grant(&format!("sha256:{}", "0".repeat(64)), "30").await;
    assert_shows(&other, 409, &["shows another card", kept]);
    for days in ["181", "0", "", "soon", "-1"] {
        let long = grant(&digest, days).await;
        assert_shows(&long, 400, &["a waiver must end after 1 to 180 days", kept]);
    }
    assert_eq!(grant(&digest, "30").await.0, 303);
    let twice = grant(&digest, "29").await;
    assert_shows(&twice, 409, &["already waived for this content"]);
    let page = curator
        .agent_says(&agent, &["Waivers in force", "granted by <bdi>cora"])
        .await;
    assert!(
        !page.contains("id=\"holds\"") && !page.contains("<b>until"),
        "{page}"
    );
    // Those who do not see everything see nothing of it.
    let reader =
        PageSession::sign_in(&registry, &registry.create_token("rea", "reader").await).await;
    let (status, page) = reader.get(&format!("/agents/{agent}/")).await;
    assert_eq!(status, 200);
    assert!(
        !page.contains("no-repeating") && !page.contains("id=\"policies\""),
        "{page}"
    );
    // Auditors see it, and neither grant nor end anything.
    let auditor =
        PageSession::sign_in(&registry, &registry.create_token("audrey", "auditor").await).await;
    let list = auditor.get(&format!("/waivers?agent={agent}")).await;
    assert_shows(&list, 200, &["no-repeating", ">Echo</a>", "by <bdi>cora"]);
    assert!(!list.1.contains("End it"), "{}", list.1);
    let list = curator.get("/waivers").await;
    assert_shows(&list, 200, &["End it"]);
    let id = list.1.split("name=\"id\" value=\"").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    assert_eq!(auditor.post("/waivers/end", &[("id", id)]).await.0, 403);
    let asked = curator.post("/waivers/end", &[("id", id)]).await;
    let told = [
        "End the waiver of no-repeating for Echo?",
        "granted by cora until",
        "no-repeating applies to Echo again immediately",
    ];
    assert_shows(&asked, 200, &told);
    assert_shows(&curator.get("/waivers").await, 200, &["End it"]);
    let other = curator.get("/waivers?policy=open").await;
    assert_shows(&other, 200, &["No waiver matches."]);
    assert!(!other.1.contains("No waiver is in force"), "{}", other.1);
    let sure = [("id", id), ("confirm", "yes")];
    assert_eq!(curator.post("/waivers/end", &sure).await.0, 303);
    assert_eq!(curator.post("/waivers/end", &sure).await.0, 404);
    let list = curator.get("/waivers").await;
    assert_shows(&list, 200, &["No waiver is in force"]);
    let list = curator.get("/waivers?ended=true&policy=no-repeating").await;
    assert_shows(&list, 200, &["taken back, by cora"]);
    curator.agent_says(&agent, &["id=\"holds\""]).await;
}

#[tokio::test]
async fn under_four_eyes_a_party_is_told_why_it_may_not_waive() {
    let setup = RegistrySetup::new().approve_all();
    let registry = setup
        .with_config_lines("[governance]\nfour_eyes = true\n")
        .start()
        .await;
    let origin = Origin::start();
    let agent = held(&registry, &origin).await;
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let page = admin.agent_says(&agent, &["id=\"waive\""]).await;
    let fields = [
        ("agent", agent.as_str()),
        ("policy", "no-repeating"),
        ("digest", &read_digest(&page)),
        ("days", "30"),
        ("reason", "because"),
    ];
    let refused = admin.post("/waivers", &fields).await;
    let told = ["Under four-eyes neither the owner", "value=\"because\""];
    assert_shows(&refused, 403, &told);
}
