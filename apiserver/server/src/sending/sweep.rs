//! Who looks after the open answers that nobody reads.

use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::Connection;
use super::answer::{Ended, Look, Open, Record};
use super::budget::{Row, losers};
use super::ledger::{Shared, Why};

/// Least time between two looks, however short room is.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks after the open answers for as long as any is unread.
pub(super) async fn look_after(shared: Weak<Shared>, short: Arc<Notify>) {
    loop {
        let Some(period) = shared.upgrade().map(|shared| shared.limits.period) else { return };
        tokio::time::sleep(PAUSE).await;
        tokio::select! {
            () = short.notified() => {}
            () = tokio::time::sleep(period) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        if !shared.sweep(Instant::now()) && shared.disarm() {
            return;
        }
    }
}

impl Shared {
    /// Looks at all open answers; whether somebody has to look again.
    fn sweep(&self, now: Instant) -> bool {
        let open = self.all();
        let looks: Vec<Look> = open.iter().map(|answer| answer.record().look(now)).collect();
        for (answer, look) in open.iter().zip(&looks) {
            let record = answer.record();
            if now >= record.deadline && look.ended.is_none() {
                self.end(record, now, "deadline");
                answer.give_back();
            } else if look.unread && now.saturating_duration_since(look.since) >= self.limits.patience {
                record.let_go();
            }
        }
        let held = open.iter().fold(0_usize, |held, answer| held.saturating_add(answer.record().bytes()));
        if held > self.limits.bytes {
            self.make_room(&open, &looks, now);
        }
        held > self.limits.bytes || looks.iter().any(|look| look.unread)
    }

    /// Ends answers until the rest has room.
    fn make_room(&self, open: &[Arc<dyn Open>], looks: &[Look], now: Instant) {
        let (users, of_answer) = users(open);
        let owners = owners(open, &of_answer);
        let rows = open.iter().zip(looks).zip(of_answer).map(|((answer, look), user)| {
            let record = answer.record();
            let is_own = || owners.get(&Arc::as_ptr(&record.connection)) == Some(&Some(user));
            let can_end = match look.ended {
                None => true,
                Some(Ended::Stream) => !look.ending && is_own(),
                Some(Ended::Connection) => false,
            };
            let bytes = if look.ending { 0 } else { record.bytes() };
            Row { user, bytes, can_end, unread: look.unread, since: look.since }
        });
        let rows: Vec<Row> = rows.collect();
        for lost in losers(&rows, users, self.limits.bytes - self.limits.bytes / 8) {
            self.end(open[lost].record(), now, "share");
        }
    }

    fn end(&self, record: &Record, now: Instant, reason: &'static str) {
        record.end(now);
        self.ended.get_or_create(&Why { reason }).inc();
        let user = record.user.as_ref().map_or("", |user| user.name.as_str());
        tracing::debug!(user, reason, "an answer that is not read is ended");
    }

    /// Nobody looks after the open answers any more, unless there is something unread after all.
    fn disarm(&self) -> bool {
        self.armed.store(false, SeqCst);
        // In this order: what is given to the transport from now on arms anew.
        let unread = self.all().iter().any(|answer| answer.record().unread() > 0);
        !unread || self.armed.swap(true, SeqCst)
    }
}

/// How many users there are, and which of them each answer is for.
fn users(open: &[Arc<dyn Open>]) -> (usize, Vec<usize>) {
    let mut users = HashMap::new();
    let mut of_answer = Vec::with_capacity(open.len());
    for answer in open {
        let next = users.len();
        let flow = answer.record().user.as_ref().map(|user| user.flow());
        of_answer.push(*users.entry(flow).or_insert(next));
    }
    (users.len(), of_answer)
}

/// Whose each connection is alone.
fn owners(open: &[Arc<dyn Open>], of_answer: &[usize]) -> HashMap<*const Connection, Option<usize>> {
    let mut owners = HashMap::new();
    for (answer, user) in open.iter().zip(of_answer) {
        let connection = &answer.record().connection;
        let known = owners.entry(Arc::as_ptr(connection)).or_insert(Some(*user));
        if connection.is_shared() || *known != Some(*user) {
            *known = None;
        }
    }
    owners
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
