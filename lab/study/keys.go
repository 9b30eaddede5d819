package study

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/stats/unit"
)

// The table of everything that a study file can say. Parse reads by it, Schema
// is made from it, and a test holds docs/study-files.md against it.

const (
	studyName   = `^[a-z0-9]+(-[a-z0-9]+)*$`
	partName    = `^[A-Za-z0-9][A-Za-z0-9._+@-]{0,62}$`
	rivalName   = `^[a-z0-9]+(-[a-z0-9]+)*(@v?[0-9][0-9A-Za-z.+-]*)?$`
	setting     = `^[A-Za-z_][A-Za-z0-9_]*=[^\n\x00]*$`
	pathPattern = `^/[^\s#\x00-\x1f\x7f]*$`
	methodName  = `^[A-Z]+$`
	headerName  = `^[A-Za-z0-9_-]+$`
	fieldValue  = `^[^\x00-\x08\x0a-\x1f\x7f]+$`
	hexDigest   = `^[0-9a-f]{64}$`
	gitRef      = `^[A-Za-z0-9_][^\s\x00-\x1f\x7f~^:?*\[\\]*([~^][0-9]*)*$`
	variantWord = `^(pgo|serve|go[0-9]+\.[0-9]+[a-z0-9.]*|[A-Za-z0-9][A-Za-z0-9._~/-]*@[A-Za-z0-9][A-Za-z0-9._+-]*)$`
	listenWord  = `^(any|[1-9][0-9]{0,4})$`
	buildWord   = `^(-[a-z][^\n\x00]*|[A-Z][A-Z0-9_]*=[^\n\x00]*)$`
	wantPart    = "letters, digits and . _ + @ -, at most 63, the first a letter or digit"
)

// studyShape is made once: its patterns take longer to compile than a study takes to read.
var studyShape = sync.OnceValue(func() shape.Of[Study] {
	return shape.Object("the study", []shape.Key[Study]{
		shape.Field("name", "What the study is called on the command line.", shape.Matching(studyName, "lower-case letters and digits, parts joined by single dashes"), func(s *Study) *string { return &s.Name }).Must(),
		shape.Field("title", "One line for lists and headings.", shape.Line(), func(s *Study) *string { return &s.Title }),
		shape.Field("question", "What the study answers.", shape.Words(), func(s *Study) *string { return &s.Question }),
		shape.Field("notes", "What a reader of the results must know.", shape.Words(), func(s *Study) *string { return &s.Notes }),
		shape.Field("kind", "What the arms are: by default servers that tare loads; generators are load tools that run against the server of each workload.",
			shape.OneOf("omit it for servers, or", Generators), func(s *Study) *Kind { return &s.Kind }),
		shape.Field("aa", "Whether identical arms are meant: an A/A study.", shape.Boolean(), func(s *Study) *bool { return &s.AA }),
		shape.Field("arms", "The programs under comparison.", shape.List(armShape(generatorKeys()...), 1), func(s *Study) *[]Arm { return &s.Arms }).Must(),
		shape.Field("control", "The arm that the others are compared with.", part(), func(s *Study) *string { return &s.Control }).Must(),
		shape.Field("twin", "Whether the control runs twice in every block, as the run's own noise floor.", shape.Boolean(), func(s *Study) *bool { return &s.Twin }),
		shape.Field("workloads", "What is asked of the arms.", shape.List(workloadShape(), 1), func(s *Study) *[]Workload { return &s.Workloads }).Must(),
		shape.Field("primary", "The one comparison that the run is planned for.", primaryShape(), func(s *Study) *Primary { return &s.Primary }).Must(),
		shape.Field("threshold", "The smallest relative effect that matters.", shape.Percent(), func(s *Study) *float64 { return &s.Threshold }),
		shape.Field("trial", "How long a trial takes.", trialShape(), func(s *Study) *Trial { return &s.Trial }),
		shape.Field("looks", "The numbers of blocks after which the run may stop.", shape.List(shape.Integer(leastBlocks, mostBlocks), 1), func(s *Study) *[]int { return &s.Looks }),
		shape.Field("quick", "The short form of the study.", quickShape(), func(s *Study) *Quick { return &s.Quick }),
		shape.Field("attribute", "Who spends what in the arms, asked of profiles after the measured blocks.", attributeShape(shape.Field("truth", "Where arms report what their parts cost, and how far attribution may be off.", truthShape(), func(a *Attribute) *Truth { return &a.Truth })), func(s *Study) *Attribute { return &s.Attribute }),
		shape.Field("disassemble", "Functions whose machine code in the arms' programs the report shows, as the linker names them.", shape.List(shape.Line(), 1), func(s *Study) *[]string { return &s.Disassemble }),
		shape.Field("claims", "The published claims that the study tests.", shape.List(claimShape(), 1), func(s *Study) *[]Claim { return &s.Claims }),
		shape.Field("goals", "What the study's authors want its arms to hold.", shape.List(goalShape(), 1), func(s *Study) *[]Goal { return &s.Goals }),
	})
})

func part() shape.Of[string]    { return shape.Matching(partName, wantPart) }
func parts() shape.Of[[]string] { return shape.List(part(), 1) }

// armShape is an arm; of a study of generators if more says how it is called.
func armShape(more ...shape.Key[Arm]) shape.Of[Arm] {
	return shape.Object("the arm", append([]shape.Key[Arm]{
		shape.Field("name", "What the arm is called in tables.", part(), func(a *Arm) *string { return &a.Name }).Must(),
		shape.Field("title", "The arm in a few words, for headings.", shape.Line(), func(a *Arm) *string { return &a.Title }),
		shape.Field("go", "A Go package: a directory such as ./arms/nesting, or an import path.", shape.Argument(), func(a *Arm) *string { return &a.Go }),
		shape.Field("rival", "A framework of arms/rivals, at its pinned version (gin) or another (gin@v1.8.2).", shape.Matching(rivalName, "a rival's name, with a version if need be, such as gin or gin@v1.8.2"), func(a *Arm) *string { return &a.Rival }),
		shape.Field("command", "A program and its arguments.", shape.List(shape.Word(`^[^\x00]*$`), 1), func(a *Arm) *[]string { return &a.Command }),
		shape.Field("url", "The base URL of something that is already running.", shape.Address(), func(a *Arm) *string { return &a.URL }),
		shape.Field("args", "Arguments, for go and rival.", shape.List(shape.Word(`^[^\x00]*$`), 1), func(a *Arm) *[]string { return &a.Args }),
		shape.Field("build", "How the program is built, for go and rival: flags of go build, and NAME=value for its environment.", shape.List(shape.Matching(buildWord, "a flag such as -pgo=off, or a setting such as GOEXPERIMENT=nogreenteagc"), 1), func(a *Arm) *[]string { return &a.Build }),
		shape.Field("env", "Additions to the environment.", shape.List(shape.Matching(setting, "NAME=value in one line, without the character NUL"), 1), func(a *Arm) *[]string { return &a.Env }),
		shape.Field("sink", "Where the arm's standard output goes; by default it is discarded.", shape.OneOf("a sink is one of", "discard", "file", "pipe"), func(a *Arm) *string { return &a.Sink }),
		shape.Field("x", "The arm's position on the study's scale, such as its number of layers.", shape.Optional(shape.Number()), func(a *Arm) **float64 { return &a.X }),
		shape.Field("needs", "Programs that must be installed, or commands that must succeed. If one does not, the run excludes the arm and says so.", shape.List(shape.Argument(), 1), func(a *Arm) *[]string { return &a.Needs }),
		shape.Field("ref", "For go: the commit at which the directory is built, as Git names it.", shape.Matching(gitRef, "a branch, tag or commit, such as main"), func(a *Arm) *string { return &a.Ref }),
		shape.Field("with", "For go: variants of the build: pgo, serve, a Go version, or a module at a version.", shape.List(shape.Matching(variantWord, "pgo, serve, a Go version such as go1.25.4, or a module at a version such as gin@v1.9.1"), 1), func(a *Arm) *[]string { return &a.With }),
		shape.Field("layer", "What the arm adds to that of over, such as recovery. The report weighs arms of one layer side by side.", shape.Line(), func(a *Arm) *string { return &a.Layer }),
		shape.Field("over", "With layer: the arm that the layer is added to.", part(), func(a *Arm) *string { return &a.Over }),
		shape.Field("listen", "Where the program listens, if not where TARE_ADDR says: any, or a port.", shape.Matching(listenWord, "any, or a port in quotes such as \"8080\""), func(a *Arm) *string { return &a.Listen }),
		shape.Field("ready", "The path that answers once the program is ready, if not the first target.", shape.Matching(pathPattern, "a path that starts with /, such as /healthz"), func(a *Arm) *string { return &a.Ready }),
		shape.Field("before", "A shell command before each start.", shape.Argument(), func(a *Arm) *string { return &a.Before }),
		shape.Field("after", "A shell command after each end.", shape.Argument(), func(a *Arm) *string { return &a.After }),
		shape.Field("dir", "The working directory.", shape.Argument(), func(a *Arm) *string { return &a.Dir }),
		shape.Field("env_file", "A file of NAME=value lines for the environment.", shape.Argument(), func(a *Arm) *string { return &a.EnvFile }),
	}, more...), shape.Schema{Ref: "#/$defs/arm"})
}

// armRules say which keys of an arm go together.
func armRules() shape.Schema {
	ours := shape.Schema{If: &shape.Schema{OneOf: []shape.Schema{shape.Requires("go"), shape.Requires("rival")}}, Else: new(shape.Without("args", "build"))}
	running := shape.Schema{If: new(shape.Requires("url")), Then: new(shape.Without("args", "env", "sink", "listen", "ready", "before", "after", "dir", "env_file"))}
	return shape.Schema{AllOf: []shape.Schema{shape.ExactlyOne("go", "rival", "command", "url"), ours, running, {If: new(shape.Requires("go")), Else: new(shape.Without("ref", "with"))},
		{If: new(shape.Requires("layer")), Then: new(shape.Requires("over")), Else: new(shape.Without("over"))}}}
}

func workloadShape() shape.Of[Workload] {
	paced := shape.Schema{If: shape.Having("schedule", "closed"), Then: new(shape.Without("rate")), Else: new(shape.Requires("schedule", "rate"))}
	asked := shape.Schema{If: new(shape.Requires("flow")), Then: new(shape.Without("schedule", "rate", "connections", "fresh", "timeout", "pipeline")),
		Else: &shape.Schema{AllOf: []shape.Schema{paced, shape.Without("profile")}}}
	return shape.Object("the workload", []shape.Key[Workload]{
		shape.Field("name", "What the workload is called in tables.", part(), func(w *Workload) *string { return &w.Name }).Must(),
		shape.Field("title", "The workload in a few words, for headings.", shape.Line(), func(w *Workload) *string { return &w.Title }),
		shape.Field("schedule", scheduleDoc, shape.OneOf("a schedule is one of", "closed", "constant", "poisson"), func(w *Workload) *string { return &w.Schedule }),
		shape.Field("flow", "Instead of a schedule: users who take steps, as a flow file says, or the name of such a file.", shape.Include(script.Shape()), func(w *Workload) *shape.Included[script.File] {
			w.Flow = new(Flow)
			return &w.Flow.written
		}),
		shape.Field("profile", "With flow: the profile that its users arrive by, as long as the measured part.", shape.OneOf("a profile is one of", script.Smoke, script.Pressure, script.Stress, script.Spike, script.Soak, script.Breakpoint), func(w *Workload) *string { return &w.Profile }),
		shape.Field("connections", "Closed: connections kept busy. Open: connections at most.", shape.Integer(1, 1_000_000), func(w *Workload) *int { return &w.Connections }),
		shape.Field("pipeline", "Closed: requests that a connection sends at once, to read as many answers before it sends again.", shape.Integer(1, 1024), func(w *Workload) *int { return &w.Pipeline }),
		shape.Field("rate", "Open loop: requests a second, or a share of the capacity of the slowest arm.", rate(), func(w *Workload) *Rate { return &w.Rate }),
		shape.Field("fresh", "Share of the requests sent on a new connection.", shape.Percent(), func(w *Workload) *float64 { return &w.Fresh }),
		shape.Field("timeout", "Longest wait for an answer.", shape.Duration(time.Millisecond, 10*time.Minute), func(w *Workload) *time.Duration { return &w.Timeout }),
		shape.Field("failures", "How many of the requests may fail in a trial that counts.", shape.Percent(), func(w *Workload) *float64 { return &w.Failures }),
		shape.Field("measure", "The measured part of this workload's trials, if not the study's; the short form's own holds for all.", shape.Duration(100*time.Millisecond, 24*time.Hour), func(w *Workload) *time.Duration { return &w.Measure }),
		shape.Field("loop", "How long each trial also runs the handler in the arm's own process.", shape.Duration(10*time.Millisecond, time.Minute), func(w *Workload) *time.Duration { return &w.Loop }),
		shape.Field("idle", "Connections held open beside the load, idle since one answer each; what one takes of memory is measured.", shape.Integer(1, 1_000_000), func(w *Workload) *int { return &w.Idle }),
		shape.Field("live", "Whether garbage is collected amid the load, and what is then left of heap and stacks measured.", shape.Boolean(), func(w *Workload) *bool { return &w.Live }),
		shape.Field("lines", "Whether each trial also records the lines that allocate most and those where goroutines stand.", shape.Boolean(), func(w *Workload) *bool { return &w.Lines }),
		shape.Field("counters", "Whether hardware counters watch the loop, where the machine has them.", shape.Boolean(), func(w *Workload) *bool { return &w.Counters }),
		shape.Field("arms", "The arms that this workload is for, if not all.", parts(), func(w *Workload) *[]string { return &w.Arms }),
		shape.Field("server", "Generators: the program that they all load.", shape.Optional(armShape()), func(w *Workload) **Arm { return &w.Server }),
		shape.Field("targets", "The requests, in turn or by weight. With flow: what is asked before the load, to see that the arm answers.", shape.List(targetShape(), 1), func(w *Workload) *[]Target { return &w.Targets }).Must(),
	}, asked)
}

const scheduleDoc = "When requests begin: closed, when the answer before has come; constant or poisson, at a rate of their own."

func targetShape() shape.Of[Target] {
	return shape.Object("the target", []shape.Key[Target]{
		shape.Field("method", "The request's method.", shape.Matching(methodName, "a method in capitals, such as POST"), func(t *Target) *string { return &t.Method }),
		shape.Field("path", "Path and query.", shape.Matching(pathPattern, "a path that starts with / and holds no spaces, no # and no control characters, such as /users?id=7"), func(t *Target) *string { return &t.Path }).Must(),
		shape.Field("header", "Header fields to send.", headers(), func(t *Target) *map[string]string { return &t.Header }),
		shape.Field("body", "The request's body.", shape.Content(), func(t *Target) *string { return &t.Body }),
		shape.Field("weight", "The request's share among the targets.", shape.Integer(1, 1000), func(t *Target) *int { return &t.Weight }),
		shape.Field("verify", "What makes an answer correct.", verifyShape(), func(t *Target) *Verify { return &t.Verify }),
	})
}

func headers() shape.Of[map[string]string] {
	return shape.Dict(headerName, "letters, digits, - and _", shape.Matching(fieldValue, "one line of text without control characters (numbers and true or false in quotes)"))
}

func verifyShape() shape.Of[Verify] {
	return shape.Object("verify", []shape.Key[Verify]{
		shape.Field("status", "The answer's status.", shape.Integer(200, 599), func(v *Verify) *int { return &v.Status }),
		shape.Field("header", "Header fields that the answer must have, with these values.", headers(), func(v *Verify) *map[string]string { return &v.Header }),
		shape.Field("contains", "Text that the body must hold.", shape.Content(), func(v *Verify) *string { return &v.Contains }),
		shape.Field("length", "The body's length in bytes.", shape.Optional(shape.Integer[int64](0, 1<<40)), func(v *Verify) **int64 { return &v.Length }),
		shape.Field("sha256", "The body's SHA-256.", shape.Matching(hexDigest, "64 digits in lower-case hexadecimal"), func(v *Verify) *string { return &v.SHA256 }),
	})
}

func primaryShape() shape.Of[Primary] {
	return shape.Object("primary", []shape.Key[Primary]{
		shape.Field("metric", "The metric compared.", shape.Named("metric", metricName), func(p *Primary) *string { return &p.Metric }).Must(),
		shape.Field("workload", "The workload compared under.", part(), func(p *Primary) *string { return &p.Workload }).Must(),
		shape.Field("arm", "The arm compared with the control; by default every arm is.", part(), func(p *Primary) *string { return &p.Arm }),
	})
}

func metricName() shape.Of[string] {
	var names, each []string
	for _, m := range metrics {
		names = append(names, m.Name)
		if m.Each {
			each = append(each, m.Name)
		}
	}
	of := strings.TrimSuffix(partName, "$") + "/(" + strings.Join(each, "|") + ")$"
	return shape.OneOf("metrics are", names...).Or(of, func(s string) string { return s })
}

func trialShape() shape.Of[Trial] {
	return shape.Object("trial", []shape.Key[Trial]{
		shape.Field("warm_up", "The part before the measured one.", shape.Duration(time.Millisecond, time.Hour), func(t *Trial) *time.Duration { return &t.WarmUp }),
		shape.Field("measure", "The measured part.", shape.Duration(100*time.Millisecond, 24*time.Hour), func(t *Trial) *time.Duration { return &t.Measure }),
		shape.Field("slice", "The period of the trial's series.", shape.Duration(10*time.Millisecond, time.Hour), func(t *Trial) *time.Duration { return &t.Slice }),
	})
}

func quickShape() shape.Of[Quick] {
	return shape.Object("quick", []shape.Key[Quick]{
		shape.Field("arms", "The arms that stay.", parts(), func(q *Quick) *[]string { return &q.Arms }),
		shape.Field("workloads", "The workloads that stay.", parts(), func(q *Quick) *[]string { return &q.Workloads }),
		shape.Field("blocks", "The number of blocks. The run looks once, after all of them.", shape.Integer(leastBlocks, mostBlocks), func(q *Quick) *int { return &q.Blocks }),
		shape.Field("trial", "How long a trial takes.", trialShape(), func(q *Quick) *Trial { return &q.Trial }),
		shape.Field("attribute", "What is different about the captures.", attributeShape(), func(q *Quick) *Attribute { return &q.Attribute }),
	})
}

func claimShape() shape.Of[Claim] {
	return shape.Object("the claim", []shape.Key[Claim]{
		shape.Field("id", "The claim's name in the list of claims.", published.ID(), func(c *Claim) *string { return &c.ID }).Must(),
		shape.Field("checks", "What is checked of it.", shape.List(checkShape(), 1), func(c *Claim) *[]Check { return &c.Checks }).Must(),
		shape.Field("deciding", "How many of the checks, from the first on, decide together.", shape.Integer(2, 100), func(c *Claim) *int { return &c.Deciding }),
	})
}

func checkShape() shape.Of[Check] {
	return shape.Object("the check", []shape.Key[Check]{
		shape.Field("kind", "How the check is judged; by default effect.",
			shape.OneOf("a check is one of", Effect, Interaction, Fact, Bound), func(c *Check) *CheckKind { return &c.Kind }),
		shape.Field("says", "The part of the statement that is checked.", shape.Words(), func(c *Check) *string { return &c.Says }).Must(),
		shape.Field("metric", "The metric it is about.", shape.Named("metric", metricName), func(c *Check) *string { return &c.Metric }),
		shape.Field("workload", "The workload it is about.", part(), func(c *Check) *string { return &c.Workload }),
		shape.Field("arm", "The arm it is about.", part(), func(c *Check) *string { return &c.Arm }).Must(),
		shape.Field("against", "The arm compared with; by default the control, but of a bound none.", part(), func(c *Check) *string { return &c.Against }),
		shape.Field("plus", "Interaction: the arms whose separate effects are added up.", shape.List(part(), 2), func(c *Check) *[]string { return &c.Plus }),
		shape.Field("published", "The published figures, with their units.", publishedShape(), func(c *Check) *Check { return c }),
		shape.Field("direction", "The claimed sign, where no figures give it.",
			shape.OneOf("a direction is one of", "more", "less"), func(c *Check) *string { return &c.Direction }),
		shape.Field("absolute", "Why the published figures cannot be compared with this machine's.", shape.Words(), func(c *Check) *string { return &c.Absolute }),
		shape.Field("fact", "Fact: the name of what the arm reports.", shape.Line(), func(c *Check) *string { return &c.Fact }),
		shape.Field("value", "Fact: the claimed value.", shape.Line(), func(c *Check) *string { return &c.Value }),
		shape.Field("bound", "Bound: what the metric must hold; with against, what it is more than the other's.", shape.Limit(func(c *Check) (*string, **float64) { return &c.Op, &c.Bound }), func(c *Check) *Check { return c }),
		shape.Field("ratio", "Bound: what the arm's value must hold as a multiple of the other's.", shape.Limit(func(c *Check) (*string, **float64) { return &c.Op, &c.BoundRatio }), func(c *Check) *Check { return c }),
	}, checkRules()...)
}

// checkRules say which keys go with which kind of check.
func checkRules() []shape.Schema {
	unsaid := shape.Schema{If: new(shape.Schema{Not: new(shape.Requires("kind"))}), Then: new(Effect.rule())}
	given := shape.Schema{If: new(shape.Requires("published")), Then: new(shape.Without("direction"))}
	rules := []shape.Schema{unsaid, given}
	for _, k := range []CheckKind{Effect, Interaction, Fact, Bound} {
		rules = append(rules, shape.Schema{If: shape.Having("kind", string(k)), Then: new(k.rule())})
	}
	return rules
}

func (k CheckKind) rule() shape.Schema {
	needs, forbids := k.keys()
	all := []shape.Schema{shape.Requires(needs...), shape.Without(forbids...)}
	if k == Bound {
		all = append(all, shape.ExactlyOne("bound", "ratio"))
	}
	return shape.Schema{AllOf: all}
}

func goalShape() shape.Of[Goal] {
	return shape.Object("the goal", []shape.Key[Goal]{
		shape.Field("says", "The goal in words.", shape.Words(), func(g *Goal) *string { return &g.Says }).Must(),
		shape.Field("metrics", "The metrics it is about.", shape.List(shape.Named("metric", metricName), 1), func(g *Goal) *[]string { return &g.Metrics }).Must(),
		shape.Field("workloads", "The workloads it is about.", parts(), func(g *Goal) *[]string { return &g.Workloads }).Must(),
		shape.Field("arms", "The arms it is about.", parts(), func(g *Goal) *[]string { return &g.Arms }).Must(),
		shape.Field("against", "The arms compared with; by default the control for ratio, and none for bound.", parts(), func(g *Goal) *[]string { return &g.Against }),
		shape.Field("bound", "What each metric must hold; with against, what it is more than each other's.", shape.Limit(func(g *Goal) (*string, **float64) { return &g.Op, &g.Bound }), func(g *Goal) *Goal { return g }),
		shape.Field("ratio", "What each arm's value must hold as a multiple of the other's.", shape.Limit(func(g *Goal) (*string, **float64) { return &g.Op, &g.BoundRatio }), func(g *Goal) *Goal { return g }),
	}, shape.ExactlyOne("bound", "ratio"))
}

func publishedShape() shape.Of[Check] {
	either := shape.Schema{OneOf: []shape.Schema{shape.Requires("arm", "against"), shape.Requires("ratio"), shape.Requires("difference")}}
	alone := shape.Schema{If: new(shape.Requires("ratio")), Then: new(shape.Without("arm", "against"))}
	apart := shape.Schema{If: new(shape.Requires("difference")), Then: new(shape.Without("arm", "against"))}
	return shape.Object("published", []shape.Key[Check]{
		shape.Field("arm", "The arm's figure.", shape.Optional(shape.Measured()), func(c *Check) **float64 { return &c.PublishedArm }),
		shape.Field("against", "The figure of what it is compared with.", shape.Optional(shape.Measured()), func(c *Check) **float64 { return &c.PublishedAgainst }),
		shape.Field("ratio", "The arm's figure as a percentage of the other, where nothing else is published.", shape.Optional(shape.Ratio()), func(c *Check) **float64 { return &c.PublishedRatio }),
		shape.Field("difference", "How much more the arm's figure is than the other, where nothing else is published.", shape.Optional(shape.Measured()), func(c *Check) **float64 { return &c.PublishedDifference }),
	}, either, alone, apart)
}

func rate() shape.Of[Rate] {
	want := fmt.Sprintf("requests a second (above 0, at most %.0f), such as 1000/s, or a share of the slowest arm's capacity (above 0%%, at most 100%%), such as 50%%", float64(maxRate))
	return shape.Text(shape.Schema{Type: "string", Pattern: "^" + unit.Digits + " ?([kM]?/s|%)$"}, want, func(s string) (Rate, bool) {
		switch v, base, err := unit.Parse(s); {
		case err != nil || v == 0:
			return Rate{}, false
		case base == unit.Share:
			return Rate{Share: v}, v <= 1
		default:
			return Rate{PerSecond: v}, base == unit.PerSecond && v <= maxRate
		}
	})
}

// maxRate is far above what one machine offers; beyond it stands a slip.
const maxRate = 10_000_000
