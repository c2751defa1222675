//! Tests across rooms.
