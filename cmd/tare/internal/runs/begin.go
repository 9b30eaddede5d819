package runs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"path/filepath"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/source"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/env"
	"github.com/tarehq/tare/lab/record"
)

// NewFolder is where a run of a study that begins now is kept in home.
func NewFolder(home, study string) string {
	return filepath.Join(home, time.Now().UTC().Format("20060102-150405-")+study)
}

// DrawSeed draws the seed of a run.
func DrawSeed() uint64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return uint64(binary.LittleEndian.Uint32(b[:])) + 1
}

// NewBuilder makes a builder of arms. module is the folder of tare's own source; "" is
// the one that tare stands in, or else the source of this version, fetched when an arm
// needs it.
func NewBuilder(module string) *arm.Builder {
	return &arm.Builder{ModuleDir: module, FetchSource: source.Fetch}
}

// Environment reads what on this machine disturbs measuring, for a run's record.
func Environment(ctx context.Context) []record.Fact {
	var all []record.Fact
	for _, f := range env.Read(ctx) {
		all = append(all, record.Fact{Name: f.Name, Value: f.Value, Verdict: string(f.Verdict), Remedy: f.Remedy})
	}
	return all
}
