//! What ends, goes away or stands still in the middle, and comes back: our programs, the host, etcd.

mod absence;
mod controllers_away;
mod etcd_away;
mod failover;
mod frozen;
mod host_away;
mod in_flight;
