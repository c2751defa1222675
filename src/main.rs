//! `profilebench`: calls the command line, prints its error, chooses the exit code.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use profilestore::cli::{self, Exit, Terminal};

fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let (out_is_screen, err_is_screen) = (out.is_terminal(), err.is_terminal());
    let mut terminal = Terminal { out: &mut out, err: &mut err, out_is_screen, err_is_screen };
    let exit = cli::run(std::env::args_os(), &mut terminal).unwrap_or_else(|error| {
        let exit = Exit::of(&error);
        if exit != Exit::Done {
            // Nobody is left to tell if standard error is closed too.
            let _ = writeln!(io::stderr(), "profilebench: {error:#}");
        }
        exit
    });
    exit.into()
}
