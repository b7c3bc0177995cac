//! The work that a request makes, in seats (k8s.io/apiserver pkg/util/flowcontrol/request, WorkEstimator).

use std::sync::Arc;

use drydock_serving::request::info::{RequestInfo, Verb};

use crate::request::list_options::ListOptions;

/// Bytes that a list reads, or a write sends, for each seat
/// (k8s.io/apiserver pkg/util/flowcontrol/request/list_work_estimator.go, bytesPerSeat).
const BYTES: usize = 100_000;
/// Maximum seats of a request (k8s.io/apiserver pkg/util/flowcontrol/request: MaximumMutatingSeatsLimit, and
/// cacheWithStreamingMaxMemoryUsage for a list that is not held as a whole).
const MAX_SEATS: u32 = 10;

/// What the work of a request is estimated from.
#[derive(Clone, Copy)]
pub struct RequestWork<'a> {
    /// What is asked.
    pub info: &'a RequestInfo,
    /// What else it reads in the same way.
    pub also: &'a [Arc<RequestInfo>],
    /// Bytes of the body; `None` where the client has not announced its length.
    pub body: Option<u64>,
}

/// The objects that a list reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Maximum objects; 0 is no limit.
    pub limit: usize,
    /// The key to begin with, on a page that is not the first.
    pub start: Option<String>,
}

impl RequestWork<'_> {
    /// Returns the seats of the request, from 1 to `widest`, and at most 10. `listed_bytes` is about how many bytes
    /// of objects it lists; `None` for a request that lists nothing.
    pub fn seats(&self, widest: u32, listed_bytes: Option<usize>) -> u32 {
        let bytes = match listed_bytes {
            Some(bytes) => bytes,
            None if self.info.verb.is_mutating() => {
                self.body.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
            }
            None => 0,
        };
        u32::try_from(bytes.div_ceil(BYTES)).unwrap_or(u32::MAX).clamp(1, widest.clamp(1, MAX_SEATS))
    }

    /// Returns the sum of `of` over everything that the request reads.
    pub fn sum(&self, of: impl Fn(&RequestInfo) -> usize) -> usize {
        self.also.iter().map(|info| &**info).chain([self.info]).map(of).fold(0, usize::saturating_add)
    }

    /// The objects that a list, a deletecollection, or a watch with initial events reads; `None` for other requests, for
    /// those on one object, and for malformed ones, which are refused before anything is read.
    pub fn listed(&self) -> Option<Listed> {
        let info = self.info;
        if !info.is_resource || !info.name.is_empty() {
            return None;
        }
        match info.verb {
            Verb::List | Verb::DeleteCollection => {
                let read = ListOptions::parse(&info.query, false).and_then(|options| options.read()).ok()?;
                // A list with a selector also reads the objects that the selector leaves out. The query is asked: `info` has no
                // selector that is too long for a review.
                let selects = |parameter| info.query.non_empty(parameter).is_some();
                let selects = selects("labelSelector") || selects("fieldSelector");
                Some(Listed { limit: if selects { 0 } else { read.limit }, start: read.start })
            }
            Verb::Watch => {
                let options = ListOptions::parse(&info.query, true).ok()?;
                let initial = options.send_initial_events == Some(true);
                initial.then_some(Listed { limit: 0, start: None })
            }
            _ => None,
        }
    }
}

/// Bytes beyond which a list takes no more seats.
pub fn most_bytes(widest: u32) -> usize {
    BYTES.saturating_mul(widest.clamp(1, MAX_SEATS) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seats of a request, of a kind that has `stored` bytes, 1,000 an object.
    fn seats(line: &str, body: Option<u64>, stored: usize) -> u32 {
        let (method, uri) = line.split_once(' ').unwrap_or_default();
        let method = method.parse().unwrap_or_default();
        let info = RequestInfo::parse(&method, &uri.parse().unwrap_or_default());
        let listed = |listed: &Listed, enough: usize| {
            let limited = if listed.limit == 0 { stored } else { stored.min(listed.limit * 1_000) };
            limited.min(enough)
        };
        let work = RequestWork { info: &info, also: &[], body };
        work.seats(40, work.listed().map(|objects| listed(&objects, most_bytes(40))))
    }

    #[test]
    fn a_list_takes_a_seat_for_each_100_kb() {
        let list = "GET /apis/g/v1/namespaces/ns/things";
        for (stored, expected) in [(0, 1), (100_000, 1), (100_001, 2), (900_000, 9), (90_000_000, 10)] {
            assert_eq!(seats(list, None, stored), expected, "{stored}");
            let collection = "DELETE /apis/g/v1/namespaces/ns/things";
            assert_eq!(seats(collection, Some(0), stored), expected, "{stored}");
        }
        assert_eq!(seats(&format!("{list}?limit=500"), None, 90_000_000), 5);
        assert_eq!(seats(&format!("{list}?limit=500&labelSelector=a%3Db"), None, 90_000_000), 10);
        let long = "b".repeat(2_000);
        assert_eq!(seats(&format!("{list}?limit=500&labelSelector=a%3D{long}"), None, 90_000_000), 10);
        assert_eq!(seats(&format!("{list}?limit=500&resourceVersion=0"), None, 90_000_000), 10);
        assert_eq!(seats(&format!("{list}?fieldSelector=metadata.name%3Da"), None, 90_000_000), 1);
        assert_eq!(seats(&format!("{list}/a"), None, 90_000_000), 1);
    }

    /// As a GetNode of the status stream does.
    #[test]
    fn a_request_takes_seats_for_all_that_it_reads_whichever_is_first() {
        let list = |resource: &str| {
            let uri = format!("/apis/g/v1/{resource}").parse().unwrap_or_default();
            Arc::new(RequestInfo::parse(&http::Method::GET, &uri))
        };
        let (things, others) = (list("things"), list("others"));
        let of = |info: &RequestInfo| if info.resource == "things" { 100_000 } else { 250_000 };
        let seats = |info: &RequestInfo, also: &[Arc<RequestInfo>]| {
            let work = RequestWork { info, also, body: Some(9) };
            assert!(work.listed().is_some());
            work.seats(40, Some(work.sum(of)))
        };
        assert_eq!(seats(&things, &[]), 1);
        assert_eq!(seats(&things, std::slice::from_ref(&others)), 4);
        assert_eq!(seats(&others, std::slice::from_ref(&things)), 4);
    }

    #[test]
    fn a_watch_takes_seats_for_what_it_begins_with() {
        let watch = "GET /apis/g/v1/things?watch=1";
        assert_eq!(seats(watch, None, 500_000), 5);
        assert_eq!(seats(&format!("{watch}&resourceVersion=7"), None, 500_000), 1);
        let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(seats(&format!("{watch}&{initial}"), None, 500_000), 5);
    }

    #[test]
    fn a_write_takes_seats_for_its_body() {
        let create = "POST /apis/g/v1/namespaces/ns/things";
        for (body, expected) in [(Some(0), 1), (Some(2_000), 1), (Some(250_000), 3), (Some(u64::MAX), 10)] {
            assert_eq!(seats(create, body, 0), expected, "{body:?}");
        }
        assert_eq!(seats(create, None, 0), 10, "a length that is kept secret is the most");
        assert_eq!(seats("GET /version", None, 0), 1);
    }
}
