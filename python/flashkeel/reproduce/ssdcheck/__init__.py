"""SSDcheck: Timely and Accurate Prediction of Irregular Behaviors (MICRO 2018)."""

from flashkeel.reproduce.ssdcheck import fig3, fig11, fig12, fig14, fig15, table1, table3

STUDIES = (
    fig3.STUDY,
    table1.STUDY,
    table3.STUDY,
    fig11.STUDY,
    fig12.STUDY,
    fig14.STUDY,
    fig15.STUDY,
)
