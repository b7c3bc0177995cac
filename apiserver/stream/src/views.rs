//! All views of a hub: found by filter for subscribers, and by anchor for changes; bounded for each user and in all.

use std::cmp::Reverse;
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

/// Tombstones that each view may keep, however many there are.
const LEAST_TOMBSTONES: usize = 64;

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
        self.share_tombstones();
        view
    }

    /// Gives a change to the views that it concerns; returns those whose subscribers have something to read.
    pub fn apply<'v>(&'v self, change: &'v Change) -> impl Iterator<Item = &'v Arc<View>> {
        let concerned = change.anchors().into_iter().filter_map(|anchor| self.anchored.get(&anchor));
        concerned.flatten().filter(|view| view.apply(change))
    }

    /// Drops the views that nobody has read for a while; and others, if what they select has grown beyond the bound: their
    /// subscribers ask for them again, and are told that there is no room.
    pub fn sweep(&mut self) {
        self.drop_idle(KEPT);
        let mut all = self.usage(|_| true);
        while all.entries > self.limits.entries
            && let Some(largest) = self.largest_of_greediest()
        {
            all.entries = all.entries.saturating_sub(largest.read(Log::len));
            largest.end();
            self.retain(|view| !std::ptr::eq(view, Arc::as_ptr(&largest)));
        }
    }

    /// The largest view of the user whose views have most entities; of those, one that fewest others read.
    fn largest_of_greediest(&self) -> Option<Arc<View>> {
        let mut entries: HashMap<Arc<str>, usize> = HashMap::new();
        for view in self.by_filter.values() {
            view.users()
                .into_iter()
                .for_each(|user| *entries.entry(user).or_default() += view.read(Log::len));
        }
        let (greediest, _) = entries.into_iter().max_by_key(|(_, entries)| *entries)?;
        let views = self.by_filter.values().filter(|view| view.is_read_by(&greediest));
        views.max_by_key(|view| (Reverse(view.users().len()), view.read(Log::len))).cloned()
    }

    fn drop_idle(&mut self, kept: Duration) {
        let now = Instant::now();
        let is_idle = |view: &View| view.idle_since().is_some_and(|since| now.duration_since(since) >= kept);
        self.retain(|view| !is_idle(view));
    }

    fn retain(&mut self, is_kept: impl Fn(&View) -> bool) {
        let before = self.by_filter.len();
        self.by_filter.retain(|_, view| is_kept(view));
        if self.by_filter.len() < before {
            self.anchored.clear();
            for view in self.by_filter.values() {
                self.anchored.entry(view.filter.anchor()).or_default().push(view.clone());
            }
            self.share_tombstones();
        }
    }

    /// Divides the room for tombstones, so that all views together keep no more of them than entities.
    fn share_tombstones(&self) {
        let most = (self.limits.entries / self.by_filter.len().max(1)).max(LEAST_TOMBSTONES);
        self.by_filter.values().for_each(|view| view.write(|log| log.limit_tombstones(most)));
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
