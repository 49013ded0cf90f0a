//! The real resolver against a scripted name server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::Refused;
use a2a_crawler::dns::{DnsError, HickoryResolver, MAX_ADDRESSES, Resolver};
use a2a_crawler::fetch::{FetchLimits, GetOptions};
use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
use hickory_resolver::proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::support::{Canary, OPEN, Reply, Server, config, fetcher_with};

/// Answers by the first label of the name.
fn answer(label: &str, kind: RecordType) -> (ResponseCode, Vec<RData>) {
    let v4 = |address: [u8; 4]| RData::A(A(Ipv4Addr::from(address)));
    let data = match (label, kind) {
        ("both", RecordType::A) => vec![v4([8, 8, 8, 8])],
        ("both", RecordType::AAAA) => {
            vec![RData::AAAA(AAAA(Ipv6Addr::new(
                0x2a00, 0x1450, 0, 0, 0, 0, 0, 1,
            )))]
        }
        ("open", RecordType::A) => vec![v4(OPEN.octets())],
        ("mixed", RecordType::A) => vec![v4(OPEN.octets()), v4([127, 0, 0, 2])],
        ("half", RecordType::A) => vec![v4([8, 8, 8, 8])],
        ("half" | "broken", _) => return (ResponseCode::ServFail, Vec::new()),
        ("unsure", RecordType::AAAA) => return (ResponseCode::ServFail, Vec::new()),
        ("alias", _) => vec![RData::CNAME(CNAME(
            Name::from_ascii("both.example.com.").unwrap(),
        ))],
        ("circle", _) => vec![RData::CNAME(CNAME(
            Name::from_ascii("circle.example.com.").unwrap(),
        ))],
        ("most", RecordType::A) => (0..MAX_ADDRESSES as u8).map(|n| v4([8, 8, 8, n])).collect(),
        ("beyond", RecordType::A) => (0..=MAX_ADDRESSES as u8)
            .map(|n| v4([8, 8, 8, n]))
            .collect(),
        ("empty" | "unsure" | "open" | "mixed" | "most" | "beyond", _) => Vec::new(),
        _ => return (ResponseCode::NXDomain, Vec::new()),
    };
    (ResponseCode::NoError, data)
}

struct NameServer {
    at: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NameServer {
    async fn start() -> Self {
        let socket = UdpSocket::bind((OPEN, 0)).await.unwrap();
        let at = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let request = Message::from_vec(&buffer[..length]).unwrap();
                if let Some(response) = respond(&request) {
                    socket
                        .send_to(&response.to_vec().unwrap(), from)
                        .await
                        .unwrap();
                }
            }
        });
        Self { at, task }
    }

    fn resolver(&self) -> HickoryResolver {
        let mut udp = ConnectionConfig::udp();
        udp.port = self.at.port();
        let server = NameServerConfig::new(self.at.ip(), true, vec![udp]);
        HickoryResolver::from_servers(vec![server], Duration::from_secs(2)).unwrap()
    }
}

fn respond(request: &Message) -> Option<Message> {
    let query = request.queries.first()?.clone();
    let name = query.name().to_ascii().to_ascii_lowercase();
    let label = name.split('.').next()?.to_owned();
    if label == "silent" {
        return None;
    }
    // The search list of the system must not be tried: every name asked is rooted at the test's own.
    assert!(name.ends_with(".example.com."), "{name} was asked");
    let (code, data) = answer(&label, query.query_type());
    let mut response = Message::new(request.id, MessageType::Response, OpCode::Query);
    response.metadata.response_code = code;
    response.metadata.recursion_available = true;
    for data in data {
        response.add_answer(Record::from_rdata(query.name().clone(), 60, data));
    }
    response.add_query(query);
    Some(response)
}

async fn resolve(label: &str) -> Result<Vec<IpAddr>, DnsError> {
    let server = NameServer::start().await;
    server
        .resolver()
        .resolve(&format!("{label}.example.com"))
        .await
}

#[tokio::test]
async fn both_families_are_asked_and_absence_needs_both() {
    let both: [IpAddr; 2] = ["8.8.8.8".parse().unwrap(), "2a00:1450::1".parse().unwrap()];
    assert_eq!(resolve("both").await.unwrap(), both);
    assert_eq!(resolve("half").await.unwrap(), [both[0]]);
    assert_eq!(resolve("nowhere").await, Err(DnsError::NoSuchHost));
    assert_eq!(resolve("empty").await, Err(DnsError::NoSuchHost));
    assert!(matches!(resolve("broken").await, Err(DnsError::Failure(_))));
    // No IPv4 address, and no word on IPv6: that is not absence.
    assert!(matches!(resolve("unsure").await, Err(DnsError::Failure(_))));
}

/// Input 92: what is not looked at must not be dialled, so a longer answer is none.
#[tokio::test]
async fn answers_are_bounded() {
    assert_eq!(resolve("most").await.unwrap().len(), MAX_ADDRESSES);
    assert!(matches!(resolve("beyond").await, Err(DnsError::Failure(_))));
}

/// Input 90 and 91.
#[tokio::test]
async fn aliases_are_followed_and_circles_end() {
    let mut addresses = resolve("alias").await.unwrap();
    addresses.sort_unstable();
    assert_eq!(addresses.len(), 2);
    assert!(resolve("circle").await.is_err());
}

#[tokio::test]
async fn the_whole_way_from_name_server_to_answer() {
    let names = NameServer::start().await;
    let resolver = Arc::new(names.resolver());
    let fetcher = fetcher_with(config(FetchLimits::default()), resolver);
    let server = Server::always(Reply::json("{}")).await;
    let canary = Canary::new();
    let url = server.url_of("open.example.com", "/");
    let answer = fetcher
        .get(&url, &GetOptions::default())
        .await
        .answer
        .unwrap();
    assert_eq!(answer.address, Some(OPEN.into()));
    let url = format!("http://mixed.example.com:{}/", canary.at.port())
        .parse()
        .unwrap();
    let error = fetcher
        .get(&url, &GetOptions::default())
        .await
        .answer
        .unwrap_err();
    assert_eq!(error.outcome, Refused, "{error}");
    canary.assert_untouched();
}

#[tokio::test]
async fn a_name_server_that_is_silent_is_a_failure() {
    let server = NameServer::start().await;
    let mut udp = ConnectionConfig::udp();
    udp.port = server.at.port();
    let config = NameServerConfig::new(server.at.ip(), true, vec![udp]);
    let resolver = HickoryResolver::from_servers(vec![config], Duration::from_millis(200)).unwrap();
    let answer = resolver.resolve("silent.example.com").await;
    assert!(matches!(answer, Err(DnsError::Failure(_))), "{answer:?}");
}
