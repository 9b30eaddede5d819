package main

import (
	stdlib "encoding/json"
	"fmt"

	"github.com/bytedance/sonic"
	gojson "github.com/goccy/go-json"
	"github.com/mailru/easyjson"

	"github.com/tarehq/tare/arms/rivals/json/payload"
)

// codec encodes and decodes a page.
type codec struct {
	encode func(*payload.Page) ([]byte, error)
	decode func([]byte, *payload.Page) error
}

const encoders = "std, v2 (with GOEXPERIMENT=jsonv2), sonic, go-json or easyjson"

func newCodec(name string) (codec, error) {
	switch name {
	case "std":
		return codec{
			func(p *payload.Page) ([]byte, error) { return stdlib.Marshal(p) },
			func(b []byte, p *payload.Page) error { return stdlib.Unmarshal(b, p) },
		}, nil
	case "v2":
		return newV2()
	case "sonic":
		return codec{
			func(p *payload.Page) ([]byte, error) { return sonic.Marshal(p) },
			func(b []byte, p *payload.Page) error { return sonic.Unmarshal(b, p) },
		}, nil
	case "go-json":
		return codec{
			func(p *payload.Page) ([]byte, error) { return gojson.Marshal(p) },
			func(b []byte, p *payload.Page) error { return gojson.Unmarshal(b, p) },
		}, nil
	case "easyjson":
		return codec{
			func(p *payload.Page) ([]byte, error) { return easyjson.Marshal(p) },
			func(b []byte, p *payload.Page) error { return easyjson.Unmarshal(b, p) },
		}, nil
	}
	return codec{}, fmt.Errorf("encoder %q: want %s", name, encoders)
}
