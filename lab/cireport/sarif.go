package cireport

import (
	"io"

	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/stats/bound"
)

// Places finds the path of a source file below the root of the repository; "" if it is not
// there.
type Places func(file string) string

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	} `json:"driver"`
}

type sarifRule struct {
	ID               string       `json:"id"`
	ShortDescription sarifMessage `json:"shortDescription"`
	FullDescription  sarifMessage `json:"fullDescription"`
	Help             sarifMessage `json:"help"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifMessage      `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI    string `json:"uri"`
			BaseID string `json:"uriBaseId"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	} `json:"physicalLocation"`
	Logical []sarifLogical `json:"logicalLocations"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

// SARIF writes each owner that became dearer as a result at the function responsible. Owners
// of whose functions none is in the repository are left out: code scanning shows results in
// files. The level is that of the gates: error where one failed, warning where one is
// inconclusive, else note.
//
// Source: SARIF 2.1.0, docs.oasis-open.org/sarif/sarif/v2.1.0.
func SARIF(w io.Writer, s comment.Source, places Places) error {
	run := sarifRun{Results: []sarifResult{}}
	d := &run.Tool.Driver
	d.Name, d.Version, d.InformationURI = "tare", s.Analysis.Manifest.Tare, "https://github.com/tarehq/tare"
	d.Rules = []sarifRule{{
		ID:               "dearer",
		ShortDescription: sarifMessage{"This code costs more than before"},
		FullDescription:  sarifMessage{"Profiles under the same load show that requests spend more here than at the base, by more than chance."},
		Help:             sarifMessage{"`tare diff` compares the profiles of the run: https://github.com/tarehq/tare/blob/main/docs/diff.md"},
	}}
	level := map[bound.Outcome]string{bound.Failed: "error", bound.Inconclusive: "warning", bound.Held: "note"}[comment.Worst(s.Gates)]
	for _, o := range dearer(&s) {
		at, ok := locate(&o, places)
		if !ok {
			continue
		}
		run.Results = append(run.Results, sarifResult{RuleID: d.Rules[0].ID, Level: level, Message: sarifMessage{o.text()}, Locations: []sarifLocation{at},
			Fingerprints: map[string]string{"owner/v1": o.Arm + " " + o.Row.Owner + " " + o.Base}})
	}
	return writeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// locate finds the innermost function that has most of an owner's difference and lies in the
// repository, or else the owner.
func locate(d *dear, places Places) (at sarifLocation, ok bool) {
	row := d.Row
	for _, f := range d.Responsible() { // the largest difference first, which is the outermost
		if f.Diff > d.Diff/2 && places(f.File) != "" {
			row = f
		}
	}
	uri := places(row.File)
	if uri == "" || row.Line < 1 {
		return at, false
	}
	at.Physical.Artifact.URI, at.Physical.Artifact.BaseID, at.Physical.Region.StartLine = uri, "%SRCROOT%", row.Line
	name := row.Function
	if name == "" {
		name = row.Owner
	}
	at.Logical = []sarifLogical{{name, "function"}}
	return at, true
}
