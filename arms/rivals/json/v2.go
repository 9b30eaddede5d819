//go:build goexperiment.jsonv2

package main

import (
	"encoding/json/v2"

	"github.com/tarehq/tare/arms/rivals/json/payload"
)

func newV2() (codec, error) {
	return codec{
		func(p *payload.Page) ([]byte, error) { return json.Marshal(p) },
		func(b []byte, p *payload.Page) error { return json.Unmarshal(b, p) },
	}, nil
}
