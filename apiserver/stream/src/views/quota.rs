//! Limits of the views, and whose views end if there is no room for another.
//!
//! A view counts in equal parts for the users who subscribe to it. If views, entities or terms are short, the user with
//! the largest share loses views, but only for a user whose share would still be smaller.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use super::Views;
use crate::filter::Filter;
use crate::log::ChangeLog;
use crate::view::View;

/// Maximum number of views that end at once to make room.
const MOST_ENDED: usize = 64;

/// Limits of the different filters.
#[derive(Clone, Copy, Debug)]
pub struct ViewLimits {
    /// Maximum number of views.
    pub views: usize,
    /// Maximum number of views of one user.
    pub views_of_user: usize,
    /// Maximum number of entities in all views, about 150 bytes each. Removals do not count: a view has hardly more of
    /// them than it had entities.
    pub entries: usize,
    /// Maximum number of entities in all views of one user who has more than one view.
    pub entries_of_user: usize,
    /// Maximum number of label selector terms in all views: each is evaluated for each change.
    pub terms: usize,
    /// Maximum number of terms in all views of one user who has more than one view.
    pub terms_of_user: usize,
}

impl Default for ViewLimits {
    fn default() -> Self {
        Self {
            views: 4_096,
            views_of_user: 1_024,
            entries: 1_000_000,
            entries_of_user: 250_000,
            terms: 32_768,
            terms_of_user: 4_096,
        }
    }
}

/// Why a further view is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user would exceed a limit.
    User,
    /// All users together would exceed a limit.
    All,
}

/// What views use, or a user's share of that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    views: f64,
    entries: f64,
    terms: f64,
}

/// The limit that is exceeded.
#[derive(Clone, Copy, Debug)]
enum Short {
    Views,
    Entries,
    Terms,
}

impl Usage {
    /// Returns the usage of a view with this filter and number of entities.
    pub(super) fn new(filter: &Filter, entries: usize) -> Self {
        Self { views: 1.0, entries: entries as f64, terms: filter.terms() as f64 }
    }

    /// Returns the usage of a view.
    pub(super) fn of_view(view: &View) -> Self {
        Self::new(&view.filter, view.read(ChangeLog::live))
    }

    fn of(self, short: Short) -> f64 {
        match short {
            Short::Views => self.views,
            Short::Entries => self.entries,
            Short::Terms => self.terms,
        }
    }

    /// Returns the share of each of `readers` users.
    fn shared_by(self, readers: usize) -> Self {
        let parts = readers as f64;
        Self { views: self.views / parts, entries: self.entries / parts, terms: self.terms / parts }
    }

    /// Returns the first limit that is exceeded, if any.
    fn short(self, views: usize, entries: usize, terms: usize) -> Option<Short> {
        let is_over = |used: f64, most: usize| used > most as f64;
        match () {
            () if is_over(self.views, views) => Some(Short::Views),
            () if is_over(self.entries, entries) => Some(Short::Entries),
            () if is_over(self.terms, terms) => Some(Short::Terms),
            () => None,
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            views: self.views + other.views,
            entries: self.entries + other.entries,
            terms: self.terms + other.terms,
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl Views {
    /// Fails if a user would exceed a limit with one more view, which uses `new`.
    pub(super) fn check_user(&self, user: &str, new: Usage) -> Result<(), Full> {
        let limits = &self.limits;
        let read = self.by_filter.values().filter(|view| view.is_read_by(user));
        let all = read.map(|view| Usage::of_view(view)).sum::<Usage>() + new;
        // A user's only view may exceed the user's limits of entities and terms.
        let (entries, terms) = (new.entries as usize, new.terms as usize);
        let entries = limits.entries_of_user.max(entries);
        let short = all.short(limits.views_of_user, entries, limits.terms_of_user.max(terms));
        short.map_or(Ok(()), |_| Err(Full::User))
    }

    /// Makes room for a new view of a user, which uses `new`.
    pub(super) fn make_room(&mut self, user: &str, new: Usage) -> Result<(), Full> {
        if self.fit(new, Some(user)) { Ok(()) } else { Err(Full::All) }
    }

    /// Ends views if all together have grown beyond a limit. Their subscribers attach again, and get an error if there
    /// is no room.
    pub(super) fn shrink(&mut self) {
        self.fit(Usage::default(), None);
    }

    /// Ends views until there is room for `new`: first those without subscribers, then those of the user with the
    /// largest share, if it is larger than the share that `user` would have. Returns whether there is room.
    fn fit(&mut self, new: Usage, user: Option<&str>) -> bool {
        if self.short_of(new).is_none() {
            return true;
        }
        self.drop_idle(Duration::ZERO);
        for _ in 0..MOST_ENDED {
            let Some(short) = self.short_of(new) else { return true };
            let shares = self.shares();
            let own = user.map(|user| shares.get(user).copied().unwrap_or_default() + new);
            let Some((greediest, share)) = greediest(shares, short) else { break };
            if own.is_some_and(|own| own.of(short) >= share.of(short)) {
                break;
            }
            self.end_largest_of(&greediest);
        }
        self.short_of(new).is_none()
    }

    /// Returns the first limit that all views exceed together with `new`, if any.
    fn short_of(&self, new: Usage) -> Option<Short> {
        let all = self.by_filter.values().map(|view| Usage::of_view(view)).sum::<Usage>() + new;
        all.short(self.limits.views, self.limits.entries, self.limits.terms)
    }

    /// Returns the share of each user. A view counts in equal parts for the users who subscribe to it.
    fn shares(&self) -> HashMap<Arc<str>, Usage> {
        let mut shares: HashMap<Arc<str>, Usage> = HashMap::new();
        for view in self.by_filter.values() {
            let users = view.users();
            let part = Usage::of_view(view).shared_by(users.len());
            for user in users {
                let share = shares.entry(user).or_default();
                *share = *share + part;
            }
        }
        shares
    }

    /// Ends one of a user's views: of those with the fewest users, the largest.
    fn end_largest_of(&mut self, user: &str) {
        let views = self.by_filter.values().filter(|view| view.is_read_by(user));
        let largest =
            views.max_by_key(|view| (Reverse(view.users().len()), view.read(ChangeLog::live))).cloned();
        if let Some(largest) = largest {
            largest.end();
            self.retain(|view| !std::ptr::eq(view, Arc::as_ptr(&largest)));
        }
    }
}

/// Returns the user with the largest share of what is short.
fn greediest(shares: HashMap<Arc<str>, Usage>, short: Short) -> Option<(Arc<str>, Usage)> {
    shares.into_iter().max_by(|(_, one), (_, other)| one.of(short).total_cmp(&other.of(short)))
}
