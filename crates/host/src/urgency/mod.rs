//! The urgency axis: which parts of a request that goes to several devices need not hurry.
//! Such a request ends with its last part; what a quick device has for it may wait behind
//! what others ask of that device (the dissertation on PLMlight, §6.0.2: point to
//! multipoint). Such a part is [unhurried](flashkeel_engine::Request::is_unhurried).
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::Operation;

flashkeel_config::axis! {
    /// Which parts of a request that goes to several devices need not hurry, as it ends
    /// with its last part.
    pub enum UrgencyConfig as "urgency": Build {
        /// None: each has the class of the whole.
        Alike(Alike) in alike = "alike",
        /// Those on devices that are named.
        Fixed(Fixed) in fixed = "fixed",
        /// As many on each as seldom are the last even so.
        ByLoad(ByLoad) in by_load = "by-load",
    }
}

impl Default for UrgencyConfig {
    fn default() -> Self {
        UrgencyConfig::Alike(alike::Alike::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy for so many devices; `None` where all parts are alike.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn build(&self, devices: usize) -> Result<Option<Box<dyn Urgency>>, String>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Devices, a bit each.
pub type Devices = u64;

/// Refuses more devices than there are bits.
///
/// # Errors
/// A sentence that begins with the key.
fn fit(devices: usize) -> Result<(), String> {
    match Devices::BITS as usize {
        most if devices > most => {
            Err(format!("urgency: goes with up to {most} devices; there are {devices}"))
        }
        _ => Ok(()),
    }
}

/// Says what need not hurry.
pub trait Urgency: DynClone + Send {
    /// Of the devices that the parts of a request go to, those whose parts need not hurry.
    fn unhurried(&mut self, operation: Operation, devices: Devices) -> Devices;

    /// A request of several parts has ended with one on the device `last`; those on
    /// `unhurried` need not have hurried.
    fn ended(&mut self, _operation: Operation, _unhurried: Devices, _last: usize) {}
}

dyn_clone::clone_trait_object!(Urgency);
