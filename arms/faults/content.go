package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func plain() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello\n")
	})
}

// entry is a line of a made-up answer.
type entry struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Price float64  `json:"price"`
}

func entries() []entry {
	all := make([]entry, 200)
	for i := range all {
		all[i] = entry{ID: i, Name: "article " + strconv.Itoa(i), Tags: []string{"new", "blue", "small"}, Price: float64(i) / 8}
	}
	return all
}

// reflected encodes by reflection for each request.
func reflected() http.Handler {
	all := entries()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(all)
	})
}

// appended writes the same by hand.
func appended() http.Handler {
	all := entries()
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		*b = appendEntries((*b)[:0], all)
		w.Write(*b)
	})
}

func appendEntries(b []byte, all []entry) []byte {
	b = append(b, '[')
	for i := range all {
		e := &all[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = strconv.AppendInt(b, int64(e.ID), 10)
		b = append(b, `,"name":"`...)
		b = append(b, e.Name...) // names need no escapes
		b = append(b, `","tags":["`...)
		for j, t := range e.Tags {
			if j > 0 {
				b = append(b, `","`...)
			}
			b = append(b, t...)
		}
		b = append(b, `"],"price":`...)
		b = strconv.AppendFloat(b, e.Price, 'g', -1, 64)
		b = append(b, '}')
	}
	return append(b, ']', '\n')
}

// printed builds text by reflection.
func printed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 {
			fmt.Fprintf(w, "%d %s %v\n", i, r.URL.Path, r.ContentLength)
		}
	})
}

// concatenated builds the same text by appending.
func concatenated() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 0, 1024)
		for i := range 100 {
			b = strconv.AppendInt(b, int64(i), 10)
			b = append(b, ' ')
			b = append(b, r.URL.Path...)
			b = append(b, ' ')
			b = strconv.AppendInt(b, r.ContentLength, 10)
			b = append(b, '\n')
		}
		w.Write(b)
	})
}

// key is the key of the i-th value of a request.
type key int

const layers = 40

// valueEach has forty layers that each put a value into the request's context.
func valueEach() http.Handler {
	h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for i := range layers {
			n += r.Context().Value(key(i)).(int)
		}
		io.WriteString(w, strconv.Itoa(n))
	}))
	for i := range layers {
		h = &layer{next: h, i: i}
	}
	return h
}

type layer struct {
	next http.Handler
	i    int
}

func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key(l.i), l.i)))
}

// valueOnce carries all of them in one.
func valueOnce() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var values [layers]int
		for i := range values {
			values[i] = i
		}
		r = r.WithContext(context.WithValue(r.Context(), key(0), &values))
		n := 0
		for _, v := range r.Context().Value(key(0)).(*[layers]int) {
			n += v
		}
		io.WriteString(w, strconv.Itoa(n))
	})
}

// askEach asks the runtime for its statistics for each request.
func askEach() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		io.WriteString(w, strconv.FormatUint(m.HeapAlloc, 10))
	})
}

// askSometimes has them read a few times a second.
func askSometimes() http.Handler {
	var heap atomic.Uint64
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for range time.Tick(200 * time.Millisecond) {
			metrics.Read(sample)
			heap.Store(sample[0].Value.Uint64())
		}
	}()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strconv.FormatUint(heap.Load(), 10))
	})
}

// text is what is compressed.
func text() []byte {
	var b strings.Builder
	for i := range 300 {
		b.WriteString("line " + strconv.Itoa(i*i) + " of a page that has something to say about " + strconv.Itoa(i%7) + "\n")
	}
	return []byte(b.String())
}

// compressHard makes a writer for each request and searches long.
func compressHard() http.Handler {
	page := text()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		z.Write(page)
		z.Close()
	})
}

// compressFast uses writers again and does not search.
func compressFast() http.Handler { return compressed(text()) }

// compressAgain does the same to what has no shorter form, as pictures have none.
func compressAgain() http.Handler {
	picture := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{}).Read(picture)
	return compressed(picture)
}

func compressed(page []byte) http.Handler {
	writers := sync.Pool{New: func() any {
		z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is one that there is
		}
		return z
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := writers.Get().(*gzip.Writer)
		defer writers.Put(z)
		z.Reset(w)
		z.Write(page)
		z.Close()
	})
}
