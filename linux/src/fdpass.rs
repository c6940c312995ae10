//! fdpass
