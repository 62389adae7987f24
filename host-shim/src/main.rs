//! The command `plan-execute`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
