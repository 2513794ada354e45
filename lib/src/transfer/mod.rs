//! From one dialect to another: conversion and import; and from sessions to tables.

pub mod convert;
pub mod import;
pub mod tables;
