"""Deterministic windows on ordinary drives: chapter 5 of Roy's dissertation (PLMlight, PLMLC)."""

from flashkeel.reproduce.plmlight.study import STUDIES

__all__ = ["STUDIES"]
