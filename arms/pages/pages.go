// Package pages holds what the arms of the studies compression, levels and static answer:
// pages and files of several types and sizes, the same in every process.
//
// Prose is the documentation's own. HTML has the marks that sites put around it, JSON is a
// list of records, and the picture cannot be compressed.
package pages

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed prose.txt
var prose string

// Page is an answer. Callers do not change its body.
type Page struct {
	Path string // with an ending that says the type
	Type string // Content-Type
	Body []byte
}

// The types.
const (
	HTML = "text/html; charset=utf-8"
	Text = "text/plain; charset=utf-8"
	JSON = "application/json"
	JPEG = "image/jpeg"
)

// All returns pages to compress: HTML, text, JSON and a picture of 16 KiB, and JSON of at
// most 256 bytes and 1 MiB.
func All() []Page {
	const usual = 16 << 10
	return []Page{
		{"/16k.html", HTML, hypertext(usual)},
		{"/16k.txt", Text, []byte(prose[:usual])},
		{"/16k.json", JSON, records(usual)},
		{"/16k.jpg", JPEG, picture(usual)},
		{"/256.json", JSON, records(256)},
		{"/1m.json", JSON, records(1 << 20)},
	}
}

// Line is what files consist of: 16 bytes.
const Line = "0123456789abcde\n"

// Files returns text files of 1 KiB, 100 KiB and 10 MiB.
func Files() []Page {
	lines := func(path string, size int) Page {
		return Page{path, Text, []byte(strings.Repeat(Line, size/len(Line)))}
	}
	return []Page{lines("/1k.txt", 1<<10), lines("/100k.txt", 100<<10), lines("/10m.txt", 10<<20)}
}

// Written is when files were changed last: long enough ago for servers to trust the time.
var Written = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Write writes the pages to files below a directory, which it makes.
func Write(dir string, all []Page) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range all {
		name := filepath.Join(dir, filepath.FromSlash(p.Path))
		if err := os.WriteFile(name, p.Body, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(name, Written, Written); err != nil {
			return err
		}
	}
	return nil
}

// hypertext is prose as a site shows it, cut at the size.
func hypertext(size int) []byte {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Entries</title>\n" +
		"<link rel=\"stylesheet\" href=\"/assets/site-4f1c9d.css\">\n<script defer src=\"/assets/site-93ab07.js\"></script>\n</head>\n<body>\n<main class=\"entries\">\n")
	random := rand.New(rand.NewPCG(3, 4))
	for i, text := range strings.Split(strings.TrimSpace(prose), "\n\n") {
		words := strings.Fields(text)
		title := strings.Join(words[:min(len(words), 5)], " ")
		fmt.Fprintf(&b, "<article class=\"entry entry--text\" id=\"entry-%d\">\n  <h2 class=\"entry__title\"><a href=\"/entries/%d\">%s</a></h2>\n  <p class=\"entry__text\">%s</p>\n"+
			"  <footer class=\"entry__footer\"><time datetime=\"2026-%02d-%02d\">%d days ago</time> <a class=\"entry__more\" href=\"/entries/%d#comments\">%d comments</a></footer>\n</article>\n",
			i, i, title, text, 1+random.IntN(12), 1+random.IntN(28), random.IntN(300), i, random.IntN(90))
	}
	return []byte(b.String()[:size])
}

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	City     string `json:"city"`
	Placed   string `json:"placed"`
	Total    string `json:"total"`
	State    string `json:"state"`
	Lines    []line `json:"lines"`
	Note     string `json:"note,omitempty"`
}

type line struct {
	Article int `json:"article"`
	Count   int `json:"count"`
}

var (
	names  = []string{"Anna", "Bo", "Chiara", "Dmitri", "Elif", "Femi", "Greta", "Hiro", "Ines", "Jonas", "Keiko", "Liam", "Mira", "Noor", "Olu", "Pia"}
	family = []string{"Abe", "Bauer", "Costa", "Diaz", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kaya", "Lopez", "Moreau", "Nowak", "Okafor", "Rossi"}
	cities = []string{"Accra", "Bergen", "Cologne", "Dublin", "Esbjerg", "Faro", "Genoa", "Helsinki", "Izmir", "Jakarta", "Kyoto", "Lyon", "Malmo", "Naples", "Oslo", "Porto"}
	states = []string{"open", "paid", "sent", "returned"}
)

// records is a list of orders, of at most so many bytes.
func records(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	notes := strings.Split(strings.TrimSpace(prose), "\n\n")
	const start, end = `{"orders":[`, `]}`
	b := []byte(start)
	for i := 0; ; i++ {
		o := order{
			ID:       fmt.Sprintf("%016x", random.Uint64()),
			Customer: names[random.IntN(len(names))] + " " + family[random.IntN(len(family))],
			City:     cities[random.IntN(len(cities))],
			Placed:   Written.Add(-time.Duration(random.IntN(1e7)) * time.Second).Format(time.RFC3339),
			Total:    fmt.Sprintf("%d.%02d", random.IntN(500), random.IntN(100)),
			State:    states[random.IntN(len(states))],
			Lines:    []line{{100_000 + random.IntN(900_000), 1 + random.IntN(5)}},
		}
		if i%3 == 1 {
			words := strings.Fields(notes[random.IntN(len(notes))])
			from := random.IntN(len(words))
			o.Note = strings.Join(words[from:min(len(words), from+12)], " ")
		}
		record, err := json.Marshal(o)
		if err != nil {
			panic(err) // an order has nothing that could not be encoded
		}
		if len(b)+1+len(record)+len(end) > size {
			return append(b, end...)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, record...)
	}
}

// picture begins as a JPEG does. What follows is as random as what is compressed.
func picture(size int) []byte {
	b := []byte("\xff\xd8\xff\xe0")
	for random := rand.New(rand.NewPCG(5, 6)); len(b) < size; {
		b = append(b, byte(random.Uint32()))
	}
	return b
}
