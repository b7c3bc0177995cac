//! Makes the message of a blocker: first why the pod does not leave, which may be cut; then what is never
//! cut, because people copy it or look it up.

use drydock_api::text::{cut_at_word, one_line};
use drydock_runtime::guide::reference;

/// Most characters of a message, unless the parts that are never cut leave the words less than [`LEAST_WORDS`].
const MAX_MESSAGE: usize = 512;
/// Characters that the words may have in any case.
const LEAST_WORDS: usize = 128;
/// Phrase that introduces our commands; removed from foreign text.
const COMMAND_PHRASE: &str = "to go on";

/// The parts of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockerText {
    /// Why the pod does not leave. Parts of it may be words of others.
    pub(crate) words: String,
    /// Text of another program, which may be wrong: it stands in quotes after the words.
    pub(crate) quoted: Option<String>,
    /// Additions. They are never cut, so each must be of bounded length.
    pub(crate) notes: Vec<String>,
    /// The heading of the guide that says what to do.
    pub(crate) heading: &'static str,
    /// The command that helps, after the words that introduce it.
    pub(crate) command: Option<(&'static str, String)>,
}

impl BlockerText {
    /// Returns the message; `end`, if there is one, stands at its end in place of the command.
    pub(crate) fn message(&self, end: Option<&str>) -> String {
        let mut tail: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        if !self.heading.is_empty() {
            tail.push_str(&format!(" {}", reference(self.heading)));
        }
        match (end, &self.command) {
            (Some(end), _) => tail.push_str(&format!(". {end}")),
            (None, Some((when, command))) => tail.push_str(&format!(". {when}: {command}")),
            (None, None) => {}
        }
        let most = MAX_MESSAGE.saturating_sub(tail.chars().count()).max(LEAST_WORDS);
        self.head(most) + &tail
    }

    /// The words alone, for an event.
    pub(crate) fn brief(&self) -> String {
        self.head(MAX_MESSAGE)
    }

    /// The words and the quotation, of which the latter is cut first.
    fn head(&self, most: usize) -> String {
        let words = plain(&self.words);
        let words = cut_at_word(words.trim_end_matches('.'), most);
        let Some(quoted) = &self.quoted else { return words };
        let quoted = plain(quoted).replace('"', "'");
        // A space and two quotes.
        let left = most.saturating_sub(words.chars().count() + 3);
        if left == 0 { words } else { format!("{words} \"{}\"", cut_at_word(&quoted, left)) }
    }
}

/// Words of others in one line, without what would make them look like a command of ours.
fn plain(words: &str) -> String {
    let line = one_line(words).replace('`', "'");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut plain, mut from) = (String::with_capacity(line.len()), 0);
    for (at, _) in line.to_ascii_lowercase().match_indices(COMMAND_PHRASE) {
        plain.push_str(line.get(from..at).unwrap_or_default());
        plain.push_str("to-go-on");
        from = at + COMMAND_PHRASE.len();
    }
    plain + line.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> BlockerText {
        BlockerText { words: words.to_owned(), heading: "Interceptor", ..BlockerText::default() }
    }

    /// Long words cut off the notes: which interceptors were passed over, and how often the pod was asked for.
    #[test]
    fn the_words_are_cut_and_nothing_behind_them() {
        let notes = vec!["asked again 2 times".to_owned(), "a.b was passed over".to_owned()];
        let command = Some(("To go on now", "kubectl patch x".to_owned()));
        let long = BlockerText { notes, command, ..text(&"\u{e9}".repeat(4000)) };
        let message = long.message(None);
        let end = "\u{e9}\u{2026}; asked again 2 times; a.b was passed over (see Interceptor in controllers/README.md). To go on \
                   now: kubectl patch x";
        assert!(message.ends_with(end), "{message}");
        assert_eq!(message.chars().count(), MAX_MESSAGE);
        let end = "c".repeat(600);
        let message = long.message(Some(&end));
        assert!(message.ends_with(&format!("README.md). {end}")), "{message}");
        assert_eq!(message.chars().filter(|c| *c == '\u{e9}').count(), LEAST_WORDS - 1);
    }

    /// The message was cut within a word: `a nodeAffinity o… (see DaemonSetReturns …`.
    #[test]
    fn the_words_are_cut_between_two_of_them() {
        let message = text(&"word ".repeat(200)).message(None);
        assert!(message.contains(" word\u{2026} (see "), "{message}");
    }

    #[test]
    fn a_quotation_is_cut_within_its_quotes_and_cannot_end_them() {
        let quote =
            |words: &str| BlockerText { quoted: Some(words.to_owned()), ..text("a.b says:") }.message(None);
        assert_eq!(quote("x\" y"), "a.b says: \"x' y\" (see Interceptor in controllers/README.md)");
        let long = quote(&"z".repeat(4000));
        assert!(long.ends_with("z\u{2026}\" (see Interceptor in controllers/README.md)"), "{long}");
        assert_eq!(long.chars().count(), MAX_MESSAGE);
    }

    #[test]
    fn words_of_others_are_no_command_of_ours() {
        for words in
            ["x. To go on now: rm -rf /", "x. tO\u{a0}Go\n ON now: rm", "x. To\u{200b} go on without: `rm`"]
        {
            for of in [text(words), BlockerText { quoted: Some(words.to_owned()), ..text("a.b says:") }] {
                let message = of.message(None);
                assert!(
                    !message.to_ascii_lowercase().contains(COMMAND_PHRASE) && !message.contains('`'),
                    "{message}"
                );
            }
        }
        assert_eq!(plain("\u{e9} To go on TO GO ON \u{e9}"), "\u{e9} to-go-on to-go-on \u{e9}");
    }
}
