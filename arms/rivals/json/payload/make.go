package payload

import "strconv"

// New returns a page of so many orders, always the same.
func New(orders int) *Page {
	p := &Page{Next: "/orders?after=" + strconv.Itoa(orders), Total: 10 * orders}
	for i := range orders {
		p.Orders = append(p.Orders, Order{
			ID:       int64(1_000_000 + i),
			Customer: "customer " + strconv.Itoa(i%97),
			Lines: []Line{
				{Article: "a pair of shoes", Count: 1, Price: 7995, Weight: 0.85},
				{Article: "laces, black", Count: 2, Price: 350, Weight: 0.025},
			},
			Tags: []string{"web", "express"},
			Paid: i%3 != 0,
		})
	}
	return p
}
