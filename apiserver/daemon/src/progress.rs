//! How far long work is, on stderr, if that is a terminal.

use drydock_storage::progress::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A line that is written over and over.
pub struct Bar(ProgressBar);

impl Bar {
    /// A line with nothing on it yet; none at all where stderr is no terminal.
    pub fn new() -> Self {
        Self(ProgressBar::no_length())
    }

    /// What writes on it.
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

    /// Takes it away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
