//! Flow control: who is served when not all can be (k8s.io/apiserver pkg/util/flowcontrol, in small).

pub mod priority_level;

pub use priority_level::{PriorityLevel, PriorityLevels};
