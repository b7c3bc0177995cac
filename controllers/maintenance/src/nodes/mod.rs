//! Nodes under maintenance: that they take no pods, what their conditions say, and which of them are empty or gone.

pub(crate) mod awaiting_cordon;
pub(crate) mod conditions;
pub(crate) mod cordon;
mod drained_message;
pub(crate) mod gone;
pub(crate) mod gone_tally;
