package routes

import (
	"strconv"
	"strings"
)

// Ping is the table of the one route that framework comparisons ask for.
func Ping() Table { return parse("/ping GET") }

// Ten is the table of a small service.
func Ten() Table { return parse(ten) }

// User is the table of a published comparison: ten static routes that look like one
// with a parameter.
func User() Table {
	t := make(Table, 10)
	for i := range t {
		t[i] = Route{"GET", "/api/v1/user/" + strconv.Itoa(i)}
	}
	return t
}

// GitHub is the table of the GitHub API, version 3, as of 2013: the routes
// that every router under comparison can hold at the same time, which leaves
// out those with PATCH and with wildcards that some refuse.
func GitHub() Table { return parse(github) }

// Static is the table of the files of Go's documentation as of 2013: 157 routes without
// parameters.
func Static() Table {
	t, folder := Table{}, ""
	for word := range strings.FieldsSeq(static) {
		if strings.HasPrefix(word, "/") {
			folder, word = word, "{$}"
		}
		t = append(t, Route{"GET", folder + word})
	}
	return t
}

// GPlus is the table of the API of Google+: 13 routes.
func GPlus() Table { return parse(gplus) }

// Parse is the table of the API of Parse: 26 routes.
func Parse() Table { return parse(parseAPI) }

// parse reads a line a path, each followed by its methods.
func parse(text string) Table {
	var t Table
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		for _, method := range fields[1:] {
			t = append(t, Route{method, fields[0]})
		}
	}
	return t
}

const ten = `/{$} GET
/ping GET
/users GET POST
/users/{id} GET
/users/{id}/posts GET
/posts GET
/posts/{id} GET
/search GET
/health GET
`

const github = `/applications/{client_id}/tokens DELETE
/applications/{client_id}/tokens/{access_token} GET DELETE
/authorizations GET POST
/authorizations/{id} GET DELETE
/emojis GET
/events GET
/feeds GET
/gists GET POST
/gists/{id} GET DELETE
/gists/{id}/forks POST
/gists/{id}/star GET PUT DELETE
/gitignore/templates GET
/gitignore/templates/{name} GET
/issues GET
/legacy/issues/search/{owner}/{repository}/{state}/{keyword} GET
/legacy/repos/search/{keyword} GET
/legacy/user/email/{email} GET
/legacy/user/search/{keyword} GET
/markdown POST
/markdown/raw POST
/meta GET
/networks/{owner}/{repo}/events GET
/notifications GET PUT
/notifications/threads/{id} GET
/notifications/threads/{id}/subscription GET PUT DELETE
/orgs/{org} GET
/orgs/{org}/events GET
/orgs/{org}/issues GET
/orgs/{org}/members GET
/orgs/{org}/members/{user} GET DELETE
/orgs/{org}/public_members GET
/orgs/{org}/public_members/{user} GET PUT DELETE
/orgs/{org}/repos GET POST
/orgs/{org}/teams GET POST
/rate_limit GET
/repos/{owner}/{repo} GET DELETE
/repos/{owner}/{repo}/assignees GET
/repos/{owner}/{repo}/assignees/{assignee} GET
/repos/{owner}/{repo}/branches GET
/repos/{owner}/{repo}/branches/{branch} GET
/repos/{owner}/{repo}/collaborators GET
/repos/{owner}/{repo}/collaborators/{user} GET PUT DELETE
/repos/{owner}/{repo}/comments GET
/repos/{owner}/{repo}/comments/{id} GET DELETE
/repos/{owner}/{repo}/commits GET
/repos/{owner}/{repo}/commits/{sha} GET
/repos/{owner}/{repo}/commits/{sha}/comments GET POST
/repos/{owner}/{repo}/contributors GET
/repos/{owner}/{repo}/downloads GET
/repos/{owner}/{repo}/downloads/{id} GET DELETE
/repos/{owner}/{repo}/events GET
/repos/{owner}/{repo}/forks GET POST
/repos/{owner}/{repo}/git/blobs POST
/repos/{owner}/{repo}/git/blobs/{sha} GET
/repos/{owner}/{repo}/git/commits POST
/repos/{owner}/{repo}/git/commits/{sha} GET
/repos/{owner}/{repo}/git/refs GET POST
/repos/{owner}/{repo}/git/tags POST
/repos/{owner}/{repo}/git/tags/{sha} GET
/repos/{owner}/{repo}/git/trees POST
/repos/{owner}/{repo}/git/trees/{sha} GET
/repos/{owner}/{repo}/hooks GET POST
/repos/{owner}/{repo}/hooks/{id} GET DELETE
/repos/{owner}/{repo}/hooks/{id}/tests POST
/repos/{owner}/{repo}/issues GET POST
/repos/{owner}/{repo}/issues/{number} GET
/repos/{owner}/{repo}/issues/{number}/comments GET POST
/repos/{owner}/{repo}/issues/{number}/events GET
/repos/{owner}/{repo}/issues/{number}/labels GET POST PUT DELETE
/repos/{owner}/{repo}/issues/{number}/labels/{name} DELETE
/repos/{owner}/{repo}/keys GET POST
/repos/{owner}/{repo}/keys/{id} GET DELETE
/repos/{owner}/{repo}/labels GET POST
/repos/{owner}/{repo}/labels/{name} GET DELETE
/repos/{owner}/{repo}/languages GET
/repos/{owner}/{repo}/merges POST
/repos/{owner}/{repo}/milestones GET POST
/repos/{owner}/{repo}/milestones/{number} GET DELETE
/repos/{owner}/{repo}/milestones/{number}/labels GET
/repos/{owner}/{repo}/notifications GET PUT
/repos/{owner}/{repo}/pulls GET POST
/repos/{owner}/{repo}/pulls/{number} GET
/repos/{owner}/{repo}/pulls/{number}/comments GET PUT
/repos/{owner}/{repo}/pulls/{number}/commits GET
/repos/{owner}/{repo}/pulls/{number}/files GET
/repos/{owner}/{repo}/pulls/{number}/merge GET PUT
/repos/{owner}/{repo}/readme GET
/repos/{owner}/{repo}/releases GET POST
/repos/{owner}/{repo}/releases/{id} GET DELETE
/repos/{owner}/{repo}/releases/{id}/assets GET
/repos/{owner}/{repo}/stargazers GET
/repos/{owner}/{repo}/stats/code_frequency GET
/repos/{owner}/{repo}/stats/commit_activity GET
/repos/{owner}/{repo}/stats/contributors GET
/repos/{owner}/{repo}/stats/participation GET
/repos/{owner}/{repo}/stats/punch_card GET
/repos/{owner}/{repo}/statuses/{ref} GET POST
/repos/{owner}/{repo}/subscribers GET
/repos/{owner}/{repo}/subscription GET PUT DELETE
/repos/{owner}/{repo}/tags GET
/repos/{owner}/{repo}/teams GET
/repositories GET
/search/code GET
/search/issues GET
/search/repositories GET
/search/users GET
/teams/{id} GET DELETE
/teams/{id}/members GET
/teams/{id}/members/{user} GET PUT DELETE
/teams/{id}/repos GET
/teams/{id}/repos/{owner}/{repo} GET PUT DELETE
/user GET
/user/emails GET POST DELETE
/user/followers GET
/user/following GET
/user/following/{user} GET PUT DELETE
/user/issues GET
/user/keys GET POST
/user/keys/{id} GET DELETE
/user/orgs GET
/user/repos GET POST
/user/starred GET
/user/starred/{owner}/{repo} GET PUT DELETE
/user/subscriptions GET
/user/subscriptions/{owner}/{repo} GET PUT DELETE
/user/teams GET
/users GET
/users/{user} GET
/users/{user}/events GET
/users/{user}/events/orgs/{org} GET
/users/{user}/events/public GET
/users/{user}/followers GET
/users/{user}/following GET
/users/{user}/following/{target_user} GET
/users/{user}/gists GET
/users/{user}/keys GET
/users/{user}/orgs GET
/users/{user}/received_events GET
/users/{user}/received_events/public GET
/users/{user}/repos GET
/users/{user}/starred GET
/users/{user}/subscriptions GET
`

const gplus = `/people GET
/people/{userId} GET
/people/{userId}/openIdConnect GET
/people/{userId}/people/{collection} GET
/people/{userId}/activities/{collection} GET
/people/{userId}/moments/{collection} GET POST
/activities GET
/activities/{activityId} GET
/activities/{activityId}/comments GET
/activities/{activityId}/people/{collection} GET
/comments/{commentId} GET
/moments/{id} DELETE
`

const parseAPI = `/1/classes/{className} GET POST
/1/classes/{className}/{objectId} GET PUT DELETE
/1/users GET POST
/1/users/{objectId} GET PUT DELETE
/1/login GET
/1/requestPasswordReset POST
/1/roles GET POST
/1/roles/{objectId} GET PUT DELETE
/1/files/{fileName} POST
/1/events/{eventName} POST
/1/push POST
/1/installations GET POST
/1/installations/{objectId} GET PUT DELETE
/1/functions POST
`

// static has folders and, behind each, its files.
const static = `/ cmd.html code.html contrib.html contribute.html debugging_with_gdb.html docs.html
effective_go.html files.log gccgo_contribute.html gccgo_install.html go-logo-black.png
go-logo-blue.png go-logo-white.png go1.1.html go1.2.html go1.html go1compat.html go_faq.html
go_mem.html go_spec.html help.html ie.css install-source.html install.html logo-153x55.png
Makefile root.html share.png sieve.gif tos.html
/articles/ go_command.html index.html
/articles/wiki/ edit.html final-noclosure.go final-noerror.go final-parsetemplate.go
final-template.go final.go get.go http-sample.go index.html Makefile notemplate.go
part1-noerror.go part1.go part2.go part3-errorhandling.go part3.go test.bash test_edit.good
test_Test.txt.good test_view.good view.html
/codewalk/ codewalk.css codewalk.js codewalk.xml functions.xml markov.go markov.xml pig.go
popout.png run sharemem.xml urlpoll.go
/devel/ release.html weekly.html
/gopher/ appenginegopher.jpg appenginegophercolor.jpg appenginelogo.gif bumper.png
bumper192x108.png bumper320x180.png bumper480x270.png bumper640x360.png doc.png frontpage.png
gopherbw.png gophercolor.png gophercolor16x16.png help.png pkg.png project.png ref.png run.png
talks.png
/gopher/pencil/ gopherhat.jpg gopherhelmet.jpg gophermega.jpg gopherrunning.jpg gopherswim.jpg
gopherswrench.jpg
/play/ fib.go hello.go life.go peano.go pi.go sieve.go solitaire.go tree.go
/progs/ cgo1.go cgo2.go cgo3.go cgo4.go defer.go defer.out defer2.go defer2.out eff_bytesize.go
eff_bytesize.out eff_qr.go eff_sequence.go eff_sequence.out eff_unused1.go eff_unused2.go
error.go error2.go error3.go error4.go go1.go gobs1.go gobs2.go image_draw.go image_package1.go
image_package1.out image_package2.go image_package2.out image_package3.go image_package3.out
image_package4.go image_package4.out image_package5.go image_package5.out image_package6.go
image_package6.out interface.go interface2.go interface2.out json1.go json2.go json2.out
json3.go json4.go json5.go run slices.go timeout1.go timeout2.go update.bash`
