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

/// Most views without subscribers: those that nobody has read for longest go first.
const MOST_IDLE: usize = 256;

/// Most views that end at once to make room.
const MOST_ENDED: usize = 64;

/// How many different filters may be followed.
#[derive(Clone, Copy, Debug)]
pub struct ViewLimits {
    /// Most views in all.
    pub views: usize,
    /// Most views that one user reads.
    pub views_of_user: usize,
    /// Most entities over all views, about 150 bytes each. Removals are not counted: a view has no more of them than it
    /// had entities, and a few.
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
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    views: f64,
    entries: f64,
}

/// What there is too much of.
#[derive(Clone, Copy, Debug)]
enum Short {
    Views,
    Entries,
}

impl Usage {
    fn of(self, short: Short) -> f64 {
        match short {
            Short::Views => self.views,
            Short::Entries => self.entries,
        }
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { views: self.views + other.views, entries: self.entries + other.entries }
    }
}

impl Views {
    /// No views.
    pub fn new(limits: ViewLimits) -> Self {
        Self { limits, by_filter: HashMap::new(), anchored: HashMap::new() }
    }

    /// The view of a filter for a user; `fill` says what it has if it is new. Where there is no room for a new one, views
    /// of whoever has most end, as long as they have more than this user.
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
        if let Some(view) = self.by_filter.get(&canonical).cloned() {
            if !view.is_read_by(user) {
                self.check_user(user, view.read(Log::live))?;
            }
            return Ok(view);
        }
        // Before it is filled, which takes time.
        self.check_user(user, 0)?;
        let log = fill(&filter);
        self.check_user(user, log.live())?;
        self.make_room(user, log.live())?;
        Ok(self.add(canonical, View::new(filter, log)))
    }

    fn check_user(&self, user: &str, entries: usize) -> Result<(), Full> {
        let limits = &self.limits;
        let read = self.by_filter.values().filter(|view| view.is_read_by(user));
        let (views, read) = read.fold((0, 0), |(views, sum), view| (views + 1, sum + view.read(Log::live)));
        let is_full = views >= limits.views_of_user || read + entries > limits.entries_of_user.max(entries);
        if is_full { Err(Full::User) } else { Ok(()) }
    }

    fn make_room(&mut self, user: &str, entries: usize) -> Result<(), Full> {
        self.limit_idle();
        if self.short_of(1, entries).is_none() {
            return Ok(());
        }
        self.drop_idle(Duration::ZERO);
        let new = Usage { views: 1.0, entries: entries as f64 };
        for _ in 0..MOST_ENDED {
            let Some(short) = self.short_of(1, entries) else { return Ok(()) };
            let shares = self.shares();
            let wanted = shares.get(user).copied().unwrap_or_default() + new;
            let Some((greediest, share)) = greediest(shares, short) else { break };
            if wanted.of(short) >= share.of(short) {
                break;
            }
            self.end_largest_of(&greediest);
        }
        self.short_of(1, entries).map_or(Ok(()), |_| Err(Full::All))
    }

    /// What there is too little room for, with so many more views and entities.
    fn short_of(&self, views: usize, entries: usize) -> Option<Short> {
        let all: usize = self.by_filter.values().map(|view| view.read(Log::live)).sum();
        match () {
            () if self.by_filter.len() + views > self.limits.views => Some(Short::Views),
            () if all + entries > self.limits.entries => Some(Short::Entries),
            () => None,
        }
    }

    /// What each user takes: a view counts for its readers in equal parts.
    fn shares(&self) -> HashMap<Arc<str>, Usage> {
        let mut shares: HashMap<Arc<str>, Usage> = HashMap::new();
        for view in self.by_filter.values() {
            let (users, entries) = (view.users(), view.read(Log::live));
            let parts = users.len() as f64;
            for user in users {
                let share = shares.entry(user).or_default();
                *share = *share + Usage { views: 1.0 / parts, entries: entries as f64 / parts };
            }
        }
        shares
    }

    /// Ends a view of a user: one that fewest others read, and of those the largest. Its subscribers ask for it again.
    fn end_largest_of(&mut self, user: &str) {
        let views = self.by_filter.values().filter(|view| view.is_read_by(user));
        let largest = views.max_by_key(|view| (Reverse(view.users().len()), view.read(Log::live))).cloned();
        if let Some(largest) = largest {
            largest.end();
            self.retain(|view| !std::ptr::eq(view, Arc::as_ptr(&largest)));
        }
    }

    fn add(&mut self, canonical: String, view: View) -> Arc<View> {
        let view = Arc::new(view);
        self.anchored.entry(view.filter.anchor()).or_default().push(view.clone());
        self.by_filter.insert(canonical, view.clone());
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
        if self.short_of(0, 0).is_some() {
            self.drop_idle(Duration::ZERO);
        }
        for _ in 0..MOST_ENDED {
            let Some(short) = self.short_of(0, 0) else { return };
            let Some((greediest, _)) = greediest(self.shares(), short) else { return };
            self.end_largest_of(&greediest);
        }
    }

    fn drop_idle(&mut self, kept: Duration) {
        let now = Instant::now();
        let is_idle = |view: &View| view.idle_since().is_some_and(|since| now.duration_since(since) >= kept);
        self.retain(|view| !is_idle(view));
    }

    fn limit_idle(&mut self) {
        let mut idle: Vec<Instant> = self.by_filter.values().filter_map(|view| view.idle_since()).collect();
        if idle.len() <= MOST_IDLE {
            return;
        }
        idle.sort_unstable();
        let last = idle[idle.len() - MOST_IDLE - 1];
        self.retain(|view| view.idle_since().is_none_or(|since| since > last));
    }

    fn retain(&mut self, is_kept: impl Fn(&View) -> bool) {
        let before = self.by_filter.len();
        self.by_filter.retain(|_, view| is_kept(view));
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

/// Whoever takes most of what is short.
fn greediest(shares: HashMap<Arc<str>, Usage>, short: Short) -> Option<(Arc<str>, Usage)> {
    shares.into_iter().max_by(|(_, one), (_, other)| one.of(short).total_cmp(&other.of(short)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Entity;
    use crate::log::TombstoneLimit;
    use crate::token::Position;
    use crate::view::Subscription;

    fn open(views: &mut Views, user: &str, namespace: &str) -> Result<Subscription, Full> {
        let filter = Filter { namespace: namespace.to_owned(), ..Filter::all(Entity::Eviction) };
        let limit = TombstoneLimit { count: 0, bytes: 0 };
        let view = views.get(filter, user, |_| Log::of_view(limit, Position::START))?;
        Ok(Subscription::new(view, user.into()))
    }

    fn with(views: usize) -> Views {
        Views::new(ViewLimits { views, ..ViewLimits::default() })
    }

    #[test]
    fn whoever_has_fewer_views_gets_room_from_whoever_has_most() {
        let mut views = with(4);
        let mut greedy = ["a", "b", "c"].map(|namespace| open(&mut views, "greedy", namespace).unwrap());
        let mut modest = open(&mut views, "modest", "d").unwrap();
        let mut new = open(&mut views, "new", "e").unwrap();
        assert_eq!(greedy.iter_mut().filter_map(|it| it.is_over().then_some(())).count(), 1);
        assert!(!modest.is_over() && !new.is_over());
        // Whoever was ended does not end others in turn.
        assert_eq!(open(&mut views, "greedy", "f").err(), Some(Full::All));
        let _second = open(&mut views, "new", "f");
        assert!(!modest.is_over() && !new.is_over());
        assert_eq!(open(&mut views, "greedy", "g").err(), Some(Full::All));
    }

    #[test]
    fn two_users_that_read_each_others_views_are_ended_all_the_same_and_before_a_view_of_many() {
        let mut views = with(6);
        let mut of_all = ["a", "b", "x", "y", "z"].map(|user| open(&mut views, user, "of-all").unwrap());
        let shared = ["1", "2", "3", "4", "5"];
        let mut pair: Vec<Subscription> = Vec::new();
        for user in ["a", "b"] {
            pair.extend(shared.map(|namespace| open(&mut views, user, namespace).unwrap()));
        }
        let _new = open(&mut views, "new", "n").unwrap();
        assert_eq!(pair.iter_mut().filter_map(|it| it.is_over().then_some(())).count(), 2);
        assert!(!of_all.iter_mut().any(Subscription::is_over));
    }

    #[test]
    fn views_that_nobody_reads_are_bounded_and_the_oldest_go_first() {
        let mut views = with(10_000);
        let _read = open(&mut views, "other", "read").unwrap();
        for n in 0..2 * MOST_IDLE {
            drop(open(&mut views, "user", &n.to_string()).unwrap());
        }
        let is_kept = |n: usize| views.by_filter.values().any(|view| view.filter.namespace == n.to_string());
        assert!(views.by_filter.len() <= MOST_IDLE + 2, "{}", views.by_filter.len());
        assert!(is_kept(2 * MOST_IDLE - 1) && !is_kept(0));
        assert!(views.by_filter.values().any(|view| view.filter.namespace == "read"));
    }
}
