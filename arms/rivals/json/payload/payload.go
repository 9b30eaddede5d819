// Package payload is what the arm json encodes and decodes: a page of orders.
package payload

//go:generate go run github.com/mailru/easyjson/easyjson@v0.9.2 -all -no_std_marshalers -output_filename generated.go payload.go

// Page is one page of a list.
type Page struct {
	Orders []Order `json:"orders"`
	Next   string  `json:"next"`
	Total  int     `json:"total"`
}

// Order is one order.
type Order struct {
	ID       int64    `json:"id"`
	Customer string   `json:"customer"`
	Lines    []Line   `json:"lines"`
	Tags     []string `json:"tags"`
	Paid     bool     `json:"paid"`
}

// Line is one article of an order. The price is in cents.
type Line struct {
	Article string  `json:"article"`
	Count   int     `json:"count"`
	Price   int64   `json:"price"`
	Weight  float64 `json:"weight"`
}
