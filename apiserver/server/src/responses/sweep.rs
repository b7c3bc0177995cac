//! The sweep over all open responses, which ends those that their clients do not read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_serving::clock;
use drydock_serving::connection::Connection;

use super::OpenResponses;
use super::open_response::{Ended, Look, ResponseAccount, Tracked};
use super::open_responses::{Shared, Why};
use super::shedding::{Row, to_shed};

/// Shortest time between two sweeps, however little room there is.
const PAUSE: Duration = Duration::from_millis(20);

impl OpenResponses {
    /// Sweeps the open responses until the future is dropped. Deadlines of responses are enforced here alone, so it has
    /// to run until the last one has been sent.
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
            shared.sweep(clock::now());
        }
    }
}

impl Shared {
    /// Ends responses that are past their deadlines, has those without progress free what they can, and makes room.
    fn sweep(&self, now: Instant) {
        let open = self.all();
        for open_response in &open {
            let account = open_response.account();
            let look = account.look(now);
            account.expire(now);
            if now >= account.deadline() && look.ended.is_none() {
                self.end(account, &look, now, "deadline");
                open_response.give_back();
            } else if look.unread && now.saturating_duration_since(look.since) >= self.limits.patience {
                account.release();
            }
        }
        let held = open
            .iter()
            .fold(0_usize, |held, open_response| held.saturating_add(open_response.account().bytes()));
        self.held.set(i64::try_from(held).unwrap_or(i64::MAX));
        if held > self.limits.bytes {
            self.make_room(&open, now);
        }
    }

    /// Ends responses until the rest has room.
    fn make_room(&self, open: &[Arc<dyn Tracked>], now: Instant) {
        let looks: Vec<Look> = open.iter().map(|open_response| open_response.account().look(now)).collect();
        let (users, of_response) = users(open);
        let owners = owners(open, &of_response);
        let rows = open.iter().zip(&looks).zip(of_response).map(|((open_response, look), user)| {
            let account = open_response.account();
            let is_own = || owners.get(&Arc::as_ptr(&account.connection)) == Some(&Some(user));
            let can_end = match look.ended {
                None => true,
                Some(Ended::Stream) => !look.ending && is_own(),
                Some(Ended::Connection) => false,
            };
            let bytes = if look.ending { 0 } else { account.bytes() };
            Row { user, bytes, can_end, unread: look.unread, since: look.since }
        });
        let rows: Vec<Row> = rows.collect();
        for lost in to_shed(&rows, users, self.limits.bytes - self.limits.bytes / 8) {
            self.end(open[lost].account(), &looks[lost], now, "share");
        }
    }

    /// Resets the stream, or closes the connection if that was done before.
    fn end(&self, account: &ResponseAccount, look: &Look, now: Instant, reason: &'static str) {
        match look.ended {
            None => account.end(now),
            Some(_) => account.close_connection(now),
        }
        self.ended.get_or_create(&Why { reason }).inc();
        let user = account.user.as_ref().map_or("", |user| user.name.as_str());
        tracing::debug!(user, reason, "an answer that is not read is ended");
    }
}

/// How many users there are, and which of them each response is for.
fn users(open: &[Arc<dyn Tracked>]) -> (usize, Vec<usize>) {
    let mut users = HashMap::new();
    let mut of_response = Vec::with_capacity(open.len());
    for open_response in open {
        let next = users.len();
        let flow = open_response.account().user.as_ref().map(|user| user.flow());
        of_response.push(*users.entry(flow).or_insert(next));
    }
    (users.len(), of_response)
}

/// The user of each connection; `None` for one that several users share.
fn owners(open: &[Arc<dyn Tracked>], of_response: &[usize]) -> HashMap<*const Connection, Option<usize>> {
    let mut owners = HashMap::new();
    for (open_response, user) in open.iter().zip(of_response) {
        let connection = &open_response.account().connection;
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
