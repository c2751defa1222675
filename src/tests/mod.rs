//! Tests across rooms.

#[cfg(feature = "cli")]
mod command_line;
mod crash;
mod direction;
mod faults;
mod harness;
mod log_tail;
mod model;
mod sim_disk;
