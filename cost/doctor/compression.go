package doctor

import (
	"fmt"

	"github.com/tarehq/tare/stats/unit"
)

// compressionRule asks after two matters: how hard is compressed, and whether
// each request makes a compressor of its own, which is near a megabyte.
func compressionRule() Rule {
	return Rule{
		Name:      "compression",
		Question:  "Does compression cost more than it needs to?",
		Threshold: "more than 20 % of the CPU at level 2 or above; or new writers for more than 1 % of it",
		Verify:    verifyCost,
		needs:     []Part{CPUProfile, BusyService},
		check:     checkCompression,
	}
}

func checkCompression(e *Evidence) ([]Finding, *Missing) {
	var found []Finding
	if f, ok := compressionLevel(e); ok {
		found = append(found, f)
	}
	if f, ok := compressorsMade(e); ok {
		found = append(found, f)
	}
	return found, nil
}

// Packages of compressors, besides the standard library's, on which the gzip and zlib
// of the same makers are built.
const (
	flate  = "github.com/klauspost/compress/flate."
	zstd   = "github.com/klauspost/compress/zstd."
	brotli = "github.com/andybalholm/brotli."
)

// compressionLevel looks for the searches of level 2 and above: below, each
// compressor has code of its own.
func compressionLevel(e *Evidence) (Finding, bool) {
	hard := calls("compress/flate.(*compressor).deflate", "compress/flate.(*compressor).findMatch", "compress/flate.(*compressor).fillDeflate",
		flate+"(*compressor).deflate", flate+"(*compressor).findMatch", flate+"(*compressor).fillDeflate",
		flate+"(*fastEncL2)", flate+"(*fastEncL3)", flate+"(*fastEncL4)", flate+"(*fastEncL5", flate+"(*fastEncL6)",
		zstd+"(*doubleFastEncoder", zstd+"(*betterFastEncoder", zstd+"(*bestFastEncoder",
		brotli+"createBackwardReferences", brotli+"createZopfliBackwardReferences", brotli+"createHqZopfliBackwardReferences")
	price := e.spent(hard)
	if price.Value == 0 {
		return Finding{}, false
	}
	return Finding{
		Severity: e.weighCPU(price, 0.20), Price: &price,
		Title:    fmt.Sprintf("compressing at level 2 or above takes %s of the CPU", unit.Format(price.Share, unit.Share)),
		Evidence: e.places(e.CPU, hard, unit.Nanoseconds),
		Remedy:   "compress at the fastest level (gzip.BestSpeed, zstd.SpeedFastest, brotli's 1) what is made for each request: most of the saving in bytes for a fraction of the CPU; keep what does not change compressed; leave small bodies alone",
	}, true
}

func compressorsMade(e *Evidence) (Finding, bool) {
	made := calls("compress/flate.NewWriter", "compress/flate.(*compressor).init", "compress/flate.newDeflateFast", "compress/flate.newHuffmanBitWriter",
		flate+"NewWriter", flate+"(*compressor).init", flate+"newFastEnc", flate+"newHuffmanBitWriter",
		zstd+"NewWriter", zstd+"(*Encoder).initialize", zstd+"encoderOptions.encoder",
		brotli+"NewWriter", brotli+"newHasher")
	bytes := sum(e.Allocs, made)
	if e.Allocs == nil || bytes.Value == 0 {
		return Finding{}, false
	}
	price := e.spent(made)
	by, per := e.per()
	rows := append(e.places(e.Allocs, made, unit.Bytes), Row{What: "memory for new writers per " + per, Value: bytes.Value / by, Unit: unit.Bytes})
	return Finding{
		Severity: e.weighCPU(price, 0.01), Price: &price,
		Title:    "compressors are made anew for each request",
		Evidence: rows,
		Remedy:   "keep the writers in a sync.Pool, Reset them to the response and put them back after Close",
	}, true
}
