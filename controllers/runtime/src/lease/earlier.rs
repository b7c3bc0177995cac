//! The terms that a Lease has had. A term that follows a refused one goes above those whose writes may still arrive.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::RefusedToken;

/// The annotation of the Lease with the numbers of its earlier terms: the spec has that of the last one alone, and the process
/// that knew the others may be gone.
const EARLIER_TERMS: &str = "nodemaintenance.k8s.io/earlier-fencing-tokens";
/// Maximum number of terms that are kept.
const KEPT: usize = 8;

/// The number of the term that a spec describes: when it was acquired, in microseconds. Unlike
/// `leaseTransitions`, it does not start again when somebody deletes the Lease, or when the host is restored
/// from a backup.
pub(super) fn term(spec: &LeaseSpec) -> u64 {
    let acquired = spec.acquire_time.as_ref().map_or(0, |time| time.0.as_microsecond());
    u64::try_from(acquired).unwrap_or_default()
}

/// The numbers of the terms of a Lease, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EarlierTerms {
    numbers: BTreeSet<u64>,
    /// When the one began that the Lease had when it was seen last.
    last: Option<Timestamp>,
}

impl EarlierTerms {
    /// Takes in a Lease that was read or written.
    pub(super) fn note(&mut self, lease: &Lease) {
        let annotation = lease.metadata.annotations.as_ref().and_then(|all| all.get(EARLIER_TERMS));
        let earlier = annotation.into_iter().flat_map(|text| text.split(','));
        self.numbers.extend(earlier.filter_map(|number| number.parse::<u64>().ok()).take(KEPT));
        if let Some(spec) = &lease.spec
            && let Some(acquired) = &spec.acquire_time
        {
            self.numbers.insert(term(spec));
            self.last = Some(acquired.0);
        }
        while self.numbers.len() > KEPT {
            self.forget_one();
        }
    }

    /// Of the two that are closest to each other the lower one is forgotten: few numbers are above it and not above the other.
    fn forget_one(&mut self) {
        let pairs = self.numbers.iter().zip(self.numbers.iter().skip(1));
        let closest = pairs.min_by_key(|(lower, higher)| *higher - *lower).map(|(lower, _)| *lower);
        if let Some(lower) = closest {
            self.numbers.remove(&lower);
        }
    }

    /// When the term began that was seen in the Lease last; `None` if none was seen.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// The Lease with this spec, and with the earlier terms.
    pub(super) fn lease(&self, old: Lease, spec: LeaseSpec) -> Lease {
        let mut metadata = old.metadata;
        let earlier = self.numbers.iter().filter(|number| **number != term(&spec));
        let text = earlier.map(u64::to_string).collect::<Vec<_>>().join(",");
        if !text.is_empty() {
            metadata.annotations.get_or_insert_default().insert(EARLIER_TERMS.to_owned(), text);
        }
        Lease { metadata, spec: Some(spec) }
    }

    /// When the term begins that follows a refused one: a microsecond after the newest one that the server has taken, and
    /// after each earlier one that it would take. `None` if it would not take that either.
    ///
    /// An earlier term that is too far ahead of the server's clock does not count, though the server would take it once its
    /// clock is within a day of it. A write of that term which arrives as late as that is taken.
    pub(super) fn next(&self, refused: RefusedToken) -> Option<Timestamp> {
        let RefusedToken { term, newest, highest } = refused;
        let earlier = self.numbers.range(..=highest).next_back().copied().unwrap_or_default();
        let next = newest.max(earlier).checked_add(1)?;
        let is_refused = term < newest || term > highest;
        let next = Some(next).filter(|next| is_refused && *next <= highest)?;
        Timestamp::from_microsecond(i64::try_from(next).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    /// A second before the last time, which is in the last hours of 9999-12-30.
    const LATE: u64 = 253_402_207_199_000_000;

    fn spec(number: u64) -> LeaseSpec {
        let time = Timestamp::from_microsecond(i64::try_from(number).unwrap()).unwrap();
        LeaseSpec { acquire_time: Some(MicroTime(time)), ..LeaseSpec::default() }
    }

    fn after(earlier: &[u64]) -> EarlierTerms {
        let mut terms = EarlierTerms::default();
        earlier.iter().for_each(|number| terms.note(&terms.clone().lease(Lease::default(), spec(*number))));
        terms
    }

    fn next(earlier: &[u64], term: u64, newest: u64, highest: u64) -> Option<u64> {
        let next = after(earlier).next(RefusedToken { term, newest, highest });
        next.map(|time| u64::try_from(time.as_microsecond()).unwrap())
    }

    #[test]
    fn a_refused_term_is_followed_by_the_nearest_that_the_server_takes() {
        assert_eq!(next(&[5], 5, 9, 1000), Some(10), "a newer one has begun");
        assert_eq!(next(&[5000], 5000, 9, 1000), Some(10), "it is too far ahead");
        assert_eq!(next(&[5], 5, 9, u64::MAX), Some(10));
        assert_eq!(next(&[5], 5, LATE, u64::MAX), Some(LATE + 1));
        for newest in [LATE + 2_000_000, u64::MAX - 1, u64::MAX] {
            assert_eq!(next(&[5], 5, newest, u64::MAX), None, "no time is above {newest}");
        }
        // What no server says.
        assert_eq!(next(&[5], 5, 9, 9), None);
        assert_eq!(next(&[5], 5, 1, 9), None);
    }

    #[test]
    fn it_goes_above_the_earlier_terms_that_the_server_would_take() {
        assert_eq!(next(&[700, 5000], 5000, 9, 1000), Some(701));
        assert_eq!(next(&[700, 3000, 5000], 5000, 9, 1000), Some(701), "3000 is too far ahead, too");
        assert_eq!(next(&[700, 3000, 5000], 5000, 9, 4000), Some(3001));
        assert_eq!(next(&[20, 5], 5, 9, 1000), Some(21));
        assert_eq!(next(&[1000, 5000], 5000, 9, 1000), None);
    }

    /// The process that takes over knows no more than what the Lease says.
    #[test]
    fn a_lease_names_its_earlier_terms_beside_what_others_have_written_there() {
        let known = after(&[700, 3000]);
        let mut old = Lease::default();
        old.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
        let lease = known.lease(old, spec(5000));
        let annotations = lease.metadata.annotations.clone().unwrap();
        assert_eq!((annotations["a"].as_str(), annotations[EARLIER_TERMS].as_str()), ("b", "700,3000"));
        let mut read = EarlierTerms::default();
        read.note(&lease);
        assert_eq!(read, after(&[700, 3000, 5000]));
        assert_eq!(read.last(), spec(5000).acquire_time.map(|time| time.0));
        // A renewal changes nothing; the first term of a Lease has no earlier one.
        assert_eq!(read.lease(lease.clone(), spec(5000)).metadata, lease.metadata);
        assert_eq!(after(&[7]).lease(Lease::default(), spec(7)).metadata.annotations, None);
    }

    #[test]
    fn few_terms_are_kept_and_the_bounds_between_them_stay() {
        let crowd: Vec<_> = (0..100).map(|number| 5_000_000 + number).collect();
        let known = after(&[&[700, 3000, 40_000], crowd.as_slice()].concat());
        assert_eq!(known.numbers.len(), KEPT);
        let up_to = |bound: u64| known.numbers.range(..=bound).next_back().copied();
        assert_eq!((up_to(1000), up_to(39_000), up_to(4_000_000)), (Some(700), Some(3000), Some(40_000)));
        assert_eq!(up_to(u64::MAX), Some(5_000_099));
        let mut broken = Lease::default();
        let text = format!("x,,-1,7 ,{}", (10..2000).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        broken.metadata.annotations = Some([(EARLIER_TERMS.to_owned(), text)].into());
        let mut read = EarlierTerms::default();
        read.note(&broken);
        assert_eq!((read.numbers.len(), read.numbers.last(), read.last()), (KEPT, Some(&17), None));
    }
}
