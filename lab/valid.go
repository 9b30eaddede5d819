package lab

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/unit"
)

// Bounds beyond which a trial says more of the instrument than of the arm.
const (
	maxGeneratorShare = 0.80 // of its CPUs
	minAchieved       = 0.98 // of the offered rate
	maxLittle         = 0.10 // by Little's law: beyond it requests were lost, or times taken wrongly
)

// unverified says how many answers were wrong.
func unverified(c *load.Counts) string {
	verb := "were"
	if c.Unverified == 1 {
		verb = "was"
	}
	return fmt.Sprintf("%d of %s %s not as the workload asks; by status: %s", c.Unverified, unit.Plural(c.Answered(), "answer"), verb, c.Status)
}

// failed says how many requests failed, if more than may.
func (s *session) failed(c *load.Counts) string {
	most, n := s.w.FailuresOr(), c.Failed()
	if s.w.Flow != nil {
		n += c.Dropped + c.Unverified // a user who was answered wrongly has failed
	}
	if float64(n) <= most*float64(c.Scheduled) {
		return ""
	}
	return fmt.Sprintf("%d of %s failed, more than %.2g %%", n, unit.Plural(c.Scheduled, "request"), 100*most)
}

// faults are the reasons for which a trial cannot be trusted.
func (s *session) faults(res *load.Result) []string {
	var why []string
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	c := res.Counts
	if s.before.err != nil {
		add("reading the arm before the load: %v", s.before.err)
	}
	if s.after.err != nil {
		add("reading the arm after the load: %v", s.after.err)
	}
	if died := s.proc.Failure(nil); died != nil {
		add("under load: %v", died)
	}
	if c.Unverified > 0 && s.w.Flow == nil {
		add("%s", unverified(&c))
	}
	if s.seen != nil {
		why = append(why, s.seen.Faults...)
	}
	if res.Within == 0 {
		add("no request was answered within the measured part")
		return why
	}
	if failed := s.failed(&c); failed != "" {
		// What failed took time that is in no response time: Little's law would not
		// hold either.
		return append(why, failed)
	}
	if share := res.Busy(); share > maxGeneratorShare {
		add("the generator used %.0f %% of its CPUs, more than %.0f %%", 100*share, 100*maxGeneratorShare)
	}
	return append(append(why, s.r.Agents.Unfit()...), s.timing(res)...)
}

// timing are the reasons that lie in when requests were sent and answered. That they
// were sent late is none: it voids response times, each by itself (responseMetrics),
// and no more.
func (s *session) timing(res *load.Result) []string {
	var why []string
	if res.Stopped {
		why = append(why, "tare was stopped meanwhile, as by Ctrl-Z, and loaded nothing until it went on")
	}
	if s.w.Flow != nil { // what users ask for follows from what they are answered
		return why
	}
	if s.w.Schedule != "closed" {
		offered := s.r.rates[s.w.Name]
		if s.w.Schedule == "poisson" { // chance may have it begin fewer
			offered = min(offered, float64(res.Counts.Scheduled)/res.Window.Seconds())
		}
		if rate := achieved(res, offered); rate < minAchieved*offered {
			why = append(why, fmt.Sprintf("achieved %.0f requests a second of %.0f offered", rate, offered))
		}
	}
	x := float64(res.Counts.Answered()) / res.Elapsed.Seconds()
	if off := little(res.MeanFlight, x, res.Response.Mean()/1e9); off > maxLittle {
		why = append(why, fmt.Sprintf("Little's law is off by %.0f %%: the record is not consistent", 100*off))
	}
	return why
}

// achieved is the rate at which requests were answered, of that offered: within the
// window, or, where a few slow ones that began at its end would spoil that, what did not
// come in time (see load.FindMax) taken off. That counts twice, since of a queue that
// grows evenly half comes in time. What a stall in the warm-up left to be answered makes
// it no higher than what was scheduled.
func achieved(res *load.Result, offered float64) float64 {
	answered, scheduled := float64(res.Counts.Answered()), float64(res.Counts.Scheduled)
	late := answered - float64(res.InTime)
	return min(max(res.Throughput(), offered*(answered-2*late)/scheduled), scheduled/res.Window.Seconds())
}

// little is the relative error |N − X·R| / N by which measurements of one trial contradict
// Little's law: the mean number in flight N, measured apart, the throughput X in requests a
// second, and the mean response time R in seconds. It is 0 where all is 0 and +Inf where only
// N is.
//
// Source: Little, A proof for the queuing formula L = λW, 1961.
func little(meanInFlight, throughput, meanResponse float64) float64 {
	gap := math.Abs(meanInFlight - throughput*meanResponse)
	if gap == 0 {
		return 0
	}
	return gap / math.Abs(meanInFlight)
}
