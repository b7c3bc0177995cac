//! The number that a surge is added to: `spec.replicas` of a Deployment, or `spec.minReplicas` of the autoscaler that scales
//! it. Nobody but its owner and the surge may set it, and the record stands beside it.

use drydock_api::metav1::ManagedFieldsEntry;
use drydock_runtime::surge_record::{FoundRecord, SurgeRecord};

/// A number and its record.
#[derive(Clone, Debug)]
pub struct Scale<'a> {
    /// Kind and name of the object that has the number.
    pub holder: String,
    /// The field, for people.
    pub field: &'static str,
    /// The number.
    pub number: i32,
    /// How many replicas the Deployment is to have now.
    pub replicas: i32,
    /// The greatest number, if there is one.
    pub most: Option<i32>,
    /// A manager that owns the number by a server-side apply.
    pub applied_by: Option<&'a str>,
    /// The record of a surge.
    pub record: &'a FoundRecord,
}

impl Scale<'_> {
    /// The number without the surge. Who owns it by Apply means it as it is.
    pub fn base(&self) -> i32 {
        let record = self.record.valid().filter(|_| self.applied_by.is_none());
        self.number - record.map_or(0, |record| record.to_take_back(self.number))
    }

    /// The number to which one is added for each pod: with a lower one there would be no replica more. A number that is
    /// above the replicas is one that the autoscaler has not acted on yet.
    pub fn floor(&self) -> i32 {
        let without_record = self.replicas.max(self.number);
        self.record.valid().map_or(without_record, |record| self.number.saturating_sub(record.surged()))
    }

    /// Whether others have lowered the number since the surge.
    pub fn is_lowered(&self) -> bool {
        self.record.valid().is_some_and(|record: &SurgeRecord| self.number < record.number)
    }
}

/// The manager that owns a field of the spec by a server-side apply.
pub fn applied_by(managers: Vec<ManagedFieldsEntry>, field: &str) -> Option<String> {
    let key = format!("f:{field}");
    let applies = |entry: &ManagedFieldsEntry| {
        entry.operation == "Apply" && entry.fields()["f:spec"].get(&key).is_some()
    };
    managers.into_iter().find(applies).map(|entry| entry.manager)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn scale(number: i32, replicas: i32, record: &FoundRecord) -> Scale<'_> {
        let (holder, field) = ("h".to_owned(), "spec.minReplicas");
        Scale { holder, field, number, replicas, most: None, applied_by: None, record }
    }

    #[test]
    fn an_autoscaler_adds_to_the_replicas_and_takes_back_to_its_minimum() {
        let before = scale(2, 5, &FoundRecord::Absent);
        assert_eq!((before.base(), before.floor()), (2, 5));
        let record = SurgeRecord::new(2, 5, ["a".to_owned()].into(), Timestamp::UNIX_EPOCH);
        let record = FoundRecord::Valid(record);
        let during = scale(6, 6, &record);
        assert_eq!((during.base(), during.floor(), during.is_lowered()), (2, 5, false));
        let lowered = scale(3, 6, &record);
        assert_eq!((lowered.base(), lowered.is_lowered()), (2, true));
        let applied = Scale { applied_by: Some("m"), ..during };
        assert_eq!(applied.base(), 6);
    }
}
