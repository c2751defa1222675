//! A plan in, results out. Knows no file format.

pub mod checksum;
pub mod contenders;
pub mod dotnet;
pub mod event;
pub mod generate;
pub mod phase;
pub mod plan;
pub mod result;
