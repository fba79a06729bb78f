//! What lies below a scheduler: a device, or a tier over two.

use flashkeel_device::Ssd;
use flashkeel_engine::{Arena, Completion, Leaf, Limits, Request, Stack, Submit, Time, Wake};
use flashkeel_nvm::Nvm;

use crate::tier::Tier;

/// A device at the bottom of a stack.
pub enum Device {
    /// An SSD, in the state it starts in.
    Ssd(Box<Ssd>),
    /// An NVM.
    Nvm(Box<Nvm>),
}

impl Device {
    /// Capacity in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        match self {
            Device::Ssd(ssd) => ssd.sectors(),
            Device::Nvm(nvm) => nvm.sectors(),
        }
    }
}

/// What a scheduler gives requests to.
pub(super) enum Below {
    Device(Device),
    /// The SSD, then its NVM.
    Tier(Box<Stack<Tier, Device>>),
}

impl Below {
    /// The devices, an SSD before its NVM.
    pub fn devices(&self) -> Vec<&Device> {
        match self {
            Below::Device(device) => vec![device],
            Below::Tier(stack) => stack.children().collect(),
        }
    }
}

macro_rules! leaf {
    ($Type:ident: $($Variant:ident),+) => {
        impl Leaf for $Type {
            fn limits(&self) -> Limits {
                match self { $($Type::$Variant(leaf) => leaf.limits()),+ }
            }

            fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
                match self { $($Type::$Variant(leaf) => leaf.submit(now, request, data)),+ }
            }

            fn next_event(&self) -> Wake {
                match self { $($Type::$Variant(leaf) => leaf.next_event()),+ }
            }

            fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
                match self { $($Type::$Variant(leaf) => leaf.advance(now, data, completions)),+ }
            }
        }
    };
}

leaf!(Device: Ssd, Nvm);
leaf!(Below: Device, Tier);
