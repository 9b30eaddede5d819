package router_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/serve/router"
)

func Example() {
	rt := new(router.Router)
	rt.HandleFunc("GET /users/{id:int}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %s by %s", r.PathValue("id"), r.Pattern)
	})
	rt.HandleFunc("GET /users/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user called %s", r.PathValue("name"))
	})
	rt.HandleFunc("GET /files/{path...}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "file %s", r.PathValue("path"))
	})

	for _, target := range []string{"/users/7", "/users/ann", "/files/css/main.css"} {
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(w.Body)
	}
	w := httptest.NewRecorder()
	rt.ServeHTTP(w, httptest.NewRequest("DELETE", "/users/7", nil))
	fmt.Println(w.Code, w.Header().Get("Allow"))
	// Output:
	// user 7 by GET /users/{id:int}
	// user called ann
	// file css/main.css
	// 405 GET, HEAD
}

func ExampleRouter_Group() {
	admin := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	page := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Pattern) }

	rt := new(router.Router)
	rt.HandleFunc("GET /{$}", page)
	g := rt.Group("/admin/{tenant}", admin)
	g.HandleFunc("GET", page)
	g.HandleFunc("GET /users", page)
	g.HandleFunc("DELETE /users/{id}", page)

	for route := range rt.Routes() {
		fmt.Println(route.Pattern)
	}
	w := httptest.NewRecorder()
	rt.ServeHTTP(w, httptest.NewRequest("GET", "/admin/acme/users", nil))
	fmt.Println(w.Code)
	// Output:
	// GET /{$}
	// GET /admin/{tenant}
	// GET /admin/{tenant}/users
	// DELETE /admin/{tenant}/users/{id}
	// 401
}

func ExampleRouter_URL() {
	rt := new(router.Router)
	err := rt.Add(router.Route{
		Name:    "file",
		Pattern: "GET /repos/{repo}/files/{path...}",
		Handler: http.NotFoundHandler(),
	})
	if err != nil {
		fmt.Println(err)
	}
	u, err := rt.URL("file", "repo", "tare/serve", "path", "docs/a b.md")
	fmt.Println(u, err)
	_, err = rt.URL("file", "repo", "tare")
	fmt.Println(err)
	// Output:
	// /repos/tare%2Fserve/files/docs/a%20b.md <nil>
	// building a URL of "GET /repos/{repo}/files/{path...}": "path" is missing
}

func ExampleRouter_Add() {
	rt := new(router.Router)
	h := http.NotFoundHandler()
	fmt.Println(rt.Add(router.Route{Pattern: "/posts/{id}", Handler: h, Location: "api.yaml:3"}))
	fmt.Println(rt.Add(router.Route{Pattern: "/{kind}/latest", Handler: h, Location: "api.yaml:9"}))
	// Output:
	// <nil>
	// pattern "/{kind}/latest" (api.yaml:9) conflicts with "/posts/{id}" (api.yaml:3): both match GET /posts/latest, and neither is more specific
}
