//! Shows the maintenance. A terminal gets a table that is redrawn in place, and that stays when the drain is over. A pipe
//! gets a line for each change.

use std::time::Instant;

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_api::text::cut;
use indicatif::ProgressBar;

use super::drain_view::DrainView;
use super::screen::{Screen, Span, Tone, paint};

/// The drain, as far as it is known.
pub struct Display {
    screen: Screen,
    view: DrainView,
    bar: ProgressBar,
    began: Instant,
}

/// The width of the spinner and the seconds in the first line.
const AROUND_TITLE: usize = 14;

impl Display {
    /// Begins to show a maintenance of these nodes.
    pub fn new(screen: &Screen, name: &str, nodes: &[String]) -> Display {
        let bar = screen.live("{spinner:.cyan} {prefix:.bold} · {seconds}\n{msg}");
        let view = DrainView::new(name, nodes);
        let display = Display { screen: screen.clone(), view, bar, began: Instant::now() };
        display.draw();
        display
    }

    /// Shows a new state.
    pub fn show(&mut self, current: &NodeMaintenance) {
        let changes = self.view.update(current);
        if self.screen.is_terminal() {
            self.draw();
            return;
        }
        let seconds = self.began.elapsed().as_secs();
        for change in changes {
            self.screen.line(&[Span::new(Tone::Plain, format!("    {seconds:>4} s  {change}"))]);
        }
    }

    /// Ends the display of a maintenance that is drained.
    pub fn drained(self) {
        let (screen, began) = (self.screen.clone(), self.began);
        let text = format!("drained in {} s: {}", began.elapsed().as_secs(), self.view.outcome());
        drop(self);
        screen.line(&[screen.mark(), Span::new(Tone::Strong, text)]);
    }

    fn draw(&self) {
        let width = self.screen.width();
        self.bar.set_prefix(cut(&self.view.title(), width.saturating_sub(AROUND_TITLE)));
        self.bar.set_message(
            self.view.table(width).iter().map(|line| paint(line)).collect::<Vec<_>>().join("\n"),
        );
    }
}

/// The last table stays, however the drain ended.
impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if self.screen.is_terminal() {
            self.screen.line(&[Span::new(Tone::Strong, format!("  {}", self.view.title()))]);
            self.view.table(self.screen.width()).iter().for_each(|line| self.screen.line(line));
        }
    }
}
