"""The keel, our own: reads that do not wait for garbage collection."""

from flashkeel.reproduce.keel import ablation, cost, lifetime, reads, writes

STUDIES = (
    reads.STUDY,
    writes.STUDY,
    cost.STUDY,
    ablation.STUDY,
    lifetime.STUDY,
)
