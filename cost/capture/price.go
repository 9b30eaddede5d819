package capture

import (
	"cmp"
	"fmt"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/stats/unit"
)

// What recording takes of the CPU that a service uses, by itself and while it
// lasts, where that was tried (BenchmarkPrice, docs/cost.md).
const (
	priceOfProfile = "6 to 19 %"
	priceOfTrace   = "up to 12 %"
	priceOfBoth    = "up to 18 %"
)

// Price says what looking at a service is expected to cost it.
func (o Options) Price(t *Target) string {
	if t.Profiles == nil {
		return unit.Format(bpf.Price(cmp.Or(o.Hz, bpf.DefaultHz)), unit.Share) + " of the CPU it uses"
	}
	return o.priceOfProfiles()
}

func (o Options) priceOfProfiles() string {
	text := priceOfProfile + " of the CPU it uses"
	if o.Waits > 0 {
		text += fmt.Sprintf(", then %s for %s", priceOfTrace, o.Waits)
	}
	return text
}
