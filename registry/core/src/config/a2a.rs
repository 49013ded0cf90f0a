//! `[a2a]`: the registry as an A2A agent.

use std::path::PathBuf;

use crate::config::section::section;

const MAX_KEY_FILES: usize = 16;
/// Maximum length of a text on the card, in characters.
const MAX_TEXT_CHARS: usize = 2000;

section! {
    /// `[a2a]`: the registry as an agent: its card, the key that signs it, and the tasks it keeps.
    pub struct A2aConfig {
        /// Whether the registry itself is served as an A2A agent. If not, its card and its endpoints return 404.
        pub enabled: bool = true,
        /// Whether A2A 0.3 clients are served too: with the members that they need in the card, which the published
        /// schema of 1.0 does not define, and with the methods of 0.3.
        pub serve_0_3: bool = true,
        /// Name on the card, of at most 2000 characters like the next two. Empty: `Agent registry at` and the host.
        pub name: String,
        /// Description on the card. Empty: one that says what the skills do.
        pub description: String,
        /// Organisation on the card. Empty: none.
        pub provider: String,
        /// Website of the organisation. Empty: the registry's own.
        pub provider_url: String,
        /// The private key that signs the card: PKCS#8 as PEM or DER, or a JWK. If absent, a key that the registry
        /// generates at its first start and keeps in the database.
        pub key_file: Option<PathBuf>,
        /// The key's identifier in signatures. Empty: that of the JWK, or else the key's RFC 7638 thumbprint.
        pub kid: String,
        /// Private key files that were used before: their public keys stay published. At most 16.
        pub old_key_files: Vec<PathBuf>,
        /// Hours after which a task is deleted. From 1 to 8760.
        pub task_hours: u32 = 24,
        /// Tasks kept for one account; another one replaces the oldest. From 1 to 1000000.
        pub tasks_per_account: u32 = 200,
        /// Tasks kept for the clients without an account at one address, or in one IPv6 /64 network; a further task
        /// replaces their oldest. From 1 to 1000000.
        pub anonymous_tasks_per_address: u32 = 200,
        /// Tasks kept for all clients without an account together; another one replaces the oldest of the address that
        /// has most. From 1 to 1000000.
        pub anonymous_tasks: u32 = 2000,
        /// Tasks kept in all, beyond which the hourly housekeeping deletes the oldest. From 1 to 1000000.
        pub tasks: u32 = 50_000,
    }
}

impl A2aConfig {
    /// Validation errors, one sentence each. Key files are not read yet.
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut push_error = |text: String| errors.push(format!("a2a.{text}"));
        for (name, text) in [
            ("name", &self.name),
            ("description", &self.description),
            ("provider", &self.provider),
            ("kid", &self.kid),
        ] {
            if text.chars().count() > MAX_TEXT_CHARS {
                push_error(format!(
                    "{name} must have at most {MAX_TEXT_CHARS} characters"
                ));
            }
        }
        let site = &self.provider_url;
        let is_web = site.starts_with("https://") || site.starts_with("http://");
        if !is_web && !site.is_empty() {
            push_error("provider_url must begin with https:// or http://".into());
        }
        if self.old_key_files.len() > MAX_KEY_FILES {
            push_error(format!(
                "old_key_files must name at most {MAX_KEY_FILES} files"
            ));
        }
        if !(1..=24 * 365).contains(&self.task_hours) {
            push_error("task_hours must be between 1 and 8760".into());
        }
        for (name, number) in [
            ("tasks_per_account", self.tasks_per_account),
            (
                "anonymous_tasks_per_address",
                self.anonymous_tasks_per_address,
            ),
            ("anonymous_tasks", self.anonymous_tasks),
            ("tasks", self.tasks),
        ] {
            if !(1..=1_000_000).contains(&number) {
                push_error(format!("{name} must be between 1 and 1000000"));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the default.
    type Change = fn(&mut A2aConfig);

    fn mistakes(change: impl FnOnce(&mut A2aConfig)) -> Vec<String> {
        let mut config = A2aConfig::default();
        change(&mut config);
        config.validation_errors()
    }

    #[test]
    fn what_is_at_a_bound_is_right_and_beyond_it_wrong() {
        assert_eq!(mistakes(|_| ()), Vec::<String>::new());
        let right: [Change; 4] = [
            |config| config.name = "é".repeat(MAX_TEXT_CHARS),
            |config| config.old_key_files = vec![PathBuf::from("key.pem"); MAX_KEY_FILES],
            |config| config.task_hours = 8760,
            |config| config.provider_url = "https://example.com/".into(),
        ];
        for change in right {
            assert_eq!(mistakes(change), Vec::<String>::new());
        }
        let wrong: [(Change, &str); 8] = [
            (
                |config| config.name = "é".repeat(MAX_TEXT_CHARS + 1),
                "a2a.name ",
            ),
            (
                |config| config.old_key_files = vec![PathBuf::from("k"); MAX_KEY_FILES + 1],
                "a2a.old_key_files ",
            ),
            (|config| config.task_hours = 0, "a2a.task_hours "),
            (|config| config.task_hours = 8761, "a2a.task_hours "),
            (
                |config| config.tasks_per_account = 0,
                "a2a.tasks_per_account ",
            ),
            (
                |config| config.anonymous_tasks_per_address = 0,
                "a2a.anonymous_tasks_per_address ",
            ),
            (|config| config.tasks = 1_000_001, "a2a.tasks "),
            (
                |config| config.provider_url = "example.com".into(),
                "a2a.provider_url ",
            ),
        ];
        for (change, beginning) in wrong {
            let found = mistakes(change);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(beginning), "{found:?}");
        }
    }
}
