//! A closed-loop load generator: a number of persistent connections, each with one request in flight.
//!
//! It runs on one thread of its own and implements only what it needs of the servers' protocols, so that it costs less
//! than any server it measures. Beside the rate it reports the processor time per request of the server, which is
//! everything else in this process or another process: other load on the machine changes the rate, but not that
//! figure.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::report::{cpu_of, cpu_of_process, cpu_of_thread};

/// Results of a run.
#[derive(Debug, Clone)]
pub struct LoadResult {
    /// Responses per second.
    pub rate: f64,
    /// Processor time per request of the server's process, without the load generator, in microseconds.
    pub cpu_us: f64,
    /// Size of a response in bytes, with its head.
    pub bytes: f64,
    /// Times from the first byte of a request to the last of its response, in microseconds, sorted.
    latencies: Vec<u32>,
}

impl LoadResult {
    /// The latency in milliseconds at this percentile (0 to 1).
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        f64::from(self.latencies.get(index).copied().unwrap_or_default()) / 1_000.0
    }
}

/// What a server speaks, which decides where a response ends.
#[derive(Debug, Clone, Copy)]
pub enum Protocol {
    /// HTTP/1.1, with a length in each response.
    Http,
    /// Groonga's own protocol: frames with a head of 24 bytes.
    Gqtp,
    /// The protocol of Redis; each request is this number of commands, which are answered in turn.
    Resp(usize),
}

/// Parameters of a load.
#[derive(Debug, Clone)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// What it speaks.
    pub protocol: Protocol,
    /// The server's process; `None` for this one.
    pub process: Option<u32>,
    /// Complete requests, sent in turn and repeated from the start.
    pub requests: Arc<Vec<Vec<u8>>>,
    /// The expected status of HTTP; any other one ends the run.
    pub status: &'static str,
    /// Number of connections.
    pub connections: usize,
    /// The run ends after this time, or after `most` requests.
    pub time: Duration,
    /// Maximum number of requests.
    pub most: usize,
}

impl Load {
    /// Requests for these paths, with further header lines (each with its line end).
    pub fn new(address: SocketAddr, paths: &[String], headers: &str, status: &'static str) -> Self {
        let requests = paths
            .iter()
            .map(|path| {
                format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").into_bytes()
            })
            .collect();
        Self::speaking(Protocol::Http, address, requests, status)
    }

    /// Complete requests in this protocol.
    pub fn speaking(
        protocol: Protocol,
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        status: &'static str,
    ) -> Self {
        Self {
            address,
            protocol,
            process: None,
            requests: Arc::new(requests),
            status,
            connections: 64,
            time: Duration::from_secs(1),
            most: usize::MAX,
        }
    }

    /// Processor time used by the server: of another process, or of this one without the calling thread.
    fn cpu_of_server(&self) -> io::Result<Duration> {
        match self.process {
            Some(process) => cpu_of(process),
            None => Ok(cpu_of_process()?.saturating_sub(cpu_of_thread()?)),
        }
    }

    /// Runs the load on a thread of its own, and waits for that thread.
    pub fn run(&self) -> io::Result<LoadResult> {
        let run = || {
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| self.run_here());
                thread
                    .join()
                    .map_err(|_| io::Error::other("the load generator panicked"))?
            })
        };
        tokio::task::block_in_place(run)
    }

    fn run_here(&self) -> io::Result<LoadResult> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let sent = Rc::new(Cell::new(0));
        let latencies = Rc::new(RefCell::new(Vec::with_capacity(1 << 20)));
        let bytes = Rc::new(Cell::new(0));
        let local = LocalSet::new();
        let cpu_before = self.cpu_of_server()?;
        let began = Instant::now();
        let all = (0..self.connections).map(|_| {
            local.spawn_local(connection(
                self.clone(),
                began + self.time,
                Rc::clone(&sent),
                Rc::clone(&latencies),
                Rc::clone(&bytes),
            ))
        });
        let all: Vec<_> = all.collect();
        // The last responses may come later than the time of the run.
        let most = self.time + Duration::from_secs(120);
        let silent = || io::Error::other(format!("{} does not answer any more", self.address));
        local.block_on(&runtime, async {
            for one in all {
                let ended = tokio::time::timeout(most, one).await;
                ended.map_err(|_| silent())?.map_err(io::Error::other)??;
            }
            io::Result::Ok(())
        })?;
        let elapsed = began.elapsed().as_secs_f64();
        let cpu = self.cpu_of_server()?.saturating_sub(cpu_before);
        let mut latencies = latencies.take();
        latencies.sort_unstable();
        let answers = latencies.len().max(1) as f64;
        Ok(LoadResult {
            rate: latencies.len() as f64 / elapsed,
            cpu_us: cpu.as_secs_f64() * 1e6 / answers,
            bytes: bytes.get() as f64 / answers,
            latencies,
        })
    }
}

async fn connection(
    load: Load,
    until: Instant,
    sent: Rc<Cell<usize>>,
    latencies: Rc<RefCell<Vec<u32>>>,
    bytes: Rc<Cell<usize>>,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(load.address).await?;
    stream.set_nodelay(true)?;
    // Large enough for the answer to a thousand registrations.
    let mut buffer = vec![0; 1 << 22];
    loop {
        let index = sent.get();
        let now = Instant::now();
        if index >= load.most || now >= until {
            return Ok(());
        }
        sent.set(index + 1);
        let request = &load.requests[index % load.requests.len()];
        stream.write_all(request).await?;
        let read = read_response(&mut stream, &mut buffer, &load).await?;
        bytes.set(bytes.get() + read);
        let micros = u32::try_from(now.elapsed().as_micros()).unwrap_or(u32::MAX);
        latencies.borrow_mut().push(micros);
    }
}

/// Reads one complete response, and returns its length.
async fn read_response(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    load: &Load,
) -> io::Result<usize> {
    let mut filled = 0;
    let mut whole = None;
    while whole.is_none_or(|whole| filled < whole) {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Err(io::Error::other(
                "the server closed the connection, or its response exceeds the buffer",
            ));
        }
        filled += read;
        if whole.is_none() {
            let answer = &buffer[..filled];
            whole = match load.protocol {
                Protocol::Http => length(answer, load.status)?,
                Protocol::Gqtp => gqtp_length(answer)?,
                Protocol::Resp(replies) => resp_length(answer, replies)?,
            };
        }
    }
    Ok(filled)
}

/// Total length of a response of HTTP in bytes, which must have that status and a `Content-Length`; `None` until its head is
/// complete.
fn length(answer: &[u8], status: &str) -> io::Result<Option<usize>> {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..head]).map_err(io::Error::other)?;
    if text.get(9..12) != Some(status) {
        let shown = String::from_utf8_lossy(answer);
        return Err(io::Error::other(format!("expected {status}, got {shown}")));
    }
    let declared = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let ours = name.eq_ignore_ascii_case("content-length");
        ours.then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    let body = if status == "304" {
        0
    } else {
        declared.unwrap_or_default()
    };
    Ok(Some(head + 4 + body))
}

/// Total length of a response of GQTP in bytes: frames, of which all but the last have the flag of more to come; `None` until
/// the head of the last one is complete.
fn gqtp_length(answer: &[u8]) -> io::Result<Option<usize>> {
    let mut at = 0;
    while let Some(head) = answer.get(at..at + 24) {
        let status = u16::from_be_bytes([head[6], head[7]]);
        if status != 0 {
            let shown = String::from_utf8_lossy(&answer[at + 24..]);
            return Err(io::Error::other(format!("status {status}: {shown}")));
        }
        at += 24 + u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        if head[5] & 1 == 0 {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Total length of this number of replies of Redis in bytes; `None` until the head of the last one is complete.
fn resp_length(answer: &[u8], replies: usize) -> io::Result<Option<usize>> {
    let (mut at, mut left) = (0, replies);
    while left > 0 {
        let rest = answer.get(at..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|end| end == b"\r\n") else {
            return Ok(None);
        };
        let line = &rest[..end];
        at += end + 2;
        left -= 1;
        let number = std::str::from_utf8(line.get(1..).unwrap_or_default());
        let number = number.ok().and_then(|text| text.parse::<usize>().ok());
        match line.first() {
            Some(b'*') => left += number.unwrap_or_default(),
            // A negative length stands for no value, and has no bytes behind it.
            Some(b'$') => at += number.map_or(0, |length| length + 2),
            Some(b'-') => {
                let shown = String::from_utf8_lossy(line);
                return Err(io::Error::other(format!("the server failed: {shown}")));
            }
            _ => {}
        }
    }
    Ok(Some(at))
}
