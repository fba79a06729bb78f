"""AutoSSD: an Autonomic SSD Architecture (USENIX ATC 2018)."""

from flashkeel.reproduce.autossd import fig1

STUDIES = (fig1.STUDY,)
