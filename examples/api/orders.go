package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	_ "modernc.org/sqlite" // the driver

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

// orders are all orders, in a file of SQLite. An order that was answered for is on the
// disk. It is safe for concurrent use.
type orders struct {
	db                   *sql.DB
	placing, one, latest *sql.Stmt
}

// mostListed bounds a list.
const mostListed = 1000

// openOrders opens the file, which is made if it is not there.
func openOrders(path string) (*orders, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute),
		RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, err
	}
	o := &orders{db: db}
	if err := o.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the orders in %s: %w (move the file away, or name another)", path, err), db.Close())
	}
	return o, nil
}

func (o *orders) prepare() error {
	for _, statement := range []string{
		`CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, placed BIGINT NOT NULL, items TEXT NOT NULL)`,
		`CREATE INDEX IF NOT EXISTS orders_of_customers ON orders (customer, placed)`,
	} {
		if _, err := o.db.Exec(statement); err != nil {
			return err
		}
	}
	for to, statement := range map[**sql.Stmt]string{
		&o.placing: `INSERT INTO orders (id, customer, placed, items) VALUES ($1, $2, $3, $4)`,
		&o.one:     `SELECT id, customer, placed, items FROM orders WHERE customer = $1 AND id = $2`,
		&o.latest:  `SELECT id, customer, placed, items FROM orders WHERE customer = $1 ORDER BY placed DESC, id LIMIT $2`,
	} {
		var err error
		if *to, err = o.db.Prepare(statement); err != nil {
			return err
		}
	}
	return nil
}

// place adds an order and returns when it is on the disk.
func (o *orders) place(ctx context.Context, one *order) error {
	items, err := json.Marshal(one.Items)
	if err == nil {
		_, err = o.placing.ExecContext(ctx, one.ID, one.Customer, one.Placed.UnixMicro(), string(items))
	}
	return err
}

// find returns an order of a customer, nil if there is none.
func (o *orders) find(ctx context.Context, customer, id string) (*order, error) {
	one, err := scan(o.one.QueryRowContext(ctx, customer, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return one, err
}

// list returns a customer's latest orders, oldest first.
func (o *orders) list(ctx context.Context, customer string) ([]*order, error) {
	rows, err := o.latest.QueryContext(ctx, customer, mostListed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []*order{}
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.Reverse(all)
	return all, rows.Err()
}

// scan reads an order of a row.
func scan(row interface{ Scan(...any) error }) (*order, error) {
	var one order
	var placed int64
	var items []byte
	if err := row.Scan(&one.ID, &one.Customer, &placed, &items); err != nil {
		return nil, err
	}
	one.Placed = time.UnixMicro(placed).UTC()
	return &one, json.Unmarshal(items, &one.Items)
}

func (o *orders) close() error { return o.db.Close() }

// routes returns what clients may ask for.
func (o *orders) routes() http.Handler {
	rt := new(router.Router)
	rt.HandleFunc("POST /orders", o.servePlace)
	rt.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		if all, err := o.list(r.Context(), customer(r)); !failed(r, err) {
			answer(w, http.StatusOK, all)
		}
	})
	rt.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch one, err := o.find(r.Context(), customer(r), r.PathValue("id")); {
		case failed(r, err):
		case one == nil:
			http.Error(w, "there is no such order", http.StatusNotFound)
		default:
			answer(w, http.StatusOK, one)
		}
	})
	return rt
}

// failed reports whether there is no time left, which the layer timeout answers. Another
// error is logged and answered by recovery.
func failed(r *http.Request, err error) bool {
	if err != nil && r.Context().Err() == nil {
		panic(fmt.Errorf("asking for orders: %w", err))
	}
	return err != nil
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
	if _, err := body.Token(); err != io.EOF {
		http.Error(w, "the body has more than an order", http.StatusBadRequest)
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
	if failed(r, o.place(r.Context(), one)) {
		return
	}
	w.Header().Set("Location", "/orders/"+one.ID)
	answer(w, http.StatusCreated, one)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error is the client's going
}
