"""DRAM, ENVM and SSD: chapter 3 of Roy's dissertation, on a small model of the hierarchy."""

from flashkeel.reproduce.envm import latency, technologies, week, writes

STUDIES = (latency.STUDY, writes.STUDY, week.STUDY, technologies.STUDY)
