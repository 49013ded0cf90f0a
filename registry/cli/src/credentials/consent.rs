//! The user's consent to sign in at addresses that a card names.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use url::Url;

use crate::failure::Failure;
use crate::{confirm, terminal};

/// Most scopes that are shown.
const SHOWN_SCOPES: usize = 20;
/// Longest text of a card in the question, in columns.
const LONGEST: usize = 300;

/// What the user has agreed to for one agent.
pub(super) struct Consent {
    /// The agent, as the user named it.
    pub agent: String,
    /// The origin of its interface.
    pub origin: String,
    /// Origins that the user confirmed on the command line.
    pub given: Vec<String>,
    /// Addresses that were confirmed before.
    pub confirmed: BTreeSet<String>,
}

impl Consent {
    /// Makes sure that the user agrees to these addresses, and remembers them.
    ///
    /// # Errors
    /// Where the user does not agree, or there is no terminal to ask at.
    pub fn require(
        &mut self,
        addresses: &[(&str, &Url)],
        scopes: &[String],
    ) -> Result<(), Failure> {
        let new: Vec<_> = addresses
            .iter()
            .filter(|(_, url)| !self.is_confirmed(url))
            .copied()
            .collect();
        if !new.is_empty() {
            let input = std::io::stdin();
            if !input.is_terminal() {
                return Err(self.refusal(&new));
            }
            let question = self.question(&new, scopes);
            let agreed = confirm::agreed(&question, &mut input.lock(), &mut std::io::stderr());
            self.answered(agreed, &new)?;
        }
        let all = addresses.iter().map(|(_, url)| url.to_string());
        self.confirmed.extend(all);
        Ok(())
    }

    /// Makes sure that the user agrees to addresses that a confirmed document names: those at its own origin are
    /// confirmed with it.
    pub fn require_of(
        &mut self,
        document: &Url,
        addresses: &[(&str, &Url)],
        scopes: &[String],
    ) -> Result<(), Failure> {
        let own = |url: &Url| url.origin() == document.origin();
        let others: Vec<_> = addresses
            .iter()
            .filter(|(_, url)| !own(url))
            .copied()
            .collect();
        self.require(&others, scopes)?;
        let all = addresses.iter().map(|(_, url)| url.to_string());
        self.confirmed.extend(all);
        Ok(())
    }

    fn is_confirmed(&self, url: &Url) -> bool {
        let origin = url.origin().ascii_serialization();
        self.given.contains(&origin) || self.confirmed.contains(url.as_str())
    }

    fn answered(&self, agreed: std::io::Result<bool>, new: &[(&str, &Url)]) -> Result<(), Failure> {
        match agreed {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::No(format!(
                "nothing was sent to {}, because you did not agree",
                origins(new).join(" and ")
            ))),
            Err(error) => Err(Failure::new(format!("no answer can be read: {error}"))),
        }
    }

    /// The failure where nobody can be asked.
    fn refusal(&self, new: &[(&str, &Url)]) -> Failure {
        let origins = origins(new);
        let flags = origins
            .iter()
            .map(|origin| format!("--confirm-token-endpoint {origin}"));
        Failure::new(format!(
            "{} wants you to sign in at {}, which you have not confirmed, and there is no terminal to ask; \
             if you trust it, add {}",
            terminal::short(&self.agent, LONGEST),
            origins.join(" and "),
            flags.collect::<Vec<_>>().join(" ")
        ))
    }

    /// The question, with everything that the card says made visible.
    fn question(&self, new: &[(&str, &Url)], scopes: &[String]) -> String {
        let short = |text: &str| terminal::short(text, LONGEST);
        let mut lines = vec![format!(
            "The card of {} ({}) wants you to sign in at:",
            short(&self.agent),
            short(&self.origin)
        )];
        for (what, url) in new {
            lines.push(format!("  {what:<14} {}", short(url.as_str())));
        }
        let shown = scopes.iter().take(SHOWN_SCOPES).map(|scope| short(scope));
        let mut shown: Vec<_> = shown.collect();
        if scopes.len() > SHOWN_SCOPES {
            shown.push(format!("and {} more", scopes.len() - SHOWN_SCOPES));
        }
        if shown.is_empty() {
            shown.push("none named".to_owned());
        }
        lines.push(format!("  {:<14} {}", "scopes", shown.join(", ")));
        lines.push("Do you trust these addresses with your sign-in? [y/N] ".to_owned());
        lines.join("\n")
    }
}

/// The origins of addresses, each once.
fn origins(addresses: &[(&str, &Url)]) -> Vec<String> {
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

    fn consent(given: &[&str], confirmed: &[&str]) -> Consent {
        Consent {
            agent: "evil\u{1b}[2J\u{202e}agent".to_owned(),
            origin: "https://a.example".to_owned(),
            given: given.iter().map(|text| (*text).to_owned()).collect(),
            confirmed: confirmed.iter().map(|text| (*text).to_owned()).collect(),
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
        agreed.require_of(&document, &all, &[]).unwrap();
        assert!(
            agreed.confirmed.contains(own.as_str()) && agreed.confirmed.contains(other.as_str())
        );
    }

    #[test]
    fn the_question_shows_what_the_card_hides() {
        let token = url("https://xn--lgin-5qa.example/t");
        let scopes: Vec<String> = (0..30)
            .map(|nth| format!("s\u{1b}]0;{nth}\nscope"))
            .collect();
        let question = consent(&[], &[]).question(&[("token", &token)], &scopes);
        assert!(!question.contains(['\u{1b}', '\u{202e}']), "{question:?}");
        assert_eq!(question.lines().count(), 4, "{question}");
        assert!(
            question.contains("and 10 more") && question.contains("xn--lgin"),
            "{question}"
        );
        let Failure::Failed(line) = consent(&[], &[]).refusal(&[("token", &token)]) else {
            unreachable!("it is a failure");
        };
        assert!(
            line.ends_with("--confirm-token-endpoint https://xn--lgin-5qa.example"),
            "{line}"
        );
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
}
