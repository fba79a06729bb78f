//! `dram`: memory of the host as a device, such as a cache. What it holds is lost
//! with the power, so that no write to it is ever durable.

pub use flashkeel_nvm::DramConfig;
use flashkeel_nvm::Nvm;

use super::{Build, Device, Maker, Size, Unmade};

impl Build for DramConfig {
    fn check(&self) -> Result<Size, String> {
        let layout = self.validate()?;
        Ok(Size {
            sectors: layout.sectors(),
            queue_depth: Some(self.queue_depth),
            memory_bytes: 0,
            is_volatile: true,
            sets: 1,
            obeys_windows: false,
        })
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        Ok(Box::new(Nvm::new(&self.validate()?, maker.seed_for("dram"))))
    }
}
