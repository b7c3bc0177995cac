//! Faults that are put into what we answered, to see that the comparison finds them.

use clap::ValueEnum;
use serde_json::Value;

use crate::run::{Content, RunRecord};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InjectedDifference {
    /// A status code that is another.
    WrongStatus,
    /// An entry of managedFields that is gone.
    LostManagedFields,
    /// Two events of a watch in the other order.
    SwappedEvent,
}

impl InjectedDifference {
    /// Puts the fault into a record at the first place where it fits; returns false if there is none.
    pub fn inject(self, record: &mut RunRecord) -> bool {
        match self {
            InjectedDifference::WrongStatus => {
                let code = record.answers.iter_mut().map(|answer| &mut answer.code).find(|code| **code > 0);
                code.map(|code| *code += 1).is_some()
            }
            InjectedDifference::LostManagedFields => {
                let bodies = record.answers.iter_mut().map(|answer| &mut answer.body);
                let values = bodies
                    .filter_map(|body| if let Content::Json(value) = body { Some(value) } else { None });
                values.filter_map(|value| value.pointer_mut("/metadata/managedFields")).any(lose)
            }
            InjectedDifference::SwappedEvent => {
                let bodies = record.answers.iter_mut().map(|answer| &mut answer.body);
                bodies
                    .filter_map(|body| if let Content::Events(events) = body { Some(events) } else { None })
                    .any(|events| swap(events))
            }
        }
    }
}

fn lose(entries: &mut Value) -> bool {
    entries.as_array_mut().and_then(Vec::pop).is_some()
}

fn swap(events: &mut [Value]) -> bool {
    let first = events.windows(2).position(|pair| pair[0] != pair[1]);
    first.map(|at| events.swap(at, at + 1)).is_some()
}
