//! When bookmarks are sent: about every minute, and 2 s before the end
//! (k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime).

use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(60);
const BEFORE_END: Duration = Duration::from_secs(2);

/// The next time for a bookmark.
pub struct BookmarkTimer {
    due: Instant,
    ends: Instant,
}

impl BookmarkTimer {
    /// For a watch that starts now.
    pub fn new(now: Instant, ends: Instant) -> Self {
        Self { due: next(now, ends), ends }
    }

    /// When the next one is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// One has been sent.
    pub fn passed(&mut self, now: Instant) {
        self.due = next(now, self.ends);
    }
}

fn next(now: Instant, ends: Instant) -> Instant {
    let regular = now + EVERY;
    match ends.checked_sub(BEFORE_END) {
        Some(last) if last > now && last < regular => last,
        _ => regular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bookmark_comes_two_seconds_before_the_end() {
        let now = Instant::now();
        let mut timer = BookmarkTimer::new(now, now + Duration::from_secs(90));
        assert_eq!(timer.due(), now + EVERY);
        timer.passed(now + EVERY);
        assert_eq!(timer.due(), now + Duration::from_secs(88));
        timer.passed(now + Duration::from_secs(88));
        assert!(timer.due() > now + Duration::from_secs(90));
    }
}
