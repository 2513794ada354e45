//! From one dialect to another: conversion and import.

pub mod convert;
pub mod import;
