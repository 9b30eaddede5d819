package serve_test

import (
	"net/http"
)

// control is the server whose behaviour is the measure.
func control() side {
	return side{"net/http", func(s *http.Server) server { return s }}
}

// sides are compared with control.
func sides() []side {
	return []side{
		control(),
	}
}
