//! Decides which pod is evicted next. Namespaces take turns, because tenants can create any number of
//! budgets; within a namespace its budgets take turns, so that one with many pods does not delay one with
//! few.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::ObjectKey;
use drydock_runtime::round_robin::RoundRobin;
use tokio::time::Instant;

use super::in_flight_limit::InFlightLimit;

/// The lane of an eviction: the budget that covers the pod, or the namespace of pods without one.
pub(crate) type BudgetLane = ObjectKey;

/// An answer that takes at least this long shows that the budgets of the namespace are contended, or that the
/// host is overloaded.
const SLOW_ANSWER: Duration = Duration::from_secs(5);
/// The reserve is the limit divided by this. No more than 100 evictions fit on a connection to the host.
const RESERVE_DIVISOR: usize = 4;
/// Most namespaces without evictions whose lowered limit is remembered.
const MAX_RESTED_NAMESPACES: usize = 256;

/// The evictions that wait and those that are in flight.
///
/// A namespace may take all slots while no other wants one. When all are taken, there is a reserve for
/// namespaces that have less than an equal share: such a namespace may take another slot while it has fewer
/// than the reserve has left.
#[derive(Default)]
pub(crate) struct EvictionPool {
    /// Namespaces with evictions that wait or are in flight.
    namespaces: HashMap<Arc<str>, Namespace>,
    /// Namespaces with evictions that wait, the next one first.
    waiting: VecDeque<Arc<str>>,
    queued: HashSet<ObjectKey>,
    in_flight: usize,
    /// The limit of all namespaces together, which is lowered when the host asks to send less.
    limit: InFlightLimit,
    rested: HashMap<Arc<str>, (InFlightLimit, Instant)>,
    /// No eviction is taken before this time, because the host asked to wait.
    paused_until: Option<Instant>,
}

#[derive(Default)]
struct Namespace {
    lanes: RoundRobin<BudgetLane, ObjectKey>,
    in_flight: usize,
    /// The limit of this namespace, which is lowered when its evictions are answered slowly.
    limit: InFlightLimit,
}

impl EvictionPool {
    /// Adds a request, unless it waits already.
    pub(crate) fn submit(&mut self, lane: &BudgetLane, key: ObjectKey) {
        if !self.queued.insert(key.clone()) {
            return;
        }
        let rested = &mut self.rested;
        let namespace = self.namespaces.entry(key.namespace.clone()).or_insert_with(|| {
            let limit = rested.remove(&key.namespace).map(|(limit, _)| limit).unwrap_or_default();
            Namespace { limit, ..Namespace::default() }
        });
        if namespace.lanes.is_empty() {
            self.waiting.push_back(key.namespace.clone());
        }
        namespace.lanes.push(lane, key);
    }

    /// Takes the next request to evict, if a slot is free for one.
    pub(crate) fn take(&mut self, now: Instant) -> Option<ObjectKey> {
        let most = self.most_of_one();
        if most == 0 || self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let has_slot = |namespace: &Namespace| namespace.in_flight < most.min(namespace.limit.get());
        let next = self.waiting.iter().position(|name| self.namespaces.get(name).is_some_and(has_slot))?;
        let name = self.waiting.remove(next)?;
        let namespace = self.namespaces.get_mut(&name)?;
        let key = namespace.lanes.pop()?;
        namespace.in_flight += 1;
        if !namespace.lanes.is_empty() {
            self.waiting.push_back(name);
        }
        self.queued.remove(&key);
        self.in_flight += 1;
        Some(key)
    }

    /// A namespace may take a slot now if it has fewer evictions in flight than this. While no slot is free,
    /// this is an equal share at most, so that only few namespaces are below it, and none if there are more
    /// namespaces than slots.
    fn most_of_one(&self) -> usize {
        let most = self.limit.get();
        if self.in_flight < most {
            return usize::MAX;
        }
        let reserve = (most + most / RESERVE_DIVISOR).saturating_sub(self.in_flight);
        (most / self.namespaces.len().max(1)).min(reserve)
    }

    /// Frees the slot of a request, and adjusts the limits by how the host answered.
    pub(crate) fn finish(&mut self, key: &ObjectKey, overload: bool, latency: Duration, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.limit.learn(overload, now);
        let Some(namespace) = self.namespaces.get_mut(&key.namespace) else { return };
        namespace.in_flight = namespace.in_flight.saturating_sub(1);
        namespace.limit.learn(latency >= SLOW_ANSWER, now);
        if namespace.in_flight == 0 && namespace.lanes.is_empty() {
            self.rest(&key.namespace, now);
        }
    }

    /// Forgets a namespace without evictions, but remembers its lowered limit: its requests that wait for a
    /// budget come back.
    fn rest(&mut self, name: &Arc<str>, now: Instant) {
        let Some(limit) = self.namespaces.remove(name).map(|namespace| namespace.limit) else { return };
        if limit.is_full() {
            return;
        }
        if self.rested.len() >= MAX_RESTED_NAMESPACES
            && let Some(oldest) = self.rested.iter().min_by_key(|(_, (_, since))| *since)
        {
            let oldest = oldest.0.clone();
            self.rested.remove(&oldest);
        }
        self.rested.insert(name.clone(), (limit, now));
    }

    /// Pauses all evictions until `until`.
    pub(crate) fn pause(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// When the pause ends, if there is one.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Evictions in flight, those that wait, and the limit of all namespaces.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        (self.in_flight, self.queued.len(), self.limit.get())
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
