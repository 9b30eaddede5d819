package http1

// KnownNames are the names that cost no allocation in any spelling.
func KnownNames() []string { return knownNames[1:] }
