package routes

import (
	"fmt"
	"strings"
)

// mostRoutes is the size of the largest table that can be made.
const mostRoutes = 5000

// Service returns the table of a service with n routes, ten for each of its
// resources: three static ones, six with parameters, and one for what is left of
// a path. The resource "orders" stands in the middle of every such table, so
// that tables of different size can be asked for the same:
//
//	GET /reports/orders/daily
//	GET /orders/{id}/history/{version}
//	GET /files/orders/{path...}
//
// while GET /orders/7/nothing has no route.
func Service(n int) (Table, error) {
	const each = 10
	if n < each || n > mostRoutes || n%each != 0 {
		return nil, fmt.Errorf("a service of %d routes: want a multiple of %d from %[2]d to %d", n, each, mostRoutes)
	}
	var text strings.Builder
	for _, name := range resources(n / each) {
		text.WriteString(strings.ReplaceAll(resource, "NAME", name))
	}
	return parse(text.String()), nil
}

const resource = `/NAME GET POST
/NAME/{id} GET PUT DELETE
/NAME/{id}/history GET
/NAME/{id}/history/{version} GET
/NAME/{id}/notes POST
/reports/NAME/daily GET
/files/NAME/{path...} GET
`

// Constrained returns the same table as [Service], with every parameter of one
// segment held to the regular expression [0-9]+. What it is asked for is the
// same, too, as long as those are numbers.
func Constrained(n int) (Table, error) {
	t, err := Service(n)
	if err != nil {
		return nil, err
	}
	for i := range t {
		t[i].Pattern = t[i].spell(func(seg segment) string {
			if seg.rest {
				return seg.text
			}
			return "{" + seg.name + ":[0-9]+}"
		})
	}
	return t, nil
}

// OfKind returns n routes that are all of one kind: static, parameter, regexp or
// wildcard. GET /orders/items/42 finds the one in the middle of each, and GET
// /orders/nothing/42 has no route.
func OfKind(kind string, n int) (Table, error) {
	end, ok := kinds()[kind]
	if !ok || n < 1 || n > mostRoutes {
		return nil, fmt.Errorf("%d routes of the kind %q: want 1 to %d, static, parameter, regexp or wildcard", n, kind, mostRoutes)
	}
	var t Table
	for _, name := range resources(n) {
		t = append(t, Route{"GET", "/" + name + "/items/" + end})
	}
	return t, nil
}

// kinds are the last segments of patterns, by kind.
func kinds() map[string]string {
	return map[string]string{
		"static":    "42",
		"parameter": "{id}",
		"regexp":    "{id:[0-9]+}",
		"wildcard":  "{path...}",
	}
}

// resources returns n different names, orders in the middle.
func resources(n int) []string {
	words := strings.Fields(`accounts addresses articles baskets branches carriers
		categories comments contracts coupons customers deliveries devices
		discounts documents employees groups images invoices labels licences
		locations messages notes offers packages partners payments permissions
		plans prices products profiles projects providers receipts refunds
		regions returns reviews roles sessions settings shipments stocks stores
		subscriptions suppliers tags taxes teams tickets tokens transfers users
		vendors videos vouchers warehouses webhooks wishlists zones`)
	names := make([]string, n)
	for i := range names {
		names[i] = words[i%len(words)]
		for more := i / len(words); more > 0; more /= len(words) {
			names[i] += "-" + words[more%len(words)]
		}
	}
	names[n/2] = "orders"
	return names
}
