//! Writes what the playground reports to stderr. A terminal shows work that is under way, and redraws it in place. A pipe
//! gets plain lines.

use std::time::{Duration, Instant};

use console::{Style, Term};
use indicatif::{
    MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};

/// How often spinners and seconds are redrawn.
const REDRAW: Duration = Duration::from_millis(100);
/// The frames of spinners. The last one is for spinners that have ended.
const SPINNER: [&str; 11] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", " "];

/// How a text looks on a terminal with colours. A text says the same without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// In the terminal's own colour.
    Plain,
    /// A heading.
    Strong,
    /// A detail.
    Faint,
    /// A success.
    Good,
    /// Work under way.
    Busy,
    /// An obstacle.
    Warning,
    /// A failure.
    Bad,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text, without control characters.
    pub text: String,
    /// How it looks.
    pub tone: Tone,
}

impl Span {
    /// Returns a piece of a line.
    pub fn new(tone: Tone, text: impl Into<String>) -> Span {
        Span { text: text.into(), tone }
    }
}

/// stderr. Clones write to the same place.
#[derive(Clone)]
pub struct Screen {
    bars: MultiProgress,
}

impl Screen {
    /// Finds out what stderr is.
    pub fn stderr() -> Screen {
        let target =
            if console::is_dumb() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Screen { bars: MultiProgress::with_draw_target(target) }
    }

    /// Whether lines can be redrawn.
    pub fn is_terminal(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// How many characters a line has. A pipe has no end.
    pub fn width(&self) -> usize {
        if self.is_terminal() { Term::stderr().size().1.into() } else { usize::MAX }
    }

    /// Writes a heading.
    pub fn say(&self, what: &str) {
        self.line(&[Span::new(Tone::Strong, format!("==> {what}"))]);
    }

    /// Writes a remark on a heading.
    pub fn note(&self, what: &str) {
        self.line(&[Span::new(Tone::Faint, format!("    {what}"))]);
    }

    /// The beginning of a line about a success.
    pub fn mark(&self) -> Span {
        Span::new(Tone::Good, if self.is_terminal() { "    ✓ " } else { "    ok " })
    }

    /// Writes a line, above the lines that are redrawn.
    pub fn line(&self, spans: &[Span]) {
        self.bars.suspend(|| eprintln!("{}", paint(spans)));
    }

    /// Begins a step of the work. A terminal shows it at once, with its seconds.
    pub fn begin(&self, what: impl Into<String>) -> ShownStep {
        let what = what.into();
        let bar = self.live("    {spinner:.cyan} {msg} {seconds:>7}");
        bar.set_message(format!("{what:STEP_WIDTH$}"));
        ShownStep { screen: self.clone(), bar, what, began: Instant::now() }
    }

    /// Adds lines that are redrawn until their bar is cleared or dropped. A pipe does not get them.
    pub fn live(&self, template: &str) -> ProgressBar {
        let bar = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
        let bar = self.bars.add(bar);
        // The templates are constants. With a wrong one indicatif's own spinner is shown.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.tick_strings(&SPINNER).with_key("seconds", elapsed));
        }
        if self.is_terminal() {
            bar.enable_steady_tick(REDRAW);
        }
        bar
    }
}

/// A step that is under way. It vanishes if it is dropped before it is done, because an error then tells why.
pub struct ShownStep {
    screen: Screen,
    bar: ProgressBar,
    what: String,
    began: Instant,
}

const STEP_WIDTH: usize = 40;

impl ShownStep {
    /// Ends it, and leaves a line that says how long it took.
    pub fn done(self) {
        self.bar.finish_and_clear();
        let took = format!("{:.1} s", self.began.elapsed().as_secs_f64());
        self.screen.line(&[
            self.screen.mark(),
            Span::new(Tone::Plain, format!("{:STEP_WIDTH$} ", self.what)),
            Span::new(Tone::Faint, format!("{took:>7}")),
        ]);
    }
}

/// Returns the line for stderr, with colours if it is a terminal that has them and NO_COLOR is not set.
pub fn paint(spans: &[Span]) -> String {
    spans.iter().map(|span| style(span.tone).apply_to(&span.text).to_string()).collect()
}

fn style(tone: Tone) -> Style {
    let style = Style::new().for_stderr();
    match tone {
        Tone::Plain => style,
        Tone::Strong => style.bold(),
        Tone::Faint => style.dim(),
        Tone::Good => style.green(),
        Tone::Busy => style.cyan(),
        Tone::Warning => style.yellow(),
        Tone::Bad => style.red().bold(),
    }
}

fn elapsed(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A write fails only if the string behind it does, which never happens.
    let _ = write!(out, "{} s", state.elapsed().as_secs());
}
