//! Runs, predictions and probes over real files.

use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flashkeel_experiment::{Cause, Error, RunOutcome, RunPlan, Target, merge, probe, resolve, run};

/// A document of a stack over these devices, and a file beside it for each of `names`.
fn plan(folder: &str, devices: &str, names: &[&str], pacing: &str) -> RunPlan {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in names {
        std::fs::write(folder.join(name), vec![1; 32 << 20]).expect("a file");
    }
    let arrivals = match pacing {
        "closed" => "",
        _ => "arrivals = { policy = \"poisson\", iops = 4000 }",
    };
    let document = format!(
        "{devices}\n[workload]\nrequests = 400\npacing = {pacing:?}\n[workload.source]\npolicy = \"synthetic\"\n\
         read_fraction = 0.5\n{arrivals}\n"
    );
    let name = folder.join("document.toml").display().to_string();
    let mut plans = resolve(&document, &name, &[], None).unwrap_or_else(|error| panic!("{error}"));
    plans.remove(0)
}

fn ran(plan: &RunPlan) -> Result<RunOutcome, Error> {
    run(plan, 1, None, &mut |_, _| ControlFlow::Continue(())).map(|finished| finished.outcome)
}

const ALONE: &str = "[[stack.devices]]\nfile.path = \"disk\"";

#[test]
fn a_file_is_a_device_whose_latencies_are_its_own() {
    for pacing in ["closed", "open", "think"] {
        let plan = RunPlan { destroys: true, ..plan("alone", ALONE, &["disk"], pacing) };
        let outcome = ran(&plan).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.summary.requests, 400);
        assert!(outcome.notes.iter().any(|note| note.starts_with("a real drive is in it")));
        let outside = outcome.summary.blame_ns[Cause::Outside];
        assert!(outside > 0, "{:?}", outcome.summary.blame_ns);
    }
}

#[test]
fn a_tier_that_writes_to_a_real_upper_is_refused_before_it_is_asked_anything() {
    let tier = |admission: &str| {
        format!(
            "[[stack.devices]]\n[stack.devices.tier]\nplacement = \"write-back\"\n{admission}\n\
             upper.file.path = \"upper\"\nlower.ssd.preset = \"ssd-d\"\n"
        )
    };
    let admits = "admission = \"all\"\neviction = \"lru\"\nfills = true";
    let plan_of = |folder: &str, admission: &str, destroys| {
        let mut plan = plan(folder, &tier(admission), &["upper"], "closed");
        plan.config = serde_json::from_value({
            let mut config = serde_json::to_value(&plan.config).expect("plain data");
            config["workload"]["source"]["read_fraction"] = 1.0.into();
            config
        })
        .expect("it is only read");
        RunPlan { destroys, ..plan }
    };
    let Err(Error::Input(why)) = ran(&plan_of("filled", admits, false)) else { panic!("it ran") };
    let begin = "stack.devices.0.tier.upper: it is a real drive, and gets copies of what is read";
    assert!(why.starts_with(begin) && why.contains("--destroy lets"), "{why}");
    for (folder, admission, destroys) in [("allowed", admits, true), ("unfilled", "", false)] {
        ran(&plan_of(folder, admission, destroys)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn what_was_measured_is_pooled_where_its_drive_has_gone() {
    let plan = RunPlan { destroys: true, ..plan("pooled", ALONE, &["disk"], "closed") };
    let runs = [1, 2].map(|seed| {
        let finished = run(&plan, seed, None, &mut |_, _| ControlFlow::Continue(()));
        serde_json::to_string(&finished.unwrap_or_else(|error| panic!("{error}")).outcome)
            .expect("plain data")
    });
    let written = serde_json::to_string(&plan).expect("plain data");
    let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pooled/disk");
    std::fs::remove_file(disk).expect("it is there");
    let pooled = merge(&runs).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(pooled.summary.requests, 800);
    // Who reads a plan asks nothing of the world; who runs it is told.
    let read: RunPlan = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read, plan);
    let Err(Error::Input(why)) = ran(&read) else { panic!("it ran") };
    assert!(
        why.starts_with("stack.devices.0.file.path: ") && why.ends_with(": No such file or directory"),
        "{why}"
    );
}

#[test]
fn an_export_that_is_not_to_be_had_is_asked_for_once() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for line in listener.incoming() {
            ASKED.fetch_add(1, Ordering::Relaxed);
            drop(line);
        }
    });
    let document = format!(
        "[[stack.devices]]\nnbd.uri = \"nbd://{place}/disk\"\n[workload]\nrequests = 4\npacing = \"closed\"\n\
         source = \"synthetic\"\n[[runs]]\nname = \"a\"\n[[runs]]\nname = \"b\"\n"
    );
    let Err(Error::Input(why)) = resolve(&document, "test", &[], None) else { panic!("there is none") };
    assert!(why.ends_with("the server hangs up before it has said what its export is"), "{why}");
    assert_eq!(ASKED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_drive_whose_data_is_to_be_kept_is_not_written_to() {
    let kept = plan("kept", ALONE, &["disk"], "open");
    let Err(Error::Input(why)) = ran(&kept) else { panic!("it was written to") };
    assert!(why.ends_with("disk: it is read only; --destroy lets its data be destroyed"), "{why}");
    let target = Target::of(&kept.config);
    let Err(Error::Input(why)) = probe(&target, 1, None, None, &mut |_, _| ControlFlow::Continue(())) else {
        panic!("it was probed")
    };
    assert!(why.contains("--destroy"), "{why}");
    let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kept/disk");
    assert!(std::fs::read(disk).expect("it is there").iter().all(|&byte| byte == 1));
}

#[test]
fn policies_run_over_real_drives() {
    let mirror = "[[stack.devices]]\nmirror.devices = [{ file.path = \"one\" }, { file.path = \"two\" }]";
    let plan = RunPlan { destroys: true, ..plan("mirror", mirror, &["one", "two"], "open") };
    let outcome = ran(&plan).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.summary.requests, 400);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mirror");
    let [one, two] = ["one", "two"].map(|name| std::fs::read(folder.join(name)).expect("it is there"));
    assert!(one == two && one.iter().any(|&byte| byte != 1));
}

#[test]
fn a_probe_in_little_time_says_what_it_does_not_know() {
    let plan = plan("probed", ALONE, &["disk"], "open");
    let target = Target { destroys: true, ..Target::of(&plan.config) };
    let limit = Some(Duration::from_secs(15));
    let found = probe(&target, 1, None, limit, &mut |_, _| ControlFlow::Continue(()));
    let model = found.unwrap_or_else(|error| panic!("{error}")).model;
    assert_eq!(model.sectors, (32 << 20) / 512);
    assert!(model.latencies_ns.read > 0 && model.thresholds_ns.read > model.latencies_ns.read);
    assert!(model.undetermined.iter().any(|why| why.contains("time given")), "{:?}", model.undetermined);
    assert_eq!(model.write_buffer.bytes, None);
    assert_eq!(model.validate(), Ok(()));
}

#[test]
fn who_breaks_off_is_told_what_was_written() {
    let plan = plan("broken", ALONE, &["disk"], "open");
    let target = Target { destroys: true, ..Target::of(&plan.config) };
    let mut asked = 0;
    let found = probe(&target, 1, None, None, &mut |phase, _| {
        asked += u32::from(phase == "probe");
        if asked > 50 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Err(Error::Broken(told)) = found else { panic!("it went on") };
    assert!(told.starts_with("interrupted; ") && told.contains(" bytes were written to "), "{told}");
}

#[test]
fn who_watches_is_asked_however_slowly_requests_come() {
    plan("slow", ALONE, &["disk"], "closed");
    let document = "[[stack.devices]]\nfile.path = \"disk\"\n[workload]\nrequests = 100\n\
                    [workload.source]\npolicy = \"synthetic\"\n\
                    arrivals = { policy = \"poisson\", iops = 50 }\n";
    let name = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("slow/document.toml").display().to_string();
    let plans = resolve(document, &name, &[], None).unwrap_or_else(|error| panic!("{error}"));
    let plan = RunPlan { destroys: true, ..plans[0].clone() };
    let mut asked = 0;
    let ended = run(&plan, 1, None, &mut |phase, _| {
        asked += u32::from(phase == "replay");
        if asked > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(ended, Err(Error::Broken(told)) if told.starts_with("interrupted; ")));
}

#[test]
fn a_file_that_is_deleted_ends_the_run() {
    let plan = RunPlan { destroys: true, ..plan("deleted", ALONE, &["disk"], "closed") };
    let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("deleted/disk");
    let ended = run(&plan, 1, None, &mut |phase, _| {
        if phase == "replay" && disk.exists() {
            std::fs::remove_file(&disk).expect("it is there");
        }
        ControlFlow::Continue(())
    });
    let Err(Error::Failure(why)) = ended else { panic!("nobody noticed") };
    assert!(why.contains("disk: it has been deleted; "), "{why}");
}

#[test]
fn a_file_that_changes_while_it_is_probed_is_said() {
    type Change = fn(&Path) -> std::io::Result<()>;
    let changes: [(&str, Change, &str); 3] = [
        // A write on its way makes it longer again.
        ("cut", |path| set_len(path, 24 << 20), " bytes now, and held 33554432; "),
        ("grown", |path| set_len(path, 40 << 20), "disk: it holds 41943040 bytes now, and held 33554432; "),
        ("gone", |path| std::fs::remove_file(path), "disk: it has been deleted; "),
    ];
    for (folder, change, words) in changes {
        let plan = plan(folder, ALONE, &["disk"], "open");
        let target = Target { destroys: true, ..Target::of(&plan.config) };
        let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder).join("disk");
        let mut asked = 0;
        let found = probe(&target, 1, None, None, &mut |phase, _| {
            asked += u32::from(phase == "probe");
            if asked >= 50 {
                let is_changed = change(&disk).is_ok();
                assert!(is_changed || asked > 50, "it is there");
            }
            ControlFlow::Continue(())
        });
        let Err(Error::Failure(why)) = found else { panic!("{folder}: {found:?}") };
        assert!(why.contains(words) && why.contains(" bytes were written to "), "{why}");
    }
}

fn set_len(path: &Path, bytes: u64) -> std::io::Result<()> {
    std::fs::File::options().write(true).open(path)?.set_len(bytes)
}
