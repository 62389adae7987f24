//! Writes the built components into a folder, for hosts in other languages.

#![allow(clippy::print_stderr, reason = "what goes wrong is for people")]

use plan_execute_host::components;
use std::{env, fs, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!(
            "error: name the folder to write to: cargo run --package plan-execute-host --example components -- FOLDER"
        );
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    let write = |(name, bytes): (&str, &[u8])| fs::write(folder.join(name).with_extension("wasm"), bytes);
    let written = fs::create_dir_all(folder).and_then(|()| components::ALL.into_iter().try_for_each(write));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the components cannot be written to {} ({error})", folder.display());
            ExitCode::FAILURE
        }
    }
}
