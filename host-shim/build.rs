//! Puts the components that the library hands out into `OUT_DIR`.
//!
//! They come from the first of these that is there:
//!
//! 1. the folder that `PLAN_EXECUTE_COMPONENTS` names (for editors, and for builds that share one set of components);
//! 2. the guests of this repository, built here;
//! 3. the folder `components` of a packaged crate, which has no guests beside it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

/// The component's name, the package that it is built from, and features of the target beyond the usual ones: with vector
/// instructions, which every runtime of components has, memchr searches transcripts by sixteen bytes at a time.
const COMPONENTS: [(&str, &str, &str); 2] =
    [("plan-execute", "plan-execute-guest", ""), ("plan-history", "plan-history-guest", "+simd128")];
const TARGET: &str = "wasm32-unknown-unknown";

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let root = manifest.join("..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PLAN_EXECUTE_COMPONENTS");
    if let Some(folder) = env::var_os("PLAN_EXECUTE_COMPONENTS") {
        take(Path::new(&folder), &out);
    } else if root.join("guest/plan-execute/Cargo.toml").is_file() {
        build(&root, &out);
    } else {
        take(&manifest.join("components"), &out);
    }
}

/// Takes components that were built elsewhere.
fn take(folder: &Path, out: &Path) {
    for (name, ..) in COMPONENTS {
        let file = folder.join(name).with_extension("wasm");
        println!("cargo::rerun-if-changed={}", file.display());
        if let Err(error) = fs::copy(&file, out.join(name).with_extension("wasm")) {
            stop(&format!("the component {} cannot be read ({error})", file.display()));
        }
    }
}

/// Builds the guests of this repository with a target folder and an environment of their own.
fn build(root: &Path, out: &Path) {
    for input in ["guest", "wit", "Cargo.lock", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    if !has_target() {
        stop(&format!("the components need the target {TARGET}: add it with `rustup target add {TARGET}`"));
    }
    let target_folder = out.join("guests");
    for (_, package, features) in COMPONENTS {
        build_package(root, &target_folder, package, features);
    }
    for (name, package, _) in COMPONENTS {
        let core = target_folder.join(TARGET).join("guest").join(package.replace('-', "_")).with_extension("wasm");
        let component = fs::read(&core).map_err(|e| e.to_string()).and_then(|core| {
            let encoder = wit_component::ComponentEncoder::default().validate(true);
            encoder.module(&core).and_then(|mut encoder| encoder.encode()).map_err(|e| format!("{e:#}"))
        });
        match component {
            Ok(bytes) => fs::write(out.join(name).with_extension("wasm"), bytes).expect("OUT_DIR can be written"),
            Err(error) => stop(&format!("{} did not become a component ({error})", core.display())),
        }
    }
}

/// Builds one guest. Each has flags of its own, so each is a build of its own.
fn build_package(root: &Path, target_folder: &Path, package: &str, features: &str) {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    // Neither what cargo tells this script nor what a user set for the native build may change the components.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_the_native_build) {
            cargo.env_remove(name);
        }
    }
    let mut flags = remapped_paths(root);
    if !features.is_empty() {
        flags.push(format!("-Ctarget-feature={features}"));
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo.current_dir(root).args(["build", "--locked", "--profile", "guest", "--target", TARGET]);
    cargo.args(["--package", package]).arg("--target-dir").arg(target_folder);
    if offline() {
        cargo.arg("--offline");
    }
    match cargo.status() {
        Ok(status) if status.success() => {}
        Ok(status) => stop(&format!("building {package} failed ({status}); the messages above say why")),
        Err(error) => stop(&format!("cargo could not be started ({error})")),
    }
}

fn is_of_the_native_build(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_PROFILE_", "CARGO_FEATURE_", "CARGO_CFG_", "CARGO_TARGET_"];
    const NAMES: [&str; 15] = [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_MAKEFLAGS",
        "MAKEFLAGS",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The flags that keep the paths of this machine out of the components, so that two checkouts give the same bytes.
fn remapped_paths(root: &Path) -> Vec<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let root = root.canonicalize().unwrap_or_else(|_| root.into());
    let mut flags = vec![format!("--remap-path-prefix={}=/project", root.display())];
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    if let Some(sysroot) = rustc(&["--print", "sysroot"]) {
        flags.push(format!("--remap-path-prefix={sysroot}=/rust"));
    }
    flags
}

fn has_target() -> bool {
    rustc(&["--print", "target-libdir", "--target", TARGET]).is_some_and(|folder| Path::new(&folder).is_dir())
}

fn rustc(arguments: &[&str]) -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Was the build that runs this script told to stay off the network? Cargo does not say so; its command line does, where
/// it can be read.
fn offline() -> bool {
    if env::var_os("CARGO_NET_OFFLINE").is_some_and(|value| value == "true") {
        return true;
    }
    #[cfg(target_os = "linux")]
    if let Ok(line) = fs::read(format!("/proc/{}/cmdline", std::os::unix::process::parent_id())) {
        let arguments: Vec<&[u8]> = line.split(|&byte| byte == 0).take_while(|argument| *argument != b"--").collect();
        return arguments.iter().any(|argument| *argument == b"--offline" || *argument == b"--frozen");
    }
    false
}

fn stop(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1);
}
