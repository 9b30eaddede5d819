package proc

// ReadBelow reads the facts of a process as other folders show them.
func ReadBelow(proc, cgroup string, pid int) (*Facts, error) { return root{proc, cgroup}.read(pid) }

// IdleBelow says why a process may have nothing to do as another folder shows it.
func IdleBelow(proc string, pid int) error { return root{proc, ""}.idle(pid) }
