//! Shows the progress of long work on stderr, if that is a terminal.

use drydock_storage_sqlite::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A progress line that is overwritten.
pub struct Bar(ProgressBar);

impl Bar {
    /// Creates an empty line. Nothing is shown if stderr is no terminal.
    pub fn new() -> Self {
        Self(ProgressBar::no_length())
    }

    /// Returns the callback that updates the line.
    pub fn progress(&self) -> Progress {
        let bar = self.0.clone();
        Progress::new(move |stage| {
            if bar.message() != stage.name {
                let template = if stage.total > 0 { "{msg} {bar:40} {percent} %" } else { "{msg} ..." };
                bar.set_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()));
                bar.set_message(stage.name);
            }
            bar.set_length(stage.total);
            bar.set_position(stage.done);
        })
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
