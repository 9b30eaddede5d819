package study

import "time"

// The table of everything that a study file can say. Parse reads by it, Schema
// is made from it, and a test holds docs/study-files.md against it.

const (
	studyName   = `^[a-z0-9]+(-[a-z0-9]+)*$`
	partName    = `^[A-Za-z0-9][A-Za-z0-9._+@-]{0,62}$`
	claimID     = `^[A-Za-z0-9]+([.-][A-Za-z0-9]+)*$`
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

func studyShape() shape[Study] {
	return object("the study", []key[Study]{
		field("name", "What the study is called on the command line.",
			matching(studyName, "lower-case letters and digits, parts joined by single dashes"), func(s *Study) *string { return &s.Name }).must(),
		field("title", "One line for lists and headings.", line(), func(s *Study) *string { return &s.Title }),
		field("question", "What the study answers.", words(), func(s *Study) *string { return &s.Question }),
		field("notes", "What a reader of the results must know.", words(), func(s *Study) *string { return &s.Notes }),
		field("kind", "What the arms are: by default servers that tare loads; generators are load tools that run against the server of each workload.",
			oneOf("omit it for servers, or", Generators), func(s *Study) *Kind { return &s.Kind }),
		field("aa", "Whether identical arms are meant: an A/A study.", boolean(), func(s *Study) *bool { return &s.AA }),
		field("arms", "The programs under comparison.", list(armShape(generatorKeys()...), 1), func(s *Study) *[]Arm { return &s.Arms }).must(),
		field("control", "The arm that the others are compared with.", part(), func(s *Study) *string { return &s.Control }).must(),
		field("twin", "Whether the control runs twice in every block, as the run's own noise floor.", boolean(), func(s *Study) *bool { return &s.Twin }),
		field("workloads", "What is asked of the arms.", list(workloadShape(), 1), func(s *Study) *[]Workload { return &s.Workloads }).must(),
		field("primary", "The one comparison that the run is planned for.", primaryShape(), func(s *Study) *Primary { return &s.Primary }).must(),
		field("threshold", "The smallest relative effect that matters.", percent(), func(s *Study) *float64 { return &s.Threshold }),
		field("trial", "How long a trial takes.", trialShape(), func(s *Study) *Trial { return &s.Trial }),
		field("looks", "The numbers of blocks after which the run may stop.", list(integer(leastBlocks, mostBlocks), 1), func(s *Study) *[]int { return &s.Looks }),
		field("quick", "The short form of the study.", quickShape(), func(s *Study) *Quick { return &s.Quick }),
		field("attribute", "Who spends what in the arms, asked of profiles after the measured blocks.", attributeShape(truthKey()), func(s *Study) *Attribute { return &s.Attribute }),
		field("disassemble", "Functions whose machine code in the arms' programs the report shows, as the linker names them.", list(line(), 1), func(s *Study) *[]string { return &s.Disassemble }),
		field("claims", "The published claims that the study tests.", list(claimShape(), 1), func(s *Study) *[]Claim { return &s.Claims }),
		field("goals", "What the study's authors want its arms to hold.", list(goalShape(), 1), func(s *Study) *[]Goal { return &s.Goals }),
	})
}

func part() shape[string] { return matching(partName, wantPart) }

func parts() shape[[]string] { return list(part(), 1) }

// armShape is an arm; of a study of generators if more says how it is called.
func armShape(more ...key[Arm]) shape[Arm] {
	ours := schema{If: &schema{OneOf: []schema{requires("go"), requires("rival")}}, Else: new(without("args", "build"))}
	running := schema{If: new(requires("url")), Then: new(without("args", "env", "sink", "listen", "ready", "before", "after", "dir", "env_file"))}
	source := schema{If: new(requires("go")), Else: new(without("ref", "with"))}
	return object("the arm", append([]key[Arm]{
		field("name", "What the arm is called in tables.", part(), func(a *Arm) *string { return &a.Name }).must(),
		field("title", "The arm in a few words, for headings.", line(), func(a *Arm) *string { return &a.Title }),
		field("go", "A Go package: a directory such as ./arms/nesting, or an import path.", argument(), func(a *Arm) *string { return &a.Go }),
		field("rival", "A framework of arms/rivals, at its pinned version (gin) or another (gin@v1.8.2).",
			matching(rivalName, "a rival's name, with a version if need be, such as gin or gin@v1.8.2"), func(a *Arm) *string { return &a.Rival }),
		field("command", "A program and its arguments.", list(word(`^[^\x00]*$`), 1), func(a *Arm) *[]string { return &a.Command }),
		field("url", "The base URL of something that is already running.",
			address(), func(a *Arm) *string { return &a.URL }),
		field("args", "Arguments, for go and rival.", list(word(`^[^\x00]*$`), 1), func(a *Arm) *[]string { return &a.Args }),
		field("build", "How the program is built, for go and rival: flags of go build, and NAME=value for its environment.",
			list(matching(buildWord, "a flag such as -pgo=off, or a setting such as GOEXPERIMENT=nogreenteagc"), 1), func(a *Arm) *[]string { return &a.Build }),
		field("env", "Additions to the environment.", list(matching(setting, "NAME=value in one line, without the character NUL"), 1), func(a *Arm) *[]string { return &a.Env }),
		field("sink", "Where the arm's standard output goes; by default it is discarded.",
			oneOf("a sink is one of", "discard", "file", "pipe"), func(a *Arm) *string { return &a.Sink }),
		field("x", "The arm's position on the study's scale, such as its number of layers.", optional(number()), func(a *Arm) **float64 { return &a.X }),
		field("needs", "Programs that must be installed. If one is missing, the run excludes the arm and says so.", list(argument(), 1), func(a *Arm) *[]string { return &a.Needs }),
		field("ref", "For go: the commit at which the directory is built, as Git names it.", matching(gitRef, "a branch, tag or commit, such as main"), func(a *Arm) *string { return &a.Ref }),
		field("with", "For go: variants of the build: pgo, serve, a Go version, or a module at a version.",
			list(matching(variantWord, "pgo, serve, a Go version such as go1.25.4, or a module at a version such as gin@v1.9.1"), 1), func(a *Arm) *[]string { return &a.With }),
		field("listen", "Where the program listens, if not where TARE_ADDR says: any, or a port.", matching(listenWord, "any, or a port in quotes such as \"8080\""), func(a *Arm) *string { return &a.Listen }),
		field("ready", "The path that answers once the program is ready, if not the first target.", matching(pathPattern, "a path that starts with /, such as /healthz"), func(a *Arm) *string { return &a.Ready }),
		field("before", "A shell command before each start.", argument(), func(a *Arm) *string { return &a.Before }),
		field("after", "A shell command after each end.", argument(), func(a *Arm) *string { return &a.After }),
		field("dir", "The working directory.", argument(), func(a *Arm) *string { return &a.Dir }),
		field("env_file", "A file of NAME=value lines for the environment.", argument(), func(a *Arm) *string { return &a.EnvFile }),
	}, more...), exactlyOne("go", "rival", "command", "url"), ours, running, source)
}

func workloadShape() shape[Workload] {
	paced := schema{If: having("schedule", "closed"), Then: new(without("rate")), Else: new(requires("rate"))}
	return object("the workload", []key[Workload]{
		field("name", "What the workload is called in tables.", part(), func(w *Workload) *string { return &w.Name }).must(),
		field("title", "The workload in a few words, for headings.", line(), func(w *Workload) *string { return &w.Title }),
		field("schedule", "When requests begin: closed, when the answer before has come; constant or poisson, at a rate of their own.",
			oneOf("a schedule is one of", "closed", "constant", "poisson"), func(w *Workload) *string { return &w.Schedule }).must(),
		field("connections", "Closed: connections kept busy. Open: connections at most.", integer(1, 1_000_000), func(w *Workload) *int { return &w.Connections }),
		field("pipeline", "Closed: requests that a connection sends at once, to read as many answers before it sends again.", integer(1, 1024), func(w *Workload) *int { return &w.Pipeline }),
		field("rate", "Open loop: requests a second, or a share of the capacity of the slowest arm.", rate(), func(w *Workload) *Rate { return &w.Rate }),
		field("fresh", "Share of the requests sent on a new connection.", percent(), func(w *Workload) *float64 { return &w.Fresh }),
		field("timeout", "Longest wait for an answer.", duration(time.Millisecond, 10*time.Minute), func(w *Workload) *time.Duration { return &w.Timeout }),
		field("failures", "How many of the requests may fail in a trial that counts.", percent(), func(w *Workload) *float64 { return &w.Failures }),
		field("measure", "The measured part of this workload's trials, if not the study's; the short form's own holds for all.", duration(100*time.Millisecond, 24*time.Hour), func(w *Workload) *time.Duration { return &w.Measure }),
		field("loop", "How long each trial also runs the handler in the arm's own process.", duration(10*time.Millisecond, time.Minute), func(w *Workload) *time.Duration { return &w.Loop }),
		field("idle", "Connections held open beside the load, idle since one answer each; what one takes of memory is measured.", integer(1, 1_000_000), func(w *Workload) *int { return &w.Idle }),
		field("live", "Whether garbage is collected amid the load, and what is then left of heap and stacks measured.", boolean(), func(w *Workload) *bool { return &w.Live }),
		field("lines", "Whether each trial also records the lines that allocate most and those where goroutines stand.", boolean(), func(w *Workload) *bool { return &w.Lines }),
		field("counters", "Whether hardware counters watch the loop, where the machine has them.", boolean(), func(w *Workload) *bool { return &w.Counters }),
		field("arms", "The arms that this workload is for, if not all.", parts(), func(w *Workload) *[]string { return &w.Arms }),
		field("server", "Generators: the program that they all load.", optional(armShape()), func(w *Workload) **Arm { return &w.Server }),
		field("targets", "The requests, in turn or by weight.", list(targetShape(), 1), func(w *Workload) *[]Target { return &w.Targets }).must(),
	}, paced)
}

func targetShape() shape[Target] {
	return object("the target", []key[Target]{
		field("method", "The request's method.", matching(methodName, "a method in capitals, such as POST"), func(t *Target) *string { return &t.Method }),
		field("path", "Path and query.", matching(pathPattern, "a path that starts with / and holds no spaces, no # and no control characters, such as /users?id=7"), func(t *Target) *string { return &t.Path }).must(),
		field("header", "Header fields to send.", headers(), func(t *Target) *map[string]string { return &t.Header }),
		field("body", "The request's body.", content(), func(t *Target) *string { return &t.Body }),
		field("weight", "The request's share among the targets.", integer(1, 1000), func(t *Target) *int { return &t.Weight }),
		field("verify", "What makes an answer correct.", verifyShape(), func(t *Target) *Verify { return &t.Verify }),
	})
}

func headers() shape[map[string]string] {
	return dict(headerName, "letters, digits, - and _", matching(fieldValue, "one line of text without control characters (numbers and true or false in quotes)"))
}

func verifyShape() shape[Verify] {
	return object("verify", []key[Verify]{
		field("status", "The answer's status.", integer(200, 599), func(v *Verify) *int { return &v.Status }),
		field("header", "Header fields that the answer must have, with these values.", headers(), func(v *Verify) *map[string]string { return &v.Header }),
		field("contains", "Text that the body must hold.", content(), func(v *Verify) *string { return &v.Contains }),
		field("length", "The body's length in bytes.", optional(integer[int64](0, 1<<40)), func(v *Verify) **int64 { return &v.Length }),
		field("sha256", "The body's SHA-256.", matching(hexDigest, "64 digits in lower-case hexadecimal"), func(v *Verify) *string { return &v.SHA256 }),
	})
}

func primaryShape() shape[Primary] {
	return object("primary", []key[Primary]{
		field("metric", "The metric compared.", metricName(), func(p *Primary) *string { return &p.Metric }).must(),
		field("workload", "The workload compared under.", part(), func(p *Primary) *string { return &p.Workload }).must(),
		field("arm", "The arm compared with the control; by default every arm is.", part(), func(p *Primary) *string { return &p.Arm }),
	})
}

func metricName() shape[string] {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.Name
	}
	return oneOf("metrics are", names...)
}

func trialShape() shape[Trial] {
	return object("trial", []key[Trial]{
		field("warm_up", "The part before the measured one.", duration(time.Millisecond, time.Hour), func(t *Trial) *time.Duration { return &t.WarmUp }),
		field("measure", "The measured part.", duration(100*time.Millisecond, 24*time.Hour), func(t *Trial) *time.Duration { return &t.Measure }),
		field("slice", "The period of the trial's series.", duration(10*time.Millisecond, time.Hour), func(t *Trial) *time.Duration { return &t.Slice }),
	})
}

func quickShape() shape[Quick] {
	return object("quick", []key[Quick]{
		field("arms", "The arms that stay.", parts(), func(q *Quick) *[]string { return &q.Arms }),
		field("workloads", "The workloads that stay.", parts(), func(q *Quick) *[]string { return &q.Workloads }),
		field("blocks", "The most blocks.", integer(leastBlocks, mostBlocks), func(q *Quick) *int { return &q.Blocks }),
		field("trial", "How long a trial takes.", trialShape(), func(q *Quick) *Trial { return &q.Trial }),
		field("attribute", "What is different about the captures.", attributeShape(), func(q *Quick) *Attribute { return &q.Attribute }),
	})
}

func claimShape() shape[Claim] {
	return object("the claim", []key[Claim]{
		field("id", "The claim's name in the list of claims.", claimName(), func(c *Claim) *string { return &c.ID }).must(),
		field("checks", "What is checked of it.", list(checkShape(), 1), func(c *Claim) *[]Check { return &c.Checks }).must(),
		field("deciding", "How many of the checks, from the first on, decide together.", integer(2, 100), func(c *Claim) *int { return &c.Deciding }),
	})
}

func claimName() shape[string] {
	return matching(claimID, "letters and digits, parts joined by single dots or dashes, such as P1.nesting")
}

func checkShape() shape[Check] {
	return object("the check", []key[Check]{
		field("kind", "How the check is judged; by default effect.",
			oneOf("a check is one of", Effect, Interaction, Fact, Bound), func(c *Check) *CheckKind { return &c.Kind }),
		field("says", "The part of the statement that is checked.", words(), func(c *Check) *string { return &c.Says }).must(),
		field("metric", "The metric it is about.", metricName(), func(c *Check) *string { return &c.Metric }),
		field("workload", "The workload it is about.", part(), func(c *Check) *string { return &c.Workload }),
		field("arm", "The arm it is about.", part(), func(c *Check) *string { return &c.Arm }).must(),
		field("against", "The arm compared with; by default the control.", part(), func(c *Check) *string { return &c.Against }),
		field("plus", "Interaction: the arms whose separate effects are added up.", list(part(), 2), func(c *Check) *[]string { return &c.Plus }),
		field("published", "The published figures, with their units.", publishedShape(), func(c *Check) *Check { return c }),
		field("direction", "The claimed sign, where no figures give it.",
			oneOf("a direction is one of", "more", "less"), func(c *Check) *string { return &c.Direction }),
		field("absolute", "Why the published figures cannot be compared with this machine's.", words(), func(c *Check) *string { return &c.Absolute }),
		field("fact", "Fact: the name of what the arm reports.", line(), func(c *Check) *string { return &c.Fact }),
		field("value", "Fact: the claimed value.", line(), func(c *Check) *string { return &c.Value }),
		field("bound", "Bound: what the metric must hold.", limit(func(c *Check) (*string, **float64) { return &c.Op, &c.Bound }), func(c *Check) *Check { return c }),
		field("ratio", "Bound: what the arm's value must hold as a multiple of the other's.", limit(func(c *Check) (*string, **float64) { return &c.Op, &c.BoundRatio }), func(c *Check) *Check { return c }),
	}, checkRules()...)
}

// checkRules say which keys go with which kind of check.
func checkRules() []schema {
	unsaid := schema{If: new(schema{Not: new(requires("kind"))}), Then: new(Effect.rule())}
	given := schema{If: new(requires("published")), Then: new(without("direction"))}
	rules := []schema{unsaid, given}
	for _, k := range []CheckKind{Effect, Interaction, Fact, Bound} {
		rules = append(rules, schema{If: having("kind", string(k)), Then: new(k.rule())})
	}
	return rules
}

func (k CheckKind) rule() schema {
	needs, forbids := k.keys()
	all := []schema{requires(needs...), without(forbids...)}
	if k == Bound {
		all = append(all, exactlyOne("bound", "ratio"), pairless())
	}
	return schema{AllOf: all}
}

// pairless is the rule that what bounds one arm names no other.
func pairless() schema {
	return schema{If: new(requires("bound")), Then: new(without("against"))}
}

func goalShape() shape[Goal] {
	return object("the goal", []key[Goal]{
		field("says", "The goal in words.", words(), func(g *Goal) *string { return &g.Says }).must(),
		field("metrics", "The metrics it is about.", list(metricName(), 1), func(g *Goal) *[]string { return &g.Metrics }).must(),
		field("workloads", "The workloads it is about.", parts(), func(g *Goal) *[]string { return &g.Workloads }).must(),
		field("arms", "The arms it is about.", parts(), func(g *Goal) *[]string { return &g.Arms }).must(),
		field("against", "With ratio: the arms compared with; by default the control.", parts(), func(g *Goal) *[]string { return &g.Against }),
		field("bound", "What each metric must hold.", limit(func(g *Goal) (*string, **float64) { return &g.Op, &g.Bound }), func(g *Goal) *Goal { return g }),
		field("ratio", "What each arm's value must hold as a multiple of the other's.", limit(func(g *Goal) (*string, **float64) { return &g.Op, &g.BoundRatio }), func(g *Goal) *Goal { return g }),
	}, exactlyOne("bound", "ratio"), pairless())
}

func publishedShape() shape[Check] {
	either := schema{OneOf: []schema{requires("arm", "against"), requires("ratio"), requires("difference")}}
	alone := schema{If: new(requires("ratio")), Then: new(without("arm", "against"))}
	apart := schema{If: new(requires("difference")), Then: new(without("arm", "against"))}
	return object("published", []key[Check]{
		field("arm", "The arm's figure.", optional(measured()), func(c *Check) **float64 { return &c.PublishedArm }),
		field("against", "The figure of what it is compared with.", optional(measured()), func(c *Check) **float64 { return &c.PublishedAgainst }),
		field("ratio", "The arm's figure as a percentage of the other, where nothing else is published.", optional(ratio()), func(c *Check) **float64 { return &c.PublishedRatio }),
		field("difference", "How much more the arm's figure is than the other, where nothing else is published.", optional(measured()), func(c *Check) **float64 { return &c.PublishedDifference }),
	}, either, alone, apart)
}
