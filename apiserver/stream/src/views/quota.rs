//! How many views there may be, and whose views end where there is no room for another.
//!
//! A view counts for its readers in equal parts. What is short, views, entities or terms, is taken from the user who has most
//! of it, and given only to users who would still have less.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use super::Views;
use crate::filter::Filter;
use crate::log::Log;
use crate::view::View;

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
    /// Most terms of label selectors over all views: each is asked about each change.
    pub terms: usize,
    /// Most terms over all views that one user reads.
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

/// Why there is no further view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user has too many.
    User,
    /// All users together have too many.
    All,
}

/// What views take, or the share of a user in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    views: f64,
    entries: f64,
    terms: f64,
}

/// What there is too much of.
#[derive(Clone, Copy, Debug)]
enum Short {
    Views,
    Entries,
    Terms,
}

impl Usage {
    /// What a view of a filter takes that has so many entities.
    pub(super) fn new(filter: &Filter, entries: usize) -> Self {
        Self { views: 1.0, entries: entries as f64, terms: filter.terms() as f64 }
    }

    /// What a view takes.
    pub(super) fn of_view(view: &View) -> Self {
        Self::new(&view.filter, view.read(Log::live))
    }

    fn of(self, short: Short) -> f64 {
        match short {
            Short::Views => self.views,
            Short::Entries => self.entries,
            Short::Terms => self.terms,
        }
    }

    /// The share of each of so many readers.
    fn shared_by(self, readers: usize) -> Self {
        let parts = readers as f64;
        Self { views: self.views / parts, entries: self.entries / parts, terms: self.terms / parts }
    }

    /// What exceeds a limit, if anything does.
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
    /// Refuses a user who reads too much to read one more view, which takes `new`.
    pub(super) fn check_user(&self, user: &str, new: Usage) -> Result<(), Full> {
        let limits = &self.limits;
        let read = self.by_filter.values().filter(|view| view.is_read_by(user));
        let all = read.map(|view| Usage::of_view(view)).sum::<Usage>() + new;
        // A single view may select more than that, and have a longer selector.
        let (entries, terms) = (new.entries as usize, new.terms as usize);
        let entries = limits.entries_of_user.max(entries);
        let short = all.short(limits.views_of_user, entries, limits.terms_of_user.max(terms));
        short.map_or(Ok(()), |_| Err(Full::User))
    }

    /// Makes room for a new view of a user, which takes `new`.
    pub(super) fn make_room(&mut self, user: &str, new: Usage) -> Result<(), Full> {
        if self.fit(new, Some(user)) { Ok(()) } else { Err(Full::All) }
    }

    /// Ends views if what they select has grown beyond the bound. Their subscribers attach again, and are told that there is
    /// no room.
    pub(super) fn shrink(&mut self) {
        self.fit(Usage::default(), None);
    }

    /// Ends views until `new` has room beside them: those that nobody reads, then those of whoever has most. For a new view
    /// of a user only views of those end who have more than the user would have. Returns whether there is room.
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

    /// What there is too little room for, with so much more.
    fn short_of(&self, new: Usage) -> Option<Short> {
        let all = self.by_filter.values().map(|view| Usage::of_view(view)).sum::<Usage>() + new;
        all.short(self.limits.views, self.limits.entries, self.limits.terms)
    }

    /// What each user takes: a view counts for its readers in equal parts.
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

    /// Ends a view of a user: one that fewest others read, and of those the largest.
    fn end_largest_of(&mut self, user: &str) {
        let views = self.by_filter.values().filter(|view| view.is_read_by(user));
        let largest = views.max_by_key(|view| (Reverse(view.users().len()), view.read(Log::live))).cloned();
        if let Some(largest) = largest {
            largest.end();
            self.retain(|view| !std::ptr::eq(view, Arc::as_ptr(&largest)));
        }
    }
}

/// The user who takes most of what is short.
fn greediest(shares: HashMap<Arc<str>, Usage>, short: Short) -> Option<(Arc<str>, Usage)> {
    shares.into_iter().max_by(|(_, one), (_, other)| one.of(short).total_cmp(&other.of(short)))
}
