//! Decides of each pod that names a DaemonSet whether that DaemonSet is alive, and keeps it current in the cache of pods.
//!
//! ```text
//!             the cache has it, or the host that is asked
//!  Undecided ───────────────────────────────────────────▶ Alive
//!    │    ▲                                                │ │
//!    │    └───────────── a new list lacks it ──────────────┘ │
//!    │ the host has not                                      │ DELETED, or a deletionTimestamp
//!    └──────────────────────────▶ Gone ◀─────────────────────┘
//! ```
//!
//! The watches of pods and of DaemonSets are two: a pod may come before its DaemonSet. Both mistakes would do harm. A pod of a
//! DaemonSet that is taken for a workload is evicted in the wrong tier; a workload that is taken for a DaemonSet's pod is left on
//! a node that is said to be drained. So it stays undecided until the host, asked for that DaemonSet, has answered: its answer is
//! newer than the pod.

use std::sync::Arc;

use parking_lot::Mutex;

use super::daemon_set::DaemonSet;
use super::pod::{DaemonSetOwner, Pod};
use super::store::{ObjectChange, Store};

/// Most bytes of the name of an object.
const MAX_NAME: usize = 253;

/// Feeds the cache of pods. Clones share it.
///
/// Locks: `deciding` is taken before the locks of the pods' store, and handlers of pods run with it: none of them may feed pods.
#[derive(Clone)]
pub struct PodOwners {
    pods: Store<Pod>,
    daemon_sets: Store<DaemonSet>,
    /// Held while a decision is made and stored, so that no change of a DaemonSet comes between.
    deciding: Arc<Mutex<()>>,
}

/// The DaemonSet that a pod names as its controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedDaemonSet {
    /// Namespace of the pod, and so of the DaemonSet.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
}

impl NamedDaemonSet {
    /// The one that a pod names.
    pub fn of(pod: &Pod) -> Option<Self> {
        let owner = pod.controller.as_ref().filter(|_| pod.names_daemon_set())?;
        let [namespace, name, uid] =
            [&pod.namespace, &owner.name, &owner.uid].map(|text| text.as_str().into());
        Some(Self { namespace, name, uid })
    }

    fn is(&self, found: &DaemonSet) -> bool {
        (found.namespace.as_str(), found.name.as_str(), found.uid.as_str())
            == (&*self.namespace, &*self.name, &*self.uid)
    }

    fn is_of(&self, pod: &Pod) -> bool {
        pod.names_daemon_set()
            && pod
                .controller
                .as_ref()
                .is_some_and(|owner| *owner.uid == *self.uid && *owner.name == *self.name)
    }

    /// Whether a host can have it. Whoever writes the pod chooses the name, which becomes part of the path of a request.
    pub fn may_exist(&self) -> bool {
        let is_alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let is_label = |label: &str| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(is_alphanumeric)
                && bytes.last().is_some_and(is_alphanumeric)
                && bytes.iter().all(|b| is_alphanumeric(b) || *b == b'-')
        };
        self.name.len() <= MAX_NAME && self.name.split('.').all(is_label)
    }

    /// What the host's answer says, if it has an object of this name.
    pub fn judge(&self, found: Option<&DaemonSet>) -> DaemonSetOwner {
        match found.is_some_and(|found| self.is(found) && !found.is_being_deleted) {
            true => DaemonSetOwner::Alive,
            false => DaemonSetOwner::Gone,
        }
    }
}

impl PodOwners {
    /// Decides for these pods from now on, by these DaemonSets.
    pub(super) fn follow(pods: Store<Pod>, daemon_sets: Store<DaemonSet>) -> Self {
        let deciding = Arc::new(Mutex::new(()));
        let (owned, lock) = (pods.clone(), deciding.clone());
        daemon_sets.subscribe(move |change: &ObjectChange<DaemonSet>| {
            let _deciding = lock.lock();
            for (named, owner) in decided_by(change) {
                // A list that lacks a DaemonSet brings none back.
                let is_final = |before| before == DaemonSetOwner::Gone && owner == DaemonSetOwner::Undecided;
                settle(&owned, &named, |before| if is_final(before) { before } else { owner });
            }
        });
        Self { pods, daemon_sets, deciding }
    }

    /// Takes a pod from the watch into the cache.
    pub(super) fn take_in(&self, mut pod: Pod) {
        let _deciding = self.deciding.lock();
        pod.daemon_set_owner = self.owner_of(&pod);
        self.pods.apply(pod);
    }

    /// What is known of the owner of a pod as it was read, be it from the watch or from the host.
    pub fn owner_of(&self, pod: &Pod) -> DaemonSetOwner {
        let before = self.pods.find(&pod.namespace, &pod.name).filter(|before| before.uid == pod.uid);
        let named = NamedDaemonSet::of(pod);
        let cached = named.as_ref().and_then(|named| self.daemon_sets.by_uid(&named.uid));
        decide(pod, before.as_deref(), named.as_ref(), cached.as_deref())
    }

    /// Whether the cache has the DaemonSet, so that the host need not be asked.
    pub fn has(&self, named: &NamedDaemonSet) -> bool {
        self.daemon_sets.by_uid(&named.uid).is_some()
    }

    /// Whether it is not certain of a pod that its DaemonSet is gone.
    pub fn is_awaited(&self, named: &NamedDaemonSet) -> bool {
        let pods = self.pods.in_namespace(&named.namespace);
        pods.iter().any(|pod| named.is_of(pod) && pod.daemon_set_owner != DaemonSetOwner::Gone)
    }

    /// Takes in what the host answered. Where a DaemonSet is gone by what came later, it stays so.
    pub fn answered(&self, named: &NamedDaemonSet, answer: DaemonSetOwner) {
        let _deciding = self.deciding.lock();
        if !self.has(named) {
            let gone = DaemonSetOwner::Gone;
            settle(&self.pods, named, |before| if before == gone { gone } else { answer });
        }
    }
}

/// Decides about a pod, from the pod as the cache has it, and what the cache has under the UID of the DaemonSet that it names.
fn decide(
    pod: &Pod,
    before: Option<&Pod>,
    named: Option<&NamedDaemonSet>,
    cached: Option<&DaemonSet>,
) -> DaemonSetOwner {
    let was_gone = before.is_some_and(|before| before.daemon_set_owner == DaemonSetOwner::Gone);
    match (named, cached) {
        (Some(named), Some(cached)) => named.judge(Some(cached)),
        _ if was_gone => DaemonSetOwner::Gone,
        (None, _) => DaemonSetOwner::Unnamed,
        (Some(named), None) if !named.may_exist() => DaemonSetOwner::Gone,
        (Some(_), None) => {
            let same = before.filter(|before| before.controller == pod.controller);
            same.map_or(DaemonSetOwner::Undecided, |before| before.daemon_set_owner)
        }
    }
}

/// What a change says of the DaemonSets before and after it.
fn decided_by(change: &ObjectChange<DaemonSet>) -> Vec<(NamedDaemonSet, DaemonSetOwner)> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let replaced = old.filter(|old| new.is_none_or(|new| new.uid != old.uid)).map(|old| {
        let is_certain = change.is_deleted || new.is_some();
        (named(old), if is_certain { DaemonSetOwner::Gone } else { DaemonSetOwner::Undecided })
    });
    let is_known = |new: &&DaemonSet| {
        old.is_some_and(|old| (&old.uid, old.is_being_deleted) == (&new.uid, new.is_being_deleted))
    };
    let present = new.filter(|new| !is_known(new)).map(|new| (named(new), named(new).judge(Some(new))));
    replaced.into_iter().chain(present).collect()
}

fn named(daemon_set: &DaemonSet) -> NamedDaemonSet {
    let DaemonSet { namespace, name, uid, .. } = daemon_set;
    let [namespace, name, uid] = [namespace, name, uid].map(|text| text.as_str().into());
    NamedDaemonSet { namespace, name, uid }
}

/// Changes what is known of the pods that name a DaemonSet.
fn settle(pods: &Store<Pod>, named: &NamedDaemonSet, owner: impl Fn(DaemonSetOwner) -> DaemonSetOwner) {
    for pod in pods.in_namespace(&named.namespace).iter().filter(|pod| named.is_of(pod)) {
        let daemon_set_owner = owner(pod.daemon_set_owner);
        if daemon_set_owner != pod.daemon_set_owner {
            pods.exchange(pod, Pod { daemon_set_owner, ..Pod::clone(pod) });
        }
    }
}

#[cfg(test)]
#[path = "pod_owners_tests.rs"]
mod tests;
