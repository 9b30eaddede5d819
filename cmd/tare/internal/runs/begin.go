package runs

import (
	"context"

	"github.com/tarehq/tare/cmd/tare/internal/source"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/env"
	"github.com/tarehq/tare/lab/record"
)

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
