package compiler

// Lines picks the decisions out of diagnostics, of packages that have folders.
func Lines(dir string, packages map[string]string, out []byte) []Decision {
	return source{dir, packages}.read(out)
}
