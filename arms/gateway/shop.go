package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/arms/upstream"
	"github.com/tarehq/tare/serve/client"
)

const (
	secret   = "a secret of thirty-two bytes, at least" // signs the tokens
	keyID    = "shop"
	audience = "shop"
	rounds   = 32 // of deriving a key from a password; a real service takes thousands
	articles = 1024
	tastes   = 16 // what an article appeals to
	best     = 5
	longest  = 1 << 10 // bytes of a body
)

// shop is the service. It is safe for concurrent use.
type shop struct {
	stock   [articles][tastes]float32
	payment string // URL
	client  *http.Client
	orders  atomic.Int64
}

func newShop() (http.Handler, error) {
	payment, err := upstream.Start(http.HandlerFunc(pay))
	if err != nil {
		return nil, err
	}
	s := &shop{payment: payment, client: &http.Client{Transport: client.NewTransport()}}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range s.stock {
		for k := range s.stock[i] {
			s.stock[i][k] = rng.Float32()
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", login)
	mux.HandleFunc("GET /recommend", s.recommend)
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, map[string]bool{"ready": true}) })
	return mux, nil
}

// pay takes the payment of /?sum=CENTS, and answers with a receipt.
func pay(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.URL.Query().Get("sum")))
	_, _ = io.WriteString(w, base64.RawURLEncoding.EncodeToString(sum[:])) // fails when the shop has gone
}

// login answers who knows the password with a token.
func login(w http.ResponseWriter, r *http.Request) {
	var who struct{ Name, Password string }
	if !read(w, r, &who) {
		return
	}
	given, err := pbkdf2.Key(sha256.New, who.Password, []byte(who.Name), rounds, sha256.Size)
	// What a table of users would hold is derived as well, since there is none.
	known, err2 := pbkdf2.Key(sha256.New, "secret of "+who.Name, []byte(who.Name), rounds, sha256.Size)
	if err != nil || err2 != nil || who.Name == "" || subtle.ConstantTimeCompare(given, known) == 0 {
		http.Error(w, "name and password do not fit", http.StatusUnauthorized)
		return
	}
	token, err := sign(who.Name, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, http.StatusOK, map[string]string{"token": token})
}

// sign makes the token of a user, which holds for an hour.
func sign(name string, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"sub": name, "aud": audience, "exp": now.Add(time.Hour).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","kid":"`+keyID+`"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text)) // gives no error
	return text + "." + encode(mac.Sum(nil)), nil
}

type article struct {
	ID    int     `json:"id"`
	Fit   float32 `json:"fit"`
	Price int     `json:"price"` // cents
}

// recommend ranks all articles by the user's taste.
func (s *shop) recommend(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.URL.Query().Get("user")))
	var top [best]article
	for i := range s.stock {
		fit := float32(0)
		for k, v := range s.stock[i] {
			fit += v * float32(sum[k])
		}
		for at := best - 1; at >= 0 && fit > top[at].Fit; at-- {
			if at+1 < best {
				top[at+1] = top[at]
			}
			top[at] = article{i, fit, price(i)}
		}
	}
	reply(w, http.StatusOK, map[string]any{"articles": top[:]})
}

func price(id int) int { return 100 + id }

// order takes the payment and answers with the order's number.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	var what struct{ Article, Count int }
	if !read(w, r, &what) {
		return
	}
	if what.Article < 0 || what.Article >= articles || what.Count < 1 || what.Count > 100 {
		http.Error(w, "there is no such article, or not so many of it", http.StatusBadRequest)
		return
	}
	sum := what.Count * price(what.Article)
	receipt, err := upstream.Get(r.Context(), s.client, s.payment+"/?sum="+strconv.Itoa(sum))
	if err != nil {
		http.Error(w, "the payment failed", http.StatusBadGateway)
		return
	}
	reply(w, http.StatusCreated, map[string]any{"order": s.orders.Add(1), "sum": sum, "receipt": receipt})
}

// read decodes a body; false is that the request has its answer.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longest)).Decode(into); err != nil {
		http.Error(w, "the body is not what is asked for", http.StatusBadRequest)
		return false
	}
	return true
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails when the client has gone
}
