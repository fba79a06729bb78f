"""AutoSSD: an Autonomic SSD Architecture (USENIX ATC 2018)."""

from flashkeel.reproduce.autossd import (
    fig1,
    fig4a,
    fig4b,
    fig4c,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    fig10,
    fig11,
    outlook,
    sensitivity,
)

STUDIES = (
    fig1.STUDY,
    fig4a.STUDY,
    fig4b.STUDY,
    fig4c.STUDY,
    fig5.STUDY,
    fig6.STUDY,
    fig7.STUDY,
    fig8.STUDY,
    fig9.STUDY,
    fig10.STUDY,
    fig11.STUDY,
    sensitivity.STUDY,
    outlook.STUDY,
)
