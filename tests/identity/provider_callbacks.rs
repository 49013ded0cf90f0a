//! Callbacks from a provider: accepted once, only in the browser that started the attempt, and only for that attempt.

use std::collections::BTreeMap;

use reqwest::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use url::Url;

use super::{account, patch, with_corp};
use crate::support::database::Database;
use crate::support::identity_provider::{IdentityProvider, with_form};
use crate::support::program::join_lines;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// A browser that follows nothing by itself.
pub(super) struct CookieBrowser {
    client: Client,
    pub(super) cookies: BTreeMap<String, String>,
}

impl CookieBrowser {
    pub(super) fn new() -> Self {
        crate::support::install_tls();
        let client = Client::builder().redirect(Policy::none()).build();
        Self {
            client: client.unwrap(),
            cookies: BTreeMap::new(),
        }
    }

    async fn send(&mut self, request: RequestBuilder) -> Response {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let answer = request
            .header(ACCEPT, "text/html")
            .header(COOKIE, cookies.join("; "))
            .send()
            .await
            .unwrap();
        for line in answer.headers().get_all(SET_COOKIE) {
            let line = line.to_str().unwrap();
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            }
        }
        answer
    }

    pub(super) async fn get(&mut self, url: &str) -> Response {
        self.send(self.client.get(url)).await
    }

    /// The address at the provider that the button leads to.
    pub(super) async fn departure(&mut self, registry: &str, next: &str) -> Url {
        let answer = self.begun(registry, next).await;
        assert_eq!(answer.status(), 200);
        let page = answer.text().await.unwrap();
        let link = page.split("id=\"continue\" href=\"").nth(1).unwrap();
        let link = link.split('"').next().unwrap();
        Url::parse(&link.replace("&#38;", "&").replace("&amp;", "&")).unwrap()
    }

    pub(super) async fn begun(&mut self, registry: &str, next: &str) -> Response {
        let page = self.get(&format!("{registry}/sign-in")).await;
        let page = page.text().await.unwrap();
        let token = page.split("name=\"form_token\" value=\"").nth(1).unwrap();
        let token = token.split('"').next().unwrap().to_owned();
        let fields = [("form_token", token.as_str()), ("next", next)];
        let request = self.client.post(format!("{registry}/sign-in/corp"));
        self.send(with_form(request, &fields)).await
    }

    /// Signs in at the provider; returns the address that it sends the browser back to.
    pub(super) async fn login(&mut self, departure: &Url, name: &str) -> String {
        let mut at = departure.to_string();
        loop {
            let answer = self.get(&at).await;
            let Some(next) = answer.headers().get(LOCATION) else {
                let fields = [("prompt", "login"), ("login", name), ("password", "x")];
                let request = with_form(self.client.post(&at), &fields);
                let answer = self.send(request).await;
                at = answer.headers()[LOCATION].to_str().unwrap().to_owned();
                continue;
            };
            let next = departure.join(next.to_str().unwrap()).unwrap();
            if next.path().ends_with("/callback") {
                return next.to_string();
            }
            at = next.to_string();
        }
    }

    /// The name of the account that the registry knows the browser as.
    pub(super) async fn signed_in_as(&mut self, registry: &str) -> Option<String> {
        let answer = self.get(&format!("{registry}/account")).await;
        if answer.status() == 303 {
            return None;
        }
        let page = answer.text().await.unwrap();
        let name = page.split("<h1>").nth(1).unwrap();
        Some(name.split("</h1>").next().unwrap().to_owned())
    }
}

/// Signs in with a browser of its own; returns it.
pub(super) async fn signed_in_browser(served: &ServingRegistry, name: &str) -> CookieBrowser {
    let mut browser = CookieBrowser::new();
    let departure = browser.departure(&served.url, "/register").await;
    let back = browser.login(&departure, name).await;
    let answer = browser.get(&back).await;
    assert_eq!(answer.status(), 303);
    assert_eq!(answer.headers()[LOCATION], "/register");
    browser
}

#[tokio::test]
async fn an_answer_is_taken_once_and_from_the_browser_that_asked() {
    let (_corp, served) = with_corp().await;
    let mut ann = CookieBrowser::new();
    let departure = ann.departure(&served.url, "//evil.example/").await;
    assert_eq!(
        departure
            .query_pairs()
            .filter(|(name, _)| name == "state")
            .count(),
        1
    );
    let back = ann.login(&departure, "ann").await;
    // Somebody who has got hold of the address gains nothing, with or without cookies of their own.
    let mut eve = CookieBrowser::new();
    assert_eq!(eve.get(&back).await.status(), 401);
    eve.departure(&served.url, "/").await;
    assert_eq!(eve.get(&back).await.status(), 401);
    assert_eq!(eve.signed_in_as(&served.url).await, None);
    // It is ann's still, and leads to no other site.
    let before = ann.cookies.clone();
    let answer = ann.get(&back).await;
    assert_eq!(answer.status(), 303);
    assert_eq!(answer.headers()[LOCATION], "/account");
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    // Once, also for who has kept the cookie of the attempt.
    let mut again = CookieBrowser::new();
    again.cookies = before;
    let answer = again.get(&back).await;
    assert_eq!(answer.status(), 401);
    let page = answer.text().await.unwrap();
    assert!(page.contains("is already complete"), "{page}");
    assert_eq!(ann.get(&back).await.status(), 401);
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    served.stop().await;
}

/// An address with another value of one parameter, or without it.
fn changed(url: &str, name: &str, value: Option<&str>) -> String {
    let mut url = Url::parse(url).unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let pairs = pairs.into_iter().filter_map(|(key, old)| {
        let new = (key == name).then_some(value);
        Some((key, new.map_or(Some(old), |new| new.map(str::to_owned))?))
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    url.query_pairs_mut().clear().extend_pairs(pairs);
    url.to_string()
}

#[tokio::test]
async fn an_answer_of_one_provider_is_worth_nothing_at_another_one() {
    let setup = RegistrySetup::new();
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    let labs = IdentityProvider::start(setup.scratch_folder(), "labs").await;
    corp.set_parts(json!({"people": {"ann": {"preferred_username": "ann", "groups": ["staff"]}}}))
        .await;
    let setup = setup.allow_loopback_identity();
    let setup = setup.add_identity_provider("corp", &corp, super::STAFF);
    let served = setup
        .add_identity_provider("labs", &labs, super::STAFF)
        .start()
        .await;
    corp.allow_callback_of(&served.url, "corp").await;
    let mut ann = CookieBrowser::new();
    let departure = ann.departure(&served.url, "/").await;
    let back = ann.login(&departure, "ann").await;
    let elsewhere = back.replace("/sign-in/corp/", "/sign-in/labs/");
    assert_eq!(ann.get(&elsewhere).await.status(), 401);
    // Nor where the answer says that it is of that one.
    let claimed = changed(&elsewhere, "iss", Some(&labs.issuer));
    assert_eq!(ann.get(&claimed).await.status(), 401);
    assert_eq!(ann.signed_in_as(&served.url).await, None);
    assert_eq!(ann.get(&back).await.status(), 303);
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    served.stop().await;
}

#[tokio::test]
async fn an_answer_is_worth_nothing_for_another_attempt_or_of_another_issuer() {
    let (_corp, served) = with_corp().await;
    let value = |url: &str, name: &str| {
        let url = Url::parse(url).unwrap();
        let found = url.query_pairs().find(|(key, _)| key == name);
        found.unwrap().1.into_owned()
    };
    let mut browser = CookieBrowser::new();
    // The code of one attempt in the answer to another one: it belongs to the verifier of the first.
    let one = browser.departure(&served.url, "/").await;
    let one = browser.login(&one, "ann").await;
    let two = browser.departure(&served.url, "/").await;
    let swapped = changed(&one, "state", Some(&value(two.as_str(), "state")));
    assert_eq!(browser.get(&swapped).await.status(), 401);
    // An identity token that was made for another attempt.
    let three = browser.departure(&served.url, "/").await;
    let nonce = value(two.as_str(), "nonce");
    let replayed = changed(three.as_str(), "nonce", Some(&nonce));
    let back = browser.login(&Url::parse(&replayed).unwrap(), "ann").await;
    let answer = browser.get(&back).await;
    assert_eq!(answer.status(), 401);
    let page = answer.text().await.unwrap();
    assert!(page.contains("another attempt to sign in"), "{page}");
    // RFC 9207: the provider says who it is, and this one always does.
    for iss in [None, Some("https://evil.example")] {
        let four = browser.departure(&served.url, "/").await;
        let back = browser.login(&four, "ann").await;
        let back = changed(&back, "iss", iss);
        assert_eq!(browser.get(&back).await.status(), 401, "{iss:?}");
    }
    // What the provider refuses, and what is no answer at all.
    let five = browser.departure(&served.url, "/").await;
    let state = value(five.as_str(), "state");
    let iss = value(&one, "iss");
    let refused = format!(
        "{}/sign-in/corp/callback?state={state}&iss={iss}&error=access_denied%3Cb%3E",
        served.url
    );
    let answer = browser.get(&refused).await;
    assert_eq!(answer.status(), 401);
    let page = answer.text().await.unwrap();
    assert!(
        page.contains("access_denied") && !page.contains("<b>"),
        "{page}"
    );
    for path in [
        "corp/callback",
        "corp/callback?state=x&code=y",
        "nobody/callback",
    ] {
        let answer = browser.get(&format!("{}/sign-in/{path}", served.url)).await;
        assert!(answer.status().is_client_error(), "{path}");
    }
    assert_eq!(browser.signed_in_as(&served.url).await, None);
    served.stop().await;
}

#[tokio::test]
async fn who_signs_in_is_what_the_provider_says_and_an_admin_leaves() {
    let (corp, served) = with_corp().await;
    let mut ann = signed_in_browser(&served, "ann").await;
    let known = account(&served, "ann@corp").await;
    assert_eq!(known["roles"], json!(["reader", "curator"]));
    let groups = json!([
        {"origin": corp.issuer, "name": "leads"}, {"origin": corp.issuer, "name": "staff"},
    ]);
    assert_eq!(known["groups"], groups);
    // Somebody who calls themselves admin is not let in, and would be called admin@corp.
    let mut eve = CookieBrowser::new();
    let departure = eve.departure(&served.url, "/").await;
    let back = eve.login(&departure, "eve").await;
    assert_eq!(eve.get(&back).await.status(), 403);
    assert_eq!(
        served.get_as_admin("/v1/accounts/admin@corp").await.status,
        404
    );
    // A change at the provider acts at the next sign-in, and another role gives the session another secret.
    corp.set_parts(
        json!({"people": {"ann": {"preferred_username": "queen", "groups": ["staff"]}}}),
    )
    .await;
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    let mut again = signed_in_browser(&served, "ann").await;
    let known = account(&served, "ann@corp").await;
    assert_eq!(known["roles"], json!(["reader"]));
    assert_eq!(
        known["groups"],
        json!([{"origin": corp.issuer, "name": "staff"}])
    );
    assert_eq!(again.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    let before = ann.cookies["__Host-a2a_session"].clone();
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    assert_ne!(ann.cookies["__Host-a2a_session"], before);
    // One session is revoked, then all end with the account.
    let list = served.get_as_admin("/v1/sessions").await.expect_status(200);
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0]["issuer"], json!(corp.issuer));
    let id = sessions[0]["id"].as_str().unwrap();
    let newest = format!("/v1/sessions/{id}");
    assert_eq!(
        served.get_as_admin(&newest).await.expect_status(200),
        sessions[0]
    );
    let printed = join_lines(&served.run_admin_command(&["session", "list"]).await.stdout);
    assert!(
        printed.contains(&corp.issuer) && printed.contains(id),
        "{printed}"
    );
    let printed = served
        .run_admin_command(&["session", "list", "--json"])
        .await;
    let printed: Value = serde_json::from_str(&join_lines(&printed.stdout)).unwrap();
    assert_eq!(printed["sessions"], list["sessions"]);
    let revoked = served.run_admin_command(&["session", "revoke", id]).await;
    assert_eq!(join_lines(&revoked.stdout), format!("{id} is revoked"));
    assert_eq!(served.get_as_admin(&newest).await.status, 404);
    assert_eq!(again.signed_in_as(&served.url).await, None);
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    patch(&served, "ann@corp", json!({"disabled": true})).await;
    assert_eq!(ann.signed_in_as(&served.url).await, None);
    let departure = again.departure(&served.url, "/").await;
    let back = again.login(&departure, "ann").await;
    assert_eq!(again.get(&back).await.status(), 403);
    assert_eq!(again.signed_in_as(&served.url).await, None);
    served.stop().await;
}

#[tokio::test]
async fn while_the_provider_is_away_sessions_go_on_and_new_sign_ins_say_so() {
    let (corp, served) = with_corp().await;
    let mut ann = signed_in_browser(&served, "ann").await;
    let mut bob = CookieBrowser::new();
    let departure = bob.departure(&served.url, "/").await;
    let back = bob.login(&departure, "bob").await;
    let away = corp.stop().await;
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    // Who is half way in hears so, and everybody after that.
    assert_eq!(bob.get(&back).await.status(), 503);
    let mut others = CookieBrowser::new();
    let answer = others.begun(&served.url, "/").await;
    assert_eq!(answer.status(), 503);
    let page = answer.text().await.unwrap();
    assert!(page.contains("corp does not respond"), "{page}");
    let _corp = away.restart().await;
    let mut bob = signed_in_browser(&served, "bob").await;
    assert_eq!(bob.signed_in_as(&served.url).await.unwrap(), "bob@corp");
    served.stop().await;
}

/// Begun in one replica, finished in another one, good in both, and revoked in both at once.
#[tokio::test]
async fn an_attempt_is_finished_in_whichever_replica_its_answer_comes_to() {
    let database = Database::postgres().await;
    let setups = [RegistrySetup::new(), RegistrySetup::new()];
    let corp = IdentityProvider::start(setups[0].scratch_folder(), "corp").await;
    corp.set_parts(json!({"people": {"ann": {"preferred_username": "ann", "groups": ["staff"]}}}))
        .await;
    // What a proxy in front of both would have.
    let public = "http://127.0.0.1:9";
    corp.allow_callback_of(public, "corp").await;
    let [one, two] = setups.map(|setup| {
        let setup = setup
            .with_database(database.url())
            .allow_loopback_identity();
        let setup = setup.with_config_lines(&format!("[server]\npublic_url = \"{public}\""));
        setup.add_identity_provider("corp", &corp, super::STAFF)
    });
    let (one, two) = (one.start().await, two.start().await);
    let mut ann = CookieBrowser::new();
    let departure = ann.departure(&one.url, "/account").await;
    let back = ann.login(&departure, "ann").await;
    let before = ann.cookies.clone();
    let answer = ann.get(&back.replace(public, &two.url)).await;
    assert_eq!(answer.status(), 303);
    let mut again = CookieBrowser::new();
    again.cookies = before;
    let answer = again.get(&back.replace(public, &one.url)).await;
    assert_eq!(answer.status(), 401);
    let page = answer.text().await.unwrap();
    assert!(page.contains("is already complete"), "{page}");
    for replica in [&one, &two] {
        assert_eq!(ann.signed_in_as(&replica.url).await.unwrap(), "ann@corp");
    }
    let list = one.get_as_admin("/v1/sessions").await.expect_status(200);
    let path = format!(
        "/v1/sessions/{}",
        list["sessions"][0]["id"].as_str().unwrap()
    );
    let revoked = one
        .admin_request(reqwest::Method::DELETE, &path)
        .send()
        .await;
    assert_eq!(revoked.unwrap().status(), 204);
    for replica in [&two, &one] {
        assert_eq!(ann.signed_in_as(&replica.url).await, None);
    }
    one.stop().await;
    two.stop().await;
}

/// A provider may tell claims apart from the identity token, as many do with groups.
#[tokio::test]
async fn what_only_userinfo_tells_counts_too() {
    let (corp, served) = with_corp().await;
    corp.set_parts(json!({"tellsApart": true})).await;
    let mut ann = signed_in_browser(&served, "ann").await;
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    let known = account(&served, "ann@corp").await;
    assert_eq!(known["roles"], json!(["reader", "curator"]));
    let mut eve = CookieBrowser::new();
    let departure = eve.departure(&served.url, "/").await;
    let back = eve.login(&departure, "eve").await;
    assert_eq!(eve.get(&back).await.status(), 403);
    served.stop().await;
}

/// The operator has taken a provider away: its sessions end with the start after that.
#[tokio::test]
async fn nobody_is_signed_in_with_a_provider_that_is_not_configured() {
    let setup = RegistrySetup::new();
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    corp.set_parts(json!({"people": {"ann": {"groups": ["staff"]}}}))
        .await;
    let with = setup
        .clone()
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, super::STAFF);
    let served = with.start().await;
    corp.allow_callback_of(&served.url, "corp").await;
    let mut ann = signed_in_browser(&served, "ann").await;
    assert_eq!(ann.signed_in_as(&served.url).await.unwrap(), "ann@corp");
    served.stop().await;
    let served = setup.start().await;
    assert_eq!(ann.signed_in_as(&served.url).await, None);
    let page = served.get("/sign-in").await;
    assert!(!String::from_utf8_lossy(&page.body).contains("/sign-in/corp"));
    served.stop().await;
}
