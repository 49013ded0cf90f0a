//! Child processes: this program in another role, which responds to requests line by line.
//!
//! Each server is a process of its own, so that its processor time, its open files and its limits are its own too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::report::cpu_of;

/// The variable with the role of a child.
const ROLE: &str = "LIVING_ROLE";
/// The variable with its settings.
const SETTINGS: &str = "LIVING_SETTINGS";

/// The time between two looks at what a process uses.
const LOOK: Duration = Duration::from_millis(250);
/// The processor time between two looks that an idle process may use.
const IDLE: Duration = Duration::from_millis(10);
/// Looks in turn at which a process has to be idle.
const CALM_LOOKS: u32 = 3;
/// How long work in the background is waited for.
const LONGEST_WORK: Duration = Duration::from_secs(1_800);
/// How long a child may take to start, to answer or to end, beyond the seconds that a request names.
const PATIENCE: Duration = Duration::from_secs(600);

/// A running child. Dropping it kills it.
pub struct Child {
    role: &'static str,
    process: Process,
    input: Option<ChildStdin>,
    /// The lines that it writes; a thread reads them, so that waiting for one has a bound.
    lines: Receiver<String>,
}

impl Child {
    /// Starts this program in a role, and waits for its first line.
    pub fn start(role: &'static str, settings: &Value) -> (Self, Value) {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("living")
            .env(ROLE, role)
            .env(SETTINGS, settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut read = output.lines().map_while(Result::ok);
            read.all(|line| sender.send(line).is_ok())
        });
        let child = Self {
            role,
            process,
            input,
            lines,
        };
        let first = child.line(0, "its start");
        (child, first)
    }

    /// Sends a request and waits for its response.
    pub fn send_request(&mut self, request: &Value) -> Value {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
        input.flush().unwrap();
        let seconds = request["seconds"].as_u64().unwrap_or_default();
        self.line(seconds, &request.to_string())
    }

    /// The line that answers this; a child that has ended has closed the channel.
    fn line(&self, seconds: u64, what: &str) -> Value {
        let most = PATIENCE + Duration::from_secs(seconds);
        match self.lines.recv_timeout(most) {
            Ok(line) => serde_json::from_str(&line).unwrap(),
            Err(error) => panic!("the child {} did not answer {what}: {error}", self.role),
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Processor time used so far.
    pub fn cpu(&self) -> Duration {
        cpu_of(self.id()).unwrap()
    }

    /// The number of open files.
    pub fn open_files(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.id()));
        files.unwrap().count()
    }

    /// Ends the child in order: its input is closed, and it is waited for.
    pub fn stop(mut self) {
        drop(self.input.take());
        // Its output ends with it.
        let last = self.lines.recv_timeout(PATIENCE);
        let ended = last == Err(RecvTimeoutError::Disconnected);
        assert!(ended, "the child {} does not end: {last:?}", self.role);
        assert!(self.process.wait().unwrap().success(), "{}", self.role);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a process has nothing to do any more, such as merges and checks after its start.
#[expect(
    clippy::disallowed_methods,
    reason = "work in the background of another process shows only by what it uses"
)]
pub fn wait_until_idle(process: u32) {
    let began = Instant::now();
    let mut calm = 0;
    while calm < CALM_LOOKS && began.elapsed() < LONGEST_WORK {
        let before = cpu_of(process).unwrap();
        std::thread::sleep(LOOK);
        let idle = cpu_of(process).unwrap() - before <= IDLE;
        calm = if idle { calm + 1 } else { 0 };
    }
    assert!(calm == CALM_LOOKS, "process {process} does not become idle");
}

/// The role and the settings of this process; `None` in the bench itself.
pub fn role() -> Option<(String, Value)> {
    let role = std::env::var(ROLE).ok()?;
    let settings = std::env::var(SETTINGS).unwrap();
    Some((role, serde_json::from_str(&settings).unwrap()))
}

/// The next request of the parent; `None` once it wants this process to end.
pub fn next_request() -> Option<Value> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
}

/// Sends a line to the parent.
pub fn send_reply(value: &Value) {
    println!("{value}");
}

/// Lets this process open this number of files, or as many as it may.
pub fn limit_open_files(most: Option<u64>) {
    let may = getrlimit(Resource::Nofile);
    let most = most.or(may.maximum);
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}
