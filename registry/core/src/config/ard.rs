//! `[ard]`: discovery by ARD.

use a2a_crawler::catalog::is_publisher_domain;

use crate::config::section::section;

section! {
    #[derive(PartialEq, Eq)]
    pub struct ArdConfig {
        /// Whether the catalog and the API of ARD are served; otherwise they return 404, and no page links to them.
        pub enabled: bool = true,
        /// Whether representative queries are derived from an agent's skills if its card has fewer than two examples.
        /// If not, a curator may still allow that for single agents.
        pub derive_queries: bool,
        /// The company's domain under which agents whose host cannot be proved get a URN, once an admin vouches for
        /// the host: a lower-case host name with a dot, such as `agents.corp.example`. It must belong to the company,
        /// because these URNs are permanent, and no account but an admin's can prove it. Empty for none.
        pub authority: String,
    }
}

impl ArdConfig {
    pub fn validation_errors(&self) -> Vec<String> {
        if self.authority.is_empty() || is_publisher_domain(&self.authority) {
            return Vec::new();
        }
        vec![format!(
            "ard.authority must be a lower-case host name with a dot, such as agents.corp.example, without scheme, \
             port and path, not \"{}\"",
            self.authority
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_lower_case_host_name() {
        let errors = |authority: &str| {
            let section = ArdConfig {
                authority: authority.to_owned(),
                ..ArdConfig::default()
            };
            section.validation_errors().len()
        };
        let longest_label = "a".repeat(63);
        for valid in ["", "agents.corp.example", "a.b", "xn--bcher-kva.example"] {
            assert_eq!(errors(valid), 0, "{valid}");
        }
        assert_eq!(errors(&format!("{longest_label}.example")), 0);
        for invalid in [
            "agents",
            "localhost",
            "Agents.corp.example",
            "agents.corp.example.",
            "agents.corp.example:443",
            "https://agents.corp.example",
            "agents.corp.example/x",
            "agents..example",
            "-a.example",
            "bücher.example",
            "10.0.0.5",
            "[fd00::1]",
            " agents.corp.example",
            "agents.corp.example\n",
            "did:web:agents.corp.example",
        ] {
            assert_eq!(errors(invalid), 1, "{invalid}");
        }
        assert_eq!(errors(&format!("{longest_label}a.example")), 1);
        assert_eq!(errors(&["abcdefg"; 33].join(".")), 1, "263 characters");
    }
}
