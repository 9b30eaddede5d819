package telemetry

// Pack compresses a body of remote write.
var Pack = pack

// Waiting is how many bytes wait to be written.
func Waiting(e *Exporter) int {
	e.write.mu.Lock()
	defer e.write.mu.Unlock()
	return e.write.bytes
}

// GiveUp has Close wait for nothing.
func GiveUp(e *Exporter) { e.write.end() }
