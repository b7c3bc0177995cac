//! Counts what each flow has recently put into the store's history, and decides which flows have to wait when the
//! store runs short of space.
//!
//! What a write replaces or removes stays in the history for a while. A store that is short of space says how much
//! room its history has. Every [flow](drydock_serving::request::user::User::flow) gets an equal share of that, and what one
//! does not need is left to the others. So no user fills the store with rewrites, and none waits for those who try.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long replaced bytes count: about as long as a store that is short of space keeps history.
const COUNTS: Duration = Duration::from_secs(30);
/// Bytes that are replaced within this time are counted together.
const SLOT: Duration = Duration::from_secs(2);
/// Maximum flows that are counted separately; all others count as one.
const FLOWS: usize = 1024;

/// Bytes of replaced and removed objects, by flow.
#[derive(Debug, Default)]
pub struct ReplacedBytes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    slots: VecDeque<Slot>,
    flows: HashMap<String, u64>,
    total: u64,
}

#[derive(Debug)]
struct Slot {
    began: Instant,
    flows: HashMap<String, u64>,
}

impl ReplacedBytes {
    /// Whether a flow may write, where history has so much `room` in all. A flow may go beyond its share by what its
    /// requests in flight replace.
    ///
    /// # Errors
    /// How long it has to wait before another try may succeed.
    pub fn check(&self, flow: &str, room: u64, now: Instant) -> Result<(), Duration> {
        let state = &mut *self.0.lock();
        state.forget(now);
        let written = state.flows.get(state.known(flow)).copied().unwrap_or_default();
        let flows = state.flows.len() as u64 + u64::from(written == 0);
        if state.total < room || written < room / flows {
            return Ok(());
        }
        let oldest = state.slots.front().map_or(now, |slot| slot.began);
        Err((oldest + COUNTS).saturating_duration_since(now))
    }

    /// A flow has replaced so many bytes.
    pub fn note(&self, flow: &str, bytes: u64, now: Instant) {
        let state = &mut *self.0.lock();
        state.forget(now);
        if state.slots.back().is_none_or(|slot| slot.began + SLOT <= now) {
            state.slots.push_back(Slot { began: now, flows: HashMap::new() });
        }
        let flow = state.known(flow);
        state.total += bytes;
        add(&mut state.flows, flow, bytes);
        if let Some(slot) = state.slots.back_mut() {
            add(&mut slot.flows, flow, bytes);
        }
    }
}

impl State {
    /// The name under which a flow is counted.
    fn known<'a>(&self, flow: &'a str) -> &'a str {
        if self.flows.len() < FLOWS || self.flows.contains_key(flow) { flow } else { "" }
    }

    fn forget(&mut self, now: Instant) {
        while let Some(slot) = self.slots.pop_front_if(|slot| slot.began + COUNTS <= now) {
            for (flow, bytes) in slot.flows {
                self.total -= bytes;
                if let Some(written) = self.flows.get_mut(&flow) {
                    *written -= bytes;
                    if *written == 0 {
                        self.flows.remove(&flow);
                    }
                }
            }
        }
    }
}

fn add(flows: &mut HashMap<String, u64>, flow: &str, bytes: u64) {
    match flows.get_mut(flow) {
        Some(written) => *written += bytes,
        None => drop(flows.insert(flow.to_owned(), bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY_BYTES: u64 = 1200;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Writes 10 bytes at a time until it is refused; returns how many.
    fn flood(written: &ReplacedBytes, flow: &str, now: Instant) -> u64 {
        let mut bytes = 0;
        while written.check(flow, HISTORY_BYTES, now).is_ok() {
            written.note(flow, 10, now);
            bytes += 10;
        }
        bytes
    }

    #[test]
    fn one_flow_gets_all_the_room_and_the_next_still_its_share() {
        let (written, now) = (ReplacedBytes::default(), Instant::now());
        let got = ["a", "b", "c"].map(|flow| flood(&written, flow, now));
        assert_eq!(got, [HISTORY_BYTES, HISTORY_BYTES / 2, HISTORY_BYTES / 3]);
        assert_eq!(flood(&written, "a", now), 0);
    }

    #[test]
    fn whoever_wrote_before_the_store_ran_short_waits_and_nobody_else() {
        let (written, now) = (ReplacedBytes::default(), Instant::now());
        written.note("a", 100 * HISTORY_BYTES, now);
        written.note("b", 10, now + secs(3));
        let now = now + secs(3);
        assert_eq!(written.check("a", HISTORY_BYTES, now), Err(secs(27)));
        assert!(
            written.check("b", HISTORY_BYTES, now).is_ok() && written.check("c", HISTORY_BYTES, now).is_ok()
        );
        assert!(written.check("a", HISTORY_BYTES, now + secs(27)).is_ok(), "its bytes are forgotten");
        let state = written.0.lock();
        assert_eq!((state.slots.len(), state.flows.len(), state.total), (1, 1, 10));
    }

    #[test]
    fn flows_beyond_number_count_as_one() {
        let (written, now) = (ReplacedBytes::default(), Instant::now());
        for flow in 0..3 * FLOWS {
            written.note(&flow.to_string(), 10, now);
        }
        assert_eq!(written.0.lock().flows.len(), FLOWS + 1);
        assert!(written.check("5000", HISTORY_BYTES, now).is_err());
        written.note("", 0, now + COUNTS);
        assert!(written.0.lock().total == 0);
    }
}
