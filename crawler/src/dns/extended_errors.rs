//! Reasons why a name server failed: the extended error that accompanies a SERVFAIL (RFC 8914).
//!
//! A validating name server responds with SERVFAIL both to a query for a forged name and when it is itself failing,
//! and distinguishes the two in an extended error. The resolver library drops that error, so this module sends the
//! query once more, over UDP, to the configured servers.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::proto::op::{Edns, Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::net::UdpSocket;

use crate::foreign_text::escape_invisible;

/// Option code of an extended error (RFC 8914 section 2).
const EXTENDED_ERROR_OPTION: u16 = 15;
/// Maximum size of a response, announced in the query.
const MAX_UDP_PAYLOAD: u16 = 1232;
const MAX_SERVERS: usize = 2;

/// The DNSSEC reason for which a name server fails this query, if one of them reports it within `timeout` each.
pub(super) async fn find_dnssec_failure(
    servers: &[SocketAddr],
    name: &Name,
    record_type: RecordType,
    timeout: Duration,
) -> Option<String> {
    for server in servers.iter().take(MAX_SERVERS) {
        if let Ok(Some(message)) =
            tokio::time::timeout(timeout, query_name_server(*server, name, record_type)).await
            && let Some(reason) = extract_dnssec_failure(&message)
        {
            return Some(reason);
        }
    }
    None
}

async fn query_name_server(
    server: SocketAddr,
    name: &Name,
    record_type: RecordType,
) -> Option<Message> {
    let mut edns = Edns::new();
    edns.set_max_payload(MAX_UDP_PAYLOAD);
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(name.clone(), record_type));
    query.set_edns(edns);
    let unspecified_address: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(unspecified_address).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(&query.to_vec().ok()?).await.ok()?;
    let mut buffer = [0; MAX_UDP_PAYLOAD as usize];
    loop {
        let length = socket.recv(&mut buffer).await.ok()?;
        // A response to another query is ignored.
        if let Ok(message) = Message::from_vec(buffer.get(..length)?)
            && message.id == query.id
            && message.queries == query.queries
        {
            return Some(message);
        }
    }
}

/// The DNSSEC reason in a SERVFAIL response, as text.
fn extract_dnssec_failure(message: &Message) -> Option<String> {
    if message.response_code != ResponseCode::ServFail {
        return None;
    }
    let options = message.edns.as_ref()?.options();
    let errors = options.get_all(EdnsCode::from(EXTENDED_ERROR_OPTION));
    errors.into_iter().find_map(|option| {
        let EdnsOption::Unknown(_, data) = option else {
            return None;
        };
        let (code, text) = data.split_at_checked(2)?;
        let explanation = explain_dnssec_code(u16::from_be_bytes(code.try_into().ok()?))?;
        let text = escape_invisible(String::from_utf8_lossy(text).trim(), 100);
        Some(if text.is_empty() {
            explanation.to_owned()
        } else {
            format!("{explanation} ({text})")
        })
    })
}

/// The codes of RFC 8914 section 4 that report failed validation.
const fn explain_dnssec_code(code: u16) -> Option<&'static str> {
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
