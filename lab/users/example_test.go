package users_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/users"
	"github.com/tarehq/tare/load"
)

// Fifty users a second come for a fifth of a second, and each asks twice.
func Example() {
	arm := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer arm.Close()
	w := study.Workload{Name: "visits", Flow: &study.Flow{Operations: []string{"home", "list"}, Says: []byte(`{
		"users": {"arrive": "50/s"},
		"flows": [{"name": "visit", "steps": [{"name": "home", "url": "/"}, {"name": "list", "url": "/list"}]}]}`)}}
	res, err := users.Run(context.Background(), users.Options{Workload: w, Base: arm.URL, Load: load.Options{Duration: 200 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range res.Operations {
		fmt.Println(op.Name, op.Counts.Answered())
	}
	// Output:
	// home 10
	// list 10
}
