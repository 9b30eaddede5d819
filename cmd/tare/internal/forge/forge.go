// Package forge comments on the pull request that a CI job belongs to.
//
// [Find] reads from the environment where the job runs: GitHub Actions or GitLab CI.
// [Pull.Comment] posts a comment, or updates the one that it posted before: a hidden
// marker in the comment's first line identifies it. Errors wrap [ErrNotAllowed] where
// the token lacks a permission, and name it.
package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The reasons for which there is nothing to comment on.
var (
	ErrNoCI       = errors.New("this is neither a job of GitHub Actions nor one of GitLab CI")
	ErrNoPull     = errors.New("this job does not belong to a pull request")
	ErrNotAllowed = errors.New("the token is not allowed to do this")
)

// Pull is a pull request, called merge request on GitLab. It is not safe for concurrent
// use: two comments with one marker could both be new.
type Pull struct {
	Name string // for people, such as "octo/shop#7"

	comments string                // address of its comments
	one      func(id int64) string // address of a comment
	edit     string                // method that changes one
	header   http.Header
	lacks    string // what to do if the token lacks a permission
}

// comment is one as both interfaces give it.
type comment struct {
	ID     int64  `json:"id"`
	Body   string `json:"body"`
	System bool   `json:"system"` // of GitLab itself
	URL    string `json:"html_url"`
}

// Find returns the pull request that the job belongs to. getenv is as os.Getenv.
func Find(getenv func(string) string) (*Pull, error) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return findGitHub(getenv)
	case getenv("GITLAB_CI") == "true":
		return findGitLab(getenv)
	}
	return nil, ErrNoCI
}

// timeout bounds each request.
const timeout = 30 * time.Second

// mostPages bounds the pages of 100 comments that are searched.
const mostPages = 50

// Comment posts a comment, or replaces the one with the same marker: a text without
// --> and line breaks. The address of the comment is "" where it is not known.
func (p *Pull) Comment(ctx context.Context, marker, text string) (address string, err error) {
	first := "<!-- " + marker + " -->"
	old, err := p.search(ctx, first)
	if err != nil {
		return "", fmt.Errorf("reading the comments of %s: %w", p.Name, err)
	}
	body, err := json.Marshal(map[string]string{"body": first + "\n" + text})
	if err != nil {
		return "", err
	}
	method, at := http.MethodPost, p.comments
	if old != 0 {
		method, at = p.edit, p.one(old)
	}
	var posted comment
	_, err = p.do(ctx, method, at, body, &posted)
	if old != 0 && errors.Is(err, ErrNotAllowed) { // it is another author's, such as of a former token
		_, err = p.do(ctx, http.MethodPost, p.comments, body, &posted)
	}
	if err != nil {
		return "", fmt.Errorf("commenting on %s: %w", p.Name, err)
	}
	return posted.URL, nil
}

// search returns the ID of the newest comment that begins with a line, 0 if there is none.
func (p *Pull) search(ctx context.Context, first string) (newest int64, _ error) {
	for page := 1; page <= mostPages; page++ {
		var all []comment
		next, err := p.do(ctx, http.MethodGet, p.comments+"?per_page=100&page="+strconv.Itoa(page), nil, &all)
		if err != nil {
			return 0, err
		}
		for _, c := range all {
			if line, _, _ := strings.Cut(c.Body, "\n"); !c.System && strings.TrimSpace(line) == first {
				newest = max(newest, c.ID)
			}
		}
		if !next {
			break
		}
	}
	return newest, nil
}

// client follows no redirect: the token is for the named host alone.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// do sends a request and reads its answer. next says that another page follows.
func (p *Pull) do(ctx context.Context, method, address string, body []byte, into any) (next bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = p.header.Clone()
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(r)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	const mostBytes = 32 << 20 // 100 comments of 65,536 characters
	content, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes))
	if err != nil {
		return false, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return false, p.explain(answer, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return false, fmt.Errorf("%s %s: what answers there is not the API: %w", method, address, err)
	}
	return strings.Contains(answer.Header.Get("Link"), `rel="next"`), nil
}

// explain turns a refusal into an error, which says what permission is missing.
func (p *Pull) explain(answer *http.Response, content []byte) error {
	var said struct {
		Message any    `json:"message"` // text, or on GitLab fields with texts
		Error   string `json:"error"`
		Scope   string `json:"scope"` // that GitLab wants
	}
	text := answer.Status
	if json.Unmarshal(content, &said) == nil {
		if said.Message != nil {
			text += fmt.Sprintf(": %v", said.Message)
		}
		if said.Error != "" {
			text += ": " + said.Error
		}
		if said.Scope != "" {
			text += ", want the scope " + said.Scope
		}
	}
	if wanted := answer.Header.Get("X-Accepted-GitHub-Permissions"); wanted != "" {
		text += ", want " + wanted
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound: // both answer so if a token may not see something
		return fmt.Errorf("%w (%s): %s", ErrNotAllowed, text, p.lacks)
	}
	return errors.New(text)
}
