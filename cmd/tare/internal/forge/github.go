package forge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// findGitHub reads the environment of a job of GitHub Actions.
//
// Source: docs.github.com/rest/issues/comments, version 2022-11-28.
func findGitHub(getenv func(string) string) (*Pull, error) {
	number, err := pullNumber(getenv)
	if err != nil {
		return nil, err
	}
	repository, token := getenv("GITHUB_REPOSITORY"), getenv("GITHUB_TOKEN")
	if repository == "" {
		return nil, errors.New("GITHUB_REPOSITORY is empty")
	}
	if token == "" {
		return nil, fmt.Errorf("%w: GITHUB_TOKEN is empty: add to the step `env: GITHUB_TOKEN: ${{ github.token }}`", ErrNotAllowed)
	}
	base := strings.TrimSuffix(cmp.Or(getenv("GITHUB_API_URL"), "https://api.github.com"), "/") + "/repos/" + repository + "/issues/"
	return &Pull{
		Name:     fmt.Sprintf("%s#%d", repository, number),
		comments: fmt.Sprintf("%s%d/comments", base, number),
		one:      func(id int64) string { return base + "comments/" + strconv.FormatInt(id, 10) },
		edit:     http.MethodPatch,
		header: http.Header{
			"Authorization":        {"Bearer " + token},
			"Accept":               {"application/vnd.github+json"},
			"X-Github-Api-Version": {"2022-11-28"},
			"User-Agent":           {"tare"},
		},
		lacks: "give the job `permissions: pull-requests: write`; the token of a pull request from a fork can only read",
	}, nil
}

// pullNumber reads the number of the pull request from the event that started the job.
func pullNumber(getenv func(string) string) (int, error) {
	path := getenv("GITHUB_EVENT_PATH")
	if path == "" {
		return 0, errors.New("GITHUB_EVENT_PATH is empty")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("GITHUB_EVENT_PATH: %w", err)
	}
	var event struct {
		Pull struct {
			Number int `json:"number"`
		} `json:"pull_request"`
		Issue struct {
			Number int       `json:"number"`
			Pull   *struct{} `json:"pull_request"` // of an issue that is one
		} `json:"issue"`
	}
	if err := json.Unmarshal(content, &event); err != nil {
		return 0, fmt.Errorf("GITHUB_EVENT_PATH: reading %s: %w", path, err)
	}
	switch {
	case event.Pull.Number > 0:
		return event.Pull.Number, nil
	case event.Issue.Pull != nil:
		return event.Issue.Number, nil
	}
	return 0, ErrNoPull
}
