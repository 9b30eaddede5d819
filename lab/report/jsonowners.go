package report

import (
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

type accountOut struct {
	Workload string       `json:"workload"`
	Source   study.Source `json:"source"`
	Arms     []spentOut   `json:"arms"`
	Owners   []ownerOut   `json:"owners"`
}

type spentOut struct {
	Arm     string       `json:"arm"`
	N       int          `json:"n"`
	CPU     estimateOut  `json:"cpu_ns"`
	Bytes   float64      `json:"bytes"`
	Objects float64      `json:"objects"`
	Waiting float64      `json:"wait_ns,omitzero"`
	Share   float64      `json:"seen_share,omitzero"`
	Causes  []cost.Share `json:"causes"`
}

type ownerOut struct {
	Kind  string    `json:"kind"`
	Owner string    `json:"owner"`
	Where string    `json:"where,omitzero"`
	In    []partOut `json:"in"`
}

type partOut struct {
	Arm     string       `json:"arm"`
	N       int          `json:"n"`
	Self    estimateOut  `json:"self_ns"`
	GC      float64      `json:"gc_share_ns"`
	Bytes   float64      `json:"bytes"`
	Objects float64      `json:"objects"`
	Waiting float64      `json:"wait_ns,omitzero"`
	Causes  []cost.Share `json:"causes"`
	Change  *estimateOut `json:"change_ns,omitzero"`
}

type accuracyOut struct {
	Workload string       `json:"workload"`
	Arm      string       `json:"arm"`
	Part     string       `json:"part"`
	Against  string       `json:"against,omitzero"`
	Quantity string       `json:"quantity"`
	Band     float64      `json:"band"`
	By       []heldOut    `json:"by"`
	Apart    *estimateOut `json:"apart,omitzero"`
}

type heldOut struct {
	Source     study.Source     `json:"source"`
	Owner      string           `json:"owner,omitzero"`
	N          int              `json:"n"`
	Truth      float64          `json:"truth"`
	Attributed float64          `json:"attributed"`
	Off        estimateOut      `json:"off"`
	Verdict    verdict.Nearness `json:"verdict"`
}

func newAccount(a *verdict.Account) accountOut {
	out := accountOut{Workload: a.Workload, Source: a.Source, Owners: make([]ownerOut, 0, len(a.Owners))}
	for _, s := range a.Arms {
		out.Arms = append(out.Arms, spentOut{s.Arm, s.N, estimated(s.CPU), s.Bytes, s.Objects, s.Waiting, s.Share, present(s.Causes)})
	}
	for _, o := range a.Owners {
		row := ownerOut{Kind: o.Kind, Owner: o.Name, Where: o.Where}
		for i, p := range o.In {
			if p.N == 0 && p.Change == nil {
				continue
			}
			part := partOut{Arm: a.Arms[i].Arm, N: p.N, Self: estimated(p.Self), GC: p.GC, Bytes: p.Bytes, Objects: p.Objects, Waiting: p.Waiting, Causes: present(p.Causes)}
			if p.Change != nil {
				change := estimated(*p.Change)
				part.Change = &change
			}
			row.In = append(row.In, part)
		}
		out.Owners = append(out.Owners, row)
	}
	return out
}

func newAccuracy(x *verdict.Accuracy) accuracyOut {
	out := accuracyOut{
		Workload: x.Workload, Arm: x.Arm, Part: x.Part, Against: x.Against, Quantity: string(x.Quantity), Band: x.Band,
	}
	for _, h := range x.By {
		out.By = append(out.By, heldOut{h.Source, h.Owner, h.N, h.Truth, h.Attributed, estimated(h.Off), h.Verdict})
	}
	if x.Apart != nil {
		apart := estimated(*x.Apart)
		out.Apart = &apart
	}
	return out
}

func estimated(e verdict.Estimate) estimateOut { return *newEstimate(e.Value, e.Interval) }

// present is a list that is there even without entries.
func present(causes []cost.Share) []cost.Share {
	if causes == nil {
		return []cost.Share{}
	}
	return causes
}
