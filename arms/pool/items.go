package main

import (
	"bytes"
	"strconv"
)

const (
	opening = `{"items":[`
	closing = `]}`
	name    = `,"name":"an item of the list"}`
)

// encode writes that many items as JSON.
func encode(b *bytes.Buffer, items int) {
	b.WriteString(opening)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":`)
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(1_000_000+i), 10))
		b.WriteString(name)
	}
	b.WriteString(closing)
}

// fitting is how many items are encoded in at most so many bytes.
func fitting(size int) int {
	const item = len(`{"id":1000000`) + len(name) + len(",")
	return (size - len(opening) - len(closing)) / item
}
