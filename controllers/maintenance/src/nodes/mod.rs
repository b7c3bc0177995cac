//! Nodes under maintenance: their cordons and conditions, and which of them are empty or gone.

pub(crate) mod awaiting_cordon;
pub(crate) mod conditions;
pub(crate) mod cordon;
mod drained_message;
pub(crate) mod gone;
pub(crate) mod gone_tally;
