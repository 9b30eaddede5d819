package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tarehq/tare/lab/layers"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// JSONSchema is the version of what [JSON] writes. Fields may be added within
// a version, never renamed, removed or given another meaning.
const JSONSchema = 1

// JSON writes the analysis as one JSON object; docs/report-json.md describes
// its fields. Values are in the metrics' base units, effects on the ratio
// scale are relative changes (0.021 is +2.1 %), and an end of an interval that
// is not bounded is absent.
func JSON(w io.Writer, a *verdict.Analysis) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(newDocument(a)); err != nil {
		return fmt.Errorf("writing JSON report: %w", err)
	}
	return nil
}

type document struct {
	Schema    int                `json:"schema"`
	ID        string             `json:"id"`
	Study     string             `json:"study"`
	Title     string             `json:"title,omitzero"`
	Quick     bool               `json:"quick"`
	Seed      uint64             `json:"seed"`
	Started   time.Time          `json:"started,omitzero"`
	Ended     time.Time          `json:"ended,omitzero"`
	Outcome   string             `json:"outcome,omitzero"`
	Command   []string           `json:"command,omitzero"`
	Tare      string             `json:"tare,omitzero"`
	Headline  string             `json:"headline"`
	Decided   bool               `json:"decided"`
	Progress  progress           `json:"progress"`
	Control   string             `json:"control"`
	Trials    tally.Tally        `json:"trials"`
	Workloads []workloadOut      `json:"workloads"`
	Claims    []claimOut         `json:"claims"`
	Goals     []goalOut          `json:"goals,omitzero"`
	Layers    []layers.Weight    `json:"layers,omitzero"`
	Accounts  []verdict.Account  `json:"accounts,omitzero"`
	Accuracy  []verdict.Accuracy `json:"accuracy,omitzero"`
	Pinning   record.Pinning     `json:"pinning"`
	Env       []record.Fact      `json:"env,omitzero"`
	LeftOut   map[string]string  `json:"left_out,omitzero"`
	Code      []record.Code      `json:"code,omitzero"`
	SelfTest  string             `json:"self_test,omitzero"`
	Warnings  []string           `json:"warnings"`
}

type progress struct {
	Blocks int `json:"blocks"`
	Look   int `json:"look"`
	verdict.Progress
}

type workloadOut struct {
	Name    string      `json:"name"`
	Rate    float64     `json:"rate,omitzero"`
	Blocks  int         `json:"blocks"`
	Alpha   float64     `json:"alpha"`
	Metrics []metricOut `json:"metrics"`
}

type metricOut struct {
	Name       string          `json:"name"`
	Unit       string          `json:"unit"`
	Primary    bool            `json:"primary"`
	Instrument bool            `json:"instrument,omitzero"`
	Withheld   string          `json:"withheld,omitzero"`
	Scale      verdict.Scale   `json:"scale"`
	Threshold  *float64        `json:"threshold,omitzero"`
	Floor      *float64        `json:"floor,omitzero"`
	FloorBy    string          `json:"floor_by,omitzero"`
	Band       *float64        `json:"band,omitzero"`
	Alpha      float64         `json:"alpha,omitzero"` // where it is not the workload's
	Arms       []levelOut      `json:"arms,omitzero"`
	Compared   []comparisonOut `json:"comparisons,omitzero"`
	Twin       *comparisonOut  `json:"twin,omitzero"`
	Ranks      []verdict.Rank  `json:"ranks,omitzero"`
	Slope      *slopeOut       `json:"slope,omitzero"`
}

type levelOut struct {
	*verdict.Level
	Values []float64 `json:"values"`
	Blocks []int     `json:"blocks"`
}

type comparisonOut struct {
	Arm           string            `json:"arm"`
	Against       string            `json:"against"`
	N             int               `json:"n"`
	ArmMedian     float64           `json:"arm_median"`
	AgainstMedian float64           `json:"against_median"`
	Change        *verdict.Estimate `json:"change,omitzero"`
	Difference    *verdict.Estimate `json:"difference,omitzero"`
	P             float64           `json:"p,omitzero"`
	Verdict       stats.Verdict     `json:"verdict,omitzero"`
	// DecidedBy is the interval that the verdict rests on.
	DecidedBy *verdict.Deciding `json:"decided_by,omitzero"`
	Word      string            `json:"word"`
	Needs     int               `json:"needs,omitzero"`
	Family    int               `json:"family,omitzero"`
	Note      string            `json:"note,omitzero"`
	Heaps     string            `json:"heaps,omitzero"`
	Paired    []float64         `json:"paired,omitzero"`
	Withheld  string            `json:"withheld,omitzero"`
}

type slopeOut struct {
	Arms     []string         `json:"arms"`
	N        int              `json:"n"`
	Slope    verdict.Estimate `json:"slope"`
	Warnings []string         `json:"warnings,omitzero"`
}

type claimOut struct {
	*verdict.Claim
	Checks []checkOut `json:"checks"` // the first so many decide
}

type goalOut struct {
	*verdict.Goal
	Checks []checkOut `json:"checks"`
}

type checkOut struct {
	study.Check
	PublishedRatio      float64           `json:"published_ratio,omitzero"`
	PublishedDifference float64           `json:"published_difference,omitzero"`
	Measured            *comparisonOut    `json:"measured,omitzero"`
	Estimate            *verdict.Estimate `json:"estimate,omitzero"`
	Reported            string            `json:"reported,omitzero"`
	Direction           verdict.Finding   `json:"direction_verdict,omitzero"`
	Ratio               verdict.Finding   `json:"ratio_verdict,omitzero"`
	Difference          verdict.Finding   `json:"difference_verdict,omitzero"`
	Levels              verdict.Finding   `json:"levels_verdict,omitzero"`
	Holds               verdict.Finding   `json:"verdict,omitzero"`
	Outcome             bound.Outcome     `json:"outcome,omitzero"` // of a goal's
}
