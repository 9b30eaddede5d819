package compiler

// Lines picks the decisions out of diagnostics.
func Lines(dir string, out []byte) []Decision { return read(dir, out) }
