//! Stacks whose data is kept in a file and found again.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Payload, Request, RequestId, Span, Status, Submit, Time,
};
use flashkeel_experiment::{Stored, resolve_target};

const SMALL: &str = r#"
[device]
logical_capacity = "8MiB"
map_cache = "all"
window = "commanded"
gc = { start_below = 16, stop_above = 24 }
buffer = { size = "256KiB" }
precondition.pattern = "none"
geometry = { channels = 2, chips_per_channel = 1, planes_per_chip = 1, blocks_per_plane = 64, pages_per_block = 16 }
"#;

/// Whatever keeps no data of its own, over one drive or two.
const STACKS: [&str; 6] = [
    "devices = [{ ssd = {} }]",
    r#"devices = [{ ssd = {} }, { ssd = {} }]
volumes = { policy = "striped", chunk = "16KiB" }
scheduler = "fair""#,
    r#"devices = [{ network = { device = { ssd = {} } } }]
scheduler = "deadline"
block = "512B""#,
    r#"devices = [{ windowed = { device = { ssd = { window = "none" } } } }]"#,
    r#"devices = [{ coordinator = { device = { ssd = {} }, share = { count = 20 } } }]"#,
    r#"devices = [{ stack = { devices = [{ ssd = {} }, { ssd = {} }] } }, { ssd = {} }]"#,
];

fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stored {name}"));
    let _ = std::fs::remove_file(&path);
    path
}

fn open(stack: &str, path: &Path) -> Result<Stored, String> {
    let document = format!("{SMALL}[stack]\n{stack}\n");
    let target = resolve_target(&document, "stack.toml", &[]).map_err(|error| error.to_string())?;
    let progress = &mut |_: &'static str, _| ControlFlow::Continue(());
    target.stored(path, 1, Box::new(|| {}), None, progress).map_err(|error| error.to_string())
}

/// Serves one request; its bytes are those of `data` from the first on.
fn serve(stored: &mut Stored, now: &mut Time, operation: Operation, page: u64, data: &mut [u8; 4096]) {
    let (mut arena, mut ended): (_, Vec<Completion>) = (Arena::new(), Vec::new());
    let payload = if operation == Operation::Flush { Payload::NONE } else { arena.take(8) };
    if let Some(bytes) = arena.write(payload, 8) {
        bytes.copy_from_slice(data);
    }
    let sectors = if operation == Operation::Flush { 0 } else { 8 };
    let request = Request { payload, ..Request::new(RequestId(page), operation, Lba(page * 8), sectors) };
    assert_eq!(stored.device.submit(*now, &request, &mut arena), Submit::Accepted);
    while ended.is_empty() {
        *now = stored.device.next_event().time().expect("it will end").max(*now);
        stored.device.advance(*now, &mut arena, &mut ended);
    }
    assert_eq!(ended[0].status, Status::Ok);
    if let Some(bytes) = arena.read(payload, 8) {
        data.copy_from_slice(bytes);
    }
}

fn content(page: u64) -> [u8; 4096] {
    std::array::from_fn(|at| (page * 31 + at as u64) as u8 | 1)
}

#[test]
fn what_a_stack_has_acknowledged_is_found_again() {
    for (index, stack) in STACKS.iter().enumerate() {
        let path = place(&index.to_string());
        let mut stored = open(stack, &path).expect("a new file");
        let (sectors, mut now) = (stored.device.limits().sectors, stored.now);
        let pages: Vec<u64> = (0..60).map(|at| at * 37 % (sectors / 8)).collect();
        for &page in &pages {
            serve(&mut stored, &mut now, Operation::Write, page, &mut content(page));
        }
        stored.store.settle(now);
        // Nothing is closed in good order, but an hour has been noted.
        now += Span::from_secs(3600);
        stored.store.settle(now);
        stored.store.begin_sync();
        drop(stored);

        let mut stored = open(stack, &path).expect("the same file");
        assert_eq!(stored.device.limits().sectors, sectors, "{stack}");
        now = stored.now.max(now);
        stored.device.advance(now, &mut Arena::new(), &mut Vec::new());
        for &page in &pages {
            let mut found = [0; 4096];
            serve(&mut stored, &mut now, Operation::Read, page, &mut found);
            assert_eq!(found, content(page), "page {page} of {stack}");
        }
        serve(&mut stored, &mut now, Operation::Flush, 0, &mut [0; 4096]);
    }
}

#[test]
fn a_file_is_of_the_stack_that_made_it() {
    let path = place("placed");
    let stripes = |chunk: &str| {
        format!(
            "devices = [{{ ssd = {{}} }}, {{ ssd = {{}} }}]\nvolumes = {{ policy = \"striped\", chunk = \"{chunk}\" }}"
        )
    };
    drop(open(&stripes("16KiB"), &path).expect("a new file"));
    let refusal = |stack: &str| open(stack, &path).err().expect("a refusal");
    assert!(refusal(&stripes("64KiB")).contains("whose volumes lie otherwise on its drives"));
    let in_turn = "devices = [{ ssd = {} }, { ssd = {} }]";
    assert!(refusal(in_turn).contains("whose volumes lie otherwise on its drives"));
    assert!(refusal("devices = [{ ssd = {} }]").contains("it is of another drive"));
    // Another order of requests is no other place.
    drop(open(&format!("{}\nscheduler = \"deadline\"", stripes("16KiB")), &path).expect("the same drives"));
}

#[test]
fn what_is_not_found_again_is_refused_before_a_file_is_made() {
    let path = place("refused");
    for (stack, why) in [
        (
            r#"devices = [{ tier = { placement = "write-back", upper.dram.capacity = "1MiB", lower.ssd = {} } }]"#,
            "which pages are in its upper device",
        ),
        ("devices = [{ ssd = {} }]\nscheduler = \"pas\"", "its scheduler's predictor would probe it"),
        (
            "devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = {} }] } }]",
            "which of its copies is behind",
        ),
        ("devices = [{ ssd = {} }, { nvm = {} }]", "it has memory in it"),
        (
            concat!("devices = [{ file.path = \"", env!("CARGO_MANIFEST_DIR"), "/src/run.rs\" }]"),
            "it has a real drive",
        ),
    ] {
        let refusal = open(stack, &path).err().expect("a refusal");
        assert!(refusal.contains(why), "{refusal}");
        assert!(!path.exists());
    }
    let many: Vec<&str> = vec!["{ ssd = {} }"; 80];
    let refusal = open(&format!("devices = [{}]", many.join(", ")), &path).err().expect("a refusal");
    assert!(refusal.contains("it has 80 partitions, more than a file has room for"), "{refusal}");
}
