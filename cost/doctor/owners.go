package doctor

import (
	"fmt"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// ownersRule asks after owners that alone take much of each request: any owner for what
// could be done once, a middleware for whatever it is. What else a handler does is what the
// service is for.
func ownersRule() Rule {
	return Rule{
		Name:      "owners",
		Question:  "Does one owner take much of each request?",
		Threshold: "more than 1 % of the CPU for what could be done once, such as compiling a regular expression; or a middleware that takes more than 20 % by itself",
		Verify:    verifyCost,
		needs:     []Part{CPUProfile, BusyService},
		check:     checkOwners,
	}
}

// heavy is the share of the CPU beyond which a middleware by itself counts.
const heavy = 0.20

func checkOwners(e *Evidence) ([]Finding, *Missing) {
	tasks, middlewares := e.tasks()
	var found []Finding
	for k, s := range tasks {
		cpu, allocs := s[0], s[1]
		price := e.priced(sum(cpu, nil), sum(allocs, nil))
		f := Finding{Price: &price, Evidence: e.largest(cpu, unit.Nanoseconds, called)}
		switch share := unit.Format(price.Share, unit.Share); {
		case len(cpu) == 0:
			continue
		case k.setup != "":
			f.Severity = e.weighCPU(price, leastShare)
			f.Title = fmt.Sprintf("%s spends %s of the CPU on %s in requests", k.owner.Name, share, k.setup)
			f.Remedy = "do it once, when the program starts or what it is made from changes, and keep the result: all requests can use it at the same time"
		case !middlewares[k.owner] || e.weighCPU(price, heavy) == Cheap:
			continue
		default:
			f.Severity = e.weighCPU(price, heavy)
			f.Title = fmt.Sprintf("the middleware %s takes %s of the CPU by itself", k.owner.Name, share)
			f.Remedy = "look at what it calls: do once what is the same for all requests, keep results that are asked for again, and pass on early the requests that do not need it"
			if sum(cpu, symptom.Hashing).Value > sum(cpu, nil).Value/2 {
				f.Remedy = "a hash for passwords is slow on purpose: check the password once, when a session begins; the other requests carry a session or a signed token"
			}
		}
		found = append(found, f)
	}
	return dearestFirst(found), nil
}

// task is what one owner does in requests: a kind of setup, or "" for all else.
type task struct {
	owner cost.Owner
	setup string
}

// sampled are the stacks of a task from its owner inward, of CPU and of allocations.
type sampled [2][]cost.Stack

// compressing is what the rule about compression judges.
var compressing = symptom.Calls("compress/", "github.com/klauspost/compress/", "github.com/andybalholm/brotli.")

// tasks sorts what requests do, and says which owners are middlewares.
func (e *Evidence) tasks() (tasks map[task]*sampled, middlewares map[cost.Owner]bool) {
	tasks, middlewares = map[task]*sampled{}, map[cost.Owner]bool{}
	rules := cost.Learn(e.CPU, e.Allocs)
	table := cost.Table{Rules: rules}
	for i, stacks := range [...][]cost.Stack{e.CPU, e.Allocs} {
		for _, s := range stacks {
			table.Add(&cost.Stack{Frames: s.Frames}) // only who calls whom matters
			owner, inside := rules.Inside(s.Frames)
			if owner.Kind != cost.Handler || symptom.Instrument(s.Frames) || compressing(inside) >= 0 {
				continue
			}
			k := task{owner, symptom.Setup(inside)}
			if tasks[k] == nil {
				tasks[k] = new(sampled)
			}
			s.Frames = inside
			tasks[k][i] = append(tasks[k][i], s)
		}
	}
	for _, r := range table.Rows() {
		if owner := r.Owner; owner.Kind == cost.Middleware {
			owner.Kind = cost.Handler // as one stack has it
			middlewares[owner] = true
		}
	}
	return tasks, middlewares
}

// called names what an owner, the last of the frames, had done, and from where: by the
// outermost function of another package, else by the innermost of its own.
func called(frames []cost.Frame) (Row, bool) {
	own := frames[len(frames)-1].Package()
	for i := len(frames) - 2; i >= 0; i-- {
		if f, by := frames[i], frames[i+1]; f.Package() != own {
			return Row{What: f.Name() + ", called by " + by.Name(), Where: shortPlace(by), Package: f.Package()}, true
		}
	}
	return Row{What: frames[0].Name(), Package: own}, true
}
