//! Child processes: started, read line by line, ended by signal, and killed when dropped.

use std::ffi::OsStr;
use std::fmt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{DEADLINE, registry_binary};

/// The output that a line was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputStream {
    Stdout,
    Stderr,
}

/// Output of a process so far, in the order it was read.
#[derive(Debug, Default)]
struct Transcript {
    lines: Vec<(OutputStream, String)>,
    closed_count: usize,
}

impl Transcript {
    fn is_closed(&self) -> bool {
        self.closed_count == 2
    }

    fn stream_lines(&self, stream: OutputStream) -> Vec<String> {
        let lines = self.lines.iter().filter(|(from, _)| *from == stream);
        lines.map(|(_, line)| line.clone()).collect()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (stream, line) in &self.lines {
            let mark = if *stream == OutputStream::Stdout {
                "out"
            } else {
                "err"
            };
            writeln!(to, "  {mark} | {line}")?;
        }
        Ok(())
    }
}

/// A running process. Dropping it kills it.
pub struct Program {
    name: String,
    child: Child,
    transcript: watch::Receiver<Transcript>,
}

/// A process that has ended.
#[derive(Debug)]
pub struct FinishedProgram {
    /// Its exit status.
    pub status: ExitStatus,
    /// The lines of its standard output.
    pub stdout: Vec<String>,
    /// The lines of its standard error.
    pub stderr: Vec<String>,
}

/// The variable with the sentence encoder of a registry.
const MODEL_VARIABLE: &str = "A2A_REGISTRY__SEARCH__MODEL";

/// A command of the registry's own program, without the settings of the user who runs the tests. Registries have no
/// sentence encoder, unless a test uses [`allow_model`].
pub fn registry_command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(registry_binary());
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("A2A_REGISTRY") || shown.starts_with("A2A_AGENT") {
            command.env_remove(name);
        }
    }
    // Tests must not use the stored credentials of the user who runs them.
    command.env(
        "XDG_CONFIG_HOME",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/no-config"),
    );
    let first = command.as_std().get_args().next();
    if first.is_some_and(|first| first == "serve" || first == "demo") {
        command.env(MODEL_VARIABLE, "off");
    }
    command
}

/// Lets a registry have the sentence encoder that its configuration and its data folder select, and gives its searches
/// the time that encoding a query takes on a busy machine.
pub fn allow_model(command: &mut Command) {
    command
        .env_remove(MODEL_VARIABLE)
        .env("A2A_REGISTRY__SEARCH__EMBED_TIMEOUT", "10000");
}

impl Program {
    /// Starts a process with empty input and both outputs recorded.
    pub fn start(command: Command) -> Self {
        Self::start_with_stdin(command, Stdio::null())
    }

    fn start_with_stdin(mut command: Command, stdin: Stdio) -> Self {
        let name = format!("{:?}", command.as_std());
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let (sender, transcript) = watch::channel(Transcript::default());
        record_output(
            OutputStream::Stdout,
            child.stdout.take().unwrap(),
            sender.clone(),
        );
        record_output(OutputStream::Stderr, child.stderr.take().unwrap(), sender);
        Self {
            name,
            child,
            transcript,
        }
    }

    /// Runs a process to its end.
    pub async fn run(command: Command) -> FinishedProgram {
        Self::start(command).wait_for_end().await
    }

    /// Runs a process to its end, with this input.
    pub async fn run_with_input(command: Command, input: &[u8]) -> FinishedProgram {
        let mut program = Self::start_with_stdin(command, Stdio::piped());
        let mut stdin = program.child.stdin.take().unwrap();
        // A process may end without reading all of its input; the test checks its output.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        program.wait_for_end().await
    }

    /// The process id.
    ///
    /// # Panics
    ///
    /// When the process has ended and was waited for.
    pub fn id(&self) -> u32 {
        self.child
            .id()
            .unwrap_or_else(|| panic!("{} has ended", self.name))
    }

    /// Waits for the first line on either output, including those printed already, for which `find` returns a value,
    /// and returns it.
    ///
    /// # Panics
    ///
    /// If both outputs close, or [`DEADLINE`] passes, before such a line; the message has the whole output.
    pub async fn wait_for_match<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let mut transcript = self.transcript.clone();
        let among = |read: &Transcript| read.lines.iter().find_map(|(_, line)| find(line));
        let waited = timeout(
            DEADLINE,
            transcript.wait_for(|read| read.is_closed() || among(read).is_some()),
        )
        .await;
        let found = match waited {
            Ok(Ok(read)) => among(&read),
            _ => None,
        };
        found.unwrap_or_else(|| {
            panic!(
                "{} never printed the expected line; it printed:\n{}",
                self.name,
                *self.transcript.borrow()
            )
        })
    }

    /// Waits for a line that contains `text`, and returns it.
    ///
    /// # Panics
    ///
    /// Like [`Program::wait_for_match`].
    pub async fn wait_for_line(&self, text: &str) -> String {
        self.wait_for_match(|line| line.contains(text).then(|| line.to_owned()))
            .await
    }

    /// Asks the process to end (SIGTERM).
    pub fn send_sigterm(&self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
    }

    /// Stops the process (SIGSTOP); it is stopped when this returns.
    pub fn suspend(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        waitid(WaitId::Pid(self.pid()), WaitIdOptions::STOPPED).unwrap();
    }

    /// Continues the process after [`Program::suspend`] (SIGCONT).
    pub fn resume(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.id()).unwrap();
        Pid::from_raw(id).unwrap()
    }

    /// Ends the process (SIGTERM) and waits until it has ended.
    pub async fn terminate(self) -> FinishedProgram {
        self.send_sigterm();
        self.wait_for_end().await
    }

    /// Kills the process (SIGKILL) and waits until it has ended.
    pub async fn kill(mut self) -> FinishedProgram {
        self.child.start_kill().unwrap();
        self.wait_for_end().await
    }

    /// Waits until the process ends by itself.
    ///
    /// # Panics
    ///
    /// If it has not ended, or its outputs are still open, at [`DEADLINE`].
    pub async fn wait_for_end(self) -> FinishedProgram {
        self.wait_for_end_within(DEADLINE).await
    }

    /// Like [`Program::wait_for_end`], with another limit.
    ///
    /// # Panics
    ///
    /// If it has not ended, or its outputs are still open, after that time.
    pub async fn wait_for_end_within(mut self, limit: Duration) -> FinishedProgram {
        let ended = timeout(limit, async {
            let status = self.child.wait().await.unwrap();
            let closed = self.transcript.wait_for(Transcript::is_closed).await;
            (status, closed.is_ok())
        })
        .await;
        let transcript = self.transcript.borrow();
        let Ok((status, true)) = ended else {
            panic!("{} did not end; it printed:\n{}", self.name, *transcript);
        };
        FinishedProgram {
            status,
            stdout: transcript.stream_lines(OutputStream::Stdout),
            stderr: transcript.stream_lines(OutputStream::Stderr),
        }
    }
}

/// Reads one output to its end, in the background. Bytes that are not UTF-8 are replaced.
fn record_output(
    stream: OutputStream,
    from: impl AsyncRead + Unpin + Send + 'static,
    to: watch::Sender<Transcript>,
) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let line = String::from_utf8_lossy(&line)
                .trim_end_matches('\r')
                .to_owned();
            to.send_modify(|transcript| transcript.lines.push((stream, line)));
        }
        to.send_modify(|transcript| transcript.closed_count += 1);
    });
}

/// The text of lines that a program printed.
pub fn join_lines(lines: &[String]) -> String {
    lines.join("\n")
}

/// Checks the end of a program: its exit code, and at most one line of message, which contains `words`.
pub fn assert_exit(finished: &FinishedProgram, code: i32, words: &str) {
    assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
    assert!(
        join_lines(&finished.stderr).contains(words),
        "{finished:#?}"
    );
    if code == 2 {
        assert_eq!(finished.stderr.len(), 1, "{finished:#?}");
        assert!(finished.stderr[0].starts_with("a2a-registry: "));
    }
}

/// The same command, run by a shell after these shell commands.
pub fn after_shell_commands(words: &str, command: &Command) -> Command {
    let command = command.as_std();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{words}; exec \"$@\""), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}
