package loadverb

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Judge says what a result must hold.
type Judge struct {
	FailIf []string `sep:"none" help:"Exit with status 3 if this is so, such as 'p99>50ms', 'errors>0.1%' or 'rate<1000'; repeatable." placeholder:"THRESHOLD"`

	thresholds []load.Threshold
}

// parse reads the thresholds.
func (j *Judge) parse() error {
	for _, s := range j.FailIf {
		th, err := load.ParseThreshold(s)
		if err != nil {
			return cli.Usage("--fail-if takes p50 to p99.999, max, mean, errors or rate, < or >, and a bound", fmt.Errorf("--fail-if: %w", err))
		}
		j.thresholds = append(j.thresholds, th)
	}
	return nil
}

// outcome is what became of a threshold.
type outcome struct {
	threshold load.Threshold
	failed    bool
	value     string
	err       error // it could not be judged
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("fail if %s: inconclusive, %v", o.threshold, o.err)
	case o.failed:
		return fmt.Sprintf("fail if %s: failed, it is %s", o.threshold, o.value)
	default:
		return fmt.Sprintf("fail if %s: held, it is %s", o.threshold, o.value)
	}
}

// MarshalJSON gives the threshold, "held", "failed" or "inconclusive", and the
// value that decided.
func (o outcome) MarshalJSON() ([]byte, error) {
	state := bound.Held
	if o.failed {
		state = bound.Failed
	}
	if o.err != nil {
		state = bound.Inconclusive
	}
	return json.Marshal(struct {
		FailIf  string        `json:"fail_if"`
		Outcome bound.Outcome `json:"outcome"`
		Value   string        `json:"value"`
	}{o.threshold.String(), state, o.value})
}

func (j *Judge) outcomes(res *load.Result) []outcome {
	all := []outcome{}
	for _, th := range j.thresholds {
		o := outcome{threshold: th}
		o.failed, o.value, o.err = th.Holds(res)
		all = append(all, o)
	}
	return all
}

// verdict is the exit status of a result that was shown. A rate that was not
// offered comes before the thresholds: they speak of that rate.
func (s *summary) verdict() error {
	res := s.res
	if res.Ended != "" {
		return &cli.Failure{Status: cli.ExitInterrupted}
	}
	if s.open && res.Counts.Dropped > 0 {
		return &cli.Failure{Status: cli.ExitNotOffered, Err: fmt.Errorf("%s of %d were dropped: the rate was not offered",
			unit.Plural(res.Counts.Dropped, "request"), res.Counts.Scheduled), Hint: "ask for a lower --rate, or allow more with --max-in-flight and --connections"}
	}
	if s.open && res.Bound {
		hint := "ask for a lower --rate, or give the generator more --threads or CPUs of its own"
		if res.Waited {
			hint += ", and more --connections"
		}
		return &cli.Failure{Status: cli.ExitNotOffered, Err: errors.New("the generator was (nearly) the bottleneck: it was late, or busy for most of the time"), Hint: hint}
	}
	var undecided error
	for _, o := range s.outcomes {
		if o.failed {
			return &cli.Failure{Status: cli.ExitThreshold}
		}
		if o.err != nil {
			undecided = &cli.Failure{Status: cli.ExitInconclusive, Err: o.err,
				Hint: fmt.Sprintf("%s needs %s: raise --duration, --requests or --rate", o.threshold, unit.Plural(o.threshold.Requests(), "request"))}
		}
	}
	if c := res.Counts; c.Unverified > 0 && c.Unverified == c.Answered() {
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no answer was as --verify asks"), Hint: "look at an answer, then at the --verify flags"}
	}
	if err := s.allErrors(); err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "check the URL; --verify-status CODE says that this status is meant"}
	}
	return undecided
}

// explainRefusal is an error without a result: of the machine or the network where
// these gave it, else a mistake in what was asked for.
func explainRefusal(err error) error {
	if errors.Is(err, context.Canceled) {
		return err // interrupted while a name was looked up
	}
	_, system := errors.AsType[syscall.Errno](err)
	_, network := errors.AsType[net.Error](err)
	if system || network {
		return explainFailure(err)
	}
	return cli.Usage("see `tare load --help`", err)
}

// explainFailure is an error of a run, with the flag that helps.
func explainFailure(err error) error {
	f := &cli.Failure{Status: cli.ExitFailed, Err: errors.New(strings.ReplaceAll(err.Error(), "\n", ": "))}
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	switch {
	case errors.As(err, &unknown):
		f.Hint = "--ca FILE names the authority to trust, --insecure trusts all"
	case errors.As(err, &invalid), errors.As(err, &name):
		f.Hint = "--insecure does not verify certificates"
	}
	return f
}
