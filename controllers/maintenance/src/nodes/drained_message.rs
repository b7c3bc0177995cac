//! The message of a node's condition Drained. It names the last pod type that the condition covers, and the
//! type up to which the node is known to have no pods: that is the record of a live read, which a restart
//! finds again.

use drydock_api::node_maintenance::PodType;

const TYPES_PREFIX: &str = "Pods up to type ";

/// The parts of the message of a node's condition Drained.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrainedText {
    /// The last pod type that the condition covers.
    pub(super) last: PodType,
    /// How many pods of later types stay.
    pub(super) stay: usize,
    /// While it is False: the greatest type up to which no pod is left, if there is one.
    pub(super) empty: Option<PodType>,
}

impl DrainedText {
    /// The text, without the names of the maintenances.
    pub(super) fn text(self) -> String {
        let mut text = format!("{TYPES_PREFIX}{}", self.last.as_str());
        if self.last < PodType::Static {
            let verb = if self.stay == 1 { "stays" } else { "stay" };
            text.push_str(&format!("; {} of later types {verb}", self.stay));
        }
        if let Some(empty) = self.empty {
            text.push_str(none_left(empty));
        }
        text
    }
}

/// The type up to which a condition of this status and message records that no pod is left; none if it records nothing.
pub(super) fn recorded(is_true: bool, message: &str) -> Option<PodType> {
    // Earlier versions named no type where all were meant. The name of a maintenance does not begin like this.
    let Some(rest) = message.strip_prefix(TYPES_PREFIX) else { return is_true.then_some(PodType::Static) };
    let text = rest.split(": ").next().unwrap_or_default();
    let is_recorded = |last: &PodType| {
        let names_type =
            text.strip_prefix(last.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(';'));
        if is_true { names_type } else { text.ends_with(none_left(*last)) }
    };
    PodType::ALL.into_iter().find(is_recorded)
}

fn none_left(last: PodType) -> &'static str {
    match last {
        PodType::Default => "; no pod of type Default is left",
        PodType::DaemonSet => "; no pod up to type DaemonSet is left",
        PodType::Static | PodType::Unknown => "; no pod is left",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_back_from_the_text() {
        for last in PodType::ALL {
            let drained = DrainedText { last, stay: 2, empty: None };
            let message = drained.text() + ": m (no pod of type Default is left: x)";
            assert_eq!(
                (recorded(true, &message), recorded(false, &message)),
                (Some(last), None),
                "{message}"
            );
            for empty in PodType::ALL.into_iter().filter(|empty| *empty < last) {
                let message = DrainedText { empty: Some(empty), ..drained }.text() + ": m";
                assert_eq!(recorded(false, &message), Some(empty), "{message}");
            }
        }
    }

    #[test]
    fn the_text_names_the_type_and_what_stays() {
        let text = |last, empty| DrainedText { last, stay: 2, empty }.text();
        assert_eq!(text(PodType::Static, None), "Pods up to type Static");
        assert_eq!(text(PodType::Default, None), "Pods up to type Default; 2 of later types stay");
        let words = "Pods up to type Static; no pod of type Default is left";
        assert_eq!(text(PodType::Static, Some(PodType::Default)), words);
    }

    #[test]
    fn a_message_of_an_earlier_version_is_about_all_types() {
        assert_eq!(recorded(true, "m (reason)"), Some(PodType::Static));
        assert_eq!(recorded(false, "m (reason)"), None);
        assert_eq!(recorded(true, "Pods up to type Staticx: m"), None);
    }
}
