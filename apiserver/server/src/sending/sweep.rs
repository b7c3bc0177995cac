//! The look at all open answers, by which what nobody reads is ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Ended, Look, Open, Record};
use super::budget::{Row, losers};
use super::ledger::{Shared, Why};
use super::{Connection, Sending};

/// Least time between two looks, however short room is.
const PAUSE: Duration = Duration::from_millis(20);

impl Sending {
    /// Looks after the open answers for as long as this is polled. What bounds an answer in time is enforced here alone,
    /// so it has to go on until the last one has been sent.
    pub async fn look_after(&self) {
        let shared = &self.0;
        loop {
            while shared.is_empty() {
                shared.held.set(0);
                shared.opened.notified().await;
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                () = shared.short.notified() => {}
                () = tokio::time::sleep(shared.limits.period) => {}
            }
            shared.sweep(Instant::now());
        }
    }
}

impl Shared {
    /// Looks at all open answers.
    fn sweep(&self, now: Instant) {
        let open = self.all();
        for answer in &open {
            let record = answer.record();
            let look = record.look(now);
            record.expire(now);
            if now >= record.deadline() && look.ended.is_none() {
                self.end(record, &look, now, "deadline");
                answer.give_back();
            } else if look.unread && now.saturating_duration_since(look.since) >= self.limits.patience {
                record.let_go();
            }
        }
        let held = open.iter().fold(0_usize, |held, answer| held.saturating_add(answer.record().bytes()));
        self.held.set(i64::try_from(held).unwrap_or(i64::MAX));
        if held > self.limits.bytes {
            self.make_room(&open, now);
        }
    }

    /// Ends answers until the rest has room.
    fn make_room(&self, open: &[Arc<dyn Open>], now: Instant) {
        let looks: Vec<Look> = open.iter().map(|answer| answer.record().look(now)).collect();
        let (users, of_answer) = users(open);
        let owners = owners(open, &of_answer);
        let rows = open.iter().zip(&looks).zip(of_answer).map(|((answer, look), user)| {
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
            self.end(open[lost].record(), &looks[lost], now, "share");
        }
    }

    /// Resets the stream, or closes the connection if that was done before.
    fn end(&self, record: &Record, look: &Look, now: Instant, reason: &'static str) {
        match look.ended {
            None => record.end(now),
            Some(_) => record.close_connection(now),
        }
        self.ended.get_or_create(&Why { reason }).inc();
        let user = record.user.as_ref().map_or("", |user| user.name.as_str());
        tracing::debug!(user, reason, "an answer that is not read is ended");
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
