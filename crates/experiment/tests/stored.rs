//! Stacks whose data is kept in a file and found again.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Payload, Request, RequestId, Span, Status, Stream, Submit, Time,
};
use flashkeel_experiment::{Stored, resolve_target};
use flashkeel_ssdcheck::DeviceModel;

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

/// Whatever keeps no data of its own, over drives that do.
const STACKS: [&str; 20] = [
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
    "devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = {} }] } }]",
    r#"devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = {} }], ranges = [{ from = "1MiB", length = "2MiB" }] } }]"#,
    STRIPES_AND_PLAIN,
    r#"devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = {} }], acknowledge = "any" } }]"#,
    r#"devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = { geometry = { channels = 4 } } }, { nvm.capacity = "8MiB" }], acknowledge = "any" } }]"#,
    r#"devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = { wear = { policy = "rated", rated_cycles = 1000 }, retirement = "read-only" } }] } }]"#,
    "devices = [{ nvm = { capacity = \"8MiB\" } }]",
    "devices = [{ ssd = {} }, { nvm = { capacity = \"1MiB\" } }]",
    r#"devices = [{ tier = { placement = "write-back", upper.nvm.capacity = "1MiB", lower.ssd = {} } }]"#,
    r#"devices = [{ tier = { preset = "write-back", journal = true, upper.nvm.capacity = "256KiB", lower.ssd = {} } }]"#,
    r#"devices = [{ tier = { preset = "write-back", upper.ssd = { logical_capacity = "1MiB", geometry = { blocks_per_plane = 32 } }, lower.ssd = {} } }]"#,
    r#"devices = [{ tier = { placement = "small-large", eviction = "lru", upper.nvm.capacity = "256KiB", lower.mirror.devices = [{ ssd = {} }, { ssd = {} }] } }]"#,
    r#"devices = [{ tier = { preset = "oc", upper.dram.capacity = "128KiB", lower.tier = { upper.nvm.capacity = "1MiB", lower.ssd = {} } } }]"#,
    r#"devices = [{ tier = { preset = "nlcwip", upper.dram.capacity = "128KiB", lower.tier = { upper.nvm.capacity = "1MiB", lower.ssd = {} } } }]"#,
];

/// A mirror of which one copy is on a drive with parity.
const STRIPES_AND_PLAIN: &str = r#"
[[stack.devices]]
[[stack.devices.mirror.devices]]
ssd = { allocation = "striped", redundancy = { policy = "logical" }, read_path = "gc-tolerant", geometry = { channels = 4 }, buffer = { rewrite = "coalesce", flush = ["watermark"] } }
[[stack.devices.mirror.devices]]
ssd = {}
"#;

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

/// Whoever asks a stack, one request at a time.
struct Client {
    stored: Stored,
    now: Time,
    data: Arena,
}

impl Client {
    fn of(stack: &str, path: &Path, now: Time) -> Client {
        let stored = open(stack, path).expect("a new file, or that of this stack");
        Client { now: stored.now.max(now), stored, data: Arena::new() }
    }

    /// Serves one request, whose bytes these are.
    fn serve(&mut self, operation: Operation, page: u64, bytes: &mut [u8; 4096]) {
        let (sectors, payload) = match operation {
            Operation::Flush => (0, Payload::NONE),
            _ => (8, self.data.take(8)),
        };
        if let Some(place) = self.data.write(payload, 8) {
            place.copy_from_slice(bytes);
        }
        let request = Request { payload, ..Request::new(RequestId(page), operation, Lba(page * 8), sectors) };
        assert_eq!(self.stored.device.submit(self.now, &request, &mut self.data), Submit::Accepted);
        let mut ended: Vec<Completion> = Vec::new();
        while ended.is_empty() {
            let next = self.stored.device.next_event().time().expect("it will end");
            self.go_on(next, &mut ended);
        }
        assert_eq!(ended[0].status, Status::Ok);
        if let Some(found) = self.data.read(payload, 8) {
            bytes.copy_from_slice(found);
        }
        self.data.give_back(payload);
    }

    fn go_on(&mut self, to: Time, ended: &mut Vec<Completion>) {
        self.now = to.max(self.now);
        self.stored.device.advance(self.now, &mut self.data, ended);
    }

    /// Time passes.
    fn rest(&mut self, span: Span) {
        self.go_on(self.now + span, &mut Vec::new());
    }

    fn write(&mut self, page: u64, version: u64) {
        self.serve(Operation::Write, page, &mut content(page, version));
    }

    fn flush(&mut self) {
        self.serve(Operation::Flush, 0, &mut [0; 4096]);
    }

    /// Reads a page, which holds one of these versions; returns which.
    fn read(&mut self, page: u64, may: &[u64]) -> u64 {
        let mut found = [0; 4096];
        self.serve(Operation::Read, page, &mut found);
        *may.iter().find(|&&version| content(page, version) == found).unwrap_or_else(|| panic!("page {page}"))
    }
}

fn content(page: u64, version: u64) -> [u8; 4096] {
    std::array::from_fn(|at| ((page + version) * 31 + at as u64) as u8 | 1)
}

#[test]
fn what_a_stack_has_acknowledged_is_found_again() {
    for (index, stack) in STACKS.iter().enumerate() {
        let path = place(&index.to_string());
        let mut client = Client::of(stack, &path, Time::ZERO);
        let sectors = client.stored.device.limits().sectors;
        let pages: Vec<u64> = (0..60).map(|at| at * 37 % (sectors / 8)).collect();
        pages.iter().for_each(|&page| client.write(page, 0));
        client.stored.store.settle(client.now);
        // Nothing is closed in good order, but an hour has been noted.
        client.now += Span::from_secs(3600);
        client.stored.store.settle(client.now);
        client.stored.store.begin_sync();
        let now = client.now;
        drop(client);

        let mut client = Client::of(stack, &path, now);
        assert_eq!(client.stored.device.limits().sectors, sectors, "{stack}");
        client.rest(Span(0));
        for &page in &pages {
            client.read(page, &[0]);
        }
        client.flush();
    }
}

/// What a loss of the host's power may leave of a file that was `durable` and is `written`: of
/// each block, or of each sector of one that is torn, the one or the other.
fn after_loss(durable: &[u8], written: &[u8], random: &mut Stream) -> Vec<u8> {
    let mut left = written.to_vec();
    for (block, former) in left.chunks_mut(4096).zip(durable.chunks(4096)) {
        let (is_torn, is_lost) = (random.below(4) == 0, random.below(2) == 0);
        for (sector, former) in block.chunks_mut(512).zip(former.chunks(512)) {
            if if is_torn { random.below(2) == 0 } else { is_lost } {
                sector.copy_from_slice(former);
            }
        }
    }
    left
}

#[test]
fn what_a_stack_has_flushed_outlasts_its_host_and_copies_agree() {
    for (index, stack) in STACKS.iter().enumerate() {
        let path = place(&format!("lost {index}"));
        let mut random = Stream::new(1, stack);
        let mut client = Client::of(stack, &path, Time::ZERO);
        let pages: Vec<u64> = (0..200).map(|at| at * 7).collect();
        pages.iter().for_each(|&page| client.write(page, 0));
        client.flush();
        client.stored.store.settle(client.now);
        let synced = client.stored.store.begin_sync();
        while client.stored.store.synced() < synced {
            std::thread::yield_now();
        }
        let durable = std::fs::read(&path).expect("the file");
        pages.iter().step_by(3).for_each(|&page| client.write(page, 1));
        client.rest(Span::from_us(random.below(20_000)));
        client.stored.store.settle(client.now);
        assert_eq!(client.stored.store.synced(), synced, "nothing has been synchronised since: {stack}");
        let now = client.now;
        drop(client);

        let written = std::fs::read(&path).expect("the file");
        std::fs::write(&path, after_loss(&durable, &written, &mut random)).expect("the file");
        let mut client = Client::of(stack, &path, now);
        let may = |number: usize| if number.is_multiple_of(3) { &[0, 1][..] } else { &[0] };
        let found: Vec<u64> =
            pages.iter().enumerate().map(|(number, &page)| client.read(page, may(number))).collect();
        // Whichever copy is asked, and when they have been made to agree, too.
        for _ in 0..4 {
            client.rest(Span::from_ms(100));
            for (&page, &version) in pages.iter().zip(&found) {
                client.read(page, &[version]);
            }
        }
        pages.iter().for_each(|&page| client.write(page, 2));
        client.flush();
        for &page in &pages {
            client.read(page, &[2]);
        }
    }
}

#[test]
fn what_the_lower_has_is_not_found_in_the_upper() {
    let stack = r#"devices = [{ tier = { placement = "write-back", eviction = "lru", writeback = { policy = "periodic", period = "1ms", batch = "256KiB" }, upper.nvm.capacity = "1MiB", lower.ssd = {} } }]"#;
    let path = place("given up");
    let mut client = Client::of(stack, &path, Time::ZERO);
    (0..60).for_each(|page| client.write(page, 0));
    let held = |client: &Client| client.stored.device.held().map(|held| held.upper_pages);
    for (rests, found) in [(0, 60), (100, 0)] {
        (0..rests).for_each(|_| client.rest(Span::from_ms(1)));
        assert_eq!(held(&client), Some(60));
        client.stored.store.close(client.now).expect("no disk fails");
        let now = client.now;
        drop(client);
        client = Client::of(stack, &path, now);
        client.flush();
        assert_eq!(held(&client), Some(found));
        (0..60).for_each(|page| assert_eq!(client.read(page, &[0]), 0));
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
    assert!(refusal(&stripes("64KiB")).contains("put together otherwise"));
    let in_turn = "devices = [{ ssd = {} }, { ssd = {} }]";
    assert!(refusal(in_turn).contains("put together otherwise"));
    assert!(refusal("devices = [{ ssd = {} }]").contains("it is of another drive"));
    // Another order of requests is no other place.
    drop(open(&format!("{}\nscheduler = \"deadline\"", stripes("16KiB")), &path).expect("the same drives"));
}

/// A probe finds the same of the same device, but takes its time, and a used one is another.
#[test]
fn a_model_is_found_once_and_kept_in_the_file() {
    let stacks = [
        "scheduler = \"pas\"",
        r#"devices = [{ tier = { preset = "hybrid-pas", upper.nvm.capacity = "1MiB", lower.ssd = {} } }]"#,
        r#"devices = [{ mirror = { devices = [{ ssd = {} }, { ssd = {} }], read = "predicted" } }]"#,
    ];
    for (index, stack) in stacks.into_iter().enumerate() {
        let path = place(&format!("model {index}"));
        let open = || {
            let document = format!("{SMALL}[stack]\n{stack}\n");
            let sets =
                [("device.logical_capacity", "\"16MiB\""), ("device.geometry.blocks_per_plane", "256")];
            let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let target = resolve_target(&document, "stack.toml", &sets).expect("a valid document");
            let progress = &mut |_: &'static str, _| ControlFlow::Continue(());
            target.stored(&path, 1, Box::new(|| {}), None, progress).expect("it is made, or found")
        };
        let Stored { store, now, .. } = open();
        let found = store.text().expect("models");
        let mut models: Vec<DeviceModel> = serde_json::from_slice(&found).expect("models");
        assert_eq!(models.len(), if index == 2 { 2 } else { 1 }, "{stack}");
        // Something that no probe finds.
        models[0].undetermined.push("who has written this".into());
        let models = serde_json::to_vec(&models).expect("they can be written");
        store.write_text(&models);
        store.close(now).expect("no disk fails");
        drop(store);
        let Stored { store, .. } = open();
        assert!(store.text() == Some(models), "{stack}");
    }
}

#[test]
fn what_is_not_found_again_is_refused_before_a_file_is_made() {
    let path = place("refused");
    let stack = concat!("devices = [{ file.path = \"", env!("CARGO_MANIFEST_DIR"), "/src/run.rs\" }]");
    let refusal = open(stack, &path).err().expect("a refusal");
    assert!(refusal.contains("it has a real drive"), "{refusal}");
    assert!(!path.exists());
    let many: Vec<&str> = vec!["{ ssd = {} }"; 80];
    let refusal = open(&format!("devices = [{}]", many.join(", ")), &path).err().expect("a refusal");
    assert!(refusal.contains("it has 80 partitions, more than a file has room for"), "{refusal}");
}
