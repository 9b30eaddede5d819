package proc

// ReadBelow reads the facts of a process as another folder shows them.
func ReadBelow(dir string, pid int) (*Facts, error) { return root(dir).read(pid) }

// IdleBelow says why a process may have nothing to do as another folder shows it.
func IdleBelow(dir string, pid int) error { return root(dir).idle(pid) }
