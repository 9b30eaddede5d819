//go:build linux && amd64

package bpf_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarehq/tare/cost/bpf"
)

// sample is one of the ring's, with so many calls in its stacks.
func sample(kernel, user, stack int) bpf.Astray {
	a := bpf.Astray{Bytes: uint32(8 * stack)}
	s := &a.Sample
	s.Weight, s.Ip, s.Sp, s.Bp = rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()
	s.Pid, s.TopBytes, s.Switched = rand.Uint32(), rand.Uint32(), rand.Uint32()
	s.KernelBytes, s.UserBytes = int32(8*kernel), int32(8*user)
	for _, part := range [][]uint64{s.Top[:], s.Kernel[:max(0, kernel)], s.User[:max(0, user)], a.Stack[:stack]} {
		for k := range part {
			part[k] = rand.Uint64()
		}
	}
	return a
}

// TestRead reads samples as encoding/binary does, by the types that were generated of the
// program in the kernel.
func TestRead(t *testing.T) {
	var got bpf.Astray // what an earlier sample left is not to be seen
	for _, n := range [][3]int{{64, 127, 768}, {0, 0, 0}, {-1, -1, 128}, {3, 20, 0}} {
		want := sample(n[0], n[1], n[2])
		var raw bytes.Buffer
		if err := binary.Write(&raw, binary.NativeEndian, &want); err != nil {
			t.Fatal(err)
		}
		whole := raw.Bytes()
		if n[2] == 0 {
			whole = whole[:binary.Size(want.Sample)]
		}
		if err := bpf.Read(whole, &got); err != nil {
			t.Fatal(err)
		}
		g, w := got, want
		same := slices.Equal(g.Sample.Kernel[:max(0, n[0])], w.Sample.Kernel[:max(0, n[0])]) &&
			slices.Equal(g.Sample.User[:max(0, n[1])], w.Sample.User[:max(0, n[1])]) && slices.Equal(g.Stack[:n[2]], w.Stack[:n[2]])
		for _, a := range []*bpf.Astray{&g, &w} {
			clear(a.Sample.Kernel[:])
			clear(a.Sample.User[:])
			clear(a.Stack[:])
		}
		if !same || g != w {
			t.Errorf("%v: got %+v, want %+v", n, got, want)
		}
	}
	if err := bpf.Read(make([]byte, 100), &got); err == nil {
		t.Error("a cut sample: no error")
	}
}

func BenchmarkRead(b *testing.B) {
	a := sample(10, 20, 0)
	var raw bytes.Buffer
	if err := binary.Write(&raw, binary.NativeEndian, &a.Sample); err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"by=hand":   func() error { return bpf.Read(raw.Bytes(), &a) },
		"by=binary": func() error { return binary.Read(bytes.NewReader(raw.Bytes()), binary.NativeEndian, &a.Sample) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
