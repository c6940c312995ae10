//! Firmware of the software ASIC: command processor, accounting, profiles
