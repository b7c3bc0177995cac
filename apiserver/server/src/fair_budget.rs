//! A budget that the users of requests in flight share.
//!
//! A [flow](User::flow) may hold as much as is free after it has taken it: one flow alone gets half of the budget, two
//! get a third each, and so on. Whoever comes next therefore always finds room, however much the others hold and however
//! long they hold it (A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet
//! switches", 1998).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::user::{SYSTEM_MASTERS, User};

/// Longest wait for room, if a quarter of the request's time is not shorter.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The budget, in units of its owner's.
#[derive(Debug)]
pub struct FairBudget {
    state: Mutex<State>,
    /// Woken when something comes back.
    freed: Notify,
    /// What is said to whoever waited in vain.
    refusal: &'static str,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// What is held by flow; who holds nothing is not listed.
    held: HashMap<String, usize>,
}

impl FairBudget {
    /// A budget of so many units; whoever waits in vain gets a 429 with these words.
    pub fn new(total: usize, refusal: &'static str) -> Self {
        Self { state: Mutex::new(State { free: total, held: HashMap::new() }), freed: Notify::new(), refusal }
    }

    /// What a request will hold, as yet nothing. Group system:masters takes nothing from the budget and never waits.
    pub fn share(self: &Arc<Self>, user: &Arc<User>, deadline: Instant) -> Holding {
        let counted = !user.is_in(SYSTEM_MASTERS);
        Holding { budget: counted.then(|| self.clone()), user: user.clone(), held: 0, deadline }
    }

    /// Units that are free.
    pub fn free(&self) -> usize {
        self.state.lock().free
    }

    fn try_take(&self, flow: &str, units: usize) -> bool {
        let state = &mut *self.state.lock();
        let held = state.held.get(flow).copied().unwrap_or_default();
        let Some(free) = state.free.checked_sub(units).filter(|free| held + units <= *free) else {
            return false;
        };
        state.free = free;
        match state.held.get_mut(flow) {
            Some(held) => *held += units,
            None => drop(state.held.insert(flow.to_owned(), units)),
        }
        true
    }

    fn give_back(&self, flow: &str, units: usize) {
        {
            let state = &mut *self.state.lock();
            state.free += units;
            if let Some(held) = state.held.get_mut(flow) {
                *held = held.saturating_sub(units);
                if *held == 0 {
                    state.held.remove(flow);
                }
            }
        }
        self.freed.notify_waiters();
    }
}

/// What one request holds of a budget until this is dropped.
#[derive(Debug)]
pub struct Holding {
    budget: Option<Arc<FairBudget>>,
    user: Arc<User>,
    held: usize,
    deadline: Instant,
}

impl Holding {
    /// Takes some more, and waits for it if need be.
    ///
    /// # Errors
    /// 429 with Retry-After if there is no room in time: 15 s, or a quarter of what is left until the deadline.
    pub async fn take(&mut self, units: usize) -> Result<(), ApiError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        if !budget.try_take(self.user.flow(), units) {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let wait = wait(budget, self.user.flow(), units);
            let waited = tokio::time::timeout(LONGEST_WAIT.min(left / 4), wait).await;
            waited.map_err(|_| ApiError::too_many_requests(budget.refusal, 1))?;
        }
        self.held += units;
        Ok(())
    }
}

async fn wait(budget: &FairBudget, flow: &str, units: usize) {
    loop {
        // Whoever gives back between the look and the wait is not missed.
        let freed = budget.freed.notified();
        if budget.try_take(flow, units) {
            return;
        }
        freed.await;
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.as_ref().filter(|_| self.held > 0) {
            budget.give_back(self.user.flow(), self.held);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt;

    use super::*;

    fn user(name: &str, group: &str) -> Arc<User> {
        Arc::new(User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() })
    }

    fn budget(total: usize) -> Arc<FairBudget> {
        Arc::new(FairBudget::new(total, "try again"))
    }

    fn share(budget: &Arc<FairBudget>, name: &str) -> Holding {
        budget.share(&user(name, "system:authenticated"), Instant::now() + Duration::from_secs(60))
    }

    fn fits(share: &mut Holding, units: usize) -> bool {
        share.take(units).now_or_never().is_some_and(|taken| taken.is_ok())
    }

    #[tokio::test]
    async fn one_user_takes_half_and_the_next_still_finds_room() {
        let budget = budget(1200);
        let mut shares = Vec::new();
        for name in ["a", "b", "c"] {
            let mut all = Vec::new();
            while let Some(share) = Some(share(&budget, name)).filter(|_| all.len() < 1000) {
                let mut share = share;
                if !fits(&mut share, 10) {
                    break;
                }
                all.push(share);
            }
            shares.push(all);
        }
        let held: Vec<usize> = shares.iter().map(Vec::len).collect();
        assert_eq!(held, [60, 30, 15]);
        assert_eq!(budget.free(), 150);
        drop(shares);
        assert_eq!(budget.free(), 1200);
        assert!(budget.state.lock().held.is_empty());
    }

    #[tokio::test]
    async fn the_service_accounts_of_a_namespace_share() {
        let budget = budget(100);
        let by = Instant::now() + Duration::from_secs(60);
        let account = |name: &str| budget.share(&user(name, "system:serviceaccounts:shop"), by);
        let mut first = account("system:serviceaccount:shop:a");
        assert!(fits(&mut first, 40));
        assert!(!fits(&mut account("system:serviceaccount:shop:b"), 40));
        assert!(fits(&mut account("ann"), 10));
    }

    #[tokio::test]
    async fn masters_neither_take_nor_wait() {
        let budget = budget(10);
        let mut other = share(&budget, "a");
        assert!(fits(&mut other, 5));
        let by = Instant::now() + Duration::from_secs(60);
        let mut master = budget.share(&user("admin", SYSTEM_MASTERS), by);
        assert!(fits(&mut master, 1 << 30));
        assert_eq!(budget.free(), 5);
    }

    #[tokio::test]
    async fn a_request_waits_for_room_and_is_refused_in_time() {
        let budget = budget(10);
        let mut first = share(&budget, "a");
        first.take(5).await.unwrap();
        let soon = Instant::now() + Duration::from_millis(40);
        let mut late = budget.share(&user("a", "system:authenticated"), soon);
        let refused = late.take(5).await.unwrap_err();
        assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
        let mut second = share(&budget, "a");
        let mut waiting = Box::pin(second.take(5));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        waiting.await.unwrap();
        drop(second);
        assert_eq!(budget.free(), 10);
    }
}
