//! Tests of the HTML pages over HTTP: the registration form, error pages, cacheable files.

use a2a_registry_core::config::RegistrationAccess;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use actix_web::test::TestRequest;

use crate::tests::sessions::{near, sign_in, with};
use crate::tests::{ADMIN, Registry, TestResponse};

const CARD: &str = "http%3A%2F%2F127.0.0.1%3A9%2Fcard.json";

fn form(body: &str) -> TestRequest {
    TestRequest::post()
        .uri("/register")
        .insert_header(("content-type", "application/x-www-form-urlencoded"))
        .insert_header(("accept", "text/html"))
        .set_payload(body.to_owned())
}

fn text(answer: &TestResponse) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn page(registry: &Registry, path: &str) -> TestResponse {
    let request = TestRequest::get()
        .uri(path)
        .insert_header(("accept", "text/html,*/*"));
    registry.ask(request).await
}

/// Whether the domain of [`CARD`] is registered.
async fn is_registered(context: &AppContext, admin: &Caller) -> bool {
    match domain_show(context, admin, "127.0.0.1:9").await {
        Ok(_) => true,
        Err(error) if error.kind == ErrorKind::NotFound => false,
        Err(error) => panic!("{error}"),
    }
}

#[actix_web::test]
async fn the_form_registers_with_the_token_it_carries() {
    let registry = Registry::new().await;
    let answer = registry
        .ask(form(&format!("target={CARD}&token={ADMIN}")))
        .await;
    assert_eq!(answer.status, 200);
    assert!(!answer.headers.contains_key("set-cookie"));
    assert!(text(&answer).contains("127.0.0.1:9"));
    assert!(is_registered(registry.context(), &registry.admin().await).await);
}

#[actix_web::test]
async fn the_answer_to_the_form_says_how_to_prove_the_domain_and_where_the_rest_is() {
    let registry = Registry::new().await;
    let publisher = registry.token(Role::Publisher).await;
    let body = format!("target=agents.example.com&token={publisher}");
    let answer = registry.ask(form(&body)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for header in ["location", "refresh", "set-cookie"] {
        assert!(!answer.headers.contains_key(header), "{header}");
    }
    assert!(answer.header("cache-control").contains("private"));
    let html = text(&answer);
    for told in [
        "_a2a-registry.agents.example.com",
        "a2a-registry domain show &#39;agents.example.com&#39;",
        "https://agents.example.com/.well-known/ard.json",
    ] {
        assert!(html.contains(told), "{told}: {html}");
    }
    assert!(!html.contains(&publisher), "the token is never sent back");
    // No other caller sees the domain at any URL.
    for query in ["", "?wait=1"] {
        let hidden = page(&registry, &format!("/domains/agents.example.com{query}")).await;
        assert_eq!(hidden.status, 404);
    }
    // Reloading the page submits the form again and registers nothing twice.
    let admin = registry.admin().await;
    let show = || domain_show(registry.context(), &admin, "agents.example.com");
    let before = show().await.unwrap();
    let again = registry.ask(form(&body)).await;
    assert_eq!(again.status, 200);
    assert!(text(&again).contains("_a2a-registry.agents.example.com"));
    let after = show().await.unwrap();
    assert_eq!(after.sources.len(), before.sources.len());
    assert_eq!(after.created_at, before.created_at);
}

#[actix_web::test]
async fn a_form_that_may_not_register_changes_nothing_and_says_why() {
    let registry = Registry::new().await;
    let publisher = registry.token(Role::Publisher).await;
    let large = format!("target={}&token={ADMIN}", "a".repeat(9_000));
    let site = ("sec-fetch-site", "cross-site");
    let good = format!("target={CARD}&token={ADMIN}");
    for (request, status, said) in [
        (form(&format!("target={CARD}")), 401, "requires a token"),
        (
            form(&format!("target={CARD}&token=wrong")),
            401,
            "This token",
        ),
        (
            form(&format!("target={CARD}&approve=true&token={publisher}")),
            403,
            "Only a curator",
        ),
        (form(&format!("token={ADMIN}")), 400, "Enter a domain"),
        (form(&large), 413, "at most 8192 bytes"),
        (form("target=a&target=b"), 400, "cannot be parsed"),
        (
            form(&format!("target=10.0.0.1&token={ADMIN}")),
            422,
            "allow_networks",
        ),
        (form(&good).insert_header(site), 403, "another site"),
        (
            form(&good).insert_header(("origin", "https://elsewhere.example")),
            403,
            "another site",
        ),
        (
            form(&good).insert_header(("content-type", "text/plain")),
            415,
            "accepts only a form",
        ),
    ] {
        let answer = registry.ask(request).await;
        let html = text(&answer);
        assert_eq!(answer.status.as_u16(), status, "{said}: {html}");
        assert!(html.contains(said), "{said}: {html}");
        assert!(
            !html.contains(ADMIN) && !html.contains(&publisher),
            "{html}"
        );
    }
    assert!(!is_registered(registry.context(), &registry.admin().await).await);
}

#[actix_web::test]
async fn an_open_registry_takes_nominations_from_its_own_form_only() {
    let registry =
        Registry::with(|config| config.governance.registration = RegistrationAccess::Open).await;
    let admin = registry.admin().await;
    let elsewhere = form(&format!("target={CARD}")).insert_header(("sec-fetch-site", "cross-site"));
    assert_eq!(registry.ask(elsewhere).await.status, 403);
    assert!(!is_registered(registry.context(), &admin).await);
    let own = form(&format!("target={CARD}")).insert_header(("sec-fetch-site", "same-origin"));
    assert_eq!(registry.ask(own).await.status, 200);
    assert!(is_registered(registry.context(), &admin).await);
}

#[actix_web::test]
async fn a_domain_that_is_not_listed_looks_like_one_that_is_not_there() {
    let registry = Registry::new().await;
    let registered = registry
        .ask(form(&format!("target={CARD}&token={ADMIN}")))
        .await;
    assert_eq!(registered.status, 200);
    for query in ["", "?wait=1"] {
        let hidden = page(&registry, &format!("/domains/127.0.0.1:9{query}")).await;
        let missing = page(&registry, &format!("/domains/127.0.0.2:9{query}")).await;
        assert_eq!(
            (hidden.status, missing.status),
            (404.try_into().unwrap(), 404.try_into().unwrap())
        );
        let named = text(&missing).replace("127.0.0.2:9", "127.0.0.1:9");
        assert_eq!(text(&hidden), named);
        let reloads = text(&hidden).contains("http-equiv=\"refresh\"");
        assert_eq!(reloads, !query.is_empty());
    }
}

#[actix_web::test]
async fn failures_are_pages_for_people_and_documents_for_programs() {
    let registry = Registry::new().await;
    for (path, status, slug) in [
        ("/?bogus=1", 400, "invalid-request"),
        ("/?q=%zz", 400, "invalid-request"),
        ("/?page_size=1000", 400, "invalid-request"),
        ("/?page_token=mine", 400, "invalid-request"),
        ("/agents/nobody/", 404, "not-found"),
        ("/domains/nobody.example", 404, "not-found"),
        ("/nowhere", 404, "not-found"),
        ("/problems/nothing", 404, "not-found"),
        ("/manual/nothing", 404, "not-found"),
        ("/manual/../Cargo", 404, "not-found"),
        ("/static/nothing.css", 404, "not-found"),
        ("/docs/nothing.js", 404, "not-found"),
        ("/agents/%zz/", 400, "broken-path"),
    ] {
        let answer = page(&registry, path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
        assert_eq!(
            answer.header("content-type"),
            "text/html; charset=utf-8",
            "{path}"
        );
        registry.get(path).await.problem(status, slug);
    }
    let long = format!("/?q={}", "a".repeat(7_000));
    assert_eq!(page(&registry, &long).await.status, 400);
}

#[actix_web::test]
async fn empty_members_of_a_search_form_are_none() {
    let registry = Registry::new().await;
    let answer = page(&registry, "/?q=&tag=&sort=").await;
    assert_eq!(answer.status, 200);
    let html = text(&answer);
    assert!(html.contains("Nothing is public here"), "{html}");
    assert!(
        answer
            .header("content-security-policy")
            .starts_with("default-src 'none'")
    );
}

#[actix_web::test]
async fn an_agents_page_lies_behind_a_slash() {
    let registry = Registry::new().await;
    let answer = registry.get("/agents/urn%3Aa%2Fb").await;
    assert_eq!(answer.status, 308);
    assert_eq!(answer.header("location"), "/agents/urn%3Aa%2Fb/");
}

#[actix_web::test]
async fn files_are_kept_by_their_content() {
    let registry = Registry::new().await;
    let html = text(&page(&registry, "/register").await);
    let (_, address) = html.split_once("<link rel=\"stylesheet\" href=\"").unwrap();
    let (address, _) = address.split_once('"').unwrap();
    let sheet = registry.get(address).await;
    assert_eq!(sheet.header("content-type"), "text/css; charset=utf-8");
    assert_eq!(
        sheet.header("cache-control"),
        "public, max-age=31536000, immutable"
    );
    let bare = registry.get("/static/style.css").await;
    assert_eq!(bare.header("cache-control"), "public, no-cache");
    assert_eq!(bare.header("etag"), sheet.header("etag"));
    let again = TestRequest::get()
        .uri("/static/style.css")
        .insert_header(("if-none-match", bare.header("etag")));
    assert_eq!(registry.ask(again).await.status, 304);
    for missing in ["/static/none.css", "/static/..%2Ftemplates%2Fbase.html"] {
        registry.get(missing).await.problem(404, "not-found");
    }
}

#[actix_web::test]
async fn the_page_about_the_registry_has_two_addresses_and_one_text() {
    let registry = Registry::with(|config| {
        config.crawler.contact = "mailto:ops@registry.example.com".to_owned();
    })
    .await;
    let about = page(&registry, "/about").await;
    assert_eq!(about.status, 200);
    let html = text(&about);
    assert_eq!(text(&page(&registry, "/crawler").await), html);
    for told in [
        "policy=none",
        "ops@registry.example.com",
        "id=\"trust\"",
        "id=\"crawling\"",
        "of trust level L1 or above",
        "A2A 0.1, 0.2, 0.3 and 1.0",
    ] {
        assert!(html.contains(told), "{told}: {html}");
    }
}

#[actix_web::test]
async fn a_page_of_a_failure_offers_a_way_on_and_keeps_the_headers_of_the_document() {
    let registry = Registry::new().await;
    let missing = page(&registry, "/nowhere").await;
    assert_eq!(missing.header("cache-control"), "no-store");
    let policy = missing.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let html = text(&missing);
    for link in ["/", "/?q=", "/register", "/about", "/problems/not-found"] {
        assert!(html.contains(&format!("href=\"{link}\"")), "{link}: {html}");
    }
    let method = TestRequest::delete()
        .uri("/register")
        .insert_header(("accept", "text/html"));
    let refused = registry.ask(method).await;
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("content-type"), "text/html; charset=utf-8");
    assert!(refused.header("allow").contains("POST"), "{refused:?}");
    // Machine-readable paths respond in their own format to every client.
    for path in [
        "/v1/agents/nobody",
        "/agents/nobody/.well-known/agent-card.json",
    ] {
        page(&registry, path).await.problem(404, "not-found");
    }
}

#[actix_web::test]
async fn the_manual_and_the_api_reference_lead_back() {
    let registry = Registry::new().await;
    let manual = text(&page(&registry, "/manual/reference/problems").await);
    for part in [
        "<code>Authorization: Bearer</code>",
        "<a class=\"value\" href=\"/manual/reference/problems\" aria-current=\"page\">",
        "<a class=\"value\" href=\"/manual/\">",
        "<nav aria-label=\"Main\">",
    ] {
        assert!(manual.contains(part), "{part}: {manual}");
    }
    let policy = registry.get("/manual/policies/everybody.cedar").await;
    assert_eq!(policy.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(registry.get("/manual").await.header("location"), "manual/");
    let reference = text(&page(&registry, "/docs/").await);
    assert!(reference.contains("<a href=\"/\""), "{reference}");
}

#[actix_web::test]
async fn the_first_page_of_an_empty_registry_says_what_to_do_first() {
    let registry = Registry::new().await;
    let html = text(&page(&registry, "/").await);
    for told in [
        "Nothing is public here",
        "href=\"/sign-in\"",
        "href=\"/register\"",
    ] {
        assert!(html.contains(told), "{told}: {html}");
    }
    assert!(!html.contains("Popular tags"), "{html}");
    let admin = sign_in(&registry, ADMIN).await;
    let reader = sign_in(&registry, &registry.token(Role::Reader).await).await;
    for (secret, told) in [
        (admin, "No agent is listed yet"),
        (reader, "No agent is listed for you yet"),
    ] {
        for path in ["/", "/?q="] {
            let request = near(TestRequest::get().uri(path));
            let html = text(&registry.ask(with(request, &secret)).await);
            assert!(html.contains(told), "{told}: {html}");
            let command = "a2a-registry register agents.example.com";
            assert!(html.contains(command), "{html}");
        }
    }
}
