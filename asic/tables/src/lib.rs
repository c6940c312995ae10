//! Hardware tables: exact-match hash, LPM, counted pools
