//! The fencing token of a write: our API server takes the number of the lease's term, and refuses the writes of a term that
//! is over, or whose number is too far ahead of the server's clock.
//!
//! A refusal is no conflict that reading again solves. It says that a newer leader writes, or that a clock was wrong: then
//! this process, if it holds the Lease, begins a term that the server takes. Which one it is the Lease tells
//! ([`Elector`](super::Elector)).

use drydock_api::{FENCING_TOKEN_HEADER, HIGHEST_TOKEN_CAUSE, NEWEST_TOKEN_CAUSE, REFUSED_TOKEN_REASON};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use prometheus_client::metrics::counter::Counter;
use tower::service_fn;
use tracing::warn;

use super::LeaseHandle;
use crate::cache::is_of_own_kinds;
use crate::metrics::Metrics;

/// What our API server said when it refused a write because of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermRefusal {
    /// The number of the term.
    pub term: u64,
    /// The newest number that the server has taken from our user.
    pub newest: u64,
    /// The highest number that it would take now.
    pub highest: u64,
}

/// Returns a client whose writes carry the number of the lease's term as fencing token, once one has been acquired. What our
/// API server says of the term is noted in `lease`.
pub fn with_term(client: Client, lease: LeaseHandle, metrics: &Metrics) -> Client {
    let refusals: Counter = metrics.add(
        "drydock_fencing_token_refusals",
        "Writes that the API server refused because of the term of the lease: another leader has begun, or a clock is wrong",
    );
    let namespace = client.default_namespace().to_owned();
    let stamped = service_fn(move |mut request: Request<Body>| {
        let term = lease.term().filter(|_| request.method() != Method::GET);
        if let Some(term) = term {
            request.headers_mut().insert(FENCING_TOKEN_HEADER, HeaderValue::from(term));
        }
        let term = term.filter(|_| is_of_own_kinds(request.uri().path()));
        let (client, lease, refusals) = (client.clone(), lease.clone(), refusals.clone());
        async move {
            let answer = client.send(request).await?;
            match term {
                Some(term) if answer.status() == StatusCode::CONFLICT => {
                    return note(term, answer, &lease, &refusals).await;
                }
                Some(term) if answer.status().is_success() => lease.accept(term),
                _ => {}
            }
            Ok(answer)
        }
    });
    Client::new(stamped, namespace)
}

/// Notes what a 409 says of the term, if that is what it is about, and returns the answer as it was.
async fn note(
    term: u64,
    answer: Response<Body>,
    lease: &LeaseHandle,
    refusals: &Counter,
) -> kube::Result<Response<Body>> {
    let (parts, body) = answer.into_parts();
    let body = body.collect_bytes().await?;
    let status = serde_json::from_slice::<Status>(&body).ok();
    if let Some(status) = status.filter(|status| status.reason == REFUSED_TOKEN_REASON) {
        refusals.inc();
        if let Some(refusal) = TermRefusal::read(term, &status)
            && lease.refuse(refusal)
        {
            warn!(
                term,
                refusal.newest,
                refusal.highest,
                "the API server refuses the writes of this term of the lease; the lease shows whether another process leads, or \
                 whether this one can go on with another term"
            );
        }
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

impl TermRefusal {
    /// `None` if the server does not say what it would take: a newer term began while the write was under way.
    fn read(term: u64, status: &Status) -> Option<Self> {
        let causes = &status.details.as_ref()?.causes;
        let number = |reason: &str| {
            causes.iter().find(|cause| cause.reason == reason).and_then(|cause| cause.message.parse().ok())
        };
        Some(Self { term, newest: number(NEWEST_TOKEN_CAUSE)?, highest: number(HIGHEST_TOKEN_CAUSE)? })
    }

    /// When the nearest term begins that the server takes; `None` if nothing is above the newest one.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let next = self.term.max(self.newest.checked_add(1)?).min(self.highest);
        let next = Some(next).filter(|next| *next > self.newest && *next != self.term)?;
        Timestamp::from_microsecond(i64::try_from(next).ok()?).ok()
    }

    /// What happened and what to do, for people. `next` is the term with which this process goes on.
    pub(super) fn explained(&self, next: Option<u64>) -> String {
        let Self { term, newest, .. } = self;
        let shown = |term: &u64| {
            let time = i64::try_from(*term).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
            time.map_or_else(|| term.to_string(), |time| time.to_string())
        };
        let why = match term < newest {
            true => format!("one that began at {} has written as the same user", shown(newest)),
            false => "that is too far ahead of its clock".to_owned(),
        };
        let then = match next {
            Some(next) => format!(
                "This process holds the Lease, and goes on with a term of {}. Synchronize the clocks of the nodes, and \
                 let no program with another Lease write as this user.",
                shown(&next)
            ),
            None => "No term can follow that one, so nothing is written: remove it with `drydock-apiserver fencing-tokens \
                     --reset USER`."
                .to_owned(),
        };
        format!(
            "drydock-apiserver refused writes of the term of the Lease that began at {}: {why}. {then}",
            shown(term)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A second before the last time, which is in the last hours of 9999-12-30.
    const LATE: u64 = 253_402_207_199_000_000;

    #[test]
    fn a_refused_term_is_followed_by_the_nearest_that_the_server_takes() {
        let next = |term, newest, highest| {
            let next = TermRefusal { term, newest, highest }.next();
            next.map(|time| u64::try_from(time.as_microsecond()).unwrap())
        };
        assert_eq!(next(5, 9, 1000), Some(10), "a newer one has begun");
        assert_eq!(next(5000, 9, 1000), Some(1000), "it is too far ahead");
        assert_eq!(next(5, 9, u64::MAX), Some(10));
        assert_eq!(next(5, LATE, u64::MAX), Some(LATE + 1));
        for newest in [LATE + 2_000_000, u64::MAX - 1, u64::MAX] {
            assert_eq!(next(5, newest, u64::MAX), None, "no time is above {newest}");
        }
        // What no server says.
        assert_eq!(next(5, 9, 9), None);
        assert_eq!(next(5, 1, 9), None);
    }

    #[test]
    fn people_are_told_the_times_and_what_to_do() {
        let refusal = TermRefusal { term: 0, newest: 2_082_758_400_000_000, highest: 2_082_758_401_000_000 };
        let told = refusal.explained(Some(2_082_758_400_000_001));
        assert!(told.contains("one that began at 2036-01-01T00:00:00Z has written"), "{told}");
        assert!(told.contains("goes on with a term of 2036-01-01T00:00:00.000001Z"), "{told}");
        let told = TermRefusal { newest: u64::MAX, ..refusal }.explained(None);
        assert!(
            told.contains("18446744073709551615") && told.contains("fencing-tokens --reset USER"),
            "{told}"
        );
        let ahead = TermRefusal { term: 5, newest: 0, highest: 1 }.explained(Some(1));
        assert!(ahead.contains("too far ahead of its clock"), "{ahead}");
        assert!(told.len().max(ahead.len()) < 1024);
    }
}
