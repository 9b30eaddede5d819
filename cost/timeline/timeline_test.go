package timeline_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/timeline"
)

// requests are of a service with a lock that one request waited for.
func requests() *exectrace.Requests {
	queue := exectrace.Owner{Kind: "middleware", Name: "mw.Queue", Where: "mw/queue.go"}
	lock := exectrace.Cause{State: exectrace.Locked, Owner: queue, At: "example.org/mw.Queue.func1", Released: &queue, By: "example.org/mw.Flush"}
	run := exectrace.Cause{State: exectrace.Running, Owner: exectrace.Owner{Kind: "handler", Name: "<b>users</b>"}, At: "main.users"}
	return &exectrace.Requests{
		Duration: time.Second, Count: 3, SlowerThan: 50 * time.Millisecond,
		Quantiles: []exectrace.Quantile{{Q: 0.5, Duration: time.Millisecond}, {Q: 1, Duration: 81 * time.Millisecond}},
		Slow: exectrace.Group{Count: 1, Time: 81 * time.Millisecond, Parts: []exectrace.Part{
			{Cause: lock, Time: 80 * time.Millisecond, Times: 1, Requests: 1}, {Cause: run, Time: time.Millisecond, Times: 1, Requests: 1},
		}},
		Fast: exectrace.Group{Count: 2, Time: 2 * time.Millisecond, Parts: []exectrace.Part{{Cause: run, Time: 2 * time.Millisecond, Times: 2, Requests: 2}}},
		Slowest: []exectrace.Request{{Duration: 81 * time.Millisecond, Begin: time.Millisecond, Log: "GET /<users>", Segments: []exectrace.Segment{
			{Cause: lock, Duration: 80 * time.Millisecond}, {Cause: run, Begin: 80 * time.Millisecond, Duration: time.Millisecond},
		}}},
		Warnings: []string{"the trace breaks off"},
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := timeline.Write(&b, "localhost:6060", requests()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"Slow requests of localhost:6060", "longest <b>81.0 ms</b>", "<b>1</b> took 50.0 ms or longer", "the trace breaks off",
		"<b>lock</b>: mw.Queue", "middleware, mw/queue.go, in mw.Queue.func1, ended by mw.Queue", "&#43;80.0 ms", "<td>100.0 %</td>", "1 of 1",
		"&lt;b&gt;users&lt;/b&gt;", "GET /&lt;users&gt;", `style="width:98.765%;background:#228833"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "<b>users"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	wellFormed(t, page)
}

// wellFormed checks that what is opened is closed.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict = false
	d.AutoClose = xml.HTMLAutoClose
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
}

func TestWriteNothingSlow(t *testing.T) {
	r := requests()
	r.Slow, r.SlowerThan, r.Count = exectrace.Group{}, time.Second, 2
	var b strings.Builder
	if err := timeline.Write(&b, "x.trace", r); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); !strings.Contains(page, "Nothing was slow: no request took 1.00 s.") || strings.Contains(page, "What is different") {
		t.Error("the page does not say that nothing was slow, or says what is different about it")
	}
	b.Reset()
	if err := timeline.Write(&b, "nothing", &exectrace.Requests{}); err != nil || strings.Contains(b.String(), "Nothing was slow") {
		t.Errorf("writing a page of no requests: %v, or it says how fast they were", err)
	}
}

func Example() {
	var page strings.Builder
	err := timeline.Write(&page, "localhost:6060", requests())
	fmt.Println(err, strings.HasPrefix(page.String(), "<!doctype html>"))
	// Output: <nil> true
}
