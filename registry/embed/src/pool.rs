//! A thread pool with a limit on waiting jobs, which skips jobs whose callers no longer wait.
//!
//! The work may use rayon, as arithmetic libraries do: every thread is alone in its own rayon pool, so parallel work
//! stays on it and the process-wide pool is never started. A thread runs one long job of that pool, not a job each
//! time: otherwise it could begin the next job while it waits for parts of the current one.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::EmbedError;
use super::error::ModelError;

const STOPPING: &str = "it is stopping";

/// Threads for one kind of work. They end after their current job when the pool is dropped.
pub(super) struct Pool<I, O> {
    shared: Arc<Shared<I, O>>,
    /// Ends the threads when dropped, without waiting for them.
    _threads: Vec<rayon::ThreadPool>,
}

struct Shared<I, O> {
    state: Mutex<PoolState<I, O>>,
    news: Condvar,
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
    /// Starts `threads` threads called `name-0`, `name-1`, … for which at most `waiting` jobs wait. `work` gets a job,
    /// and a function that tells whether its caller still waits.
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

    /// Dropping the future cancels a job that has not started.
    pub async fn ask(&self, input: I) -> Result<O, EmbedError> {
        let (answer, waits) = oneshot::channel();
        {
            let mut state = self.shared.state();
            if state.jobs.len() >= self.shared.waiting {
                // Jobs whose callers no longer wait do not count.
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
    /// The queue. No code panics while it is locked, so a poisoned lock is consistent.
    fn state(&self) -> MutexGuard<'_, PoolState<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job whose caller still waits; `None` when the pool ends.
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
        // A panic of a library over one text must not end the thread: rayon would end the process.
        let done = catch_unwind(AssertUnwindSafe(|| work(input, &given_up)));
        let done =
            done.unwrap_or_else(|_| Err(EmbedError::Failed("it gave up over a text".to_owned())));
        // A caller that no longer waits does not receive it.
        let _ = answer.send(done);
    }
}

impl<I, O> Drop for Pool<I, O> {
    fn drop(&mut self) {
        // Callers borrow the pool, so none waits any more.
        self.shared.state().stopping = true;
        self.shared.news.notify_all();
    }
}

pub(super) fn one_thread(name: String) -> Result<rayon::ThreadPool, ModelError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(move |_| name.clone())
        .build()
        .map_err(|error| ModelError::Threads(error.to_string()))
}
