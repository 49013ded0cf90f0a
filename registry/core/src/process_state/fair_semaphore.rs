//! A semaphore that gives permits to callers in turn. A caller with many requests waits for its own, and delays
//! another caller by at most one permit.
//!
//! A waiting request is a future, or work for a thread. When work ends, the next work runs on the same thread: waking
//! a thread for each would leave processors idle in between although requests wait.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::visibility::caller::CallerKey;

/// Maximum number of searches that wait for a thread, and for the encoder; further ones get 503.
pub const MAX_WAITING: usize = 256;
/// Maximum number of waiting searches of one caller; further ones get 429.
pub const MAX_WAITING_PER_CALLER: usize = 64;

/// The reason why a request may not, or no longer, wait for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFull {
    /// The caller has reached its limit of waiting requests, or has more of them in the full queue than others.
    CallerLimit,
    /// The queue has reached its total limit.
    TotalLimit,
}

/// A bounded number of permits, and the requests that wait for a permit.
#[derive(Debug)]
pub struct FairSemaphore {
    /// Maximum number of waiting requests.
    max_waiting: usize,
    /// Maximum number of waiting requests of one caller.
    max_waiting_per_caller: usize,
    state: Mutex<FairSemaphoreState>,
}

#[derive(Debug)]
struct FairSemaphoreState {
    /// Unused permits; while there are any, no request waits.
    free_permits: usize,
    /// The number of permits of each caller. A caller without permits has no entry.
    used_by_caller: HashMap<CallerKey, usize>,
    /// The waiting callers, the one that has waited longest for a permit first. A caller without a waiting request has
    /// no entry.
    waiting: VecDeque<WaitingCaller>,
}

#[derive(Debug)]
struct WaitingCaller {
    key: CallerKey,
    requests: VecDeque<WaitingRequest>,
}

#[derive(Debug)]
enum WaitingRequest {
    /// A future that receives the permit.
    Permit(oneshot::Sender<FairPermit>),
    /// Work that runs under the permit.
    Work(Box<dyn QueuedWork>),
}

impl WaitingRequest {
    fn is_cancelled(&self) -> bool {
        match self {
            Self::Permit(request) => request.is_closed(),
            Self::Work(work) => work.is_cancelled(),
        }
    }
}

pub trait QueuedWork: Send {
    /// Whether the result is no longer awaited.
    fn is_cancelled(&self) -> bool;

    fn run(self: Box<Self>);
}

impl fmt::Debug for dyn QueuedWork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("QueuedWork")
    }
}

/// A permit. When it is dropped, the next request gets it.
#[derive(Debug)]
pub struct FairPermit {
    semaphore: Arc<FairSemaphore>,
    /// The caller that has the permit; `None` once another request has it.
    key: Option<CallerKey>,
}

impl FairSemaphore {
    /// Makes a semaphore with this number of permits, for which at most `max_waiting` requests wait, at most
    /// `max_waiting_per_caller` of them from one caller.
    pub fn new(permits: usize, max_waiting: usize, max_waiting_per_caller: usize) -> Arc<Self> {
        Arc::new(Self {
            max_waiting,
            max_waiting_per_caller,
            state: Mutex::new(FairSemaphoreState {
                free_permits: permits,
                used_by_caller: HashMap::new(),
                waiting: VecDeque::new(),
            }),
        })
    }

    /// Waits for a permit of the caller. Dropping the future leaves the queue.
    ///
    /// # Errors If too many requests are already waiting, or another caller takes this request's place in the full
    /// queue.
    pub async fn acquire(self: &Arc<Self>, key: CallerKey) -> Result<FairPermit, QueueFull> {
        let (request, permit) = oneshot::channel();
        if self
            .enqueue(key, WaitingRequest::Permit(request))?
            .is_some()
        {
            return Ok(self.make_permit(key));
        }
        permit.await.map_err(|_| QueueFull::CallerLimit)
    }

    /// Runs work of the caller on a thread of the runtime, as soon as there is a permit for it. If another caller
    /// takes its place in the full queue, the work is dropped.
    pub fn spawn_work(
        self: &Arc<Self>,
        key: CallerKey,
        work: Box<dyn QueuedWork>,
    ) -> Result<(), QueueFull> {
        if let Some(WaitingRequest::Work(work)) = self.enqueue(key, WaitingRequest::Work(work))? {
            self.make_permit(key).start_work(work);
        }
        Ok(())
    }

    /// The number of requests that wait for a permit.
    pub fn count_waiting(&self) -> usize {
        self.lock_state().waiting_count()
    }

    /// Gives a free permit to a request and returns the request, or queues it.
    fn enqueue(
        &self,
        key: CallerKey,
        request: WaitingRequest,
    ) -> Result<Option<WaitingRequest>, QueueFull> {
        let mut state = self.lock_state();
        if state.free_permits > 0 {
            state.free_permits -= 1;
            *state.used_by_caller.entry(key).or_default() += 1;
            return Ok(Some(request));
        }
        if state.waiting_count() >= self.max_waiting
            || state.caller_waiting_count(key) >= self.max_waiting_per_caller
        {
            state.remove_cancelled();
        }
        if state.caller_waiting_count(key) >= self.max_waiting_per_caller {
            return Err(QueueFull::CallerLimit);
        }
        if state.waiting_count() >= self.max_waiting && !state.evict_newest_request(key) {
            return Err(QueueFull::TotalLimit);
        }
        match state.waiting.iter_mut().find(|caller| caller.key == key) {
            Some(caller) => caller.requests.push_back(request),
            None => state.waiting.push_back(WaitingCaller {
                key,
                requests: VecDeque::from([request]),
            }),
        }
        Ok(None)
    }

    /// Makes the permit that the state already counts for this caller.
    fn make_permit(self: &Arc<Self>, key: CallerKey) -> FairPermit {
        FairPermit {
            semaphore: Arc::clone(self),
            key: Some(key),
        }
    }

    /// No code panics while it is locked, so a poisoned lock is consistent.
    fn lock_state(&self) -> MutexGuard<'_, FairSemaphoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FairSemaphoreState {
    fn waiting_count(&self) -> usize {
        self.waiting
            .iter()
            .map(|caller| caller.requests.len())
            .sum()
    }

    fn caller_waiting_count(&self, key: CallerKey) -> usize {
        let caller = self.waiting.iter().find(|caller| caller.key == key);
        caller.map_or(0, |caller| caller.requests.len())
    }

    fn remove_cancelled(&mut self) {
        for caller in &mut self.waiting {
            caller.requests.retain(|request| !request.is_cancelled());
        }
        self.waiting.retain(|caller| !caller.requests.is_empty());
    }

    /// Makes room in the full queue for a request of a caller: drops the newest request of the caller with the most
    /// requests, if that caller has at least two more. Returns whether there is room.
    fn evict_newest_request(&mut self, key: CallerKey) -> bool {
        let own = self.caller_waiting_count(key);
        let callers = self.waiting.iter_mut();
        match callers.max_by_key(|caller| caller.requests.len()) {
            Some(most) if most.requests.len() >= own + 2 => most.requests.pop_back().is_some(),
            _ => false,
        }
    }

    /// Takes a permit back from a caller, and assigns it to the next request, if there is one.
    fn release(&mut self, key: CallerKey) -> Option<(CallerKey, WaitingRequest)> {
        // The permit still counts here, so that a caller that just had one comes after a caller that has none.
        let next = self.take_next_request();
        if let Some(used) = self.used_by_caller.get_mut(&key) {
            *used -= 1;
            if *used == 0 {
                self.used_by_caller.remove(&key);
            }
        }
        match &next {
            Some((key, _)) => *self.used_by_caller.entry(*key).or_default() += 1,
            None => self.free_permits += 1,
        }
        next
    }

    /// Takes the next request: the oldest one of the caller with the fewest permits. Of several such callers the one
    /// that has waited longest is served, and then moves to the end.
    fn take_next_request(&mut self) -> Option<(CallerKey, WaitingRequest)> {
        self.remove_cancelled();
        let used =
            |caller: &WaitingCaller| self.used_by_caller.get(&caller.key).copied().unwrap_or(0);
        let callers = self.waiting.iter().enumerate();
        let (index, _) = callers.min_by_key(|&(_, caller)| used(caller))?;
        let mut caller = self.waiting.remove(index)?;
        let request = caller.requests.pop_front()?;
        let key = caller.key;
        if !caller.requests.is_empty() {
            self.waiting.push_back(caller);
        }
        Some((key, request))
    }
}

impl FairPermit {
    /// Runs this work on a thread of the runtime, and then the work that waits for the permit.
    fn start_work(mut self, work: Box<dyn QueuedWork>) {
        let run = move || {
            let mut next = Some(work);
            while let Some(work) = next {
                work.run();
                next = self.hand_over();
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(run)),
            Err(_) => run(),
        }
    }

    /// Gives the permit to the next request whose client still waits, else frees it. If work is next, the work is
    /// returned, and this is its permit.
    fn hand_over(&mut self) -> Option<Box<dyn QueuedWork>> {
        let key = self.key.take()?;
        let (key, request) = self.semaphore.lock_state().release(key)?;
        match request {
            // The lock is released by now: if the client has just disconnected, the permit is dropped, which passes it
            // on again.
            WaitingRequest::Permit(request) => {
                drop(request.send(self.semaphore.make_permit(key)));
                None
            }
            WaitingRequest::Work(work) => {
                self.key = Some(key);
                Some(work)
            }
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(work) = self.hand_over() {
            let permit = Self {
                semaphore: Arc::clone(&self.semaphore),
                key: self.key.take(),
            };
            permit.start_work(work);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::net::IpAddr;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn caller(last: u8) -> CallerKey {
        CallerKey::Network(Some(IpAddr::from([192, 0, 2, last])))
    }

    /// A request for a permit.
    type Request = std::pin::Pin<Box<dyn Future<Output = Result<FairPermit, QueueFull>>>>;

    fn poll(request: &mut Request) -> Poll<Result<FairPermit, QueueFull>> {
        request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Waiting requests, each with its caller.
    struct WaitingRequests(Vec<(u8, Request)>);

    impl WaitingRequests {
        /// Adds a request of this caller; returns the reason if it may not wait.
        fn add(&mut self, semaphore: &Arc<FairSemaphore>, last: u8) -> Result<(), QueueFull> {
            let semaphore = Arc::clone(semaphore);
            let mut request: Request =
                Box::pin(async move { semaphore.acquire(caller(last)).await });
            match poll(&mut request) {
                Poll::Pending => self.0.push((last, request)),
                Poll::Ready(outcome) => return outcome.map(|_| ()),
            }
            Ok(())
        }

        /// Removes the request that has received a permit, which is at most one.
        fn take_ready(&mut self) -> Option<(u8, FairPermit)> {
            let mut ready = None;
            self.0.retain_mut(|(last, request)| match poll(request) {
                Poll::Pending => true,
                Poll::Ready(permit) => {
                    assert!(ready.is_none(), "one permit was given to two requests");
                    ready = Some((*last, permit.unwrap()));
                    false
                }
            });
            ready
        }
    }

    /// Acquires a free permit for the caller.
    fn acquire_free(semaphore: &Arc<FairSemaphore>, last: u8) -> FairPermit {
        let acquired = pin!(semaphore.acquire(caller(last)));
        match acquired.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit.unwrap(),
            Poll::Pending => panic!("no permit is free"),
        }
    }

    /// Returns the callers in the order in which their requests get the single permit, beginning with the holder of
    /// this one.
    fn order(mut waiting: WaitingRequests, first: FairPermit) -> Vec<u8> {
        let mut order = Vec::new();
        let mut permit = Some(first);
        while let Some(running) = permit.take() {
            drop(running);
            if let Some((last, next)) = waiting.take_ready() {
                order.push(last);
                permit = Some(next);
            }
        }
        assert!(waiting.0.is_empty());
        order
    }

    /// Asserts that all permits are free again, and that nothing else is left.
    fn assert_unused(semaphore: &FairSemaphore, permits: usize) {
        let state = semaphore.lock_state();
        let left = (
            state.free_permits,
            state.used_by_caller.len(),
            state.waiting.len(),
        );
        assert_eq!(left, (permits, 0, 0));
    }

    #[test]
    fn one_caller_delays_another_by_one_permit() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let running = acquire_free(&semaphore, 1);
        let mut waiting = WaitingRequests(Vec::new());
        for _ in 0..64 {
            waiting.add(&semaphore, 1).unwrap();
        }
        waiting.add(&semaphore, 2).unwrap();
        waiting.add(&semaphore, 3).unwrap();
        waiting.add(&semaphore, 3).unwrap();
        let order = order(waiting, running);
        assert_eq!(order.len(), 67);
        // The first caller has just had a permit, although its next request has waited longest.
        assert_eq!(order[..6], [2, 1, 3, 1, 3, 1]);
        assert_unused(&semaphore, 1);
    }

    /// One caller has both permits and waits for more; the first permit that it releases goes to another caller.
    #[test]
    fn a_caller_without_a_permit_comes_before_one_that_has_some() {
        let semaphore = FairSemaphore::new(2, 256, 64);
        let [first, second] = [(); 2].map(|()| acquire_free(&semaphore, 1));
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1, 2, 2] {
            waiting.add(&semaphore, last).unwrap();
        }
        drop(first);
        let (last, of_second) = waiting.take_ready().unwrap();
        assert_eq!(last, 2);
        // Both callers have one permit now, so the one that has waited longest is next.
        drop(second);
        let (last, of_first) = waiting.take_ready().unwrap();
        assert_eq!(last, 1);
        drop(of_first);
        for expected in [2, 1] {
            let (last, permit) = waiting.take_ready().unwrap();
            assert_eq!(last, expected);
            drop(permit);
        }
        drop(of_second);
        assert_unused(&semaphore, 2);
    }

    #[test]
    fn a_caller_has_a_share_of_the_queue_and_a_cancelled_request_has_none() {
        let semaphore = FairSemaphore::new(1, 4, 2);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1] {
            waiting.add(&semaphore, last).unwrap();
        }
        assert_eq!(waiting.add(&semaphore, 1), Err(QueueFull::CallerLimit));
        for last in [2, 3] {
            waiting.add(&semaphore, last).unwrap();
        }
        assert_eq!(waiting.add(&semaphore, 2), Err(QueueFull::TotalLimit));
        // Disconnected clients count neither for their caller nor for the total.
        drop(waiting.0.remove(0));
        drop(waiting.0.remove(1));
        waiting.add(&semaphore, 1).unwrap();
        waiting.add(&semaphore, 4).unwrap();
        assert_eq!(waiting.add(&semaphore, 3), Err(QueueFull::TotalLimit));
        assert_eq!(order(waiting, running), [1, 3, 4, 1]);
        assert_unused(&semaphore, 1);
    }

    /// A few callers cannot keep all others out of the queue.
    #[test]
    fn a_full_queue_has_room_for_a_caller_with_fewer_requests() {
        let semaphore = FairSemaphore::new(1, 4, 4);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1, 1, 1, 2] {
            waiting.add(&semaphore, last).unwrap();
        }
        // The newest request of the first caller was dropped.
        let (last, mut dropped) = waiting.0.remove(3);
        assert_eq!(last, 1);
        let refused = poll(&mut dropped);
        assert!(matches!(refused, Poll::Ready(Err(QueueFull::CallerLimit))));
        waiting.add(&semaphore, 3).unwrap();
        let (last, mut dropped) = waiting.0.remove(2);
        assert_eq!(last, 1);
        assert!(poll(&mut dropped).is_ready());
        // A caller does not take the place of another that has at most one request more.
        assert_eq!(waiting.add(&semaphore, 2), Err(QueueFull::TotalLimit));
        assert_eq!(order(waiting, running), [1, 2, 3, 1]);
        assert_unused(&semaphore, 1);
    }

    /// Work of a test.
    struct TestWork<F> {
        work: F,
        is_cancelled: bool,
    }

    impl<F: FnOnce() + Send> QueuedWork for TestWork<F> {
        fn is_cancelled(&self) -> bool {
            self.is_cancelled
        }

        fn run(self: Box<Self>) {
            let Self { work, .. } = *self;
            work();
        }
    }

    fn work(work: impl FnOnce() + Send + 'static) -> Box<dyn QueuedWork> {
        Box::new(TestWork {
            work,
            is_cancelled: false,
        })
    }

    fn cancelled(work: impl FnOnce() + Send + 'static) -> Box<dyn QueuedWork> {
        Box::new(TestWork {
            work,
            is_cancelled: true,
        })
    }

    #[tokio::test]
    async fn work_that_waits_follows_on_the_same_thread() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (threads, ran) = std::sync::mpsc::channel();
        let note = |threads: &std::sync::mpsc::Sender<_>| {
            let threads = threads.clone();
            move || threads.send(std::thread::current().id()).unwrap()
        };
        let first = note(&threads);
        let first = work(move || {
            begun.recv().unwrap();
            first();
        });
        semaphore.spawn_work(caller(1), first).unwrap();
        let unwanted = cancelled(|| panic!("cancelled work was run"));
        semaphore.spawn_work(caller(2), unwanted).unwrap();
        semaphore
            .spawn_work(caller(3), work(note(&threads)))
            .unwrap();
        begin.send(()).unwrap();
        drop(semaphore.acquire(caller(4)).await.unwrap());
        let ran: Vec<_> = ran.try_iter().collect();
        assert_eq!(ran.len(), 2);
        assert_eq!(ran[0], ran[1]);
        assert_unused(&semaphore, 1);
    }

    #[tokio::test]
    async fn work_that_panics_passes_its_permit_on() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let (done, is_done) = oneshot::channel();
        let panics = work(|| panic!("failing work"));
        semaphore.spawn_work(caller(1), panics).unwrap();
        let after = work(move || done.send(()).unwrap());
        semaphore.spawn_work(caller(1), after).unwrap();
        is_done.await.unwrap();
        drop(semaphore.acquire(caller(1)).await.unwrap());
        assert_unused(&semaphore, 1);
    }

    #[test]
    fn a_permit_whose_client_has_gone_goes_to_the_next() {
        let semaphore = FairSemaphore::new(1, 5, 5);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in 1..=3 {
            waiting.add(&semaphore, last).unwrap();
        }
        // The first request has its permit, and its client disconnects before it notices.
        drop(running);
        drop(waiting.0.remove(0));
        let (last, permit) = waiting.take_ready().unwrap();
        assert_eq!(last, 2);
        assert_eq!(order(waiting, permit), [3]);
        assert_unused(&semaphore, 1);
    }
}
