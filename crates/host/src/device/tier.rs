//! `tier`: an upper device in front of a lower one. What was written to the
//! upper is moved to the lower in the background.

use flashkeel_config::{ConfigError, Kind, Node, Origin, preset_layer, preset_name};
use flashkeel_engine::{
    LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Leaf, Limits, SECTOR_BYTES, Stack, Stream, Time, units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Composed, Contents, Device, DeviceKind, Held, Maker, Size, Unmade};
use crate::part::Part;
use crate::predictor::PredictorConfig;
use crate::tier::admission::AdmissionConfig;
use crate::tier::budget::Ratings;
use crate::tier::eviction::EvictionConfig;
use crate::tier::overflow::OverflowConfig;
use crate::tier::placement::PlacementConfig;
use crate::tier::writeback::WritebackConfig;
use crate::tier::{MOST_FRAMES, PRESETS, Plan, Room, Tier};

/// What an NVM writes as a whole, below a journal.
const ATOMIC_UNIT: &str = "512B";

/// Two devices as one, of the lower one's size. With `preset` the settings are written
/// over a set of policies by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TieredConfig {
    /// Which writes go to the upper device.
    pub placement: PlacementConfig,
    /// The upper device, the faster one.
    pub upper: DeviceKind,
    /// The lower device, where everything has its place.
    pub lower: DeviceKind,
    /// Which clean copies the upper takes of those that it is offered.
    #[serde(default)]
    pub admission: AdmissionConfig,
    /// Whether what reads find in the lower is offered to the upper.
    #[serde(default)]
    pub fills: bool,
    /// What leaves the upper for others.
    #[serde(default)]
    pub eviction: EvictionConfig,
    /// Whether clean copies that leave the upper are offered to the lower, which may be
    /// a tier that takes them.
    #[serde(default)]
    pub demotes: bool,
    /// When what is modified in the upper is written to the lower.
    #[serde(default)]
    pub writeback: WritebackConfig,
    /// What may be written to the two devices.
    #[serde(default)]
    pub ratings: Ratings,
    /// Where a write goes that is above the budget of its medium.
    #[serde(default)]
    pub overflow: OverflowConfig,
    /// Whether the upper has a journal that says which page is where, so that a power cut
    /// leaves what was acknowledged. It takes half a percent of the room, each change
    /// waits for it, and a page that is written again goes to another place. Without one
    /// all this is taken to be known at no cost.
    #[serde(default)]
    pub journal: bool,
    /// Who predicts the lower device, for a placement that asks.
    #[serde(default)]
    pub predictor: PredictorConfig,
}

impl TieredConfig {
    /// Pages that an upper device of so many sectors holds at most.
    pub fn frames(&self, upper: u64) -> u64 {
        if self.journal { Room::within(upper).frames } else { upper / LOGICAL_PAGE_SECTORS }
    }

    /// The ratings of devices of these sizes.
    fn ratings_of(&self, upper: u64, lower: u64) -> Result<Ratings, String> {
        let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
        self.ratings.of(bytes(upper), bytes(lower)).map_err(|message| format!("ratings.{message}"))
    }

    /// What the policies want of each other and of the devices' sizes.
    fn check_policies(&self, upper: Size, lower: Size) -> Result<(), String> {
        let (is_forgetful, takes_pages) = (upper.is_volatile, upper.takes_pages);
        let (upper, lower) = (upper.sectors, lower.sectors);
        let takes_any = self.placement.policy().takes_any();
        let admits = self.admission.policy().takes_any();
        let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
        if !takes_any && !admits {
            return Err(format!(
                "placement is {:?}, and so is admission: the upper device is unused; name the lower one alone",
                self.placement.name()
            ));
        }
        if self.fills && !admits {
            return Err("fills is true, but admission is \"none\"; let it take what is offered".into());
        }
        if admits && !self.eviction.policy().build().keeps() {
            return Err(format!(
                "eviction is {:?}, which keeps no clean copies, but admission is {:?}",
                self.eviction.name(),
                self.admission.name()
            ));
        }
        if upper > lower {
            return Err(format!(
                "upper: it has {}, more than the {} of the lower, all of which it could hold",
                bytes(upper),
                bytes(lower)
            ));
        }
        let frames = self.frames(upper);
        if frames == 0 {
            return Err(format!("upper: {} has no room for a block beside the journal", bytes(upper)));
        }
        if frames > MOST_FRAMES || lower / LOGICAL_PAGE_SECTORS >= u64::from(u32::MAX) {
            return Err(format!(
                "upper: at most {}, over at most {}",
                bytes(MOST_FRAMES * LOGICAL_PAGE_SECTORS),
                bytes(u64::from(u32::MAX) * LOGICAL_PAGE_SECTORS)
            ));
        }
        if self.journal && is_forgetful {
            return Err("journal is true, but the upper forgets everything when power is cut".into());
        }
        if self.journal && takes_pages {
            return Err(
                "journal is true, which is written in units of 512 bytes, but the upper takes only whole \
                        pages of 4 KiB; let it be an nvm"
                    .into(),
            );
        }
        Ok(())
    }
}

impl Build for TieredConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        if let Some(preset) = settings.remove("preset") {
            let mut base = preset_layer(&preset, &format!("{key}.preset"), PRESETS)?;
            let is_no_tier = |lower: &Node| lower.get("tier").is_none();
            if base.get("lower.tier").is_some() && settings.get("lower").is_some_and(is_no_tier) {
                let name = preset_name(&preset).unwrap_or_default();
                let message = format!(
                    "is {name:?}, which sets policies of a tier in lower; name its devices in lower.tier, as \
                     upper and lower"
                );
                return Err(ConfigError::new(Some(preset.origin), &format!("{key}.preset"), message));
            }
            base.merge(settings.clone())?;
            *settings = base;
        }
        for place in ["upper", "lower"] {
            if let Some(device) = settings.get_mut(place) {
                DeviceKind::expand(device, &format!("{key}.{place}"), ground)?;
            }
        }
        let has_journal = settings.get("journal").is_some_and(|node| node.kind == Kind::Boolean(true));
        if let Some(nvm) = settings.get_mut("upper.nvm").filter(|_| has_journal)
            && nvm.get("atomic_unit").is_none()
        {
            nvm.merge(Node::from_json(json!({ "atomic_unit": ATOMIC_UNIT }), &Origin::Default))?;
        }
        Ok(())
    }

    fn check(&self) -> Result<Size, String> {
        self.ratings.validate().map_err(|message| format!("ratings.{message}"))?;
        let upper = self.upper.check().map_err(|message| format!("upper.{message}"))?;
        let lower = self.lower.check().map_err(|message| format!("lower.{message}"))?;
        upper.gets_all_reads("upper")?;
        lower.gets_all_reads("lower")?;
        self.ratings_of(upper.sectors, lower.sectors)?;
        self.check_policies(upper, lower)?;
        // What the upper only has a copy of is not lost with it.
        let takes_any = self.placement.policy().takes_any();
        let is_lost = upper.is_volatile && takes_any;
        Ok(Size {
            sectors: lower.sectors,
            queue_depth: lower.queue_depth,
            is_volatile: lower.is_volatile || is_lost,
            in_memory: lower.in_memory || takes_any,
            takes_pages: true,
            ..Size::over([&upper, &lower])
        })
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        vec![("upper".to_owned(), &self.upper), ("lower".to_owned(), &self.lower)]
    }

    fn only_reads(&self) -> Result<(), String> {
        if !self.admission.policy().takes_any() || !self.upper.policy().has_drives() {
            return Ok(());
        }
        Err(format!(
            "upper: it is a real drive, and gets copies of what is read (admission is {:?}); --destroy lets its \
             data be destroyed",
            self.admission.name()
        ))
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let lower = self.lower.build(maker)?;
        // What it alone has is kept by the tier, which knows what that is.
        let upper = maker.spare(|maker| self.upper.build(maker))?;
        let placement = self.placement.policy();
        let asks = placement.needs_predictor();
        // A tier gives the lower device as much as comes.
        let predictor = asks.then(|| maker.predictor(&self.predictor, &*lower, usize::MAX)).transpose()?;
        let random = Stream::new(maker.seed_for("tier"), "tier");
        let (upper_limits, lower_limits) = (upper.limits(), lower.limits());
        takes_pages("upper", &upper_limits)?;
        takes_pages("lower", &lower_limits)?;
        let plan = Plan {
            ratings: self.ratings_of(upper_limits.sectors, lower_limits.sectors)?,
            lower: lower_limits,
            upper: upper_limits,
            placement: placement.build(predictor, random),
            takes_any: placement.takes_any(),
            admission: self.admission.policy().build(),
            fills: self.fills,
            eviction: self.eviction.policy().build(),
            demotes: self.demotes,
            writeback: self.writeback.policy().build(),
            overflow: self.overflow.clone(),
            journal: self.journal,
            kept: match maker.contents() {
                Contents::Kept(kept) => Some(kept),
                Contents::None | Contents::InMemory => None,
            },
        };
        Ok(Box::new(Stack::new(Tier::new(plan), vec![lower, upper])))
    }
}

/// Refuses a device of blocks that are larger than the pages which a tier moves.
fn takes_pages(key: &str, limits: &Limits) -> Result<(), Unmade> {
    if u64::from(limits.block_sectors) <= LOGICAL_PAGE_SECTORS {
        return Ok(());
    }
    let (block, page) = (Bytes(u64::from(limits.block_sectors) * SECTOR_BYTES), Bytes(LOGICAL_PAGE_BYTES));
    Err(Unmade::Refused(format!(
        "the {key} device of a tier reads and writes blocks of {block}, larger than the {page} that a tier moves; \
         {key}.stack = {{ block = \"{page}\", devices = [...] }} around it has whole blocks read and written for \
         parts of them"
    )))
}

impl Composed for Tier {
    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }

    fn reset_counters(&mut self, _now: Time) {
        Tier::reset_counters(self);
    }

    fn held(&self) -> Held {
        Held { upper_pages: self.upper_pages(), ..Held::default() }
    }
}

impl Part for Tier {
    fn kind(&self) -> &'static str {
        "tier"
    }

    fn report(&self) -> Value {
        json!(Tier::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let report = Tier::report(self);
        // What never came up leaves digests as they were before it existed.
        let others = [report.filled_bytes, report.admitted_bytes, report.demoted_bytes, report.journal_bytes];
        let others = others.into_iter().filter(|&count| count > 0);
        [report.host_bytes_to_nvm, report.drained_bytes].into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Durable;

    use super::*;

    #[test]
    fn a_device_of_blocks_larger_than_pages_is_refused_before_no_page_can_be_moved_to_it() {
        let of = |block_sectors| Limits {
            sectors: 1 << 20,
            block_sectors,
            preferred_sectors: block_sectors,
            durable: Durable::Acknowledged,
        };
        assert!(takes_pages("lower", &of(1)).is_ok() && takes_pages("lower", &of(8)).is_ok());
        let Err(Unmade::Refused(why)) = takes_pages("lower", &of(128)) else { panic!("it is taken") };
        assert!(why.contains("lower device") && why.contains("blocks of 64KiB"), "{why}");
    }
}
