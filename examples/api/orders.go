package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/router"
)

// order is what a customer ordered.
type order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Placed   time.Time `json:"placed"`
	Items    []item    `json:"items"`
}

type item struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

// orders are all orders, in memory and in a file with one a line. An order that was
// answered for is on the disk. It is safe for concurrent use.
type orders struct {
	mu         sync.Mutex
	file       *os.File
	size       int64 // of the file, as far as its orders were answered for
	byID       map[string]*order
	byCustomer map[string][]*order
}

// mostOrders bounds the memory that they take.
const mostOrders = 100_000

var errFull = errors.New("no more orders are taken")

// openOrders reads the file, which is made if it is not there. A last line that was cut
// short, as by a power cut, was answered to nobody and is taken off.
func openOrders(path string) (*orders, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	o := &orders{file: file, byID: map[string]*order{}, byCustomer: map[string][]*order{}}
	if err := o.read(); err != nil {
		file.Close()
		return nil, fmt.Errorf("reading the orders of %s: %w", path, err)
	}
	return o, nil
}

func (o *orders) read() error {
	lines := bufio.NewReader(o.file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return o.file.Truncate(o.size)
		}
		if err != nil {
			return err
		}
		var one order
		if err := json.Unmarshal(line, &one); err != nil || one.ID == "" {
			return fmt.Errorf("line %d is not an order: move the file away, or mend it (%w)", n, err)
		}
		o.keep(&one)
		o.size += int64(len(line))
	}
}

func (o *orders) keep(one *order) {
	o.byID[one.ID] = one
	o.byCustomer[one.Customer] = append(o.byCustomer[one.Customer], one)
}

// place adds an order and returns when it is on the disk.
func (o *orders) place(one *order) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.byID) >= mostOrders {
		return errFull
	}
	line = append(line, '\n')
	_, err = o.file.WriteAt(line, o.size)
	if err = errors.Join(err, o.file.Sync()); err != nil {
		return errors.Join(err, o.file.Truncate(o.size))
	}
	o.size += int64(len(line))
	o.keep(one)
	return nil
}

// find returns an order of a customer, nil if there is none.
func (o *orders) find(customer, id string) *order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if one := o.byID[id]; one != nil && one.Customer == customer {
		return one
	}
	return nil
}

// list returns a customer's orders, oldest first.
func (o *orders) list(customer string) []*order {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*order{}, o.byCustomer[customer]...)
}

func (o *orders) close() error { return o.file.Close() }

// routes returns what clients may ask for.
func (o *orders) routes() http.Handler {
	rt := new(router.Router)
	rt.HandleFunc("POST /orders", o.servePlace)
	rt.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, o.list(customer(r)))
	})
	rt.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		one := o.find(customer(r), r.PathValue("id"))
		if one == nil {
			http.Error(w, "there is no such order", http.StatusNotFound)
			return
		}
		answer(w, http.StatusOK, one)
	})
	return rt
}

func (o *orders) servePlace(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Items []item `json:"items"`
	}
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body is not an order: "+err.Error(), http.StatusBadRequest)
		return
	}
	for _, one := range asked.Items {
		if one.SKU == "" || one.Count < 1 {
			http.Error(w, "each item needs a sku, and a count from 1", http.StatusBadRequest)
			return
		}
	}
	if len(asked.Items) == 0 {
		http.Error(w, "an order needs items", http.StatusBadRequest)
		return
	}
	one := &order{ID: rand.Text(), Customer: customer(r), Placed: time.Now().UTC(), Items: asked.Items}
	if err := o.place(one); errors.Is(err, errFull) {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	} else if err != nil {
		panic(fmt.Errorf("keeping an order: %w", err)) // recovery logs it, and answers 500
	}
	w.Header().Set("Location", "/orders/"+one.ID)
	answer(w, http.StatusCreated, one)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error is the client's going
}
