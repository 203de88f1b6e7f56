"""Tests of `tvm_practice.tvm_export.importers`."""
