//! A scripted name server over UDP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use a2a_crawler::dns::HickoryResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
use hickory_resolver::proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::opt::EdnsOption;
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, NS, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::OPEN;

/// One DNS response.
#[derive(Debug, Clone)]
pub struct Zone {
    pub code: ResponseCode,
    pub data: Vec<RData>,
    pub truncated: bool,
    /// An extended error (RFC 8914), sent to clients with EDNS.
    pub extended: Option<(u16, &'static str)>,
    pub ttl: u32,
}

impl Zone {
    pub fn of(data: Vec<RData>) -> Self {
        Self {
            code: ResponseCode::NoError,
            data,
            truncated: false,
            extended: None,
            ttl: 60,
        }
    }

    /// The addresses of the record type `kind`, with a TTL of 0.
    pub fn now(kind: RecordType, addresses: &[IpAddr]) -> Self {
        let data = addresses.iter().copied().map(address);
        Self {
            ttl: 0,
            ..Self::of(data.filter(|data| data.record_type() == kind).collect())
        }
    }

    pub fn code(code: ResponseCode) -> Self {
        Self {
            code,
            ..Self::of(Vec::new())
        }
    }
}

pub fn address(address: impl Into<IpAddr>) -> RData {
    match address.into() {
        IpAddr::V4(v4) => RData::A(A(v4)),
        IpAddr::V6(v6) => RData::AAAA(AAAA(v6)),
    }
}

pub fn alias(name: &str) -> RData {
    RData::CNAME(CNAME(Name::from_ascii(format!("{name}.")).unwrap()))
}

pub fn name_server(name: &str) -> RData {
    RData::NS(NS(Name::from_ascii(format!("{name}.")).unwrap()))
}

pub fn text(strings: &[&str]) -> RData {
    RData::TXT(TXT::new(strings.iter().map(|s| (*s).to_owned()).collect()))
}

/// Response to a name (in lower case, without its root dot) and a record type; `None` means that no response is sent.
type ZoneScript = dyn Fn(&str, RecordType) -> Option<Zone> + Send + Sync;

/// The running name server; dropping it stops it.
pub struct NameServer {
    pub at: SocketAddr,
    asked: Arc<AtomicUsize>,
    round: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NameServer {
    pub async fn start(
        script: impl Fn(&str, RecordType) -> Option<Zone> + Send + Sync + 'static,
    ) -> Self {
        Self::lying(script, |bytes, _| bytes.to_vec()).await
    }

    /// Like [`start`](Self::start), but `distort` changes the bytes of every response; its second argument is the
    /// round, which [`lie`](Self::lie) sets.
    pub async fn lying(
        script: impl Fn(&str, RecordType) -> Option<Zone> + Send + Sync + 'static,
        distort: impl Fn(&[u8], usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let round = Arc::new(AtomicUsize::new(0));
        let turn = Arc::clone(&round);
        let socket = UdpSocket::bind((OPEN, 0)).await.unwrap();
        let at = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let script: Box<ZoneScript> = Box::new(script);
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let request = Message::from_vec(&buffer[..length]).unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
                if let Some(response) = respond(&request, &script) {
                    let response = response.to_vec().unwrap();
                    let response = distort(&response, turn.load(Ordering::Relaxed));
                    socket.send_to(&response, from).await.unwrap();
                }
            }
        });
        Self {
            at,
            asked,
            round,
            task,
        }
    }

    pub fn lie(&self, round: usize) {
        self.round.store(round, Ordering::Relaxed);
    }

    /// Number of queries so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn resolver(&self) -> HickoryResolver {
        self.hasty_resolver(Duration::from_secs(2))
    }

    pub fn hasty_resolver(&self, timeout: Duration) -> HickoryResolver {
        resolver_at(self.at, timeout)
    }
}

/// The resolver of production, which queries this name server only.
pub fn resolver_at(name_server: SocketAddr, timeout: Duration) -> HickoryResolver {
    let mut udp = ConnectionConfig::udp();
    udp.port = name_server.port();
    let server = NameServerConfig::new(name_server.ip(), true, vec![udp]);
    HickoryResolver::from_name_servers(vec![server], timeout).unwrap()
}

fn respond(request: &Message, script: &ZoneScript) -> Option<Message> {
    let query = request.queries.first()?.clone();
    let name = query.name().to_ascii().to_ascii_lowercase();
    let zone = script(name.trim_end_matches('.'), query.query_type())?;
    let mut response = Message::new(request.id, MessageType::Response, OpCode::Query);
    response.metadata.response_code = zone.code;
    response.metadata.recursion_available = true;
    response.metadata.truncation = zone.truncated;
    for data in zone.data {
        response.add_answer(Record::from_rdata(query.name().clone(), zone.ttl, data));
    }
    if let (Some((code, reason)), Some(_)) = (zone.extended, &request.edns) {
        let mut data = code.to_be_bytes().to_vec();
        data.extend_from_slice(reason.as_bytes());
        let mut edns = Edns::new();
        edns.options_mut().insert(EdnsOption::Unknown(15, data));
        response.set_edns(edns);
    }
    response.add_query(query);
    Some(response)
}
