package runs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

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

// NewBuilder makes a builder of arms. It finds tare's own source, if module does not
// name its folder.
func NewBuilder(module string) (*arm.Builder, error) {
	if module == "" {
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		// A study of commands and URLs needs no source: the builder says what
		// is missing when an arm asks for it.
		module, _ = arm.FindModule(wd)
	}
	return &arm.Builder{ModuleDir: module}, nil
}

// Environment reads what on this machine disturbs measuring, for a run's record.
func Environment(ctx context.Context) []record.Fact {
	var all []record.Fact
	for _, f := range env.Read(ctx) {
		all = append(all, record.Fact{Name: f.Name, Value: f.Value, Verdict: string(f.Verdict), Remedy: f.Remedy})
	}
	return all
}
