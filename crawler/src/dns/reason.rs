//! Reasons why a name server failed: the extended error beside a SERVFAIL (RFC 8914).
//!
//! A server that checks DNSSEC responds with SERVFAIL to a query for a forged name, as it does when it is itself in
//! trouble, and tells the two apart in an extended error. The resolver library drops it, so our own code sends the
//! query once more, over UDP, to the configured servers.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::proto::op::{Edns, Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::net::UdpSocket;

use crate::fetch::visible;

/// Option code of an extended error (RFC 8914 section 2).
const EXTENDED_ERROR: u16 = 15;
/// Largest response accepted, and announced as such.
const PAYLOAD: u16 = 1232;
const MAX_SERVERS: usize = 2;

/// The DNSSEC reason for which one of the name servers fails this query, if one reports it within `timeout` each.
pub(super) async fn of_failure(
    servers: &[SocketAddr],
    name: &Name,
    kind: RecordType,
    timeout: Duration,
) -> Option<String> {
    for server in servers.iter().take(MAX_SERVERS) {
        if let Ok(Some(message)) = tokio::time::timeout(timeout, ask(*server, name, kind)).await
            && let Some(reason) = dnssec_reason(&message)
        {
            return Some(reason);
        }
    }
    None
}

async fn ask(server: SocketAddr, name: &Name, kind: RecordType) -> Option<Message> {
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD);
    let mut question = Message::query();
    question.metadata.recursion_desired = true;
    question.add_query(Query::query(name.clone(), kind));
    question.set_edns(edns);
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(&question.to_vec().ok()?).await.ok()?;
    let mut buffer = [0; PAYLOAD as usize];
    loop {
        let length = socket.recv(&mut buffer).await.ok()?;
        // A response to another query is ignored.
        if let Ok(message) = Message::from_vec(buffer.get(..length)?)
            && message.id == question.id
            && message.queries == question.queries
        {
            return Some(message);
        }
    }
}

/// The DNSSEC reason in a SERVFAIL response, in words.
fn dnssec_reason(message: &Message) -> Option<String> {
    if message.response_code != ResponseCode::ServFail {
        return None;
    }
    let options = message.edns.as_ref()?.options();
    let errors = options.get_all(EdnsCode::from(EXTENDED_ERROR));
    errors.into_iter().find_map(|option| {
        let EdnsOption::Unknown(_, data) = option else {
            return None;
        };
        let (code, text) = data.split_at_checked(2)?;
        let meaning = meaning(u16::from_be_bytes(code.try_into().ok()?))?;
        let text = visible(String::from_utf8_lossy(text).trim(), 100);
        Some(if text.is_empty() {
            meaning.to_owned()
        } else {
            format!("{meaning} ({text})")
        })
    })
}

/// The codes of RFC 8914 section 4 that report failed validation.
const fn meaning(code: u16) -> Option<&'static str> {
    Some(match code {
        6 => "the answer does not pass DNSSEC validation",
        7 => "a DNSSEC signature has expired",
        8 => "a DNSSEC signature is not valid yet",
        9 => "a DNSSEC key is missing",
        10 => "a DNSSEC signature is missing",
        11 => "a DNSSEC key is not a zone key",
        12 => "the DNSSEC proof of absence is missing",
        _ => return None,
    })
}
