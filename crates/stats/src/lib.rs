//! Histograms, estimators, intervals, tests and verdict arithmetic: pure functions.
