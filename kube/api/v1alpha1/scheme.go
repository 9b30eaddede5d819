package v1alpha1

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Group is the API group of the resources.
const Group = "tarehq.github.io"

// What holds where a spec leaves it open.
const (
	DefaultDeadline = time.Hour       // of a run
	DefaultReady    = 2 * time.Minute // for a specimen to get ready
	DefaultHistory  = 5               // finished runs kept
)

// GroupVersion is the API version of the resources.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme makes the resources known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Study{}, &StudyList{}, &LoadTest{}, &LoadTestList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Plan is where and when runs take place.
func (s *Study) Plan() *RunSpec { return &s.Spec.RunSpec }

// Plan is where and when runs take place.
func (l *LoadTest) Plan() *RunSpec { return &l.Spec.RunSpec }

// Report is the status.
func (s *Study) Report() *Status { return &s.Status }

// Report is the status.
func (l *LoadTest) Report() *Status { return &l.Status }

// studyFile is what the text of a study file is called in a pod.
const studyFile = "study.yaml"

// Command is tare's command line, and the files that it reads, by their names. Values stand
// behind "=" or are held to a form by the schema, so that none is taken for another flag.
func (s *Study) Command() (args []string, files map[string][]byte) {
	args = []string{"run", "--json"}
	if s.Spec.Quick {
		args = append(args, "--quick")
	}
	if s.Spec.Budget != "" {
		args = append(args, "--budget="+s.Spec.Budget)
	}
	if len(s.Spec.Arms) > 0 {
		args = append(args, "--arms="+strings.Join(s.Spec.Arms, ","))
	}
	if s.Spec.StudyFile != "" {
		return append(args, studyFile), map[string][]byte{studyFile: []byte(s.Spec.StudyFile)}
	}
	return append(args, s.Spec.Study), nil
}

// Targets are the URLs that the load goes to.
func (l *LoadTest) Targets() []string { return []string{l.Spec.URL} }

// Targets are the URLs of the study file's arms that run already. What else the file says is
// not looked at: it may name files, which are to be read where the study runs.
func (s *Study) Targets() []string {
	var file struct {
		Arms []struct {
			URL string `json:"url"`
		} `json:"arms"`
	}
	if yaml.Unmarshal([]byte(s.Spec.StudyFile), &file) != nil {
		return nil // tare reports what is wrong
	}
	var all []string
	for _, a := range file.Arms {
		if a.URL != "" {
			all = append(all, a.URL)
		}
	}
	return all
}

// Command is tare's command line. Values stand behind "=" or are held to a form by the schema.
func (l *LoadTest) Command() (args []string, files map[string][]byte) {
	args = []string{"load", "--json"}
	for _, f := range []struct{ flag, value string }{{"--rate=", l.Spec.Rate}, {"--duration=", l.Spec.Duration}} {
		if f.value != "" {
			args = append(args, f.flag+f.value)
		}
	}
	if l.Spec.Connections > 0 {
		args = append(args, "--connections="+strconv.Itoa(int(l.Spec.Connections)))
	}
	for _, threshold := range l.Spec.FailIf {
		args = append(args, "--fail-if="+threshold)
	}
	return append(args, l.Spec.URL), nil
}
