package arm

import "time"

// BePatient bounds how long the arm may take to answer.
func (a *Process) BePatient(d time.Duration) { a.patience = d }
