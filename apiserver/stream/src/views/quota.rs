//! How many views there may be, and whose views end where there is no room for another.
//!
//! A view counts for its readers in equal parts. What is short, views or entities, is taken from whoever has most of it, and
//! given only to users who would still have less.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Views;
use crate::log::Log;

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
    /// Refuses a user who reads too much to read one more view of so many entities.
    pub(super) fn check_user(&self, user: &str, entries: usize) -> Result<(), Full> {
        let limits = &self.limits;
        let read = self.by_filter.values().filter(|view| view.is_read_by(user));
        let (views, read) = read.fold((0, 0), |(views, sum), view| (views + 1, sum + view.read(Log::live)));
        let is_full = views >= limits.views_of_user || read + entries > limits.entries_of_user.max(entries);
        if is_full { Err(Full::User) } else { Ok(()) }
    }

    /// Makes room for a new view of a user.
    pub(super) fn make_room(&mut self, user: &str, entries: usize) -> Result<(), Full> {
        let new = Usage { views: 1.0, entries: entries as f64 };
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
        let (views, entries) = self.size();
        match () {
            () if views as f64 + new.views > self.limits.views as f64 => Some(Short::Views),
            () if entries as f64 + new.entries > self.limits.entries as f64 => Some(Short::Entries),
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

/// Whoever takes most of what is short.
fn greediest(shares: HashMap<Arc<str>, Usage>, short: Short) -> Option<(Arc<str>, Usage)> {
    shares.into_iter().max_by(|(_, one), (_, other)| one.of(short).total_cmp(&other.of(short)))
}
