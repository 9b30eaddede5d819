package httptest

import (
	"maps"
	"slices"

	"gosuite/http"
)

// ConnsByState counts the server's connections.
func (s *Server) ConnsByState() map[http.ConnState]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := map[http.ConnState]int{}
	for _, state := range s.conns {
		states[state]++
	}
	return states
}

// ConnsIdle reports whether no connection is at work.
func (s *Server) ConnsIdle() bool {
	states := slices.Collect(maps.Keys(s.ConnsByState()))
	return !slices.ContainsFunc(states, func(state http.ConnState) bool { return state != http.StateIdle })
}
