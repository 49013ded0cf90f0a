//! Tests of attempts to sign in with an identity provider.

use a2a_registry_core::providers::AuthorizationResponse;
use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_http::requests::cookies;
use a2a_registry_http::sessions::sign_in_attempts::*;
use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;
use actix_web::test::TestRequest;
use data_encoding::BASE64URL_NOPAD;

use super::Registry;
use super::provider_sign_in::registry;

/// An attempt with the provider `corp`, started `age` microseconds ago.
fn attempt(registry: &Registry, state: &str, age: i64) -> SignInAttempt {
    let provider = registry
        .context()
        .providers
        .sign_in_provider_named("corp")
        .unwrap();
    SignInAttempt {
        state: format!("{state:0<43}"),
        secret: "secret".into(),
        issuer: provider.issuer().into(),
        next: "/register".into(),
        begun_at: registry.context().now().0 - age,
    }
}

fn sealed(registry: &Registry, attempt: &SignInAttempt) -> String {
    let context = registry.context();
    let text = serde_json::to_vec(attempt).unwrap();
    let sealed = context
        .sealer
        .seal(SEAL_PURPOSE, &text, context.entropy.as_ref());
    sealed.unwrap()
}

fn cookie(state: &str, sealed: &str) -> String {
    format!("{}={sealed}", sign_in_cookie_name(state).unwrap())
}

fn with(cookies: &str) -> HttpRequest {
    let request = TestRequest::default().insert_header((COOKIE, cookies));
    request.to_http_request()
}

async fn is_known(registry: &Registry, cookies: &str, state: &str) -> bool {
    let context = registry.context();
    let provider = context.providers.sign_in_provider_named("corp").unwrap();
    let answer: AuthorizationResponse =
        serde_html_form::from_str(&format!("state={state}")).unwrap();
    let known = find_sign_in_attempt(context, provider, &with(cookies), &answer).await;
    known.is_ok()
}

#[actix_web::test]
async fn an_answer_finds_the_attempt_of_its_own_browser_for_ten_minutes() {
    let registry = registry().await;
    let one = attempt(&registry, "one", 0);
    let two = attempt(&registry, "two", ATTEMPT_LIFETIME - MINUTE);
    let (first, second) = (sealed(&registry, &one), sealed(&registry, &two));
    let both = [cookie(&one.state, &first), cookie(&two.state, &second)].join("; ");
    assert!(is_known(&registry, &both, &one.state).await);
    assert!(is_known(&registry, &both, &two.state).await);
    // Another response, another browser, and cookies that the registry has not created.
    assert!(!is_known(&registry, &both, &format!("{}x", &one.state[..42])).await);
    for state in ["", "short", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"] {
        assert!(!is_known(&registry, &both, state).await);
    }
    assert!(!is_known(&registry, "", &one.state).await);
    let swapped = cookie(&one.state, &second);
    assert!(!is_known(&registry, &swapped, &one.state).await);
    assert!(!is_known(&registry, &swapped, &two.state).await);
    let plain = BASE64URL_NOPAD.encode(&serde_json::to_vec(&one).unwrap());
    assert!(!is_known(&registry, &cookie(&one.state, &plain), &one.state).await);
    let other = SignInAttempt {
        issuer: "http://127.0.0.1:2".into(),
        ..attempt(&registry, "other", 0)
    };
    let late = attempt(&registry, "late", ATTEMPT_LIFETIME);
    for attempt in [other, late] {
        let own = cookie(&attempt.state, &sealed(&registry, &attempt));
        assert!(!is_known(&registry, &own, &attempt.state).await);
    }
}

#[actix_web::test]
async fn the_oldest_attempt_of_a_browser_makes_way_and_no_other_browsers() {
    let registry = registry().await;
    let context = registry.context();
    let own = |number: i64| attempt(&registry, &format!("{number}_"), number * MINUTE);
    let cookies = |numbers: std::ops::Range<i64>| {
        let all = numbers
            .map(own)
            .map(|own| cookie(&own.state, &sealed(&registry, &own)));
        all.collect::<Vec<String>>().join("; ")
    };
    let makes_way =
        |cookies: &str| sign_in_cookies_to_clear(context, &with(cookies), context.now().0);
    let name = |number: i64| sign_in_cookie_name(&own(number).state).unwrap();
    assert_eq!(makes_way(""), [""; 0]);
    assert_eq!(makes_way(&cookies(0..4)), [""; 0]);
    assert_eq!(makes_way(&cookies(0..5)), [name(4)]);
    assert_eq!(makes_way(&cookies(0..7)), [name(6), name(5), name(4)]);
    // Invalid cookies are always cleared.
    assert_eq!(makes_way(&cookies(9..12)), [name(10), name(11)]);
    let junk = format!("{}junk=AAAA", cookies::ATTEMPT_COOKIE_PREFIX);
    assert_eq!(
        makes_way(&junk),
        [format!("{}junk", cookies::ATTEMPT_COOKIE_PREFIX)]
    );
}

/// All attempts of a browser fit into the header of a request with room for the rest of it.
#[actix_web::test]
async fn the_cookies_of_a_browser_are_bounded() {
    let registry = registry().await;
    let longest = SignInAttempt {
        next: format!("/{}", "a".repeat(MAX_NEXT_BYTES - 1)),
        secret: "s".repeat(43),
        issuer: "i".repeat(300),
        ..attempt(&registry, "one", 0)
    };
    let one = cookie(&longest.state, &sealed(&registry, &longest));
    assert!(
        one.len() * MAX_ATTEMPTS_PER_BROWSER < 7 * 1024,
        "{}",
        one.len()
    );
    assert_eq!(cookies::sign_in_attempt_cookies(&with(&one)).len(), 1);
}
