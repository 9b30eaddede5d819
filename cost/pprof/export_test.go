package pprof

// ReadMemory and ReadBirths read what a service answers as text.
func ReadMemory(text []byte) (*Memory, error) { return readMemory(text) }

func ReadBirths(text []byte) Births { return readBirths(text) }
