//go:build linux

package arm

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestColon(t *testing.T) {
	status := []byte("Name:\tVmRSS: 7\nVmHWM:\t   2048 kB\nThreads:\t5\nEmpty:\n")
	for name, want := range map[string]uint64{"VmHWM": 2048, "Threads": 5, "VmRSS": 0, "Empty": 0, "Name": 0} {
		if got := colon(status, name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// diagAnswer is one socket in a datagram of answers.
func diagAnswer(state byte, port uint16) []byte {
	b := make([]byte, headerLen+answerLen)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	b[headerLen+answerState] = state
	binary.BigEndian.PutUint16(b[headerLen+answerSport:], port)
	return b
}

func netlinkEnd(kind uint16, payload ...byte) []byte {
	b := make([]byte, headerLen, headerLen+len(payload))
	binary.NativeEndian.PutUint32(b, uint32(headerLen+len(payload)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	return append(b, payload...)
}

func TestParseSockets(t *testing.T) {
	enoent := make([]byte, 4)
	binary.NativeEndian.PutUint32(enoent, ^uint32(unix.ENOENT)+1)
	tests := []struct {
		name     string
		datagram []byte
		want     Sockets
		done, ok bool
	}{
		{"answers", slices.Concat(diagAnswer(6, 80), diagAnswer(6, 80), diagAnswer(10, 80), diagAnswer(1, 81)), Sockets{"TIME_WAIT": 2, "LISTEN": 1}, false, true},
		{"last", slices.Concat(diagAnswer(1, 80), netlinkEnd(unix.NLMSG_DONE)), Sockets{"ESTABLISHED": 1}, true, true},
		{"unknown state", diagAnswer(77, 80), Sockets{"77": 1}, false, true},
		{"refused", netlinkEnd(unix.NLMSG_ERROR, enoent...), Sockets{}, false, false},
		{"short answer", netlinkEnd(diagByFamily, 1, 2, 3), Sockets{}, false, false},
		{"short error", netlinkEnd(unix.NLMSG_ERROR, 1), Sockets{}, false, false},
		{"length beyond the end", diagAnswer(1, 80)[:headerLen+8], Sockets{}, false, false},
		{"length 0", make([]byte, headerLen), Sockets{}, false, false},
		{"nothing", nil, Sockets{}, false, true},
	}
	for _, tt := range tests {
		got := Sockets{}
		done, err := got.parse(tt.datagram, 80)
		if !maps.Equal(got, tt.want) || done != tt.done || (err == nil) != tt.ok {
			t.Errorf("%s: got %v, %v, %v, want %v, %v", tt.name, got, done, err, tt.want, tt.done)
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(slices.Concat(diagAnswer(6, 80), netlinkEnd(unix.NLMSG_DONE)))
	f.Add(netlinkEnd(unix.NLMSG_ERROR, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		n := Sockets{}
		_, _ = n.parse(datagram, 80)
		var sum int
		for _, v := range n {
			sum += v
		}
		if sum > len(datagram)/(headerLen+answerLen) {
			t.Errorf("%x: counted %d sockets, more than fit", datagram, sum)
		}
	})
}
