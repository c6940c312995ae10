// SPDX-License-Identifier: Apache-2.0
mod cases;
mod device;
mod forms;
mod frames;
mod groups;
mod lost;
mod measure;
mod pairs;
mod pipelines;
mod property;
mod seen;
mod slices;
mod universe;
mod warm;
mod words;
mod world;
mod writing;
