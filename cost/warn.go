package cost

import (
	"cmp"
	"fmt"
	"github.com/tarehq/tare/cost/internal/framework"
	"github.com/tarehq/tare/cost/internal/symbol"
	"maps"
	"path"
	"slices"
	"strings"
)

// lumped warns of a handler that holds most of the CPU in several functions of the
// program's: they may be middlewares of a chain that was not recognised.
func (b *Bill) lumped(cpu []Stack, rows []Row, sum float64) {
	const most, several, least = 0.5, 3, 0.05
	for _, r := range rows {
		if r.Owner.Kind != Handler || r.Self.Value < most*sum || r.Self.Value == 0 {
			continue
		}
		parts := map[string]float64{}
		for i := range cpu {
			owner, inside := b.rules.Inside(cpu[i].Frames)
			if owner != r.Owner {
				continue
			}
			if k := slices.IndexFunc(inside, func(f Frame) bool { return !framework.Foreign(symbol.Package(f.Func)) }); k >= 0 {
				parts[inside[k].Name()] += cpu[i].Value / r.Self.Value
			}
		}
		names := slices.SortedFunc(maps.Keys(parts), func(x, y string) int { return cmp.Or(cmp.Compare(parts[y], parts[x]), cmp.Compare(x, y)) })
		names = slices.DeleteFunc(names, func(name string) bool { return parts[name] < least })
		if len(names) < several {
			continue
		}
		for i, name := range names[:several] {
			names[i] = fmt.Sprintf("%s (%.0f %%)", name, 100*parts[name])
		}
		b.Warnings = append(b.Warnings, fmt.Sprintf("the handler %s holds %.0f %% of the CPU, mostly in %s: if any is a middleware, --pid N --marks --owner NAME gives it a row",
			r.Owner.Name, 100*r.Self.Value/sum, strings.Join(names[:several], ", ")))
	}
}

// guessed warns of handlers that nobody saw answer.
func (b *Bill) guessed() {
	for _, g := range slices.Compact(slices.SortedFunc(slices.Values(b.rules.guessed), func(x, y [2]string) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })) {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%s was taken for the handler behind %s, for most of the CPU there: no function was seen to answer", g[0], g[1]))
	}
}

// distinguish sets owners' packages, and puts before the names of owners in different folders, where they are the
// same, as much of the folders' paths as tells them apart.
func (b *Bill) distinguish() {
	same := map[string][]int{}
	for i, it := range b.Items {
		b.Items[i].Package = b.rules.Package(it.place)
		if it.place.File != "" {
			same[it.Owner] = append(same[it.Owner], i)
		}
	}
	for name, at := range same {
		folders := map[string]bool{}
		for _, i := range at {
			folders[path.Dir(b.Items[i].place.File)] = true
		}
		const deepest = 16
		for n := 1; len(folders) > 1 && n < deepest; n++ {
			names := map[string]bool{}
			for folder := range folders {
				names[symbol.Parents(folder, n)] = true
			}
			if len(names) < len(folders) {
				continue
			}
			for _, i := range at {
				b.Items[i].Owner = symbol.Parents(path.Dir(b.Items[i].place.File), n) + "/" + name
			}
			break
		}
	}
}
