//! The user's consent to sign in at addresses that a card names.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use url::Url;

use crate::command_error::CommandError;
use crate::{confirm, terminal};

/// Number of scopes shown.
const MAX_LISTED_SCOPES: usize = 20;
/// Maximum length of a card's text in the prompt, in columns.
const MAX_TEXT_COLUMNS: usize = 300;

/// Addresses that the user has agreed to for one agent.
pub(super) struct SignInConsent {
    /// The agent, as the user named it.
    pub agent: String,
    /// The origin of its interface.
    pub origin: String,
    /// Origins that the user confirmed on the command line.
    pub preconfirmed_origins: Vec<String>,
    /// Addresses that were confirmed earlier.
    pub confirmed_urls: BTreeSet<String>,
}

impl SignInConsent {
    /// Requires the user's consent to these addresses, and remembers it.
    ///
    /// # Errors
    /// If the user does not agree, or there is no terminal for the prompt.
    pub fn require(
        &mut self,
        addresses: &[(&str, &Url)],
        scopes: &[String],
    ) -> Result<(), CommandError> {
        let unconfirmed: Vec<_> = addresses
            .iter()
            .filter(|(_, url)| !self.is_confirmed(url))
            .copied()
            .collect();
        if !unconfirmed.is_empty() {
            let input = std::io::stdin();
            if !input.is_terminal() {
                return Err(self.no_terminal_error(&unconfirmed));
            }
            let question = self.prompt_text(&unconfirmed, scopes);
            let agreed =
                confirm::prompt_yes_no(&question, &mut input.lock(), &mut std::io::stderr());
            self.check_answer(agreed, &unconfirmed)?;
        }
        let all = addresses.iter().map(|(_, url)| url.to_string());
        self.confirmed_urls.extend(all);
        Ok(())
    }

    /// Requires consent to addresses that a confirmed document names. Those at its own origin are confirmed with it.
    pub fn require_for_document_addresses(
        &mut self,
        document: &Url,
        addresses: &[(&str, &Url)],
        scopes: &[String],
    ) -> Result<(), CommandError> {
        let own = |url: &Url| url.origin() == document.origin();
        let other_origins: Vec<_> = addresses
            .iter()
            .filter(|(_, url)| !own(url))
            .copied()
            .collect();
        self.require(&other_origins, scopes)?;
        let all = addresses.iter().map(|(_, url)| url.to_string());
        self.confirmed_urls.extend(all);
        Ok(())
    }

    fn is_confirmed(&self, url: &Url) -> bool {
        let origin = url.origin().ascii_serialization();
        self.preconfirmed_origins.contains(&origin) || self.confirmed_urls.contains(url.as_str())
    }

    fn check_answer(
        &self,
        agreed: std::io::Result<bool>,
        unconfirmed: &[(&str, &Url)],
    ) -> Result<(), CommandError> {
        match agreed {
            Ok(true) => Ok(()),
            Ok(false) => Err(CommandError::Negative(format!(
                "nothing was sent to {}, because you did not agree",
                distinct_origins(unconfirmed).join(" and ")
            ))),
            Err(error) => Err(CommandError::new(format!(
                "the answer cannot be read: {error}"
            ))),
        }
    }

    /// Error if there is no terminal for the prompt.
    fn no_terminal_error(&self, unconfirmed: &[(&str, &Url)]) -> CommandError {
        let origins = distinct_origins(unconfirmed);
        let flags = origins
            .iter()
            .map(|origin| format!("--confirm-token-endpoint {origin}"));
        CommandError::new(format!(
            "{} wants you to sign in at {}, which you have not confirmed, and there is no terminal to ask; \
             if you trust it, add {}",
            terminal::escape_and_truncate(&self.agent, MAX_TEXT_COLUMNS),
            origins.join(" and "),
            flags.collect::<Vec<_>>().join(" ")
        ))
    }

    /// Text of the prompt, with invisible characters of the card escaped.
    fn prompt_text(&self, unconfirmed: &[(&str, &Url)], scopes: &[String]) -> String {
        let shorten = |text: &str| terminal::escape_and_truncate(text, MAX_TEXT_COLUMNS);
        let mut lines = vec![format!(
            "The card of {} ({}) wants you to sign in at:",
            shorten(&self.agent),
            shorten(&self.origin)
        )];
        for (what, url) in unconfirmed {
            lines.push(format!("  {what:<14} {}", shorten(url.as_str())));
        }
        let shown = scopes
            .iter()
            .take(MAX_LISTED_SCOPES)
            .map(|scope| shorten(scope));
        let mut listed_scopes: Vec<_> = shown.collect();
        if scopes.len() > MAX_LISTED_SCOPES {
            listed_scopes.push(format!("and {} more", scopes.len() - MAX_LISTED_SCOPES));
        }
        if listed_scopes.is_empty() {
            listed_scopes.push("none named".to_owned());
        }
        lines.push(format!("  {:<14} {}", "scopes", listed_scopes.join(", ")));
        lines.push("Do you trust these addresses with your sign-in? [y/N] ".to_owned());
        lines.join("\n")
    }
}

/// Origins of addresses, each once.
fn distinct_origins(addresses: &[(&str, &Url)]) -> Vec<String> {
    let mut origins: Vec<String> = Vec::new();
    for (_, url) in addresses {
        let origin = url.origin().ascii_serialization();
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn consent(given: &[&str], confirmed: &[&str]) -> SignInConsent {
        SignInConsent {
            agent: "evil\u{1b}[2J\u{202e}agent".to_owned(),
            origin: "https://a.example".to_owned(),
            preconfirmed_origins: given.iter().map(|text| (*text).to_owned()).collect(),
            confirmed_urls: confirmed.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_confirmed_as_it_is_and_an_origin_with_all_its_addresses() {
        let token = url("https://l.example/t");
        let remembered = consent(&[], &["https://l.example/t"]);
        let given = consent(&["https://l.example"], &[]);
        assert!(remembered.is_confirmed(&token) && given.is_confirmed(&token));
        assert!(given.is_confirmed(&url("https://l.example/u")));
        for other in [
            "https://l.example/u",
            "https://l.example/t?x",
            "https://l.example:8443/t",
            "https://m.example/t",
            "http://l.example/t",
        ] {
            assert!(!remembered.is_confirmed(&url(other)), "{other}");
        }
        for other in [
            "https://l.example:8443/t",
            "https://l.example.evil.example/t",
        ] {
            assert!(!given.is_confirmed(&url(other)), "{other}");
        }
    }

    #[test]
    fn what_a_document_names_at_its_own_origin_is_confirmed_with_it() {
        let document = url("https://l.example/.well-known/openid-configuration");
        let (own, other) = (url("https://l.example/t"), url("https://m.example/t"));
        let mut agreed = consent(&["https://m.example"], &[document.as_str()]);
        let all = [("token", &own), ("device", &other)];
        agreed
            .require_for_document_addresses(&document, &all, &[])
            .unwrap();
        assert!(
            agreed.confirmed_urls.contains(own.as_str())
                && agreed.confirmed_urls.contains(other.as_str())
        );
    }

    #[test]
    fn the_question_shows_what_the_card_hides() {
        let token = url("https://xn--lgin-5qa.example/t");
        let scopes: Vec<String> = (0..30)
            .map(|nth| format!("s\u{1b}]0;{nth}\nscope"))
            .collect();
        let question = consent(&[], &[]).prompt_text(&[("token", &token)], &scopes);
        assert!(!question.contains(['\u{1b}', '\u{202e}']), "{question:?}");
        assert_eq!(question.lines().count(), 4, "{question}");
        assert!(
            question.contains("and 10 more") && question.contains("xn--lgin"),
            "{question}"
        );
        let CommandError::Failed(line) = consent(&[], &[]).no_terminal_error(&[("token", &token)])
        else {
            unreachable!("it is a failure");
        };
        assert!(
            line.ends_with("--confirm-token-endpoint https://xn--lgin-5qa.example"),
            "{line}"
        );
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
}
