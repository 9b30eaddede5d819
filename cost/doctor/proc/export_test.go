package proc

// ReadBelow reads the facts of a process as other folders show them.
func ReadBelow(proc, cgroup string, pid int) (*Facts, error) { return root{proc, cgroup}.read(pid) }
