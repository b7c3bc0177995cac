//! The fencing token of a write: our API server takes the number of the lease's term, and refuses the writes of a term that
//! is over, or whose number is too far ahead of the server's clock.
//!
//! A refusal is no conflict that reading again solves. It says that a newer leader writes, or that a clock was wrong: then
//! this process, if it holds the Lease, begins a term that the server takes. Which one it is the Lease tells
//! ([`Elector`](super::Elector)).

use drydock_api::{FENCING_TOKEN_HEADER, REFUSED_TOKEN_REASON, RefusedToken};
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
        if let Some(refused) = read(term, &status)
            && lease.refuse(refused)
        {
            warn!(
                term,
                refused.newest,
                refused.highest,
                "the API server refuses the writes of this term of the lease; the lease shows whether another process leads, or \
                 whether this one can go on with another term"
            );
        }
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// Reads what a 409 says of the term; `None` if the term ended while the write was under way.
fn read(term: u64, status: &Status) -> Option<RefusedToken> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    RefusedToken::read(term, causes.map(|cause| (cause.reason.as_str(), cause.message.as_str())))
}

/// What happened and what to do, for people. `next` is the term with which this process goes on.
pub(super) fn explained(refused: RefusedToken, next: Option<u64>) -> String {
    let RefusedToken { term, newest, .. } = refused;
    let shown = |term: u64| {
        let time = i64::try_from(term).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        time.map_or_else(|| term.to_string(), |time| time.to_string())
    };
    let why = match term < newest {
        true => format!("one that began at {} has written as the same user", shown(newest)),
        false => "that is too far ahead of its clock".to_owned(),
    };
    let then = match next {
        Some(next) => format!(
            "This process holds the Lease, and goes on with a term of {}. Synchronize the clocks of the nodes, and \
             let no program with another Lease write as this user: each time again it waits for longer.",
            shown(next)
        ),
        None => "No term can follow that one, so nothing is written: scale this program to 0, and remove that term \
                 with `drydock-apiserver fencing-tokens --reset USER`."
            .to_owned(),
    };
    format!(
        "drydock-apiserver refused writes of the term of the Lease that began at {}: {why}. {then}",
        shown(term)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_the_times_and_what_to_do() {
        let refused = RefusedToken { term: 0, newest: 2_082_758_400_000_000, highest: 2_082_758_401_000_000 };
        let told = explained(refused, Some(2_082_758_400_000_001));
        assert!(told.contains("one that began at 2036-01-01T00:00:00Z has written"), "{told}");
        assert!(told.contains("goes on with a term of 2036-01-01T00:00:00.000001Z"), "{told}");
        let told = explained(RefusedToken { newest: u64::MAX, ..refused }, None);
        assert!(
            told.contains("18446744073709551615") && told.contains("fencing-tokens --reset USER"),
            "{told}"
        );
        let ahead = explained(RefusedToken { term: 5, newest: 0, highest: 1 }, Some(1));
        assert!(ahead.contains("too far ahead of its clock"), "{ahead}");
        assert!(told.len().max(ahead.len()) < 1024);
    }
}
