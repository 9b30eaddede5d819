package doctor

import (
	"fmt"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// compressionRule asks after three matters: how hard is compressed, whether each
// request makes a compressor of its own, which is near a megabyte, and whether what is
// compressed becomes smaller.
func compressionRule() Rule {
	return Rule{
		Name:      "compression",
		Question:  "Does compression cost more than it needs to?",
		Threshold: "more than 20 % of the CPU at level 2 or above; or new writers, or what does not become smaller, for more than 1 % of it",
		Verify:    verifyCost,
		needs:     []Part{CPUProfile, BusyService},
		check:     checkCompression,
	}
}

func checkCompression(e *Evidence) ([]Finding, *Missing) {
	var found []Finding
	for _, look := range []func(*Evidence) (Finding, bool){compressionLevel, compressorsMade, compressedAgain} {
		if f, ok := look(e); ok {
			found = append(found, f)
		}
	}
	return found, nil
}

// compressionLevel looks for the searches of the higher levels.
func compressionLevel(e *Evidence) (Finding, bool) {
	price := e.spent(symptom.Searching)
	if price.Value == 0 {
		return Finding{}, false
	}
	return Finding{
		Severity: e.weighCPU(price, 0.20), Price: &price,
		Title:    fmt.Sprintf("compressing at level 2 or above takes %s of the CPU", unit.Format(price.Share, unit.Share)),
		Evidence: e.places(e.CPU, symptom.Searching, unit.Nanoseconds),
		Remedy:   "compress at the fastest level (gzip.BestSpeed, zstd.SpeedFastest, brotli's 1) what is made for each request: most of the saving in bytes for a fraction of the CPU; keep what does not change compressed; leave small bodies alone",
	}, true
}

func compressorsMade(e *Evidence) (Finding, bool) {
	bytes := sum(e.Allocs, symptom.MakingCompressor)
	if e.Allocs == nil || bytes.Value == 0 {
		return Finding{}, false
	}
	price := e.spent(symptom.MakingCompressor)
	by, per := e.per()
	rows := append(e.places(e.Allocs, symptom.MakingCompressor, unit.Bytes), Row{What: "memory for new writers per " + per, Value: bytes.Value / by, Unit: unit.Bytes})
	return Finding{
		Severity: e.weighCPU(price, 0.01), Price: &price,
		Title:    "compressors are made anew for each request",
		Evidence: rows,
		Remedy:   "keep the writers in a sync.Pool, Reset them to the response and put them back after Close",
	}, true
}

// compressedAgain looks for callers of gzip more than half of whose output stands there as
// it came: what they compress is compressed already, or random.
func compressedAgain(e *Evidence) (Finding, bool) {
	sent, stored := bySender(e.CPU, symptom.Sending), bySender(e.CPU, symptom.Storing)
	vain := func(frames []cost.Frame) int {
		at := symptom.Deflating(frames)
		if at < 0 {
			return -1
		}
		if k := sender(frames[at:]); stored[k] == 0 || stored[k] <= sent[k]/2 {
			return -1
		}
		return at
	}
	price := e.spent(vain)
	if price.Value == 0 {
		return Finding{}, false
	}
	return Finding{
		Severity: e.weighCPU(price, 0.01), Price: &price,
		Title:    fmt.Sprintf("compressing what does not become smaller takes %s of the CPU", unit.Format(price.Share, unit.Share)),
		Evidence: append(e.places(e.CPU, vain, unit.Nanoseconds), note("gzip stores most of it as it came")),
		Remedy:   "by its Content-Type do not compress what is compressed already: images, video, fonts of WOFF, archives, and answers that have a Content-Encoding",
	}, true
}

// bySender adds up what matches by who called for it, all the way out.
func bySender(all []cost.Stack, m symptom.Match) map[string]float64 {
	sums := map[string]float64{}
	for i := range all {
		if at := m(all[i].Frames); at >= 0 {
			sums[sender(all[i].Frames[at:])] += all[i].Value
		}
	}
	return sums
}

func sender(frames []cost.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(f.Func + "\n")
	}
	return b.String()
}
