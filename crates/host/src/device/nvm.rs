//! `nvm`: a non-volatile memory device, such as an Optane SSD. It is laid over a
//! preset, or else over the first there is.

use flashkeel_config::{ConfigError, Node, preset_layer};
use flashkeel_engine::Time;
pub use flashkeel_nvm::NvmConfig;
use flashkeel_nvm::{Nvm, PRESETS};
use serde_json::{Value, json};

use super::{Build, Contents, Device, Maker, Size, Unmade};
use crate::part::Part;

impl Build for NvmConfig {
    fn expand(settings: &mut Node, key: &str, _ground: Option<&Node>) -> Result<(), ConfigError> {
        let mut base = match settings.remove("preset") {
            Some(preset) => preset_layer(&preset, &format!("{key}.preset"), PRESETS)?,
            None => Node::parse(PRESETS[0].1, &format!("preset {}", PRESETS[0].0))?,
        };
        base.merge(settings.clone())?;
        *settings = base;
        Ok(())
    }

    fn check(&self) -> Result<Size, String> {
        let layout = self.validate()?;
        Ok(Size::plain(layout.sectors(), self.queue_depth))
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        Ok(Box::new(made(Nvm::new(&self.validate()?, maker.seed_for("nvm")), maker)))
    }
}

/// A memory, with the bytes that it has.
pub(super) fn made(mut memory: Nvm, maker: &mut Maker<'_>) -> Nvm {
    match maker.contents() {
        Contents::None => {}
        Contents::InMemory => memory.keep_data(),
        Contents::Kept(kept) => memory.keep_data_in(kept.keeper, kept.found),
    }
    memory
}

impl Device for Nvm {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        parts.push(self);
    }

    fn keep_data(&mut self) {
        Nvm::keep_data(self);
    }

    fn reset_counters(&mut self, _now: Time) {
        Nvm::reset_counters(self);
    }
}

impl Part for Nvm {
    fn kind(&self) -> &'static str {
        if self.is_volatile() { "dram" } else { "nvm" }
    }

    fn report(&self) -> Value {
        let mut report = json!(Nvm::report(self));
        if self.is_volatile() {
            // It does not wear.
            report.as_object_mut().expect("a report is a table").remove("endurance_bytes");
        }
        report
    }

    fn counters(&self) -> Vec<u64> {
        let report = Nvm::report(self);
        vec![report.bytes_read, report.bytes_written]
    }
}
