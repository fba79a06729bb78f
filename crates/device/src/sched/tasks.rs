//! The table of tasks. Each task of the FTL has one entry, and whatever needs
//! all of them (request queues, shares, counters, blame, write points, gauges)
//! is made from it. To add one: write its file in `ftl`, add its entry.

/// Hands the table to the macro `$with`.
///
/// A task's entry says, in this order:
///
/// - its name, and the label by which configuration and results know it;
/// - its flash operations: the number that orders them in counters and digests
///   (for ever; a new one takes the next), the command, the name in results, and
///   what those who wait behind it are told;
/// - its weight under `fair`, a setting;
/// - how its share under `debit` follows its error, four settings: P and I of
///   AutoSSD's eq. 1, the least and the largest share;
/// - the type in `ftl` that does its work (see `ftl/background.rs`), and the
///   module it is `in`, which the table makes;
/// - where a device may do without it, its table in the device's configuration,
///   which is called like the module, and the type of its settings there.
///
/// `others` are activities without request queues of their own: they go through
/// those of a task, and what they program goes to the host's blocks.
macro_rules! tasks {
    ($with:ident) => {
        $with! {
            tasks {
                /// Reads and writes of the host.
                Host = "host" {
                    operations {
                        0 Read "host_read" behind BehindHostRead,
                        1 Program "host_write" behind BehindHostWrite,
                    }
                    weight {
                        /// Weight of host reads and writes.
                        host
                    }
                    share {}
                    work {}
                    settings {}
                }
                /// Loading and writing back of map pages.
                Map = "map" {
                    operations {
                        2 Read "map_read" behind BehindMap,
                        3 Program "map_write" behind BehindMap,
                    }
                    weight {
                        /// Weight of map traffic.
                        map
                    }
                    share {}
                    work {}
                    settings {}
                }
                /// Garbage collection, and the map pages it needs.
                Gc = "gc" {
                    operations {
                        4 Read "gc_read" behind BehindGcRead,
                        5 Program "gc_program" behind BehindGcProgram,
                        6 Move "gc_move" behind BehindGcMove,
                        7 Copyback "gc_copyback" behind BehindGcMove,
                        11 Erase "erase" behind BehindErase,
                    }
                    weight {
                        /// Weight of garbage collection.
                        gc
                    }
                    share {
                        /// P of eq. 1: share per missing free block.
                        p gc_p = 5e-6,
                        /// I of eq. 1: what remains of the former share after a period; below 1.
                        i gc_i = 0.999,
                        /// Smallest share of garbage collection while it is active.
                        min gc_min = 0.08,
                        /// Largest share of garbage collection.
                        max gc_max = 0.8,
                    }
                    work { Gc in gc }
                    settings {}
                }
                /// Read scrubbing, and the map pages it needs.
                Scrub = "scrub" {
                    operations {
                        16 Read "scrub_read" behind BehindScrub,
                        17 Program "scrub_program" behind BehindScrub,
                        18 Erase "scrub_erase" behind BehindScrub,
                    }
                    weight {
                        /// Weight of read scrubbing.
                        scrub
                    }
                    share {
                        /// P for read scrubbing: share per read above its start threshold.
                        p scrub_p = 1e-8,
                        /// I for read scrubbing.
                        i scrub_i = 0.999,
                        /// Smallest share of read scrubbing while it is active.
                        min scrub_min = 0.02,
                        /// Largest share of read scrubbing.
                        max scrub_max = 0.2,
                    }
                    work { Scrub in scrub }
                    settings {
                        /// Read scrubbing.
                        scrub: ScrubConfig
                    }
                }
                /// Wear levelling, and the map pages it needs.
                WearLevelling = "wear_levelling" {
                    operations {
                        19 Read "wear_levelling_read" behind BehindWearLevelling,
                        20 Program "wear_levelling_program" behind BehindWearLevelling,
                        21 Erase "wear_levelling_erase" behind BehindWearLevelling,
                    }
                    weight {
                        /// Weight of wear levelling.
                        wear_levelling
                    }
                    share {
                        /// P for wear levelling: share per erase above its threshold.
                        p wear_levelling_p = 1e-5,
                        /// I for wear levelling.
                        i wear_levelling_i = 0.999,
                        /// Smallest share of wear levelling while it is active.
                        min wear_levelling_min = 0.02,
                        /// Largest share of wear levelling.
                        max wear_levelling_max = 0.1,
                    }
                    work { WearLevelling in wear_levelling }
                    settings {
                        /// Wear levelling.
                        wear_levelling: WearLevellingConfig
                    }
                }
                /// Checkpoints of the map.
                Checkpoint = "checkpoint" {
                    operations { 22 Program "checkpoint_program" behind BehindMap, }
                    weight {
                        /// Weight of checkpoints.
                        checkpoint
                    }
                    share {
                        /// P for checkpoints: share per map page that is not written yet.
                        p checkpoint_p = 1e-7,
                        /// I for checkpoints.
                        i checkpoint_i = 0.999,
                        /// Smallest share of checkpoints while one is being written.
                        min checkpoint_min = 0.02,
                        /// Largest share of checkpoints.
                        max checkpoint_max = 0.2,
                    }
                    work { Checkpoint in checkpoint }
                    settings {
                        /// Checkpoints of the map.
                        checkpoint: CheckpointConfig
                    }
                }
            }
            others {
                /// Reading what was copied back, to check it.
                Check through Scrub {
                    operations { 8 Read "check_read" behind BehindScrub, }
                    work { EccCheck in ecc_check }
                }
                /// Reading the rest of a stripe to restore lost pages of it, and
                /// programming these.
                Restore through Scrub {
                    operations {
                        9 Read "restore_read" behind Reconstruction,
                        10 Program "restore_program" behind Reconstruction,
                    }
                    work { Restoring in restoring }
                }
                /// Reading what the parity of a stripe is computed from, and
                /// programming it; whoever writes a stripe programs its parity.
                Parity through Host {
                    operations {
                        12 Read "parity_read" behind BehindParity,
                        13 Program "parity_write" behind BehindParity,
                    }
                    work {}
                }
                /// Reading a page of a stripe to rebuild another for the host.
                Rebuild through Host {
                    operations { 14 Read "rebuild" behind Reconstruction, }
                    work {}
                }
                /// Programming densely, in place, what the SLC cache holds.
                Fold through Gc {
                    operations { 15 Program "fold" behind BehindFold, }
                    work { Slc in slc }
                }
            }
        }
    };
}

pub(crate) use tasks;
