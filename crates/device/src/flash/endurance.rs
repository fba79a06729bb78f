//! What has been used of the flash's endurance.

use flashkeel_engine::Time;

use super::wear::Law;

/// The effective wear of each block of a partition.
#[derive(Clone)]
pub struct BlockWear {
    law: Box<dyn Law>,
    /// When each block was last erased; the start of the run for one that has
    /// not been.
    erased: Vec<Time>,
    /// Effective cycles of each block.
    worn: Vec<f64>,
    cycles: u64,
    total: f64,
    /// Mean cost of the latest cycles, about as many as there are blocks.
    recent_cost: f64,
}

impl BlockWear {
    /// `blocks` new ones.
    pub fn new(law: Box<dyn Law>, blocks: u32) -> Self {
        let blocks = blocks as usize;
        BlockWear {
            law,
            erased: vec![Time::ZERO; blocks],
            worn: vec![0.0; blocks],
            cycles: 0,
            total: 0.0,
            recent_cost: 1.0,
        }
    }

    /// A block has been erased.
    pub fn erased(&mut self, now: Time, block: u32) {
        let block = block as usize;
        let cost = self.law.cost(now.since(self.erased[block]));
        self.erased[block] = now;
        self.worn[block] += cost;
        self.cycles += 1;
        self.total += cost;
        self.recent_cost += (cost - self.recent_cost) / self.worn.len() as f64;
    }

    /// Effective cycles of each block.
    pub fn worn(&self) -> &[f64] {
        &self.worn
    }

    /// Effective cycles of a block, and when it was last erased.
    pub fn of(&self, block: u32) -> (f64, Time) {
        (self.worn[block as usize], self.erased[block as usize])
    }

    /// Takes over what is known of a block.
    pub fn restore(&mut self, block: u32, worn: f64, erased_at: Time) {
        // Its erases include those before the run, which do not wear; a cycle wears by 1 at most.
        self.cycles += worn.ceil() as u64;
        self.total += worn;
        if self.cycles > 0 {
            self.recent_cost = self.total / self.cycles as f64;
        }
        (self.worn[block as usize], self.erased[block as usize]) = (worn, erased_at);
    }

    /// Adds what this partition has used, one of `partitions` of equal size.
    pub fn add_to(&self, endurance: &mut Endurance, partitions: usize) {
        let blocks = (self.worn.len() * partitions) as f64;
        endurance.cycles += self.cycles as f64 / blocks;
        endurance.wear += self.total / blocks;
        endurance.cost += self.recent_cost / partitions as f64;
    }
}

/// A device's endurance, and what has been used of it since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Endurance {
    /// Cycles that a block endures without idle time between them.
    pub rated_cycles: f64,
    /// Bytes of flash, over-provisioning included.
    pub flash_bytes: f64,
    /// Mean number of cycles of a block.
    pub cycles: f64,
    /// Mean effective cycles of a block; worn out at `rated_cycles`.
    pub wear: f64,
    /// What a cycle costs at present, as a share of a rated one.
    pub cost: f64,
    /// All bytes programmed per byte the host wrote so far, but for folds, which wear nothing;
    /// below 1 where pages are written again while they are in the buffer, and merged there.
    pub write_amplification: f64,
}
