//! Child processes: this program in another role, which responds to requests line by line.
//!
//! Each server is a process of its own, so that its processor time, its open files and its limits are its own too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
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

/// A running child. Dropping it kills it.
pub struct Child {
    role: &'static str,
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
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
        let mut child = Self {
            role,
            process,
            input,
            output,
        };
        let first = child.line();
        (child, first)
    }

    /// Sends a request and waits for its response.
    pub fn send_request(&mut self, request: &Value) -> Value {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
        input.flush().unwrap();
        self.line()
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the child {} ended by itself", self.role);
        serde_json::from_str(&line).unwrap()
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
