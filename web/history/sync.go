package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/trend"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/studies"
)

// Changes are what Sync found.
type Changes struct{ Added, Changed, Removed int }

// Any reports whether anything changed.
func (c Changes) Any() bool { return c != Changes{} }

// batch is how many runs are written in one transaction.
const batch = 500

// Sync compares the folder's names and times with the index, and takes over what is new
// and what changed. A folder without a manifest is no run, as is one whose name begins
// with a dot or has what does not print.
func (x *Index) Sync(ctx context.Context) (Changes, error) {
	x.writing.Lock()
	defer x.writing.Unlock()
	var c Changes
	known, err := x.stamps(ctx)
	if err != nil {
		return c, fmt.Errorf("reading the index: %w", err)
	}
	entries, err := os.ReadDir(x.root)
	if err != nil {
		return c, fmt.Errorf("reading the runs: %w", err)
	}
	var changed []row
	for _, e := range entries {
		if !e.IsDir() || !isName(e.Name()) {
			continue
		}
		at := lookAt(filepath.Join(x.root, e.Name()))
		if at.stamp == "" {
			continue
		}
		old, was := known[e.Name()]
		delete(known, e.Name())
		if old == at.stamp {
			continue
		}
		if was {
			c.Changed++
		} else {
			c.Added++
		}
		changed = append(changed, x.read(e.Name(), at))
		if len(changed) >= batch {
			if err := x.write(ctx, changed); err != nil {
				return c, err
			}
			changed = changed[:0]
		}
	}
	if err := x.write(ctx, changed); err != nil {
		return c, err
	}
	for name := range known {
		if err := x.remove(ctx, name); err != nil {
			return c, err
		}
		c.Removed++
	}
	return c, nil
}

// isName reports whether a folder's name is one that an index and a page can show.
func isName(name string) bool {
	return utf8.ValidString(name) && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// look is what a folder shows without being read.
type look struct {
	stamp   string // times and sizes of its files; "" = it has no manifest
	touched time.Time
}

// Stamp is the times and sizes of a run's files, "" where there is none: while it stays the
// same, so does the run. touched is when one was last written to.
func Stamp(dir string) (stamp string, touched time.Time) {
	l := lookAt(dir)
	return l.stamp, l.touched
}

func lookAt(dir string) look {
	var l look
	for i, name := range []string{"manifest.json", "trials.jsonl", "captures.jsonl"} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil && i == 0 {
			return look{}
		}
		if err != nil {
			l.stamp += "-;"
			continue
		}
		l.stamp += fmt.Sprintf("%d,%d;", fi.ModTime().UnixNano(), fi.Size())
		if fi.ModTime().After(l.touched) {
			l.touched = fi.ModTime()
		}
	}
	return l
}

func (x *Index) stamps(ctx context.Context) (map[string]string, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT name, stamp FROM tare_runs`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, stamp string
		if err := rows.Scan(&name, &stamp); err != nil {
			return nil, err
		}
		all[name] = stamp
	}
	return all, rows.Err()
}

// row is a run as Sync knows it.
type row struct {
	name string
	look
	record.Summary
}

func (x *Index) read(name string, l look) row {
	s, err := record.Summarise(filepath.Join(x.root, name))
	if err == nil && s.Study == "" {
		err = errors.New("its manifest names no study")
	}
	s.Err = err
	return row{name, l, s}
}

// clean is text that every database takes.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// Bounds of what is kept of a run's texts, in bytes. Whoever wrote the run chose them, an index of
// PostgreSQL takes no names much longer, and lists show them all.
const (
	mostName = 250
	mostText = 4000
)

// cleanName is a name as every database takes it.
func cleanName(name string) string { return cut(clean(name), mostName) }

// cleanText is another text as every database takes it.
func cleanText(text string) string { return cut(clean(text), mostText) }

// cut leaves so many bytes of a text at most: its beginning, and a sign that there was more.
func cut(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	n := most - len(more)
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + more
}

// nanoseconds is a time as the index keeps it; 0 of none, and of years that it cannot hold.
func nanoseconds(t time.Time) int64 {
	if t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return t.UnixNano()
}

func (x *Index) write(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	err := x.within(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, `INSERT INTO tare_runs
			(name, stamp, analysed, touched, study, started, outcome, trials, reason, title, headline, quick, ranked, tare, machine, control, control_build, metric, workload, command)
			VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, '', '', 0, 0, '', '', '', '', '', '', '')
			ON CONFLICT (name) DO UPDATE SET stamp = excluded.stamp, touched = excluded.touched, study = excluded.study,
			started = excluded.started, outcome = excluded.outcome, trials = excluded.trials, reason = excluded.reason`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, r := range rows {
			reason := ""
			if r.Err != nil {
				reason = x.Explain(r.Err)
			}
			if _, err := insert.ExecContext(ctx, r.name, r.stamp, nanoseconds(r.touched), cleanName(r.Study), nanoseconds(r.Started), cleanName(r.Outcome), r.Trials, cleanText(reason)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	return nil
}

// Explain is why a run cannot be read, without where on this machine it lies.
func (x *Index) Explain(err error) string {
	text := strings.ReplaceAll(err.Error(), x.root+string(filepath.Separator), "")
	return strings.ReplaceAll(text, x.root, "the folder of the runs")
}

// within runs statements in one transaction.
func (x *Index) within(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (x *Index) remove(ctx context.Context, name string) error {
	return x.within(ctx, func(tx *sql.Tx) error {
		for _, statement := range []string{`DELETE FROM tare_series WHERE run = $1`, `DELETE FROM tare_claims WHERE run = $1`, `DELETE FROM tare_runs WHERE name = $1`} {
			if _, err := tx.ExecContext(ctx, statement, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// idle is how long nothing was written to a run without an end that is taken for broken off.
const idle = 10 * time.Minute

// Analyse reads up to so many runs that ended since it looked at them last, the newest
// first, and keeps what they found. It returns how many it read; 0 means that there is
// nothing more to do for now.
func (x *Index) Analyse(ctx context.Context, most int, now time.Time) (int, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT name, stamp FROM tare_runs
		WHERE stamp <> analysed AND reason = '' AND (outcome <> '' OR touched < $1) ORDER BY started DESC, name LIMIT $2`,
		now.Add(-idle).UnixNano(), most)
	if err != nil {
		return 0, fmt.Errorf("reading the index: %w", err)
	}
	type pending struct{ name, stamp string }
	var all []pending
	for rows.Next() {
		var p pending
		if err := rows.Scan(&p.name, &p.stamp); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		all = append(all, p)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, fmt.Errorf("reading the index: %w", err)
	}
	for _, p := range all {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		_, a, failed := OpenRun(x.Dir(p.name))
		x.writing.Lock()
		err := x.within(ctx, func(tx *sql.Tx) error { return x.keep(ctx, tx, found{p.name, p.stamp, a, failed}) })
		x.writing.Unlock()
		if err != nil {
			return 0, fmt.Errorf("writing what run %s found: %w", p.name, err)
		}
	}
	return len(all), nil
}

// OpenRun reads and analyses the run in a folder. What such a folder makes fail is an
// error, also where its figures are none that a run could have.
func OpenRun(dir string) (run *record.Run, a *verdict.Analysis, err error) {
	defer func() {
		if p := recover(); p != nil {
			run, a, err = nil, nil, fmt.Errorf("analysing the run: its records do not fit one another (%v)", p)
		}
	}()
	if run, err = record.Open(dir); err != nil {
		return nil, nil, err
	}
	if a, err = verdict.Analyse(run); err != nil {
		return nil, nil, err
	}
	return run, a, nil
}

// found is what was read of a run; err is why it could not be.
type found struct {
	name, stamp string
	a           *verdict.Analysis
	err         error
}

// keep replaces what is known of a run, unless it is gone or changed meanwhile.
func (x *Index) keep(ctx context.Context, tx *sql.Tx, f found) error {
	res, err := tx.ExecContext(ctx, `UPDATE tare_runs SET analysed = stamp WHERE name = $1 AND stamp = $2`, f.name, f.stamp)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	for _, statement := range []string{`DELETE FROM tare_series WHERE run = $1`, `DELETE FROM tare_claims WHERE run = $1`} {
		if _, err := tx.ExecContext(ctx, statement, f.name); err != nil {
			return err
		}
	}
	if f.err != nil {
		_, err := tx.ExecContext(ctx, `UPDATE tare_runs SET reason = $1 WHERE name = $2`, cleanText(x.Explain(f.err)), f.name)
		return err
	}
	m := &f.a.Manifest
	control, _ := split(m.Study.Control)
	_, err = tx.ExecContext(ctx, `UPDATE tare_runs SET title = $1, headline = $2, quick = $3, ranked = $4, tare = $5, machine = $6,
		control = $7, control_build = $8, metric = $9, workload = $10, command = $11 WHERE name = $12`,
		cleanText(m.Study.Title), cleanText(f.a.Headline), number(m.Quick), ranked(f.a), cleanName(m.Tare), cleanName(fact(m, "cpu")), cleanName(control),
		cleanName(m.Programs[m.Study.Control].BuildID), cleanName(m.Study.Primary.Metric), cleanName(m.Study.Primary.Workload), cleanText(report.ShellLine(m.Command)), f.name)
	if err != nil {
		return err
	}
	return keepFindings(ctx, tx, f.name, f.a)
}

// keepFindings adds a run's ratios and verdicts on claims. Of two workloads or claims of one name
// the first counts.
func keepFindings(ctx context.Context, tx *sql.Tx, name string, a *verdict.Analysis) error {
	for _, s := range seriesOf(a) {
		points, err := json.Marshal(s.points)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO tare_series (run, workload, metric, floor, points) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, workload, metric) DO NOTHING`,
			name, cleanName(s.workload), cleanName(s.metric), s.floor, clean(string(points))); err != nil {
			return err
		}
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		rule, err := ruleOf(c)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO tare_claims (run, claim, verdict, sentence, rule) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run, claim) DO NOTHING`,
			name, cleanName(c.ID), cleanName(string(c.Verdict)), cleanText(c.Sentence), clean(rule)); err != nil {
			return err
		}
	}
	return nil
}

// ruleOf is the rule that decided on a claim, as text.
func ruleOf(c *verdict.Claim) (string, error) {
	var checks []study.Check
	for i := range c.Checks[:min(c.Deciding, len(c.Checks))] {
		checks = append(checks, studies.RuleOf(c.Checks[i].Check, c.Checks[i].Against))
	}
	text, err := json.Marshal(checks)
	return string(text), err
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fact is the value of a fact of the environment; "" if it is not known.
func fact(m *record.Manifest, name string) string {
	if i := slices.IndexFunc(m.Env, func(f record.Fact) bool { return f.Name == name }); i >= 0 {
		return m.Env[i].Value
	}
	return ""
}

// ranked is how many arms the primary metric ranks.
func ranked(a *verdict.Analysis) int {
	if m := a.Primary(); m != nil && m.Ranking != nil {
		return len(m.Ranking.Ranks)
	}
	return 0
}

// followed are the metrics that are kept beside a study's primary one.
var followed = []string{"throughput", "cpu_per_request", "response_p50", "response_p99", "service_p99", "loop_time", "loop_bytes", "loop_allocs",
	"alloc_bytes", "alloc_objects", "gc_cpu", "heap_live", "rss_peak", "startup", "goroutine_growth"}

// Point is an arm in a run. Changes are relative to the run's control: 0.05 is 5 % more.
type Point struct {
	Arm    string   `json:"arm"`              // without the commit
	Commit string   `json:"commit,omitempty"` // of the arm, where its name has one
	Blocks int      `json:"n"`
	Value  float64  `json:"value"`
	Lo     *float64 `json:"lo,omitempty"` // nil: not bounded
	Hi     *float64 `json:"hi,omitempty"`
	Alpha  float64  `json:"alpha"` // level of the interval
	Word   string   `json:"word"`
}

type keptSeries struct {
	workload, metric string
	floor            float64 // relative; 0 = not known
	points           []Point
}

// seriesOf are the ratios that are kept of a run.
func seriesOf(a *verdict.Analysis) []keptSeries {
	commits := map[string]string{}
	for _, arm := range a.Manifest.Study.Arms {
		name, commit := split(arm.Name)
		commits[name] = commit
	}
	var all []keptSeries
	for i := range a.Workloads {
		w := &a.Workloads[i]
		for j := range w.Metrics {
			m := &w.Metrics[j]
			if m.Name != a.Manifest.Study.Primary.Metric && !slices.Contains(followed, m.Name) {
				continue
			}
			t, err := trend.New([]*verdict.Analysis{a}, trend.Options{Workload: w.Name, Metric: m.Name})
			if err != nil {
				continue // not compared by ratio, or not at all
			}
			s := keptSeries{workload: w.Name, metric: m.Name, floor: math.Expm1(m.Floor)}
			for _, p := range t.Points {
				if estimate.Finite(p.Change.Value) == nil {
					continue
				}
				s.points = append(s.points, Point{Arm: p.Arm, Commit: commits[p.Arm], Blocks: p.Blocks, Value: p.Change.Value,
					Lo: estimate.Finite(p.Change.Interval.Lo), Hi: estimate.Finite(p.Change.Interval.Hi), Alpha: p.Alpha, Word: p.Word})
			}
			all = append(all, s)
		}
	}
	return all
}

var commitOf = regexp.MustCompile(`@([^+]*)`)

// split is an arm's name without its commit, and the commit; "" without one.
func split(arm string) (name, commit string) {
	if m := commitOf.FindStringSubmatch(arm); m != nil {
		commit = m[1]
	}
	return commitOf.ReplaceAllString(arm, ""), commit
}
