//! Selectors of lists and watches.

use drydock_machinery::selector::{FieldSelector, LabelRequirements};

use crate::kinds;

/// `labelSelector=`
pub fn labels(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = LabelRequirements::parse(text) else { return };
    for sample in kinds::samples() {
        let all = selector.requirements().iter().all(|requirement| {
            LabelRequirements::new(vec![requirement.clone()]).matches_labels(sample.labels())
        });
        assert_eq!(selector.matches(&sample), all, "a selector is all of its requirements: {text:?}");
    }
}

/// `fieldSelector=`
pub fn fields(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for (kind, sample) in kinds::all().into_iter().zip(kinds::samples()) {
        let Ok(selector) = FieldSelector::parse(text, kind.selectable_fields()) else { continue };
        let matched = selector.matches(&sample);
        if let Some(name) = selector.required_value("metadata.name") {
            assert!(!matched || name == sample.name(), "{text:?}");
        }
    }
}
