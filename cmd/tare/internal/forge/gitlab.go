package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// findGitLab reads the environment of a job of GitLab CI.
//
// Source: docs.gitlab.com/api/notes, merge requests.
func findGitLab(getenv func(string) string) (*Pull, error) {
	number := getenv("CI_MERGE_REQUEST_IID")
	if number == "" {
		return nil, ErrNoPull
	}
	base, project := getenv("CI_API_V4_URL"), getenv("CI_PROJECT_ID")
	if base == "" || project == "" {
		return nil, errors.New("CI_API_V4_URL or CI_PROJECT_ID is empty")
	}
	const lacks = "create a project access token with the role Reporter and the scope api, and store it as the masked CI/CD variable GITLAB_TOKEN"
	token := getenv("GITLAB_TOKEN") // CI_JOB_TOKEN has no access to notes
	if token == "" {
		return nil, fmt.Errorf("%w: GITLAB_TOKEN is empty: %s", ErrNotAllowed, lacks)
	}
	notes := fmt.Sprintf("%s/projects/%s/merge_requests/%s/notes", strings.TrimSuffix(base, "/"), url.PathEscape(project), url.PathEscape(number))
	return &Pull{
		Name:     cmp.Or(getenv("CI_PROJECT_PATH"), project) + "!" + number,
		comments: notes,
		one:      func(id int64) string { return notes + "/" + strconv.FormatInt(id, 10) },
		edit:     http.MethodPut,
		header:   http.Header{"Private-Token": {token}, "User-Agent": {"tare"}},
		lacks:    lacks,
	}, nil
}
