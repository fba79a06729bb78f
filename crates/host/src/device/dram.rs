//! `dram`: memory of the host as a device, such as a cache. What it holds is lost
//! with the power, so that no write to it is ever durable.

pub use flashkeel_nvm::DramConfig;
use flashkeel_nvm::Nvm;

use super::nvm::made;
use super::{Build, Device, Maker, Size, Unmade};

impl Build for DramConfig {
    fn check(&self) -> Result<Size, String> {
        let layout = self.validate()?;
        Ok(Size { is_volatile: true, ..Size::plain(layout.sectors(), self.queue_depth) })
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        Ok(Box::new(made(Nvm::new(&self.validate()?, maker.seed_for("dram")), maker)))
    }
}
