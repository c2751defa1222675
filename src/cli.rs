//! Arguments and workload files in, requests out.
