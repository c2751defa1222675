//! Results in, files out. Knows no database and no clock.
