package history

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// Run is a row of the index.
type Run struct {
	Name     string // of its folder
	Study    string
	Title    string // of the study; "" until it is analysed, as the headline
	Headline string
	Started  time.Time
	Touched  time.Time // when something was last written to it
	Outcome  string    // as in record.Manifest
	Trials   int       // kept, invalid ones included
	Quick    bool
	Ranked   int    // arms that its primary metric ranks
	Reason   string // why it cannot be read; "" = it can
	Tare     string // version that made it
	Machine  string // its processor
	Control  string // without a commit
	Build    string // of the control's program; "" = not known
	Metric   string // primary, as the workload
	Workload string
	Command  string // that repeats it
}

// Running reports whether the run goes on, as far as its files tell.
func (r *Run) Running(now time.Time) bool {
	return r.Reason == "" && r.Outcome == "" && now.Sub(r.Touched) < idle
}

// State is how the run ended, or that it did not.
func (r *Run) State(now time.Time) string {
	switch {
	case r.Reason != "":
		return "unreadable"
	case r.Running(now):
		return "running"
	}
	return cmp.Or(r.Outcome, "broken off")
}

const columns = `name, study, title, headline, started, touched, outcome, trials, quick, ranked, reason, tare, machine, control, control_build, metric, workload, command`

type scanner interface{ Scan(...any) error }

func scanRun(s scanner) (r Run, err error) {
	var started, touched, quick int64
	err = s.Scan(&r.Name, &r.Study, &r.Title, &r.Headline, &started, &touched, &r.Outcome, &r.Trials, &quick, &r.Ranked, &r.Reason,
		&r.Tare, &r.Machine, &r.Control, &r.Build, &r.Metric, &r.Workload, &r.Command)
	if started != 0 {
		r.Started = time.Unix(0, started).UTC()
	}
	r.Touched, r.Quick = time.Unix(0, touched).UTC(), quick != 0
	return r, err
}

// Query chooses runs. The zero value chooses all.
type Query struct {
	Study  string // its whole name
	Text   string // part of the folder's name, the study's or the headline, in any case
	State  string // an outcome, "unreadable", or "unfinished"
	Offset int
	Limit  int // 0 means 50
}

// Runs returns the runs that a query chooses, the newest first, and how many there are
// in all.
func (x *Index) Runs(ctx context.Context, q Query) (runs []Run, all int, err error) {
	where, args := q.where()
	if err := x.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM tare_runs`+where, args...).Scan(&all); err != nil {
		return nil, 0, fmt.Errorf("counting runs: %w", err)
	}
	args = append(args, cmp.Or(q.Limit, 50), max(0, q.Offset))
	statement := fmt.Sprintf(`SELECT %s FROM tare_runs%s ORDER BY started DESC, name DESC LIMIT $%d OFFSET $%d`, columns, where, len(args)-1, len(args))
	runs, err = x.runs(ctx, statement, args...)
	return runs, all, err
}

// where is the query's condition, with its arguments.
func (q *Query) where() (condition string, args []any) {
	var parts []string
	add := func(condition, value string) {
		args = append(args, clean(value))
		parts = append(parts, strings.ReplaceAll(condition, "$", fmt.Sprintf("$%d", len(args))))
	}
	if q.Study != "" {
		add(`study = $`, q.Study)
	}
	if q.Text != "" {
		literal := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(q.Text))
		add(`(LOWER(name) LIKE $ ESCAPE '\' OR LOWER(study) LIKE $ ESCAPE '\' OR LOWER(headline) LIKE $ ESCAPE '\')`, "%"+literal+"%")
	}
	switch q.State {
	case "":
	case "unreadable":
		parts = append(parts, `reason <> ''`)
	case "unfinished":
		parts = append(parts, `reason = '' AND outcome = ''`)
	default:
		add(`reason = '' AND outcome = $`, q.State)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}

func (x *Index) runs(ctx context.Context, statement string, args ...any) ([]Run, error) {
	rows, err := x.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	defer rows.Close()
	var all []Run
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("listing runs: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// ErrNoRun says that the index has no run of that name.
var ErrNoRun = errors.New("there is no such run")

// Run returns one run.
func (x *Index) Run(ctx context.Context, name string) (Run, error) {
	r, err := scanRun(x.db.QueryRowContext(ctx, `SELECT `+columns+` FROM tare_runs WHERE name = $1`, clean(name)))
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("%w: %q", ErrNoRun, name)
	}
	if err != nil {
		return r, fmt.Errorf("finding a run: %w", err)
	}
	return r, nil
}

// Study is a study of which there are runs.
type Study struct {
	Name   string
	Runs   int
	Newest Run // that can be read
	Ranked bool
}

// Studies returns the studies that have runs, the last to run first.
func (x *Index) Studies(ctx context.Context) ([]Study, error) {
	newest, err := x.runs(ctx, `SELECT `+columns+` FROM tare_runs WHERE reason = '' AND study <> '' AND NOT EXISTS
		(SELECT 1 FROM tare_runs AS later WHERE later.study = tare_runs.study AND later.reason = ''
		AND (later.started > tare_runs.started OR later.started = tare_runs.started AND later.name > tare_runs.name))
		ORDER BY started DESC, name DESC`)
	if err != nil {
		return nil, err
	}
	rows, err := x.db.QueryContext(ctx, `SELECT study, COUNT(*), MAX(ranked) FROM tare_runs WHERE reason = '' GROUP BY study`)
	if err != nil {
		return nil, fmt.Errorf("listing studies: %w", err)
	}
	defer rows.Close()
	counts := map[string][2]int{}
	for rows.Next() {
		var name string
		var n, ranked int
		if err := rows.Scan(&name, &n, &ranked); err != nil {
			return nil, fmt.Errorf("listing studies: %w", err)
		}
		counts[name] = [2]int{n, ranked}
	}
	var all []Study
	for _, r := range newest {
		all = append(all, Study{Name: r.Study, Runs: counts[r.Study][0], Newest: r, Ranked: counts[r.Study][1] > 0})
	}
	return all, rows.Err()
}

// StudyNames are the names of the studies that have runs.
func (x *Index) StudyNames(ctx context.Context) ([]string, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT DISTINCT study FROM tare_runs WHERE study <> '' ORDER BY study`)
	if err != nil {
		return nil, fmt.Errorf("listing studies: %w", err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("listing studies: %w", err)
		}
		all = append(all, name)
	}
	return all, rows.Err()
}

// Ranked returns the newest run of a study that ended and ranks its arms, a quick form only
// where there is no other.
func (x *Index) Ranked(ctx context.Context, study string) (Run, error) {
	all, err := x.runs(ctx, `SELECT `+columns+` FROM tare_runs WHERE study = $1 AND ranked > 0 AND reason = '' AND outcome <> ''
		ORDER BY quick, started DESC, name DESC LIMIT 1`, clean(study))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w of study %q that ranks its arms", ErrNoRun, study)
	}
	if err != nil {
		return Run{}, err
	}
	return all[0], nil
}

// Pending is how many runs still wait for Analyse.
func (x *Index) Pending(ctx context.Context, now time.Time) (n int, err error) {
	err = x.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM tare_runs WHERE stamp <> analysed AND reason = '' AND (outcome <> '' OR touched < $1)`,
		now.Add(-idle).UnixNano()).Scan(&n)
	return n, err
}

// Choice is what can be followed of a study.
type Choice struct{ Workload, Metric string }

// Choices returns what the runs of a study keep.
func (x *Index) Choices(ctx context.Context, study string) ([]Choice, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT DISTINCT s.workload, s.metric FROM tare_series AS s JOIN tare_runs AS r ON r.name = s.run
		WHERE r.study = $1 ORDER BY s.workload, s.metric`, clean(study))
	if err != nil {
		return nil, fmt.Errorf("listing what study %s keeps: %w", study, err)
	}
	defer rows.Close()
	var all []Choice
	for rows.Next() {
		var c Choice
		if err := rows.Scan(&c.Workload, &c.Metric); err != nil {
			return nil, fmt.Errorf("listing what study %s keeps: %w", study, err)
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// Entry is a run with what is followed of it.
type Entry struct {
	Run
	Floor  float64 // the run's noise floor as a relative change; 0 = not known
	Points []Point
}

// Of returns an arm's point; nil if the run has none.
func (e *Entry) Of(arm string) *Point {
	if i := slices.IndexFunc(e.Points, func(p Point) bool { return p.Arm == arm }); i >= 0 {
		return &e.Points[i]
	}
	return nil
}

// Series is a metric of a study over its runs.
type Series struct {
	Entries []Entry // the oldest first
	Others  []Run   // that are left out: another control's build, processor or form
	Arms    []string
}

// mostEntries bounds the runs of a series. The newest are shown.
const mostEntries = 400

// Follow returns a metric over the runs of a study. Pinned leaves out the runs whose
// control was another program than the newest run's, whose processor was another, or of which
// one alone is a quick form: their ratios are to something else.
func (x *Index) Follow(ctx context.Context, study string, c Choice, pinned bool) (*Series, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT s.floor, s.points, `+prefixed("r.")+` FROM tare_series AS s JOIN tare_runs AS r ON r.name = s.run
		WHERE r.study = $1 AND s.workload = $2 AND s.metric = $3 AND r.reason = '' ORDER BY r.started DESC, r.name DESC LIMIT $4`,
		clean(study), clean(c.Workload), clean(c.Metric), mostEntries)
	if err != nil {
		return nil, fmt.Errorf("following %s: %w", c.Metric, err)
	}
	defer rows.Close()
	s := &Series{}
	var first *Run
	for rows.Next() {
		var e Entry
		var points string
		e.Run, err = scanRun(prefixedScanner{rows, []any{&e.Floor, &points}})
		if err == nil {
			err = json.Unmarshal([]byte(points), &e.Points)
		}
		if err != nil {
			return nil, fmt.Errorf("following %s: %w", c.Metric, err)
		}
		if first == nil {
			first = &e.Run
		}
		if pinned && !e.Run.sharesControl(first) {
			s.Others = append(s.Others, e.Run)
			continue
		}
		for _, p := range e.Points {
			if !slices.Contains(s.Arms, p.Arm) {
				s.Arms = append(s.Arms, p.Arm)
			}
		}
		s.Entries = append(s.Entries, e)
	}
	slices.Reverse(s.Entries)
	return s, rows.Err()
}

// sharesControl reports whether the ratios of two runs are to the same control, under trials
// of the same form.
func (r *Run) sharesControl(o *Run) bool {
	return r.Control == o.Control && r.Build == o.Build && r.Machine == o.Machine && r.Quick == o.Quick
}

func prefixed(prefix string) string {
	return prefix + strings.ReplaceAll(columns, ", ", ", "+prefix)
}

// prefixedScanner scans some columns of its own before those of a run.
type prefixedScanner struct {
	rows scanner
	own  []any
}

func (p prefixedScanner) Scan(into ...any) error { return p.rows.Scan(append(p.own, into...)...) }

// Values are an arm's changes as natural logarithms of its ratios, which are what changes
// are looked for in, and the places of their entries.
func (s *Series) Values(arm string) (values []float64, at []int) {
	for i := range s.Entries {
		if p := s.Entries[i].Of(arm); p != nil && p.Value > -1 {
			values, at = append(values, math.Log1p(p.Value)), append(at, i)
		}
	}
	return values, at
}

// Judged is what the runs found of a claim.
type Judged struct {
	Verdict  string
	Sentence string
	Run      string // the newest that settled it, else the newest
	Started  time.Time
	Runs     int // that judged it
	Others   int // that judged it by another rule, and do not count
}

// Settled reports whether a verdict decides a claim.
func Settled(verdictOfClaim string) bool {
	return verdict.Word(verdictOfClaim).Settled()
}

// mostJudged bounds what is read for a list of claims.
const mostJudged = 20_000

// Claims returns what the runs found, by claim. A quick form's word that a claim is not
// comparable says only that the form leaves that out, and is none. Of a claim that has rules
// today (studies.Rules) only runs count that judged it by these.
func (x *Index) Claims(ctx context.Context, today map[string][]study.Check) (map[string]Judged, error) {
	rules := map[string]string{}
	for id, checks := range today {
		text, err := json.Marshal(checks)
		if err != nil {
			return nil, fmt.Errorf("reading the rule of %s: %w", id, err)
		}
		rules[id] = clean(string(text))
	}
	rows, err := x.db.QueryContext(ctx, `SELECT c.claim, c.verdict, c.sentence, c.rule, r.name, r.started, r.quick FROM tare_claims AS c
		JOIN tare_runs AS r ON r.name = c.run WHERE r.reason = '' ORDER BY r.started DESC, r.name DESC LIMIT $1`, mostJudged)
	if err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	defer rows.Close()
	all := map[string]Judged{}
	for rows.Next() {
		var id, rule string
		var j Judged
		var started, quick int64
		if err := rows.Scan(&id, &j.Verdict, &j.Sentence, &rule, &j.Run, &started, &quick); err != nil {
			return nil, fmt.Errorf("listing claims: %w", err)
		}
		if quick != 0 && j.Verdict == string(verdict.NotComparable) {
			continue
		}
		j.Started = time.Unix(0, started).UTC()
		old := all[id]
		j.Runs, j.Others = old.Runs+1, old.Others
		switch now, has := rules[id]; {
		case has && now != rule:
			old.Others++
		case old.Runs == 0 || !Settled(old.Verdict) && Settled(j.Verdict):
			old = j
		default:
			old.Runs++
		}
		all[id] = old
	}
	return all, rows.Err()
}
