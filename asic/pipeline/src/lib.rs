//! The packet pipeline of the software ASIC
