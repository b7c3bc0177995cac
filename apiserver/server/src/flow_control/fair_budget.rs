//! A budget that the users of requests in flight share.
//!
//! A [flow](User::flow) may hold as much as is free after it has taken it: one flow alone gets half of the budget,
//! two get a third each, and so on. The next flow therefore always finds room, however much the others hold and
//! however long they hold it (A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory
//! packet switches", 1998). What is left becomes small when there are many flows, so a quarter of the budget is
//! reserved for the levels of the host's components and of the controllers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_serving::clock;
use drydock_serving::request::user::User;
use drydock_storage::storage::MemoryBudget;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::flow_control::PriorityLevel;

/// Longest wait for room, if a quarter of the request's time is not shorter.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The budget. Its owner chooses the unit.
#[derive(Debug)]
pub struct FairBudget {
    pools: Mutex<Pools>,
    /// Notified when units are given back. It wakes no more requests than there are seats, because a waiting request
    /// holds seats.
    freed: Notify,
    /// The message of a 429 for a request that has waited and got no room.
    refusal: &'static str,
}

#[derive(Debug)]
struct Pools {
    common: Pool,
    /// For levels that [have their own room](PriorityLevel::has_own_room).
    own: Pool,
}

#[derive(Debug)]
struct Pool {
    free: usize,
    /// What each flow holds; flows that hold nothing are not listed.
    held: HashMap<String, usize>,
}

/// Units that a request holds of each pool.
#[derive(Clone, Copy, Debug, Default)]
struct Units {
    common: usize,
    own: usize,
}

impl FairBudget {
    /// A budget of `total` units; a request that has waited and got no room gets a 429 with the message `refusal`.
    pub fn new(total: usize, refusal: &'static str) -> Self {
        let (common, own) = (Pool::new(total - total / 4), Pool::new(total / 4));
        Self { pools: Mutex::new(Pools { common, own }), freed: Notify::new(), refusal }
    }

    /// Returns an empty holding for a user's request that must be answered by `deadline`.
    pub fn holding(self: &Arc<Self>, user: &Arc<User>, level: PriorityLevel, deadline: Instant) -> Holding {
        let budget = level.waits_for_room().then(|| self.clone());
        Holding { budget, user: user.clone(), level, held: Units::default(), deadline }
    }

    /// Units that are free to all levels.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.pools.lock().common.free
    }

    /// Takes units from one pool, if there is room.
    fn try_take(&self, flow: &str, level: PriorityLevel, units: usize) -> Option<Units> {
        let pools = &mut *self.pools.lock();
        if pools.common.try_take(flow, units) {
            return Some(Units { common: units, own: 0 });
        }
        let takes = level.has_own_room() && pools.own.try_take(flow, units);
        takes.then_some(Units { common: 0, own: units })
    }

    async fn wait(&self, flow: &str, level: PriorityLevel, units: usize) -> Units {
        loop {
            // Listens before it looks, so that what is given back in between is not missed.
            let freed = self.freed.notified();
            if let Some(taken) = self.try_take(flow, level, units) {
                return taken;
            }
            freed.await;
        }
    }

    fn give_back(&self, flow: &str, units: Units) {
        {
            let pools = &mut *self.pools.lock();
            pools.common.give_back(flow, units.common);
            pools.own.give_back(flow, units.own);
        }
        self.freed.notify_waiters();
    }
}

impl Pool {
    fn new(free: usize) -> Self {
        Self { free, held: HashMap::new() }
    }

    fn try_take(&mut self, flow: &str, units: usize) -> bool {
        let held = self.held.get(flow).copied().unwrap_or_default();
        let Some(free) = self.free.checked_sub(units).filter(|free| held + units <= *free) else {
            return false;
        };
        self.free = free;
        match self.held.get_mut(flow) {
            Some(held) => *held += units,
            None => drop(self.held.insert(flow.to_owned(), units)),
        }
        true
    }

    fn give_back(&mut self, flow: &str, units: usize) {
        self.free += units;
        if let Some(held) = self.held.get_mut(flow) {
            *held = held.saturating_sub(units);
            if *held == 0 {
                self.held.remove(flow);
            }
        }
    }
}

/// What one request holds of a budget until this is dropped.
#[derive(Debug)]
pub struct Holding {
    /// Absent where nothing is counted.
    budget: Option<Arc<FairBudget>>,
    user: Arc<User>,
    level: PriorityLevel,
    held: Units,
    deadline: Instant,
}

impl Holding {
    /// Takes `units` more, and waits for room if necessary.
    ///
    /// # Errors
    /// 429 with Retry-After if there is no room within 15 s, or within a quarter of the time until the deadline if
    /// that is shorter.
    pub async fn take(&mut self, units: usize) -> Result<(), ApiError> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let taken = match budget.try_take(self.user.flow(), self.level, units) {
            Some(taken) => taken,
            None => {
                let left = self.deadline.saturating_duration_since(clock::now());
                let wait = budget.wait(self.user.flow(), self.level, units);
                let waited = tokio::time::timeout(LONGEST_WAIT.min(left / 4), wait).await;
                waited.map_err(|_| ApiError::too_many_requests(budget.refusal, 1))?
            }
        };
        self.held = Units { common: self.held.common + taken.common, own: self.held.own + taken.own };
        Ok(())
    }
}

/// For a budget whose unit is a byte.
#[async_trait]
impl MemoryBudget for Holding {
    async fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        Holding::take(self, bytes).await
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.as_ref().filter(|_| self.held.common + self.held.own > 0) {
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

    /// A budget with `common` units for all levels.
    fn budget(common: usize) -> Arc<FairBudget> {
        Arc::new(FairBudget::new(common / 3 * 4, "try again"))
    }

    fn of(budget: &Arc<FairBudget>, user: &Arc<User>, level: PriorityLevel) -> Holding {
        budget.holding(user, level, Instant::now() + Duration::from_secs(60))
    }

    fn share(budget: &Arc<FairBudget>, name: &str) -> Holding {
        of(budget, &user(name, "system:authenticated"), PriorityLevel::Everybody)
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
        assert!(budget.pools.lock().common.held.is_empty());
    }

    #[tokio::test]
    async fn the_service_accounts_of_a_namespace_share() {
        let budget = budget(99);
        let account =
            |name: &str| of(&budget, &user(name, "system:serviceaccounts:shop"), PriorityLevel::Everybody);
        let mut first = account("system:serviceaccount:shop:a");
        assert!(fits(&mut first, 40));
        assert!(!fits(&mut account("system:serviceaccount:shop:b"), 40));
        assert!(fits(&mut account("ann"), 10));
    }

    #[tokio::test]
    async fn masters_neither_take_nor_wait() {
        let budget = budget(12);
        let mut other = share(&budget, "a");
        assert!(fits(&mut other, 5));
        let mut master = of(&budget, &user("admin", "system:masters"), PriorityLevel::Exempt);
        assert!(fits(&mut master, 1 << 30));
        assert_eq!(budget.free(), 7);
    }

    /// Thirty users with a little each left no room for a controller's status.
    #[tokio::test]
    async fn controllers_find_room_however_many_others_there_are() {
        let budget = budget(96);
        let others: Vec<_> = (0..30)
            .filter_map(|number| {
                let mut holding = share(&budget, &number.to_string());
                fits(&mut holding, 3).then_some(holding)
            })
            .collect();
        assert!(!fits(&mut share(&budget, "one more"), 10) && others.len() == 30);
        let manager = user("manager", "system:authenticated");
        let mut status = of(&budget, &manager, PriorityLevel::Controllers);
        assert!(fits(&mut status, 10));
        drop((status, others));
        assert_eq!((budget.free(), budget.pools.lock().own.free), (96, 32));
    }

    #[tokio::test]
    async fn a_request_waits_for_room_and_is_refused_in_time() {
        let budget = budget(12);
        let mut first = share(&budget, "a");
        first.take(5).await.unwrap();
        let soon = Instant::now() + Duration::from_millis(40);
        let mut late = budget.holding(&user("a", "system:authenticated"), PriorityLevel::Everybody, soon);
        let refused = late.take(5).await.unwrap_err();
        assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
        let mut second = share(&budget, "a");
        let mut waiting = Box::pin(second.take(5));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        waiting.await.unwrap();
        drop(second);
        assert_eq!(budget.free(), 12);
    }
}
