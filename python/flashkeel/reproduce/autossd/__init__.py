"""AutoSSD: an Autonomic SSD Architecture (USENIX ATC 2018)."""

from flashkeel.reproduce.autossd import fig1, fig4a, fig4b, fig4c

STUDIES = (fig1.STUDY, fig4a.STUDY, fig4b.STUDY, fig4c.STUDY)
