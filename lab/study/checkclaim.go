package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/stats/unit"
)

// claim checks one claim's checks.
func (c *checker) claim(i int) {
	cl, path := c.Claims[i], fmt.Sprintf("claims[%d]", i)
	if first := slices.IndexFunc(c.Claims, func(o Claim) bool { return o.ID == cl.ID }); first < i && cl.ID != "" {
		c.Wrong(path+".id", "claims[%d] is %s already; put all checks of a claim together", first, cl.ID)
	}
	if cl.Deciding > len(cl.Checks) {
		c.Wrong(path+".deciding", "%d checks decide together, and there are %d; give at most so many", cl.Deciding, len(cl.Checks))
	}
	for j := range cl.Checks {
		c.check(fmt.Sprintf("%s.checks[%d]", path, j), cl.Checks[j])
	}
}

// keys are those that a kind of check needs and those that have no place in it.
func (k CheckKind) keys() (needs, forbids []string) {
	switch k {
	case Interaction:
		return []string{"metric", "workload", "plus"}, []string{"fact", "value", "bound", "ratio"}
	case Fact:
		return []string{"fact", "value"}, []string{"metric", "workload", "plus", "bound", "ratio", "published", "against", "direction"}
	case Bound:
		return []string{"metric", "workload"}, []string{"plus", "fact", "value", "published", "direction"}
	}
	return []string{"metric", "workload"}, []string{"plus", "fact", "value", "bound", "ratio"}
}

func (c *checker) check(path string, k Check) {
	needs, forbids := k.Kind.keys()
	for _, name := range needs {
		if !c.has(path + "." + name) {
			c.Wrong(path, "a check of kind %s lacks the key %s; it needs %s", k.Kind, name, strings.Join(needs, ", "))
		}
	}
	for _, name := range forbids {
		c.forbid(path, name, fmt.Sprintf("the check is of kind %s, which takes %s", k.Kind, strings.Join(needs, ", ")))
	}
	c.refer(path+".workload", k.Workload, "workload", c.workloads)
	if m, _ := MetricNamed(k.Metric); m.Attributed && slices.Contains(c.workloads, k.Workload) && !c.attributes(k) {
		c.Wrong(path+".metric", "%s is measured by profiles, but attribute does not ask for them from all that is compared under workload %q", k.Metric, k.Workload)
	}
	c.takesPart(path+".arm", k.Arm, k.Workload)
	c.takesPart(path+".against", k.Against, k.Workload)
	for i, name := range k.Plus {
		c.takesPart(fmt.Sprintf("%s.plus[%d]", path, i), name, k.Workload)
	}
	if k.Kind == Effect || k.Kind == Interaction {
		c.compared(path+".metric", k.Metric, k.Workload)
		c.apart(path, k)
		c.published(path, k)
		c.unit(path+".published.arm", k.Metric)
		c.unit(path+".published.against", k.Metric)
		c.unit(path+".published.difference", k.Metric)
	} else if k.Kind == Bound {
		if i := slices.Index(c.workloads, k.Workload); i >= 0 {
			if why := c.Workloads[i].explainOperation(k.Metric); why != "" {
				c.Wrong(path+".metric", "%s", why)
			}
		}
		c.boundOrRatio(path)
		c.unit(path+".bound", k.Metric)
	}
	if k.Paired() {
		c.compared(path+".metric", k.Metric, k.Workload)
		c.apart(path, k)
	}
}

// apart checks that a check compares two arms.
func (c *checker) apart(path string, k Check) {
	against, at := k.Against, path+".against"
	if against == "" {
		against, at = c.Control, path+".arm"
	}
	if k.Arm != "" && k.Arm == against {
		c.Wrong(at, "arm %q is compared with itself; name two arms", k.Arm)
	}
}

// published checks the figures of a claim, and that it goes one way.
func (c *checker) published(path string, k Check) {
	figures := k.PublishedArm != nil && k.PublishedAgainst != nil
	if at := path + ".published"; c.has(at) && !c.Unread[at] {
		arm, against := c.has(at+".arm"), c.has(at+".against")
		ratio, difference := c.has(at+".ratio"), c.has(at+".difference")
		pair, alone := arm && against && !ratio && !difference, !arm && !against && ratio != difference
		if !pair && !alone {
			c.Wrong(at, "published holds either arm and against, or ratio alone, or difference alone")
			return
		}
	}
	switch {
	case k.Direction == "" && !c.has(path+".published"):
		c.Wrong(path, "the check says neither published nor direction; give the figures, or direction: more or less")
	case k.Direction == "" && figures && *k.PublishedArm == *k.PublishedAgainst:
		c.Wrong(path+".published", "equal figures claim no difference that could be tested; leave the check out")
	case c.has(path+".direction") && c.has(path+".published"):
		c.Wrong(path+".direction", "the published figures give the direction; leave it out")
	}
}

// unit checks that a figure is in the unit of its metric.
func (c *checker) unit(path, metric string) {
	m, known := MetricNamed(metric)
	q, read := c.Quantities[path]
	if !known || !read {
		return
	}
	if _, err := q.In(m.Unit); err != nil {
		c.Wrong(path, "%s is %s, and %s is %s", shape.Last(path), unit.Describe(q.Unit), metric, unit.Describe(m.Unit))
	}
}
