package flight

import "time"

// Abandoned is the age at which a part of a snapshot is removed.
const Abandoned = abandoned

// Hurry has Close wait no longer than d.
func (r *Recorder) Hurry(d time.Duration) { r.patience = d }
