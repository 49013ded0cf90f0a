//! Sends mails over SMTP through the server of `[mail]`: plain texts to one address each, with a link that ends them.

use std::time::{Duration, SystemTime};

use a2a_registry_domain::timestamp::Timestamp;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use time::OffsetDateTime;
use url::Url;
use uuid::Uuid;

use crate::config::{Config, MailTls, read_root_certificates, read_secret_file};
use crate::error::StartError;

/// How long the server may take for one mail.
const MAX_SENDING_TIME: Duration = Duration::from_secs(15);
/// What an address may have in it beside letters and digits: nothing that a header, a link or a command of SMTP gives
/// another meaning.
const ADDRESS_PUNCTUATION: &[u8] = b"@.!$&'*+-=^_{|}~";

/// A mail to one reader.
#[derive(Debug)]
pub struct Mail {
    pub id: Uuid,
    pub at: Timestamp,
    /// Never a text of others.
    pub subject: &'static str,
    pub text: String,
    /// The link that ends these mails, by one POST without a session (RFC 8058).
    pub end_link: String,
}

/// Why a mail was not sent. What the server says is left out: it may quote the address.
#[derive(Debug)]
pub struct MailFailure {
    /// The status of the server's answer.
    pub status: Option<u16>,
    pub error: String,
}

impl MailFailure {
    fn new(error: impl Into<String>) -> Self {
        Self {
            status: None,
            error: error.into(),
        }
    }
}

impl From<SmtpError> for MailFailure {
    fn from(error: SmtpError) -> Self {
        match error.status() {
            Some(code) => Self {
                status: Some(code.into()),
                error: format!("the mail server answered with {code}"),
            },
            None if error.is_response() => Self::new("the mail server does not speak SMTP"),
            None => Self::new(format!("the mail server cannot be used: {error}")),
        }
    }
}

#[derive(Debug)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    sender: Mailbox,
    /// The host of the public URL, in the identifiers of mails.
    host: String,
}

impl Mailer {
    /// The mailer of a configuration; `None` if it names no server.
    pub fn from_config(config: &Config) -> Result<Option<Self>, StartError> {
        let mail = &config.mail;
        let Some(sender) = mail.sender().filter(|_| !mail.host.is_empty()) else {
            return Ok(None);
        };
        let url = Url::parse(&config.public_url()).ok();
        let host = url.and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_else(|| "localhost".to_owned());
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&mail.host)
            .port(mail.port)
            .tls(tls_mode(config)?)
            .hello_name(ClientId::Domain(host.clone()));
        if let Some(file) = &mail.password_file {
            let password = read_secret_file("mail.password_file", file).map_err(StartError)?;
            builder = builder.credentials(Credentials::new(mail.username.clone(), password));
        }
        Ok(Some(Self {
            transport: builder.build(),
            sender,
            host,
        }))
    }

    /// Sends a mail; returns the status of the server's answer.
    pub async fn send(&self, address: &str, mail: Mail) -> Result<u16, MailFailure> {
        let message = self.build_message(address, mail);
        let message = message.ok_or_else(|| MailFailure::new("the mail could not be written"))?;
        match tokio::time::timeout(MAX_SENDING_TIME, self.transport.send(message)).await {
            Ok(sent) => Ok(sent?.code().into()),
            Err(_) => Err(MailFailure::new("the mail server took too long")),
        }
    }

    fn build_message(&self, address: &str, mail: Mail) -> Option<Message> {
        let header = |name: &'static str, value: String| {
            HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
        };
        let builder = Message::builder()
            .from(self.sender.clone())
            .to(Mailbox::new(None, address.parse().ok()?))
            .subject(mail.subject)
            .date(SystemTime::from(OffsetDateTime::from(mail.at)))
            .message_id(Some(format!("<{}@{}>", mail.id, self.host)))
            .raw_header(header("List-Unsubscribe", format!("<{}>", mail.end_link)))
            .raw_header(header(
                "List-Unsubscribe-Post",
                "List-Unsubscribe=One-Click".to_owned(),
            ))
            // No program answers, such as a notice of absence.
            .raw_header(header("Auto-Submitted", "auto-generated".to_owned()));
        builder.singlepart(SinglePart::plain(mail.text)).ok()
    }
}

fn tls_mode(config: &Config) -> Result<Tls, StartError> {
    let mail = &config.mail;
    if mail.tls == MailTls::None {
        return Ok(Tls::None);
    }
    let setting_error = |error: String| StartError(format!("mail.{error}"));
    let mut parameters = TlsParameters::builder(mail.host.clone());
    for pem in read_root_certificates(&mail.extra_ca).map_err(setting_error)? {
        let certificate = Certificate::from_pem(&pem);
        let certificate =
            certificate.map_err(|error| setting_error(format!("extra_ca: {error}")))?;
        parameters = parameters.add_root_certificate(certificate);
    }
    let parameters = parameters.build();
    let parameters = parameters.map_err(|error| setting_error(format!("extra_ca: {error}")))?;
    Ok(match mail.tls {
        MailTls::Implicit => Tls::Wrapper(parameters),
        _ => Tls::Required(parameters),
    })
}

/// Whether mails can be sent to this address.
pub fn is_mail_address(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || ADDRESS_PUNCTUATION.contains(&byte);
    text.bytes().all(is_plain) && text.parse::<Address>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_is_one_reader_and_nothing_else() {
        for good in ["ann@example.com", "a.n+agents@mail.example.co.uk"] {
            assert!(is_mail_address(good), "{good}");
        }
        for bad in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@example.com, bob@example.com",
            "ann@example.com?bcc=bob@example.com",
            "ann@example.com#x",
            "ann@example.com\r\nBcc: bob@example.com",
            "Ann <ann@example.com>",
            "\"a b\"@example.com",
            "änn@example.com",
            "ann%0d@example.com",
            "//ann@example.com",
            "/./ann@example.com",
        ] {
            assert!(!is_mail_address(bad), "{bad}");
        }
    }

    #[test]
    fn a_mail_is_plain_text_with_a_link_that_ends_them() {
        let mut config = Config::default();
        config.server.public_url = "https://registry.example".into();
        config.mail.host = "smtp.example.com".into();
        config.mail.from = "Registry <registry@example.com>".into();
        config.mail.tls = MailTls::None;
        let mailer = Mailer::from_config(&config).unwrap().unwrap();
        let mail = Mail {
            id: Uuid::from_u128(7),
            at: Timestamp(1_795_000_000_000_000),
            subject: "Notices",
            text: "One.\r\n\r\n.\r\nTwo \u{fc}.".to_owned(),
            end_link: "https://registry.example/mail/1/2".to_owned(),
        };
        let message = mailer.build_message("ann@example.com", mail).unwrap();
        let text = String::from_utf8(message.formatted()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        for line in [
            "From: Registry <registry@example.com>",
            "To: ann@example.com",
            "Subject: Notices",
            "Date: Wed, 18 Nov 2026 11:06:40 +0000",
            "Message-ID: <00000000-0000-0000-0000-000000000007@registry.example>",
            "List-Unsubscribe: <https://registry.example/mail/1/2>",
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=utf-8",
        ] {
            assert!(head.lines().any(|one| one == line), "{line}: {head}");
        }
        // A text with other characters than ASCII is encoded as base64.
        let body: String = body.split_whitespace().collect();
        let body = data_encoding::BASE64.decode(body.as_bytes()).unwrap();
        assert!(body.starts_with(b"One."), "{body:?}");
        config.mail.host = String::new();
        assert!(Mailer::from_config(&config).unwrap().is_none());
    }
}
