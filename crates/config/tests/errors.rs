//! Every kind of bad configuration gives one exact message.

mod common;

use common::Experiment;
use flashkeel_config::Node;

fn error(text: &str) -> String {
    match Node::parse(text, "exp.toml").and_then(|node| node.read::<Experiment>()) {
        Ok(experiment) => panic!("{text:?} was read as {experiment:?}"),
        Err(error) => error.to_string(),
    }
}

fn error_of_override(path: &str, text: &str) -> String {
    let mut node = Node::parse("", "exp.toml").unwrap();
    let result = Node::parse_override(path, text)
        .and_then(|over| node.merge(over))
        .and_then(|()| node.read::<Experiment>());
    match result {
        Ok(experiment) => panic!("{path}={text} was read as {experiment:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn syntax_errors_name_line_and_column() {
    for (text, expected) in [
        ("a = 1\nb = = 2", "exp.toml:2: column 5: "),
        ("[device", "exp.toml:1: column 8: "),
        ("title = \"a", "exp.toml:1: column "),
        ("[device]\nparts = [", "exp.toml:2: column "),
        ("a = 1\na = 2", "exp.toml:2: column 1: "),
        ("this is no configuration", "exp.toml:1: column 6: "),
        ("\u{0}\u{1}", "exp.toml:1: column 3: "),
    ] {
        let message = error(text);
        assert!(message.starts_with(expected) && message.len() > expected.len(), "{text:?}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn what_a_policy_refuses_has_the_place_of_its_key() {
    assert_eq!(
        error("[device.scheduler]\npolicy = \"debit\"\n\nshares = [0.5, 0.75]"),
        "exp.toml:4: device.scheduler.shares: 1.25 in all; at most 1"
    );
    assert_eq!(
        error("device = { scheduler = {\n policy = \"debit\",\n period = \"0ns\" } }"),
        "exp.toml:3: device.scheduler.period: is 0ns; it must be longer"
    );
    assert_eq!(
        error_of_override("device.scheduler", "{ policy = \"debit\", period = \"0ns\" }"),
        "--set device.scheduler.period: is 0ns; it must be longer"
    );
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    assert_eq!(
        error("[device]\nchannels = 4\n\n[device.geometri]\nx = 1"),
        "exp.toml:4: device.geometri: unknown key; did you mean \"geometry\"?"
    );
    assert_eq!(error("colour = 1"), "exp.toml:1: colour: unknown key; expected one of title, device");
    assert_eq!(
        error("[device]\nparts = [{read = \"1us\"},\n  {raed = \"1us\"}]"),
        "exp.toml:3: device.parts.1.raed: unknown key; did you mean \"read\"?"
    );
}

#[test]
fn ill_typed_values_name_the_key_and_both_types() {
    for (text, expected) in [
        ("title = 3", "title: expected a string, found the integer 3"),
        (
            "device.channels = -1",
            "device.channels: expected a whole number from 0 to 4294967295, found the integer -1",
        ),
        (
            "device.channels = 5000000000",
            "device.channels: expected a whole number from 0 to 4294967295, found the integer 5000000000",
        ),
        (
            "device.channels = 1.5",
            "device.channels: expected a whole number from 0 to 4294967295, found the number 1.5",
        ),
        ("device.geometry = true", "device.geometry: expected a whole number from 0 to 255, found true"),
        ("device.ratio = \"much\"", "device.ratio: expected a number, found the string \"much\""),
        ("device.on = 1", "device.on: expected true or false, found the integer 1"),
        ("device = 1", "device: expected a table, found the integer 1"),
        ("device.parts = {}", "device.parts: expected an array, found a table"),
        (
            "device.parts = \"50us\"",
            "device.parts: expected an array such as [\"50us\"], found the string \"50us\"",
        ),
        ("device.parts = 5", "device.parts: expected an array such as [5], found the integer 5"),
        ("device.parts = -5", "device.parts: expected an array such as [-5], found the integer -5"),
        ("device.parts = 0.5", "device.parts: expected an array such as [0.5], found the number 0.5"),
        ("device.parts = [1]", "device.parts.0: expected a table, found the integer 1"),
        (
            "device.mode = \"opn\"",
            "device.mode: unknown value \"opn\", expected one of open, closed; did you mean \"open\"?",
        ),
        ("device.mode = 3", "device.mode: expected a name, found the integer 3"),
        (
            "device.timing.read = 50",
            "device.timing.read: expected a duration such as \"50us\", found the integer 50",
        ),
        ("device.capacity = 1.5", "device.capacity: expected a size such as \"16KiB\", found the number 1.5"),
    ] {
        assert_eq!(error(text), format!("exp.toml:1: {expected}"), "{text}");
    }
}

#[test]
fn quantities_explain_their_units() {
    assert_eq!(
        error("[device]\n\n[device.timing]\nread = \"50\""),
        "exp.toml:4: device.timing.read: \"50\" has no unit; a duration is a number and a unit \
         (ns, us, ms, s, min, h, d, w)"
    );
    assert!(error("device.capacity = \"1 GiBB\"").starts_with("exp.toml:1: device.capacity: \"GiBB\" in"));
}

#[test]
fn an_axis_names_policy_and_setting() {
    for (text, expected) in [
        (
            "[device]\nscheduler = \"debt\"",
            "2: device.scheduler: unknown scheduler \"debt\", expected one of fifo, debit; did you mean \"debit\"?",
        ),
        (
            "[device.scheduler]\n\npolicy = \"lifo\"",
            "3: device.scheduler: unknown scheduler \"lifo\", expected one of fifo, debit; did you mean \"fifo\"?",
        ),
        (
            "[device.scheduler]\nperiod = \"1ms\"",
            "1: device.scheduler: the scheduler has no policy; one of fifo, debit",
        ),
        (
            "[device]\nscheduler = 3",
            "2: device.scheduler: expected the name of a policy, found the integer 3",
        ),
        (
            "[device.scheduler]\npolicy = \"debit\"\nperoid = \"1ms\"",
            "3: device.scheduler.peroid: unknown key; did you mean \"period\"?",
        ),
        (
            "[device.scheduler]\npolicy = \"fifo\"\nperiod = \"1ms\"",
            "3: device.scheduler.period: unknown key; there are no keys here",
        ),
        (
            "[device.scheduler]\npolicy = \"debit\"\nshares = [\n1,\n\"x\"]",
            "5: device.scheduler.shares.1: expected a number, found the string \"x\"",
        ),
    ] {
        assert_eq!(error(text), format!("exp.toml:{expected}"), "{text}");
    }
}

#[test]
fn overrides_are_named_as_such() {
    assert_eq!(
        error_of_override("device.schduler", "fifo"),
        "--set device.schduler: unknown key; did you mean \"scheduler\"?"
    );
    assert_eq!(
        error_of_override("device.channels", "four"),
        "--set device.channels: expected a whole number from 0 to 4294967295, found the string \"four\""
    );
    for path in ["", "device.", ".x", "a..b", "a b"] {
        assert_eq!(
            error_of_override(path, "1"),
            format!("--set: {path:?} is not a key; write names joined by dots, such as device.scheduler")
        );
    }
}

#[test]
fn an_error_found_later_finds_the_line_of_its_key() {
    let node = Node::parse("[device]\n[device.timing]\nread = \"1us\"", "exp.toml").unwrap();
    let place = |path| node.error_at(path, "bad").to_string();
    assert_eq!(place("device.timing.read"), "exp.toml:3: device.timing.read: bad");
    assert_eq!(place("device.timing.write"), "exp.toml:2: device.timing.write: bad");
    assert_eq!(place("workload"), "exp.toml:1: workload: bad");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", junk in proptest::collection::vec(0u8..128, 0..60)) {
        let _ = Node::parse(&text, "x").map(|node| node.read::<Experiment>());
        let junk = String::from_utf8(junk).unwrap();
        let _ = Node::parse(&junk, "x").map(|node| node.read::<Experiment>());
        let _ = Node::parse_override("device.scheduler", &junk).map(|node| node.read::<Experiment>());
        let _ = Node::parse_override(&text, &junk);
    }
}
