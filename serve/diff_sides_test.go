package serve_test

import (
	"net/http"

	"github.com/tarehq/tare/serve"
)

// control is the server whose behaviour is the measure.
func control() side {
	return side{"net/http", false, func(s *http.Server) server { return s }}
}

// sides are compared with control.
func sides() []side {
	return []side{
		{"safe", false, func(s *http.Server) server { return moved(s) }},
		{"reuse", true, func(s *http.Server) server {
			m := moved(s)
			m.Reuse = true
			return m
		}},
	}
}

// loosened is a side of serve's with switches set.
func (s side) loosened(l serve.Lenient) side {
	strict := s.make
	s.make = func(hs *http.Server) server {
		m := strict(hs).(*serve.Server)
		m.Lenient = l
		return m
	}
	return s
}

// moved is the server that the same settings make of serve.Server: each field
// goes over under its own name.
func moved(s *http.Server) *serve.Server {
	return &serve.Server{
		Addr:                         s.Addr,
		Handler:                      s.Handler,
		DisableGeneralOptionsHandler: s.DisableGeneralOptionsHandler,
		TLSConfig:                    s.TLSConfig,
		ReadTimeout:                  s.ReadTimeout,
		ReadHeaderTimeout:            s.ReadHeaderTimeout,
		WriteTimeout:                 s.WriteTimeout,
		IdleTimeout:                  s.IdleTimeout,
		MaxHeaderBytes:               s.MaxHeaderBytes,
		TLSNextProto:                 s.TLSNextProto,
		ConnState:                    s.ConnState,
		ErrorLog:                     s.ErrorLog,
		BaseContext:                  s.BaseContext,
		ConnContext:                  s.ConnContext,
		HTTP2:                        s.HTTP2,
		Protocols:                    s.Protocols,
	}
}
