//go:build linux && amd64

package bpf_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
)

func TestLabels(t *testing.T) {
	const maps = `00400000-00401000 r--p 00000000 fe:00 1234 /srv/my app
00401000-0067e000 r-xp 00001000 fe:00 1234                       /srv/my app
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 fe:00 99 /usr/lib/libc.so.6 (deleted)
7f0000004000-7f0000005000 r-xp 00000000 00:00 0
7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]
`
	got, err := bpf.Labels(strings.NewReader(maps), 0x400000, 0x401000, 0x67dfff, 0x67e000, 0x7f0000000000, 0x7f0000002010, 0x7f0000004000, 0x7fff00000001, 0, ^uint64(0))
	want := []string{"[unknown]", "[my app]", "[my app]", "[unknown]", "[unknown]", "[libc.so.6 (deleted)]", "[unknown]", "[vdso]", "[unknown]", "[unknown]"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	if _, err := bpf.Labels(strings.NewReader("xyz-00 r-xp 00000000 fe:00 1 /x\n")); err == nil {
		t.Error("mappings that cannot be read: no error")
	}
}

// TestForeignCode checks that stacks of code that keeps no frame pointers end where
// their chain leaves all code.
func TestForeignCode(t *testing.T) {
	const maps = `00401000-0067e000 r-xp 00001000 fe:00 1234 /srv/app
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 fe:00 99 /usr/lib/libc.so.6
`
	for _, tt := range []struct {
		chain []uint64
		want  []string
	}{
		{[]uint64{0x7f0000002010, 0x401020}, []string{"[libc.so.6]", "[app]"}},
		{[]uint64{0x401010, 0xc000123456, 0x7f0000000010}, []string{"[app]"}},
		{[]uint64{0x401010, 0xc000123456, 0x401020}, []string{"[app]", "[unknown]", "[app]"}},
		{[]uint64{0xc000123456, 0xc000123456}, []string{"[unknown]"}},
	} {
		if got, err := bpf.UserNames(strings.NewReader(maps), tt.chain...); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%#x: got %q, %v, want %q", tt.chain, got, err, tt.want)
		}
	}
}

func TestKernelNames(t *testing.T) {
	const list = `ffffffff81000000 T _stext
ffffffff81000100 t helper
ffffffff81000200 D data
ffffffffc0000000 t nf_hook	[nf_tables]
`
	for _, tt := range []struct {
		list  string
		addrs []uint64
		want  []string
	}{
		{list, []uint64{0xffffffff81000100, 0xffffffff81000100, 0xffffffffc0000010}, []string{"[kernel] helper", "[kernel] _stext", "[kernel] nf_hook"}},
		{list, []uint64{0x1000}, []string{"[kernel]"}},
		{list, nil, nil},
		{"0000000000000000 T _stext\n", []uint64{0xffffffff81000100, 0xffffffff81000200}, []string{"[kernel]"}},
	} {
		got, err := bpf.KernelNames(strings.NewReader(tt.list), tt.addrs...)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%#x: got %q, %v, want %q", tt.addrs, got, err, tt.want)
		}
	}
}

// TestAllowed says which setting of the kernel's stands in the way, so that a service's
// own profiles are taken instead.
func TestAllowed(t *testing.T) {
	for _, tt := range []struct {
		hz      int
		setting string
		want    string
	}{
		{499, "100000\n", ""}, {499, "499\n", ""}, {499, "", ""},
		{499, "1\n", "499 samples a second are wanted, and kernel.perf_event_max_sample_rate allows 1"},
	} {
		err := bpf.Allowed(tt.hz, tt.setting)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !errors.Is(err, cost.ErrNotSupported)) {
			t.Errorf("%d of %q: got %v, want %q", tt.hz, tt.setting, err, tt.want)
		}
	}
}
