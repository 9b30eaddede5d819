package transport

// Hosts returns how many hosts are remembered.
func (t *Transport) Hosts() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hosts)
}
