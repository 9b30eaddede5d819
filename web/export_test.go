package web

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
