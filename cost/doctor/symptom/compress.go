package symptom

import (
	"slices"

	"github.com/tarehq/tare/cost"
)

// Packages of compressors, besides the standard library's, on which the gzip and zlib
// of the same makers are built.
const (
	flate  = "github.com/klauspost/compress/flate."
	zstd   = "github.com/klauspost/compress/zstd."
	brotli = "github.com/andybalholm/brotli."
)

var (
	searching = Calls("compress/flate.(*compressor).deflate", "compress/flate.(*compressor).findMatch", "compress/flate.(*compressor).fillDeflate",
		flate+"(*compressor).deflate", flate+"(*compressor).findMatch", flate+"(*compressor).fillDeflate",
		flate+"(*fastEncL2)", flate+"(*fastEncL3)", flate+"(*fastEncL4)", flate+"(*fastEncL5", flate+"(*fastEncL6)",
		zstd+"(*doubleFastEncoder", zstd+"(*betterFastEncoder", zstd+"(*bestFastEncoder",
		brotli+"createBackwardReferences", brotli+"createZopfliBackwardReferences", brotli+"createHqZopfliBackwardReferences")

	making = Calls("compress/flate.NewWriter", "compress/flate.(*compressor).init", "compress/flate.newDeflateFast", "compress/flate.newHuffmanBitWriter",
		flate+"NewWriter", flate+"(*compressor).init", flate+"newFastEnc", flate+"newHuffmanBitWriter",
		zstd+"NewWriter", zstd+"(*Encoder).initialize", zstd+"encoderOptions.encoder",
		brotli+"NewWriter", brotli+"newHasher")

	deflating = Outside(Calls("compress/gzip.(*Writer)", "compress/zlib.(*Writer)", "compress/flate.(*Writer)",
		"github.com/klauspost/compress/gzip.(*Writer)", "github.com/klauspost/compress/zlib.(*Writer)", flate+"(*Writer)"))
)

// Searching matches the searches of level 2 and above: below, each compressor has code of
// its own.
func Searching(frames []cost.Frame) int { return searching(frames) }

// MakingCompressor matches what a new compressor takes.
func MakingCompressor(frames []cost.Frame) int { return making(frames) }

// Deflating matches gzip, zlib and DEFLATE, but for what is done with their output.
func Deflating(frames []cost.Frame) int {
	if Sending(frames) >= 0 {
		return -1
	}
	return deflating(frames)
}

// Sending matches what is done with the output of DEFLATE.
func Sending(frames []cost.Frame) int {
	if bitWriter(frames, "write") < 1 { // nothing is inside it
		return -1
	}
	return deflating(frames)
}

// Storing is Sending of blocks that came out no shorter, so that they stand in the output
// as they came. Compressors of other formats have no function of their own for these.
func Storing(frames []cost.Frame) int {
	if bitWriter(frames, "writeBytes") < 0 {
		return -1
	}
	return Sending(frames)
}

// bitWriter returns the index of a method of what writes the output, or -1.
func bitWriter(frames []cost.Frame, method string) int {
	method = "(*huffmanBitWriter)." + method
	return slices.IndexFunc(frames, func(f cost.Frame) bool { return f.Func == "compress/flate."+method || f.Func == flate+method })
}
