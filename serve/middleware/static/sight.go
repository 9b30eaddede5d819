package static

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"math"
	"strings"
	"sync/atomic"
	"time"
)

// sight is what a look at a name found.
type sight struct {
	name  string
	info  fs.FileInfo   // nil: there is no such file, or it cannot be looked at
	until time.Duration // when it is no longer believed, by the clock of sights
	nth   uint64        // which look it was of those that are believed; 0: of none
}

// sights keeps what looks found for as long as it is believed. It never grows: names that
// clients make up take the place of others.
type sights struct {
	files fs.FS
	fresh time.Duration
	epoch time.Time
	seed  maphash.Seed
	looks atomic.Uint64
	kept  [256][ways]atomic.Pointer[sight] // by the name's hash
}

const ways = 4

// longestName is how many bytes a name has at most of which the sight is kept.
const longestName = 256

func newSights(files fs.FS, fresh time.Duration) *sights {
	return &sights{files: files, fresh: fresh, epoch: time.Now(), seed: maphash.MakeSeed()}
}

// look returns what the name is, by a look that was made before if that may be believed.
func (s *sights) look(name string, believe bool) sight {
	if s.fresh == 0 || !believe || len(name) > longestName {
		info, err := fs.Stat(s.files, name)
		if err != nil {
			info = nil // what cannot be looked at is not served
		}
		return sight{name: name, info: info}
	}
	now := time.Since(s.epoch)
	places := &s.kept[maphash.String(s.seed, name)%uint64(len(s.kept))]
	for i := range places {
		if at := places[i].Load(); at != nil && at.name == name && at.until > now {
			return *at
		}
	}
	info, err := fs.Stat(s.files, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sight{name: name}
	}
	at := &sight{strings.Clone(name), info, now + min(s.fresh, math.MaxInt64-now), s.looks.Add(1)}
	if err != nil {
		at.info = nil
	}
	placeFor(places, at, now).Store(at)
	return *at
}

// placeFor returns the place of the same name, or of a sight that is not believed any more,
// or of any.
func placeFor(places *[ways]atomic.Pointer[sight], at *sight, now time.Duration) *atomic.Pointer[sight] {
	free := &places[at.nth%ways]
	for i := range places {
		was := places[i].Load()
		if was != nil && was.name == at.name {
			return &places[i]
		}
		if was == nil || was.until <= now {
			free = &places[i]
		}
	}
	return free
}
