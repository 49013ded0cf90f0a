//! Threads that work for callers who wait: so many, with so much waiting, and none of it for those who have gone.
//!
//! What runs here may use rayon, as libraries of arithmetic do: every thread is alone in a rayon pool of its own, so
//! whatever is split up stays on it and the pool that the process shares is never started. The work is one long job of
//! that pool, not a job each time: a thread that waits for its own parts would begin the next job meanwhile.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::EmbedError;
use super::error::ModelError;

/// What is said when a thread ends before its answer is there.
const STOPPING: &str = "it is stopping";

/// Threads for one kind of work. They end when it is dropped, each after what it is at.
pub(super) struct Pool<I, O> {
    shared: Arc<Shared<I, O>>,
    /// Ends the threads when dropped, without waiting for them.
    _threads: Vec<rayon::ThreadPool>,
}

struct Shared<I, O> {
    state: Mutex<PoolState<I, O>>,
    news: Condvar,
    /// The most jobs that wait.
    waiting: usize,
}

struct PoolState<I, O> {
    jobs: VecDeque<Job<I, O>>,
    stopping: bool,
}

struct Job<I, O> {
    input: I,
    answer: oneshot::Sender<Result<O, EmbedError>>,
}

impl<I: Send + 'static, O: Send + 'static> Pool<I, O> {
    /// Starts `threads` threads called `name-0`, `name-1`, … for which at most `waiting` jobs wait. `work` is given
    /// a job and a question to ask now and then: whether its caller has gone.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(
        name: &'static str,
        threads: NonZeroUsize,
        waiting: NonZeroUsize,
        work: impl Fn(I, &dyn Fn() -> bool) -> Result<O, EmbedError> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let shared = Arc::new(Shared {
            state: Mutex::new(PoolState {
                jobs: VecDeque::new(),
                stopping: false,
            }),
            news: Condvar::new(),
            waiting: waiting.get(),
        });
        let work = Arc::new(work);
        let threads = (0..threads.get()).map(|index| {
            let thread = one_thread(format!("{name}-{index}"))?;
            let (shared, work) = (shared.clone(), work.clone());
            thread.spawn(move || {
                while let Some(job) = shared.next() {
                    shared.answer(job, &*work);
                }
            });
            Ok(thread)
        });
        Ok(Self {
            _threads: threads.collect::<Result<_, ModelError>>()?,
            shared,
        })
    }

    /// Waits for an answer. Dropping this takes back what has not begun.
    ///
    /// # Errors
    /// Where as much waits as may, the work fails, or the threads end.
    pub async fn ask(&self, input: I) -> Result<O, EmbedError> {
        let (answer, waits) = oneshot::channel();
        {
            let mut state = self.shared.state();
            if state.jobs.len() >= self.shared.waiting {
                // Those who have gone take nobody's place.
                state.jobs.retain(|job| !job.answer.is_closed());
            }
            if state.jobs.len() >= self.shared.waiting {
                return Err(EmbedError::Busy);
            }
            state.jobs.push_back(Job { input, answer });
        }
        self.shared.news.notify_one();
        waits
            .await
            .unwrap_or_else(|_| Err(EmbedError::Away(STOPPING.to_owned())))
    }
}

impl<I, O> Shared<I, O> {
    /// The queue. Nothing panics while it is held, so one that is called poisoned is whole.
    fn state(&self) -> MutexGuard<'_, PoolState<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job that somebody waits for; `None` when the pool ends.
    fn next(&self) -> Option<Job<I, O>> {
        let mut state = self.state();
        loop {
            if state.stopping {
                return None;
            }
            match state.jobs.pop_front() {
                Some(job) if job.answer.is_closed() => {}
                Some(job) => return Some(job),
                None => {
                    state = self
                        .news
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn answer(
        &self,
        job: Job<I, O>,
        work: &impl Fn(I, &dyn Fn() -> bool) -> Result<O, EmbedError>,
    ) {
        let Job { input, answer } = job;
        let given_up = || answer.is_closed();
        // A library that panics over one text must not take the thread along: rayon would end the process.
        let done = catch_unwind(AssertUnwindSafe(|| work(input, &given_up)));
        let done =
            done.unwrap_or_else(|_| Err(EmbedError::Failed("it gave up over a text".to_owned())));
        // Whoever has gone does not hear it.
        let _ = answer.send(done);
    }
}

impl<I, O> Drop for Pool<I, O> {
    fn drop(&mut self) {
        // Whoever asks borrows the pool, so nobody waits any more.
        self.shared.state().stopping = true;
        self.shared.news.notify_all();
    }
}

/// A rayon pool of one thread of this name.
///
/// # Errors
/// Where the thread cannot be started.
pub(super) fn one_thread(name: String) -> Result<rayon::ThreadPool, ModelError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(move |_| name.clone())
        .build()
        .map_err(|error| ModelError::Threads(error.to_string()))
}
