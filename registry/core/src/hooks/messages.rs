//! The messages that receivers get: `CloudEvents` as JSON, a text for services that accept what Slack accepts, or a
//! digest by mail.
//!
//! A message is thin: ids, kinds, times and links. Of what cards say only the name of an agent is in it, and only in
//! texts for people, made harmless.

use a2a_crawler::fetch::WebhookMessage;
use a2a_registry_domain::hook::{HookFormat, NoticeKind};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::hook;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::{AppError, Result};
use crate::hooks::sending::OutgoingMessage;
use crate::hooks::target::HookTarget;
use crate::mailer::Mail;
use crate::text::{LINE, single_line};

/// The prefix of the types of `CloudEvents`.
const TYPE_PREFIX: &str = "a2a-registry";
/// The media type of a `CloudEvents` event in structured mode.
const CLOUD_EVENTS_TYPE: &str = "application/cloudevents+json";
/// Maximum size of an answer that may hold the challenge.
const MAX_CHALLENGE_ANSWER: usize = 4_096;

/// Something to tell, independent of how it is told.
#[derive(Debug, Clone)]
pub struct Notice {
    pub kind: NoticeKind,
    /// The agent or the review.
    pub subject: String,
    pub agent: Option<Uuid>,
    pub at: Timestamp,
    /// The name of the agent, unless it disappeared.
    pub agent_name: Option<String>,
    /// The digest of its card, unless it disappeared.
    pub card_digest: Option<String>,
}

impl Notice {
    fn data(&self, public_url: &str) -> Value {
        let mut data = json!({"kind": self.kind});
        if let Some(agent) = self.agent {
            data["agent"] = json!(agent);
        }
        if self.kind == NoticeKind::AgentDisappeared {
            return data;
        }
        if let Some(digest) = &self.card_digest {
            data["card_digest"] = json!(digest);
        }
        let mut links = json!({"page": self.page_link(public_url)});
        if let Some(agent) = self.agent {
            links["agent"] = json!(format!("{public_url}/v1/agents/{agent}"));
        }
        if self.kind.is_for_curators() {
            data["review"] = json!(self.subject);
            links["review"] = json!(format!("{public_url}/v1/reviews/{}", self.subject));
        }
        data["links"] = links;
        data
    }

    fn page_link(&self, public_url: &str) -> String {
        match self.agent.filter(|_| !self.kind.is_for_curators()) {
            Some(agent) => format!("{public_url}/agents/{agent}/"),
            None => format!("{public_url}/reviews/{}", self.subject),
        }
    }

    /// The notice in a sentence for people, with a link if there is something to look at.
    fn to_sentence(&self, public_url: &str, escape: fn(&str) -> String) -> String {
        let name = self.agent_name.as_deref().map(escape);
        let name = name.unwrap_or_else(|| self.subject.clone());
        let says = match self.kind {
            NoticeKind::AgentAppeared => "appeared: it matches now.",
            NoticeKind::AgentChanged => "changed.",
            NoticeKind::AgentDisappeared => "disappeared.",
            NoticeKind::AgentHeld => "was put on hold.",
            NoticeKind::AgentHidden => "is hidden from some callers by policies.",
            NoticeKind::AgentSilent => "does not answer at its own address.",
            NoticeKind::CardUnreadable => "has a card that cannot be read any more.",
            NoticeKind::ReviewWaits => "waits for a review.",
            NoticeKind::ApprovalEnds => "has an approval that ends: a review waits.",
        };
        match self.kind {
            NoticeKind::AgentDisappeared => format!("Agent {name} {says}"),
            _ => format!("Agent {name} {says} {}", self.page_link(public_url)),
        }
    }
}

/// Text of others for Slack: its three control characters are escaped, so that it neither mentions anybody nor hides a
/// link, and hidden characters are made visible. Services that accept the same may read `@name` as a mention and
/// `[text](link)` as a link.
fn escape_for_slack(text: &str) -> String {
    single_line(text, LINE)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('@', "\u{ff20}")
        .replace("](", "] (")
}

/// Text of others for a mail: one line, whose URLs programs for mails do not make links.
fn escape_for_mail(text: &str) -> String {
    single_line(text, LINE).replace("://", ": //")
}

/// Where and how a message is sent.
#[derive(Debug, Clone, Copy)]
pub struct Addressee<'a> {
    pub hook: Uuid,
    pub target: &'a HookTarget,
    pub format: HookFormat,
    pub public_url: &'a str,
    pub now: Timestamp,
}

impl<'a> Addressee<'a> {
    pub fn new(
        row: &hook::Model,
        target: &'a HookTarget,
        public_url: &'a str,
        now: Timestamp,
    ) -> Self {
        let format = row.format.known_value();
        Self {
            hook: row.id,
            target,
            format: format.unwrap_or(HookFormat::CloudEvents),
            public_url,
            now,
        }
    }

    /// The message of notices: of one, signed, or of any number by mail.
    pub fn notices_message(&self, id: Uuid, notices: &[&Notice]) -> Result<OutgoingMessage> {
        let body = match (self.format, notices) {
            (HookFormat::CloudEvents, [notice, ..]) => cloud_event(
                self.public_url,
                (id, notice.kind.as_str()),
                (Some(&notice.subject), notice.at),
                &notice.data(self.public_url),
            ),
            (HookFormat::Slack, [notice, ..]) => {
                slack_body(&notice.to_sentence(self.public_url, escape_for_slack))
            }
            _ => {
                let lines = notices.iter().map(|notice| {
                    let sentence = notice.to_sentence(self.public_url, escape_for_mail);
                    format!("- {}: {sentence}", notice.at.to_readable())
                });
                let lines: Vec<String> = lines.collect();
                return Ok(self.mail(id, &lines.join("\n")));
            }
        };
        self.signed_message(id, &body, 0)
    }

    pub fn test_message(&self, id: Uuid) -> Result<OutgoingMessage> {
        let text = "This is a test of a hook of the agent registry.";
        let body = match self.format {
            HookFormat::CloudEvents => cloud_event(
                self.public_url,
                (id, "hook.test"),
                (None, self.now),
                &json!({"text": text}),
            ),
            HookFormat::Slack => slack_body(text),
            HookFormat::Mail => return Ok(self.mail(id, text)),
        };
        self.signed_message(id, &body, 0)
    }

    /// The first message, whose challenge the receiver returns, or its people enter in the registry.
    pub fn challenge_message(&self, id: Uuid) -> Result<OutgoingMessage> {
        let challenge = &self.target.challenge;
        let body = match self.format {
            HookFormat::CloudEvents => cloud_event(
                self.public_url,
                (id, "hook.challenge"),
                (None, self.now),
                &json!({"challenge": challenge}),
            ),
            HookFormat::Slack => slack_body(&format!(
                "A user of the agent registry {} wants to send notices here. To confirm, enter this code on its page \
                 Hooks: {challenge}",
                self.public_url
            )),
            HookFormat::Mail => {
                return Ok(self.mail(
                    id,
                    "A user of this registry wants to send notices about agents to this address. If you want them, \
                     confirm that on the page below. Otherwise nothing more is sent.",
                ));
            }
        };
        self.signed_message(id, &body, MAX_CHALLENGE_ANSWER)
    }

    /// A mail, with the link by which its reader confirms or ends such mails.
    fn mail(&self, id: Uuid, text: &str) -> OutgoingMessage {
        let (public_url, challenge) = (self.public_url, &self.target.challenge);
        let end_link = format!("{public_url}/mail/{}/{challenge}", self.hook);
        OutgoingMessage::Mail(Mail {
            id,
            at: self.now,
            subject: "Notices of the agent registry",
            text: format!(
                "{text}\n\n-- \nThe agent registry {public_url}\nConfirm or end these mails: {end_link}\n"
            ),
            end_link,
        })
    }

    fn signed_message(
        &self,
        id: Uuid,
        body: &Value,
        max_answer_bytes: usize,
    ) -> Result<OutgoingMessage> {
        let failure = |what: &str| AppError::internal(format!("a message was not {what}"));
        let body = serde_json::to_vec(body).map_err(|_| failure("written"))?;
        let id = id.to_string();
        let signature = self.target.sign_message(&id, self.now, &body);
        let seconds = self.now.0.div_euclid(1_000_000);
        Ok(OutgoingMessage::Webhook(WebhookMessage {
            media_type: match self.format {
                HookFormat::CloudEvents => CLOUD_EVENTS_TYPE,
                _ => "application/json",
            },
            body,
            headers: vec![
                ("webhook-id", id),
                ("webhook-timestamp", seconds.to_string()),
                (
                    "webhook-signature",
                    signature.ok_or_else(|| failure("signed"))?,
                ),
            ],
            max_answer_bytes,
        }))
    }
}

fn cloud_event(
    public_url: &str,
    (id, kind): (Uuid, &str),
    (subject, at): (Option<&String>, Timestamp),
    data: &Value,
) -> Value {
    let mut event = json!({
        "specversion": "1.0",
        "id": id,
        "source": public_url,
        "type": format!("{TYPE_PREFIX}.{kind}"),
        "time": at,
        "datacontenttype": "application/json",
        "data": data,
    });
    if let Some(subject) = subject {
        event["subject"] = json!(subject);
    }
    event
}

/// A body for incoming webhooks. Without markup, and without previews of what is linked.
fn slack_body(text: &str) -> Value {
    json!({"text": text, "mrkdwn": false, "unfurl_links": false, "unfurl_media": false})
}

/// Whether an answer returns the challenge: as the whole text, or as the member `challenge` of an object.
pub fn answer_returns_challenge(answer: &[u8], challenge: &str) -> bool {
    let member = |value: &Value| value.get("challenge")?.as_str().map(str::to_owned);
    let from_json = serde_json::from_slice(answer)
        .ok()
        .and_then(|value| member(&value));
    let text = from_json.unwrap_or_else(|| String::from_utf8_lossy(answer).into_owned());
    text.trim() == challenge
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::identifiers::SystemEntropy;
    use url::Url;

    use super::*;

    const AGENT: Uuid = Uuid::from_u128(7);

    fn notice(kind: NoticeKind, name: Option<&str>) -> Notice {
        Notice {
            kind,
            subject: AGENT.to_string(),
            agent: Some(AGENT),
            at: Timestamp(1_795_000_000_000_000),
            agent_name: name.map(str::to_owned),
            card_digest: name.map(|_| "sha256:1".to_owned()),
        }
    }

    fn body(format: HookFormat, notice: &Notice) -> Value {
        let url = Url::parse("https://a.example/hook").unwrap();
        let target = HookTarget::new(url, &SystemEntropy::default());
        let addressee = Addressee {
            hook: Uuid::from_u128(3),
            target: &target,
            format,
            public_url: "https://registry.example",
            now: notice.at,
        };
        let message = addressee.notices_message(Uuid::from_u128(9), &[notice]);
        match message.unwrap() {
            OutgoingMessage::Webhook(message) => serde_json::from_slice(&message.body).unwrap(),
            OutgoingMessage::Mail(mail) => json!(mail.text),
        }
    }

    #[test]
    fn an_event_is_thin() {
        let changed = notice(NoticeKind::AgentChanged, Some("Fernweh"));
        let body = body(HookFormat::CloudEvents, &changed);
        assert_eq!(body["type"], "a2a-registry.agent.changed");
        assert_eq!(body["id"], Uuid::from_u128(9).to_string());
        assert_eq!(body["time"], "2026-11-18T11:06:40Z");
        assert_eq!(body["data"]["card_digest"], "sha256:1");
        assert!(!body.to_string().contains("Fernweh"), "{body}");
    }

    #[test]
    fn what_disappeared_leaves_its_id_and_the_time() {
        let gone = notice(NoticeKind::AgentDisappeared, None);
        let event = body(HookFormat::CloudEvents, &gone);
        let data = json!({"kind": "agent.disappeared", "agent": AGENT});
        assert_eq!(event["data"], data);
        let text = body(HookFormat::Slack, &gone)["text"].to_string();
        assert_eq!(text, format!("\"Agent {AGENT} disappeared.\""));
    }

    #[test]
    fn text_of_a_card_neither_mentions_nor_links_in_slack() {
        let hostile = "<!channel> <https://evil.example|here> & *bold*\n\u{202e}x @all [here](https://evil.example)";
        let text = body(
            HookFormat::Slack,
            &notice(NoticeKind::AgentAppeared, Some(hostile)),
        );
        let text = text["text"].as_str().unwrap();
        assert!(text.contains("&lt;!channel&gt; &lt;https://evil.example|here&gt; &amp;"));
        assert!(!text.contains(['<', '>', '\n', '\u{202e}', '@']), "{text}");
        assert!(!text.contains("]("), "{text}");
    }

    #[test]
    fn text_of_a_card_stays_in_its_line_of_a_mail() {
        let hostile = "x\r\n.\r\nSubject: y https://evil.example \u{202e}";
        let appeared = notice(NoticeKind::AgentAppeared, Some(hostile));
        let text = body(HookFormat::Mail, &appeared);
        let first = text.as_str().unwrap().lines().next().unwrap();
        let page = format!("https://registry.example/agents/{AGENT}/");
        assert!(first.starts_with("- 2026-11-18 11:06:40 UTC: Agent x "));
        assert!(first.ends_with(&format!("appeared: it matches now. {page}")));
        assert!(!first.contains("https://evil.example"), "{first}");
        assert!(!first.contains('\u{202e}'), "{first}");
    }

    #[test]
    fn a_challenge_is_returned_as_text_or_member() {
        for answer in ["abc", " abc\n", r#"{"challenge": "abc", "more": 1}"#] {
            assert!(
                answer_returns_challenge(answer.as_bytes(), "abc"),
                "{answer}"
            );
        }
        for answer in ["", "ok", "\"abc\"", r#"{"challenge": "x"}"#, "abcd"] {
            assert!(
                !answer_returns_challenge(answer.as_bytes(), "abc"),
                "{answer}"
            );
        }
    }
}
