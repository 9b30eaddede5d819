//go:build !linux

package serve

// parking needs a poller that takes a socket the runtime polls too.
type parking struct{}

type seat struct{}

func newParking() *parking { return nil }

func (p *parking) able() bool       { return false }
func (p *parking) watch(*conn) bool { return false }
func (p *parking) hold(*conn)       {}
func (p *parking) end(*conn) bool   { return false }

func (p *parking) lapse(*conn, int64) bool { return false }

func (p *parking) leave(*conn)   {}
func (p *parking) relieve(int64) {}
func (p *parking) rest()         {}
func (p *parking) close()        {}
