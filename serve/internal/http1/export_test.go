package http1

// KnownNames are the names that cost no allocation in any spelling.
func KnownNames() []string { return knownNames[1:] }

// Control is the index of the first control character at or after i.
func Control(s string, i int) int { return control(s, i) }
