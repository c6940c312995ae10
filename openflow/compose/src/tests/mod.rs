// SPDX-License-Identifier: Apache-2.0
mod chip;
mod faucet;
mod model;
mod property;
mod words;
