//! Ctrl-C, and a polite request to end: the first asks the run to stop and save, the second ends the program at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;

static STOP: AtomicBool = AtomicBool::new(false);
static HANDLER: Once = Once::new();

/// From now on an interrupt sets the flag that is returned.
pub(super) fn watch() -> &'static AtomicBool {
    HANDLER.call_once(|| {
        // Where there is no handler to be had, an interrupt ends the program as usual.
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                // Children are tied to their parent and end with it.
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
        });
    });
    &STOP
}
