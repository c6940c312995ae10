// SPDX-License-Identifier: Apache-2.0
//! The decision against naive models: a device, a software switch, the written rules.
mod bench;
mod chips;
mod model;
mod pairs;
mod paper;
mod property;
mod reference;
mod turns;
mod words;
