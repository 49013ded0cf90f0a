//! Attempts to sign in with an identity provider. Each is sealed in a cookie of the browser that began it, so that no
//! client can displace another's attempts, and is valid for one session, whichever process receives its answer.

use std::sync::Arc;

use a2a_registry_domain::timestamp::MINUTE;
use a2a_registry_store::entity::used_attempt;
use a2a_registry_store::{Write, identities};
use actix_web::HttpRequest;
use actix_web::http::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::authentication::{hash, session_secret};
use crate::context::Context;
use crate::error::{AppError, ErrorKind, RefusalReason};
use crate::http::cookies;
use crate::providers::{Attempt, CodeAnswer, Holder, Provider, redirect_uri};

/// How long an attempt waits for its answer.
const LONGEST: i64 = 10 * MINUTE;
/// Pending attempts of one browser; the oldest makes way for a new one.
const PER_BROWSER: usize = 5;
/// Recorded attempts, that is, sign-ins with providers within ten minutes. Beyond that nobody signs in, because an
/// attempt without a record could be used again.
pub(crate) const MAX_USED: u64 = 20_000;
/// Bytes of the path to return to that are kept with an attempt, so that the cookies of all attempts fit into one
/// header.
const MAX_NEXT: usize = 512;
/// Characters of a state that name the cookie of its attempt.
const NAME: usize = 10;
/// What a cookie with an attempt is sealed for.
const PURPOSE: &str = "a2a-registry sign-in attempt";

#[derive(Debug, Serialize, Deserialize)]
struct SignInAttempt {
    /// What the provider hands back.
    state: String,
    /// The input for the nonce and the code verifier.
    secret: String,
    issuer: String,
    next: String,
    /// Microseconds since 1970-01-01, in UTC.
    begun_at: i64,
}

impl SignInAttempt {
    const fn has_expired(&self, now: i64) -> bool {
        now.saturating_sub(self.begun_at) >= LONGEST
    }

    fn shared(&self) -> Attempt<'_> {
        Attempt {
            secret: &self.secret,
            state: &self.state,
        }
    }
}

pub(super) struct NewAttempt {
    pub url: Url,
    pub cookies: Vec<HeaderValue>,
}

/// Proof that someone has signed in by an attempt. It is valid for one session.
#[derive(Debug, Clone)]
pub struct AnsweredAttempt {
    /// SHA-256 of the state, lower hex.
    pub state: String,
    pub issuer: String,
}

pub(super) struct ProviderSignIn {
    pub holder: Holder,
    pub attempt: AnsweredAttempt,
    pub next: String,
}

fn cookie_name(state: &str) -> Option<String> {
    Some(format!("{}{}", cookies::ATTEMPT, state.get(..NAME)?))
}

/// The attempt in a cookie, if the registry has sealed it.
fn open_attempt(context: &Context, sealed: &str) -> Option<SignInAttempt> {
    let text = context.sealer.open(PURPOSE, sealed)?;
    serde_json::from_slice(&text).ok()
}

pub(super) async fn attempt_begin(
    context: &Context,
    provider: &Provider,
    request: &HttpRequest,
    next: &str,
) -> Result<NewAttempt, AppError> {
    let now = context.now().0;
    let attempt = SignInAttempt {
        state: session_secret(context),
        secret: session_secret(context),
        issuer: provider.issuer().to_owned(),
        next: match next.len() <= MAX_NEXT {
            true => next.to_owned(),
            false => String::new(),
        },
        begun_at: now,
    };
    let back = redirect_uri(&context.config().public_url(), provider);
    let url = provider.authorization_url(&attempt.shared(), &back).await?;
    let sealed = serde_json::to_vec(&attempt)
        .ok()
        .and_then(|text| {
            let entropy = context.entropy.as_ref();
            context.sealer.seal(PURPOSE, &text, entropy)
        })
        .ok_or_else(|| AppError::internal("an attempt to sign in could not be sealed"))?;
    let seconds = u64::try_from(LONGEST / 1_000_000).unwrap_or_default();
    let set = cookie_name(&attempt.state)
        .and_then(|name| cookies::set_for(&name, &sealed, seconds))
        .into_iter();
    let cleared = attempts_to_clear(context, request, now);
    let cleared = cleared.iter().filter_map(|name| cookies::clear(name));
    Ok(NewAttempt {
        url,
        cookies: set.chain(cleared).collect(),
    })
}

/// The names of the cookies to clear for a new attempt: the oldest beyond the limit, and all invalid ones.
fn attempts_to_clear(context: &Context, request: &HttpRequest, now: i64) -> Vec<String> {
    let mut waiting = Vec::new();
    let mut names = Vec::new();
    for (name, sealed) in cookies::attempts(request) {
        match open_attempt(context, &sealed) {
            Some(attempt) if !attempt.has_expired(now) => waiting.push((attempt.begun_at, name)),
            _ => names.push(name),
        }
    }
    waiting.sort_unstable();
    let surplus = (waiting.len() + 1).saturating_sub(PER_BROWSER);
    names.extend(waiting.into_iter().take(surplus).map(|(_, name)| name));
    names
}

pub(super) fn clear_attempt(state: &str) -> Option<HeaderValue> {
    cookies::clear(&cookie_name(state)?)
}

/// An attempt that belongs to this browser.
pub(super) struct OwnAttempt(SignInAttempt);

/// The attempt of this browser that an answer is for.
pub(super) async fn attempt_of(
    context: &Context,
    provider: &Provider,
    request: &HttpRequest,
    answer: &CodeAnswer,
) -> Result<OwnAttempt, AppError> {
    let name = cookie_name(&answer.state).ok_or_else(no_attempt)?;
    let mut known = cookies::attempts(request).into_iter();
    let sealed = known.find(|(own, _)| *own == name);
    let attempt = sealed.and_then(|(_, sealed)| open_attempt(context, &sealed));
    let attempt = attempt.filter(|own| {
        own.state == answer.state
            && own.issuer == provider.issuer()
            && !own.has_expired(context.now().0)
    });
    let attempt = attempt.ok_or_else(no_attempt)?;
    // The provider would treat a repeated code as stolen. The record in `use_attempt` is what decides.
    if identities::attempt_is_used(&context.store, &hash(&attempt.state)).await? {
        return Err(no_attempt());
    }
    Ok(OwnAttempt(attempt))
}

pub(super) async fn attempt_finish(
    context: &Context,
    provider: &Arc<Provider>,
    attempt: OwnAttempt,
    answer: &CodeAnswer,
) -> Result<ProviderSignIn, AppError> {
    let OwnAttempt(attempt) = attempt;
    let back = redirect_uri(&context.config().public_url(), provider);
    let holder = provider
        .signed_in(&attempt.shared(), answer, &back)
        .await
        .map_err(|error| error.refused_by_provider(RefusalReason::ProviderAnswer))?;
    Ok(ProviderSignIn {
        holder,
        attempt: AnsweredAttempt {
            state: hash(&attempt.state),
            issuer: attempt.issuer,
        },
        next: attempt.next,
    })
}

/// Records that an attempt is used, in the transaction that begins its session. The caller has locked the accounts.
pub(super) async fn use_attempt(
    write: &Write,
    attempt: &AnsweredAttempt,
    now: i64,
) -> Result<(), AppError> {
    write.used_attempts_forget(now).await?;
    if identities::used_attempt_count(write).await? >= MAX_USED {
        return Err(AppError::unavailable(
            "Too many people have signed in within ten minutes. Sign in again in a few minutes.",
            60,
        ));
    }
    let row = used_attempt::Model {
        state: attempt.state.clone(),
        expires_at: now.saturating_add(LONGEST),
    };
    match write.used_attempt_insert(row).await? {
        true => Ok(()),
        false => Err(no_attempt()),
    }
}

pub(super) fn no_attempt() -> AppError {
    AppError::new(
        ErrorKind::Unauthenticated,
        "This sign-in was begun in another browser, took longer than ten minutes, or was finished already. Sign in again.",
    )
    .refused(RefusalReason::Attempt)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use actix_web::http::header::COOKIE;
    use actix_web::test::TestRequest;
    use data_encoding::BASE64URL_NOPAD;

    use super::*;
    use crate::tests::Registry;
    use crate::tests::provider_sign_in::registry;

    /// An attempt with the provider `corp`, begun so many microseconds ago.
    fn attempt(registry: &Registry, state: &str, age: i64) -> SignInAttempt {
        let provider = registry.context().providers.by_name("corp").unwrap();
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
            .seal(PURPOSE, &text, context.entropy.as_ref());
        sealed.unwrap()
    }

    fn cookie(state: &str, sealed: &str) -> String {
        format!("{}={sealed}", cookie_name(state).unwrap())
    }

    fn with(cookies: &str) -> HttpRequest {
        let request = TestRequest::default().insert_header((COOKIE, cookies));
        request.to_http_request()
    }

    async fn is_known(registry: &Registry, cookies: &str, state: &str) -> bool {
        let context = registry.context();
        let provider = context.providers.by_name("corp").unwrap();
        let answer: CodeAnswer = serde_html_form::from_str(&format!("state={state}")).unwrap();
        let known = attempt_of(context, provider, &with(cookies), &answer).await;
        known.is_ok()
    }

    #[actix_web::test]
    async fn an_answer_finds_the_attempt_of_its_own_browser_for_ten_minutes() {
        let registry = registry().await;
        let one = attempt(&registry, "one", 0);
        let two = attempt(&registry, "two", LONGEST - MINUTE);
        let (first, second) = (sealed(&registry, &one), sealed(&registry, &two));
        let both = [cookie(&one.state, &first), cookie(&two.state, &second)].join("; ");
        assert!(is_known(&registry, &both, &one.state).await);
        assert!(is_known(&registry, &both, &two.state).await);
        // Another answer, another browser, and cookies that the registry has not made like this.
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
        let late = attempt(&registry, "late", LONGEST);
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
        let makes_way = |cookies: &str| attempts_to_clear(context, &with(cookies), context.now().0);
        let name = |number: i64| cookie_name(&own(number).state).unwrap();
        assert_eq!(makes_way(""), [""; 0]);
        assert_eq!(makes_way(&cookies(0..4)), [""; 0]);
        assert_eq!(makes_way(&cookies(0..5)), [name(4)]);
        assert_eq!(makes_way(&cookies(0..7)), [name(6), name(5), name(4)]);
        // What is no good any more goes in any case.
        assert_eq!(makes_way(&cookies(9..12)), [name(10), name(11)]);
        let junk = format!("{}junk=AAAA", cookies::ATTEMPT);
        assert_eq!(makes_way(&junk), [format!("{}junk", cookies::ATTEMPT)]);
    }

    /// All attempts of a browser fit into the header of a request with room for the rest of it.
    #[actix_web::test]
    async fn the_cookies_of_a_browser_are_bounded() {
        let registry = registry().await;
        let longest = SignInAttempt {
            next: format!("/{}", "a".repeat(MAX_NEXT - 1)),
            secret: "s".repeat(43),
            issuer: "i".repeat(300),
            ..attempt(&registry, "one", 0)
        };
        let one = cookie(&longest.state, &sealed(&registry, &longest));
        assert!(one.len() * PER_BROWSER < 7 * 1024, "{}", one.len());
        assert_eq!(cookies::attempts(&with(&one)).len(), 1);
    }
}
