//! The cores for requests that compute: which one has a core, and which is next.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use parking_lot::Mutex;

/// Cores that requests share: users take turns, however many requests each has.
#[derive(Debug)]
pub struct Cores(Mutex<Line<Waiter>>);

/// A request that takes a core whenever it computes.
#[derive(Debug)]
pub struct Computing {
    cores: Arc<Cores>,
    flow: Arc<str>,
    comes_first: bool,
}

/// A core that a request has, until this is dropped.
#[derive(Debug)]
pub struct Core<'a>(&'a Computing);

/// A thread that waits for a core.
#[derive(Debug)]
struct Waiter {
    thread: Thread,
    has_core: Arc<AtomicBool>,
}

impl Cores {
    /// `count` cores, and at least one.
    pub fn new(count: usize) -> Self {
        Self(Mutex::new(Line::new(count.max(1))))
    }

    /// Adds a request of a flow. If `comes_first`, it gets the next free core before all others that wait.
    pub fn request(self: &Arc<Self>, flow: &str, comes_first: bool) -> Computing {
        let flow = self.0.lock().join(flow);
        Computing { cores: self.clone(), flow, comes_first }
    }
}

impl Computing {
    /// Blocks the thread until the request has a core.
    pub fn core(&self) -> Core<'_> {
        let has_core = Arc::new(AtomicBool::new(false));
        let waiter = || Waiter { thread: thread::current(), has_core: has_core.clone() };
        let has_one = self.cores.0.lock().take(&self.flow, self.comes_first, waiter);
        while !has_one && !has_core.load(Ordering::Acquire) {
            thread::park();
        }
        Core(self)
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        let next = self.0.cores.0.lock().give_back();
        if let Some(next) = next {
            next.has_core.store(true, Ordering::Release);
            next.thread.unpark();
        }
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.cores.0.lock().leave(&self.flow);
    }
}

/// The order of requests, without threads: a `W` is a request that waits.
#[derive(Debug)]
struct Line<W> {
    free: usize,
    /// Number of the next grant or arrival.
    next: u64,
    flows: HashMap<Arc<str>, Flow>,
    waiting: Vec<Waiting<W>>,
}

/// A flow that has requests.
#[derive(Debug, Default)]
struct Flow {
    requests: usize,
    /// Number of its last grant; 0 before its first one.
    last: u64,
}

#[derive(Debug)]
struct Waiting<W> {
    flow: Arc<str>,
    comes_first: bool,
    since: u64,
    who: W,
}

impl<W> Line<W> {
    fn new(free: usize) -> Self {
        Self { free, next: 1, flows: HashMap::new(), waiting: Vec::new() }
    }

    fn join(&mut self, flow: &str) -> Arc<str> {
        let flow = self.flows.get_key_value(flow).map_or_else(|| Arc::from(flow), |(known, _)| known.clone());
        self.flows.entry(flow.clone()).or_default().requests += 1;
        flow
    }

    fn leave(&mut self, flow: &Arc<str>) {
        if let Some(known) = self.flows.get_mut(flow) {
            known.requests -= 1;
            if known.requests == 0 {
                self.flows.remove(flow);
            }
        }
    }

    /// Whether there is a core at once; otherwise the request waits for one.
    fn take(&mut self, flow: &Arc<str>, comes_first: bool, who: impl FnOnce() -> W) -> bool {
        if self.free > 0 {
            self.free -= 1;
            self.turn(flow);
            return true;
        }
        let since = self.number();
        self.waiting.push(Waiting { flow: flow.clone(), comes_first, since, who: who() });
        false
    }

    /// Gives a core back. Returns the request that gets it.
    fn give_back(&mut self) -> Option<W> {
        let rank = |waiting: &Waiting<W>| {
            let last = self.flows.get(&waiting.flow).map_or(0, |flow| flow.last);
            (!waiting.comes_first, last, waiting.since)
        };
        let next = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| rank(waiting)).map(|(at, _)| at);
        let Some(next) = next else {
            self.free += 1;
            return None;
        };
        let next = self.waiting.swap_remove(next);
        self.turn(&next.flow);
        Some(next.who)
    }

    fn turn(&mut self, flow: &Arc<str>) {
        let number = self.number();
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.last = number;
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of flows wait in this order; returns the order in which they get the core.
    fn order(waiting: &[(&'static str, bool)]) -> Vec<&'static str> {
        let mut line = Line::new(1);
        let holder = line.join("holder");
        assert!(line.take(&holder, false, || "holder"));
        for (flow, comes_first) in waiting {
            let known = line.join(flow);
            assert!(!line.take(&known, *comes_first, || *flow));
        }
        std::iter::from_fn(|| line.give_back()).collect()
    }

    /// 32 patches of one tenant used to make everybody else wait for 32 grants.
    #[test]
    fn who_has_many_requests_has_one_turn_among_those_of_others() {
        let mut waiting = vec![("many", false); 32];
        waiting.extend([("one", false), ("two", false), ("two", false)]);
        let order = order(&waiting);
        assert_eq!(order[..6], ["many", "one", "two", "many", "two", "many"]);
        assert_eq!(order.len(), 35);
    }

    #[test]
    fn who_comes_first_is_next() {
        assert_eq!(
            order(&[("a", false), ("b", false), ("manager", true), ("manager", true)]),
            ["manager", "manager", "a", "b"]
        );
    }

    #[test]
    fn nothing_is_kept_of_a_flow_without_requests() {
        let cores = Arc::new(Cores::new(0));
        let (one, other) = (cores.request("a", false), cores.request("a", false));
        drop(one.core());
        drop((one, other));
        let line = cores.0.lock();
        assert!(line.flows.is_empty() && line.free == 1);
    }

    #[test]
    fn a_thread_waits_until_it_has_a_core() {
        let cores = Arc::new(Cores::new(1));
        let (first, second) = (cores.request("a", false), cores.request("b", false));
        let has_begun = AtomicBool::new(false);
        thread::scope(|scope| {
            let core = first.core();
            let waits = scope.spawn(|| {
                let _core = second.core();
                has_begun.load(Ordering::Acquire)
            });
            while cores.0.lock().waiting.is_empty() {
                thread::yield_now();
            }
            has_begun.store(true, Ordering::Release);
            drop(core);
            assert!(waits.join().is_ok_and(|in_order| in_order));
        });
    }
}
