package flame

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
)

// Shared is the colour of what several owners share.
const Shared = "hsl(0 0% 82%)"

// hues, in degrees, which most people tell from one another: further apart
// among the greens, where eyes see less of a difference.
var hues = [...]int{5, 28, 46, 66, 98, 150, 178, 199, 218, 252, 285, 325}

// tones are saturation and lightness, in per cent, on which black text can be
// read. Each is used for all hues before the next.
var tones = [...][2]int{{72, 70}, {50, 84}, {38, 60}}

// Colours gives each owner a colour. An owner has the same one in every graph,
// chosen by its name, unless one before it in the list has that already: it then
// takes another, so that no two have the same before all are in use.
func Colours(owners []string) map[string]string {
	all := map[string]string{}
	used := [len(hues)]int{}
	for _, owner := range owners {
		if owner == "" || all[owner] != "" {
			continue
		}
		h := fnv.New32a()
		io.WriteString(h, owner)
		at, least := int(h.Sum32()%uint32(len(hues))), slices.Min(used[:])
		for used[at] > least {
			at = (at + 5) % len(hues) // comes by every hue, its neighbours last
		}
		tone := tones[used[at]%len(tones)]
		used[at]++
		all[owner] = fmt.Sprintf("hsl(%d %d%% %d%%)", hues[at], tone[0], tone[1])
	}
	return all
}

// byArea lists the owners of boxes, that with the largest coloured area first.
func byArea(boxes []Box) []string {
	area := map[string]float64{}
	for _, b := range boxes {
		area[cmp.Or(b.Owner, b.From)] += b.Width
	}
	return slices.SortedFunc(maps.Keys(area), func(x, y string) int {
		return cmp.Or(cmp.Compare(area[y], area[x]), cmp.Compare(x, y))
	})
}
