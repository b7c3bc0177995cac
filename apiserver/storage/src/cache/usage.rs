//! Counts how much of a kind's quota each namespace uses: the objects that count, the objects that are about to be
//! created, and the bytes of all objects.
//!
//! ```text
//!   reserve ──> Reserved ──created──> Created ──the watch shows it──> Observed ──does not count any more──> (none)
//!                  └──not created──> (none)                             ▲
//!   created without a reservation ─────────the watch shows it───────────┘
//! ```
//!
//! The task that follows the backend maintains the counts, so a reservation costs one look-up. A creation counts from
//! its reservation on, so concurrent creations stay within the limit. Replicas on one etcd learn of each other's
//! creations through their watches: together they may exceed a limit by what each of the others creates in the
//! meantime, and never exceed the limit times the number of replicas.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::field_mask::FieldMask;
use drydock_machinery::kind::Quota;
use drydock_machinery::object::json_len;
use parking_lot::Mutex;
use serde_json::Value;

use crate::backend::Revision;
use crate::storage::{StorageError, Stored};

/// The use of a quota, by namespace.
pub struct QuotaUsage {
    quota: Quota,
    reads: FieldMask,
    /// The fields whose bytes count, where the status does not.
    without_status: FieldMask,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether `claims` are those of a filled cache.
    ready: bool,
    /// The last revision that the watch has delivered.
    seen: Revision,
    claims: HashMap<Box<str>, HashMap<Box<str>, QuotaClaim>>,
    /// Bytes of all objects, as far as they count.
    bytes: HashMap<Box<str>, u64>,
}

/// Why an object counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuotaClaim {
    /// This many callers are about to create it.
    Reserved(usize),
    /// It was created at this revision, which the watch has not delivered yet.
    Created(Revision),
    /// The watch has delivered it.
    Observed,
}

/// A reservation of one object. Dropping it releases it, unless the object was created.
#[must_use]
#[derive(Debug)]
pub struct Reservation {
    usage: Arc<QuotaUsage>,
    key: String,
}

/// Why a reservation failed.
#[derive(Debug)]
pub enum ReservationError {
    /// The number of objects that count already, or of bytes that are used.
    Used(u64),
    /// The use is not known.
    Unknown(StorageError),
}

impl QuotaUsage {
    pub(super) fn new(quota: Quota) -> Self {
        let reads = FieldMask::of(quota.reads.iter().copied());
        let without_status = FieldMask::of(["metadata", "spec"]);
        Self { quota, reads, without_status, state: Mutex::default() }
    }

    /// The quota.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Checks whether the namespace of the object under `key` may use more bytes.
    ///
    /// # Errors
    /// If its bytes reach the quota, or if the cache is not filled yet.
    pub fn check_bytes(&self, key: &str) -> Result<(), ReservationError> {
        let state = self.state.lock();
        if !state.ready {
            return Err(ReservationError::Unknown(StorageError::NotReady));
        }
        match state.bytes.get(split(key).0) {
            Some(&used) if used >= self.quota.bytes.hard => Err(ReservationError::Used(used)),
            _ => Ok(()),
        }
    }

    /// Reserves the object under `key` (`namespace/name`), if fewer objects of its namespace count than the quota
    /// allows.
    ///
    /// # Errors
    /// If the quota is used up, or if the cache is not filled yet.
    pub fn reserve(self: &Arc<Self>, key: &str) -> Result<Reservation, ReservationError> {
        let (namespace, name) = split(key);
        let mut state = self.state.lock();
        if !state.ready {
            return Err(ReservationError::Unknown(StorageError::NotReady));
        }
        let used = state.claims.get(namespace).map_or(0, HashMap::len);
        if used >= self.quota.hard {
            return Err(ReservationError::Used(used as u64));
        }
        // Several callers that create the same name count once, and so does an object that exists.
        let claims = state.claims.entry(namespace.into()).or_default();
        if let QuotaClaim::Reserved(by) = claims.entry(name.into()).or_insert(QuotaClaim::Reserved(0)) {
            *by += 1;
        }
        Ok(Reservation { usage: self.clone(), key: key.to_owned() })
    }

    /// Counts `items`, with which the cache was filled at `revision`.
    pub(super) fn fill(&self, items: &[Arc<Stored>], revision: Revision) {
        let mut claims = HashMap::<Box<str>, HashMap<Box<str>, QuotaClaim>>::new();
        let mut bytes = HashMap::<Box<str>, u64>::new();
        for item in items {
            let (namespace, name) = split(&item.key);
            *bytes.entry(namespace.into()).or_default() += self.bytes_of(item);
            if self.counts(item) {
                claims.entry(namespace.into()).or_default().insert(name.into(), QuotaClaim::Observed);
            }
        }
        let mut state = self.state.lock();
        for (namespace, names) in std::mem::take(&mut state.claims) {
            for (name, claim) in names.into_iter().filter(|(_, claim)| claim.is_after(revision)) {
                claims.entry(namespace.clone()).or_default().entry(name).or_insert(claim);
            }
        }
        *state = State { ready: true, seen: revision, claims, bytes };
    }

    /// Records that the cache is lost: nothing is reserved until it is filled.
    pub(super) fn abandon(&self) {
        self.state.lock().ready = false;
    }

    /// Records that the watch delivered `current` for the key at `revision`, in place of `previous`.
    pub(super) fn note(
        &self,
        key: &str,
        previous: Option<&Stored>,
        current: Option<&Stored>,
        revision: Revision,
    ) {
        let counts = current.is_some_and(|stored| self.counts(stored));
        let [before, after] = [previous, current].map(|stored| stored.map_or(0, |it| self.bytes_of(it)));
        let (namespace, name) = split(key);
        let mut state = self.state.lock();
        state.seen = state.seen.max(revision);
        state.resize(namespace, before, after);
        if counts {
            state.claims.entry(namespace.into()).or_default().insert(name.into(), QuotaClaim::Observed);
        } else {
            state.remove(namespace, name, |claim| !claim.is_after(revision));
        }
    }

    /// The bytes of an object that count. They are read from its JSON, so that they are the same whether it is decoded or not.
    fn bytes_of(&self, stored: &Stored) -> u64 {
        if self.quota.bytes.counts_status {
            return stored.json_len() as u64;
        }
        let rest = self.without_status.read(&stored.json());
        let managers = rest.meta().and_then(|meta| meta.get("managedFields")).and_then(Value::as_array);
        let of_status = managers.into_iter().flatten().filter(|entry| entry["subresource"] == "status");
        json_len(&rest.0).saturating_sub(of_status.map(json_len).sum()) as u64
    }

    fn counts(&self, stored: &Stored) -> bool {
        (self.quota.counts)(&stored.with_fields(&self.reads))
    }
}

impl Reservation {
    /// Records that the object was created at `revision`: it counts until the watch shows that it no longer does.
    pub fn made(self, revision: Revision) {
        let (namespace, name) = split(&self.key);
        let mut state = self.usage.state.lock();
        if revision > state.seen {
            state
                .claims
                .entry(namespace.into())
                .or_default()
                .insert(name.into(), QuotaClaim::Created(revision));
        }
    }
}

impl Drop for Reservation {
    /// Releases the reservation; an object that the watch has delivered still counts.
    fn drop(&mut self) {
        let (namespace, name) = split(&self.key);
        let mut state = self.usage.state.lock();
        if let Some(QuotaClaim::Reserved(by)) =
            state.claims.get_mut(namespace).and_then(|names| names.get_mut(name))
        {
            *by -= 1;
        }
        state.remove(namespace, name, |claim| claim == QuotaClaim::Reserved(0));
    }
}

impl State {
    fn resize(&mut self, namespace: &str, before: u64, after: u64) {
        match self.bytes.get_mut(namespace) {
            Some(bytes) => *bytes = bytes.saturating_sub(before) + after,
            None => drop(self.bytes.insert(namespace.into(), after)),
        }
        if after == 0 && self.bytes.get(namespace) == Some(&0) {
            self.bytes.remove(namespace);
        }
    }

    fn remove(&mut self, namespace: &str, name: &str, goes: impl Fn(QuotaClaim) -> bool) {
        let Some(names) = self.claims.get_mut(namespace) else { return };
        if names.get(name).is_some_and(|claim| goes(*claim)) {
            names.remove(name);
        }
        if names.is_empty() {
            self.claims.remove(namespace);
        }
    }
}

impl QuotaClaim {
    /// Whether the claim is newer than what was delivered at `revision`.
    fn is_after(self, revision: Revision) -> bool {
        match self {
            Self::Reserved(_) => true,
            Self::Created(made) => made > revision,
            Self::Observed => false,
        }
    }
}

impl std::fmt::Debug for QuotaUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuotaUsage").finish_non_exhaustive()
    }
}

/// Splits a key into namespace and name; without a namespace, the former is "".
fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
