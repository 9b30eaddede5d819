package h2_test

import (
	"fmt"
	"testing"

	"golang.org/x/net/http2"
)

// FuzzFeed has a server say anything. However it is cut, it means the same, and each
// request has one end at most.
func FuzzFeed(f *testing.F) {
	s := newServer()
	s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	s.head(1, false, ":status: 200", "content-length: 5")
	s.WriteDataPadded(1, true, []byte("hello"), make([]byte, 3))
	s.head(3, true, ":status: 404")
	s.WriteWindowUpdate(0, 100)
	f.Add(s.Bytes(), uint8(3))
	s.Reset()
	s.WriteSettings()
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
	s.WriteContinuation(1, true, []byte{0x0f, 0x0d, 0x01, '9'})
	s.WriteRSTStream(5, http2.ErrCodeRefusedStream)
	s.WriteGoAway(1, http2.ErrCodeNo, nil)
	f.Add(s.Bytes(), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		said := func(n int) string {
			c, got, _ := client(3)
			err := feed(c, b, n)
			for i, g := range got {
				if g.ends > 1 {
					t.Errorf("request %d ended %d times", i, g.ends)
				}
			}
			return fmt.Sprint(got, err)
		}
		if whole, parts := said(1<<30), said(1+int(n)); whole != parts {
			t.Errorf("in one piece:\n%s\nin pieces of %d:\n%s", whole, 1+int(n), parts)
		}
	})
}

// BenchmarkAnswers is a request and its answer. The answer's header comes as it did before,
// or as nginx has it, whose fields go into the table each time; or with a field that has
// not been seen.
func BenchmarkAnswers(b *testing.B) {
	fields := []string{":status: 200", "content-type: text/plain", "date: Thu, 26 Nov 2026 17:00:00 GMT", "content-length: 5"}
	nginx := []byte{0x88}
	for _, f := range []struct {
		index byte
		value string
	}{{54, "nginx/1.22.1"}, {33, "Thu, 26 Nov 2026 17:00:00 GMT"}, {31, "text/plain"}, {28, "5"}} {
		nginx = append(nginx, 0x40|f.index, byte(len(f.value)))
		nginx = append(nginx, f.value...)
	}
	for _, form := range []string{"same", "nginx", "fresh"} {
		b.Run(form, func(b *testing.B) {
			c, _, streams := client(1)
			s := newServer()
			s.WriteSettings()
			s.head(1, false, fields...)
			s.WriteData(1, true, []byte("hello"))
			if err := c.Feed(s.Bytes()); err != nil {
				b.Fatal(err)
			}
			s.Reset()
			block := s.block(fields...)
			switch form {
			case "nginx":
				block = nginx
			case "fresh":
				block = append(block, 0x00, 1, 'x', 4, 0, 0, 0, 0)
			}
			s.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block, EndHeaders: true})
			head := s.Len()
			s.WriteData(3, true, []byte("hello"))
			answer := s.Bytes()
			id := uint32(3)
			b.ReportAllocs()
			for b.Loop() {
				c.Out = c.Out[:0]
				c.Start(streams[0])
				for _, at := range []int{5, head + 5} {
					answer[at], answer[at+1], answer[at+2], answer[at+3] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
				}
				if form == "fresh" {
					for i := range 4 {
						answer[head-4+i] = 'a' + byte(id>>(4*i))&15
					}
				}
				if err := c.Feed(answer); err != nil {
					b.Fatal(err)
				}
				if id += 2; id > 1<<30 {
					b.Fatal("the stream numbers are used up")
				}
			}
		})
	}
}
