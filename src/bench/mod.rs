//! A plan in, results out. Knows no file format.

pub mod contenders;
pub mod event;
pub mod result;
