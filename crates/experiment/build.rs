//! Hashes the source that decides a device's steady state, so that a cached
//! state never outlives the code that made it.

use std::{env, fs, path::Path};

fn main() {
    let crates = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for name in ["engine", "config", "device"] {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        absorb(&folder, &mut hash);
    }
    // Random numbers, logarithms and the like are other crates'.
    let versions = crates.join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", versions.display());
    absorb(&versions, &mut hash);
    println!("cargo::rustc-env=FLASHKEEL_SOURCE_HASH={hash:016x}");
}

/// FNV-1a over every file, in order of their names.
fn absorb(path: &Path, hash: &mut u64) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("the source is readable");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("the source is readable").path()).collect();
        paths.sort();
        paths.iter().for_each(|path| absorb(path, hash));
    } else {
        for byte in fs::read(path).expect("the source is readable") {
            *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
