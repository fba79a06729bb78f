//! Layers of configuration: which one wins, what an axis keeps.

mod common;

use common::{Debit, Experiment, Fifo, Scheduler};
use flashkeel_config::{Node, Origin};
use flashkeel_engine::{Span, units::Bytes};

fn layers(texts: &[&str], sets: &[(&str, &str)]) -> Node {
    let mut node = Node::parse("", "empty").unwrap();
    for (number, text) in texts.iter().enumerate() {
        node.merge(Node::parse(text, &format!("layer{number}")).unwrap()).unwrap();
    }
    for (path, text) in sets {
        node.merge(Node::parse_override(path, text).unwrap()).unwrap();
    }
    node
}

fn read(texts: &[&str], sets: &[(&str, &str)]) -> Experiment {
    layers(texts, sets).read().unwrap()
}

#[test]
fn later_layers_win_key_by_key() {
    let got = read(
        &["title = \"a\"\ndevice.channels = 1\ndevice.ratio = 1", "device.channels = 2"],
        &[("device.geometry", "7"), ("title", "b c")],
    );
    assert_eq!((got.title.as_str(), got.device.channels, got.device.geometry), ("b c", 2, Some(7)));
    assert_eq!(got.device.ratio, 1.0);
}

#[test]
fn an_override_needs_no_quotes() {
    let got = read(&[], &[("device.capacity", "2GiB"), ("device.mode", "closed"), ("device.on", "false")]);
    assert_eq!((got.device.capacity, got.device.on), (Bytes(2 << 30), false));
    let got = read(&[], &[("device.parts", "[{ read = '1us' }]"), ("device.ratio", "1e-3")]);
    assert_eq!((got.device.parts[0].read, got.device.ratio), (Span::from_us(1), 1e-3));
    assert_eq!(read(&[], &[("title", "\"3\"")]).title, "3");
    assert_eq!(read(&[], &[("title", "2024-05-01")]).title, "2024-05-01");
    assert_eq!(read(&[], &[("title", "a = 1\nb = 2")]).title, "a = 1\nb = 2");
    assert_eq!(read(&[], &[("title", "")]).title, "");
}

#[test]
fn an_axis_keeps_its_settings_as_long_as_its_policy_stays() {
    let debit = "[device.scheduler]\npolicy = \"debit\"\nperiod = \"9ms\"";
    let nine = Scheduler::Debit(Debit { period: Span::from_ms(9), shares: vec![] });
    let fifo = Scheduler::Fifo(Fifo {});

    assert_eq!(read(&[debit], &[("device.scheduler", "fifo")]).device.scheduler, fifo);
    assert_eq!(read(&[debit], &[("device.scheduler.policy", "fifo")]).device.scheduler, fifo);
    assert_eq!(read(&[debit, "device.scheduler = { policy = \"fifo\" }"], &[]).device.scheduler, fifo);
    assert_eq!(read(&[debit], &[("device.scheduler", "debit")]).device.scheduler, nine);
    let shares = read(&[debit], &[("device.scheduler.shares", "[0.5]")]).device.scheduler;
    assert_eq!(shares, Scheduler::Debit(Debit { period: Span::from_ms(9), shares: vec![0.5] }));
    // Back to a policy that was left: nothing of its former settings returns.
    let sets = [("device.scheduler", "fifo"), ("device.scheduler", "debit")];
    assert_eq!(read(&[debit], &sets).device.scheduler, Scheduler::Debit(Debit::default()));
}

#[test]
fn a_setting_turns_a_bare_policy_into_a_table() {
    let got = read(&["device.scheduler = \"debit\""], &[("device.scheduler.period", "1ms")]);
    assert_eq!(got.device.scheduler, Scheduler::Debit(Debit { period: Span::from_ms(1), shares: vec![] }));
}

#[test]
fn an_element_of_an_array_can_be_overridden() {
    let parts = "device.parts = [{ read = \"1us\" }, { read = \"2us\" }]";
    let got = read(&[parts], &[("device.parts.1.read", "3us")]);
    assert_eq!([got.device.parts[0].read, got.device.parts[1].read], [Span::from_us(1), Span::from_us(3)]);

    let mut node = layers(&[parts], &[]);
    let error = node.merge(Node::parse_override("device.parts.2.read", "3us").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "--set device.parts.2: there are only 2 elements, counted from 0");
}

#[test]
fn every_value_remembers_who_wrote_it() {
    let node =
        layers(&["title = \"a\"\n[device]\nratio = 1", "\n\ndevice.on = true"], &[("device.channels", "3")]);
    let origin = |path| node.get(path).unwrap().origin.to_string();
    assert_eq!(origin("title"), "layer0:1");
    assert_eq!(origin("device.ratio"), "layer0:3");
    assert_eq!(origin("device.on"), "layer1:3");
    assert_eq!(origin("device.channels"), "--set");
}

#[test]
fn defaults_are_a_layer_as_well() {
    let default = Experiment::default();
    let mut node = Node::from_json(serde_json::to_value(&default).unwrap(), &Origin::Default);
    assert_eq!(node.read::<Experiment>().unwrap(), default);
    node.merge(Node::parse_override("device.scheduler.period", "1ms").unwrap()).unwrap();
    let got: Experiment = node.read().unwrap();
    assert_eq!(got.device.scheduler, Scheduler::Debit(Debit { period: Span::from_ms(1), shares: vec![] }));
}
