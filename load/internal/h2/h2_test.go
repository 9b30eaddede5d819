package h2_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tarehq/tare/load/internal/h2"
)

// sink notes what came.
type sink struct {
	status  int
	fields  []hpack.HeaderField
	body    bytes.Buffer
	ends    int
	err     error
	refuses error // what Body returns
}

func (s *sink) Head(status int, fields []hpack.HeaderField) error {
	s.status, s.fields = status, slices.Clone(fields)
	return nil
}

func (s *sink) Body(p []byte) error {
	s.body.Write(p)
	return s.refuses
}

func (s *sink) End(err error) { s.ends, s.err = s.ends+1, err }

func (s *sink) String() string {
	return fmt.Sprintf("status %d, fields %v, body %q, %d ends, error %v", s.status, s.fields, s.body.String(), s.ends, s.err)
}

// get asks for "/".
type get struct{ encoder *h2.Encoder }

var getFields = []h2.Field{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: "/"}}

func (g get) AppendHead(dst []byte, t h2.Table) []byte {
	for _, f := range getFields {
		dst = g.encoder.Append(dst, f, t)
	}
	return dst
}

// client is a connection with n requests under way.
func client(n int) (*h2.Conn, []*sink, []*h2.Stream) {
	e := h2.NewEncoder([][]h2.Field{getFields})
	c := h2.New(e.Need())
	c.Begin()
	var sinks []*sink
	var streams []*h2.Stream
	for range n {
		s := &sink{}
		st := &h2.Stream{Request: get{e}, Sink: s}
		if !c.Start(st) {
			panic("a new connection takes no request")
		}
		sinks, streams = append(sinks, s), append(streams, st)
	}
	return c, sinks, streams
}

// server writes frames.
type server struct {
	bytes.Buffer
	*http2.Framer
	table bytes.Buffer
	enc   *hpack.Encoder
}

func newServer() *server {
	s := &server{}
	s.Framer = http2.NewFramer(&s.Buffer, nil)
	s.AllowIllegalWrites = true
	s.enc = hpack.NewEncoder(&s.table)
	return s
}

// block encodes fields, "name: value" each.
func (s *server) block(fields ...string) []byte {
	s.table.Reset()
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		s.enc.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	return slices.Clone(s.table.Bytes())
}

func (s *server) head(id uint32, end bool, fields ...string) {
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.block(fields...), EndHeaders: true, EndStream: end})
}

// feed feeds b in pieces of n bytes.
func feed(c *h2.Conn, b []byte, n int) error {
	for len(b) > 0 {
		m := min(n, len(b))
		if err := c.Feed(b[:m]); err != nil {
			return err
		}
		b = b[m:]
	}
	return nil
}

func TestAnswers(t *testing.T) {
	s := newServer()
	s.WriteSettings()
	s.head(1, false, ":status: 103", "link: x")
	s.head(3, false, ":status: 200", "content-length: 5", "date: now")
	s.WriteDataPadded(3, false, []byte("hel"), make([]byte, 200))
	s.head(1, true, ":status: 404")
	block := s.block(":status: 200", "date: now", "x: "+strings.Repeat("y", 100))
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: block[:3], PadLength: 9, Priority: http2.PriorityParam{Weight: 1, StreamDep: 1}})
	s.WriteContinuation(5, false, block[3:10])
	s.WriteContinuation(5, true, block[10:])
	s.WriteRawFrame(0xbe, 0, 5, []byte("of no kind that is known"))
	s.WritePriority(5, http2.PriorityParam{Weight: 1, StreamDep: 1})
	s.WriteDataPadded(5, false, nil, make([]byte, 10))
	s.WriteData(5, false, []byte("a body"))
	s.WriteData(3, true, []byte("lo"))
	s.head(5, true, "grpc-status: 0")
	s.WriteSettingsAck()
	for _, n := range []int{1, 2, 9, 13, 1 << 20} {
		c, got, _ := client(3)
		if err := feed(c, s.Bytes(), n); err != nil {
			t.Fatalf("in pieces of %d: %v", n, err)
		}
		for i, want := range []struct {
			status, fields int
			body           string
		}{{404, 0, ""}, {200, 2, "hello"}, {200, 2, "a body"}} {
			if g := got[i]; g.status != want.status || len(g.fields) != want.fields || g.body.String() != want.body || g.ends != 1 || g.err != nil {
				t.Errorf("in pieces of %d: request %d: got %v, want %+v", n, i, g, want)
			}
		}
	}
}

// A block that comes again means the same, unless the table has changed since.
func TestBlocksRepeat(t *testing.T) {
	s := newServer()
	s.WriteSettings()
	for i := range uint32(20) {
		day := i / 5 // a new date puts another into the table
		s.head(1+2*i, true, ":status: 200", fmt.Sprintf("date: %d", day))
	}
	c, got, _ := client(20)
	if err := c.Feed(s.Bytes()); err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if len(g.fields) != 1 || g.fields[0].Value != fmt.Sprint(i/5) || g.ends != 1 {
			t.Errorf("answer %d: got %v, want date %d", i, g, i/5)
		}
	}
}

// What breaks the protocol ends the connection and all on it, with the reason.
func TestBreaches(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*server)
		want  string
		first bool // instead of settings
	}{
		"HTTP/1.1":              {func(s *server) { s.WriteString("HTTP/1.1 400 Bad Request\r\n\r\n") }, "does not begin with HTTP/2", true},
		"no settings":           {func(s *server) { s.WritePing(false, [8]byte{}) }, "does not begin with HTTP/2", true},
		"settings acknowledged": {func(s *server) { s.WriteSettingsAck() }, "does not begin with HTTP/2", true},
		"long frame":            {func(s *server) { s.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<14+1)) }, "longer than the 16384", false},
		"not continued": {func(s *server) {
			s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			s.WritePing(false, [8]byte{})
		}, "not continued", false},
		"continued elsewhere": {func(s *server) {
			s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			s.WriteContinuation(3, true, nil)
		}, "not continued", false},
		"continuation alone": {func(s *server) { s.WriteContinuation(1, true, nil) }, "without a header", false},
		"continued without end": {func(s *server) {
			s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			for range 8000 {
				s.WriteContinuation(1, false, nil)
			}
		}, "longer than 65536", false},
		"push": {func(s *server) {
			s.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, "pushes", false},
		"unknown stream":   {func(s *server) { s.head(99, true, ":status: 200") }, "stream 99, which was not opened", false},
		"its own stream":   {func(s *server) { s.WriteData(2, true, nil) }, "stream 2, which was not opened", false},
		"data for none":    {func(s *server) { s.WriteRawFrame(http2.FrameData, 0, 0, []byte("x")) }, "stream 0", false},
		"data all padding": {func(s *server) { s.WriteRawFrame(http2.FrameData, 0x8, 1, []byte{9, 0}) }, "padding", false},
		"data no padding":  {func(s *server) { s.WriteRawFrame(http2.FrameData, 0x8, 1, nil) }, "padded frame is empty", false},
		"head all padding": {func(s *server) { s.WriteRawFrame(http2.FrameHeaders, 0xc, 1, []byte{9, 0x88}) }, "padding", false},
		"short priority":   {func(s *server) { s.WriteRawFrame(http2.FrameHeaders, 0x24, 1, []byte{0, 0}) }, "too short", false},
		"bad block":        {func(s *server) { s.WriteRawFrame(http2.FrameHeaders, 0x5, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff}) }, "cannot be decoded", false},
		"short reset":      {func(s *server) { s.WriteRawFrame(http2.FrameRSTStream, 0, 1, []byte{0}) }, "instead of 4", false},
		"short ping":       {func(s *server) { s.WriteRawFrame(http2.FramePing, 0, 0, []byte{0}) }, "instead of 8", false},
		"ping for stream":  {func(s *server) { s.WriteRawFrame(http2.FramePing, 0, 1, make([]byte, 8)) }, "ping is for a stream", false},
		"short settings":   {func(s *server) { s.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }, "settings have 5", false},
		"long agreement":   {func(s *server) { s.WriteRawFrame(http2.FrameSettings, 1, 0, make([]byte, 6)) }, "settings have 6", false},
		"stream settings":  {func(s *server) { s.WriteRawFrame(http2.FrameSettings, 0, 1, nil) }, "settings are for a stream", false},
		"large window":     {func(s *server) { s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }, "too large", false},
		"small frames":     {func(s *server) { s.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }, "up to 1 bytes", false},
		"no growth":        {func(s *server) { s.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)) }, "grows by 0", false},
		"much growth":      {func(s *server) { s.WriteWindowUpdate(0, 1<<31-1) }, "grows by 2147483647", false},
		"short growth":     {func(s *server) { s.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 3)) }, "instead of 4", false},
		"short farewell":   {func(s *server) { s.WriteRawFrame(http2.FrameGoAway, 0, 0, make([]byte, 7)) }, "fewer than 8", false},
		"flood": {func(s *server) {
			for range 70000 {
				s.WritePing(false, [8]byte{})
			}
		}, "more than it reads", false},
		"beyond the window": {func(s *server) {
			s.head(1, false, ":status: 200")
			for range 4<<20/16384 + 1 {
				s.WriteData(1, false, nil)
				s.WriteRawFrame(http2.FrameData, 0x8, 1, append([]byte{0xff}, make([]byte, 16383)...))
			}
		}, "", false}, // windows are opened again: no breach
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			if !tt.first {
				s.WriteSettings()
			}
			tt.write(s)
			for _, n := range []int{1 << 30, 5} {
				c, got, _ := client(2)
				err := feed(c, s.Bytes(), n)
				if tt.want == "" {
					if err != nil {
						t.Errorf("got error %v, want none", err)
					}
					continue
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("in pieces of %d: got error %v, want %q in it", n, err, tt.want)
				}
				for i, g := range got {
					if g.ends != 1 || g.err == nil {
						t.Errorf("request %d: got %v, want it ended by the breach", i, g)
					}
				}
				if again := c.Feed([]byte("x")); again == nil {
					t.Error("the connection goes on")
				}
				if c.Start(&h2.Stream{}) {
					t.Error("the connection takes another request")
				}
			}
		})
	}
}

// What is wrong with one answer ends that one.
func TestStreamEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(*server)
		want   string
		broken bool
	}{
		"reset":                {func(s *server) { s.WriteRSTStream(1, http2.ErrCodeInternal) }, "INTERNAL_ERROR", true},
		"refused":              {func(s *server) { s.WriteRSTStream(1, http2.ErrCodeRefusedStream) }, "refused", true},
		"unknown code":         {func(s *server) { s.WriteRSTStream(1, 99) }, "unknown", true},
		"no status":            {func(s *server) { s.head(1, true, "a: b") }, "no status", false},
		"status 99":            {func(s *server) { s.head(1, true, ":status: 99") }, "outside 100 to 599", false},
		"status 999":           {func(s *server) { s.head(1, true, ":status: 999") }, "outside 100 to 599", false},
		"two statuses":         {func(s *server) { s.head(1, true, ":status: 200", ":status: 200") }, "only one", false},
		"status behind":        {func(s *server) { s.head(1, true, "a: b", ":status: 200") }, "first", false},
		"a path":               {func(s *server) { s.head(1, true, ":status: 200", ":path: /") }, "lower-case", false},
		"upper case":           {func(s *server) { s.head(1, true, ":status: 200", "Date: now") }, "lower-case", false},
		"line end":             {func(s *server) { s.head(1, true, ":status: 200", "a: b\r\nc") }, "control", false},
		"interim at the end":   {func(s *server) { s.head(1, true, ":status: 100") }, "cannot have status", false},
		"switching":            {func(s *server) { s.head(1, false, ":status: 101") }, "cannot have status", false},
		"bad length":           {func(s *server) { s.head(1, false, ":status: 200", "content-length: -1") }, "not one number", false},
		"two lengths":          {func(s *server) { s.head(1, false, ":status: 200", "content-length: 1", "content-length: 1") }, "not one number", false},
		"body first":           {func(s *server) { s.WriteData(1, true, []byte("x")) }, "before the header", false},
		"trailer that goes on": {func(s *server) { s.head(1, false, ":status: 200"); s.head(1, false, "a: b") }, "does not end", false},
		"trailer with status":  {func(s *server) { s.head(1, false, ":status: 200"); s.head(1, true, ":status: 200") }, "has a status", false},
		"window of none":       {func(s *server) { s.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4)) }, "grows by 0", false},
		"window too large":     {func(s *server) { s.WriteWindowUpdate(1, 1<<31-1) }, "grows by", false},
		"control characters":   {func(s *server) { s.head(1, true, ":status: 200", "a: "+strings.Repeat("\x01", 10), "b: b") }, "control", false},
		"long header": {func(s *server) {
			s.head(1, true, append([]string{":status: 200"}, slices.Repeat([]string{"a: " + strings.Repeat("b", 4000)}, 17)...)...)
		}, "longer than 65536", false},
		"longer than its length": {func(s *server) {
			s.head(1, false, ":status: 200", "content-length: 1")
			s.WriteData(1, true, []byte("xy"))
		}, "longer than its", false},
		"shorter than its length": {func(s *server) {
			s.head(1, false, ":status: 200", "content-length: 3")
			s.WriteData(1, true, []byte("xy"))
		},
			"ends before its", true},
		"goodbye": {func(s *server) { s.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) }, "ENHANCE_YOUR_CALM", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.WriteSettings()
			tt.write(s)
			if name != "goodbye" {
				s.head(3, true, ":status: 204", "content-length: 7")
			}
			c, got, _ := client(2)
			if err := feed(c, s.Bytes(), 11); err != nil {
				t.Fatalf("the connection ended: %v", err)
			}
			var broken *h2.BrokenError
			if g := got[0]; g.ends != 1 || g.err == nil || !strings.Contains(g.err.Error(), tt.want) || errors.As(g.err, &broken) != tt.broken {
				t.Errorf("got %v, want an error with %q, broken %t", g, tt.want, tt.broken)
			}
			if g := got[1]; g.ends != 1 || (g.err == nil) != (name != "goodbye") {
				t.Errorf("the other request: got %v, want it answered", g)
			}
		})
	}
}

// read returns the frames that the client wrote, its preface and settings left out.
func read(t *testing.T, out []byte) (frames []http2.Frame) {
	t.Helper()
	out = bytes.TrimPrefix(out, []byte(http2.ClientPreface))
	for len(out) > 0 {
		f := http2.NewFramer(io.Discard, bytes.NewReader(out)) // one a frame: it reuses memory
		f.AllowIllegalReads = true
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("the client wrote what is not HTTP/2: %v", err)
		}
		frames = append(frames, frame)
		out = out[9+frame.Header().Length:]
	}
	return frames
}

// sent is how many bytes of bodies the frames hold, and how often one ends.
func sent(frames []http2.Frame) (n, ends int) {
	for _, f := range frames {
		if d, ok := f.(*http2.DataFrame); ok {
			n += int(d.Length)
			if d.StreamEnded() {
				ends++
			}
		}
	}
	return n, ends
}

// A body goes no further than the server allows, and goes on when it allows more.
func TestBodiesKeepToWindows(t *testing.T) {
	const size = 200_000
	e := h2.NewEncoder([][]h2.Field{getFields})
	c := h2.New(e.Need())
	c.Begin()
	got := &sink{}
	st := &h2.Stream{Request: get{e}, Sink: got, Body: make([]byte, size)}
	c.Start(st)
	total := 0
	flush := func() int {
		t.Helper()
		n, ends := sent(read(t, c.Out))
		c.Out = c.Out[:0]
		c.Fill()
		if total += n; ends > 0 && total != size {
			t.Fatalf("the body ended after %d bytes of %d", total, size)
		}
		return n
	}
	drain := func() int {
		n := 0
		for len(c.Out) > 0 {
			n += flush()
		}
		return n
	}
	if n := drain(); n != 65535 {
		t.Errorf("at first: %d bytes were sent, want 65535", n)
	}
	s := newServer()
	s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100_000}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20_000})
	c.Feed(s.Bytes())
	if n := drain(); n != 0 {
		t.Errorf("%d bytes were sent beyond the connection's window", n)
	}
	s.Reset()
	s.WriteWindowUpdate(0, 1<<20)
	c.Feed(s.Bytes())
	if n := drain(); n != 100_000-65535 {
		t.Errorf("the stream's window is %d: %d bytes were sent, want the rest of that", 100_000, n)
	}
	s.Reset()
	s.WriteWindowUpdate(1, 1<<20)
	c.Feed(s.Bytes())
	if drain(); total != size {
		t.Errorf("%d bytes of %d were sent", total, size)
	}
	s.Reset()
	s.head(1, true, ":status: 200")
	if err := c.Feed(s.Bytes()); err != nil || got.ends != 1 || got.err != nil {
		t.Errorf("got %v and %v, want an answer", got, err)
	}
}

// An answer before the rest of the body ends the request, which the server is told.
func TestAnswerBeforeBody(t *testing.T) {
	e := h2.NewEncoder([][]h2.Field{getFields})
	c := h2.New(e.Need())
	c.Begin()
	got := &sink{}
	c.Start(&h2.Stream{Request: get{e}, Sink: got, Body: make([]byte, 1<<20)})
	s := newServer()
	s.WriteSettings()
	s.head(1, true, ":status: 413")
	if err := c.Feed(s.Bytes()); err != nil || got.status != 413 || got.err != nil || got.ends != 1 {
		t.Fatalf("got %v and %v, want the answer", got, err)
	}
	frames := read(t, c.Out)
	if !slices.ContainsFunc(frames, func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream }) {
		t.Errorf("the client wrote %v, want the stream's end among them", frames)
	}
	c.Out = c.Out[:0]
	if c.Fill(); len(c.Out) > 0 {
		t.Errorf("%d bytes of a body follow that nobody waits for", len(c.Out))
	}
}

// The server learns that what it sent was read, in all.
func TestWindowsOpenAgain(t *testing.T) {
	c, got, _ := client(1)
	s := newServer()
	s.WriteSettings()
	s.head(1, false, ":status: 200")
	c.Feed(s.Bytes())
	c.Out = c.Out[:0]
	s.Reset()
	s.WriteData(1, false, make([]byte, 16384))
	const n = 600 << 20 / 16384
	var stream, conn int
	for range n {
		if err := c.Feed(s.Bytes()); err != nil {
			t.Fatal(err)
		}
		if len(c.Out) == 0 {
			continue
		}
		for _, f := range read(t, c.Out) {
			if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 0 {
				conn += int(w.Increment)
			} else if ok {
				stream += int(w.Increment)
			}
		}
		c.Out = c.Out[:0]
		got[0].body.Reset()
	}
	if all := n * 16384; stream < all-4<<20 || stream > all || conn < 1<<29 || conn > all {
		t.Errorf("of %d bytes the stream's window got back %d and the connection's %d", all, stream, conn)
	}
}

// Requests wait for the server to allow them, in their order; those that were not sent can
// go elsewhere.
func TestAllowed(t *testing.T) {
	c, got, streams := client(1)
	s := newServer()
	s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	c.Feed(s.Bytes())
	for range 4 {
		g := &sink{}
		st := &h2.Stream{Request: streams[0].Request, Sink: g}
		if !c.Full() || c.Allowed() != 1 || !c.Start(st) {
			t.Fatal("the connection is not full, or takes no request that waits")
		}
		got, streams = append(got, g), append(streams, st)
	}
	c.Cancel(streams[1])
	c.Cancel(streams[1])
	c.Out = c.Out[:0]
	s.Reset()
	s.head(1, true, ":status: 200")
	c.Feed(s.Bytes())
	if f := read(t, c.Out); len(f) != 1 || f[0].Header().StreamID != 3 || got[0].ends != 1 {
		t.Errorf("got %v after the first was answered, want one more request", f)
	}
	c.Out = c.Out[:0]
	c.Cancel(streams[2]) // on its way: the next begins
	if f := read(t, c.Out); len(f) != 2 || f[0].Header().Type != http2.FrameRSTStream || f[1].Header().StreamID != 5 {
		t.Errorf("got %v after one was cancelled, want its end and one more request", f)
	}
	s.Reset()
	s.head(3, true, ":status: 200") // crossed the cancelling
	s.WriteGoAway(5, http2.ErrCodeNo, nil)
	s.head(5, true, ":status: 200")
	if err := c.Feed(s.Bytes()); err != nil {
		t.Fatal(err)
	}
	if got[3].err != nil || got[3].ends != 1 || got[4].err != h2.ErrUnsent || got[1].ends+got[2].ends != 0 {
		t.Errorf("got %v, want the fourth answered, the fifth unsent, no word of the cancelled", got)
	}
	if c.Start(streams[0]) || !c.Leaving() {
		t.Error("a connection that is to end takes a request")
	}
}

// takeHeads takes what the connection wrote, and is how many requests that begins.
func takeHeads(t *testing.T, c *h2.Conn) (n int) {
	t.Helper()
	for _, f := range read(t, c.Out) {
		if f.Header().Type == http2.FrameHeaders {
			n++
		}
	}
	c.Out = c.Out[:0]
	return n
}

// What the server allows may change while requests are under way.
func TestAllowedChanges(t *testing.T) {
	c, got, streams := client(3)
	heads := func() int { return takeHeads(t, c) }
	if n := heads(); n != 3 {
		t.Fatalf("%d requests were sent before the server had said anything, want 3", n)
	}
	var more []*h2.Stream
	for range 3 {
		g := &sink{}
		got = append(got, g)
		more = append(more, &h2.Stream{Request: streams[0].Request, Sink: g})
	}
	s := newServer()
	id := uint32(1)
	for _, step := range []struct{ allowed, start, answered, sent int }{
		{0, 1, 0, 0}, // none more, whatever ends
		{0, 0, 1, 0},
		{2, 1, 0, 0}, // as many as are under way
		{2, 0, 1, 1},
		{100, 1, 0, 2},
	} {
		s.Reset()
		s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(step.allowed)})
		for range step.answered {
			s.head(id, true, ":status: 200")
			id += 2
		}
		if err := c.Feed(s.Bytes()); err != nil {
			t.Fatal(err)
		}
		for range step.start {
			if !c.Start(more[0]) {
				t.Fatal("the connection takes no request")
			}
			more = more[1:]
		}
		if n := heads(); n != step.sent {
			t.Errorf("%+v: %d requests were sent", step, n)
		}
	}
	s.Reset()
	for ; id <= 11; id += 2 {
		s.head(id, true, ":status: 200")
	}
	if err := c.Feed(s.Bytes()); err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if g.ends != 1 || g.err != nil || g.status != 200 {
			t.Errorf("request %d: got %v, want an answer", i, g)
		}
	}
}

// A server that names no limit of streams has none.
func TestUnlimitedStreams(t *testing.T) {
	c, _, _ := client(150)
	if n := takeHeads(t, c); n != 100 {
		t.Fatalf("%d requests were sent before the server had said anything, want 100", n)
	}
	s := newServer()
	s.WriteSettings()
	if err := c.Feed(s.Bytes()); err != nil {
		t.Fatal(err)
	}
	if n := takeHeads(t, c); n != 50 {
		t.Errorf("%d more requests were sent, want 50", n)
	}
}

// Many streams end in any order, and each answer is its own stream's.
func TestManyStreams(t *testing.T) {
	c, got, _ := client(100)
	s := newServer()
	s.WriteSettings()
	order := rand.New(rand.NewPCG(1, 2)).Perm(100)
	for _, i := range order {
		s.head(uint32(1+2*i), false, ":status: 200", fmt.Sprintf("content-length: %d", len(fmt.Sprint(i))))
	}
	slices.Reverse(order)
	for _, i := range order {
		s.WriteData(uint32(1+2*i), true, fmt.Append(nil, i))
	}
	if err := feed(c, s.Bytes(), 1000); err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if g.ends != 1 || g.err != nil || g.body.String() != fmt.Sprint(i) {
			t.Errorf("request %d: got %v", i, g)
		}
	}
}

// Until it begins a connection only listens, and requests keep to what it hears. One that
// cannot be opened ends them.
func TestBegin(t *testing.T) {
	for _, opened := range []bool{true, false} {
		e := h2.NewEncoder([][]h2.Field{getFields})
		c := h2.New(e.Need())
		got := []*sink{{}, {}}
		for _, g := range got {
			c.Start(&h2.Stream{Request: get{e}, Sink: g})
		}
		c.Out = c.Out[:0]
		if !opened {
			c.Close(io.ErrClosedPipe)
			if got[0].err != io.ErrClosedPipe || got[1].err != io.ErrClosedPipe {
				t.Errorf("got %v, want both ended by the connection's error", got)
			}
			continue
		}
		s := newServer()
		s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		c.Feed(s.Bytes())
		c.Begin()
		heads := 0
		for _, f := range read(t, c.Out) {
			if f.Header().Type == http2.FrameHeaders {
				heads++
			}
		}
		if heads != 1 {
			t.Errorf("%d requests were sent, want the one allowed", heads)
		}
	}
}

// A sink that refuses what comes ends its stream, and hears of that once.
func TestSinkRefuses(t *testing.T) {
	c, got, _ := client(2)
	got[0].refuses = errors.New("enough")
	s := newServer()
	s.WriteSettings()
	s.head(1, false, ":status: 200")
	s.WriteData(1, false, []byte("a"))
	s.WriteData(1, true, []byte("b"))
	s.head(3, true, ":status: 200")
	if err := c.Feed(s.Bytes()); err != nil || got[0].err != got[0].refuses || got[0].ends != 1 || got[0].body.Len() != 1 || got[1].err != nil {
		t.Errorf("got %v and %v, want the first ended by its sink and the second answered", got, err)
	}
	c.Close(io.EOF)
	if got[0].ends != 1 || got[1].ends != 1 {
		t.Errorf("got %v, want no end twice", got)
	}
}
