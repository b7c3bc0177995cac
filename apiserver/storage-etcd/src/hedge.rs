//! A hedged read: if a member does not answer soon, the read is also sent to another member.
//!
//! A silent member may be lost or merely slow. So no request is canceled: a member may still answer after the read was
//! sent to the next one, and the first answer counts. Once the read was sent to all members, or if there is only one,
//! it waits for an answer until the deadline. (Dean and Barroso, "The Tail at Scale", 2013: hedged requests.)

use std::pin::Pin;

use drydock_storage::backend::{BackendError, Result};
use etcd_client::{GetOptions, GetResponse};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use crate::error::translate;
use crate::members::{MemberChoice, Members, PAUSE, SILENCE, longer};

/// A member's answer, with the choice of this member.
type PendingAnswer = Pin<Box<dyn Future<Output = (MemberChoice, Result<GetResponse>)> + Send>>;

/// A read in progress.
pub(super) struct HedgedRead<'m> {
    members: &'m Members,
    key: String,
    options: GetOptions,
    /// The members that have not answered yet.
    waiting: Vec<MemberChoice>,
    answers: FuturesUnordered<PendingAnswer>,
}

impl<'m> HedgedRead<'m> {
    /// Creates a read; nothing is sent yet.
    pub fn new(members: &'m Members, key: String, options: GetOptions) -> Self {
        Self { members, key, options, waiting: Vec::new(), answers: FuturesUnordered::new() }
    }

    /// Returns the first answer, or the first error other than `Unavailable`. A member that is unavailable may be
    /// asked again.
    pub async fn answer(mut self) -> Result<GetResponse> {
        let mut pause = PAUSE;
        let mut next = self.ask();
        loop {
            tokio::select! {
                biased;
                Some((chosen, answer)) = self.answers.next() => match answer {
                    Err(error @ BackendError::Unavailable(_)) => {
                        tracing::debug!(%error, "reading from etcd again");
                        self.members.contact().failed(&error);
                        self.waiting.retain(|waiting| *waiting != chosen);
                        self.members.switch_from(chosen);
                        next = next.min(Instant::now() + pause);
                        pause = longer(pause);
                    }
                    answer => return answer,
                },
                () = tokio::time::sleep_until(next), if self.waiting.len() < self.members.count() => {
                    if let Some(silent) = self.waiting.last() {
                        tracing::debug!("a member of etcd is silent, and another one is asked as well");
                        self.members.switch_from(*silent);
                    }
                    next = self.ask();
                }
            }
        }
    }

    /// Asks a member that no answer is awaited from. Returns the time from which it counts as silent.
    fn ask(&mut self) -> Instant {
        let chosen = self.members.chosen_beside(&self.waiting);
        let mut client = self.members.client(chosen);
        let (key, options) = (self.key.clone(), self.options.clone());
        self.answers
            .push(Box::pin(async move { (chosen, client.get(key, Some(options)).await.map_err(translate)) }));
        self.waiting.push(chosen);
        Instant::now() + SILENCE
    }
}
