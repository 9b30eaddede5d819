package watchverb

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/watchverb/upload"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/ring"
)

// enough samples are kept as a profile of their own. Fewer are joined for up to a minute:
// making and keeping a profile costs far more than taking a sample.
const enough = 20

// held is a profile that is not kept yet.
type held struct {
	watch.Seen
	begun, end time.Time
	samples    float64
	rules      *cost.Rules
	kinds      map[string]string // of owners, by their names
}

// keep keeps the profiles of an interval's builds, and sends them, once they are whole.
func (o *output) keep(i *watch.Interval) {
	if o.ring == nil && o.upload == nil {
		return
	}
	end := i.Begun.Add(i.Duration)
	for k := range i.Services {
		for n := range i.Services[k].Builds {
			o.hold(i, &i.Services[k], &i.Services[k].Builds[n])
		}
	}
	o.release(func(h *held) bool {
		return h.samples >= enough || h.Window.Duration+i.Duration > time.Minute || h.end.Before(end)
	})
}

// hold adds what was seen of a build. A profile has intervals of which all have a count of
// requests, or none has. It ends once all that were counted are counted anew, so that what
// errs by one count is not mixed with what errs by the next.
func (o *output) hold(i *watch.Interval, of *watch.Service, s *watch.Seen) {
	if len(s.Stacks) == 0 {
		return
	}
	h := o.held[s.Build]
	if h != nil && ((h.Window.Requests > 0) != (s.Window.Requests > 0) || s.Counted.After(h.begun)) {
		o.release(func(other *held) bool { return other == h })
		h = nil
	}
	if h == nil {
		h = &held{Seen: watch.Seen{Build: s.Build, Counted: s.Counted}, begun: i.Begun, kinds: map[string]string{}}
		o.held[s.Build] = h
	}
	h.Stacks = append(h.Stacks, s.Stacks...)
	for k := range s.Stacks {
		h.samples += s.Stacks[k].Count
	}
	h.Window.Duration += s.Window.Duration
	h.Window.Requests += s.Window.Requests
	h.Window.Margin += s.Window.Margin // of one count, so that they err together
	h.end, h.rules = i.Begun.Add(i.Duration), of.Rules
	maps.Copy(h.kinds, kindsOf(of.Bill))
}

// release keeps some of the profiles that are held, and sends them.
func (o *output) release(which func(*held) bool) {
	for build, h := range o.held {
		if !which(h) {
			continue
		}
		delete(o.held, build)
		if err := o.put(h); err != nil {
			o.fail("keep", 1, err)
		}
	}
}

// put keeps a profile, and sends it.
func (o *output) put(h *held) error {
	p := pprof.New(pprof.CPU, h.Window.Duration, h.Stacks)
	p.SetOrigin(h.begun, h.ID)
	p.SetRequests(h.Window.Requests, h.Window.Margin)
	p.SetCounted(h.Counted)
	var b bytes.Buffer
	if o.zip == nil {
		o.zip, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed) // there is such a level
	}
	o.zip.Reset(&b)
	if err := errors.Join(p.LabelBy(h.rules, o.zip), o.zip.Close()); err != nil {
		o.fail("profile", 1, err)
		return nil
	}
	if o.upload != nil {
		o.upload.Send(&upload.Profile{Service: h.Service, Build: h.ID, Revision: h.Revision, Begun: h.begun, Duration: h.Window.Duration,
			PProf: b.Bytes(), Stacks: h.Stacks, Rules: h.rules, Kinds: h.kinds})
	}
	if o.ring == nil {
		return nil
	}
	path, err := o.ring.Put(ring.Entry{Service: h.Service, Build: h.ID, Begun: h.begun, Duration: h.Window.Duration}, func(w io.Writer) error {
		_, err := w.Write(b.Bytes()) // again, if the disk was full
		return err
	})
	if err == nil {
		o.kept[h.Service] = path
	}
	return err
}

// kindsOf are the kinds of owners, by their names.
func kindsOf(b *cost.Bill) map[string]string {
	kinds := map[string]string{}
	for k := range b.Items {
		kinds[b.Items[k].Owner] = b.Items[k].Kind
	}
	return kinds
}
