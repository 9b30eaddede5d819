package pprof

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// Bounds of what is read. A profile comes from a service that may be broken or
// hostile, and what is small on the wire can be large in memory: a few kilobytes
// unpack to gigabytes, and two bytes of a profile make a record of a hundred. A
// profile of a service with a hundred CPUs stays far below all of them.
const (
	mostBytes   = 128 << 20 // of a profile, unpacked, or of a text
	mostTrace   = 1 << 30   // bytes of a trace that is written as it comes
	heldTrace   = 256 << 20 // bytes of a trace that is held in memory
	mostRecords = 4 << 20   // samples, labels, places, lines, functions, names and the like, together
	mostFrames  = 16 << 20  // of all stacks together
	mostColumns = 64        // of values in a sample
)

// ErrTooLarge says that a service or a file sends more than is read of it.
var ErrTooLarge = errors.New("too large")

// readWithin reads all, or refuses what is longer than the most bytes there may
// be: what is cut off would say something else.
func readWithin(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, tooLong(most)
	}
	return b, nil
}

// copyWithin is readWithin for what is written as it comes.
func copyWithin(w io.Writer, r io.Reader, most int64) error {
	n, err := io.Copy(w, io.LimitReader(r, most+1))
	if err != nil {
		return err
	}
	if n > most {
		return tooLong(most)
	}
	return nil
}

func tooLong(most int64) error {
	return fmt.Errorf("%w: more than %d MiB", ErrTooLarge, most>>20)
}

// parse reads a profile, compressed or not. The old forms of C++ tools are
// refused, since they name no functions.
func parse(r io.Reader) (*profile.Profile, error) {
	data, err := unpack(r)
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	if err := measure(data); err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	raw, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	if err := raw.CheckValid(); err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	makeVisible(raw)
	return raw, nil
}

// unpack reads a profile's bytes, as they are when decompressed.
func unpack(r io.Reader) ([]byte, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return readWithin(in, mostBytes)
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return readWithin(z, mostBytes)
}

// measure goes through a profile's bytes without keeping anything, and refuses
// one that would take far more memory than it has bytes.
func measure(data []byte) error {
	var n sizes
	if err := n.walk(data, wholeProfile); err != nil {
		return err
	}
	switch {
	case n.records > mostRecords:
		return fmt.Errorf("%w: more than %d records", ErrTooLarge, mostRecords)
	case n.numbers > mostFrames:
		return fmt.Errorf("%w: more than %d places and values", ErrTooLarge, mostFrames)
	case n.columns > mostColumns:
		return fmt.Errorf("%w: more than %d kinds of values", ErrTooLarge, mostColumns)
	}
	return nil
}

// message is a kind of protocol buffer in a profile that holds others.
type message int

const (
	wholeProfile message = iota
	aSample
	aLocation
)

// Fields of profile.proto that hold messages, or many numbers in one.
const (
	sampleTypes     = 1 // of the profile
	samples         = 2 // of the profile
	locations       = 4 // of the profile
	sampleLocations = 1 // of a sample
	sampleValues    = 2 // of a sample
	comments        = 13
)

// sizes counts what a profile is made of.
type sizes struct{ records, numbers, columns int }

// walk counts the fields of a message, and those of the messages within it.
func (n *sizes) walk(data []byte, in message) error {
	for len(data) > 0 && n.records <= mostRecords && n.numbers <= mostFrames {
		number, body, rest, err := field(data)
		if err != nil {
			return err
		}
		data = rest
		n.records++
		if in == wholeProfile && number == sampleTypes {
			n.columns++
		}
		if err := n.countField(in, number, body); err != nil {
			return err
		}
	}
	return nil
}

// countField counts what is inside a field.
func (n *sizes) countField(in message, number uint64, body []byte) error {
	switch {
	case in == wholeProfile && number == samples:
		return n.walk(body, aSample)
	case in == wholeProfile && number == locations:
		return n.walk(body, aLocation)
	case in == wholeProfile && number == comments,
		in == aSample && (number == sampleLocations || number == sampleValues):
		for _, b := range body {
			if b < 0x80 { // the last byte of a number
				n.numbers++
			}
		}
	}
	return nil
}

// Wire types of protocol buffers.
const (
	varint  = 0
	fixed64 = 1
	length  = 2 // and as many bytes
	fixed32 = 5
)

var errForm = errors.New("not in pprof's form")

// field cuts the first field off a message: its number, its bytes if it has a
// length, and what follows it.
func field(data []byte) (number uint64, body, rest []byte, err error) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, nil, errForm
	}
	data = data[n:]
	size := uint64(0)
	switch tag & 7 {
	case varint:
		_, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, nil, nil, errForm
		}
		size = uint64(n)
	case fixed64:
		size = 8
	case fixed32:
		size = 4
	case length:
		long, n := binary.Uvarint(data)
		if n <= 0 || long > uint64(len(data)-n) {
			return 0, nil, nil, errForm
		}
		return tag >> 3, data[n:][:long], data[n:][long:], nil
	default:
		return 0, nil, nil, errForm
	}
	if size > uint64(len(data)) {
		return 0, nil, nil, errForm
	}
	return tag >> 3, nil, data[size:], nil
}
