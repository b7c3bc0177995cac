//! What is said about the removal, a line for each action. Texts of the cluster are made safe here, where a line is made: no
//! other way leads to a [`RemovalLine`].

use drydock_api::text::{cut, one_line};
use kube::Error;

/// Most characters of a line.
const MAX_LINE: usize = 600;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A step begins, or something of others is left as it is.
    Progress,
    /// A change that was made, or in a dry run one that would be made.
    Change,
    /// Something that could not be done.
    Problem,
}

/// One line, without control characters and without characters that hide or reorder text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalLine {
    /// What it is.
    pub urgency: Urgency,
    text: String,
}

impl RemovalLine {
    pub(crate) fn new(urgency: Urgency, text: &str) -> Self {
        Self { urgency, text: safe(text) }
    }

    /// The text, without a line break.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Where lines go. It counts the problems.
pub(crate) struct RemovalReport<'r> {
    to: &'r mut dyn FnMut(RemovalLine),
    problems: usize,
}

impl<'r> RemovalReport<'r> {
    pub(crate) fn new(to: &'r mut dyn FnMut(RemovalLine)) -> Self {
        Self { to, problems: 0 }
    }

    pub(crate) fn progress(&mut self, text: &str) {
        (self.to)(RemovalLine::new(Urgency::Progress, text));
    }

    pub(crate) fn change(&mut self, text: &str) {
        (self.to)(RemovalLine::new(Urgency::Change, text));
    }

    pub(crate) fn problem(&mut self, text: &str) {
        self.problems += 1;
        (self.to)(RemovalLine::new(Urgency::Problem, text));
    }

    pub(crate) fn problems(&self) -> usize {
        self.problems
    }
}

/// What the host, a webhook of the cluster or the connection says about a failed call, made safe.
pub(crate) fn said(error: &Error) -> String {
    match error {
        Error::Api(status) => safe(&status.message),
        other => safe(&other.to_string()),
    }
}

fn safe(text: &str) -> String {
    cut(&one_line(text), MAX_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A webhook of a tenant refuses the write with a text that clears the screen, or that looks like a line of ours.
    #[test]
    fn a_text_of_the_cluster_moved_the_cursor_of_the_admins_terminal() {
        let hostile = "no\u{1b}[2J\u{1b}]0;title\u{7}\r\nchanged Node n: it is schedulable\u{9b}1m\u{202e}";
        let line = RemovalLine::new(Urgency::Problem, hostile);
        assert!(!line.text().chars().any(char::is_control), "{line:?}");
        assert!(!line.text().contains('\u{202e}') && line.text().starts_with("no [2J"), "{line:?}");
        let status = kube::core::Status::failure(hostile, "Forbidden").with_code(403);
        assert!(!said(&Error::Api(status.boxed())).chars().any(char::is_control));
    }

    #[test]
    fn a_line_is_as_long_as_a_tenant_wants() {
        let line = RemovalLine::new(Urgency::Change, &"a".repeat(250_000));
        assert_eq!(line.text().chars().count(), MAX_LINE);
    }

    #[test]
    fn a_problem_was_not_counted() {
        let mut lines = Vec::new();
        let mut to = |line| lines.push(line);
        let mut report = RemovalReport::new(&mut to);
        report.progress("a");
        report.change("b");
        report.problem("c");
        assert_eq!(report.problems(), 1);
        assert_eq!(lines.len(), 3);
    }
}
