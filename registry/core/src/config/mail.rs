//! `[mail]`: the server through which mails are sent.

use std::path::PathBuf;

use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};

use crate::config::section::section;

section! {
    /// `[mail]`: notices by mail, off unless a host is set.
    pub struct MailConfig {
        /// Name of the SMTP server that takes the mails, such as `smtp.example.com`. Empty: no mails are sent.
        pub host: String,
        /// Port of the server: usually 587 with `starttls`, and 465 with `implicit`. From 1 to 65535.
        pub port: u16 = 587,
        /// Encryption of the connection: "starttls" (a server that does not offer it gets nothing), "implicit" (from
        /// the first byte), or "none" for a server on the same machine.
        pub tls: MailTls = MailTls::StartTls,
        /// The sender of the mails, such as `Agent registry <registry@example.com>`.
        pub from: String,
        /// User name at the server. Empty: mails are sent without signing in.
        pub username: String,
        /// A file with the password of the user, read at start.
        pub password_file: Option<PathBuf>,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailTls {
    StartTls,
    Implicit,
    None,
}

impl MailConfig {
    pub fn sender(&self) -> Option<Mailbox> {
        self.from.parse().ok()
    }

    pub fn validation_errors(&self) -> Vec<String> {
        let has_user = !self.username.is_empty();
        let faults = [
            (
                self.sender().is_none(),
                "mail.from must be an address, such as Agent registry <registry@example.com>",
            ),
            (
                has_user != self.password_file.is_some(),
                "mail.username and mail.password_file must be set together",
            ),
            (
                has_user && self.tls == MailTls::None,
                "mail.username must not be set with mail.tls = \"none\": the password would be sent in the clear",
            ),
        ];
        let faults = faults.into_iter().filter(|_| !self.host.is_empty());
        let port = (self.port == 0, "mail.port must be between 1 and 65535");
        faults
            .chain([port])
            .filter(|(is_fault, _)| *is_fault)
            .map(|(_, text)| text.to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_server_needs_a_sender_and_a_password_is_encrypted() {
        let on = "host = \"smtp.example.com\"\nfrom = \"Registry <r@example.com>\"\n";
        let user = "username = \"u\"\npassword_file = \"p\"\n";
        for (text, fault) in [
            (String::new(), None),
            (on.to_owned(), None),
            (format!("{on}{user}"), None),
            ("host = \"smtp.example.com\"".to_owned(), Some("mail.from ")),
            (format!("{on}port = 0"), Some("mail.port ")),
            (format!("{on}username = \"u\""), Some("mail.username and ")),
            (
                format!("{on}{user}tls = \"none\""),
                Some("mail.username must not "),
            ),
            (format!("{on}tls = \"none\""), None),
        ] {
            let config: MailConfig = toml::from_str(&text).unwrap();
            let errors = config.validation_errors();
            assert_eq!(errors.len(), usize::from(fault.is_some()), "{errors:?}");
            assert!(errors.iter().all(|error| error.starts_with(fault.unwrap())));
        }
    }
}
