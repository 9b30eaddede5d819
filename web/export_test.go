package web

import "time"

// SetPatience has pages be given up after another time.
func SetPatience(s *Site, d time.Duration) { s.patience = d }

// TakeTurns takes all places of pages that are made of much, until give is called.
func TakeTurns(s *Site) (give func()) {
	for range mostTurns {
		s.turns <- struct{}{}
	}
	return func() {
		for range mostTurns {
			<-s.turns
		}
	}
}
