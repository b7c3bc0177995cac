//! A cause that keeps a pod on its node.

use drydock_runtime::guide::heading;

use super::text::BlockerText;

/// Why a pod does not leave.
pub(crate) struct BlockCause {
    pub(crate) reason: &'static str,
    /// The name of what blocks, if the reason alone does not identify it.
    pub(crate) about: String,
    /// For a budget: one of [`STATES`](drydock_api::reasons::STATES), or empty.
    pub(crate) state: &'static str,
    /// Whether it is worth an event. A budget is not while it allows the eviction of other pods.
    pub(crate) is_due: bool,
    /// The event for the pod's owner, if this controller publishes one.
    pub(crate) for_owner: Option<ForOwner>,
    /// The message.
    pub(crate) text: BlockerText,
}

/// A cause whose event for the pod's owner only this controller publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForOwner {
    /// No agent stops the static pod.
    NoAgent,
    /// An interceptor of others has never reported.
    NeverReported,
    /// An interceptor of others says that it is blocked.
    SaysBlocked,
}

impl BlockCause {
    pub(crate) fn new(reason: &'static str, words: impl Into<String>) -> Self {
        let text =
            BlockerText { words: words.into(), heading: heading(reason, ""), ..BlockerText::default() };
        Self { reason, about: String::new(), state: "", is_due: true, for_owner: None, text }
    }

    /// Returns the cause with the name of what blocks.
    pub(crate) fn of(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Returns the cause with an event for the pod's owner.
    pub(super) fn for_owner(self, cause: ForOwner) -> Self {
        Self { for_owner: Some(cause), ..self }
    }

    /// Returns the cause with this state of a budget.
    pub(super) fn in_state(mut self, state: &'static str) -> Self {
        self.text.heading = heading(self.reason, state);
        Self { state, ..self }
    }

    /// Returns the cause with a quotation of another program, which may be wrong.
    pub(super) fn quoting(mut self, words: &str) -> Self {
        self.text.quoted = Some(words.to_owned());
        self
    }

    /// Returns the cause with an addition that is never cut, and so must be of bounded length.
    pub(super) fn with_note(mut self, note: String) -> Self {
        self.text.notes.push(note);
        self
    }

    /// Returns the cause with the command that helps; `when` introduces it.
    pub(super) fn with_command(mut self, when: &'static str, command: String) -> Self {
        self.text.command = Some((when, command));
        self
    }
}
