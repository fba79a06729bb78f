//! Where a trace's devices lie in the address space of the simulated one.

use flashkeel_engine::SECTOR_BYTES;

use super::pass::{ALIGN_LIMIT_BYTES, Pass, Selected, Shape};
use super::{DeviceSpaces, Fold, Trace};
use crate::error::Pulse;
use crate::{Context, Counts, Stopped, Watch, WorkloadError};

const LAYOUT_SECTORS: u64 = ALIGN_LIMIT_BYTES / SECTOR_BYTES;

/// First sector of each device, and the capacity they must fit in.
pub(super) struct Placement {
    bases: Vec<u64>,
    device_sectors: u64,
    fold: Fold,
}

/// How far a device of the trace reaches, and the request that reaches it.
#[derive(Clone, Copy, Default)]
struct Extent {
    end: u64,
    item: u64,
}

impl Placement {
    /// Lays the devices out. Where they are separate this reads the trace once,
    /// as far as it will be delivered.
    pub(super) fn find(
        trace: &Trace,
        shape: &Shape,
        context: &Context,
        watch: &mut Watch<'_>,
    ) -> Result<Placement, Stopped> {
        let mut placement =
            Placement { bases: Vec::new(), device_sectors: context.device_sectors, fold: trace.fold };
        if trace.devices == DeviceSpaces::Merge || trace.device.is_some() {
            return Ok(placement);
        }
        let mut pass = Pass::open(trace, shape)?;
        let extents = extents(&mut pass, shape, context, watch)?;
        let mut base = 0u64;
        for (device, extent) in (0..).zip(&extents) {
            placement.bases.push(base);
            let end = base.saturating_add(extent.end);
            if end > context.device_sectors && trace.fold == Fold::Refuse {
                return Err(WorkloadError::at(
                    &pass.file,
                    pass.place(extent.item),
                    format!(
                        "device {} reaches its byte {}{}, beyond the simulated device's {} bytes; {REMEDY}",
                        pass.device_name(device),
                        u128::from(extent.end) * 512,
                        if base > 0 {
                            format!(", at {} behind the devices before it", u128::from(end) * 512)
                        } else {
                            String::new()
                        },
                        u128::from(context.device_sectors) * 512,
                    ),
                )
                .into());
            }
            base = end.div_ceil(LAYOUT_SECTORS).saturating_mul(LAYOUT_SECTORS);
        }
        Ok(placement)
    }

    /// First sector and length on the simulated device.
    #[inline]
    pub(super) fn place(&self, selected: &Selected, counts: &mut Counts) -> Result<(u64, u32), String> {
        let base = self.bases.get(selected.device as usize).copied().unwrap_or(0);
        let lba = base.saturating_add(selected.lba);
        let end = lba.saturating_add(selected.sectors.into());
        if end <= self.device_sectors {
            return Ok((lba, selected.sectors));
        }
        if self.fold == Fold::Refuse {
            return Err(format!(
                "bytes {} to {} lie beyond the device's {} bytes; {REMEDY}",
                u128::from(lba) * 512,
                u128::from(end) * 512,
                u128::from(self.device_sectors) * 512
            ));
        }
        counts.folded += 1;
        let lba = lba % self.device_sectors;
        let room = self.device_sectors - lba;
        if u64::from(selected.sectors) > room {
            counts.clipped += 1;
            return Ok((lba, room as u32));
        }
        Ok((lba, selected.sectors))
    }
}

const REMEDY: &str = "fold = \"wrap\" folds addresses into the device";

/// How far each device of the trace reaches among the requests that will be
/// delivered.
fn extents(
    pass: &mut Pass,
    shape: &Shape,
    context: &Context,
    watch: &mut Watch<'_>,
) -> Result<Vec<Extent>, Stopped> {
    let mut pulse = Pulse::new(watch);
    let mut extents: Vec<Extent> = Vec::new();
    let mut counts = Counts::default();
    let mut requests_left = context.requests.unwrap_or(u64::MAX);
    while requests_left > 0
        && let Some(selected) = pass.next(&mut counts)?
        && shape.duration_ns.is_none_or(|end| selected.time_ns < end)
    {
        pulse.step(|| pass.progress())?;
        requests_left -= 1;
        let device = selected.device as usize;
        if extents.len() <= device {
            extents.resize(device + 1, Extent::default());
        }
        let reach = selected.lba + u64::from(selected.sectors);
        if reach > extents[device].end {
            extents[device] = Extent { end: reach, item: selected.item };
        }
    }
    Ok(extents)
}
