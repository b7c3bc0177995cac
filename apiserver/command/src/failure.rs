//! The last line of a program that fails.

use std::error::Error;
use std::process::ExitCode;

/// Prints the error in one line, and returns the exit code.
pub fn fail(program: &str, error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("{program}: {}", line(error));
    ExitCode::FAILURE
}

/// Returns an error and its causes in one line. A cause that is already part of the text is not repeated. Only the
/// first line of each is used, because parsers add pictures of what they could not parse. Control characters are escaped: a
/// server may have said the text.
fn line(error: &(dyn Error + 'static)) -> String {
    let mut told = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let said = error.to_string();
        let said = said.lines().next().unwrap_or_default().trim();
        if !told.contains(said) {
            let separator = if told.is_empty() { "" } else { ": " };
            told = format!("{told}{separator}{said}");
        }
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    told.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Told(&'static str, Option<Box<Told>>);

    impl fmt::Display for Told {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Told {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    /// Regression: `--kubeconfig: /nope: ...: No such file or directory (os error 2): No such file or directory (os
    /// error 2)`
    #[test]
    fn a_cause_that_was_told_already_is_not_told_again() {
        let cause = Told("no such file", None);
        let error = Told("--kubeconfig", Some(Box::new(Told("a: no such file", Some(Box::new(cause))))));
        assert_eq!(line(&error), "--kubeconfig: a: no such file");
    }

    /// The message of a webhook in the cluster is part of an error.
    #[test]
    fn an_error_moved_the_cursor_of_the_terminal() {
        assert_eq!(line(&Told("denied\u{1b}[2J\u{7}\u{9b}1m", None)), r"denied\u{1b}[2J\u{7}\u{9b}1m");
    }

    #[test]
    fn it_is_one_line_whatever_the_causes_say() {
        let picture = Told("unclosed bracket\n --> 1:4\n  |\n1 | a: [", None);
        let error = Told("--kubeconfig", Some(Box::new(picture)));
        assert_eq!(line(&error), "--kubeconfig: unclosed bracket");
    }
}
