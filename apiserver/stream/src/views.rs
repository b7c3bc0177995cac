//! All views of a hub: found by filter for subscribers, and by anchor for changes; bounded for each user and in all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::filter::{Anchor, Filter};
use crate::index::Change;
use crate::log::Log;
use crate::view::View;

/// How long a view without subscribers is kept: a client that lost its connection is back by then.
const KEPT: Duration = Duration::from_secs(60);

/// How many different filters may be followed.
#[derive(Clone, Copy, Debug)]
pub struct ViewLimits {
    /// Most views in all.
    pub views: usize,
    /// Most views that one user reads.
    pub views_of_user: usize,
    /// Most entities over all views, about 150 bytes each; counted when a view is made.
    pub entries: usize,
    /// Most entities over all views that one user reads.
    pub entries_of_user: usize,
}

impl Default for ViewLimits {
    fn default() -> Self {
        Self { views: 4_096, views_of_user: 1_024, entries: 1_000_000, entries_of_user: 250_000 }
    }
}

/// Why there is no further view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user has too many.
    User,
    /// All users together have too many.
    All,
}

/// The views.
pub struct Views {
    limits: ViewLimits,
    by_filter: HashMap<String, Arc<View>>,
    anchored: HashMap<Anchor, Vec<Arc<View>>>,
}

/// What views take.
#[derive(Default)]
struct Usage {
    views: usize,
    entries: usize,
}

impl Views {
    /// No views.
    pub fn new(limits: ViewLimits) -> Self {
        Self { limits, by_filter: HashMap::new(), anchored: HashMap::new() }
    }

    /// The view of a filter for a user; `fill` says what it has if it is new.
    ///
    /// # Errors
    /// [`Full`] if there would be too many views or entities.
    pub fn get(
        &mut self,
        filter: Filter,
        user: &str,
        fill: impl FnOnce(&Filter) -> Log,
    ) -> Result<Arc<View>, Full> {
        let canonical = filter.canonical();
        let known = self.by_filter.get(&canonical).cloned();
        if let Some(view) = known.as_ref().filter(|view| view.is_read_by(user)) {
            return Ok(view.clone());
        }
        let log = known.is_none().then(|| fill(&filter));
        let entries =
            log.as_ref().map_or_else(|| known.as_ref().map_or(0, |view| view.read(Log::len)), Log::len);
        self.check(user, entries, known.is_none())?;
        match (known, log) {
            (None, Some(log)) => Ok(self.add(canonical, View::new(filter, log))),
            (Some(view), _) => Ok(view),
            (None, None) => Err(Full::All),
        }
    }

    fn check(&mut self, user: &str, entries: usize, is_new: bool) -> Result<(), Full> {
        let Self { limits, .. } = *self;
        let of_user = self.usage(|view| view.is_read_by(user));
        if of_user.views >= limits.views_of_user
            || of_user.entries + entries > limits.entries_of_user.max(entries)
        {
            return Err(Full::User);
        }
        let is_full = |all: Usage| all.views >= limits.views || all.entries + entries > limits.entries;
        if is_new && is_full(self.usage(|_| true)) {
            self.drop_idle(Duration::ZERO);
            if is_full(self.usage(|_| true)) {
                return Err(Full::All);
            }
        }
        Ok(())
    }

    fn usage(&self, counts: impl Fn(&View) -> bool) -> Usage {
        let counted = self.by_filter.values().filter(|view| counts(view));
        counted.fold(Usage::default(), |sum, view| Usage {
            views: sum.views + 1,
            entries: sum.entries + view.read(Log::len),
        })
    }

    fn add(&mut self, canonical: String, view: View) -> Arc<View> {
        let view = Arc::new(view);
        self.anchored.entry(view.filter.anchor()).or_default().push(view.clone());
        self.by_filter.insert(canonical, view.clone());
        view
    }

    /// Gives a change to the views that it concerns; returns those whose subscribers have something to read.
    pub fn apply(&self, change: &Change) -> Vec<Arc<View>> {
        let concerned = change.anchors().into_iter().filter_map(|anchor| self.anchored.get(&anchor));
        concerned.flatten().filter(|view| view.apply(change)).cloned().collect()
    }

    /// Drops the views that nobody has read for a while.
    pub fn sweep(&mut self) {
        self.drop_idle(KEPT);
    }

    fn drop_idle(&mut self, kept: Duration) {
        let now = Instant::now();
        let is_idle = |view: &View| view.idle_since().is_some_and(|since| now.duration_since(since) >= kept);
        let before = self.by_filter.len();
        self.by_filter.retain(|_, view| !is_idle(view));
        if self.by_filter.len() < before {
            self.anchored.clear();
            for view in self.by_filter.values() {
                self.anchored.entry(view.filter.anchor()).or_default().push(view.clone());
            }
        }
    }

    /// Whether somebody reads one of them.
    pub fn is_read(&self) -> bool {
        self.by_filter.values().any(|view| view.idle_since().is_none())
    }

    /// Tells all subscribers that nothing comes any more.
    pub fn end(&self) {
        self.by_filter.values().for_each(|view| view.end());
    }
}
