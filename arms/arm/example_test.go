package arm_test

import (
	"io"
	"net/http"

	"github.com/tarehq/tare/arms/arm"
)

// A whole arm: tare starts it, and so can a person by hand.
func ExampleMain() {
	arm.Main(arm.Options{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "pong")
		}),
	})
}
