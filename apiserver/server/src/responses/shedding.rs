//! Load shedding: which responses are ended when together they hold more than there is room for.

use std::collections::BinaryHeap;
use std::time::Instant;

/// An open response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Its user, as an index below the number of users.
    pub(super) user: usize,
    /// What it holds.
    pub(super) bytes: usize,
    /// Whether it can be ended.
    pub(super) can_end: bool,
    /// Whether the client has something to read, and since when it has read nothing.
    pub(super) unread: bool,
    pub(super) since: Instant,
}

/// Picks the responses to end so that the rest is within `room`; none if all are.
///
/// The users share the room equally. The user who holds most loses first: of their responses the unread ones, those
/// without progress for longest first. A user with at most an equal share loses nothing.
pub(super) fn to_shed(rows: &[Row], users: usize, room: usize) -> Vec<usize> {
    let mut held = vec![0_usize; users];
    let mut can_end = vec![Vec::new(); users];
    for (index, row) in rows.iter().enumerate() {
        held[row.user] = held[row.user].saturating_add(row.bytes);
        if row.can_end {
            can_end[row.user].push(index);
        }
    }
    for of_user in &mut can_end {
        // The response that is to be ended first comes last.
        of_user.sort_by_key(|index| (rows[*index].unread, std::cmp::Reverse(rows[*index].since)));
    }
    let active = held.iter().filter(|bytes| **bytes > 0).count();
    let share = room / active.max(1);
    let mut total = held.iter().fold(0_usize, |total, bytes| total.saturating_add(*bytes));
    let mut most: BinaryHeap<(usize, usize)> =
        held.iter().enumerate().map(|(user, bytes)| (*bytes, user)).filter(|(b, _)| *b > share).collect();
    let mut lost = Vec::new();
    while total > room {
        let Some((bytes, user)) = most.pop() else { break };
        let Some(index) = can_end[user].pop() else { continue };
        lost.push(index);
        total = total.saturating_sub(rows[index].bytes);
        let left = bytes.saturating_sub(rows[index].bytes);
        if left > share {
            most.push((left, user));
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// `(user, bytes, seconds without progress)`
    fn rows(of: &[(usize, usize, u64)]) -> Vec<Row> {
        let now = Instant::now() + Duration::from_secs(1000);
        let row = |&(user, bytes, idle): &(usize, usize, u64)| {
            let since = now.checked_sub(Duration::from_secs(idle)).unwrap_or(now);
            Row { user, bytes, can_end: true, unread: true, since }
        };
        of.iter().map(row).collect()
    }

    #[test]
    fn nobody_loses_while_there_is_room() {
        assert!(to_shed(&rows(&[(0, 60, 9), (1, 40, 9)]), 2, 100).is_empty());
    }

    #[test]
    fn who_holds_most_loses_what_stands_still_for_longest() {
        let rows = rows(&[(0, 40, 1), (1, 10, 99), (0, 40, 5), (0, 40, 3)]);
        assert_eq!(to_shed(&rows, 2, 100), [2]);
        assert_eq!(to_shed(&rows, 2, 60), [2, 3]);
    }

    /// This holds however much another user holds that cannot be freed.
    #[test]
    fn nobody_within_an_equal_share_loses_anything() {
        let mut rows = rows(&[(0, 1000, 1), (1, 50, 99), (1, 1, 98), (2, 10, 99)]);
        rows[0].can_end = false;
        assert_eq!(to_shed(&rows, 3, 150), [1]);
        assert!(to_shed(&rows[..1], 1, 150).is_empty());
    }

    #[test]
    fn what_has_nothing_to_read_is_lost_last() {
        let mut rows = rows(&[(0, 60, 99), (0, 60, 1)]);
        rows[0].unread = false;
        assert_eq!(to_shed(&rows, 1, 100), [1]);
    }

    /// A user has one share, however many responses it has.
    #[test]
    fn a_thousand_answers_of_one_do_not_cost_another_any() {
        let mut of: Vec<_> = (0..1000).map(|number| (0, 10, number)).collect();
        of.extend([(1, 400, 5000), (2, 300, 5000)]);
        let lost = to_shed(&rows(&of), 3, 1200);
        assert!(lost.len() == 950 && lost.iter().all(|index| *index < 1000), "{}", lost.len());
    }
}
