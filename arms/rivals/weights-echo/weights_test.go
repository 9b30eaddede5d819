package main

import (
	"maps"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tarehq/tare/arms/weights/plan"
)

// token is one that the secret signs, as Authorization has it.
func token(t *testing.T, secret []byte) string {
	t.Helper()
	claims := jwt.RegisteredClaims{Subject: "client", ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + text
}

// TestLayers has each layer answer the study's request, and no other layer be known.
func TestLayers(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "recovery,accesslog") {
		h, err := handler(name)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/orders/7", nil)
		r.Header.Set("Origin", plan.Origin)
		r.Header.Set("X-Api-Key", plan.Key)
		r.Header.Set("Authorization", token(t, plan.Secret))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() != 1024 {
			t.Errorf("%s: %d, %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
	if _, err := handler("magic"); err == nil {
		t.Error("a layer that is not there: got no error")
	}
}

// TestRefusals has a forged token refused.
func TestRefusals(t *testing.T) {
	h, err := handler("jwt")
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest("GET", "/orders/7", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", token(t, []byte("a secret of somebody else's, as long")))
	h.ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("got %d, want 401", w.Code)
	}
}
