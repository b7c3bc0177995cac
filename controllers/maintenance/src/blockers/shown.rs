//! A blocker in the status, which keeps the time and the words of the previous one while the cause is the
//! same.

use drydock_api::node_maintenance::{Blocker, PodReference, PodType};
use drydock_api::time::truncate_to_seconds;
use jiff::{SignedDuration, Timestamp};

use super::cause::{BlockCause, ForOwner};
use super::text::BlockerText;
use crate::actions::MaintenanceDecision;
use crate::remembered::SteadyText;
use crate::world::WorldView;

/// How long a message stays while the cause is the same. Each change of it writes the whole status, and
/// others may choose its words.
const WORDS_STAY: SignedDuration = SignedDuration::from_mins(1);

/// A blocker in the status of a maintenance.
#[derive(Clone, Debug)]
pub(crate) struct ShownBlocker {
    /// The blocker, with the whole message.
    pub(crate) blocker: Blocker,
    /// The parts of the message.
    pub(crate) words: SteadyText<BlockerKey, BlockerText>,
    /// Whether it is worth an event.
    pub(super) is_due: bool,
    /// Type of the pod; the first type if the node itself blocks.
    pub(super) pod_type: PodType,
}

/// The cause of a message, beside the reason: while it is the same, the words stay for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockerKey {
    /// The name of what blocks.
    pub(crate) about: String,
    /// For a budget: in what way it blocks.
    pub(crate) state: &'static str,
    /// The event for the pod's owner, if this controller publishes one.
    pub(crate) for_owner: Option<ForOwner>,
}

impl ShownBlocker {
    /// Restores a blocker from a stored status.
    pub(super) fn from_status(blocker: &Blocker) -> Self {
        Self {
            blocker: blocker.clone(),
            words: SteadyText {
                key: BlockerKey::default(),
                text: BlockerText::default(),
                at: Timestamp::MIN,
            },
            is_due: false,
            pod_type: PodType::default(),
        }
    }

    /// Whether the message has a command.
    pub(crate) fn has_command(&self) -> bool {
        self.words.text.command.is_some()
    }

    /// Whether a pod is blocked, and not the node, and its type is at most `last`.
    pub(super) fn is_pod_up_to(&self, last: PodType) -> bool {
        self.pod_type <= last && !self.blocker.pod.uid.is_empty()
    }

    /// The sort key: what has blocked for the longest time comes first.
    pub(super) fn order(&self) -> (Option<Timestamp>, &PodReference) {
        (self.blocker.since_time, &self.blocker.pod)
    }
}

/// Makes a blocker of a cause; `before` is the last blocker of the same pod or node.
pub(super) fn show(
    view: &WorldView<'_>,
    before: Option<&ShownBlocker>,
    pod: PodReference,
    why: BlockCause,
    decision: &mut MaintenanceDecision,
) -> ShownBlocker {
    let BlockCause { reason, about, state, is_due, for_owner, text } = why;
    let before = before.filter(|before| before.blocker.reason == reason);
    let since = before.and_then(|before| before.blocker.since_time);
    let key = BlockerKey { about, state, for_owner };
    let words =
        SteadyText::after(before.map(|before| &before.words), key, text, WORDS_STAY, view.now, decision);
    let since_time = since.or_else(|| Some(truncate_to_seconds(view.now)));
    let blocker = Blocker { pod, reason: reason.to_owned(), message: words.text.message(None), since_time };
    ShownBlocker { blocker, words, is_due, pod_type: PodType::default() }
}
