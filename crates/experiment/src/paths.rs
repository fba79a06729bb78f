//! Relative paths of a document, which start at its folder.

use std::path::Path;

use flashkeel_config::{Kind, Node};

/// Keys of paths, from the table that they belong to on: traces, demands, real drives and
/// models of drives.
const PATHS: [&str; 5] =
    ["workload.source.path", "traffic.path", "traffic.trace.path", "file.path", "predictor.model"];

/// Makes relative paths of a document start at the folder of `name`.
pub(crate) fn anchor(file: &mut Node, name: &str) {
    let Some(folder) = Path::new(name).parent() else { return };
    // What runs set over the rest has keys of its own.
    let runs = file.remove("runs");
    anchor_below(file, folder);
    if let (Some(mut runs), Kind::Table(entries)) = (runs, &mut file.kind) {
        if let Kind::Array(runs) = &mut runs.kind {
            runs.iter_mut().for_each(|run| anchor_run(run, folder));
        }
        entries.insert("runs".to_owned(), runs);
    }
}

/// The same for what one run sets, whose keys may have dots in them.
fn anchor_run(run: &mut Node, folder: &Path) {
    let Some(Node { kind: Kind::Table(set), .. }) = run.get_mut("set") else { return };
    for (key, value) in set {
        // What is no key is refused where the runs are told apart.
        let Ok(mut layer) = value.clone().nest(key) else { continue };
        anchor_below(&mut layer, folder);
        if let Some(anchored) = layer.get(key) {
            *value = anchored.clone();
        }
    }
}

/// The same for a table and all that is in it.
fn anchor_below(node: &mut Node, folder: &Path) {
    for key in PATHS {
        if let Some(Node { kind: Kind::String(path), .. }) = node.get_mut(key)
            // Standard input.
            && path != "-"
        {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
    match &mut node.kind {
        Kind::Table(entries) => entries.values_mut().for_each(|entry| anchor_below(entry, folder)),
        Kind::Array(entries) => entries.iter_mut().for_each(|entry| anchor_below(entry, folder)),
        _ => {}
    }
}
