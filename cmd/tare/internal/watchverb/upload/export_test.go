package upload

import "time"

// Hurry has Close wait for so long.
func Hurry(s *Server, patience time.Duration) { s.patience = patience }
