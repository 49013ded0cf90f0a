//! The host to which a hub redirects for the bytes of files: with ranges, and with connections that break.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A running storage host, which ends with the runtime of its test.
pub struct Storage {
    address: SocketAddr,
    state: Arc<StorageState>,
}

#[derive(Default)]
struct StorageState {
    files: Mutex<HashMap<String, Vec<u8>>>,
    locations: Mutex<HashMap<String, String>>,
    /// After how many bytes of the body the next connections break, by path.
    cuts: Mutex<HashMap<String, VecDeque<usize>>>,
    ignores_ranges: Mutex<bool>,
    requests: Mutex<Vec<StorageRequest>>,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct StorageRequest {
    pub path: String,
    headers: HashMap<String, String>,
}

impl StorageRequest {
    /// The value of the header with that lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Storage {
    /// A host without files, with an address other than those of origins.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(StorageState::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // A client that goes away is no error here.
                tokio::spawn(async move { handle_request(&state, &mut stream).await });
            }
        });
        Self { address, state }
    }

    /// The URL of a path, which begins with a slash. The query stands for a signature.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}?signature=s3cret", self.address)
    }

    pub fn set_file(&self, path: &str, bytes: Vec<u8>) {
        let mut files = self.state.files.lock().unwrap();
        files.insert(path.to_owned(), bytes);
    }

    pub fn file(&self, path: &str) -> Vec<u8> {
        self.state.files.lock().unwrap()[path].clone()
    }

    /// Redirects from the path from now on.
    pub fn set_location(&self, path: &str, location: &str) {
        let mut locations = self.state.locations.lock().unwrap();
        locations.insert(path.to_owned(), location.to_owned());
    }

    /// Breaks the next connections for the path, each after that many bytes of its body.
    pub fn cut(&self, path: &str, lengths: &[usize]) {
        let mut cuts = self.state.cuts.lock().unwrap();
        cuts.insert(path.to_owned(), lengths.iter().copied().collect());
    }

    /// Answers requests for a part of a file with the whole file from now on.
    pub fn ignore_ranges(&self) {
        *self.state.ignores_ranges.lock().unwrap() = true;
    }

    pub fn requests(&self) -> Vec<StorageRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn requests_to(&self, path: &str) -> Vec<StorageRequest> {
        let requests = self.requests().into_iter();
        requests.filter(|request| request.path == path).collect()
    }
}

async fn handle_request(state: &StorageState, stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let request = StorageRequest {
        path: target.split('?').next().unwrap().to_owned(),
        headers: headers
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect(),
    };
    state.requests.lock().unwrap().push(request.clone());
    let response = build_response(state, &request);
    stream.write_all(&response).await?;
    stream.shutdown().await
}

/// The bytes of the response, up to where the connection breaks.
fn build_response(state: &StorageState, request: &StorageRequest) -> Vec<u8> {
    let path = &request.path;
    if let Some(location) = state.locations.lock().unwrap().get(path) {
        return format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
            .into_bytes();
    }
    let files = state.files.lock().unwrap();
    let Some(file) = files.get(path) else {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    };
    let range = request
        .header("range")
        .filter(|_| !*state.ignores_ranges.lock().unwrap());
    let start: Option<usize> = range.map(|range| {
        let start = range
            .strip_prefix("bytes=")
            .and_then(|rest| rest.strip_suffix('-'));
        start.unwrap().parse().unwrap()
    });
    let body = &file[start.unwrap_or(0)..];
    let status = match start {
        None => "200 OK".to_owned(),
        Some(start) => format!(
            "206 Partial Content\r\ncontent-range: bytes {start}-{}/{}",
            file.len() - 1,
            file.len()
        ),
    };
    let mut response = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    let mut cuts = state.cuts.lock().unwrap();
    let cut = cuts.get_mut(path).and_then(VecDeque::pop_front);
    response.extend(&body[..cut.unwrap_or(body.len())]);
    response
}
