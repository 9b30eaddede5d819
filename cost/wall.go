package cost

// Wall is what the clock saw of an owner when every one of its calls was
// watched, waiting included.
type Wall struct {
	Owner Owner
	Calls float64 // exact
	// Self and Total are nanoseconds in all calls whose end was seen: without and
	// with the other owners that were watched inside them.
	Self, Total float64
	// Seen is how many of the calls that is.
	Seen float64
	// P50 and P99 are quantiles of one call's Self, in nanoseconds.
	P50, P99 float64
	// Around says that another owner was seen inside one of its calls.
	Around bool
}

// WallShare is a Wall as a bill has it.
type WallShare struct {
	Calls float64 `json:"calls"`   // per Bill.Per
	Self  float64 `json:"self_ns"` // of one call, as are those that follow
	Total float64 `json:"total_ns"`
	P50   float64 `json:"p50_ns"`
	P99   float64 `json:"p99_ns"`
}

// AddWalls adds what was seen of owners by the clock. w is the window in which
// they were watched; it should count requests if the bill does.
func (b *Bill) AddWalls(walls []Wall, w Window) {
	by, _ := w.divisor()
	for _, wall := range walls {
		if wall.Seen <= 0 {
			continue
		}
		share := &WallShare{Calls: wall.Calls / by, Self: wall.Self / wall.Seen, Total: wall.Total / wall.Seen, P50: wall.P50, P99: wall.P99}
		it := b.itemOf(wall.Owner)
		it.Wall = share
		if wall.Around && it.Kind == Handler.String() {
			it.Kind = Middleware.String() // what it calls may be too quick to be sampled
		}
	}
}

// itemOf finds an owner's item, and appends one that spent nothing if there is
// none: it was called too seldom to be sampled, or only waited.
func (b *Bill) itemOf(o Owner) *Item {
	at := -1
	for i := range b.Items {
		it := &b.Items[i]
		if it.place != o.place() {
			continue
		}
		if it.Where == o.Where() {
			return it
		}
		at = i
	}
	if at >= 0 && o.Decl == 0 {
		return &b.Items[at]
	}
	b.Items = append(b.Items, Item{Kind: o.Kind.String(), Owner: o.Name, Where: o.Where(), place: o.place()})
	return &b.Items[len(b.Items)-1]
}
