//! All views of a hub: found by filter for subscribers, and by anchor for changes.

mod quota;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::filter::{Anchor, Filter};
use crate::index::Change;
use crate::log::ChangeLog;
use crate::view::View;
use quota::Usage;
pub use quota::{Full, ViewLimits};

/// How long a view without subscribers is kept, for clients that lost their connection and come back.
const KEPT: Duration = Duration::from_secs(60);

/// Maximum number of views without subscribers; those that have had none for longest are dropped first.
const MOST_IDLE: usize = 256;

/// The views.
pub struct Views {
    limits: ViewLimits,
    by_filter: HashMap<String, Arc<View>>,
    anchored: HashMap<Anchor, Vec<Arc<View>>>,
}

impl Views {
    /// Creates it without views.
    pub fn new(limits: ViewLimits) -> Self {
        Self { limits, by_filter: HashMap::new(), anchored: HashMap::new() }
    }

    /// Returns the view of a filter for a user; `fill` makes the log of a new one. If there is no room for a new view,
    /// views of the user with the largest share end, as long as that share is larger than this user's would be.
    ///
    /// # Errors
    /// [`Full`] if there would be too many views or entities.
    pub fn get(
        &mut self,
        filter: Filter,
        user: &str,
        fill: impl FnOnce(&Filter) -> ChangeLog,
    ) -> Result<Arc<View>, Full> {
        let canonical = filter.canonical();
        if let Some(view) = self.by_filter.get(&canonical).cloned() {
            if !view.is_read_by(user) {
                self.check_user(user, Usage::of_view(&view))?;
            }
            return Ok(view);
        }
        // Checked before the view is filled too, because that takes time.
        self.check_user(user, Usage::new(&filter, 0))?;
        let log = fill(&filter);
        let usage = Usage::new(&filter, log.live());
        self.check_user(user, usage)?;
        self.limit_idle();
        self.make_room(user, usage)?;
        Ok(self.add(canonical, View::new(filter, log)))
    }

    fn add(&mut self, canonical: String, view: View) -> Arc<View> {
        let view = Arc::new(view);
        self.anchored.entry(view.filter.anchor()).or_default().push(view.clone());
        self.by_filter.insert(canonical, view.clone());
        view
    }

    /// Applies a change to the views that it may concern, and calls `touched` with those whose subscribers have
    /// something to read. Returns the cost: one for each view and each term of its selector.
    pub fn apply(&self, change: &Change, mut touched: impl FnMut(&Arc<View>)) -> usize {
        let mut cost = 0;
        for anchor in change.anchors() {
            for view in self.anchored.get(&anchor).into_iter().flatten() {
                cost += 1 + view.filter.terms();
                if view.apply(change) {
                    touched(view);
                }
            }
        }
        cost
    }

    /// Drops views that have had no subscribers for a while, and ends others if all together exceed a limit.
    pub fn sweep(&mut self) {
        self.drop_idle(KEPT);
        self.shrink();
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

    /// Returns the number of views, and of entities in all of them.
    pub fn size(&self) -> (usize, usize) {
        (self.by_filter.len(), self.by_filter.values().map(|view| view.read(ChangeLog::live)).sum())
    }

    /// Whether any view has subscribers.
    pub fn is_read(&self) -> bool {
        self.by_filter.values().any(|view| view.idle_since().is_none())
    }

    /// Ends all views.
    pub fn end(&self) {
        self.by_filter.values().for_each(|view| view.end());
    }
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
        let view = views.get(filter, user, |_| ChangeLog::of_view(limit, Position::START))?;
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
        assert_eq!(greedy.iter_mut().filter_map(|it| it.has_ended().then_some(())).count(), 1);
        assert!(!modest.has_ended() && !new.has_ended());
        // A user whose view was ended cannot end the views of others in turn.
        assert_eq!(open(&mut views, "greedy", "f").err(), Some(Full::All));
        let _second = open(&mut views, "new", "f");
        assert!(!modest.has_ended() && !new.has_ended());
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
        assert_eq!(pair.iter_mut().filter_map(|it| it.has_ended().then_some(())).count(), 2);
        assert!(!of_all.iter_mut().any(Subscription::has_ended));
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
