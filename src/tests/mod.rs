//! Tests across rooms.

#[cfg(feature = "cli")]
mod command_line;
mod direction;
#[cfg(feature = "cli")]
mod durability;
#[cfg(feature = "cli")]
mod log_tail;
mod salvage;
