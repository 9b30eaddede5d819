// Package block encodes requests as HTTP/2's header blocks.
package block

import (
	"strconv"

	"github.com/tarehq/tare/load/internal/h2"
	"github.com/tarehq/tare/load/internal/template"
)

// Field is a field of a request's header. Pseudo-header fields come first.
type Field struct {
	Name  string // in lower case
	Value template.Template
	Sized bool // the value is the length of the body instead, which varies
}

func (f *Field) varies() bool { return f.Sized || f.Value.Dynamic() }

// Blocks are the header blocks of requests by target. They do not change and are safe for
// concurrent use.
type Blocks struct {
	encoder *h2.Encoder
	targets [][3][]part // by h2.Table
}

// part is a piece of a header block: bytes, and behind them a value if it varies.
type part struct {
	fixed  []byte
	value  template.Template
	varies bool
	sized  bool
}

// New encodes the headers of requests, one a target.
func New(targets [][]Field) *Blocks {
	fixed := make([][]h2.Field, len(targets))
	for i, fields := range targets {
		for _, f := range fields {
			if !f.varies() {
				fixed[i] = append(fixed[i], f.fixed())
			}
		}
	}
	b := &Blocks{encoder: h2.NewEncoder(fixed), targets: make([][3][]part, len(targets))}
	for i, fields := range targets {
		for t := range b.targets[i] {
			b.targets[i][t] = b.encode(fields, h2.Table(t))
		}
	}
	return b
}

func (f *Field) fixed() h2.Field { return h2.Field{Name: f.Name, Value: f.Value.Fill(nil)} }

// encode lays fields out as a header block.
func (b *Blocks) encode(fields []Field, t h2.Table) []part {
	var parts []part
	var bytes []byte
	for _, f := range fields {
		if !f.varies() {
			bytes = b.encoder.Append(bytes, f.fixed(), t)
			continue
		}
		parts = append(parts, part{b.encoder.AppendName(bytes, f.Name), f.Value, true, f.Sized})
		bytes = nil
	}
	return append(parts, part{fixed: bytes})
}

// Need is how many bytes of a server's table the fields take that requests share.
func (b *Blocks) Need() int { return b.encoder.Need() }

// Filling is what fills the fields of a request that vary.
type Filling struct {
	Record []string
	Size   int // of the body, in bytes
}

// Append appends the header block of a request for a target.
func (b *Blocks) Append(dst []byte, target int, t h2.Table, by Filling) []byte {
	for _, p := range b.targets[target][t] {
		dst = append(dst, p.fixed...)
		switch {
		case p.sized:
			dst = h2.AppendValue(dst, strconv.Itoa(by.Size))
		case p.varies:
			dst = h2.AppendValue(dst, p.value.Fill(by.Record))
		}
	}
	return dst
}
