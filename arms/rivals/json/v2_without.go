//go:build !goexperiment.jsonv2

package main

import "errors"

func newV2() (codec, error) {
	return codec{}, errors.New("encoder v2: build with GOEXPERIMENT=jsonv2")
}
