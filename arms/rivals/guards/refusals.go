package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tarehq/tare/arms/weights/plan"
)

// refusals says by their status how requests are answered that a gateway is there to
// refuse. Its clients are none of a study's.
func refusals(h http.Handler) map[string]string {
	claims := jwt.RegisteredClaims{Subject: "client", ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(plan.Secret)
	if err != nil {
		return nil // the facts are then missing
	}
	stranger, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("a secret of somebody else's, as long"))
	if err != nil {
		return nil
	}
	return map[string]string{
		"without a token":       fmt.Sprint(ask(h, "198.51.100.2", "")),
		"with a forged token":   fmt.Sprint(ask(h, "198.51.100.3", stranger)),
		"from a denied address": fmt.Sprint(ask(h, plan.Denied()[0].Addr().String(), token)),
		"above the limit":       fmt.Sprint(askAbove(h, "198.51.100.1", token)),
	}
}

// askAbove asks for one client until it is refused, by many requests at a time: a busy
// machine may take longer for one after another than the limit asks for. It returns the
// status of the refusal, or 200.
func askAbove(h http.Handler, client, token string) int {
	const together, each = 32, publishedRate
	var refused atomic.Int64
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for i := 0; i < each && refused.Load() == 0; i++ {
				if status := ask(h, client, token); status != http.StatusOK {
					refused.Store(int64(status))
				}
			}
		})
	}
	all.Wait()
	return int(cmp.Or(refused.Load(), http.StatusOK))
}

// ask returns the status of the answer to one request.
func ask(h http.Handler, client, token string) int {
	r := httptest.NewRequest(http.MethodGet, "/orders/7", nil)
	r.Header.Set("X-Forwarded-For", client)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}
