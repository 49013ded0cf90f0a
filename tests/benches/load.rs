//! A closed-loop load generator: a number of persistent connections, each with one request in flight.
//!
//! It runs on one thread of its own and implements only the HTTP that it needs, so that it costs less than any server it
//! measures. Beside the rate it reports the processor time per request of everything else in this process: other load on
//! the machine changes the rate, but not that figure.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::report::{cpu_of_process, cpu_of_thread};

/// Results of a run.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Responses per second.
    pub rate: f64,
    /// Processor time per request outside of the load generator, in microseconds.
    pub cpu_us: f64,
    /// Times from the first byte of a request to the last of its response, in microseconds, sorted.
    latencies: Vec<u32>,
}

impl Measured {
    /// The latency in milliseconds at this percentile (0 to 1).
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        f64::from(self.latencies.get(index).copied().unwrap_or_default()) / 1_000.0
    }
}

/// Parameters of a load.
#[derive(Debug, Clone)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// Complete requests, sent in turn and repeated from the start.
    pub requests: Arc<Vec<Vec<u8>>>,
    /// The expected status; any other one ends the run.
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
        Self {
            address,
            requests: Arc::new(requests),
            status,
            connections: 64,
            time: Duration::from_secs(1),
            most: usize::MAX,
        }
    }

    /// Runs the load on a thread of its own, and waits for that thread.
    pub fn run(&self) -> io::Result<Measured> {
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

    fn run_here(&self) -> io::Result<Measured> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let sent = Rc::new(Cell::new(0));
        let latencies = Rc::new(RefCell::new(Vec::with_capacity(1 << 20)));
        let local = LocalSet::new();
        let (process, thread) = (cpu_of_process()?, cpu_of_thread()?);
        let began = Instant::now();
        let all = (0..self.connections).map(|_| {
            local.spawn_local(connection(
                self.clone(),
                began + self.time,
                Rc::clone(&sent),
                Rc::clone(&latencies),
            ))
        });
        let all: Vec<_> = all.collect();
        local.block_on(&runtime, async {
            for one in all {
                one.await.map_err(io::Error::other)??;
            }
            io::Result::Ok(())
        })?;
        let elapsed = began.elapsed().as_secs_f64();
        let cpu = (cpu_of_process()? - process).saturating_sub(cpu_of_thread()? - thread);
        let mut latencies = latencies.take();
        latencies.sort_unstable();
        let answers = latencies.len().max(1) as f64;
        Ok(Measured {
            rate: latencies.len() as f64 / elapsed,
            cpu_us: cpu.as_secs_f64() * 1e6 / answers,
            latencies,
        })
    }
}

async fn connection(
    load: Load,
    until: Instant,
    sent: Rc<Cell<usize>>,
    latencies: Rc<RefCell<Vec<u32>>>,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(load.address).await?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let index = sent.get();
        let now = Instant::now();
        if index >= load.most || now >= until {
            return Ok(());
        }
        sent.set(index + 1);
        let request = &load.requests[index % load.requests.len()];
        stream.write_all(request).await?;
        read_response(&mut stream, &mut buffer, load.status).await?;
        let micros = u32::try_from(now.elapsed().as_micros()).unwrap_or(u32::MAX);
        latencies.borrow_mut().push(micros);
    }
}

/// Reads one complete response, which must have that status and a `Content-Length`.
async fn read_response(stream: &mut TcpStream, buffer: &mut [u8], status: &str) -> io::Result<()> {
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
            whole = length(&buffer[..filled], status)?;
        }
    }
    Ok(())
}

/// Total length of the response in bytes; `None` until its head is complete.
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
